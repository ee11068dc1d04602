"""`pretrained:NAME` where commands take a folder."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.cli import main as cli
from episodic_curiosity.experiments.ship import ship
from episodic_curiosity.runs.record import write_config
from episodic_curiosity.runs.stored_run import UntrustedError, read_run
from episodic_curiosity.runs.train import train
from episodic_curiosity.show.film.config import FilmConfig
from episodic_curiosity.show.film.watch import watch_run
from episodic_curiosity.support import shared
from tests.experiments.shared_folders import shipped
from tests.runs.tiny_runs import tiny_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    shipped(folder, ("ppo", "ppo+eco"))
    return folder


@pytest.fixture(autouse=True)
def ships(made, monkeypatch):
    monkeypatch.setattr(shared, "SHIPPED", made / "pretrained")
    before = content(made)
    yield
    assert content(made) == before  # a shared folder is only read


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in (folder / "pretrained").rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


def refused(capsys, line: str) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(line.split())
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    return said.err.strip()


def test_evaluate(capsys):
    cli.main(["evaluate", "pretrained:tiny-ppo", "--episodes", "5", "--device", "cpu"])
    card = shared.read_card(shared.SHIPPED / "tiny-ppo")
    printed = capsys.readouterr().out
    assert printed.startswith("maze/no-reward: 8 episodes, sampled actions")
    (line,) = (line for line in printed.splitlines() if line.startswith("coverage"))
    assert float(line.split()[1]) == round(card["scores"][0]["summary"]["coverage"]["mean"], 2)


def test_evaluate_the_r_network(capsys):
    line = "evaluate pretrained:tiny-ppo-eco --r-network --task maze/no-reward"
    cli.main(f"{line} --episodes 5 --device cpu".split())
    score = shared.read_card(shared.SHIPPED / "tiny-ppo-eco")["scores"][1]
    wanted = f"accuracy {score['r_network_accuracy']:.1%} on {score['steps']:,} steps"
    assert wanted in capsys.readouterr().out
    assert "pretrained:tiny-ppo-eco is tested on with --task" in refused(
        capsys, "evaluate pretrained:tiny-ppo-eco --r-network"
    )


def test_the_r_network_of_a_run_has_a_file_of_its_own(made, tmp_path):
    shutil.copytree(made / "runs" / "ppo+eco", tmp_path / "run")
    line = f"evaluate {tmp_path / 'run'} --task maze/sparse --episodes 1 --device cpu"
    cli.main([*line.split(), "--r-network"])
    cli.main(line.split())
    assert sorted(path.name for path in (tmp_path / "run").glob("*evaluation*")) == [
        "evaluation_maze-sparse.json",
        "r_network_evaluation_maze-sparse.json",
    ]


def test_watch(tmp_path, capsys):
    out = tmp_path / "film.gif"
    line = f"watch pretrained:tiny-ppo-eco --out {out} --height 96 --frames 5 --device cpu"
    cli.main(line.split())
    assert "episode 1: 40 steps" in capsys.readouterr().out
    assert out.read_bytes().startswith(b"GIF8")


def test_a_film_has_no_bonus_where_its_r_network_is_not_shared(made, tmp_path):
    run = made / "runs" / "ppo+eco"
    alone = ship(run, tmp_path, "alone", parts=["agent"], episodes=1, device="cpu")
    config = FilmConfig(steps=2, height=96, device="cpu")
    assert not watch_run(alone, tmp_path / "a.gif", config).story.has_bonus
    film = watch_run("pretrained:tiny-ppo-eco", tmp_path / "b.gif", config)
    assert film.story.has_bonus
    (run_without := tmp_path / "run").mkdir()
    for name in ("config.json", "agent.safetensors"):
        shutil.copy(run / name, run_without)
    with pytest.raises(ec.LoadError, match="has no R-network, only: agent"):
        watch_run(run_without, tmp_path / "c.gif", config)  # of a run it is missing


def test_train_with_a_shared_r_network(tmp_path, capsys):
    run = tiny_run("ppo+ec", "maze/no-reward", num_updates=2)
    source = Path("pretrained:tiny-ppo-eco")
    run = replace(run, r_network=replace(run.r_network, source=source))
    train(run, tmp_path / "run", progress=False)
    ours, theirs = ec.RNetwork.load(tmp_path / "run"), ec.RNetwork.load(source)
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(
            ours.state_dict()[name], tensor, rtol=0, atol=0, equal_nan=True
        )
    capsys.readouterr()
    assert read_run(tmp_path / "run", to_train=True) == run  # needs no --trust
    hub = replace(run, r_network=replace(run.r_network, source=Path("hf:a/b")))
    write_config(tmp_path, hub.to_dict())
    with pytest.raises(UntrustedError, match=r"uses the path hf:a/b \(r_network\.source\)"):
        read_run(tmp_path, to_train=True)


def test_an_r_network_for_other_views_says_how_to_draw_them(capsys, tmp_path):
    line = f"train --task maze/no-reward --method ppo+ec --out {tmp_path / 'x'} --device cpu"
    said = refused(capsys, f"{line} --r-network-from pretrained:tiny-ppo-eco --steps 1_024")
    assert said == (
        "curiosity: the R-network in pretrained:tiny-ppo-eco is for views of shape "
        "(3, 36, 36), but maze/no-reward has (3, 42, 42); --world.view-size 36 36 draws views "
        "that fit"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "evaluate pretrained:tiny-pppo",
            "there is no pretrained:tiny-pppo (did you mean tiny-ppo?); there are tiny-ppo, "
            "tiny-ppo-eco",
        ),
        (
            "watch pretrained:x --out film.gif",
            "there is no pretrained:x; there are tiny-ppo, tiny-ppo-eco",
        ),
        (
            "train --task maze/sparse --method ppo+ec --r-network-from pretrained:tiny-ppo",
            "pretrained:tiny-ppo has no R-network, only: agent",
        ),
        (
            "train --task maze/sparse --out pretrained:tiny-ppo",
            "--out must be a folder to write to, got pretrained:tiny-ppo",
        ),
        (
            "evaluate hf:one",
            "a repository must be hf:OWNER/NAME or hf:OWNER/NAME@REVISION, got hf:one",
        ),
    ],
)
def test_bad_names_are_one_sentence(capsys, tmp_path, monkeypatch, line, said):
    monkeypatch.chdir(tmp_path)
    assert refused(capsys, line) == f"curiosity: {said}"
    assert list(tmp_path.iterdir()) == []
