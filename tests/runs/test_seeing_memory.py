"""Runs whose agent sees its memory: trained, resumed, evaluated, filmed, shared, refused."""

import hashlib
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import episodic_curiosity as ec
from benchmarks.soak.works import Training
from episodic_curiosity.agent.network import Agent
from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.cli import main as cli
from episodic_curiosity.experiments.ship import ship
from episodic_curiosity.runs.build import load_bonus
from episodic_curiosity.runs.config import Run, in_full
from episodic_curiosity.runs.evaluate import evaluate
from episodic_curiosity.runs.evaluate_folder import evaluate_run
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.stored_run import read_run
from episodic_curiosity.runs.train import train
from episodic_curiosity.worlds.registry import make_world
from tests.runs.test_resume import check_killed
from tests.runs.tiny_runs import tiny_run

SEEING = ("ppo+ec", "ppo+eco", "ppo+ec-rnd", "ppo+ngu", "ppo+noveld", "ppo+etd")
BLIND = ("ppo", "ppo+1", "ppo+icm", "ppo+rnd", "ppo+oracle", "ppo+e3b")


def seeing(method: str, task: str = "maze/sparse", **options) -> Run:
    run = tiny_run(method, task, **options)
    return replace(run, ppo=replace(run.ppo, sees_memory=True))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    train(seeing("ppo+ec"), folder, progress=False)
    return folder


@pytest.mark.parametrize("method", BLIND)
def test_a_method_without_a_memory_refuses_the_option(method):
    with pytest.raises(
        ValueError, match=rf"^ppo.sees_memory is for .*; got {re.escape(method)}$"
    ):
        seeing(method)


def test_it_is_an_option_of_the_command(capsys):
    line = "train --task maze/sparse --method ppo+rnd --preset cpu --ppo.sees-memory"
    with pytest.raises(SystemExit):
        cli.main(line.split())
    assert "with a memory of views, ppo+ec, ppo+eco, ppo+ngu" in capsys.readouterr().err


def test_a_config_that_lacks_the_option_counts_as_off():
    plain = tiny_run("ppo+ec").to_dict()
    del plain["ppo"]["sees_memory"]
    assert not Run.from_dict(plain).ppo.sees_memory
    assert in_full(plain) == tiny_run("ppo+ec").to_dict()
    assert not resolve("maze/sparse", "ppo+ec", "cpu", 10**6, 0).ppo.sees_memory


def test_an_agent_that_sees_nothing_is_stored_as_before(tmp_path):
    Agent((4,), 3).save(tmp_path)
    assert b"summary" not in (tmp_path / "agent.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("method", SEEING[1:])
def test_every_method_with_a_memory_is_trained_and_evaluated(method, tmp_path):
    run = seeing(method, "gym/CartPole-v1" if method == "ppo+etd" else "maze/sparse")
    train(run, tmp_path / "run", progress=False)
    assert Agent.load(tmp_path / "run").config.summary_of == method
    evaluate_run(tmp_path / "run", episodes=3, device="cpu")
    if method == "ppo+eco":
        assert read_metrics(tmp_path / "run")[-1]["r_network_fits"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ppo+ec", "ppo+eco"])
def test_killed_and_resumed_a_run_ends_with_the_same_bytes(method, tmp_path):
    check_killed(Training(method, seeing(method)), 3, tmp_path)


def opened(run: Run):
    options = run.world.options("test")
    options.pop("stagger", None)
    return make_world(run.task, num_envs=4, seed=0, split="test", device="cpu", **options)


def sensitive(agent: Agent) -> Agent:
    """The agent, with actions that depend on its summary visibly."""
    with torch.no_grad():
        torch.nn.init.normal_(agent.policy_head.weight, generator=torch.manual_seed(0))
        agent.joining[0].weight[:, -8:] *= 10
    return agent


def test_it_plays_with_its_memory(trained):
    """Beside a loop by hand."""
    run = read_run(trained)
    world = opened(run)
    bonus = load_bonus(run, world, trained)
    agent = sensitive(ec.load_agent(trained, bonus=bonus))
    step = world.reset(0)
    bonus.begin(step.view)
    taken, summaries = [], []
    for _ in range(40):  # the length of every episode
        summaries.append(bonus.summary.clone())
        taken.append(agent.act(step.observation, summary=bonus.summary, deterministic=True))
        step = world.step(taken[-1])
        bonus.bonus_same_step(step.view, step.first, action=taken[-1])
    assert step.first.all()
    assert torch.stack(summaries[1:]).any(dim=2).all()
    shares = torch.cat(taken).bincount(minlength=world.spec.num_actions) / 160
    assert (shares > 0).sum() > 1

    bonus = load_bonus(run, world, trained)
    found = evaluate(agent, world, num_episodes=4, deterministic=True, bonus=bonus)
    assert list(found.action_shares.values()) == pytest.approx(shares.tolist())
    assert (found.coverage > 0).all()


def test_the_evaluation_of_a_folder_remembers(trained, tmp_path):
    folder = Path(shutil.copytree(trained, tmp_path / "run"))
    agent = sensitive(Agent.load(folder))
    agent.save(folder)
    run = read_run(folder)
    world = opened(run)
    bonus = load_bonus(run, world, folder)
    wanted = evaluate(agent, world, num_episodes=4, bonus=bonus).to_dict()
    assert evaluate_run(folder, episodes=4, device="cpu").to_dict() == wanted


def test_without_its_memory_it_does_not_play(trained):
    agent, world = Agent.load(trained), opened(read_run(trained))
    with pytest.raises(ValueError, match=r"a summary of 8 numbers of .* ppo\+ec, got none"):
        evaluate(agent, world, num_episodes=2)
    with pytest.raises(ValueError, match=r"it needs bonus=, the bonus of ppo\+ec "):
        ec.load_agent(trained)


def test_on_another_task_it_remembers_too(trained):
    assert evaluate_run(trained, task="maze/no-reward", episodes=2, device="cpu").length.any()


def test_it_is_filmed(trained, tmp_path):
    film = tmp_path / "film.gif"
    cli.main(["watch", str(trained), "--out", str(film), "--steps", "9"])
    assert film.exists()


@pytest.mark.slow
def test_it_is_shared_with_its_r_network_alone(trained, tmp_path):
    folder = ship(trained, tmp_path, "seeing", episodes=2, device="cpu")
    assert evaluate_run(folder, episodes=2, device="cpu").length.any()
    with pytest.raises(ValueError, match=r"a summary of 8 numbers of .* ppo\+ec, got none"):
        ship(trained, tmp_path, "blind", parts=["agent"], episodes=2, device="cpu")
    assert not (tmp_path / "blind").exists()


@pytest.mark.slow
def test_the_same_seed_learns_something_else_with_a_memory(trained, tmp_path):
    train(tiny_run("ppo+ec"), tmp_path / "run", progress=False)
    prints = [
        hashlib.sha256((folder / "r_network.safetensors").read_bytes()).hexdigest()
        for folder in (trained, tmp_path / "run")
    ]
    assert prints[0] == prints[1]  # of the same random play
    assert Agent.load(trained).joining is not None
    assert find_method("ppo+ec").bonus.summary_size == 8
