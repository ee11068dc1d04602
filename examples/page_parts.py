"""Parts of the demo's page that no report has: cards, films, and pictures in the page itself.

PNGs are encoded without an imaging library. Shapes: H x W pixels.
"""

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]
SIGNATURE = b"\x89PNG\r\n\x1a\n"
EIGHT_BITS, RGB, NO_FILTER = 8, 2, 0


def png_bytes(picture: NDArray[Any]) -> bytes:
    """Encodes an (H, W, 3) uint8 array as a PNG file."""
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise ValueError(
            f"a picture must be (height, width, 3) of uint8, got {picture.shape} of "
            f"{picture.dtype}"
        )
    height, width, _ = picture.shape
    header = struct.pack(">IIBBBBB", width, height, EIGHT_BITS, RGB, 0, 0, 0)
    # Every row of a PNG begins with its filter type.
    rows = np.full((height, 1 + 3 * width), NO_FILTER, np.uint8)
    rows[:, 1:] = picture.reshape(height, 3 * width)
    packed = zlib.compress(rows.tobytes(), level=9)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def picture(pixels: NDArray[Any], caption: str, colour: int | None = None) -> str:
    """An (H, W, 3) uint8 picture with a caption."""
    height, width = pixels.shape[:2]
    mark = f'<span class="c{colour}"><i></i></span>' if colour else ""
    return (
        f'<figure><img src="{data_uri(pixels)}" width="{width}" height="{height}" '
        f'alt="{escape(caption)}"><figcaption>{mark}{escape(caption)}</figcaption></figure>'
    )


def card(title: str, *parts: str) -> str:
    """A framed group of parts."""
    return f'<div class="card"><h3>{escape(title)}</h3>{"".join(parts)}</div>'


def film(webp: bytes, width: int, captions: Sequence[tuple[str, int]]) -> str:
    """An animated WebP of panels side by side, each under a caption with its colour."""
    data = base64.b64encode(webp).decode()
    above = "".join(
        f'<span class="c{colour}"><i></i>{escape(text)}</span>' for text, colour in captions
    )
    alt = " and ".join(text for text, _ in captions)
    return (
        f'<figure style="width:{width}px;max-width:100%">'
        f'<figcaption style="display:grid;grid-template-columns:repeat({len(captions)},1fr);'
        f'gap:8px;margin-bottom:8px">{above}</figcaption>'
        f'<img src="data:image/webp;base64,{data}" alt="{escape(alt)}"></figure>'
    )


def scale(low: Colour, high: Colour, left: str, right: str) -> str:
    """A legend of colours between two, with the words at its ends."""
    ends = ",".join(f"rgb{colour}" for colour in (low, high))
    return (
        '<p style="display:flex;align-items:center;gap:10px">'
        f"<span>{escape(left)}</span>"
        f'<span style="flex:0 1 150px;height:8px;border-radius:4px;'
        f'background:linear-gradient(90deg,{ends})"></span><span>{escape(right)}</span></p>'
    )


def beside(left: str, right: str) -> str:
    """Two parts side by side; on a small screen the second is below the first."""
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:16px 32px;margin:18px 0">'
        f'{left}<div style="flex:1 1 280px">{right}</div></div>'
    )


def data_uri(picture: NDArray[Any]) -> str:
    """A data URI for the `src` of an image."""
    return "data:image/png;base64," + base64.b64encode(png_bytes(picture)).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
