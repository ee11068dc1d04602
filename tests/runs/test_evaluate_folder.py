"""What a folder holds is evaluated: a run's agent, on its task or another, or an R-network."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.cli import main as cli
from episodic_curiosity.reachability.accuracy import pair_accuracy
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.random_play import random_play
from episodic_curiosity.runs.evaluate import Evaluation, evaluate
from episodic_curiosity.runs.evaluate_folder import (
    evaluate_r_network,
    evaluate_run,
    holds_r_network_alone,
    remarks_on,
    world_of_another_task,
)
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.record import write_config
from episodic_curiosity.runs.stored_run import UntrustedError, read_run
from episodic_curiosity.runs.train import train
from episodic_curiosity.support import saving
from episodic_curiosity.support.files import remove_folder
from episodic_curiosity.worlds.ant.family import AntConfig
from episodic_curiosity.worlds.dmlab.family import DMLabConfig
from episodic_curiosity.worlds.gymnasium.family import GymnasiumConfig
from episodic_curiosity.worlds.maze.family import MazeConfig
from episodic_curiosity.worlds.registry import make_world
from episodic_curiosity.worlds.vizdoom.family import ViZDoomConfig
from tests.runs.tiny_runs import tiny_run
from tests.worlds.dmlab.builds import install


@pytest.fixture
def run_folder(tmp_path):
    run = resolve("maze/no-reward", "ppo", "cpu", steps=200_000, seed=3)
    small = replace(
        run.world,
        num_envs=3,
        observation_size=(36, 36),
        view_size=None,
        stagger=True,
        episode_steps=5,
        maze_size=9,
        num_levels=2,
    )
    run = replace(run, world=small)
    write_config(tmp_path, run.to_dict())
    Agent((3, 36, 36), 9).save(tmp_path)
    return tmp_path


def test_a_runs_folder_is_evaluated_on_whole_episodes_of_held_out_levels(run_folder):
    evaluation = evaluate_run(run_folder, episodes=5, device="cpu")
    assert isinstance(evaluation, Evaluation)
    assert evaluation.length.tolist() == [5] * 6
    written = json.loads((run_folder / "evaluation.json").read_text())
    assert (written["split"], written["task"]) == ("test", "maze/no-reward")
    assert written["episodes"]["coverage"] == evaluation.coverage.tolist()
    again = evaluate_run(run_folder, episodes=5, device="cpu", split="train")
    assert again.length.tolist() == [5] * 6  # not staggered on any split
    assert json.loads((run_folder / "evaluation.json").read_text())["split"] == "train"


def test_how_far_it_is_can_be_shown(run_folder, capsys):
    evaluate_run(run_folder, episodes=5, device="cpu")
    assert capsys.readouterr().err == ""
    evaluate_run(run_folder, episodes=5, device="cpu", progress=True)
    assert capsys.readouterr().err.startswith("30 of 30 steps (100%)")


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(saving.LoadError, match="has no agent"):
        evaluate_run(tmp_path)
    Agent((3, 36, 36), 9).save(tmp_path)
    with pytest.raises(saving.LoadError, match=r"is no run: it has no config\.json"):
        evaluate_run(tmp_path)


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_played(
    run_folder, monkeypatch
):
    monkeypatch.setattr(saving.os, "access", lambda *_: False)
    monkeypatch.setattr("episodic_curiosity.runs.evaluate_folder.make_world", None)
    with pytest.raises(ValueError, match=r"evaluation\.json cannot be written"):
        evaluate_run(run_folder, episodes=5, device="cpu")
    alone = r_network_folder(run_folder / "alone")
    with pytest.raises(ValueError, match=r"evaluation_maze-dense-2\.json cannot be written"):
        evaluate_r_network(alone, task="maze/dense-2", device="cpu")


def test_a_device_that_is_not_here(run_folder):
    with pytest.raises(ValueError, match="device 'cuda:99' cannot be used here"):
        evaluate_run(run_folder, device="cuda:99")


class TestAnotherTask:
    def test_it_is_played_with_the_options_of_the_run(self, run_folder):
        evaluate_run(run_folder, episodes=3, device="cpu")
        before = (run_folder / "evaluation.json").read_bytes()
        found = evaluate_run(run_folder, task="maze/sparse", episodes=5, device="cpu", seed=4)
        assert (run_folder / "evaluation.json").read_bytes() == before
        written = json.loads((run_folder / "evaluation_maze-sparse.json").read_text())
        assert (written["task"], written["split"], written["seed"]) == (
            "maze/sparse",
            "test",
            4,
        )
        options = {"observation_size": (36, 36), "episode_steps": 5, "maze_size": 9}
        world = make_world(
            "maze/sparse", num_envs=3, seed=4, split="test", num_levels=2, **options
        )
        wanted = evaluate(Agent.load(run_folder), world, num_episodes=5, seed=4)
        assert written["episodes"]["coverage"] == wanted.coverage.tolist()
        assert found.to_dict() == wanted.to_dict()

    @pytest.mark.parametrize("task", ["maze/no-reward", None])
    def test_its_own_task_is_no_other(self, run_folder, task):
        evaluate_run(run_folder, task=task, episodes=1, device="cpu")
        assert [path.name for path in run_folder.glob("evaluation*")] == ["evaluation.json"]

    def test_from_a_maze_to_deepmind_lab(self, run_folder, tmp_path_factory, monkeypatch):
        install(monkeypatch, tmp_path_factory.mktemp("lab"))  # the stand-in for it
        asked = ["--task", "dmlab/sparse+noise", "--episodes", "2", "--device", "cpu"]
        cli.main(["evaluate", str(run_folder), *asked])
        written = json.loads((run_folder / "evaluation_dmlab-sparse_noise.json").read_text())
        assert written["task"] == "dmlab/sparse+noise"
        assert written["episodes"]["length"] == [5, 5]

    @pytest.mark.parametrize(
        ("task", "has"),
        [
            ("maze/no-reward-no-fire", r"\(3, 36, 36\) and 8 actions"),
            ("gym/CartPole-v1", r"\(4,\) and 2 actions"),
            ("ant/no-reward", r"\(27,\) and actions of 8 entries"),
        ],
    )
    def test_one_that_does_not_fit(self, run_folder, task, has):
        ours = r"the agent is for observations of shape \(3, 36, 36\) and 9 actions"
        with pytest.raises(ValueError, match=f"^{ours}, {task} has {has}$"):
            evaluate_run(run_folder, task=task, episodes=1, device="cpu")
        assert not list(run_folder.glob("evaluation*"))

    def test_one_that_is_none(self, run_folder):
        with pytest.raises(ValueError, match="there is no task 'maze/sprase'"):
            evaluate_run(run_folder, task="maze/sprase", device="cpu")

    def test_no_task_names_a_folder(self, run_folder):
        agent = Agent((4,), 2)
        agent.save(run_folder)
        config = resolve("gym/Acrobot-v1", "ppo", "cpu", 200_000, 0)
        write_config(run_folder, config.to_dict())
        task = "gym/gymnasium.envs.classic_control:CartPole-v1"
        evaluate_run(run_folder, task=task, episodes=1, device="cpu")
        (file,) = run_folder.glob("evaluation*")
        assert file.name == "evaluation_gym-gymnasium.envs.classic_control-CartPole-v1.json"

    def test_which_options_another_family_shares(self):
        maze = MazeConfig(
            num_envs=3, observation_size=(36, 36), actions="three", maze_size=9, stagger=True
        )
        assert world_of_another_task(maze, "maze/sparse") is maze
        sizes = {"num_envs": 3, "observation_size": (36, 36), "stagger": True}
        lab = DMLabConfig(**sizes, actions="three")
        assert world_of_another_task(maze, "dmlab/sparse") == lab
        # Its actions are names of buttons: an option of another type.
        assert world_of_another_task(maze, "vizdoom/dense") == ViZDoomConfig(**sizes)
        # Bodies and CartPole emit no frames.
        assert world_of_another_task(maze, "ant/no-reward") == AntConfig(
            num_envs=3, stagger=True
        )
        assert world_of_another_task(maze, "gym/CartPole-v1") == GymnasiumConfig(num_envs=3)


class TestTrust:
    """A task that is typed is trusted as that of `train`; the stored config is not."""

    @pytest.fixture
    def module(self, tmp_path_factory, monkeypatch) -> str:
        folder = tmp_path_factory.mktemp("modules")
        marker = folder / "imported"
        (folder / "planted.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
        monkeypatch.syspath_prepend(str(folder))
        yield "planted"
        sys.modules.pop("planted", None)

    def test_a_stored_module_is_refused_for_any_task(self, run_folder, module):
        stored = resolve(f"gym/{module}:CartPole-v1", "ppo", "cpu", 200_000, 0)
        write_config(run_folder, stored.to_dict())
        with pytest.raises(UntrustedError, match="imports the Python module planted"):
            evaluate_run(run_folder, task="gym/CartPole-v1", device="cpu")
        assert module not in sys.modules

    def test_a_stored_path_is_not_carried_over(self, run_folder):
        run = read_run(run_folder)
        pictured = replace(run, world=replace(run.world, pictures=Path("/somewhere")))
        write_config(run_folder, pictured.to_dict())
        with pytest.raises(UntrustedError, match=r"uses the path /somewhere \(world.pictures"):
            evaluate_run(run_folder, task="maze/sparse+noise", device="cpu")

    def test_a_typed_module_is_imported(self, run_folder, module):
        with pytest.raises(ValueError, match="the agent is for observations of shape"):
            evaluate_run(run_folder, task=f"gym/{module}:CartPole-v1", device="cpu")
        assert module in sys.modules


def r_network_folder(folder: Path, *, fitted: bool = True, side: int = 36) -> Path:
    torch.manual_seed(0)
    r_network = RNetwork((3, side, side), embedding_size=32).eval()
    r_network.fitted.fill_(fitted)
    r_network.held_out_accuracy.fill_(0.75)
    r_network.save(folder)
    return folder


class TestRNetworks:
    @pytest.mark.slow
    def test_the_accuracy_on_the_random_play_of_a_task(self, tmp_path, capsys):
        folder = r_network_folder(tmp_path)
        asked = ["--task", "maze/dense-2", "--episodes", "3", "--device", "cpu"]
        cli.main(["evaluate", str(folder), *asked, "--split", "validation"])
        world = make_world(
            "maze/dense-2",
            num_envs=3,
            seed=0,
            split="validation",
            observation_size=(42, 42),  # of preset cpu
            view_size=(36, 36),
        )
        played = random_play(world, 3 * 900, seed=0)
        wanted = pair_accuracy(RNetwork.load(folder), played)
        written = json.loads((folder / "evaluation_maze-dense-2.json").read_text())
        assert written == {
            "split": "validation",
            "seed": 0,
            "task": "maze/dense-2",
            "steps": 2_700,
            "accuracy": wanted,
            "held_out_accuracy": 0.75,
        }
        assert f"maze/dense-2: accuracy {wanted:.1%} on 2,700 steps of random play; 75.0%" in (
            capsys.readouterr().out
        )

    @pytest.mark.slow
    def test_in_deepmind_lab(self, tmp_path, monkeypatch):
        install(monkeypatch, tmp_path)  # the stand-in for it
        folder = r_network_folder(tmp_path)
        found = evaluate_r_network(folder, task="dmlab/dense-2", episodes=1, device="cpu")
        assert (found.task, found.steps) == ("dmlab/dense-2", 900)
        assert 0.0 <= found.accuracy <= 1.0
        assert not (folder / "random_play.bin").exists()

    def test_one_that_does_not_fit(self, tmp_path):
        folder = r_network_folder(tmp_path)
        said = r"is for views of shape \(3, 36, 36\), but gym/CartPole-v1 has \(4,\)"
        with pytest.raises(ValueError, match=said):
            evaluate_r_network(folder, task="gym/CartPole-v1", device="cpu")
        with pytest.raises(ValueError, match="episodes"):
            evaluate_r_network(folder, task="gym/CartPole-v1", episodes=0)

    def test_one_that_is_not_fitted(self, tmp_path):
        folder = r_network_folder(tmp_path, fitted=False)
        with pytest.raises(ValueError, match="is not fitted"):
            evaluate_r_network(folder, task="maze/sparse", device="cpu")

    def test_a_run_is_evaluated_by_its_agent(self, run_folder):
        assert not holds_r_network_alone(run_folder)
        r_network_folder(run_folder)
        assert not holds_r_network_alone(run_folder)
        (run_folder / "config.json").unlink()
        assert holds_r_network_alone(run_folder)


class TestRemarks:
    run = tiny_run("ppo", "maze/sparse", num_updates=2)

    def test_a_complete_run_needs_none(self, tmp_path):
        train(self.run, tmp_path / "x", progress=False)
        assert list(remarks_on(tmp_path / "x")) == []

    def test_how_far_a_stopped_run_is(self, tmp_path, monkeypatch):
        def stop(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("episodic_curiosity.runs.train._update", stop)
        with pytest.raises(KeyboardInterrupt):
            train(self.run, tmp_path / "x", progress=False)
        assert Agent.load(tmp_path / "x").config.num_actions == 9  # from the start
        said = "the run is not complete: its agent after 0 of 80 steps"
        assert list(remarks_on(tmp_path / "x")) == [said]
        remove_folder(tmp_path / "x" / "checkpoints")
        assert list(remarks_on(tmp_path / "x")) == []  # of a table: nothing tells
