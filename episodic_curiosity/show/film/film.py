"""Writes films: GIF with Pillow, MP4 with ffmpeg.

Shapes: h x w pixels.
"""

import importlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from episodic_curiosity.show.film.frames import COLOURS, Storyboard
from episodic_curiosity.support.saving import check_writable, write_atomically

FORMATS = (".gif", ".mp4")
PALETTE_FRAMES = 12  # sampled to choose the colours of a GIF


def check_film(path: Path) -> None:
    """Raises if the film cannot be written; creates no file."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"a film must end in {' or '.join(FORMATS)}, got {path.name!r}")
    check_writable(path)
    if path.suffix.lower() == ".mp4":
        find_ffmpeg()


def write_film(path: Path, story: Storyboard, colours: int) -> float:
    """Writes all frames atomically and returns the duration in seconds.

    `colours` is the size of a GIF's palette.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".gif":
        content, seconds = _gif(story, colours)
        write_atomically({path: content})
        return seconds
    _write_mp4(path, story)
    return sum(story.moments) / story.fps


def find_ffmpeg() -> str:
    """Finds ffmpeg: that of imageio-ffmpeg, or else that of the system."""
    try:
        program: str = importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe()
        return program
    except (ImportError, RuntimeError):
        found = shutil.which("ffmpeg")
    if found is None:
        raise ImportError(
            "MP4 needs ffmpeg: pip install 'episodic-curiosity[film]', or write a .gif"
        )
    return found


def _gif(story: Storyboard, colours: int) -> tuple[bytes, float]:
    """The file's content and duration in seconds; a GIF cannot keep every frame rate."""
    palette = _palette(story, colours)
    moment = max(20, round(100 / story.fps) * 10)  # ms; a GIF's unit is 10 ms
    durations = [moment * num_moments for num_moments in story.moments]

    def images() -> Iterator[Image.Image]:
        for frame in story:
            image = Image.fromarray(frame.picture)
            # Dithering would make still parts flicker, and the file larger.
            yield image.quantize(palette=palette, dither=Image.Dither.NONE)

    first, *rest = images()
    buffer = BytesIO()
    first.save(
        buffer, "GIF", save_all=True, append_images=rest, duration=durations, loop=0, disposal=1
    )
    return buffer.getvalue(), sum(durations) / 1000


def _palette(story: Storyboard, colours: int) -> Image.Image:
    """One palette for all frames: the fixed drawing colours and the most common others."""
    numbers = np.linspace(0, len(story) - 1, min(PALETTE_FRAMES, len(story))).astype(int)
    together = np.concatenate([story[int(number)].picture for number in numbers])
    fixed = [part for colour in COLOURS for part in colour]
    found = Image.fromarray(together).quantize(colours - len(COLOURS)).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette(fixed + found[: 3 * (colours - len(COLOURS))])
    return palette


def _write_mp4(path: Path, story: Storyboard) -> None:
    height, width, _ = story[0].picture.shape
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".film-") as folder:
        unfinished, log = Path(folder) / path.name, Path(folder) / "log"
        command = [
            *(find_ffmpeg(), "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"),
            *("-s", f"{width}x{height}", "-r", str(story.fps), "-i", "-"),
            # A format that every browser plays, and can start before it is fully loaded.
            *("-c:v", "libx264", "-crf", "23", "-pix_fmt", "yuv420p"),
            *("-movflags", "+faststart", "-f", "mp4", str(unfinished)),
        ]
        with (
            open(log, "wb") as said,
            subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said) as encoder,
        ):
            assert encoder.stdin is not None
            try:
                for frame in story:
                    encoder.stdin.write(frame.picture.tobytes() * frame.num_moments)
                encoder.stdin.close()
            except BrokenPipeError:
                pass  # the log has the reason
        if encoder.returncode:
            reason = log.read_text(errors="replace").strip().partition("\n")[0]
            raise OSError(f"ffmpeg could not write {path}: {reason}")
        os.replace(unfinished, path)
