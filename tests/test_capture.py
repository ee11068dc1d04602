"""Functions replayed as CUDA graphs, and called as they are elsewhere."""

import pytest
import torch

from episodic_curiosity.capture import WARM_UPS, Captured

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_without_capture_every_call_is_made_with_its_arguments():
    seen = []
    play = Captured(seen.append, captures=False)
    for time in range(5):
        play(time)
    assert seen == [0, 1, 2, 3, 4]


@needs_gpu
def test_replays_do_what_calls_would():
    seen = []
    total = torch.zeros((), device="cuda")

    def add(number):
        seen.append(number)
        total.add_(1)

    play = Captured(add, captures=True)
    for time in range(10):
        play(time)
    assert total.item() == 10
    # The calls that were made: the warm-ups, and the one that was recorded.
    assert seen == [*range(WARM_UPS), WARM_UPS - 1]
