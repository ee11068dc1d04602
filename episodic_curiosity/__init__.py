"""Episodic curiosity through reachability: a bonus for observations far from memory."""

from importlib.util import find_spec

from episodic_curiosity.agent.network import Agent, load
from episodic_curiosity.bonus.curiosity import EpisodicCuriosity
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.reachability.experience import Frames
from episodic_curiosity.reachability.network import FAST, PAPER, SMALL, RNetwork
from episodic_curiosity.reachability.online import OnlineConfig
from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.reachability.training import FitConfig, FitReport, accuracy, fit
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.version import __version__
from episodic_curiosity.worlds.base import Step
from episodic_curiosity.worlds.family import Family
from episodic_curiosity.worlds.registry import make_world, register_family

__all__ = [
    "FAST",
    "PAPER",
    "SMALL",
    "Agent",
    "EpisodicCuriosity",
    "EpisodicMemory",
    "Family",
    "FitConfig",
    "FitReport",
    "Frames",
    "LoadError",
    "OnlineConfig",
    "PairsConfig",
    "RNetwork",
    "Step",
    "__version__",
    "accuracy",
    "fit",
    "load",
    "make_world",
    "register_family",
]

if find_spec("gymnasium") is not None:
    from episodic_curiosity.worlds.as_gymnasium import register

    register()
