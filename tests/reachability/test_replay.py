"""Replays: the newest steps in the order of time, as frames, snapshots or in a file."""

import ast
import itertools
import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from episodic_curiosity.reachability.frame_file import FrameFile
from episodic_curiosity.reachability.replay import FrameReplay, SnapshotReplay, check_fits
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.worlds.registry import make_world

CPU = torch.device("cpu")
NUM_ENVS = 2


def make(kind: str, folder, num_steps: int = 4, spare: int = 50):
    """A replay of views (t, environment); snapshots are drawn as their bytes in floats."""
    if kind == "frames":
        return FrameReplay(num_steps, NUM_ENVS, (2,), torch.float32, CPU)
    if kind == "snapshots":
        return SnapshotReplay(num_steps, NUM_ENVS, 2, Tensor.float, CPU)
    return FrameFile(
        folder / "replay.bin", num_steps, NUM_ENVS, (2,), torch.float32, spare=spare
    )


def steps(times: range, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    views = [[[time, env] for env in range(NUM_ENVS)] for time in times]
    first = [[time % 3 == 0, False] for time in times]
    return (
        torch.tensor(views, dtype=dtype).view(-1, NUM_ENVS, 2),
        torch.tensor(first, dtype=torch.bool).view(-1, NUM_ENVS),
    )


def fill(replay, times: range) -> None:
    dtype = torch.uint8 if isinstance(replay, SnapshotReplay) else torch.float32
    replay.extend(*steps(times, dtype))


def resume(replay, state) -> None:
    """As a bonus does: everything is checked before anything is loaded."""
    replay.check_state(state)
    replay.load_state_dict(state)


def everything(replay) -> list[list[float]]:
    num_steps = replay.first.shape[0]
    time = torch.arange(num_steps).repeat_interleave(NUM_ENVS)
    return replay.views(time, torch.tensor([0, 1] * num_steps)).tolist()


def expected(times: range) -> list[list[float]]:
    return [[time, env] for time in times for env in range(NUM_ENVS)]


KINDS = pytest.mark.parametrize("kind", ["frames", "snapshots", "file"])


@KINDS
@pytest.mark.parametrize("lengths", [(1,), (3,), (4,), (2, 3), (5,), (3, 3, 3), (11,), (60, 7)])
def test_the_newest_steps_in_the_order_of_time(kind, lengths, tmp_path):
    replay = make(kind, tmp_path)
    borders = [0, *itertools.accumulate(lengths)]
    for start, stop in itertools.pairwise(borders):
        fill(replay, range(start, stop))
    kept = range(max(0, borders[-1] - 4), borders[-1])
    assert everything(replay) == expected(kept)
    assert replay.first[:, 0].tolist() == [time % 3 == 0 for time in kept]


@KINDS
@pytest.mark.parametrize("held", [0, 3, 6])
def test_a_state_goes_on(kind, held, tmp_path):
    one, other = (make(kind, tmp_path) for _ in range(2))
    fill(one, range(held))
    resume(other, one.state_dict())
    fill(other, range(held, held + 3))
    assert everything(other) == expected(range(max(0, held - 1), held + 3))


def test_a_larger_replay_takes_a_smaller_one_s_state(tmp_path):
    one, larger = make("frames", tmp_path), make("frames", tmp_path, num_steps=9)
    fill(one, range(8))
    resume(larger, one.state_dict())
    fill(larger, range(8, 10))
    assert everything(larger) == expected(range(4, 10))
    with pytest.raises(ValueError, match=r"saved replay holds views \(4, 2, 2\)"):
        resume(make("frames", tmp_path, num_steps=3), one.state_dict())
    with pytest.raises(
        ValueError, match=r"a state has first, snapshots, got \['first', 'views'\]"
    ):
        resume(make("snapshots", tmp_path), one.state_dict())


@KINDS
def test_a_replay_keeps_its_dtype_and_shape(kind, tmp_path):
    replay = make(kind, tmp_path)
    right = torch.uint8 if kind == "snapshots" else torch.float32
    views, first = steps(range(3), right)
    with pytest.raises(TypeError, match=r"must keep their dtype torch\..*, got torch.int64"):
        replay.extend(views.long(), first)
    with pytest.raises(ValueError, match=r"s must have shape \(3, 2, 2\), got \(3, 1, 2\)"):
        replay.extend(views[:, :1], first)
    with pytest.raises(ValueError, match=r"first must have shape \(3, 2\), got \(2, 2\)"):
        replay.extend(views, first[1:])
    with pytest.raises(TypeError, match=r"first must be of dtype bool, got torch.int64"):
        replay.extend(views, first.long())


def test_what_is_kept_does_not_keep_its_graph(tmp_path):
    for kind in ("frames", "file"):
        replay = make(kind, tmp_path)
        views, first = steps(range(3))
        replay.extend(views.requires_grad_() * 2, first)
        assert not replay.views(torch.tensor([0]), torch.tensor([0])).requires_grad


def test_sizes_are_said_beforehand(tmp_path):
    sizes = {
        kind: (make(kind, tmp_path).memory_bytes, make(kind, tmp_path).disk_bytes)
        for kind in ("frames", "snapshots", "file")
    }
    assert sizes == {"frames": (64 + 8, 0), "snapshots": (16 + 8, 0), "file": (108, 54 * 16)}
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_is_refused_before_it_is_tried():
    with pytest.raises(MemoryError, match=r"needs 4000\.0 GB, cpu has .* GB free: lower"):
        check_fits((10**6, 10, 400_000), torch.uint8, CPU)
    with pytest.raises(MemoryError, match="lower"):  # its marks of episodes, too
        FrameReplay(2**60, 2, (4,), torch.uint8, CPU)


def test_redrawn_is_what_was_kept():
    """Through several episodes of small mazes, and more than once round the ring."""
    world = make_world(
        "maze/sparse",
        num_envs=3,
        seed=0,
        num_levels=5,
        maze_size=9,
        observation_size=(24, 24),
        view_size=(20, 28),
        episode_steps=11,
    )
    snapshots = SnapshotReplay.for_world(world, num_steps=25)
    frames = FrameReplay(25, 3, world.spec.view_shape, torch.uint8, CPU)
    step = world.reset()
    generator = torch.Generator().manual_seed(0)
    for _ in range(40):
        snapshots.extend(world.snapshot()[None], step.first[None])
        frames.extend(step.view[None], step.first[None])
        step = world.step(torch.randint(9, (3,), generator=generator))
    assert torch.equal(snapshots.first, frames.first)
    time, env = torch.randint(25, (60,), generator=generator), torch.arange(60) % 3
    assert torch.equal(snapshots.views(time, env), frames.views(time, env))
    assert snapshots.memory_bytes < frames.memory_bytes / 7


class TestFrameFile:
    """What a checkpoint refers to is in the file until two more have been written."""

    def test_either_of_the_newest_two_states_goes_on(self, tmp_path):
        """Checkpoints every 3 steps, 6 spare, a kill after any number of further steps."""
        for killed_after in range(16):
            path = tmp_path / str(killed_after)
            replay, states = make("file", path, spare=6), [(0, None)]
            for time in range(killed_after):
                fill(replay, range(time, time + 1))
                if time % 3 == 2:
                    states.append((time + 1, replay.state_dict()))
            for added, state in states[1:][-2:]:
                resumed = make("file", path, spare=6)
                resume(resumed, state)
                assert everything(resumed) == expected(range(max(0, added - 4), added))
                assert resumed.first[:, 0].tolist() == [
                    time % 3 == 0 for time in range(max(0, added - 4), added)
                ]

    def test_a_resumed_run_protects_what_its_predecessor_did(self, tmp_path):
        replay = make("file", tmp_path, spare=6)
        fill(replay, range(3))
        older = replay.state_dict()
        fill(replay, range(3, 6))
        resumed = make("file", tmp_path, spare=6)
        resume(resumed, replay.state_dict())
        fill(resumed, range(6, 9))
        resume(make("file", tmp_path, spare=6), older)
        with pytest.raises(RuntimeError, match=r"6 spare steps .* got 7: increase `spare`"):
            fill(resumed, range(9, 10))
        resumed.state_dict()
        fill(resumed, range(9, 12))
        assert everything(resumed) == expected(range(8, 12))

    def test_a_killed_process_leaves_what_its_state_names(self, tmp_path):
        """Really killed, while it writes on: nothing depends on a farewell."""
        script = """if True:
            import sys
            from pathlib import Path
            from tests.reachability.test_replay import fill, make

            replay = make("file", Path(sys.argv[1]), spare=10**6)
            fill(replay, range(7))
            state = replay.state_dict()
            print({n: getattr(v, "tolist", lambda: v)() for n, v in state.items()}, flush=True)
            for time in range(7, 10**6):
                fill(replay, range(time, time + 1))
        """
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        with process.stdout:
            line = process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        state = ast.literal_eval(line)
        for name in ("first", "checksums"):
            state[name] = torch.tensor(state[name])
        replay = make("file", tmp_path, spare=10**6)
        resume(replay, state)
        assert everything(replay) == expected(range(3, 7))

    def test_a_run_killed_before_its_first_state_begins_anew(self, tmp_path):
        fill(make("file", tmp_path), range(5))
        again = make("file", tmp_path)
        fill(again, range(2))
        assert everything(again) == expected(range(2))
        assert [path.name for path in tmp_path.iterdir()] == ["replay.bin"]

    def test_a_file_that_is_not_the_one(self, tmp_path):
        replay = make("file", tmp_path)
        fill(replay, range(5))
        state, path = replay.state_dict(), tmp_path / "replay.bin"
        with pytest.raises(ValueError, match=r"holds \(4, 2\) steps x .*, wanted \(5, 2\)"):
            resume(make("file", tmp_path, num_steps=8), state)
        with pytest.raises(
            ValueError, match="a state has added, checksums, first, states, got"
        ):
            resume(make("file", tmp_path), {})
        path.write_bytes(bytes(path.stat().st_size))
        with pytest.raises(LoadError, match=r"replay.bin does not hold the frames of"):
            resume(make("file", tmp_path), state)
        os.truncate(path, 100)
        with pytest.raises(LoadError, match=r"replay.bin has 100 bytes; it must hold .* 864"):
            resume(make("file", tmp_path), state)
        path.unlink()
        with pytest.raises(LoadError, match=r"replay.bin is missing; it must hold"):
            resume(make("file", tmp_path), state)

    @pytest.mark.parametrize("time", range(5, 9))
    def test_any_flipped_bit_that_a_resume_relies_on_is_noticed(self, tmp_path, time):
        replay = make("file", tmp_path, spare=2)  # six steps: 6, 7, 8, 3, 4, 5
        fill(replay, range(9))
        state, path = replay.state_dict(), tmp_path / "replay.bin"
        content = bytearray(path.read_bytes())
        place = time % 6 * NUM_ENVS * 2 * 4  # floats of (t, environment)
        content[place + 13] ^= 4  # of environment 1
        path.write_bytes(content)
        with pytest.raises(LoadError, match=r"replay.bin does not hold the frames of"):
            resume(make("file", tmp_path, spare=2), state)

    def test_steps_that_a_resume_drops_may_change(self, tmp_path):
        replay = make("file", tmp_path, spare=2)
        fill(replay, range(9))
        state, path = replay.state_dict(), tmp_path / "replay.bin"
        content = bytearray(path.read_bytes())
        content[4 * NUM_ENVS * 2 * 4] ^= 4  # step 4
        path.write_bytes(content)
        again = make("file", tmp_path, spare=2)
        resume(again, state)
        assert everything(again) == expected(range(5, 9))
        assert torch.equal(again.state_dict()["checksums"], state["checksums"])

    def test_a_full_disk_is_found_at_the_start(self, tmp_path, monkeypatch):
        def one_kilobyte(_: object) -> SimpleNamespace:
            return SimpleNamespace(free=800)

        monkeypatch.setattr(shutil, "disk_usage", one_kilobyte)
        with pytest.raises(MemoryError, match=r"replay.bin needs 0.0 GB for 54 steps x 2 .*"):
            make("file", tmp_path / "new")
        assert not (tmp_path / "new").exists()
        make("file", tmp_path, spare=46)  # 800 bytes
        (tmp_path / "replay.bin").write_bytes(bytes(64))
        make("file", tmp_path)  # some of it is there already

    def test_a_disk_that_fills_up_meanwhile(self, tmp_path, monkeypatch):
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
        with pytest.raises(MemoryError, match=r"replay.bin needs 0.0 GB .* its disk has"):
            fill(make("file", tmp_path), range(1))
        assert list(tmp_path.iterdir()) == []

    def test_systems_without_fallocate(self, tmp_path, monkeypatch):
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
        replay = make("file", tmp_path)
        fill(replay, range(5))
        assert (tmp_path / "replay.bin").stat().st_size == replay.disk_bytes
        assert everything(replay) == expected(range(1, 5))

    def test_nothing_can_be_had_from_an_empty_file(self, tmp_path):
        with pytest.raises(RuntimeError, match="holds no steps yet"):
            make("file", tmp_path).views(torch.tensor([0]), torch.tensor([0]))
        with pytest.raises(TypeError, match=r"dtype uint8 or float32, got torch.float64"):
            FrameFile(tmp_path / "x", 4, 2, (2,), torch.float64)
