"""Frames, windows of them, and several worlds side by side."""

import pytest
import torch

from episodic_curiosity.reachability.experience import Frames, Mixture, Window


def test_a_window_is_the_steps_between():
    views = torch.arange(12.0).view(6, 2)
    first = torch.eye(6, 2, dtype=torch.bool)
    window = Window(Frames(views, first), 2, 5)
    assert torch.equal(window.first, first[2:5])
    assert window.views(torch.tensor([0, 2]), torch.tensor([1, 0])).tolist() == [5, 8]


def test_frames_must_agree_with_their_borders():
    with pytest.raises(ValueError, match=r"agree .* got \(6, 2\) and \(5, 2\)"):
        Frames(torch.zeros(6, 2, 3), torch.zeros(5, 2, dtype=torch.bool))


def test_a_mixture_is_its_parts_side_by_side():
    parts = []
    for number, num_envs in enumerate((2, 1, 3)):
        time, env = torch.arange(4.0)[:, None], torch.arange(num_envs)
        views = torch.stack([time.expand(4, num_envs), (10 * number + env).expand(4, -1)], -1)
        parts.append(Frames(views, torch.rand(4, num_envs) < 0.5))
    mixture = Mixture(parts)
    assert torch.equal(mixture.first, torch.cat([part.first for part in parts], dim=1))
    time, env = torch.tensor([3, 0, 1, 2, 0]), torch.tensor([5, 0, 4, 1, 5])  # none of part 1
    expected = [[3, 22], [0, 0], [1, 21], [2, 1], [0, 22]]
    assert mixture.views(time, env).tolist() == expected


def test_a_mixture_s_parts_are_of_one_length():
    parts = [Frames(torch.zeros(n, 2, 3), torch.zeros(n, 2, dtype=torch.bool)) for n in (5, 4)]
    with pytest.raises(ValueError, match=r"must have one length, got \[4, 5\] steps"):
        Mixture(parts)
