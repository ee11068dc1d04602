"""Episodic curiosity through reachability: a bonus for observations far from memory."""

import warnings
from importlib.util import find_spec

from episodic_curiosity.agent.network import Agent, load_agent
from episodic_curiosity.bonus.base import Bonus, BonusConfig, BonusContext, Sight
from episodic_curiosity.bonus.constant import ConstantBonus
from episodic_curiosity.bonus.curiosity import EpisodicCuriosity
from episodic_curiosity.bonus.e3b import E3B, E3BConfig
from episodic_curiosity.bonus.ec_rnd import ECRND, ECRNDConfig
from episodic_curiosity.bonus.etd import ETD, ETDConfig
from episodic_curiosity.bonus.icm import ICM
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.bonus.ngu import NGU, NGUConfig
from episodic_curiosity.bonus.normalised import NormalisedBonus
from episodic_curiosity.bonus.noveld import NovelD, NovelDConfig
from episodic_curiosity.bonus.oracle import GridOracle
from episodic_curiosity.bonus.registry import register_method
from episodic_curiosity.bonus.rnd import RND, RNDConfig
from episodic_curiosity.reachability.accuracy import pair_accuracy
from episodic_curiosity.reachability.architecture import FAST, PAPER, SMALL
from episodic_curiosity.reachability.experience import Frames
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineConfig
from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.reachability.training import FitReport, fit_r_network
from episodic_curiosity.runs.evaluate import evaluate
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.train import train
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.version import __version__
from episodic_curiosity.worlds.base import Rollout, Step, World, WorldConfig, WorldSpec
from episodic_curiosity.worlds.family import Family
from episodic_curiosity.worlds.registry import make_world, register_family

__all__ = [
    "E3B",
    "ECRND",
    "ETD",
    "FAST",
    "ICM",
    "NGU",
    "PAPER",
    "RND",
    "SMALL",
    "Agent",
    "Bonus",
    "BonusConfig",
    "BonusContext",
    "ConstantBonus",
    "E3BConfig",
    "ECRNDConfig",
    "ETDConfig",
    "EpisodicCuriosity",
    "EpisodicMemory",
    "Family",
    "FitConfig",
    "FitReport",
    "Frames",
    "GridOracle",
    "LoadError",
    "Method",
    "NGUConfig",
    "NormalisedBonus",
    "NovelD",
    "NovelDConfig",
    "OnlineConfig",
    "PairsConfig",
    "RNDConfig",
    "RNetwork",
    "Rollout",
    "Sight",
    "Step",
    "World",
    "WorldConfig",
    "WorldSpec",
    "__version__",
    "evaluate",
    "fit_r_network",
    "load_agent",
    "make_world",
    "pair_accuracy",
    "register_family",
    "register_method",
    "resolve",
    "train",
]

if find_spec("gymnasium") is not None:
    try:
        from episodic_curiosity.worlds.as_gymnasium import register
    except ImportError as error:
        if error.name != "gymnasium":
            raise
        warnings.warn(f"no Gymnasium environments are registered: {error}", stacklevel=2)
    else:
        register()
