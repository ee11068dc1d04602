"""Line charts as SVG; the page's style sheet defines the colours.

Shapes: P points of a line.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 360, 230  # of the view box: about a phone's width, so that text keeps its size
LEFT, RIGHT, TOP, BOTTOM = 46, 18, 10, 40  # margins for the numbers and the label
NUM_TICKS = 5  # approximately
HOVER = 9  # radius around a point in which its tooltip appears


Points = tuple[tuple[float, float], ...]  # P of (x, y), from left to right


class Line(NamedTuple):
    """One line of a chart; lines of the same colour share a legend entry."""

    name: str
    colour: int  # 1, 2 ...: index of the page's colours
    points: Points
    runs: tuple[Points, ...] = ()  # the runs behind a mean, drawn as thin lines
    before: float = 0.0  # steps of random play before the line, marked on the axis


class Axis(NamedTuple):
    """The label of an axis and the format of its values."""

    label: str
    form: str = ",.4g"
    shows: tuple[float, ...] = ()  # values that the axis always includes


def line_chart(title: str, x: Axis, y: Axis, lines: Sequence[Line], note: str = "") -> str:
    """A figure with a title and a legend; raises if there is no point."""
    points = [point for line in lines for part in (line.points, *line.runs) for point in part]
    if not points:
        raise ValueError(f"the chart {title!r} has no points to draw")
    across = Scale.over([*x.shows, *(point[0] for point in points)], LEFT, WIDTH - RIGHT)
    up = Scale.over([*y.shows, *(point[1] for point in points)], HEIGHT - BOTTOM, TOP)
    drawing = [*_grid(across, up, x, y), *(_drawn(line, across, up, x, y) for line in lines)]
    return figure(title, note, _legend(lines), HEIGHT, drawing)


def figure(title: str, note: str, legend: str, height: int, drawing: Sequence[str]) -> str:
    """The HTML element of a chart of this height; the note is below its title."""
    below = f"<small>{escape(note)}</small>" if note else ""
    return (
        f'<figure class="chart"><figcaption>{escape(title)}{below}</figcaption>{legend}'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"{''.join(drawing)}</svg></figure>"
    )


def nice_ticks(low: float, high: float) -> list[float]:
    """Round numbers, 1, 2 or 5 times a power of ten apart, that span from low to high."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"low and high must be finite and in order, got {low} and {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / NUM_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    distance = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    first, last = math.floor(low / distance + 1e-9), math.ceil(high / distance - 1e-9)
    # Rounded, so that 3 * 0.1 is 0.3.
    return [float(f"{number * distance:.12g}") for number in range(first, last + 1)]


class Scale(NamedTuple):
    """Maps values of an axis to coordinates in the view box."""

    ticks: list[float]
    begin: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], begin: float, end: float) -> "Scale":
        return cls(nice_ticks(min(values), max(values)), begin, end)

    def __call__(self, value: float) -> float:
        share = (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        return self.begin + share * (self.end - self.begin)


def _grid(across: Scale, up: Scale, x: Axis, y: Axis) -> list[str]:
    """Horizontal grid lines, tick labels and the axis label."""
    marks = []
    for tick in up.ticks:
        kind = "axis" if tick == up.ticks[0] else "grid"
        height = f"{up(tick):.1f}"
        marks += [
            f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height}" '
            f'y2="{height}"/>',
            f'<text x="{LEFT - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">'
            f"{format(tick, y.form)}</text>",
        ]
    for tick in across.ticks:
        marks.append(
            f'<text x="{across(tick):.1f}" y="{HEIGHT - BOTTOM + 16}" '
            f'text-anchor="middle">{_short(tick)}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    marks.append(
        f'<text class="label" x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">'
        f"{escape(x.label)}</text>"
    )
    return marks


def _drawn(line: Line, across: Scale, up: Scale, x: Axis, y: Axis) -> str:
    """A line with tooltips at its points."""
    places = [(f"{across(a):.1f}", f"{up(b):.1f}") for a, b in line.points]
    tooltips = [
        f'<circle cx="{left}" cy="{top}" r="{HOVER}"><title>{escape(line.name)}: '
        f"{format(b, y.form)} {escape(y.label)} at {a:,.0f} {escape(x.label)}</title></circle>"
        for (left, top), (a, b) in zip(places, line.points, strict=True)
    ]
    thin = "".join(
        f'<polyline class="run" points="{_path(run, across, up)}"/>' for run in line.runs
    )
    path = _path(line.points, across, up)
    return (
        f'<g class="c{line.colour}">{_before(line, across)}{thin}<polyline points="{path}"/>'
        f"{''.join(tooltips)}</g>"
    )


def _path(points: Points, across: Scale, up: Scale) -> str:
    return " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in points)


def _before(line: Line, across: Scale) -> str:
    """A thick part of the axis for the steps of random play before the line."""
    if not line.before:
        return ""
    return (
        f'<line class="before" x1="{LEFT}" x2="{across(line.before):.1f}" '
        f'y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"><title>{escape(line.name)}: '
        f"{line.before:,.0f} steps of random play for its R-network</title></line>"
    )


def _legend(lines: Sequence[Line]) -> str:
    names = {line.colour: line.name for line in lines}
    entries = (
        f'<span class="c{key}"><i></i>{escape(name)}</span>' for key, name in names.items()
    )
    return f'<div class="legend">{"".join(entries)}</div>'


def _short(value: float) -> str:
    """Formats 200,000 as 200k."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
