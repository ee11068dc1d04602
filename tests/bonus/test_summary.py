"""The summary of a memory, by hand: of a corridor, where places 1 apart are similar."""

import pytest
import torch
from torch import Tensor

from episodic_curiosity.bonus.episodic import EpisodicBonus
from episodic_curiosity.bonus.normalised import NormalisedBonus
from episodic_curiosity.bonus.noveld import NovelD
from episodic_curiosity.bonus.summary import SIZE, MemorySummary
from episodic_curiosity.support.cuda_graphs import Captured
from tests.bonus.test_episodic import at, corridor
from tests.support import fake_graphs


def summarised(num_envs: int, **config) -> EpisodicBonus:
    ec = corridor(num_envs, aggregate="max", **config)
    ec.keep_summary()
    return ec


def of(bonus: EpisodicBonus, env: int = 0) -> list[float]:
    assert bonus.summary is not None
    return bonus.summary[env].tolist()


def numbers(*values: float) -> Tensor:
    assert len(values) == SIZE
    return pytest.approx(list(values), abs=1e-7)


NOTHING = [0.0] * SIZE


def test_by_hand():
    """Now, a step earlier, three averages, the fill, and the ages of two slots."""
    ec = summarised(num_envs=3, memory_capacity=4)
    ec.begin(at(0, 0, 0))
    assert ec.summary.tolist() == [NOTHING] * 3
    ec.bonus(at(9, 0, 0))  # only environment 0 stores it
    assert of(ec) == numbers(0, 0, 0, 0, 0, 1 / 4, 1 / 65, 1 / 65)
    assert of(ec, 1) == numbers(1, 0, 1 / 4, 1 / 16, 1 / 64, 1 / 4, 1 / 65, 1 / 65)
    ec.bonus(at(0, 9, 0))
    # Slot 0 is the one like it, stored 2 steps ago; slot 1 is newer.
    assert of(ec) == numbers(1, 0, 1 / 4, 1 / 16, 1 / 64, 2 / 4, 2 / 66, 1 / 65)
    assert of(ec, 1) == numbers(0, 1, 3 / 16, 15 / 256, 63 / 4096, 1 / 4, 2 / 66, 2 / 66)
    ec.bonus(at(10, 0, 0))
    assert of(ec) == numbers(1, 1, 7 / 16, 31 / 256, 127 / 4096, 2 / 4, 2 / 66, 2 / 66)
    assert of(ec, 1)[5:] == pytest.approx([2 / 4, 3 / 67, 1 / 65])


def test_an_episode_begins_with_an_empty_memory():
    ec = summarised(num_envs=2)
    ec.begin(at(5, 5))
    ec.bonus(at(5, 5))
    first = torch.tensor([True, False])
    ec.bonus_same_step(at(5, 5), first)
    assert of(ec) == NOTHING
    assert of(ec, 1)[:2] == [1, 1]
    ec.bonus(at(5, 5))
    # Nothing is left of the episode before.
    assert of(ec) == numbers(1, 0, 1 / 4, 1 / 16, 1 / 64, 1 / 200, 1 / 65, 1 / 65)


def test_rows_that_are_left_out_keep_theirs_and_their_time_stands_still():
    ec = summarised(num_envs=2)
    ec.begin(at(0, 0))
    ec.bonus(at(0, 0))
    before = of(ec, 1)
    for _ in range(5):
        ec.bonus(at(0, torch.nan), where=torch.tensor([True, False]))
    assert of(ec, 1) == before
    ec.bonus(at(0, 0))
    assert of(ec)[6:] == pytest.approx([7 / 71] * 2)
    assert of(ec, 1)[6:] == pytest.approx([2 / 66] * 2)


def test_a_slot_that_is_filled_again_is_young():
    ec = summarised(num_envs=1, memory_capacity=2, replacement="fifo")
    ec.begin(at(0))
    for place in (10, 20, 20):  # 20 takes the slot of 0
        ec.bonus(at(place))
    assert of(ec)[5:] == pytest.approx([1.0, 1 / 65, 1 / 65])
    ec.bonus(at(10))
    assert of(ec)[5:] == pytest.approx([1.0, 3 / 67, 2 / 66])


