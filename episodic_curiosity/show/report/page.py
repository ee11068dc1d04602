"""A page of one file: no script, nothing from a network, light and dark, phone and desk.

Each function returns HTML; what is text comes in as text and is escaped here.
"""

import itertools
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from numpy.typing import NDArray

from episodic_curiosity.show.report.png import data_uri


class Entry(NamedTuple):
    """What stands in a table's cell when it is more than a word."""

    text: str
    notes: Sequence[str] = ()  # quieter lines below
    kind: str = ""  # page.css knows how each looks
    colour: int | None = None  # that of its line in a chart
    link: str = ""  # the anchor of a section


def page(title: str, lead: str, sections: Iterable[str]) -> str:
    """The whole file."""
    style = files("episodic_curiosity.show.report").joinpath("page.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style></head>\n<body><main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n'
        f"{''.join(sections)}</main></body></html>\n"
    )


def section(heading: str, *parts: str, anchor: str = "") -> str:
    """A part of the page with its heading."""
    name = f' id="{escape(anchor)}"' if anchor else ""
    return f"<section{name}><h2>{escape(heading)}</h2>\n{''.join(parts)}</section>\n"


def block(heading: str, *parts: str) -> str:
    """A part of a section with its heading."""
    return f'<div class="block"><h3>{escape(heading)}</h3>\n{"".join(parts)}</div>\n'


def fold(summary: str, *parts: str) -> str:
    """Parts that are shown once somebody asks for them."""
    return f"<details><summary>{escape(summary)}</summary>\n{''.join(parts)}</details>\n"


def warning(*sentences: str) -> str:
    """What a reader must not miss."""
    return f'<div class="warning">{"".join(map(paragraph, sentences))}</div>\n'


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>\n"


def row(parts: Iterable[str], kind: str) -> str:
    """Parts side by side, as many as fit; page.css knows how wide each kind has to be."""
    return f'<div class="row {kind}">{"".join(parts)}</div>\n'


def number(value: str, name: str, note: str, colour: int | None = None) -> str:
    """One figure that everything else explains; the colour is that of its line in a chart."""
    mark = f' class="c{colour}"' if colour else ""
    return (
        f'<div class="number"><span{mark}>{"<i></i>" if colour else ""}{escape(name)}</span>'
        f"<b>{escape(value)}</b><small>{escape(note)}</small></div>"
    )


def table(
    head: Sequence[str], rows: Iterable[Sequence[str | Entry]], aside: Sequence[str] = ()
) -> str:
    """Cells of text; all columns but the first are set to the right, as numbers are.

    Columns named in `aside` are left out where there is little room.
    """
    kinds = ["aside" if name in aside else "" for name in head]
    lines = [
        f"<tr>{''.join(map(_cell, row, kinds, itertools.repeat(tag)))}</tr>"
        for tag, row in (("th", head), *(("td", row) for row in rows))
    ]
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>\n'


def picture(pixels: NDArray[Any], caption: str, colour: int | None = None) -> str:
    """An (H, W, 3) array of bytes with a line below it."""
    height, width = pixels.shape[:2]
    mark = f'<span class="c{colour}"><i></i></span>' if colour else ""
    return (
        f'<figure><img src="{data_uri(pixels)}" width="{width}" height="{height}" '
        f'alt="{escape(caption)}"><figcaption>{mark}{escape(caption)}</figcaption></figure>'
    )


def card(title: str, *parts: str) -> str:
    """Parts that belong together, in a frame."""
    return f'<div class="card"><h3>{escape(title)}</h3>{"".join(parts)}</div>'


def commands(text: str) -> str:
    """What to type in a shell."""
    return f"<pre>{escape(text)}</pre>\n"


def _cell(content: str | Entry, column: str, tag: str) -> str:
    content = Entry(content) if isinstance(content, str) else content
    text = escape(content.text)
    if content.link:
        text = f'<a href="#{escape(content.link)}">{text}</a>'
    if content.colour:
        text = f'<span class="c{content.colour}"><i></i></span>{text}'
    notes = "".join(f"<small>{escape(note)}</small>" for note in content.notes)
    kinds = " ".join(filter(None, (content.kind, column)))
    mark = f' class="{escape(kinds)}"' if kinds else ""
    return f"<{tag}{mark}>{text}{notes}</{tag}>"
