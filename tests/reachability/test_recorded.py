"""Steps that are recorded at different times: a cursor for every environment, by hand."""

import pytest
import torch

from episodic_curiosity.reachability.recorded import RecordedSteps

CPU = torch.device("cpu")
NUM_ENVS, ROOM = 3, 4


def room(num_steps: int = ROOM) -> RecordedSteps:
    return RecordedSteps(num_steps, NUM_ENVS, (2,), torch.float32, CPU)


def add(steps: RecordedSteps, time: int, where: list[int], first: tuple[int, ...] = ()) -> None:
    """Adds views (time, environment) of these environments; the others show NaN."""
    taken = torch.tensor([env in where for env in range(NUM_ENVS)])
    views = torch.tensor([[float(time), float(env)] for env in range(NUM_ENVS)])
    views[~taken] = torch.nan
    opens = torch.tensor([env in first for env in range(NUM_ENVS)])
    steps.add(views, opens, taken)


def uneven() -> RecordedSteps:
    """The first takes part at times 0 to 5, the second at 1 and 4, the third never."""
    steps = room()
    for time in range(6):
        where = [0, 1] if time in (1, 4) else [0]
        add(steps, time, where, first={0: (0,), 1: (1,), 3: (0,)}.get(time, ()))
    return steps


def held(steps: RecordedSteps, env: int) -> list[float]:
    """The times that are held, oldest first."""
    newest = steps.newest()
    count = min(int(steps.added[env]), ROOM)
    time = torch.arange(len(newest.first))[-count:] if count else torch.arange(0)
    views = newest.views(time, torch.full_like(time, env))
    assert (views[:, 1] == env).all()
    return views[:, 0].tolist()


def test_each_environment_keeps_its_newest_steps():
    steps = uneven()
    assert held(steps, 0) == [2.0, 3.0, 4.0, 5.0]  # the oldest two have given way
    assert held(steps, 1) == [1.0, 4.0]  # it was left out in between
    assert held(steps, 2) == []


def test_empty_steps_and_the_oldest_are_borders():
    """Aligned at the newest: environment 1 has two empty steps, environment 2 only such."""
    assert uneven().newest().first.tolist() == [
        [True, True, True],  # environment 0 is cut in mid-episode
        [True, True, True],  # its second episode; environment 1 is still empty
        [False, True, True],  # the first step of environment 1
        [False, False, True],
    ]


def test_new_steps_are_counted_once():
    steps = uneven()
    assert steps.num_new == 6 + 2
    steps.count()
    assert steps.num_new == 0
    add(steps, 6, [1, 2])
    assert steps.num_new == 2


def test_a_state_goes_on_in_the_same_tensors():
    one, other = uneven(), room()
    one.count()
    add(other, 9, [0, 2])
    places = [buffer.data_ptr() for buffer in other.buffers()]
    other.load_state_dict(one.state_dict())
    assert [buffer.data_ptr() for buffer in other.buffers()] == places
    assert other.num_new == 0
    for steps in (one, other):
        add(steps, 6, [1, 2], first=(2,))
    assert other.num_new == 2
    for env, times in enumerate(([2.0, 3.0, 4.0, 5.0], [1.0, 4.0, 6.0], [6.0])):
        assert held(one, env) == held(other, env) == times
    assert torch.equal(one.newest().first, other.newest().first)


def test_frames_are_bytes_and_vectors_floats_unless_named():
    assert RecordedSteps(2, 1, (3, 4, 4), None, CPU).views.dtype == torch.uint8
    assert RecordedSteps(2, 1, (4,), None, CPU).views.dtype == torch.float32
    assert RecordedSteps(2, 1, (3, 4, 4), torch.float32, CPU).views.dtype == torch.float32
    yes, bytes_ = torch.ones(NUM_ENVS, dtype=torch.bool), torch.zeros(NUM_ENVS, 2).byte()
    with pytest.raises(
        TypeError, match=r"room for views of dtype torch\.float32, got torch\.u"
    ):
        room().add(bytes_, yes, yes)


def test_slots_that_were_never_filled_are_zeros(monkeypatch):
    """They are part of the state, and a refit checks one of them."""
    monkeypatch.setattr(torch, "empty", lambda *shape, **kind: torch.full(*shape, 1e30, **kind))
    assert (uneven().state_dict()["views"][:, 2] == 0).all()
