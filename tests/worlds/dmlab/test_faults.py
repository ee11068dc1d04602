"""What is done to DMLab's levels and workers while a world is stepped, over the stand-in."""

import os
import signal
from pathlib import Path

import pytest

from episodic_curiosity.worlds.dmlab.world import DMLabWorld
from tests.worlds.dmlab.small import SMALL, act
from tests.worlds.processes.children import have_ended

pytestmark = pytest.mark.slow


class TestFaults:
    @pytest.fixture
    def world(self, make):
        world = make(num_envs=3, timeout=3.0, episode_steps=4, **SMALL)
        world.reset()
        return world

    def next_seed(self, world: DMLabWorld, env: int) -> str:
        return str(int(world.workers.board.seed[env]) & 0x7FFFFFFF)

    def goes_on(self, world: DMLabWorld) -> None:
        for _ in range(3):
            step = world.step(act(world))
            assert not step.first.any()
        assert world.step(act(world)).truncated.all()
        assert len(world.workers.pids) == 3

    def test_a_level_that_does_not_compile_is_passed_over(self, world, build, caplog):
        build.tell(faults={self.next_seed(world, 1): "compile"})
        for _ in range(4):
            step = world.step(act(world))
        assert step.truncated.all()
        assert step.first.all()
        assert world.workers.num_faults == 1
        assert "the worker of environments 1 to 1: died" in caplog.text
        assert "q3map2 failed" in caplog.text
        self.goes_on(world)

    @pytest.mark.parametrize(("fault", "said"), [("crash", "died"), ("hang", "no answer")])
    def test_an_engine_dies_or_hangs(self, world, build, caplog, fault, said):
        build.tell(faults={self.next_seed(world, 2): fault})
        for _ in range(4):
            world.step(act(world))
        step = world.step(act(world))
        assert step.truncated.tolist() == [False, False, True]
        assert not step.terminated.any()
        assert world.workers.num_faults == 1
        assert f"the worker of environments 2 to 2: {said}" in caplog.text

    def test_workers_are_killed_and_frozen(self, world, caplog):
        killed, frozen, _ = world.workers.pids
        os.kill(killed, signal.SIGKILL)
        os.kill(frozen, signal.SIGSTOP)
        step = world.step(act(world))
        assert step.truncated.tolist() == [True, True, False]
        assert step.final_view is not None
        assert have_ended([killed, frozen])
        assert "died" in caplog.text
        assert "no answer in time" in caplog.text

    def test_nothing_is_left(self, world):
        groups = world.workers.pids
        folders = [Path(f"/proc/{pid}/cwd").resolve() for pid in groups]
        world.close()
        assert have_ended(groups)
        assert not any(folder.exists() for folder in folders)
