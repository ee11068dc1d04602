"""Gymnasium's environments in processes that are killed, frozen or fail."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

gymnasium = pytest.importorskip("gymnasium")
from gymnasium import spaces  # noqa: E402

from episodic_curiosity.worlds.base import World  # noqa: E402
from episodic_curiosity.worlds.gymnasium import processes  # noqa: E402
from episodic_curiosity.worlds.gymnasium.processes import _limit_waits  # noqa: E402
from episodic_curiosity.worlds.registry import make_world  # noqa: E402
from tests.worlds.processes.children import have_ended, members  # noqa: E402

pytestmark = pytest.mark.slow
ACTIONS = torch.zeros(3, dtype=torch.int64)


class Walk(gymnasium.Env[Any, Any]):
    """Observes its steps and the number of its seed's episode; may fail by itself."""

    observation_space = spaces.Box(0, 2**31, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(
        self,
        dies_at: int | None = None,
        raises_at: int | None = None,
        once: Path | None = None,
        action_size: int | None = None,
    ) -> None:
        """With the file `once` only the copy dies that removes it."""
        self._dies_at, self._raises_at, self._once = dies_at, raises_at, once
        if action_size is not None:
            self.action_space = spaces.Box(-1, 1, (action_size,), np.float32)

    def _dies(self) -> bool:
        if self._once is None:
            return True
        try:
            self._once.unlink()
        except FileNotFoundError:
            return False
        return True

    def _emit(self) -> tuple[Any, dict[str, Any]]:
        position = np.array([self._steps, 0.0, 0.0])
        return np.array([self._steps, self._start], np.float64), {"position": position}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self._steps, self._start = 0, self.np_random.integers(1 << 20)
        return self._emit()

    def step(self, action):  # noqa: ARG002
        self._steps += 1
        if self._steps == self._dies_at and self._dies():
            os._exit(7)
        if self._steps == self._raises_at:
            raise ZeroDivisionError("the ground is gone")
        observation, info = self._emit()
        return observation, 1.0, False, self._steps == 5, info


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    gymnasium.register("Tests/Walk-v0", entry_point=Walk)
    yield
    del gymnasium.registry["Tests/Walk-v0"]


def walk(**options: Any) -> World:
    return make_world("gym/Tests/Walk-v0", num_envs=3, seed=4, vectorization="async", **options)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_killed_or_frozen_process_is_replaced_and_its_episode_truncated(sent, caplog):
    with closing(walk(timeout=2.0, oracle_cell=1.0)) as world:
        start = world.reset().observation[:, 1]
        for _ in range(3):
            world.step(ACTIONS)
        os.kill(world._env.pids[1], sent)
        step = world.step(ACTIONS)
        assert step.first.tolist() == step.truncated.tolist() == [False, True, False]
        assert not step.terminated.any()
        assert step.reward.tolist() == [1.0, 0.0, 1.0]
        assert step.observation[:, 0].tolist() == [4.0, 0.0, 4.0]
        assert step.final_observation[1].tolist() == [3.0, start[1]]
        assert step.final_position[1].tolist() == [3.0, 0.0, 0.0]
        assert step.observation[1, 1] != start[1]  # not the first episode again
        assert "the process of environment 1" in caplog.text
        step = world.step(ACTIONS)
        assert step.truncated.tolist() == [True, False, True]  # their fifth step
        assert step.observation[:, 0].tolist() == [0.0, 1.0, 0.0]
        assert step.final_observation[:, 0].tolist() == [5.0, 0.0, 5.0]


PARENT = """
    import time
    import gymnasium
    import numpy as np
    from gymnasium.spaces import Box, Discrete
    from episodic_curiosity.worlds.gymnasium.processes import EnvProcesses

    class Slow(gymnasium.Env):
        observation_space, action_space = Box(0, 1, (2,)), Discrete(2)

        def reset(self, *, seed=None, options=None):
            return np.zeros(2, np.float32), {}

        def step(self, action):
            time.sleep(1000 * action)
            return np.zeros(2, np.float32), 0.0, False, False, {}

    envs = EnvProcesses(Slow, 3, 1000.0)
    envs.reset()
    envs.begin_step(np.array([0, 0, 1]))
    print(*envs.pids, flush=True)
    time.sleep(1000)
"""


def test_nothing_outlives_a_killed_parent():
    """With one environment, which has the others' pipes, in a long step."""
    command = [sys.executable, "-c", textwrap.dedent(PARENT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        groups = [int(pid) for pid in parent.stdout.readline().split()]
        assert all(members(group) for group in groups)
        parent.kill()
    assert have_ended(groups)


class Talk(Walk):
    """Says its number of steps."""

    observation_space = spaces.Dict(
        {"said": spaces.Text(4, charset="0123456789"), "steps": spaces.Box(0, 9, (1,))}
    )

    def _emit(self):
        said = {"said": str(self._steps), "steps": np.float32([self._steps])}
        return said, {}


def test_texts_are_the_newest():
    with closing(processes.EnvProcesses(Talk, 2, 60.0)) as envs:
        observation, _ = envs.reset(seed=[1, 2])
        assert observation["said"] == ("0", "0")
        kept, *_ = envs.step(np.zeros(2, np.int64))
        observation, *_ = envs.step(np.zeros(2, np.int64))
        assert (kept["said"], observation["said"]) == (("1", "1"), ("2", "2"))
        assert observation["steps"].tolist() == [[2.0], [2.0]]
        assert kept["steps"].tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_the_first_episode_begins_in_a_new_process(sent, monkeypatch):
    monkeypatch.setattr(processes, "START", 0.0)
    with closing(walk(timeout=2.0)) as world:
        os.kill(world._env.pids[2], sent)
        assert world.reset().observation[:, 0].tolist() == [0.0, 0.0, 0.0]
        assert world.step(ACTIONS).observation[:, 0].tolist() == [1.0, 1.0, 1.0]


def test_a_process_that_dies_within_its_step_is_replaced(tmp_path):
    once = tmp_path / "once"
    once.touch()
    with closing(walk(dies_at=2, once=once)) as world:
        world.reset()
        assert not world.step(ACTIONS).first.any()
        step = world.step(ACTIONS)
        assert step.truncated.sum() == 1
        assert step.observation[:, 0].tolist() == torch.where(step.first, 0.0, 2.0).tolist()
        assert not world.step(ACTIONS).first.any()


def test_a_frozen_process_does_not_take_a_large_action(caplog):
    """More than the pipe holds: the other side has to read before all of it can be sent."""
    actions = torch.zeros(3, 200_000)
    with closing(walk(timeout=1.0, action_size=200_000)) as world:
        world.reset()
        assert not world.step(actions).first.any()
        os.kill(world._env.pids[0], signal.SIGSTOP)
        step = world.step(actions)
        assert step.truncated.tolist() == [True, False, False]
        assert "environment 0: took no command for 1 s" in caplog.text
        assert not world.step(actions).first.any()


@pytest.mark.parametrize("dies_at", [1, 2])
def test_an_environment_that_fails_again_and_again_ends_the_run(dies_at):
    def play(world: World) -> None:
        for _ in range(20):
            world.step(ACTIONS)

    with closing(walk(dies_at=dies_at)) as world:
        world.reset()
        with pytest.raises(ChildProcessError, match="fails again and again: exit code 7"):
            play(world)
        with pytest.raises(RuntimeError, match="closed"):
            world.step(ACTIONS)


@pytest.mark.parametrize("timeout", [1e12, 1e30])
def test_a_timeout_that_no_wait_can_have(timeout):
    with pytest.raises(ValueError, match="timeout must be at most 1,000,000 seconds, got 1e"):
        walk(timeout=timeout)


def test_an_exception_of_an_environment_is_raised(capfd):
    with closing(walk(raises_at=2)) as world:
        world.reset()
        world.step(ACTIONS)
        with pytest.raises(ChildProcessError, match="raised ZeroDivisionError: the ground is"):
            world.step(ACTIONS)
    assert "in step" in capfd.readouterr().err  # the traceback


def test_an_answer_that_does_not_end_is_given_up():
    ours, theirs = multiprocessing.Pipe()
    _limit_waits(ours, 1.0)
    os.write(theirs.fileno(), b"\0\0\1\0" + bytes(40))  # 40 of 256 bytes
    assert ours.poll(0.0)
    with pytest.raises(BlockingIOError):
        ours.recv()


@pytest.mark.parametrize("end", ["world.close()", "pass"])
def test_frozen_processes_do_not_keep_the_program_from_ending(end):
    script = f"""
import os, signal
from episodic_curiosity.worlds.registry import make_world
world = make_world("gym/CartPole-v1", num_envs=2, seed=0, vectorization="async")
world.reset()
print(*world._env.pids)
os.kill(world._env.pids[0], signal.SIGSTOP)
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, timeout=100, check=True
    )
    for pid in map(int, done.stdout.split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_processes_of_a_killed_program_end_in_silence():
    script = """
import os, signal
from episodic_curiosity.worlds.registry import make_world
world = make_world("gym/CartPole-v1", num_envs=2, seed=0, vectorization="async")
world.reset()
print(*world._env.pids, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    # Standard error is read until the last process that has it open has ended.
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=100)
    assert done.returncode == -signal.SIGKILL
    assert len(done.stdout.split()) == 2
    assert done.stderr == b""
