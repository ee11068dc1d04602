"""The paper's hyper-parameters, as its tables print them."""

import pytest

from episodic_curiosity.agent.ppo import PPOConfig
from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.runs import settings
from episodic_curiosity.worlds import registry
from episodic_curiosity.worlds.base import WorldConfig
from episodic_curiosity.worlds.family import Budget, Family

# Tables S2 to S5: learning rate, entropy coefficient, task reward scale, bonus scale.
PRINTED = {
    ("vizdoom", "ppo"): ("0.00025", "0.01", "5", None),
    ("vizdoom", "ppo+icm"): ("0.00025", "0.01", "5", "0.01"),
    ("vizdoom", "ppo+ec"): ("0.00025", "0.01", "5", "1"),
    ("maze", "ppo"): ("0.00019", "0.0011", "1", None),
    ("maze", "ppo+icm"): ("0.00025", "0.0042", "1", "0.55"),
    ("maze", "ppo+oracle"): ("0.00025", "0.0066", "1", "0.052"),
    ("maze", "ppo+ec"): ("0.00025", "0.0021", "1", "0.030"),
    ("ant/no-reward", "ppo"): ("0.0003", "8e-6", "0", None),
    ("ant/no-reward", "ppo+1"): ("0.00007", "0.0001", "0", "1"),
    ("ant/no-reward", "ppo+ec"): ("0.00007", "0.00002", "0", "1"),
    ("ant/escape-circle", "ppo"): ("0.0001", "1.21e-06", "1", None),
    ("ant/escape-circle", "ppo+1"): ("0.0001", "1.43e-06", "1", "0.85"),
    ("ant/escape-circle", "ppo+ec"): ("4.64e-05", "1.78e-06", "1", "0.25"),
}
PUBLISHED = ("ppo", "ppo+1", "ppo+icm", "ppo+oracle", "ppo+ec", "ppo+eco")
FIELD = ("ppo+rnd", "ppo+ngu", "ppo+e3b", "ppo+noveld", "ppo+etd", "ppo+ec-rnd")
# Of ICM: forward inverse ratio and loss strength. Of EC: memory size, beta, F.
ICM = {"vizdoom": (0.2, 10), "maze": (0.96, 64)}
MEMORY = {
    "vizdoom": (200, 0.5, "percentile_90"),
    "maze": (200, 0.5, "percentile_90"),
    "ant/no-reward": (1000, 1, "tenth_largest"),
    "ant/escape-circle": (1000, 1, "tenth_largest"),
}


def printed_as(value: float, text: str) -> bool:
    """Whether a value is printed like this: to the last digit of the text, rounded or cut."""
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return abs(value - float(text)) < 10.0**-digits


@pytest.mark.parametrize("column", PRINTED, ids=" ".join)
def test_the_values_are_the_printed_ones(column):
    found = settings.SETTINGS[column[0]][column[1]]
    rate, entropy, reward_scale, bonus_scale = PRINTED[column]
    assert printed_as(found.ppo.learning_rate, rate)
    assert printed_as(found.ppo.entropy_coefficient, entropy)
    assert found.ppo.reward_scale == float(reward_scale)
    if bonus_scale is None:
        assert found.bonus is None
    else:
        scale = getattr(found.bonus, "alpha", None) or found.bonus.scale
        assert printed_as(scale, bonus_scale)
    assert found.source.startswith("Table S")


@pytest.mark.parametrize("place", ICM)
def test_icm_has_the_printed_ratio_and_strength(place):
    bonus = settings.SETTINGS[place]["ppo+icm"].bonus
    assert (bonus.ratio, bonus.strength) == ICM[place]


@pytest.mark.parametrize("place", MEMORY)
def test_memory_is_as_printed_and_the_same_for_eco(place):
    bonus = settings.SETTINGS[place]["ppo+ec"].bonus
    assert (bonus.memory_capacity, bonus.beta, bonus.aggregate) == MEMORY[place]
    assert bonus.novelty_threshold == 0
    assert bonus.replacement == "random"
    assert settings.SETTINGS[place]["ppo+eco"] == settings.SETTINGS[place]["ppo+ec"]


def test_what_was_not_published_says_so():
    published = {*PRINTED, *((place, "ppo+eco") for place in MEMORY)}
    for place, methods in settings.SETTINGS.items():
        for method, found in methods.items():
            assert (found.source == settings.OURS) == ((place, method) not in published)


def test_ant_has_the_releases_ppo():
    for task in ("ant/no-reward", "ant/escape-circle"):
        ppo = settings.SETTINGS[task]["ppo+ec"].ppo
        assert (ppo.num_epochs, ppo.clip_range, ppo.decay) == (10, 0.2, "constant")


