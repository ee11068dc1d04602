"""Bonuses by the names of their methods."""

from episodic_curiosity.bonus.constant import ConstantConfig
from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.bonus.icm import ICMConfig
from episodic_curiosity.bonus.oracle import OracleConfig
from episodic_curiosity.support.checks import check_choice

BonusConfig = ConstantConfig | OracleConfig | ICMConfig | EpisodicConfig

# Which bonus a method adds to PPO.
BONUSES: dict[str, type[BonusConfig] | None] = {
    "ppo": None,
    "ppo+1": ConstantConfig,
    "ppo+icm": ICMConfig,
    "ppo+oracle": OracleConfig,
    "ppo+ec": EpisodicConfig,
    "ppo+eco": EpisodicConfig,
}


def find_bonus(method: str) -> type[BonusConfig] | None:
    """What the bonus of a method can be told; None where there is no bonus."""
    check_choice("method", method, BONUSES)
    return BONUSES[method]