def test_a_memory_that_is_cleared_in_mid_episode_leaves_nothing():
    """As a refit does."""
    ec = summarised(num_envs=2)
    ec.begin(at(0, 0))
    ec.bonus(at(0, 0))
    ec.load_state_dict(ec.state_dict())
    assert of(ec)[0] == 1.0
    ec.memory.clear(torch.tensor([True, False]))
    assert of(ec) == NOTHING
    assert of(ec, 1)[0] == 1.0
    ec.bonus(at(0, 0))
    assert of(ec) == NOTHING
    ec.bonus(at(0, 0))
    assert of(ec)[5:] == pytest.approx([1 / 200, 1 / 65, 1 / 65])


def test_nothing_is_familiar_to_an_r_network_that_is_not_fitted():
    ec = summarised(num_envs=1)
    ec.r_network.fitted.fill_(False)
    ec.begin(at(0))
    ec.bonus(at(0))
    assert of(ec)[:5] == [0.0] * 5


def test_a_captured_update_is_an_eager_one(monkeypatch):
    """In a CUDA graph, which reads and writes the same tensors."""
    cpu = torch.device("cpu")
    eager, captured = (MemorySummary(3, 5, cpu) for _ in range(2))
    given = {
        "familiarity": torch.zeros(3),
        "closeness": torch.zeros(3, 5),
        "count": torch.zeros(3, dtype=torch.int64),
        "where": torch.zeros(3, dtype=torch.bool),
    }
    slot, stored = torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.bool)

    def take_in() -> None:
        captured.clear(given["count"] == 0)
        captured.update(**given)
        captured.store(slot, stored)

    fake_graphs.install(monkeypatch)
    graph = Captured(take_in, cpu)
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        given["familiarity"].uniform_(generator=generator)
        given["closeness"].uniform_(generator=generator)
        given["count"].random_(0, 6, generator=generator)
        given["where"].copy_(torch.rand(3, generator=generator) < 0.7)
        slot.random_(0, 5, generator=generator)
        stored.copy_(torch.rand(3, generator=generator) < 0.5)
        graph()
        eager.clear(given["count"] == 0)
        eager.update(**given)
        eager.store(slot, stored)
        assert torch.equal(captured.values, eager.values)
    assert eager.values.any(dim=0).all()


def test_the_state_has_a_summary_only_where_it_is_kept():
    ec, plain = summarised(num_envs=1), corridor(num_envs=1)
    more = ec.state_dict().keys() - plain.state_dict().keys()
    assert more == {f"memory.summary.{name}" for name in ("values", "clock", "stored")}
    with pytest.raises(ValueError, match=r"lacks 3 .*, first memory\.summary\.clock"):
        ec.load_state_dict(plain.state_dict())


def test_a_normalised_bonus_has_that_of_the_bonus_in_it():
    ec = corridor(num_envs=1)
    bonus = NormalisedBonus(ec)
    assert (bonus.summary, bonus.summary_size) == (None, SIZE)
    bonus.keep_summary()
    bonus.begin(at(0))
    bonus.bonus(at(0))
    assert bonus.summary is ec.summary
    assert of(ec)[0] == 1.0


def test_a_memory_that_holds_views_has_no_summary_of_them():
    ec = corridor(num_envs=1)
    ec.begin(at(0))
    with pytest.raises(ValueError, match=r"call keep_summary\(\) before the first begin\(\)"):
        ec.keep_summary()
    assert ec.summary is None


def test_noveld_is_familiar_with_directions():
    noveld = NovelD((2,), num_envs=3)
    noveld.keep_summary()
    yes = torch.ones(3, dtype=torch.bool)
    target = torch.zeros(3, 512)
    target[:, 0] = 5.0
    noveld.remember(target, opens=yes, rows=yes)
    target[1] = torch.eye(512)[1]  # at a right angle
    target[2, :2] = torch.tensor([3.0, 4.0])  # a cosine of 3 / 5
    noveld.remember(target, opens=~yes, rows=yes)
    torch.testing.assert_close(noveld.summary[:, 0], torch.tensor([1.0, 0.0, 0.6]))
