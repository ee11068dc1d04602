"""The conformance suite over every bonus."""

import torch

from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.constant import ConstantBonus, ConstantConfig
from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.bonus.icm import ICM, ICMConfig
from episodic_curiosity.bonus.normalised import NormalisedBonus
from episodic_curiosity.bonus.oracle import GridOracle
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineConfig, OnlineFitting
from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.reachability.replay import FrameReplay
from episodic_curiosity.testing.bonuses import BonusConformance
from episodic_curiosity.testing.calls import NUM_ENVS, Call
from tests.bonus.steps import rollout_of
from tests.bonus.test_episodic import random_r_network


class TestConstant(BonusConformance):
    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        return ConstantBonus(num_envs, ConstantConfig(scale=0.85), device=device)


class TestOracle(BonusConformance):
    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        return GridOracle(num_envs, episode_steps=12, cell=0.5, device=device)


class TestICM(BonusConformance):
    """Frames; PPO trains it."""

    shape: tuple[int, ...] = (3, 45, 50)
    learning_rate: float | None = None

    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        return ICM(
            self.shape,
            num_envs,
            num_actions=self.num_actions,
            action_shape=self.action_shape,
            observation_dtype=torch.uint8 if len(self.shape) == 3 else torch.float32,
            config=ICMConfig(scale=0.02),  # so that not everything is clipped
            learning_rate=self.learning_rate,
            num_steps=11,
            seed=3,
            device=device,
        )


class TestICMWithAnAdamOfItsOwn(TestICM):
    learning_rate = 1e-3


class TestICMOfVectors(TestICMWithAnAdamOfItsOwn):
    """Vectors for observations, and continuous actions."""

    shape = (7,)
    num_actions = 0
    action_shape = (2,)


class TestEpisodic(BonusConformance):
    config = EpisodicConfig(memory_capacity=6, novelty_threshold=-0.01)

    def r_network(self, device: str) -> RNetwork:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(2)
            r_network = random_r_network("dot").to(device)
        r_network.held_out_accuracy.fill_(0.9)
        return r_network

    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        return EpisodicBonus(self.r_network(device), num_envs, self.config, seed=3)

    def alone(self, env: int) -> Bonus:
        bonus = self.make(num_envs=1)
        bonus.memory.streams.fill_(env)
        return bonus

    def learn(self, bonus: Bonus, calls: list[Call]) -> dict[str, float]:
        """Nothing during a run: it was fitted beforehand."""
        return bonus.learn(rollout_of(calls))


class TestOnline(TestEpisodic):
    """ECO that records by itself; `learn` refits."""

    fit = FitConfig(
        iterations=2,
        batch_size=8,
        held_out_share=0.5,
        pairs=PairsConfig(k=1, gamma=1, sampler="online"),
    )

    def online(self, num_envs: int) -> OnlineConfig:
        return OnlineConfig(refit_every=16 * num_envs, history=30 * num_envs, fit=self.fit)

    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        r_network = self.r_network(device)
        fitting = OnlineFitting(r_network, num_envs, self.online(num_envs), seed=3)
        return EpisodicBonus(r_network, num_envs, self.config, fitting=fitting, seed=3)

    def learn(self, bonus: Bonus, calls: list[Call]) -> dict[str, float]:  # noqa: ARG002
        told = bonus.learn()
        assert told.keys() > {"r_network_accuracy"}
        return told


class TestOnlineWithAReplay(TestOnline):
    """ECO as in our trainer, which hands its rollouts to `learn`."""

    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        r_network, online = self.r_network(device), self.online(num_envs)
        shape = r_network.view_shape
        replay = FrameReplay(30, num_envs, shape, torch.float32, torch.device(device))
        fitting = OnlineFitting(r_network, num_envs, online, seed=3, replay=replay)
        return EpisodicBonus(r_network, num_envs, self.config, fitting=fitting, seed=3)

    def learn(self, bonus: Bonus, calls: list[Call]) -> dict[str, float]:
        return bonus.learn(rollout_of(calls))


class TestNormalised(TestOracle):
    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        return NormalisedBonus(super().make(num_envs, device))


class TestNormalisedICM(TestICMOfVectors):
    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        return NormalisedBonus(super().make(num_envs, device))
