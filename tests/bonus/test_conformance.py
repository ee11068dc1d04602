"""The conformance suite over every bonus."""

import torch
from episodic_curiosity.bonus.online import OnlineEpisodicBonus

from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.constant import ConstantBonus, ConstantConfig
from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.bonus.icm import ICM, ICMConfig
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.normalised import NormalisedBonus
from episodic_curiosity.bonus.oracle import GridOracle, OracleConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineConfig, OnlineFitting
from episodic_curiosity.worlds.base import WorldSpec
from tests.bonus.conformance import NUM_ENVS, BonusConformance
from tests.bonus.steps import spec
from tests.bonus.test_episodic import random_r_network


class TestConstant(BonusConformance):
    remembers = False

    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        return ConstantBonus(self.world(num_envs, device), ConstantConfig(scale=0.85))


class TestOracle(BonusConformance):
    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        return GridOracle(self.world(num_envs, device), OracleConfig())


class TestICM(BonusConformance):
    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        config = ICMConfig(scale=0.02)  # so that not everything is clipped
        return ICM(self.world(num_envs, device), config, seed=3)


class TestICMOfVectors(TestICM):
    """Vectors for observations, and actions that are numbers."""

    def world(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> WorldSpec:
        return spec(num_envs, observation_shape=(7,), action_shape=(2,), device=device)


class TestEpisodic(BonusConformance):
    config = EpisodicConfig(memory_capacity=6, novelty_threshold=-0.01)

    def parts(self, num_envs: int, device: str) -> tuple[RNetwork, EpisodicMemory]:
        torch.manual_seed(2)
        r_network = random_r_network("dot").to(device)
        r_network.held_out_accuracy.fill_(0.9)
        memory = EpisodicMemory(num_envs, 6, r_network.slot_size, seed=3, device=device)
        return r_network, memory

    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        return EpisodicBonus(*self.parts(num_envs, device), self.config)

    def alone(self, env: int) -> Bonus:
        bonus = self.make(num_envs=1)
        bonus.memory.streams.fill_(env)
        return bonus


class TestOnline(TestEpisodic):
    """ECO between two fits; what a refit does is in test_online.py."""

    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        r_network, memory = self.parts(num_envs, device)
        fitting = OnlineFitting(r_network, num_envs, OnlineConfig.for_envs(num_envs), seed=3)
        return OnlineEpisodicBonus(fitting, memory, self.config)


class TestNormalised(TestOracle):
    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        return NormalisedBonus(super().make(num_envs, device), self.world(num_envs, device))
