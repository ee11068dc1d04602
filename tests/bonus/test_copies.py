"""One bonus in several processes; the conformance suite holds copies to a single bonus."""

import pytest
import torch

from episodic_curiosity import (
    E3B,
    ECRND,
    ETD,
    ICM,
    NGU,
    RND,
    ConstantBonus,
    EpisodicCuriosity,
    NovelD,
)
from episodic_curiosity.bonus.copies import LearningCopy, PaidSteps, PayingCopy
from episodic_curiosity.bonus.normalised import NormalisedBonus
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineConfig
from episodic_curiosity.testing.adapters import ONLINE
from episodic_curiosity.testing.calls import assert_equal

NUM_STEPS, NUM_TRANSITIONS = 20, 16  # of an environment, that are learnt from


def r_network():
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        network = RNetwork((4,))
    network.fitted.fill_(True)
    return network


def eco(num_envs):
    steps = NUM_STEPS * num_envs
    online = OnlineConfig(refit_every=steps, history=steps, fit=ONLINE.fit)
    return EpisodicCuriosity(r_network(), num_envs, online=online, memory_capacity=7)


BONUSES = {
    "eco": eco,
    "normalised": lambda num_envs: NormalisedBonus(eco(num_envs)),
    "icm": lambda num_envs: ICM(
        (4,),
        num_envs,
        num_actions=3,
        num_steps=NUM_TRANSITIONS,
        observation_dtype=torch.float32,
    ),
    "rnd": lambda num_envs: RND((4,), num_envs, num_steps=NUM_STEPS),
    "normalised rnd": lambda num_envs: NormalisedBonus(
        RND((4,), num_envs, num_steps=NUM_STEPS)
    ),
    "ngu": lambda num_envs: NGU((4,), num_envs, num_actions=3, num_steps=NUM_TRANSITIONS),
    "e3b": lambda num_envs: E3B((4,), num_envs, num_actions=3, num_steps=NUM_TRANSITIONS),
    "noveld": lambda num_envs: NovelD((4,), num_envs, num_steps=NUM_STEPS),
    "etd": lambda num_envs: ETD((4,), num_envs, num_steps=NUM_STEPS),
    "ec-rnd": lambda num_envs: ECRND(r_network(), num_envs, num_steps=NUM_STEPS),
}


def steps(num_envs, seed):
    """Episodes of five steps."""
    generator = torch.Generator().manual_seed(seed)
    opens = (torch.arange(NUM_STEPS) % 5 == 0)[:, None].expand(-1, num_envs)
    return PaidSteps(
        torch.randn(NUM_STEPS, num_envs, 4, generator=generator),
        torch.randint(3, (NUM_STEPS, num_envs), generator=generator),
        opens,
        ~opens,
    )


def learn(learning, seed, name):
    num_envs = learning.bonus.num_envs
    paying = PayingCopy(BONUSES[name](num_envs))
    paying.receive(learning.learnt())
    new = steps(num_envs, seed)
    for seen, action, opens, _ in zip(*new, strict=True):
        paying.bonus.bonus_same_step(seen, opens, action=action)
    learning.record(new)
    learning.add_statistics(paying.take_statistics())
    return learning.learn()


@pytest.mark.parametrize("name", BONUSES)
def test_a_restored_copy_learns_the_same(name):
    """Optimisers and statistics included; the next steps fill all the room for steps."""
    one, other, fewer = (LearningCopy(BONUSES[name](num_envs)) for num_envs in (3, 3, 2))
    for seed in (0, 1):
        assert learn(one, seed, name)
    state = one.state_dict()
    for restored in (other, fewer):
        restored.load_state_dict(state)
        assert_equal(restored.state_dict()["tensors"], state["tensors"])
    for seed in (2, 3):
        assert learn(one, seed, name) == learn(other, seed, name)
    assert_equal(other.state_dict()["tensors"], one.state_dict()["tensors"])
    assert learn(fewer, 2, name)
    rings = ("recent", "trail", "recorded", "inner", "opened", "memory")
    held = {key.partition(".")[0] for key in state["tensors"]}
    assert held.isdisjoint(rings) or name.startswith("normalised")


