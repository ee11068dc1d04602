"""The replay, the window and the frames they give back."""

import pytest
import torch

from episodic_curiosity.reachability.experience import FrameReplay, Frames, Window, check_fits

CPU = torch.device("cpu")


def fill(replay: FrameReplay, times: range) -> None:
    for time in times:
        view = torch.tensor([[time, 0], [time, 1]], dtype=torch.float32)
        replay.add(view, torch.tensor([time % 3 == 0, False]))


def everything(replay: FrameReplay) -> list[list[float]]:
    num_steps = replay.first.shape[0]
    time = torch.arange(num_steps).repeat_interleave(2)
    return replay.views(time, torch.tensor([0, 1] * num_steps)).tolist()


@pytest.mark.parametrize("added", [1, 3, 4, 5, 9])
def test_the_newest_steps_in_the_order_of_time(added):
    replay = FrameReplay(4, 2, (2,), torch.float32, CPU)
    fill(replay, range(added))
    kept = range(max(0, added - 4), added)
    assert everything(replay) == [[t, env] for t in kept for env in (0, 1)]
    assert replay.first[:, 0].tolist() == [t % 3 == 0 for t in kept]


def test_the_replay_s_state_goes_on():
    one, other = (FrameReplay(4, 2, (2,), torch.float32, CPU) for _ in range(2))
    fill(one, range(6))
    other.load_state_dict(one.state_dict())
    fill(one, range(6, 8))
    fill(other, range(6, 8))
    assert everything(one) == everything(other)
    larger = FrameReplay(9, 2, (2,), torch.float32, CPU)
    larger.load_state_dict(one.state_dict())
    assert everything(larger) == everything(one)
    fill(larger, range(8, 10))
    assert everything(larger) == [[t, env] for t in range(4, 10) for env in (0, 1)]
    with pytest.raises(ValueError, match=r"saved replay holds views \(4, 2, 2\)"):
        FrameReplay(3, 2, (2,), torch.float32, CPU).load_state_dict(one.state_dict())


def test_a_replay_keeps_its_dtype_and_shape():
    replay = FrameReplay(4, 2, (2,), torch.float32, CPU)
    yes = torch.ones(2, dtype=torch.bool)
    with pytest.raises(TypeError, match=r"must stay of dtype torch\.float32"):
        replay.add(torch.zeros(2, 2, dtype=torch.uint8), yes)
    with pytest.raises(ValueError, match=r"view must have shape \(2, 2\), got \(3, 2\)"):
        replay.add(torch.zeros(3, 2), yes)


def test_what_is_kept_does_not_keep_its_graph():
    replay = FrameReplay(4, 2, (2,), torch.float32, CPU)
    replay.add(torch.zeros(2, 2, requires_grad=True) * 2, torch.ones(2, dtype=torch.bool))
    assert not replay.views(torch.tensor([0]), torch.tensor([0])).requires_grad


def test_what_does_not_fit_is_refused_before_it_is_tried():
    with pytest.raises(MemoryError, match=r"wants 4000\.0 GB, cpu has .* GB free: lower"):
        check_fits((10**6, 10, 400_000), torch.uint8, CPU)


def test_a_window_is_the_steps_between():
    views = torch.arange(12.0).view(6, 2)
    first = torch.eye(6, 2, dtype=torch.bool)
    window = Window(Frames(views, first), 2, 5)
    assert torch.equal(window.first, first[2:5])
    assert window.views(torch.tensor([0, 2]), torch.tensor([1, 0])).tolist() == [5, 8]


def test_frames_must_agree_with_their_borders():
    with pytest.raises(ValueError, match=r"agree .* got \(6, 2\) and \(5, 2\)"):
        Frames(torch.zeros(6, 2, 3), torch.zeros(5, 2, dtype=torch.bool))
