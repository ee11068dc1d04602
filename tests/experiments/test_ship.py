"""A trained run as a folder to share: what is in it, and what its card says."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.experiments import ship as module
from episodic_curiosity.experiments.card import render
from episodic_curiosity.experiments.ship import in_bfloat16, main, ship, steps_learnt
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.runs.evaluate_folder import evaluate_r_network, evaluate_run
from episodic_curiosity.runs.record import read_config, read_sources, write_config
from episodic_curiosity.support import saving, shared
from episodic_curiosity.support.saving import LoadError
from tests.experiments.shared_folders import TASK, shipped
from tests.runs.tiny_runs import tiny_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with runs of two methods, and both shipped."""
    folder = tmp_path_factory.mktemp("made")
    shipped(folder, ("ppo", "ppo+eco"))
    return folder


@pytest.fixture(autouse=True)
def no_history(monkeypatch):
    """No search for the commit, which takes seconds in a clone."""
    monkeypatch.setattr(module, "history", lambda _: iter(()))


def test_the_weights_are_rounded_to_bfloat16_and_computed_in_float32(made):
    folder = made / "pretrained" / "tiny-ppo-eco"
    for part, load in (("agent", Agent.load), ("r_network", RNetwork.load)):
        _, ours = saving.read(made / "runs" / "ppo+eco", part)
        _, theirs = saving.read(folder, part)
        assert ours.keys() == theirs.keys()
        loaded = load(folder).state_dict()
        for name, tensor in ours.items():
            if tensor.dtype == torch.float32 and tensor.dim():
                assert theirs[name].dtype == torch.bfloat16
                assert torch.equal(loaded[name], tensor.bfloat16().float())
            else:
                torch.testing.assert_close(theirs[name], tensor, rtol=0, atol=0, equal_nan=True)
            assert loaded[name].dtype == tensor.dtype
        halves = sum(2 * t.numel() for t in ours.values() if t.dtype == torch.float32)
        assert halves < (folder / f"{part}.safetensors").stat().st_size < halves + 6_000


def test_rounding_by_hand():
    weights = {
        "a": torch.tensor([1.0, 1.00390625, 3.14159265]),  # 1 + 2**-8 is halfway: to even
        "b": torch.tensor(0.123456789),
        "c": torch.tensor([True]),
        "d": torch.tensor([257]),
    }
    found = in_bfloat16(weights)
    assert found["a"].float().tolist() == [1.0, 1.0, 3.140625]
    assert found["b"] is weights["b"]
    assert found["c"] is weights["c"]
    assert found["d"] is weights["d"]


def test_the_card_says_what_was_trained_and_what_these_files_score(made):
    folder = made / "pretrained" / "tiny-ppo-eco"
    card = shared.read_card(folder)
    run = tiny_run("ppo+eco", TASK, num_updates=6)
    assert {name: card[name] for name in ("task", "method", "preset", "steps", "seed")} == {
        "task": TASK, "method": "ppo+eco", "preset": "cpu", "steps": 240, "seed": 0,
    }  # fmt: skip
    assert card["command"].startswith("curiosity train \\\n  --task maze/no-reward")
    assert card["sources"] == read_sources(made / "runs" / "ppo+eco")
    assert read_config(folder) == json.loads(json.dumps(run.to_dict()))
    agent, r_network = card["scores"]
    found = evaluate_run(folder, episodes=5, device="cpu")
    assert agent["summary"]["coverage"] == found.summary()["coverage"]._asdict()
    assert agent["summary"]["coverage"]["num_values"] == 8  # of four environments
    assert agent["command"] == (
        "curiosity evaluate pretrained:tiny-ppo-eco --episodes 5 --device cpu"
    )
    tested = evaluate_r_network(folder, task=TASK, episodes=5, device="cpu")
    assert r_network["r_network_accuracy"] == tested.accuracy
    assert "--r-network --task maze/no-reward" in r_network["command"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "agent.safetensors", "card.json", "config.json", "r_network.safetensors",
    ]  # fmt: skip


def test_the_readme_is_the_card(made):
    folder = made / "pretrained" / "tiny-ppo-eco"
    card = shared.read_card(folder)
    text = (folder / "README.md").read_text()
    assert text == render(card)
    short = card["scores"][0]["summary"]["coverage"]
    row = f"| {short['mean']:.2f} | {short['low']:.2f} to {short['high']:.2f} | 8 episodes |"
    assert f"| `maze/no-reward` | coverage {row}" in text
    assert "curiosity watch pretrained:tiny-ppo-eco --out film.gif" in text
    assert "--world.view-size 36 36 --r-network-from pretrained:tiny-ppo-eco" in text
    assert "| steps | 240 |" in text
    plain = (made / "pretrained" / "tiny-ppo" / "README.md").read_text()
    assert "--r-network-from" not in plain
    assert str(made) not in text + plain


