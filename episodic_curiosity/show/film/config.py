"""The config of a film, in a separate module because the rest needs Pillow."""

from dataclasses import dataclass
from typing import Literal

from episodic_curiosity.support.checks import check_at_least, check_choice
from episodic_curiosity.support.randomness import seed_words
from episodic_curiosity.worlds.base import SPLITS, Split

FASTEST = 50  # frames/s: browsers slow down faster GIFs
LEAST_HEIGHT = 96  # pixels: smaller pictures are narrower than their captions
MOST_HEIGHT = 2160
MOST_FRAMES = 5000  # per episode: all of its pictures are held in memory
LEAST_COLOURS, MOST_COLOURS = 16, 256  # of a GIF; text and lines use twelve


@dataclass(frozen=True, kw_only=True)
class FilmConfig:
    """The episodes to play and the format of the film."""

    episodes: int = 1  # number of episodes
    steps: int | None = None  # maximum steps per episode; None: all
    split: Split = "test"  # the set of levels; "test" was never trained on
    seed: int = 0  # the default is the seed of `curiosity evaluate`
    deterministic: bool = False  # take the most likely action instead of sampling
    # Maximum per episode: of a longer one every second, fourth, eighth ... step is shown.
    frames: int = 240
    fps: int = 15  # frames/s
    height: int = 180  # of each picture, in pixels
    colours: int = 64  # of a GIF: fewer make a smaller file
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU if available

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