def test_a_state_that_does_not_fit_is_refused():
    learning = LearningCopy(BONUSES["normalised"](3))
    state = learning.state_dict()
    with pytest.raises(ValueError, match="a state has extra, tensors, got"):
        learning.load_state_dict({"tensors": state["tensors"]})
    rest = dict(list(state["tensors"].items())[1:])
    with pytest.raises(ValueError, match="lacks 1 of the wanted tensors"):
        learning.load_state_dict(state | {"tensors": rest})
    with pytest.raises(ValueError, match="a state has inner, got"):
        learning.load_state_dict(state | {"extra": {}})


@pytest.mark.parametrize("name", BONUSES)
def test_a_paying_copy_has_no_room_for_steps(name):
    whole, paying = BONUSES[name](3), PayingCopy(BONUSES[name](3))
    assert paying.needs_steps
    is_of_transitions = name in ("icm", "ngu", "e3b")
    assert paying.room == (NUM_TRANSITIONS if is_of_transitions else NUM_STEPS)
    rings = ("recent", "trail", "recorded", "inner.recorded", "inner.recent")
    assert whole.tensors_of(rings)
    assert not paying.bonus.tensors_of(rings)


def test_news_are_what_has_changed():
    learning = LearningCopy(BONUSES["ec-rnd"](3))
    assert learning.news().keys() == {"r_network", "lifelong"}
    assert learning.news() == {}
    learn(learning, 0, "ec-rnd")
    assert learning.news().keys() == {"lifelong"}


@pytest.mark.parametrize("name", ["eco", "normalised", "ec-rnd"])
def test_another_r_network_clears_the_memories(name):
    learning, paying = LearningCopy(BONUSES[name](2)), PayingCopy(BONUSES[name](2))
    memory = paying.bonus.get_submodule("inner.memory" if name == "normalised" else "memory")
    learnt = learning.learnt()
    paying.bonus.begin(torch.zeros(2, 4))
    paying.receive({key: part for key, part in learnt.items() if "r_network" not in key})
    assert memory.count.tolist() == [1, 1]
    paying.receive({key: part for key, part in learnt.items() if "r_network" in key})
    assert memory.count.tolist() == [0, 0]


@pytest.mark.parametrize("name", BONUSES)
def test_a_paying_copy_receives_what_was_learnt(name):
    learning, paying = LearningCopy(BONUSES[name](2)), PayingCopy(BONUSES[name](2))
    for seed in (0, 1, 2):
        learn(learning, seed, name)
    paying.receive(learning.news())
    received, learnt = (
        {  # the sums of running statistics stay its own
            key: part
            for key, part in bonus.tensors_of(learning.bonus.learnt).items()
            if not key.endswith(".sums")
        }
        for bonus in (paying.bonus, learning.bonus)
    )
    assert_equal(received, learnt)


def test_a_state_refused_by_the_inner_bonus_changes_nothing():
    learning, other = (LearningCopy(BONUSES["normalised rnd"](2)) for _ in range(2))
    for seed in (0, 1):
        learn(learning, seed, "normalised rnd")
    state, before = learning.state_dict(), other.state_dict()["tensors"]
    del state["tensors"][next(name for name in state["tensors"] if name.startswith("inner."))]
    with pytest.raises(ValueError, match="lacks 1 of the wanted tensors"):
        other.load_state_dict(state)
    assert_equal(other.state_dict()["tensors"], before)


class Forgetful(ConstantBonus):
    """Learns, and says neither what nor from what."""

    learns = True

    def learn(self, rollout=None):  # noqa: ARG002
        return {}


@pytest.mark.parametrize("wrap", [lambda bonus: bonus, NormalisedBonus])
def test_a_bonus_that_does_not_say_what_it_learns_is_refused(wrap):
    bonus = Forgetful(2)
    with pytest.raises(ValueError, match="Forgetful must name in `learnt`"):
        LearningCopy(wrap(bonus))
    bonus.learnt = ("opened",)
    with pytest.raises(ValueError, match="Forgetful must define record"):
        LearningCopy(wrap(bonus))