def test_a_stopped_run_says_so(made):
    card = shared.read_card(made / "pretrained" / "tiny-ppo")
    assert "| steps | 120 of 240, then stopped |" in render(card | {"steps": 120})
    assert "| sources | commit abc |" in render(card | {"commit": "abc"})


def test_parts_can_be_left_out(made, tmp_path):
    run = made / "runs" / "ppo+eco"
    folder = ship(run, tmp_path, "net", parts=["r_network"], tasks=["maze/sparse"], episodes=2)
    assert sorted(shared.fingerprints(folder)) == ["r_network.safetensors"]
    (score,) = shared.read_card(folder)["scores"]
    assert score["command"].startswith("curiosity evaluate net --task maze/sparse ")
    with pytest.raises(LoadError, match="net has no agent, only: R-network"):
        Agent.load(folder)
    folder = ship(run, tmp_path, "agent", parts=["agent"], episodes=1)
    with pytest.raises(LoadError, match="agent has no R-network, only: agent"):
        RNetwork.load(folder)


def test_other_tasks_are_measured_too(made, tmp_path):
    run, tasks = made / "runs" / "ppo", [TASK, "maze/sparse"]
    card = shared.read_card(ship(run, tmp_path, "two", tasks=tasks, episodes=1, device="cpu"))
    assert [score["task"] for score in card["scores"]] == tasks
    assert card["scores"][1]["command"] == (
        "curiosity evaluate two --task maze/sparse --episodes 1 --device cpu"
    )


def test_the_steps_of_a_run_that_was_stopped(tmp_path, made):
    run = tiny_run("ppo", TASK, num_updates=6)
    assert steps_learnt(run, made / "runs" / "ppo") == 240
    longer = replace(run, steps=400)
    assert steps_learnt(longer, made / "runs" / "ppo") == 240  # its checkpoint has the number
    shutil.copytree(made / "runs" / "ppo", tmp_path / "x")
    shutil.rmtree(tmp_path / "x" / "checkpoints")
    with pytest.raises(ValueError, match="x has 240 of its 400 steps and no checkpoint"):
        steps_learnt(longer, tmp_path / "x")


def test_the_commit_is_that_of_the_runs_sources(monkeypatch):
    listed = [("newest", "b" * 12), ("newer", "a" * 12), ("oldest", "a" * 12)]
    monkeypatch.setattr(module, "history", lambda _: iter(listed))
    assert module._commit(f"0.2.0 (sources {'a' * 12})") == "newer"
    assert module._commit(f"0.2.0 (sources {'c' * 12})") is None
    assert module._commit("unknown sources") is None


class TestRefused:
    @pytest.mark.parametrize("name", ["", "../x", "A", "a b", "a/b", ".new"])
    def test_a_name(self, made, tmp_path, name):
        with pytest.raises(ValueError, match="a name must be like maze-no-reward-eco, got"):
            ship(made / "runs" / "ppo", tmp_path, name)

    def test_a_part(self, made, tmp_path):
        with pytest.raises(ValueError, match="must be one of agent, got 'r_network'"):
            ship(made / "runs" / "ppo", tmp_path, "x", parts=["r_network"])
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_there(self, made):
        with pytest.raises(ValueError, match="tiny-ppo already exists"):
            ship(made / "runs" / "ppo", made / "pretrained", "tiny-ppo")

    def test_a_path_of_this_machine(self, tmp_path):
        run = tiny_run("ppo+ec", TASK)
        r_network = replace(run.r_network, source=tmp_path)
        write_config(tmp_path, replace(run, r_network=r_network).to_dict())
        with pytest.raises(ValueError, match=r"a folder of one machine \(r_network.source\)"):
            ship(tmp_path, tmp_path / "out", "x")

    def test_in_a_sentence(self, tmp_path):
        with pytest.raises(SystemExit) as stop:
            main([str(tmp_path), "--name", "x", "--out", str(tmp_path / "out")])
        assert str(stop.value) == f"ship: {tmp_path} is no run: it has no config.json"
        assert not (tmp_path / "out").exists()


def test_the_command(made, tmp_path, capsys):
    run = str(made / "runs" / "ppo")
    words = ["--name", "x", "--out", str(tmp_path), "--episodes", "1", "--device", "cpu"]
    main([run, *words])
    printed = capsys.readouterr().out
    size = sum(path.stat().st_size for path in (tmp_path / "x").iterdir())
    assert printed.startswith("---\nlibrary_name: episodic-curiosity\n")
    assert printed.splitlines()[-2:] == [
        f"{size:12,} bytes  x",
        f"{size:12,} bytes  in all of {tmp_path}",
    ]
