"""Methods by name, and what `register_method` takes and refuses."""

from dataclasses import replace

import pytest

import episodic_curiosity as ec
from episodic_curiosity.bonus import registry
from episodic_curiosity.runs import settings
from tests.outside.count_bonus.count import METHOD, CountConfig


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    monkeypatch.setattr(registry, "_methods", dict(registry._methods))


def test_a_registered_method_is_one_like_the_others():
    ec.register_method(METHOD)
    ec.register_method(METHOD)  # again, as a notebook's cell does
    assert list(registry.methods())[-1] == "ppo+count"
    assert registry.find_method("ppo+count") is METHOD
    found = settings.find_settings("maze/sparse", "ppo+count")
    assert (found.bonus, found.source) == (
        CountConfig(),
        "those of ppo+ec, changed by the method; not in the paper",
    )
    like = settings.find_settings("maze/sparse", "ppo+ec").ppo
    assert found.ppo == replace(like, entropy_coefficient=0.015)
    run = ec.resolve("maze/sparse", "ppo+count", "cpu", 200_000, 0)
    assert type(run).from_dict(run.to_dict()) == run


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(
        ValueError, match=r"there is already a method 'ppo\+ec': choose another"
    ):
        ec.register_method(replace(METHOD, name="ppo+ec"))
    with pytest.raises(TypeError, match="method must be a Method, got str"):
        ec.register_method("ppo+count")


def test_a_method_without_numbers_needs_a_family_that_has_some(monkeypatch):
    ec.register_method(replace(METHOD, ppo=None))
    assert settings.find_settings("maze/sparse", "ppo+count").bonus == CountConfig()
    monkeypatch.setattr(settings, "SETTINGS", {})
    with pytest.raises(ValueError, match=r"no hyper-parameters of ppo\+count on maze/sparse: "):
        settings.find_settings("maze/sparse", "ppo+count")


def test_an_unknown_field_of_ppo_is_named():
    ec.register_method(replace(METHOD, ppo={"entropy": 0.1}))
    with pytest.raises(ValueError, match=r"ppo of the method ppo\+count names entropy, which"):
        settings.find_settings("maze/sparse", "ppo+count")
