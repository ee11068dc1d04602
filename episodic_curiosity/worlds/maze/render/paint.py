"""Procedural textures: the walls, floors, doors and sky of the mazes.

Every painter returns float32 (S, S, 4) RGBA in 0..255, top row first, at twice the stored size,
so that downsampling smooths the edges. Surfaces tile seamlessly.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from episodic_curiosity.worlds.lab.elements import Colour

Image = NDArray[np.float32]

SIZE = 128  # S, of every texture but the sky
SKY_SHAPE = (256, 1024)  # rows by elevation from the top, columns around the horizon

_WALK = (np.arange(SIZE, dtype=np.float32) + 0.5) / SIZE
X, Y = np.meshgrid(_WALK, _WALK)  # 0..1, Y downwards


def opaque(colour: Image) -> Image:
    return np.concatenate([colour, np.full_like(colour[..., :1], 255.0)], axis=2)


def rgb(colour: Sequence[float]) -> Image:
    return np.array(colour, np.float32)


def tint(colour: Colour, brightness: Image) -> Image:
    return brightness[..., None] * rgb(colour)


def cells_around(points: Image) -> tuple[NDArray[np.int64], Image]:
    """Voronoi cells on the repeating tile: nearest point, and distance to the border."""
    offset = np.abs(np.stack([X, Y], -1)[:, :, None] - points)  # (S, S, P, 2)
    distance = np.hypot(*np.moveaxis(np.minimum(offset, 1 - offset), -1, 0))
    nearest = np.argpartition(distance, 1, axis=2)[..., :2]
    first, second = np.moveaxis(np.sort(np.take_along_axis(distance, nearest, 2), 2), 2, 0)
    return distance.argmin(2), (second - first).astype(np.float32)


def split(rng: np.random.Generator, smallest: int) -> list[tuple[int, int, int, int]]:
    """Splits the tile at random into (left, top, right, bottom), at least `smallest` wide."""
    done, todo = [], [(0, 0, SIZE, SIZE)]
    while todo:
        left, top, right, bottom = todo.pop()
        across = (right - left) * rng.uniform(0.5, 1.5) > bottom - top
        low, high = (left, right) if across else (top, bottom)
        if high - low < 2 * smallest:
            done.append((left, top, right, bottom))
            continue
        cut = int(rng.integers(low + smallest, high - smallest + 1))
        todo.append((left, top, cut, bottom) if across else (left, top, right, cut))
        todo.append((cut, top, right, bottom) if across else (left, cut, right, bottom))
    return done


def rectangles(rng: np.random.Generator, smallest: int, groove: int, contrast: float) -> Image:
    """Brightness of a wall of rectangles with dark grooves between them."""
    brightness = np.full((SIZE, SIZE), 0.5, np.float32)
    for left, top, right, bottom in split(rng, smallest):
        plate = brightness[top + groove : bottom, left + groove : right]
        plate[:] = 1 + contrast * rng.uniform(-1, 1)
        plate[:2] *= 1.12  # highlight on the upper edge
        plate[-2:] *= 0.88
    return brightness


def panels(rng: np.random.Generator) -> Image:
    return rectangles(rng, smallest=22, groove=3, contrast=0.08)


def blocks(rng: np.random.Generator) -> Image:
    return rectangles(rng, smallest=13, groove=1, contrast=0.28)


def bricks(rng: np.random.Generator) -> Image:
    row = (Y * 8).astype(int)
    along = X * 4 + 0.5 * (row % 2)
    brightness = rng.uniform(0.8, 1.15, (8, 4))[row, along.astype(int) % 4]
    mortar = (along % 1 < 0.05) | (Y * 8 % 1 < 0.12)
    return np.where(mortar, 0.6, brightness).astype(np.float32)


def planks(rng: np.random.Generator) -> Image:
    plank = (X * 6).astype(int)
    grain = 0.07 * np.sin(
        2 * np.pi * (3 * Y + rng.uniform(0, 1, 6)[plank] + 0.3 * np.sin(6 * X))
    )
    brightness = rng.uniform(0.8, 1.15, 6)[plank] + grain
    band = (np.abs(Y - 0.22) < 0.035) | (np.abs(Y - 0.74) < 0.035)
    return np.where(band, 0.68, np.where(X * 6 % 1 < 0.07, 0.55, brightness)).astype(np.float32)


def diamonds(rng: np.random.Generator) -> Image:
    a, b = 4 * (X + Y), 4 * (X - Y)
    tile = rng.uniform(0.78, 1.15, (4, 4))[a.astype(int) % 4, np.floor(b).astype(int) % 4]
    groove = (a % 1 < 0.08) | (b % 1 < 0.08)
    rivet = np.hypot(a % 1 - 0.54, b % 1 - 0.54) < 0.12
    return np.where(groove, 0.55, np.where(rivet, 1.3, tile)).astype(np.float32)


def hexagons(rng: np.random.Generator) -> Image:
    """Brightness above 2 marks seams, which `floor` paints in another colour."""
    points = np.array([(i + 0.5, j + 0.5 * (i % 2)) for i in range(6) for j in range(5)])
    index, border = cells_around((points / (6, 5)).astype(np.float32))
    return np.where(border < 0.03, 9.0, rng.uniform(0.72, 1.08, 30)[index]).astype(np.float32)


def plates(rng: np.random.Generator) -> Image:
    column, row = (X * 4).astype(int), (Y * 4).astype(int)
    rim = np.maximum(np.abs(X * 4 % 1 - 0.5), np.abs(Y * 4 % 1 - 0.5))
    brightness = rng.uniform(0.75, 1.1, (4, 4))[row, column]
    return np.where(rim > 0.45, 9.0, np.where(rim > 0.3, brightness * 0.85, brightness)).astype(
        np.float32
    )


def boards(rng: np.random.Generator) -> Image:
    row = (Y * 6).astype(int)
    along = X * 2 + rng.uniform(0, 1, 6)[row]
    brightness = rng.uniform(0.75, 1.15, (6, 2))[row, along.astype(int) % 2]
    return np.where((Y * 6 % 1 < 0.1) | (along % 1 < 0.03), 9.0, brightness).astype(np.float32)


def pebbles(rng: np.random.Generator) -> Image:
    grid = np.array([(i, j) for i in range(5) for j in range(5)])
    index, border = cells_around(
        ((grid + rng.uniform(0.15, 0.85, (25, 2))) / 5).astype(np.float32)
    )
    return np.where(border < 0.05, 9.0, rng.uniform(0.7, 1.15, 25)[index]).astype(np.float32)


def triangles(rng: np.random.Generator) -> Image:
    half = ((X * 4 % 1) + (Y * 4 % 1) > 1).astype(int)
    brightness = rng.uniform(0.7, 1.15, (4, 4, 2))[
        (Y * 4).astype(int), (X * 4).astype(int), half
    ]
    seam = (
        (np.abs((X * 4 % 1) + (Y * 4 % 1) - 1) < 0.07) | (X * 4 % 1 < 0.05) | (Y * 4 % 1 < 0.05)
    )
    return np.where(seam, 9.0, brightness).astype(np.float32)


Pattern = Callable[[np.random.Generator], Image]
WALL_STYLES: tuple[tuple[Pattern, tuple[Colour, Colour]], ...] = (
    (panels, ((72, 112, 62), (150, 62, 52))),
    (blocks, ((128, 134, 152), (168, 138, 98))),
    (bricks, ((62, 92, 158), (190, 104, 48))),
    (planks, ((118, 74, 150), (168, 156, 64))),
    (diamonds, ((172, 44, 48), (52, 140, 148))),
)
FLOOR_STYLES: tuple[tuple[Pattern, tuple[Colour, Colour]], ...] = (
    (hexagons, ((222, 146, 22), (70, 110, 190))),
    (plates, ((58, 96, 190), (70, 140, 72))),
    (boards, ((160, 92, 58), (132, 132, 138))),
    (pebbles, ((196, 178, 84), (132, 84, 150))),
    (triangles, ((190, 186, 176), (56, 150, 150))),
)


def brighten(colour: Colour, bright: bool) -> Colour:
    mix = 0.3 if bright else 0.0
    red, green, blue = (min(255.0, c * (1 + mix) + 40 * mix) for c in colour)
    return red, green, blue


def wall(look: int) -> Image:
    """One of 20 walls: 5 styles x 2 colours x {normal, bright}; style 1 has a skirting."""
    pattern, colours = WALL_STYLES[look // 4]
    colour = brighten(colours[look // 2 % 2], bool(look % 2))
    image = tint(colour, pattern(np.random.default_rng([1, look // 4])))
    image *= 1.06 - 0.16 * Y[..., None]
    if look // 4 == 0:
        skirting = (Y > 0.90) & (Y < 0.965)
        stripes = np.where(X * 32 % 1 < 0.6, 1.0, 0.55).astype(np.float32)
        image[skirting] = tint((28, 170, 235), stripes)[skirting]
        image[Y >= 0.965] *= 0.6
    return opaque(image)


def floor(look: int) -> Image:
    """One of 20 floors, numbered like the walls."""
    pattern, colours = FLOOR_STYLES[look // 4]
    colour = brighten(colours[look // 2 % 2], bool(look % 2))
    brightness = pattern(np.random.default_rng([2, look // 4]))
    seam = tuple(0.55 * c + 0.45 * s for c, s in zip(colour, (170, 215, 160), strict=True))
    image = np.where(brightness[..., None] > 2, rgb(seam), tint(colour, brightness))
    return opaque(image.astype(np.float32))


def slab() -> Image:
    ribs = 0.75 + 0.25 * np.sin(2 * np.pi * 8 * Y)
    frame = (np.minimum(X, 1 - X) < 0.04) | (np.abs(X - 0.5) < 0.015)
    return opaque(tint((74, 76, 86), np.where(frame, 0.55, ribs).astype(np.float32)))


def sky() -> Image:
    """The panorama, with towers that serve as a compass."""
    rows, columns = SKY_SHAPE
    x, y = np.meshgrid(np.arange(columns) / columns, np.linspace(0.75, -0.75, rows))
    up = np.clip(y / 0.75, -1, 1)[..., None]
    horizon, zenith, below = (
        rgb(c) for c in ((158, 214, 255), (72, 148, 236), (104, 172, 232))
    )
    image = np.where(
        up > 0, horizon + (zenith - horizon) * up, horizon + (below - horizon) * -up
    )
    rng = np.random.default_rng(3)
    # Irregular gaps and heights make every direction unique.
    for centre in np.cumsum(rng.uniform(0.6, 1.4, 13)) / 13.5:
        width, height, top = rng.uniform((0.004, 0.12, 0), (0.018, 0.55, 0.3))
        aside = np.abs((x - centre + 0.5) % 1 - 0.5)
        outside = np.maximum(aside - width, np.maximum(y - height, -0.3 - y) / 6)
        gap = (y > height - top) & (y < height - top + 0.03)
        glow = np.clip(1 - outside / 0.006, 0, 1)[..., None]
        image = image + glow * 0.7 * (rgb((205, 240, 255)) - image)
        fade = np.clip(0.25 + (y + 0.3) * 2.5, 0, 1)
        body = np.where((outside < 0) & ~gap, fade, 0)[..., None]
        image = image + body * (rgb((66, 74, 88)) - image)
    return opaque(image.astype(np.float32))
