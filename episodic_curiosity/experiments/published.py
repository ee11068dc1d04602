"""The paper's numbers, from published.json.

Savinov et al. 2019. The file was transcribed from the paper and checked against it. It has no
measurements of this project.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Published(NamedTuple):
    """One number of the paper."""

    mean: float
    spread: float | None  # the number after the plus-minus sign; None: not printed
    seeds: int | None  # None: not stated
    source: str  # the table or section


class PublishedClaim(NamedTuple):
    """A ratio that the paper's text claims."""

    source: str
    at_least: float | None  # a bound, such as "at least 2 times"
    ratio: float | None  # a value, such as "1.84x slower"


@cache
def published_numbers() -> dict[tuple[str, str, str], Published]:
    """The paper's numbers by experiment, task (without its family) and row."""
    return {
        (table["name"], cell["task"], cell["row"]): Published(
            cell["mean"], cell["spread"], cell["seeds"], table["source"]
        )
        for table in _extract()["tables"]
        for cell in table["cells"]
    }


@cache
def published_claims() -> dict[str, PublishedClaim]:
    """The paper's claims by name."""
    return {
        claim["name"]: PublishedClaim(claim["source"], claim["at_least"], claim["ratio"])
        for claim in _extract()["claims"]
    }


def find_published(experiment: str, task: str, row: str) -> Published | None:
    """The published number of a cell, or None if the paper prints none."""
    return published_numbers().get((experiment, task, row))


def _extract() -> Any:
    return json.loads((files("episodic_curiosity.experiments") / "published.json").read_text())
