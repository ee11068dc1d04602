"""The conformance suite on real MuJoCo."""

import pytest

from episodic_curiosity.testing.worlds import NUM_ENVS, WorldConformance
from episodic_curiosity.worlds.ant.family import FAMILY
from episodic_curiosity.worlds.base import World
from episodic_curiosity.worlds.registry import make_world

pytest.importorskip("mujoco.batch")


@pytest.mark.parametrize("task", FAMILY.tasks, scope="class")
class TestAnt(WorldConformance):
    @pytest.fixture(autouse=True)
    def _task(self, task: str):
        self.task = task

    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        return make_world(
            f"ant/{self.task}",
            num_envs=num_envs,
            seed=seed,
            view_size=(18, 24),
            episode_steps=7,
        )


class TestAntWithoutViews(WorldConformance):
    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        return make_world(
            "ant/no-reward", num_envs=num_envs, seed=seed, view_size=None, episode_steps=7
        )
