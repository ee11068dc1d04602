"""Warnings from metrics made by hand: when they come, when they do not, and how often."""

import json
from dataclasses import dataclass, replace

import pytest

from episodic_curiosity.bonus.base import BonusConfig
from episodic_curiosity.bonus.diagnosis import PATIENCE, Advice, Diagnosed, Diagnosis
from episodic_curiosity.runs.build import make_diagnosis
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.presets import resolve

# A run with nothing wrong: alpha 0.03, a bonus of 0.01 a step or 9 an episode, a reward of 10.
HEALTHY = {
    "bonus_mean": 0.01,
    "bonus_spread": 0.005,
    "memory_fill": 0.5,
    "memory_full": 0.3,
    "r_network_fits": 3.0,
    "r_network_accuracy": 0.9,
    "episodes": 2.0,
    "reward": 10.0,
    "bonus": 9.0,
    "length": 900.0,
}
CURIOUS = ("ppo+icm", "ppo+oracle", "ppo+ec", "ppo+eco")
TROUBLES = {
    "held-out accuracy is 52%": {"r_network_accuracy": 0.52},
    "full 95% of the time": {"memory_full": 0.95},
    "nearly constant": {"bonus_spread": 1e-5},
    "at most 10.1 per episode, the reward 5e+03": {"reward": 5000.0},
    "drowns the reward": {"reward": 0.01},
}


def a_run(method: str = "ppo+eco", **changes) -> Run:
    return replace(resolve("maze/sparse", method, "cpu", 200_000, seed=0), **changes)


def stream(diagnosis: Diagnosis, num_looks: int, **changes: float) -> list[str]:
    """All warnings of so many looks at a healthy run with some metrics changed."""
    return [warning for _ in range(num_looks) for warning in diagnosis.look(HEALTHY | changes)]


@pytest.mark.parametrize("method", ["ppo", "ppo+1", *CURIOUS])
def test_a_healthy_run_hears_nothing(method):
    assert stream(make_diagnosis(a_run(method)), 5 * PATIENCE) == []


@pytest.mark.parametrize(("words", "changes"), TROUBLES.items())
def test_a_trouble_is_told_once_it_has_lasted_and_not_again(words, changes):
    diagnosis = make_diagnosis(a_run())
    assert stream(diagnosis, PATIENCE - 1, **changes) == []
    (warning,) = diagnosis.look(HEALTHY | changes)
    assert words in warning
    assert "try" in warning or "check r_network" in warning
    assert "\n" not in warning
    assert stream(diagnosis, 3 * PATIENCE, **changes) == []


@pytest.mark.parametrize(("words", "changes"), TROUBLES.items())
def test_a_trouble_that_went_away_is_told_again(words, changes):
    diagnosis = make_diagnosis(a_run())
    assert len(stream(diagnosis, PATIENCE, **changes)) == 1
    assert stream(diagnosis, PATIENCE) == []
    (warning,) = stream(diagnosis, PATIENCE, **changes)
    assert words in warning


@pytest.mark.parametrize("changes", TROUBLES.values())
def test_a_single_odd_look_is_forgiven(changes):
    diagnosis = make_diagnosis(a_run())
    for _ in range(3):
        assert diagnosis.look(HEALTHY | changes) == []
        assert stream(diagnosis, PATIENCE - 1) == []


def test_troubles_are_told_side_by_side():
    changes = {"r_network_accuracy": 0.5, "memory_full": 1.0, "bonus_spread": 0.0}
    assert len(stream(make_diagnosis(a_run()), PATIENCE, **changes)) == 3


def test_without_a_bonus_nothing_is_ever_told():
    diagnosis = make_diagnosis(a_run("ppo"))
    metrics = {"episodes": 1.0, "reward": 10.0, "bonus": 0.0, "length": 900.0}
    assert [diagnosis.look(metrics) for _ in range(3 * PATIENCE)] == [[]] * 3 * PATIENCE


def test_before_the_first_fit_nothing_is_told():
    diagnosis = make_diagnosis(a_run())
    silent = {"bonus_mean": 0.0, "bonus_spread": 0.0, "memory_full": 1.0, "bonus": 0.0}
    assert stream(diagnosis, 3 * PATIENCE, **silent, r_network_fits=0.0) == []
    # Nor has it counted: the look that tells of the fit has metrics from before it.
    assert stream(diagnosis, 1, **silent) == []
    assert stream(diagnosis, 3 * PATIENCE) == []


def test_ppo_plus_one_is_constant_by_design():
    diagnosis = make_diagnosis(a_run("ppo+1"))
    constant = {"bonus_mean": 0.03, "bonus_spread": 0.0, "bonus": 27.0}
    assert stream(diagnosis, 2 * PATIENCE, **constant) == []
    (warning,) = stream(diagnosis, PATIENCE, **constant, reward=27_000.0)
    assert "bonus.scale" in warning


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        ("ppo+icm", "bonus.scale"),
        ("ppo+oracle", "bonus.cell"),
        ("ppo+ec", "r_network.random_play.fit"),
        ("ppo+eco", "r_network.online.fit"),
    ],
)
def test_a_constant_bonus_is_explained_by_its_method(method, advice):
    (warning,) = stream(make_diagnosis(a_run(method)), PATIENCE, bonus_spread=0.0)
    assert advice in warning