def test_every_place_has_every_method():
    for methods in settings.SETTINGS.values():
        assert set(methods) == set(PUBLISHED)


@pytest.mark.parametrize("method", FIELD)
@pytest.mark.parametrize("task", ["ant/no-reward", "vizdoom/sparse", "maze/sparse"])
def test_methods_in_no_table_have_the_numbers_of_ec(task, method):
    found, ec = (settings.find_settings(task, name) for name in (method, "ppo+ec"))
    assert found.ppo == ec.ppo
    assert found.source == "those of ppo+ec; not in the paper"
    assert type(found.bonus) is find_method(method).config
    if isinstance(found.bonus, EpisodicConfig):
        assert (found.bonus.alpha, found.bonus.beta) == (ec.bonus.alpha, ec.bonus.beta)


def test_episodes_of_any_environment_may_end_early():
    bonus = settings.find_settings("gym/CartPole-v1", "ppo+eco").bonus
    assert isinstance(bonus, EpisodicConfig)
    assert bonus.beta == 1.0


def test_lab_has_the_numbers_of_the_mazes():
    for method in PUBLISHED:
        lab = settings.find_settings("dmlab/sparse+noise", method)
        assert lab is settings.SETTINGS["maze"][method]
    assert settings.find_budget("dmlab/sparse") == Budget(2_500_000, 200_000)


@pytest.fixture
def register(monkeypatch):
    """Registers families named "mine", for this test."""
    monkeypatch.setattr(registry, "_FAMILIES", dict(registry._FAMILIES))

    def register(**numbers) -> None:
        registry._FAMILIES.pop("mine", None)
        registry.register_family(
            Family(
                name="mine",
                tasks={"own": "a task"},
                config=WorldConfig,
                make="mine:World",
                simulated_on="host",
                **numbers,
            )
        )

    return register


def test_another_familys_numbers_with_changes_of_its_own(register):
    register(settings="vizdoom", ppo={"gamma": 0.5})
    found = settings.find_settings("mine/own", "ppo+ec")
    doom = settings.SETTINGS["vizdoom"]["ppo+ec"]
    assert found.bonus == doom.bonus
    assert (found.ppo.gamma, found.ppo.reward_scale) == (0.5, 5.0)
    assert found.source == "the family mine"
    assert settings.find_budget("mine/own") == Budget(300_000, 50_000)
    register(settings="ant/escape-circle")
    found = settings.find_settings("mine/own", "ppo+1")
    assert found is settings.SETTINGS["ant/escape-circle"]["ppo+1"]
    assert settings.find_budget("mine/own") == settings.BUDGETS["ant"]


def test_numbers_of_its_own_alone_have_the_bonus_by_default(register):
    register(ppo={"learning_rate": 1e-3}, budget=Budget(100, 7))
    found = settings.find_settings("mine/own", "ppo+eco")
    assert (found.ppo, found.bonus) == (PPOConfig(learning_rate=1e-3), EpisodicConfig())
    assert settings.find_settings("mine/own", "ppo").bonus is None
    assert settings.find_budget("mine/own") == Budget(100, 7)


def test_numbers_that_are_nowhere_are_an_error_with_both_names(register):
    register()
    with pytest.raises(ValueError, match=r"no hyper-parameters of ppo\+ec on mine/own: "):
        settings.find_settings("mine/own", "ppo+ec")
    with pytest.raises(ValueError, match="no R-network's budget for mine/own: "):
        settings.find_budget("mine/own")
    register(settings="maize", ppo={"gamma": 0.5})
    with pytest.raises(ValueError, match="settings of the family mine must be one of maze"):
        settings.find_settings("mine/own", "ppo")
    register(ppo={"learning_rat": 1.0})
    with pytest.raises(
        ValueError, match="ppo of the family mine names learning_rat, which PPOConfig"
    ):
        settings.find_settings("mine/own", "ppo")


@pytest.mark.parametrize("task", ["maze/sprase", "sparse", "gym/", "gym", "mars/sparse", ""])
def test_a_task_that_is_not_there_lists_the_choices(task):
    with pytest.raises(ValueError, match=r"there is no task .* maze/sparse, .* gym/\.\.\."):
        settings.find_settings(task, "ppo")


def test_a_programme_and_a_method_that_are_not_there_list_the_choices():
    with pytest.raises(ValueError, match="cannot show 'news'; choose one of image-action-3"):
        settings.find_settings("maze/sparse+news", "ppo")
    with pytest.raises(ValueError, match=r"method must be one of ppo, .* got 'a2c'"):
        settings.find_settings("maze/sparse", "a2c")
