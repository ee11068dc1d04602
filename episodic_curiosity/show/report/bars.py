"""Horizontal bar charts as SVG: measured values, with marks at the published ones."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from episodic_curiosity.show.report.chart import WIDTH, Axis, Scale, figure
from episodic_curiosity.support.statistics import Estimate

LEFT, RIGHT, BOTTOM = 100, 56, 22  # margins for the names, the numbers and the ticks
LETTER = 8  # width of a digit with its spacing
# Intervals of two or three seeds can be many times as wide as the bars: they are cut off here,
# in units of the largest number shown.
WIDEST = 1.4
ROW, THICK = 26, 12  # height of a row and of its bar


class Bar(NamedTuple):
    """One bar; without an estimate it is shown as missing."""

    name: str
    colour: int  # 1, 2 ...: index of the page's colours
    measured: Estimate | None
    published: float | None = None


def bar_chart(title: str, x: Axis, bars: Sequence[Bar], note: str = "") -> str:
    """A figure with a title; bars start at zero. Intervals end where the axis ends."""
    found = [bar.measured for bar in bars if bar.measured is not None]
    shown = [0.0, *x.shows, *(each.value for each in found)]
    shown += [bar.published for bar in bars if bar.published is not None]
    highest = WIDEST * max(shown)
    ends = [min(each.high, highest) for each in found if each.num_values > 1]
    across = Scale.over([*shown, *ends], LEFT, WIDTH - RIGHT)
    bottom = ROW * len(bars)
    drawing = [*_grid(across, bottom, x)]
    for number, bar in enumerate(bars):
        drawing.append(_drawn(bar, ROW * number + ROW / 2, across, x))
    return figure(title, note, "", bottom + BOTTOM, drawing)


def _grid(across: Scale, bottom: float, x: Axis) -> list[str]:
    marks = []
    widest = LETTER * max(len(format(tick, x.form)) for tick in across.ticks)
    distance = across(across.ticks[1]) - across(across.ticks[0])
    every = math.ceil(widest / distance)  # tick labels must not overlap
    for number, tick in enumerate(across.ticks):
        place = f"{across(tick):.1f}"
        kind = "axis" if tick == 0.0 else "grid"
        marks.append(f'<line class="{kind}" x1="{place}" x2="{place}" y1="0" y2="{bottom}"/>')
        if number % every == 0:
            marks.append(
                f'<text x="{place}" y="{bottom + 15}" text-anchor="middle">'
                f"{format(tick, x.form)}</text>"
            )
    return marks


def _drawn(bar: Bar, middle: float, across: Scale, x: Axis) -> str:
    parts = [
        f'<text x="{LEFT - 8}" y="{middle + 4}" text-anchor="end">{escape(bar.name)}</text>'
    ]
    if bar.measured is None:
        parts.append(_right("missing", "missing", middle))
    else:
        parts += _measured(bar.name, bar.measured, middle, across, x)
    if bar.published is not None:
        place = across(bar.published)
        parts.append(
            f'<path class="published" d="M{place:.1f} {middle - 9}v18">'
            f"<title>{escape(bar.name)}, published: {format(bar.published, x.form)} "
            f"{escape(x.label)}</title></path>"
        )
    return f'<g class="c{bar.colour}">{"".join(parts)}</g>'


def _measured(name: str, found: Estimate, middle: float, across: Scale, x: Axis) -> list[str]:
    start, end = sorted((across(0.0), across(found.value)))
    tooltip = f"{name}, measured: {format(found.value, x.form)} {x.label}"
    interval = []
    if found.num_values > 1:
        tooltip += f", {format(found.low, x.form)} to {format(found.high, x.form)}"
        low, high = (
            min(max(across(end), LEFT), WIDTH - RIGHT) for end in (found.low, found.high)
        )
        interval = [f'<path class="interval" d="M{low:.1f} {middle}H{high:.1f}"/>']
    return [
        f'<rect x="{start:.1f}" y="{middle - THICK / 2}" width="{end - start:.1f}" '
        f'height="{THICK}" rx="2"><title>{escape(tooltip)}</title></rect>',
        *interval,
        _right(format(found.value, x.form), "value", middle),
    ]


def _right(text: str, kind: str, middle: float) -> str:
    return f'<text class="{kind}" x="{WIDTH}" y="{middle + 4}" text-anchor="end">{text}</text>'
