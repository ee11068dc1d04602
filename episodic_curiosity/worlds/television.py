"""The randomised TV: the lower right quadrant of each frame shows random images or noise.

The screen is black when an episode begins. Then it shows one of k images or noise, which
changes when the agent takes the switch action (otherwise idle), or noise that changes at
every step. Shapes: N environments, k images, q x r pixels in a quadrant.
"""

import colorsys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from episodic_curiosity.support.checks import first_difference
from episodic_curiosity.support.randomness import random_below, random_bits, seed_words
from episodic_curiosity.worlds.base import (
    FinishingWorld,
    RedrawableWorld,
    RestorableWorld,
    Step,
    World,
)

BLACK = 0  # a value of `shown`; others are an image's number, from 1, or the seed of a noise
SHOWN_BYTES = 8
PICTURE_SIZE = 64
PICTURE_FILES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
STREAM = 0x7E1E  # separates the television's random numbers from the world's


@dataclass(frozen=True)
class Programme:
    """The content of a television, and whether an action changes it."""

    num_images: int  # 0: noise
    switched: bool


PROGRAMMES = {
    "image-action-3": Programme(3, True),
    "image-action-10": Programme(10, True),
    "image-action-30": Programme(30, True),
    "noise": Programme(0, False),
    "noise-action": Programme(0, True),
}


def find_programme(name: str) -> Programme:
    if name not in PROGRAMMES:
        choices = ", ".join(PROGRAMMES)
        raise ValueError(f"a television cannot show {name!r}; choose one of {choices}")
    return PROGRAMMES[name]


class _OurWorld(RestorableWorld, RedrawableWorld, Protocol):
    """A world that can be restored and redrawn."""


