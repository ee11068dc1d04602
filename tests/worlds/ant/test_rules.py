"""Starts, circles and ends, by hand."""

import torch

from episodic_curiosity.worlds.ant.rules import (
    Episodes,
    draw_start,
    floor_seed,
    is_healthy,
    no_episodes,
    pass_circles,
)


def test_starts_are_spread_over_the_central_square_and_nearly_at_rest():
    key = torch.arange(4000)
    positions, velocities = draw_start(key, torch.ones_like(key))
    assert positions.shape == (4000, 15)
    assert velocities.shape == (4000, 14)
    place = positions[:, :2]
    assert place.abs().max() <= 100.1
    assert (place.mean(0).abs() < 3).all()
    assert ((place.std(0) - 200 / 12**0.5).abs() < 2).all()
    height, joints = positions[:, 2], positions[:, 7:]
    assert (height - 0.75).abs().max() <= 0.1
    assert (positions[:, 3] - 1).abs().max() <= 0.1
    assert joints.abs().max() <= 0.1
    assert abs(joints.std() - 0.2 / 12**0.5) < 1e-3
    assert abs(velocities.std() - 0.1) < 2e-3
    assert abs((velocities.abs() < 0.1).double().mean() - 0.6827) < 0.01


def test_every_episode_starts_elsewhere_on_another_floor():
    key, number = torch.arange(50) % 5, torch.arange(50) // 5
    positions, _ = draw_start(key, number)
    assert len(positions[:, 0].unique()) == 50
    assert len(floor_seed(key, number).unique()) == 50


def test_an_episode_alone_starts_as_in_a_crowd():
    key, number = torch.arange(31), torch.arange(31) + 2
    for crowd, alone in zip(
        draw_start(key, number), draw_start(key[7:8], number[7:8]), strict=True
    ):
        assert torch.equal(crowd[7:8], alone)


def test_each_circle_pays_once():
    episodes = no_episodes(torch.arange(2))._replace(
        start=torch.tensor([[50.0, -20.0], [0.0, 0.0]], dtype=torch.float64)
    )
    paid = []
    for distance in (0.0, 9.99, 10.0, 10.49, 10.5, 10.4, 10.6, 12.0, 0.0, 12.1, 12.5):
        positions = torch.zeros(2, 15, dtype=torch.float64)
        positions[0, :2] = episodes.start[0] + distance * torch.tensor([0.6, -0.8])
        paid.append(pass_circles(episodes, positions)[0].item())
    # Radii 10 and 10.5, then 11, 11.5 and 12 at once, then 12.5; never twice.
    assert paid == [0, 0, 1, 0, 1, 0, 0, 3, 0, 0, 1]
    assert episodes.circles.tolist() == [6, 0]


def test_a_torso_too_low_or_too_high_is_not_healthy():
    positions = torch.zeros(5, 15, dtype=torch.float64)
    positions[:, 2] = torch.tensor([0.199, 0.2, 0.6, 1.0, 1.001])
    assert is_healthy(positions).tolist() == [False, True, True, True, False]


def test_no_episodes_shares_nothing():
    episodes: Episodes = no_episodes(torch.arange(2))
    episodes.clock.add_(1)
    assert episodes.number.tolist() == episodes.circles.tolist() == [0, 0]
