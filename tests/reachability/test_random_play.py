"""Random play: its actions, where it is kept, and fitting to one world or several."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch

from episodic_curiosity.reachability import frame_file
from episodic_curiosity.reachability import random_play as module
from episodic_curiosity.reachability.experience import Experience
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.frame_file import FrameFile
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.random_play import (
    fit_to_random_play,
    held_out_envs,
    random_play,
)
from episodic_curiosity.reachability.replay import FrameReplay, SnapshotReplay
from episodic_curiosity.worlds.registry import make_world
from tests.reachability.corridor import NUM_FEATURES, Corridor

QUICK = FitConfig(iterations=3, batch_size=8)


def everything(experience: Experience) -> torch.Tensor:
    num_steps, num_envs = experience.first.shape
    time = torch.arange(num_steps).repeat_interleave(num_envs)
    return experience.views(time, torch.arange(num_envs).repeat(num_steps))


def network() -> RNetwork:
    torch.manual_seed(0)
    return RNetwork((NUM_FEATURES,), embedding_size=32)


def no_memory(_: torch.device) -> int:
    return 1000


def test_the_steps_of_all_environments_together_from_a_reset():
    world = Corridor(num_envs=3)
    played = random_play(world, 31, seed=0)
    assert played.first.shape == (10, 3)
    assert played.first[0].all()
    assert len(world.actions) == 9
    places = everything(played).view(10, 3, -1)
    moved = (places[1:] != places[:-1]).any(dim=2)
    assert torch.equal(moved, torch.stack(world.actions) == 1)
    with pytest.raises(ValueError, match="num_steps must be an integer of at least 3"):
        random_play(world, 2, seed=0)


def test_actions_are_uniform_and_each_environment_s_own():
    world, alone, other = Corridor(num_envs=40), Corridor(num_envs=1), Corridor(num_envs=40)
    for player, seed in ((world, 5), (alone, 5), (other, 6)):
        random_play(player, 200 * player.spec.num_envs, seed=seed)
    actions = torch.stack(world.actions)
    assert 0.48 < actions.double().mean() < 0.52
    assert torch.equal(torch.stack(alone.actions), actions[:, :1])
    assert not torch.equal(torch.stack(other.actions), actions)


@pytest.mark.parametrize("gentle", [1.0, 0.3])
def test_continuous_actions_fill_their_range(gentle):
    """Which is narrower in every second environment of a world that says so."""
    world = Corridor(num_envs=40).with_continuous_actions((2, 3), gentle)
    random_play(world, 4_000, seed=0)
    actions = torch.stack(world.actions)
    assert actions.shape == (99, 40, 2, 3)
    assert actions.dtype == torch.float32
    for first, bound in ((0, 1.0), (1, gentle)):
        own = actions[:, first::2] / bound
        assert -1 <= own.min() < -0.99
        assert 0.99 < own.max() <= 1
        assert own.mean(dim=(0, 1)).abs().max() < 0.05


def test_where_it_is_kept_makes_no_difference(tmp_path, monkeypatch):
    snapshots = random_play(Corridor(), 300, seed=0)
    frames = random_play(Corridor(can_redraw=False), 300, seed=0, file=tmp_path / "x.bin")
    monkeypatch.setattr(module, "free_bytes", no_memory)
    filed = random_play(Corridor(can_redraw=False), 300, seed=0, file=tmp_path / "y.bin")
    kinds = [type(played) for played in (snapshots, frames, filed)]
    assert kinds == [SnapshotReplay, FrameReplay, FrameFile]
    for played in (frames, filed):
        assert torch.equal(everything(played), everything(snapshots))
        assert torch.equal(played.first, snapshots.first)


@pytest.mark.parametrize(
    ("num_envs", "episode_steps", "expected"),
    [(1024, 1800, 27), (16, 1800, 16), (64, 525, 64), (8, 10**6, 1)],
)
def test_held_out_environments_play_whole_episodes(num_envs, episode_steps, expected):
    spec = dataclasses.replace(
        Corridor(num_envs=3).spec, num_envs=num_envs, episode_steps=episode_steps
    )
    assert held_out_envs(spec) == expected


def test_mazes_are_kept_as_snapshots():
    small = {"num_levels": 2, "maze_size": 9, "observation_size": (24, 24), "episode_steps": 9}
    world = make_world("maze/sparse", num_envs=3, seed=0, split="r-network", **small)
    played = random_play(world, 60, seed=0)
    assert played.first[:, 0].nonzero().flatten().tolist() == [0, 9, 18]
    assert everything(played).shape == (60, 3, 24, 24)


def test_an_r_network_learns_from_it():
    """Chance is 50%; who waits at random is near after 4 steps and far after 25."""
    r_network = network()
    config = FitConfig(iterations=60, learning_rate=1e-3)
    worlds = [Corridor(num_envs=8, episode_steps=100)]
    held_out = [Corridor(num_envs=8, episode_steps=100, start=7)]
    report = fit_to_random_play(r_network, worlds, held_out, 8_000, config)
    assert report.held_out_accuracy > 0.85
    assert r_network.fitted


def test_several_worlds_have_equal_shares_and_their_files_are_gone_afterwards(
    tmp_path, monkeypatch
):
    played = []

    def watched(world, num_steps, **arguments):
        played.append((world.spec.task, num_steps, arguments["seed"], arguments["file"].name))
        return random_play(world, num_steps, **arguments)

    monkeypatch.setattr(module, "free_bytes", no_memory)
    monkeypatch.setattr(module, "random_play", watched)
    worlds = [Corridor(task="toy/one"), Corridor(can_redraw=False, task="toy/two")]
    held_out = [Corridor(can_redraw=False, task="toy/held-out")]
    weights = []
    for _ in range(2):
        r_network = network()
        fit_to_random_play(r_network, worlds, held_out, 4_000, QUICK, folder=tmp_path)
        weights.append(torch.cat([weight.flatten() for weight in r_network.parameters()]))
        assert list(tmp_path.iterdir()) == []
        worlds = [Corridor(task="toy/one"), Corridor(can_redraw=False, task="toy/two")]
        held_out = [Corridor(can_redraw=False, task="toy/held-out")]
    assert torch.equal(*weights)
    tasks, steps, seeds, files = zip(*played[:3], strict=True)
    assert tasks == ("toy/one", "toy/two", "toy/held-out")
    assert steps == (1_998, 1_998, 999)  # 4,000 over 6 environments, a quarter of it over 3
    assert len(set(seeds)) == 3
    assert files == ("random_play_0.bin", "random_play_1.bin", "held_out_0.bin")


def test_a_file_is_nameless_while_it_is_filled(tmp_path, monkeypatch):
    """So that nothing stays behind, however the process ends."""
    monkeypatch.setattr(module, "free_bytes", no_memory)
    world = Corridor(can_redraw=False)
    step, names = world.step, []
    world.step = lambda actions: (names.extend(tmp_path.iterdir()), step(actions))[1]
    played = random_play(world, 300, seed=0, file=tmp_path / "x.bin")
    assert isinstance(played, FrameFile)
    assert names == list(tmp_path.iterdir()) == []
    assert everything(played).any()


def test_files_that_fit_one_by_one_but_not_together_are_refused(tmp_path, monkeypatch):
    """3 x 25,600 bytes and 26,624 held-out ones, with room for three of the four."""
    sizes = {"free": 3 * 25_600}
    monkeypatch.setattr(module, "free_bytes", no_memory)
    monkeypatch.setattr(
        frame_file.shutil, "disk_usage", lambda _: SimpleNamespace(free=sizes["free"])
    )

    def fit() -> None:
        worlds = [Corridor(can_redraw=False, num_envs=4) for _ in range(3)]
        held_out = [Corridor(can_redraw=False, num_envs=4)]
        played = [*worlds, *held_out]
        try:
            fit_to_random_play(network(), worlds, held_out, 1_200, QUICK, folder=tmp_path)
        finally:
            sizes["steps"] = sum(len(world.actions) for world in played)

    with pytest.raises(MemoryError, match=r"random play wants 0.0 GB in .* of 4 worlds"):
        fit()
    assert sizes["steps"] == 0
    (tmp_path / "held_out_0.bin").write_bytes(bytes(26_624))  # of one that was killed
    fit()
    assert sizes["steps"] == 3 * 99 + 103
    sizes["free"] = 0
    monkeypatch.setattr(module, "free_bytes", lambda _: 10**9)
    fit()  # in memory there is room


def test_memory_can_be_promised_once_only(monkeypatch):
    spec = Corridor(can_redraw=False).spec
    monkeypatch.setattr(module, "free_bytes", lambda _: 1_000)
    assert not module._is_for_file(spec, 500)
    assert module._is_for_file(spec, 500, 2)
    assert not module._is_for_file(Corridor().spec, 5_000)


def test_worlds_that_do_not_go_together():
    r_network, other = network(), Corridor(num_features=5, task="toy/other")
    with pytest.raises(ValueError, match=r"wants observations \(16,\) .* toy/other has \(5,\)"):
        fit_to_random_play(r_network, [Corridor(), other], [Corridor()], 1_000, QUICK)
    of_bytes = Corridor(task="toy/bytes")
    of_bytes.spec = dataclasses.replace(of_bytes.spec, view_dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"toy/bytes has \(16,\) of torch.uint8"):
        fit_to_random_play(r_network, [Corridor(), of_bytes], [Corridor()], 1_000, QUICK)
    with pytest.raises(ValueError, match=r"the number of held-out worlds must be .* got 0"):
        fit_to_random_play(r_network, [Corridor()], [], 1_000, QUICK)
