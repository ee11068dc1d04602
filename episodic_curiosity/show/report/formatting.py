"""Formats numbers as text."""

from episodic_curiosity.show.report.grids import Grid, TableCell
from episodic_curiosity.support.statistics import Estimate, Summary

UNITS = {
    "reward": "reward per episode",
    "coverage": "cells covered per episode",
    "accuracy": "held-out accuracy",
    "parameters": "parameters",
}


def form(metric: str, size: float) -> str:
    """The format of values of about this size."""
    if metric == "accuracy":
        return ".1%"
    decimals = 0 if abs(size) >= 100 else 1 if abs(size) >= 10 else 2
    return f",.{decimals}f"


def measured(cell: TableCell) -> str:
    """The mean and, for several seeds, the standard deviation."""
    short = cell.summary
    if short is None:
        return "missing"
    return _with_spread(short.mean, short.deviation, form(cell.metric, short.mean))


def published(cell: TableCell) -> str:
    """The number as the paper prints it, or a dash."""
    number = cell.published
    if number is None:
        return "-"
    if cell.metric == "accuracy":
        return _with_spread(number.mean, number.spread, ".0%")
    decimals = max(map(_decimals, (number.mean, number.spread or 0.0)))
    return _with_spread(number.mean, number.spread, f",.{decimals}f")


def published_with_seeds(cell: TableCell) -> str:
    """The same with the number of seeds in brackets, if the paper states it."""
    seeds = cell.published.seeds if cell.published else None
    return published(cell) + ("" if seeds is None else f" ({seeds})")


def interval(found: Estimate | Summary, how: str) -> str:
    """The interval, or a dash for a single seed."""
    if found.num_values < 2:
        return "-"
    return f"{format(found.low, how)} to {format(found.high, how)}"


def estimate(found: Estimate | None, how: str = ".2f") -> str:
    """A number and, in brackets, its interval."""
    if found is None:
        return "-"
    within = interval(found, how)
    return format(found.value, how) + ("" if within == "-" else f" ({within})")


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seeds(cells: list[TableCell]) -> str:
    """The number of seeds per cell, or its range."""
    numbers = sorted({len(cell.results) for cell in cells if cell.results})
    if not numbers:
        return "no seeds"
    if len(numbers) == 1:
        return count(numbers[0], "seed")
    return f"{numbers[0]} to {numbers[-1]} seeds"


def coverage(grid: Grid) -> str:
    """The number of measured cells of a grid."""
    return f"{len(grid.measured)} of {len(grid.cells)}"


def _with_spread(mean: float, spread: float | None, how: str) -> str:
    return format(mean, how) + ("" if spread is None else f" ± {format(spread, how)}")


def _decimals(value: float) -> int:
    """The number of decimals needed to print the value in full."""
    return len(format(value, ".10g").partition(".")[2])
