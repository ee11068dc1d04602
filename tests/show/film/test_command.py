"""`curiosity watch`: what it says, and what it refuses."""

import sys

import pytest

from episodic_curiosity.cli import main as cli
from episodic_curiosity.show.film import film as films
from episodic_curiosity.show.film.config import FilmConfig
from episodic_curiosity.support import saving

pytestmark = pytest.mark.slow


def refused(capsys, *words: object) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(["watch", *map(str, words)])
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    return " ".join(said.err.replace("│", " ").split())


def test_the_command(runs, tmp_path, capsys):
    out = tmp_path / "film.gif"
    cli.main(f"watch {runs('ppo')} --out {out} --height 96 --frames 5 --device cpu".split())
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{out}: ")
    assert first.endswith(" KB")
    assert second.startswith("episode 1: 40 steps, reward ")


def test_bad_input_is_one_sentence(runs, tmp_path, capsys):
    run, out = runs("ppo"), tmp_path / "film.gif"
    whom = "give either a run's folder or --random --task TASK"
    for words in ((), (run, "--random"), (run, "--task", "maze/sparse"), ("--random",)):
        assert whom in refused(capsys, *words, "--out", out)
    assert whom in refused(capsys, run, "--random", "--task", "maze/sparse", "--out", out)
    assert "there is no task" in refused(
        capsys, "--random", "--task", "maze/sprase", "--out", out
    )
    assert "a film must end in .gif or .mp4, got 'film.avi'" in refused(
        capsys, run, "--out", tmp_path / "film.avi"
    )
    assert "has no agent" in refused(capsys, tmp_path, "--out", out)
    missing = tmp_path / "missing"
    assert f"there is no folder {missing}" in refused(capsys, missing, "--out", out)
    (tmp_path / "folder.gif").mkdir()
    assert "is a folder; name a file in it" in refused(
        capsys, run, "--out", tmp_path / "folder.gif"
    )
    assert not out.exists()


def test_where_no_film_can_be_written_nothing_is_played(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("episodic_curiosity.show.film.watch.open_scenery", None)
    file = tmp_path / "file"
    file.write_text("no folder")
    said = refused(capsys, runs("ppo"), "--out", file / "new" / "film.gif")
    assert said == (
        f"curiosity: {file}/new/film.gif cannot be written: {file} is no folder to write to"
    )
    monkeypatch.setattr(saving.os, "access", lambda *_: False)
    said = refused(capsys, runs("ppo"), "--out", tmp_path / "new" / "film.gif")
    assert f"{tmp_path} is no folder to write to" in said
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("episodes", 0, "episodes must be an integer of at least 1"),
        ("steps", 0, "steps must be an integer of at least 1"),
        ("frames", 1, "frames must be an integer of at least 2"),
        ("fps", 51, "fps must be at most 50, got 51"),
        ("frames", 5001, "frames must be at most 5000, got 5001"),
        ("height", 95, "height must be an integer of at least 96"),
        ("height", 2161, "height must be at most 2160, got 2161"),
        ("colours", 257, "colours must be at most 256, got 257"),
        ("split", "tset", "split must be one of"),
        ("seed", -1, "seed"),
    ],
)
def test_films_that_cannot_be_made_are_refused(field, value, said):
    with pytest.raises(ValueError, match=said):
        FilmConfig(**{field: value})


def test_without_pillow_or_ffmpeg_a_sentence_says_what_to_install(runs, monkeypatch, capsys):
    monkeypatch.setattr(films.shutil, "which", lambda _: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    said = refused(capsys, runs("ppo"), "--out", "film.mp4")
    assert said == (
        "curiosity: MP4 needs ffmpeg: pip install 'episodic-curiosity[film]', or write a .gif"
    )
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.delitem(sys.modules, "episodic_curiosity.show.film.watch")
    said = refused(capsys, runs("ppo"), "--out", "film.gif")
    assert said == "curiosity: films need Pillow: pip install 'episodic-curiosity[film]'"
