"""ECO in our trainer: when it refits, that its R-network is then another, and resuming."""

import zlib

import pytest
import torch
from torch import Tensor

from episodic_curiosity.bonus.base import shown
from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.frame_file import FrameFile
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineConfig, OnlineFitting
from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.reachability.replay import FrameReplay, Replay, SnapshotReplay
from episodic_curiosity.worlds.base import Rollout
from tests.reachability.corridor import NUM_FEATURES, Corridor

NUM_ENVS, NUM_STEPS = 3, 7
ONLINE = OnlineConfig(
    refit_every=100,  # rollouts are of 21 steps: due after the fifth
    history=120,
    fit=FitConfig(
        iterations=2, batch_size=8, pairs=PairsConfig(k=1, gamma=2, sampler="online")
    ),
)
CONFIG = EpisodicConfig(alpha=1.0, memory_capacity=6)


class Run:
    """A walk through a corridor with an ECO bonus; half of the steps are taken."""

    def __init__(self, *, keep: str, folder=None, seed: int = 0, episode_steps: int = 25):
        torch.manual_seed(0)
        r_network = RNetwork((NUM_FEATURES,), embedding_size=16)
        self.keep = keep
        self.world = Corridor(
            num_envs=NUM_ENVS, episode_steps=episode_steps, can_redraw=keep == "snapshot"
        )
        fitting = OnlineFitting(r_network, NUM_ENVS, ONLINE, seed, self.replay(folder))
        self.bonus = EpisodicBonus(r_network, NUM_ENVS, CONFIG, fitting=fitting, seed=seed)
        self.step = self.world.reset()
        self.bonus.begin(self.step.view)
        self.time = 0

    def replay(self, folder) -> Replay:
        num_steps, shape = ONLINE.history // NUM_ENVS, (NUM_FEATURES,)
        if self.keep == "snapshot":
            return SnapshotReplay.for_world(self.world, num_steps)
        if self.keep == "view":
            file = folder / "replay.bin"
            return FrameFile(file, num_steps, NUM_ENVS, shape, torch.float32, spare=200)
        return FrameReplay(num_steps, NUM_ENVS, shape, torch.float32, torch.device("cpu"))

    def collect(self) -> Rollout:
        kept: dict[str, list[Tensor]] = {"view": [], "snapshot": [], "first": [], "bonus": []}
        for _ in range(NUM_STEPS):
            kept["view"].append(self.step.view)
            kept["snapshot"].append(self.world.snapshot())
            kept["first"].append(self.step.first)
            self.time += 1
            self.step = self.world.step((torch.arange(NUM_ENVS) + self.time) % 2)
            seen = shown(self.bonus, self.step)
            kept["bonus"].append(self.bonus.bonus_same_step(seen, self.step.first))
        zeros, no = torch.zeros(NUM_STEPS, NUM_ENVS), torch.zeros(NUM_STEPS, NUM_ENVS).bool()
        return Rollout(
            observation=torch.stack([*kept["view"], self.step.view]),
            action=zeros.long(),
            log_prob=zeros,
            value=torch.zeros(NUM_STEPS + 1, NUM_ENVS, 1),
            reward=zeros,
            bonus=torch.stack(kept["bonus"]),
            first=torch.stack([*kept["first"], self.step.first]),
            terminated=no,
            final_value=zeros[..., None],
            snapshot=torch.stack(kept["snapshot"]) if self.keep == "snapshot" else None,
            view=torch.stack(kept["view"]) if self.keep == "view" else None,
        )

    def update(self) -> tuple[Tensor, dict[str, float]]:
        rollout = self.collect()
        return rollout.bonus, self.bonus.learn(rollout)


KEEPS = pytest.mark.parametrize("keep", ["snapshot", "view", "observation"])


