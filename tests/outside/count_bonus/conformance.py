"""The conformance suite, as the outside package runs it on its bonus."""

from count_bonus.count import CountBonus

from episodic_curiosity.testing.bonuses import BonusConformance
from episodic_curiosity.testing.calls import NUM_ENVS


class TestFrames(BonusConformance):
    shape: tuple[int, ...] = (3, 10, 8)

    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> CountBonus:
        return CountBonus(self.shape, num_envs, seed=3, device=device)


class TestVectors(TestFrames):
    shape = (5,)
