"""The memory against plain lists, one per environment."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from episodic_curiosity.bonus.memory import EpisodicMemory
from tests.bonus.transcription import replaced_slot


class Lists:
    """What the memory should hold, as the paper tells it."""

    def __init__(self, num_envs: int, capacity: int, replacement: str, seed: int) -> None:
        self.slots: list[list[float]] = [[] for _ in range(num_envs)]
        self.oldest = [0] * num_envs
        self.draws = [0] * num_envs
        self.capacity, self.replacement, self.seed = capacity, replacement, seed

    def clear(self, env: int) -> None:
        self.slots[env], self.oldest[env] = [], 0

    def add(self, env: int, value: float) -> None:
        slots = self.slots[env]
        if len(slots) < self.capacity:
            slots.append(value)
        elif self.replacement == "fifo":
            slots[self.oldest[env]] = value
            self.oldest[env] = (self.oldest[env] + 1) % self.capacity
        else:
            slots[replaced_slot(self.capacity, self.seed, env, self.draws[env])] = value
        self.draws[env] += 1


MASKS = st.lists(st.booleans(), min_size=3, max_size=3)


@settings(max_examples=50, deadline=None)
@given(
    capacity=st.integers(1, 5),
    replacement=st.sampled_from(["random", "fifo"]),
    seed=st.integers(0, 2**31),
    calls=st.lists(st.tuples(MASKS, MASKS), max_size=30),
)
def test_any_sequence_of_clears_and_adds(capacity, replacement, seed, calls):
    memory = EpisodicMemory(3, capacity, 2, replacement=replacement, seed=seed)
    lists = Lists(3, capacity, replacement, seed)
    for time, (clears, adds) in enumerate(calls):
        values = torch.tensor([10.0 * time + env for env in range(3)])
        memory.clear(torch.tensor(clears))
        memory.add(values[:, None].expand(3, 2), torch.tensor(adds))
        for env in range(3):
            if clears[env]:
                lists.clear(env)
            if adds[env]:
                lists.add(env, values[env].item())
    held = [
        row[:count, 0].tolist()
        for row, count in zip(memory.embeddings, memory.count, strict=True)
    ]
    assert held == lists.slots


def test_random_replacement_replaces_every_slot_in_time():
    memory = EpisodicMemory(1, 8, 1, seed=3)
    replaced = set()
    for value in range(200):
        before = memory.embeddings.clone()
        memory.add(torch.tensor([[float(value + 1)]]), torch.tensor([True]))
        if value >= 8:
            replaced |= set((memory.embeddings != before)[0, :, 0].nonzero()[:, 0].tolist())
    assert replaced == set(range(8))


def test_state_goes_on_as_if_nothing_had_happened():
    def advance(memory):
        for value in range(10):
            memory.add(torch.full((2, 3), float(value)), torch.tensor([True, value % 2 == 0]))

    one = EpisodicMemory(2, 4, 3, seed=1)
    advance(one)
    other = EpisodicMemory(2, 4, 3, seed=99)
    other.load_state_dict(one.state_dict())
    advance(one)
    advance(other)
    assert torch.equal(one.embeddings, other.embeddings)
    assert torch.equal(one.count, other.count)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 4, 3), "num_envs must be an integer of at least 1, got 0"),
        ((2, 0, 3), "memory_capacity must be an integer of at least 1, got 0"),
        ((2, 4, 0), "embedding_size must be an integer of at least 1, got 0"),
    ],
)
def test_impossible_sizes(arguments, message):
    with pytest.raises(ValueError, match=message):
        EpisodicMemory(*arguments)


def test_bad_calls():
    memory = EpisodicMemory(2, 4, 3)
    yes = torch.ones(2, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"embedding must have shape \(2, 3\), got \(2, 4\)"):
        memory.add(torch.zeros(2, 4), yes)
    with pytest.raises(TypeError, match=r"where must be of dtype bool, got torch.int64"):
        memory.add(torch.zeros(2, 3), yes.long())
    with pytest.raises(ValueError, match=r"where must have shape \(2,\), got \(3,\)"):
        memory.clear(torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="replacement must be one of random, fifo, got 'lifo'"):
        EpisodicMemory(2, 4, 3, replacement="lifo")


def test_slots_are_those_in_use_and_statistics_count_them():
    memory = EpisodicMemory(3, 4, 2)
    assert memory.slots.shape == (3, 1, 2)
    assert memory.statistics() == {"memory_fill": 0.0, "memory_full": 0.0}
    for number in range(4):
        memory.add(torch.full((3, 2), float(number)), torch.tensor([True, number < 2, False]))
    assert memory.slots.shape == (3, 4, 2)
    assert memory.statistics() == {"memory_fill": 0.5, "memory_full": pytest.approx(1 / 3)}
    assert memory.to("meta").slots.shape == (3, 4, 2)
