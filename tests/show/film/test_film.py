"""Films of runs, as files."""

import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from episodic_curiosity.runs.evaluate_folder import evaluate_run
from episodic_curiosity.show.film import film as films
from episodic_curiosity.show.film.config import FilmConfig
from episodic_curiosity.show.film.frames import COLOURS
from episodic_curiosity.show.film.watch import watch_run
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.worlds.maze.world import MazeWorld
from tests.runs.tiny_runs import METHODS

pytestmark = pytest.mark.slow

SMALL = FilmConfig(device="cpu", height=96, frames=12)


@pytest.mark.parametrize("method", METHODS)
def test_runs_of_every_method_can_be_watched(runs, tmp_path, method):
    film = watch_run(runs(method), tmp_path / "film.gif", SMALL)
    (episode,) = film.story.episodes
    assert episode.num_steps == 40
    assert film.story.has_bonus == (method != "ppo")
    assert any(episode.remembered) == (method in ("ppo+ec", "ppo+eco"))
    if method in ("ppo+1", "ppo+icm", "ppo+oracle", "ppo+ec"):
        assert any(episode.bonus)
    with Image.open(film.path) as image:
        assert image.n_frames <= 12
        assert image.size == film.story[0].picture.shape[1::-1]
    assert film.report().splitlines()[1].startswith("episode 1: 40 steps, reward ")


def test_the_first_episodes_are_those_that_evaluate_counts(runs, tmp_path):
    film = watch_run(
        runs("ppo+ec"), tmp_path / "film.gif", replace(SMALL, episodes=2, seed=5, frames=2)
    )
    evaluation = evaluate_run(runs("ppo+ec"), episodes=1, device="cpu", seed=5)
    first, second = film.story.episodes
    assert first.coverage[-1] == evaluation.coverage[0]
    assert first.reward[-1] == evaluation.reward[0]
    assert first.has_ended
    assert second.num_steps == 40
    assert film.report().splitlines()[2].startswith("episode 2: 40 steps, reward ")


def test_nothing_is_played_that_is_not_filmed(runs, tmp_path, monkeypatch):
    played, step = [], MazeWorld.step
    monkeypatch.setattr(
        MazeWorld, "step", lambda world, actions: (played.append(1), step(world, actions))[1]
    )
    film = watch_run(runs("ppo"), tmp_path / "film.gif", replace(SMALL, steps=7))
    assert len(played) == 7
    assert film.report().splitlines()[1].startswith("episode 1: the first 7 steps, reward ")
    watch_run(runs("ppo"), tmp_path / "film.gif", replace(SMALL, steps=7, episodes=2))
    assert len(played) == 7 + 40 + 7


def test_a_run_without_checkpoints_is_filmed(runs, tmp_path):
    """`curiosity table` removes them; ICM's model has a file of its own."""
    folder = tmp_path / "run"
    shutil.copytree(runs("ppo+icm"), folder)
    shutil.rmtree(folder / "checkpoints")
    watch_run(folder, tmp_path / "film.gif", SMALL)
    (folder / "bonus.safetensors").unlink()
    with pytest.raises(LoadError, match=r"bonus\.safetensors cannot be read"):
        watch_run(folder, tmp_path / "film.gif", SMALL)


def pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB")).reshape(-1, 3)


def test_a_gif_plays_at_its_speed_and_keeps_the_colours_of_its_drawings(runs, tmp_path):
    path = tmp_path / "new" / "film.gif"
    film = watch_run(runs("ppo"), path, replace(SMALL, fps=8, colours=24, frames=4))
    with Image.open(path) as image:
        durations, colours = [], set()
        for number in range(image.n_frames):
            image.seek(number)
            durations.append(image.info["duration"])
            colours |= {tuple(pixel) for pixel in np.unique(pixels(image), axis=0).tolist()}
        assert image.info["loop"] == 0
    assert set(durations[:-1]) == {120}  # a GIF counts hundredths of a second
    assert durations[-1] == 12 * 120
    assert film.seconds == sum(durations) / 1000
    assert f" {film.seconds:.1f} s, " in film.report()
    assert len(colours) <= 24
    assert set(COLOURS[:3]) <= colours


def test_the_same_seed_makes_the_same_film(runs, tmp_path):
    for name in ("one.gif", "two.gif"):
        watch_run(runs("ppo+ec"), tmp_path / name, replace(SMALL, frames=4))
    assert (tmp_path / "one.gif").read_bytes() == (tmp_path / "two.gif").read_bytes()


def test_an_mp4_has_the_frames_of_the_story(runs, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    film = watch_run(runs("ppo"), tmp_path / "film.mp4", SMALL)
    height, width, _ = film.story[0].picture.shape
    command = [films.find_ffmpeg(), "-loglevel", "error", "-i", str(film.path)]
    command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    frames = np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3)
    assert len(frames) == sum(film.story.moments) == round(film.seconds * SMALL.fps)
    assert np.abs(frames[0].astype(int) - film.story[0].picture).mean() < 8
    assert [path.name for path in tmp_path.iterdir()] == ["film.mp4"]


def test_an_mp4_that_cannot_be_written_is_one_sentence(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(films, "find_ffmpeg", lambda: "false")
    with pytest.raises(OSError, match="ffmpeg could not write"):
        watch_run(runs("ppo"), tmp_path / "film.mp4", SMALL)
    assert list(tmp_path.iterdir()) == []
