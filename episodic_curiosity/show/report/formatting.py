"""Numbers as text."""

from episodic_curiosity.show.report.grids import Grid, Place
from episodic_curiosity.support.statistics import Estimate

UNITS = {
    "reward": "reward in an episode",
    "coverage": "squares visited in an episode",
    "accuracy": "of the pairs told right",
    "parameters": "parameters",
}


def form(metric: str, size: float) -> str:
    """How values of about that size are written."""
    if metric == "accuracy":
        return ".1%"
    decimals = 0 if abs(size) >= 100 else 1 if abs(size) >= 10 else 2
    return f",.{decimals}f"


def measured(place: Place) -> str:
    """Mean and, of several seeds, their standard deviation."""
    short = place.summary
    if short is None:
        return "missing"
    return _with_spread(short.mean, short.deviation, form(place.metric, short.mean))


def published(place: Place) -> str:
    """As the paper prints it; a dash where it prints nothing."""
    number = place.published
    if number is None:
        return "-"
    if place.metric == "accuracy":
        return _with_spread(number.mean, number.spread, ".0%")
    decimals = max(map(_decimals, (number.mean, number.spread or 0.0)))
    return _with_spread(number.mean, number.spread, f",.{decimals}f")


def published_with_seeds(place: Place) -> str:
    """The same with the number of its seeds in brackets, where the paper says so."""
    seeds = place.published.seeds if place.published else None
    return published(place) + ("" if seeds is None else f" ({seeds})")


def interval(found: Estimate, how: str) -> str:
    """A dash where there is one seed: it says nothing about others."""
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


def seeds(places: list[Place]) -> str:
    """How many there are at each place: one number, or from least to most."""
    numbers = sorted({len(place.results) for place in places if place.results})
    if not numbers:
        return "no seeds"
    if len(numbers) == 1:
        return count(numbers[0], "seed")
    return f"{numbers[0]} to {numbers[-1]} seeds"


def coverage(grid: Grid) -> str:
    """How much of a grid was measured."""
    return f"{len(grid.measured)} of {len(grid.places)}"


def _with_spread(mean: float, spread: float | None, how: str) -> str:
    return format(mean, how) + ("" if spread is None else f" ± {format(spread, how)}")


def _decimals(value: float) -> int:
    """As few as write the number in full."""
    return len(format(value, ".10g").partition(".")[2])
