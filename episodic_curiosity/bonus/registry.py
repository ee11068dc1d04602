"""The bonus config of each method."""

from episodic_curiosity.bonus.constant import ConstantConfig
from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.bonus.icm import ICMConfig
from episodic_curiosity.bonus.oracle import OracleConfig
from episodic_curiosity.support.checks import check_choice

BonusConfig = ConstantConfig | OracleConfig | ICMConfig | EpisodicConfig

BONUSES: dict[str, type[BonusConfig] | None] = {
    "ppo": None,
    "ppo+1": ConstantConfig,
    "ppo+icm": ICMConfig,
    "ppo+oracle": OracleConfig,
    "ppo+ec": EpisodicConfig,
    "ppo+eco": EpisodicConfig,
}


def find_bonus(method: str) -> type[BonusConfig] | None:
    """Returns the config class of a method's bonus, or None if it has no bonus."""
    check_choice("method", method, BONUSES)
    return BONUSES[method]
