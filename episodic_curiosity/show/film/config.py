"""What a film is to show, and how; apart from the rest, which needs Pillow."""

from dataclasses import dataclass
from typing import Literal

from episodic_curiosity.support.checks import check_at_least, check_choice
from episodic_curiosity.support.randomness import seed_words
from episodic_curiosity.worlds.base import SPLITS, Split

FASTEST = 50  # frames a second: browsers slow a GIF down that wants more
LEAST_HEIGHT = 96  # pixels: less would be narrower than its captions
MOST_HEIGHT = 2160
MOST_FRAMES = 5000  # of an episode, whose pictures are all held in memory
LEAST_COLOURS, MOST_COLOURS = 16, 256  # of a GIF; twelve are those of text and lines


@dataclass(frozen=True, kw_only=True)
class FilmConfig:
    """The episodes that are played, and the film that is made of them."""

    episodes: int = 1  # one after the other
    steps: int | None = None  # of each episode that are shown; None: all
    split: Split = "test"  # the levels; those of "test" were never trained on
    seed: int = 0  # the same as `curiosity evaluate` plays with
    deterministic: bool = False  # the likeliest action instead of a drawn one
    # Of an episode, at most: of a longer one every second, fourth, eighth ... step is shown.
    frames: int = 240
    fps: int = 15  # frames a second
    height: int = 180  # pixels, of each of the pictures side by side
    colours: int = 64  # of a GIF: fewer make a smaller file
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU where there is one

    def __post_init__(self) -> None:
        check_at_least("episodes", self.episodes, 1)
        if self.steps is not None:
            check_at_least("steps", self.steps, 1)
        check_choice("split", self.split, SPLITS)
        seed_words(self.seed)
        _check_within("frames", self.frames, 2, MOST_FRAMES)
        _check_within("height", self.height, LEAST_HEIGHT, MOST_HEIGHT)
        _check_within("fps", self.fps, 1, FASTEST)
        _check_within("colours", self.colours, LEAST_COLOURS, MOST_COLOURS)


def _check_within(name: str, value: int, least: int, most: int) -> None:
    check_at_least(name, value, least)
    if value > most:
        raise ValueError(f"{name} must be at most {most}, got {value}")
