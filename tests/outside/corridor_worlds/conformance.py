"""The conformance suite, as the outside package runs it on its worlds."""

from episodic_curiosity import make_world
from episodic_curiosity.testing.worlds import NUM_ENVS, WorldConformance


class TestCorridor(WorldConformance):
    def make(self, num_envs: int = NUM_ENVS, seed: int = 7):
        return make_world("corridor/end", num_envs=num_envs, seed=seed)
