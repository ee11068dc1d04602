"""Procedural textures: decals, fire marks and items.

Painters return images as in paint.py.
"""

import numpy as np
from numpy.typing import NDArray

from episodic_curiosity.worlds.lab.elements import Colour
from episodic_curiosity.worlds.maze.render.effects import (
    FENCE_FIRST_POST,
    FENCE_HALF_POST,
    FENCE_POST_GAP,
    FENCE_POSTS,
)
from episodic_curiosity.worlds.maze.render.paint import (
    SIZE,
    Image,
    X,
    Y,
    opaque,
    rgb,
    split,
    tint,
)


def hue(angle: float, value: float = 1.0, saturation: float = 0.75) -> Image:
    wheel = np.clip(np.abs((angle * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1, 0, 1)
    return rgb(255 * value * (1 - saturation * (1 - wheel)))


def decal(number: int) -> Image:
    """Decal 0..79: 4 styles (glyphs, targets, flags, clouds) of 20 each, in a white frame."""
    style, rng = number // 20, np.random.default_rng([4, number])
    turn = (number % 20) / 20
    ink, paper = hue(turn, 0.95), hue(turn + rng.uniform(0.3, 0.7), rng.uniform(0.15, 1), 0.5)
    x, y = X - 0.5, Y - 0.5
    if style == 0:
        half = rng.random((6, 3)) < 0.5
        shape = np.concatenate([half, half[:, ::-1]], 1)[
            (Y * 6).astype(int), (X * 6).astype(int)
        ]
    elif style == 1:
        power, rings = rng.choice([1.0, 2.0, 8.0]), rng.uniform(2.5, 7)
        radius = (np.abs(x) ** power + np.abs(y) ** power) ** (1 / power)
        shape = (radius * rings * 2 + rng.uniform(0, 1)) % 2 < 1
    elif style == 2:
        angle = rng.uniform(0, np.pi)
        stripes = (x * np.cos(angle) + y * np.sin(angle)) * rng.integers(2, 7)
        shape = (stripes % 1 < 0.5) ^ (np.hypot(x, y) < rng.uniform(0.1, 0.35))
    else:
        waves = rng.integers(1, 4, (3, 2)) * rng.choice([-1, 1], (3, 2))
        phase = rng.uniform(0, 2 * np.pi, 3)
        wave = sum(
            np.sin(6.28 * (a * X + b * Y) + p) for (a, b), p in zip(waves, phase, strict=True)
        )
        shape = np.asarray(wave) > 0
    image = np.where(shape[..., None], ink, paper)
    framed = np.where((np.maximum(np.abs(x), np.abs(y)) > 0.45)[..., None], 235.0, image)
    return opaque(framed.astype(np.float32))


def circuit() -> Image:
    """The fire mark: nested right-angled traces that fade towards the rim."""
    rng = np.random.default_rng(5)
    glow = np.zeros((SIZE, SIZE), np.float32)
    for left, top, right, bottom in split(rng, 12):
        inset = 0
        while min(right - left, bottom - top) - 2 * inset > 6:
            box = glow[top + inset : bottom - inset, left + inset : right - inset]
            box[:2], box[-2:], box[:, :2], box[:, -2:] = 1, 1, 1, 1
            box[: box.shape[0] // 3, -2:] *= rng.integers(0, 2)  # gaps in some traces
            inset += 7
    fade = np.clip(1.25 - 2.2 * np.hypot(X - 0.5, Y - 0.5), 0, 1)
    return opaque(
        np.repeat((255 * np.maximum(glow, 0.25) * fade)[..., None], 3, 2).astype(np.float32)
    )


def layered(*shapes: tuple[NDArray[np.bool_], Colour]) -> Image:
    """Paints shapes over each other, lit from the upper left, on a transparent background."""
    image = np.zeros((SIZE, SIZE, 4), np.float32)
    light = (1.1 - 0.35 * X - 0.1 * Y).astype(np.float32)
    for inside, colour in shapes:
        image[inside, :3] = tint(colour, light)[inside]
        image[inside, 3] = 255
    # Transparent pixels bleed into the mip levels: give them the mean colour of the shapes.
    image[image[..., 3] == 0, :3] = image[image[..., 3] > 0, :3].mean(0)
    return image


def plain(inside: NDArray[np.bool_], colour: Colour) -> Image:
    """Paints a shape in one pure colour, so that keys and fences can be distinguished."""
    return np.concatenate(
        [np.broadcast_to(rgb(colour), (SIZE, SIZE, 3)), 255 * inside[..., None]], axis=2
    ).astype(np.float32)


def ellipse(x: float, y: float, across: float, down: float) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = ((X - x) / across) ** 2 + ((Y - y) / down) ** 2 < 1
    return inside


def box(left: float, top: float, right: float, bottom: float) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = (left <= X) & (right >= X) & (top <= Y) & (bottom >= Y)
    return inside


def goal() -> Image:
    lobes = (
        (0.83, 0.48, (214, 36, 28)),
        (0.5, 0.40, (240, 122, 20)),
        (0.2, 0.30, (250, 214, 40)),
    )
    return layered(
        *((ellipse(0.5, y, across, 0.19), colour) for y, across, colour in lobes),
        *((ellipse(0.36, y - 0.07, 0.1, 0.04), (255, 240, 220)) for y, _, _ in lobes),
    )


def lolly() -> Image:
    ice = box(0.12, 0.2, 0.88, 0.66) | ellipse(0.5, 0.2, 0.38, 0.18)
    return layered(
        (box(0.43, 0.6, 0.57, 0.99), (226, 190, 130)),
        (ice, (252, 132, 24)),
        (box(0.28, 0.2, 0.36, 0.58) | box(0.62, 0.24, 0.7, 0.58), (255, 186, 90)),
    )


def key(colour: Colour) -> Image:
    bow = ellipse(0.5, 0.19, 0.44, 0.18) & ~ellipse(0.5, 0.19, 0.22, 0.09)
    teeth = box(0.5, 0.72, 0.86, 0.79) | box(0.5, 0.86, 0.8, 0.94)
    return plain(bow | box(0.4, 0.34, 0.6, 0.99) | teeth, colour)


def hat() -> Image:
    return layered(
        (ellipse(0.5, 0.82, 0.49, 0.16), (36, 66, 170)),
        (box(0.27, 0.12, 0.73, 0.8) | ellipse(0.5, 0.14, 0.23, 0.12), (48, 92, 220)),
        (box(0.27, 0.58, 0.73, 0.74), (236, 236, 240)),
    )


def can() -> Image:
    body = box(0.08, 0.1, 0.92, 0.9) | ellipse(0.5, 0.9, 0.42, 0.09)
    return layered(
        (body, (236, 204, 36)),
        (box(0.08, 0.36, 0.92, 0.66), (200, 70, 40)),
        (ellipse(0.5, 0.11, 0.42, 0.1), (206, 208, 214)),
        (ellipse(0.5, 0.11, 0.16, 0.04), (120, 122, 130)),
    )


def cake() -> Image:
    return layered(
        (box(0.03, 0.4, 0.97, 0.85) | ellipse(0.5, 0.85, 0.47, 0.14), (236, 214, 170)),
        (box(0.03, 0.56, 0.97, 0.68), (150, 92, 60)),
        (ellipse(0.5, 0.36, 0.48, 0.2), (126, 226, 186)),
        (ellipse(0.5, 0.16, 0.1, 0.15), (220, 40, 60)),
    )


def balloon() -> Image:
    return layered(
        (box(0.485, 0.7, 0.535, 1.0), (236, 236, 236)),
        (ellipse(0.5, 0.38, 0.47, 0.37) | ellipse(0.5, 0.76, 0.08, 0.05), (246, 96, 168)),
        (ellipse(0.33, 0.24, 0.1, 0.09), (255, 214, 234)),
    )


def fence(colour: Colour) -> Image:
    rails = box(0, 0.03, 1, 0.13) | box(0, 0.87, 1, 0.97)
    centres = 0.5 + FENCE_FIRST_POST + FENCE_POST_GAP * np.arange(FENCE_POSTS)
    posts = [box(x - FENCE_HALF_POST, 0, x + FENCE_HALF_POST, 1) for x in centres]
    return plain(rails | np.any(posts, 0), colour)


def post(colour: Colour) -> Image:
    return plain(box(0, 0, 1, 1), colour)
