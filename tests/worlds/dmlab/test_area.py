"""Means over areas, by hand."""

import torch

from episodic_curiosity.worlds.dmlab.world import AreaResize

CPU = torch.device("cpu")


def test_pixels_on_a_border_are_shared():
    frame = torch.tensor([[0, 90, 30], [60, 30, 90]], dtype=torch.uint8).expand(1, 3, 2, 3)
    # Columns: 1 and a half of the middle one, a half and 1; both rows stay as they are.
    resized = AreaResize((2, 3), (2, 2), CPU)(frame)
    assert resized[0, 0].tolist() == [[30, 50], [50, 70]]
    # Rows: their mean.
    assert AreaResize((2, 3), (1, 2), CPU)(frame)[0, 2].tolist() == [[40, 60]]


def test_it_rounds_and_keeps_what_is_even():
    frame = torch.tensor([[0, 1], [1, 1]], dtype=torch.uint8).expand(2, 3, 2, 2)
    assert AreaResize((2, 2), (1, 1), CPU)(frame).flatten().tolist() == [1] * 6
    white = torch.full((1, 3, 120, 160), 255, dtype=torch.uint8)
    assert (AreaResize((120, 160), (84, 84), CPU)(white) == 255).all()
    assert (AreaResize((120, 160), (130, 170), CPU)(white) == 255).all()