@KEEPS
def test_it_refits_when_due_and_pays_from_then_on(keep, tmp_path):
    run = Run(keep=keep, folder=tmp_path)
    assert run.bonus.needs_views
    weights = run.bonus.fitting.r_network.state_dict()
    places = {name: weight.data_ptr() for name, weight in weights.items()}
    updates = [run.update() for _ in range(5)]
    assert [bool(report) for _, report in updates] == [False, False, False, False, True]
    assert all((bonus == 0).all() for bonus, _ in updates)
    assert set(updates[-1][1]) == {
        "r_network_accuracy",
        "r_network_training_accuracy",
        "r_network_loss",
    }
    assert run.bonus.memory.count.tolist() == [0] * NUM_ENVS
    bonus, _ = run.update()
    assert (bonus[0] == 0).all()  # nothing to compare with yet
    assert (bonus[1:] != 0).any()
    metrics = run.bonus.metrics()
    assert metrics["r_network_fits"] == 1
    assert metrics["r_network_steps_since_fit"] == 21
    assert metrics["r_network_accuracy"] == updates[-1][1]["r_network_accuracy"]
    after = run.bonus.fitting.r_network.state_dict()
    assert {name: weight.data_ptr() for name, weight in after.items()} == places  # in place
    assert [bool(run.update()[1]) for _ in range(4)] == [False, False, False, True]


def test_all_ways_of_keeping_are_the_same_to_it(tmp_path):
    runs = [Run(keep=keep, folder=tmp_path) for keep in ("snapshot", "view", "observation")]
    for _ in range(11):
        (bonus, report), *others = [run.update() for run in runs]
        assert all(torch.equal(bonus, other) for other, _ in others)
        assert all(report == other for _, other in others)


@KEEPS
@pytest.mark.parametrize("updates", [3, 5, 8])
def test_a_state_goes_on_to_the_bit_through_refits(keep, updates, tmp_path):
    one = Run(keep=keep, folder=tmp_path, seed=3)
    for _ in range(updates):
        one.update()
    state = one.bonus.state_dict()
    expected = [one.update() for _ in range(11 - updates)]  # writes on in the file
    other = Run(keep=keep, folder=tmp_path, seed=99)
    for _ in range(updates):
        other.collect()
    other.bonus.load_state_dict(state)
    for bonus, report in expected:
        found, other_report = other.update()
        assert torch.equal(bonus, found)
        assert report == other_report
    assert one.bonus.metrics() == other.bonus.metrics()
    assert one.bonus.fitting.num_fits == 2


def test_episodes_too_short_to_learn_from_are_a_warning(tmp_path):
    run = Run(keep="snapshot", folder=tmp_path, episode_steps=2)
    for _ in range(4):
        run.update()
    with pytest.warns(RuntimeWarning, match="not refitted: no unreachable pair"):
        _, report = run.update()
    assert report == {}
    assert run.bonus.metrics()["r_network_fits"] == 0
    assert run.bonus.memory.count.sum() > 0


def test_a_resume_reads_every_stored_frame_once(tmp_path, monkeypatch):
    run, other = (Run(keep="view", folder=tmp_path) for _ in range(2))
    run.update()
    state, computed = run.bonus.state_dict(), []
    held = len(run.bonus.fitting.replay.first)

    def counted(data: bytes) -> int:
        computed.append(checksum(data))
        return computed[-1]

    checksum = zlib.crc32
    monkeypatch.setattr("episodic_curiosity.reachability.frame_file.zlib.crc32", counted)
    other.bonus.load_state_dict(state)
    assert len(computed) == held > 0


def test_a_state_of_something_else(tmp_path):
    run = Run(keep="snapshot", folder=tmp_path)
    state = run.bonus.state_dict()
    run.update()
    other = Run(keep="view", folder=tmp_path)
    with pytest.raises(ValueError, match="a state has added, checksums, first, states, got"):
        other.bonus.load_state_dict(run.bonus.state_dict())
    extra = state["_extra_state"]
    for wrong, words in (
        (None, "the bonus's state must be of a run with refits"),
        (extra | {"replay": None}, "must be of the same kind of training loop"),
        ({"seed": 0}, "a state has num_fits, replay, seed, steps_since_fit, got"),
    ):
        with pytest.raises(ValueError, match=words):
            run.bonus.load_state_dict(state | {"_extra_state": wrong})
    alone = EpisodicBonus(run.bonus.r_network, NUM_ENVS, CONFIG)
    with pytest.raises(ValueError, match="the bonus's state must be of a run without refits"):
        alone.load_state_dict(state)
