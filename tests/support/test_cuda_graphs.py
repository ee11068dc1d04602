"""Functions replayed as CUDA graphs, and called as they are elsewhere."""

import pytest
import torch

from episodic_curiosity.support.cuda_graphs import WARM_UPS, Captured, graph_device
from tests.support import fake_graphs

CPU = torch.device("cpu")


def test_without_capture_every_call_is_made_with_its_arguments():
    seen = []
    play = Captured(seen.append, None)
    for time in range(5):
        play(time)
    assert seen == [0, 1, 2, 3, 4]


def test_a_replay_computes_what_a_call_would(monkeypatch):
    fake_graphs.install(monkeypatch)
    made = []
    total, square = torch.zeros(()), torch.zeros(())

    def add():
        made.append(None)
        total.add_(1)
        square.copy_(total * total)

    play = Captured(add, CPU)
    for time in range(1, 8):
        play()
        assert (total.item(), square.item()) == (time, time**2)
    assert len(made) == WARM_UPS + 1  # once more to be recorded


def test_what_waits_cannot_be_captured(monkeypatch):
    fake_graphs.install(monkeypatch)
    total = torch.zeros(())
    play = Captured(lambda: total.add_(total.item()), CPU)
    for _ in range(WARM_UPS - 1):
        play()
    with pytest.raises(RuntimeError, match="it waits"):
        play()


@pytest.mark.parametrize(
    ("device", "can_capture", "expected"),
    [("cpu", True, None), ("cuda:1", False, None), ("cuda:1", True, "cuda:1")],
)
def test_only_work_on_a_gpu_is_captured(device, can_capture, expected):
    found = graph_device(torch.device(device), can_capture)
    assert found == (None if expected is None else torch.device(expected))


@pytest.mark.gpu
def test_replays_do_what_calls_would():
    seen = []
    total = torch.zeros((), device="cuda")

    def add(number):
        seen.append(number)
        total.add_(1)

    play = Captured(add, torch.device("cuda"))
    for time in range(10):
        play(time)
    assert total.item() == 10
    # The calls that were made: the warm-ups, and the one that was recorded.
    assert seen == [*range(WARM_UPS), WARM_UPS - 1]