def test_an_error_may_be_small_as_long_as_it_varies():
    diagnosis = make_diagnosis(a_run("ppo+icm"))  # scale 0.55
    assert stream(diagnosis, PATIENCE, bonus_mean=0.002, bonus_spread=0.001) == []


def test_a_bonus_of_both_signs_counts_although_its_sum_does_not():
    diagnosis = make_diagnosis(a_run())
    assert stream(diagnosis, PATIENCE, bonus_mean=0.0, bonus=0.0, bonus_spread=0.01) == []


def test_a_scale_is_proposed_that_makes_bonus_and_reward_alike():
    run = a_run("ppo+oracle")
    run = replace(run, bonus=replace(run.bonus, alpha=0.001))
    # hypot(3e-5, 4e-5) = 5e-5 a step, 0.045 an episode of 900; the task pays 9: 200 times that.
    tiny = {"bonus_mean": 3e-5, "bonus_spread": 4e-5, "reward": 9.0}
    (warning,) = stream(make_diagnosis(run), PATIENCE, **tiny)
    assert "at most 0.045 per episode, the reward 9:" in warning
    assert (
        "bonus.alpha must fit the range of the task's rewards: try 0.2 instead of 0.001"
        in warning
    )


def test_the_scale_of_rewards_counts():
    run = a_run()
    run = replace(run, ppo=replace(run.ppo, reward_scale=1000.0))
    (warning,) = stream(make_diagnosis(run), PATIENCE)
    assert "the reward 1e+04" in warning
    run = replace(run, ppo=replace(run.ppo, reward_scale=0.0))
    assert stream(make_diagnosis(run), 2 * PATIENCE, bonus=1e9) == []


def test_a_normalised_bonus_is_weighed_as_it_was_paid():
    diagnosis = make_diagnosis(a_run(normalise_bonus=True))
    assert stream(diagnosis, PATIENCE, bonus_divisor=0.1) == []
    # hypot(0.01, 0.005) * 900 / 1000 = 0.01006 beside 10: rewards a thousandth of that suit.
    (warning,) = stream(diagnosis, PATIENCE, bonus_divisor=1000.0)
    assert "ppo.reward_scale 0.00101" in warning


def test_a_goal_that_is_rarely_found_is_not_drowned():
    diagnosis = make_diagnosis(a_run())
    rare = {"bonus": 1000.0, "episodes": 500.0, "reward": 10 / 500}  # one episode of 500 paid
    assert stream(diagnosis, 2 * PATIENCE, **rare) == []
    assert stream(diagnosis, 5 * PATIENCE, bonus=1e9, reward=0.0) == []


def test_looks_between_the_ends_of_episodes_say_nothing_about_returns():
    diagnosis = make_diagnosis(a_run())
    ended = ("reward", "bonus", "length")
    between = {name: x for name, x in HEALTHY.items() if name not in ended} | {"episodes": 0.0}
    assert stream(diagnosis, PATIENCE - 1, reward=1e5) == []
    assert [diagnosis.look(between) for _ in range(4)] == [[]] * 4
    assert len(diagnosis.look(HEALTHY | {"reward": 1e5})) == 1


def test_a_resumed_run_warns_as_one_never_interrupted():
    parts = [(7, name) for name in TROUBLES] + [(2 * PATIENCE, name) for name in TROUBLES]
    looks = [HEALTHY | TROUBLES[name] for number, name in parts for _ in range(number)]
    steady = make_diagnosis(a_run())
    wanted = [steady.look(metrics) for metrics in looks]
    assert sum(map(len, wanted)) >= len(TROUBLES)
    for stop in range(0, len(looks), 11):
        before, after = make_diagnosis(a_run()), make_diagnosis(a_run())
        heard = [before.look(metrics) for metrics in looks[:stop]]
        after.load_state_dict(json.loads(json.dumps(before.state_dict())))
        assert after.state_dict() == before.state_dict()
        heard += [after.look(metrics) for metrics in looks[stop:]]
        assert heard == wanted
        assert after.state_dict() == steady.state_dict()


def test_a_state_is_a_copy():
    diagnosis = make_diagnosis(a_run())
    state = diagnosis.state_dict()
    diagnosis.look(HEALTHY)
    assert state == make_diagnosis(a_run()).state_dict() != diagnosis.state_dict()


def test_a_state_of_something_else_is_refused():
    with pytest.raises(ValueError, match="a state has accuracy, constant, drowning"):
        make_diagnosis(a_run()).load_state_dict({"full": [0, 0.0, 0.0, False]})


@dataclass(frozen=True, kw_only=True)
class CountConfig(BonusConfig):
    """Of a custom bonus that names its scale otherwise."""

    weight: float = 0.03


def test_a_custom_bonus_needs_no_scale():
    def diagnosis() -> Diagnosis:
        return Diagnosis(Diagnosed(advice=Advice(), config=CountConfig()))

    assert stream(diagnosis(), 5 * PATIENCE) == []
    (warning,) = stream(diagnosis(), PATIENCE, bonus_spread=1e-5)
    assert "nearly constant, with a spread of 1e-05 against 0.01" in warning
    (warning,) = stream(diagnosis(), PATIENCE, reward=5000.0)
    assert "negligible; it must fit the range of the task's rewards: try 497 times" in warning
