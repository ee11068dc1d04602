"""Whole runs, tiny ones: every method, what they leave behind, and what stops them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.agent.network import Agent
from episodic_curiosity.agent.ppo import PPO, PPOConfig
from episodic_curiosity.runs.config import RecordConfig
from episodic_curiosity.runs.evaluate import evaluate
from episodic_curiosity.runs.metrics_files import read_metrics, read_timing
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.record import Record, RunFolderError, read_config, write_config
from episodic_curiosity.runs.train import train
from episodic_curiosity.worlds.registry import make_world
from tests.runs.tiny_runs import METHODS, PLAY_STEPS, tiny_run

pytestmark = pytest.mark.slow

LOSSES = {"policy_loss", "value_loss", "entropy", "gradient_norm", "learning_rate"}
EPISODES = {"episodes", "reward", "bonus", "length", "coverage"}
PAID = {"bonus_mean", "bonus_spread"}
MEMORY = {"memory_fill", "memory_full"}
PROMISED = {
    "ppo": set(),
    "ppo+1": PAID,
    "ppo+icm": PAID | {"icm_forward_loss", "icm_inverse_loss"},
    "ppo+oracle": PAID,
    "ppo+ec": PAID | MEMORY | {"r_network_accuracy"},
    "ppo+eco": PAID | MEMORY | {"r_network_accuracy", "r_network_fits"},
}
HALL = "******\n*P   *\n*  G *\n*    *\n*P  P*\n******"


def trained(run, folder, **options) -> list[dict[str, float]]:
    train(run, folder, progress=False, **options)
    return read_metrics(folder)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_and_says_how_it_goes(method, tmp_path):
    run = tiny_run(method)
    lines = trained(run, tmp_path)
    if method == "ppo+ec":
        first = lines.pop(0)
        assert first["steps"] == PLAY_STEPS
        assert first["r_network_accuracy"] == lines[0]["r_network_accuracy"]
    assert [line["steps"] for line in lines] == [
        run.steps - 40 * left for left in reversed(range(10))
    ]
    told = {name for line in lines for name in line}
    assert told >= LOSSES | EPISODES | PROMISED[method]
    assert {name for name in told if name.startswith("action/")} >= {"action/forward"}
    for line in lines:
        shares = [share for name, share in line.items() if name.startswith("action/")]
        assert sum(shares) == pytest.approx(1)
        assert all(math.isfinite(value) for value in line.values())
    assert "steps_per_second" in read_timing(tmp_path)[-1]
    assert (tmp_path / "r_network.safetensors").exists() == (method in ("ppo+ec", "ppo+eco"))
    assert (tmp_path / "bonus.safetensors").exists() == (method == "ppo+icm")

    agent = ec.load_agent(tmp_path)
    action = agent.act(torch.zeros(3, 36, 36, dtype=torch.uint8).numpy())
    assert 0 <= action < 9


def test_reward_and_bonus_are_told_apart(tmp_path):
    run = tiny_run("ppo+1")
    ended = [line for line in trained(run, tmp_path) if line["episodes"]]
    for line in ended:
        # All steps of an episode are paid alike, but for the one that leads to the next.
        assert line["bonus"] == pytest.approx(run.bonus.scale * (line["length"] - 1))
        assert line["reward"] % 10 == 0


def test_eco_refits_when_it_is_due_and_pays_nothing_before(tmp_path):
    lines = trained(tiny_run("ppo+eco", num_updates=9), tmp_path)
    assert [line["r_network_fits"] for line in lines] == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert [line["bonus_mean"] != 0 for line in lines] == [False] * 4 + [True] * 5


@pytest.mark.parametrize("method", ["ppo", "ppo+icm", "ppo+ec", "ppo+eco"])
def test_vectors_of_gymnasium(method, tmp_path):
    run = tiny_run(method, "gym/CartPole-v1")
    run = replace(run, world=replace(run.world, episode_steps=30))
    lines = trained(run, tmp_path)
    assert sum(line.get("episodes", 0) for line in lines) > 0
    assert ec.load_agent(tmp_path).act(torch.zeros(5, 4)).shape == (5,)


def test_continuous_actions(tmp_path):
    lines = trained(tiny_run("ppo+icm", "gym/Pendulum-v1"), tmp_path)
    assert not any(name.startswith("action/") for name in lines[-1])
    assert ec.load_agent(tmp_path).act(torch.zeros(3)).shape == (1,)


def test_a_television(tmp_path):
    lines = trained(tiny_run("ppo+eco", "maze/sparse+noise-action"), tmp_path)
    assert "action/switch" in lines[-1]


def test_a_head_of_its_own_for_a_normalised_bonus(tmp_path):
    run = tiny_run("ppo+oracle")
    run = replace(run, normalise_bonus=True, ppo=replace(run.ppo, bonus_head=True))
    lines = trained(run, tmp_path)
    assert lines[-1]["bonus_divisor"] not in (0.0, 1.0)
    assert ec.load_agent(tmp_path).config.num_values == 2


def test_lines_and_checkpoints_are_as_frequent_as_asked(tmp_path):
    record = RecordConfig(metrics_every=4, checkpoint_every=5)
    lines = trained(replace(tiny_run("ppo+1"), record=record), tmp_path)
    assert [line["steps"] // 40 for line in lines] == [4, 8, 10]
    names = [path.name for path in sorted((tmp_path / "checkpoints").iterdir())]
    assert names == ["000000000005", "000000000010"]


def test_a_run_does_not_depend_on_what_was_drawn_before(tmp_path):
    torch.manual_seed(1)
    trained(tiny_run("ppo+eco"), tmp_path / "a")
    torch.rand(7)
    trained(tiny_run("ppo+eco"), tmp_path / "b")
    for name in ("metrics.jsonl", "agent.safetensors", "r_network.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_another_seed_is_another_run(tmp_path):
    lines = [trained(tiny_run(seed=seed), tmp_path / str(seed)) for seed in (0, 1)]
    assert lines[0] != lines[1]


def test_a_folder_with_a_run_is_left_alone(tmp_path):
    trained(tiny_run(), tmp_path)
    with pytest.raises(RunFolderError, match="already holds a run"):
        train(tiny_run(), tmp_path, progress=False)
    run = tiny_run()
    changed = replace(run, ppo=replace(run.ppo, gamma=0.5))
    with pytest.raises(RunFolderError, match=r"ppo\.gamma was 0\.99, now 0\.5"):
        train(changed, tmp_path, resume=True, progress=False)
    before = read_metrics(tmp_path)
    assert trained(replace(run, device="auto"), tmp_path, resume=True) == before


def test_what_cannot_be_run_leaves_no_folder(tmp_path):
    for history in (20, 1):
        run = tiny_run("ppo+eco")
        online = replace(run.r_network.online, history=history)
        run = replace(run, r_network=replace(run.r_network, online=online))
        with pytest.raises(ValueError, match="refit_every and history must be at least"):
            train(run, tmp_path / "x", progress=False)
    with pytest.raises(ValueError, match="does not tell positions"):
        train(tiny_run("ppo+oracle", "gym/CartPole-v1"), tmp_path / "x", progress=False)
    with pytest.raises(ValueError, match="39 steps are too few"):
        train(replace(tiny_run(), steps=39), tmp_path / "x", progress=False)
    assert not (tmp_path / "x").exists()


def test_a_folder_is_free_again_where_random_play_had_no_pairs(tmp_path):
    run = tiny_run("ppo+ec")
    brief = replace(run, world=replace(run.world, episode_steps=5))  # never far from anything
    with pytest.raises(ValueError, match="no unreachable pair could be drawn"):
        train(brief, tmp_path, progress=False)
    assert trained(run, tmp_path)


def test_random_play_that_is_too_brief_leaves_no_folder(tmp_path):
    run = tiny_run("ppo+ec")
    play = replace(run.r_network.random_play, steps=16)
    too_little = replace(run, r_network=replace(run.r_network, random_play=play))
    with pytest.raises(ValueError, match="fitting an R-network takes at least"):
        train(too_little, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_not_a_number_names_the_last_good_checkpoint(tmp_path, monkeypatch):
    original = PPO.update

    def update(self, rollout, number):
        if number == 7:
            rollout.log_prob[2, 1] = torch.nan
        return original(self, rollout, number)

    monkeypatch.setattr(PPO, "update", update)
    with pytest.raises(FloatingPointError) as caught:
        train(tiny_run(), tmp_path, progress=False)
    checkpoint = tmp_path / "checkpoints" / "000000000006"
    message = str(caught.value)
    assert "of update 7 is nan, in minibatch 1 of 4;" in message
    assert message.endswith(f"the last good checkpoint is {checkpoint}")
    assert checkpoint.is_dir()
    assert all(
        tensor.isfinite().all() for tensor in ec.load_agent(tmp_path).state_dict().values()
    )
    monkeypatch.undo()
    assert len(trained(tiny_run(), tmp_path, resume=True)) == 10


def test_killed_right_after_its_last_checkpoint_a_run_lacks_nothing(tmp_path, monkeypatch):
    """A moment too short for random kills to find."""
    original = Record.checkpoint

    def checkpoint(self, number, state):
        original(self, number, state)
        if number == 10:
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Record, "checkpoint", checkpoint)
        with pytest.raises(MemoryError):
            train(tiny_run(), tmp_path / "a", progress=False)
    trained(tiny_run(), tmp_path / "a", resume=True)
    trained(tiny_run(), tmp_path / "b")
    weights = [(tmp_path / name / "agent.safetensors").read_bytes() for name in "ab"]
    assert weights[0] == weights[1]


def test_metrics_of_a_refit_are_in_the_checkpoint_until_a_line_is_due(tmp_path, monkeypatch):
    """ECO refits after the fourth update; the line after it is that of the sixth."""
    rare = RecordConfig(metrics_every=3, checkpoint_every=4)
    run = replace(tiny_run("ppo+eco"), record=rare)
    original = PPO.update

    def update(self, rollout, number):
        if number == 5:
            raise MemoryError
        return original(self, rollout, number)

    with monkeypatch.context() as patch:
        patch.setattr(PPO, "update", update)
        with pytest.raises(MemoryError):
            train(run, tmp_path / "a", progress=False)
    lines = trained(run, tmp_path / "a", resume=True)
    assert "r_network_loss" in lines[1]
    assert lines == trained(run, tmp_path / "b")


def test_a_run_from_before_an_option_goes_on(tmp_path):
    run = tiny_run("ppo+eco", num_updates=4)
    train(run, tmp_path, progress=False)
    stored = read_config(tmp_path)
    del stored["r_network"]["online"]["fit"]["pairs"]["far_from"]
    write_config(tmp_path, stored)
    assert len(trained(run, tmp_path, resume=True)) == 4
    pairs = replace(run.r_network.online.fit.pairs, far_from="other_episodes")
    fit = replace(run.r_network.online.fit, pairs=pairs)
    online = replace(run.r_network.online, fit=fit)
    other = replace(run, r_network=replace(run.r_network, online=online))
    with pytest.raises(RunFolderError, match='far_from was "same_episode"'):
        train(other, tmp_path, resume=True, progress=False)


def test_a_run_with_a_field_that_there_no_longer_is(tmp_path):
    run = tiny_run(num_updates=1)
    train(run, tmp_path, progress=False)
    stored = read_config(tmp_path)
    stored["ppo"]["old"] = 1
    write_config(tmp_path, stored)
    words = r"holds a run with another config: there is no field ppo\.old; there are"
    with pytest.raises(RunFolderError, match=words):
        train(run, tmp_path, resume=True, progress=False)


def test_the_largest_seed_is_one_for_every_fit(tmp_path):
    for method, num_updates in (("ppo+ec", 1), ("ppo+eco", 9)):
        lines = trained(
            tiny_run(method, seed=2**63 - 1, num_updates=num_updates), tmp_path / method
        )
        assert "r_network_accuracy" in lines[-1]


def test_a_person_is_told_of_compilers_where_there_are_any(tmp_path, capsys, monkeypatch):
    train(tiny_run(num_updates=1), tmp_path / "cpu")
    assert "compiling" not in capsys.readouterr().err
    monkeypatch.setattr(
        "episodic_curiosity.runs.train.compiles", lambda device: device.type == "cpu"
    )
    train(tiny_run(num_updates=1), tmp_path / "gpu")
    said = capsys.readouterr().err
    assert said.index("compiling at first use") < said.index(" steps/s")


def test_a_complete_run_writes_files_again_that_were_lost(tmp_path):
    run = tiny_run("ppo+ec")
    train(run, tmp_path, progress=False)
    weights = {path: path.read_bytes() for path in tmp_path.glob("*.safetensors")}
    assert {path.name for path in weights} == {"agent.safetensors", "r_network.safetensors"}
    (tmp_path / "agent.safetensors").unlink()
    (tmp_path / "r_network.safetensors").write_bytes(b"damaged")
    train(run, tmp_path, resume=True, progress=False)
    assert {path: path.read_bytes() for path in weights} == weights


def test_a_person_is_told(tmp_path, capsys):
    run = tiny_run("ppo+ec")
    steps = run.steps
    run = replace(run, steps=steps + 39)  # not enough for one update more
    train(run, tmp_path)
    said = capsys.readouterr().err
    assert "random play takes" in said
    assert "fitting the R-network to them: " in said
    assert "R-network fitted" in said
    assert f"{steps} of {steps} steps (100%)" in said
    train(run, tmp_path, resume=True)
    said = capsys.readouterr().err
    assert f"the run in {tmp_path} is complete: nothing is left to train" in said
    assert "resuming" not in said
    train(tiny_run("ppo+eco"), tmp_path / "eco")
    assert "the R-network's replay takes" in capsys.readouterr().err


def test_ppo_learns_to_reach_the_goal_of_a_small_maze(tmp_path):
    """A hall with one goal, upon which an untrained agent comes now and then."""
    run = resolve("maze/sparse", "ppo", "cpu", steps=45_000, seed=0)
    world = replace(
        run.world, observation_size=(36, 36), episode_steps=60, actions="three", layout=HALL
    )
    ppo = PPOConfig(
        num_steps=32,
        learning_rate=1e-3,
        clip_range=0.2,
        entropy_coefficient=0.01,
        reward_scale=0.1,
        clip_values=False,
    )
    train(replace(run, device="cpu", world=world, ppo=ppo), tmp_path, progress=False)

    torch.manual_seed(0)
    agents = {"untrained": Agent((3, 36, 36), 3), "trained": ec.load_agent(tmp_path)}
    reward = {}
    for name, agent in agents.items():
        held_out = make_world(
            run.task, num_envs=64, seed=1, split="test", **world.options("test")
        )
        reward[name] = evaluate(agent, held_out, num_episodes=64).reward.mean()
    assert reward["trained"] > 4 * reward["untrained"]
    assert reward["trained"] > 5  # every second episode, at least


def test_numbers_of_numpy_train_the_same_run(tmp_path):
    plain = tiny_run("ppo+eco", num_updates=2)
    train(plain, tmp_path / "plain", progress=False)
    seed, num_envs = np.int64(plain.seed), np.int64(plain.world.num_envs)
    bonus = replace(plain.bonus, memory_capacity=np.int32(plain.bonus.memory_capacity))
    run = replace(plain, seed=seed, bonus=bonus, world=replace(plain.world, num_envs=num_envs))
    train(run, tmp_path / "numpy", progress=False)
    for name in ("agent.safetensors", "config.json", "metrics.jsonl"):
        assert (tmp_path / "numpy" / name).read_bytes() == (
            tmp_path / "plain" / name
        ).read_bytes()