class Television:
    """Wraps a world with frames and draws a television into them."""

    def __init__(
        self, world: World, programme: str, *, seed: int, pictures: str | Path | None = None
    ) -> None:
        """`pictures` is a folder of images to show instead of the generated ones."""
        inner = world.spec
        self._programme = find_programme(programme)
        if not any(_is_frame(shape) for shape in (inner.observation_shape, inner.view_shape)):
            raise ValueError(f"{inner.task} has no frames that could show a television")
        if self._programme.switched and inner.action_names[-1:] != ("idle",):
            raise ValueError(f"{programme} needs a world whose last action is 'idle'")
        if pictures is not None and not self._programme.num_images:
            raise ValueError(f"{programme} shows noise; pictures are for image-action-...")
        self.world = world
        names = inner.action_names
        self.spec = replace(
            inner,
            task=f"{inner.task}+{programme}",
            action_names=(*names[:-1], "switch") if self._programme.switched else names,
            snapshot_bytes=inner.snapshot_bytes + SHOWN_BYTES if inner.can_redraw else 0,
            steps_in_two=False,
        )
        self._images: dict[tuple[int, int], Tensor] = {}
        if self._programme.num_images:
            shown = self._pictures(pictures)
            for shape in {inner.observation_shape, inner.view_shape}:
                if _is_frame(shape):
                    size = _quadrant(shape)
                    black = torch.zeros(1, 3, *size, dtype=torch.uint8)
                    images = torch.cat((black, _resize(shown, size))).to(inner.device)
                    self._images[size] = images  # (1 + k, 3, q, r)
        numbers = torch.arange(inner.num_envs, device=inner.device)
        self._key = random_bits(numbers, *seed_words(seed), STREAM)
        self._changes = torch.zeros_like(numbers)
        self._shown = torch.zeros_like(numbers)

    def reset(self, seed: int | None = None) -> Step:
        """Starts a new episode in every environment, with a black screen."""
        step = self.world.reset(seed)
        if seed is not None:
            numbers = torch.arange(self.spec.num_envs, device=self.spec.device)
            self._key.copy_(random_bits(numbers, *seed_words(seed), STREAM))
            self._changes.zero_()
        self._shown.fill_(BLACK)
        observation, view = self._paint_both(step.observation, step.view, self._shown)
        return step._replace(observation=observation, view=view)

    def step(self, actions: Tensor) -> Step:
        """Steps the world and changes the picture where the programme says so."""
        step = self.world.step(actions)
        if self._programme.switched:
            changed = actions == self.spec.num_actions - 1
        else:
            changed = torch.ones_like(self._shown, dtype=torch.bool)
        self._changes += changed
        shown = torch.where(changed, self._something_new(), self._shown)
        if step.final_observation is not None and step.final_view is not None:
            final = self._paint_both(step.final_observation, step.final_view, shown)
            step = step._replace(final_observation=final[0], final_view=final[1])
        if step.final_snapshot is not None:
            step = step._replace(final_snapshot=_with_shown(step.final_snapshot, shown))
        self._shown.copy_(shown.masked_fill(step.first, BLACK))
        observation, view = self._paint_both(step.observation, step.view, self._shown)
        return step._replace(observation=observation, view=view)

    def finish(self, where: Tensor) -> None:
        """Begins no episode after the current one in the rows of an (N,) mask."""
        if not self.spec.can_finish:
            raise ValueError(f"{self.spec.task} cannot finish: it always begins episodes")
        cast(FinishingWorld, self.world).finish(where)

    def close(self) -> None:
        """Closes the wrapped world."""
        self.world.close()

    def snapshot(self) -> Tensor:
        """Returns the wrapped world's snapshot with 8 more bytes for the picture shown."""
        return _with_shown(self._restorable().snapshot(), self._shown)

    def redraw(self, snapshots: Tensor) -> Tensor:
        """Renders the views of snapshots, television included."""
        inner, shown = self._split(snapshots)
        return self._paint(self._restorable().redraw(inner), shown)

    def redraw_observation(self, snapshots: Tensor) -> Tensor:
        """Renders the observations of snapshots, television included."""
        inner, shown = self._split(snapshots)
        return self._paint(self._restorable().redraw_observation(inner), shown)

    def state(self) -> dict[str, Tensor]:
        """Returns a copy of the wrapped world's state and the television's."""
        own = {name: field.clone() for name, field in self._fields().items()}
        return self._restorable().state() | own

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Resumes from the state of a world of the same task and size."""
        own = self._fields()
        saved = {name: field for name, field in state.items() if name in own}
        if difference := first_difference(saved, own):
            raise ValueError(f"this is not a state of {self.spec.task}: it {difference}")
        self._restorable().load_state({k: v for k, v in state.items() if k not in own})
        for name, field in own.items():
            field.copy_(saved[name])

    def _fields(self) -> dict[str, Tensor]:
        fields = {"key": self._key, "changes": self._changes, "shown": self._shown}
        return {f"television.{name}": field for name, field in fields.items()}

    def _split(self, snapshots: Tensor) -> tuple[Tensor, Tensor]:
        """Splits snapshots into the wrapped world's and the pictures shown."""
        snapshots = snapshots.to(self.spec.device)
        if snapshots.dim() != 2 or snapshots.shape[1] <= SHOWN_BYTES:
            raise ValueError(f"snapshots must be (rows, bytes), got {tuple(snapshots.shape)}")
        shown = snapshots[:, -SHOWN_BYTES:].clone(memory_format=torch.contiguous_format)
        shown = shown.view(torch.int64).squeeze(1)
        if self._images:  # an invalid number must not index out of bounds
            shown = shown.clamp(0, self._programme.num_images)
        return snapshots[:, :-SHOWN_BYTES], shown

    def _something_new(self) -> Tensor:
        if self._programme.num_images:
            return 1 + random_below(self._programme.num_images, self._key, self._changes)
        return random_bits(self._key, self._changes).clamp(min=1)

    def _paint_both(
        self, observation: Tensor, view: Tensor, shown: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Paints observations and views, once if they are the same tensor."""
        painted = self._paint(observation, shown)
        return painted, painted if view is observation else self._paint(view, shown)

    def _paint(self, frames: Tensor, shown: Tensor) -> Tensor:
        """Copies (N, 3, h, w) frames and paints the television's quadrant."""
        if not _is_frame(frames.shape[1:]):
            return frames
        rows, columns = _quadrant(frames.shape[1:])
        size = (rows, columns)
        picture = self._images[size][shown] if self._images else self._noise(shown, size)
        frames = frames.clone()
        # Frames of floats are in [0, 1].
        frames[:, :, -rows:, -columns:] = (
            picture / 255 if frames.is_floating_point() else picture
        )
        return frames

    def _noise(self, shown: Tensor, size: tuple[int, int]) -> Tensor:
        """The noise of each seed, drawn at the view's size and resized for other frames."""
        own = _quadrant(self.spec.view_shape) if _is_frame(self.spec.view_shape) else size
        pixels = torch.arange(own[0] * own[1], device=shown.device)
        bits = random_bits(shown[:, None], pixels)[:, None]  # (N, 1, q * r)
        shifts = torch.arange(0, 24, 8, device=shown.device)[:, None]
        noise = (bits >> shifts).to(torch.uint8).reshape(len(shown), 3, *own)
        noise = noise * (shown != BLACK).to(torch.uint8)[:, None, None, None]
        return noise if own == size else _resize(noise, size)

    def _pictures(self, folder: str | Path | None) -> Tensor:
        """The k images, (k, 3, ...) uint8."""
        count = self._programme.num_images
        if folder is None:
            return torch.stack([_make_picture(number) for number in range(count)])
        return _read_pictures(Path(folder), count)

    def _restorable(self) -> _OurWorld:
        if not (self.spec.can_restore and self.spec.can_redraw):
            raise ValueError(f"{self.spec.task} can neither be restored nor redrawn")
        return cast(_OurWorld, self.world)


def _with_shown(snapshots: Tensor, shown: Tensor) -> Tensor:
    """Appends the (N,) pictures shown to snapshots, SHOWN_BYTES each."""
    return torch.cat((snapshots, shown[:, None].view(torch.uint8)), dim=1)


def _is_frame(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 and shape[0] == 3


def _quadrant(shape: tuple[int, ...]) -> tuple[int, int]:
    return shape[1] - shape[1] // 2, shape[2] - shape[2] // 2


def _resize(pictures: Tensor, size: tuple[int, int]) -> Tensor:
    resized = functional.interpolate(pictures.float(), size=size, mode="area")
    return resized.round().to(torch.uint8)


def _make_picture(number: int) -> Tensor:
    """A two-coloured pattern, (3, 64, 64) uint8, different for every number."""
    y, x = np.mgrid[:PICTURE_SIZE, :PICTURE_SIZE] / PICTURE_SIZE
    waves = 2 * np.pi * (2 + number // 5)
    pattern = (
        np.sin(waves * x),
        np.sin(waves * y),
        np.sin(waves * (x + y)),
        np.sin(waves * x) * np.sin(waves * y),
        np.sin(2 * waves * np.hypot(x - 0.5, y - 0.5)),
    )[number % 5]
    hue = number * 0.381966 % 1.0  # steps of the golden ratio keep hues apart
    colours = [
        colorsys.hsv_to_rgb(h % 1.0, s, v)
        for h, s, v in ((hue, 0.9, 1.0), (hue + 0.5, 0.7, 0.5))
    ]
    picture = np.where(pattern > 0, *(np.reshape(colour, (3, 1, 1)) for colour in colours))
    return torch.from_numpy((255 * picture).astype(np.uint8))


def _read_pictures(folder: Path, count: int) -> Tensor:
    """Reads the first `count` images of a folder, sorted by name."""
    try:
        from PIL import Image
    except ImportError as missing:
        raise ImportError("custom pictures need Pillow: pip install pillow") from missing
    if not folder.is_dir():
        raise ValueError(f"pictures must be a folder of images, got {str(folder)!r}")
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in PICTURE_FILES)
    if len(files) < count:
        raise ValueError(f"{folder} must have at least {count} pictures, got {len(files)}")
    pictures = []
    for file in files[:count]:
        with Image.open(file) as image:
            pixels = np.asarray(image.convert("RGB").resize((PICTURE_SIZE, PICTURE_SIZE)))
        pictures.append(torch.from_numpy(pixels.copy()).permute(2, 0, 1))
    return torch.stack(pictures)
