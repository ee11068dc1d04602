"""Frames resized by Numba in a worker are those of torch, to the byte."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from episodic_curiosity.worlds.vizdoom.resize import Resize, Sights, make_grey

FRAME = (120, 160)


def frames(count: int) -> np.ndarray:
    """Noise, black and white noise, white, and a slope."""
    random = np.random.default_rng(0)
    noise = random.integers(256, size=(count, 3, *FRAME), dtype=np.uint8)
    noise[1] = 255 * random.integers(2, size=(3, *FRAME))
    noise[2] = 255
    noise[3] = np.arange(FRAME[1])
    return noise


def by_torch(frames: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    if size == FRAME:
        return frames
    given = torch.from_numpy(frames)
    return functional.interpolate(given, size, mode="bilinear", antialias=True).numpy()


@pytest.mark.parametrize(
    "size",
    [
        (84, 84),
        (42, 42),
        (60, 80),
        (40, 50),
        (7, 5),
        (3, 300),
        (119, 161),
        (130, 200),
        (240, 320),
    ],
)
def test_any_size(size):
    given = frames(8)
    resize, out = Resize(FRAME, size), np.zeros((3, *size), np.uint8)
    for frame, expected in zip(given, by_torch(given, size), strict=True):
        resize(frame, out)
        assert np.array_equal(out, expected)


def test_grey():
    """Luminance in float32, rounded; where it lies between two bytes, either."""
    colour = frames(4)[0]
    red, green, blue = colour.astype(np.float64)
    expected = 0.299 * red + 0.587 * green + 0.114 * blue + 0.5
    grey = np.zeros(FRAME, np.uint8)
    make_grey(colour, grey)
    assert (np.abs(grey + 0.5 - expected) < 0.5 + 1e-4).all()
    luminance = torch.tensor((0.299, 0.587, 0.114))
    of_torch = (luminance @ torch.from_numpy(colour).float().flatten(1) + 0.5).to(torch.uint8)
    assert (grey.flatten() != of_torch.numpy()).mean() < 1e-3


@pytest.mark.parametrize("observation", [(84, 84), (42, 36), FRAME])
@pytest.mark.parametrize("view", [(84, 84), (60, 80), FRAME])
def test_observation_and_view(observation, view):
    frame = frames(4)[:1]
    row = {"frame": frame[0], "observation": np.zeros((1, *observation), np.uint8)}
    if view != FRAME:
        row["view"] = np.zeros((3, *view), np.uint8)
    Sights(FRAME, observation, view)(row)
    grey = np.zeros(observation, np.uint8)
    make_grey(by_torch(frame, observation)[0], grey)
    assert np.array_equal(row["observation"][0], grey)
    if view != FRAME:
        assert np.array_equal(row["view"], by_torch(frame, view)[0])
