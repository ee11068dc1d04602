"""HTML elements of a self-contained page: no scripts, no network, light and dark mode.

Each function returns HTML. Text arguments are escaped here.
"""

import itertools
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple


class Entry(NamedTuple):
    """A table cell with more than plain text."""

    text: str
    notes: Sequence[str] = ()  # small lines below
    kind: str = ""  # a class of page.css
    colour: int | None = None  # of its line in a chart
    link: str = ""  # the anchor of a section


def page(title: str, lead: str, sections: Iterable[str]) -> str:
    """The complete file."""
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
    """A collapsed section."""
    return f"<details><summary>{escape(summary)}</summary>\n{''.join(parts)}</details>\n"


def warning(*sentences: str) -> str:
    """A highlighted box."""
    return f'<div class="warning">{"".join(map(paragraph, sentences))}</div>\n'


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>\n"


def row(parts: Iterable[str], kind: str) -> str:
    """Parts in a row that wraps; page.css sets the width of each kind."""
    return f'<div class="row {kind}">{"".join(parts)}</div>\n'


def number(value: str, name: str, note: str, colour: int | None = None) -> str:
    """A large number with a name; the colour is that of its line in a chart."""
    mark = f' class="c{colour}"' if colour else ""
    return (
        f'<div class="number"><span{mark}>{"<i></i>" if colour else ""}{escape(name)}</span>'
        f"<b>{escape(value)}</b><small>{escape(note)}</small></div>"
    )


def table(
    head: Sequence[str], rows: Iterable[Sequence[str | Entry]], aside: Sequence[str] = ()
) -> str:
    """A table; all columns but the first are right-aligned.

    Columns named in `aside` are hidden on small screens.
    """
    kinds = ["aside" if name in aside else "" for name in head]
    lines = [
        f"<tr>{''.join(map(_cell, row, kinds, itertools.repeat(tag)))}</tr>"
        for tag, row in (("th", head), *(("td", row) for row in rows))
    ]
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>\n'


def commands(text: str) -> str:
    """Shell commands."""
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
