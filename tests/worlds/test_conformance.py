"""The conformance suite over every world that needs nothing but this package."""

import pytest

from episodic_curiosity.testing.worlds import NUM_ENVS, WorldConformance
from episodic_curiosity.worlds.base import World
from episodic_curiosity.worlds.maze.tasks import TASKS
from episodic_curiosity.worlds.registry import make_world
from tests.worlds.dmlab.builds import install

TELEVISIONS = ("sparse+image-action-3", "sparse+noise", "dense-2+noise-action")


@pytest.mark.parametrize("task", [*TASKS, *TELEVISIONS], scope="class")
class TestMaze(WorldConformance):
    @pytest.fixture(autouse=True)
    def _task(self, task: str):
        self.task = task

    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        return make_world(
            f"maze/{self.task}",
            num_envs=num_envs,
            seed=seed,
            num_levels=1 if self.task == "dense-2" else 20,
            observation_size=(24, 20),
            view_size=(18, 24),
            episode_steps=7,
        )


@pytest.mark.parametrize("task", ["sparse", "no-reward+noise-action"], scope="class")
class TestDMLab(WorldConformance):
    """Over the stand-in for DeepMind Lab, whose workers are processes all the same."""

    @pytest.fixture(autouse=True)
    def _task(self, task: str, monkeypatch, tmp_path):
        self.task = task
        install(monkeypatch, tmp_path)

    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        return make_world(
            f"dmlab/{self.task}",
            num_envs=num_envs,
            seed=seed,
            observation_size=(24, 20),
            view_size=(18, 24),
            frame_size=(24, 32),
            episode_steps=7,
        )
