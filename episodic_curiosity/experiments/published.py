"""The paper's numbers, as published.json has them.

Savinov et al. 2019. That file is an extract of the paper's text, typed in once and checked
against it; nothing there was measured by this project.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Published(NamedTuple):
    """One number of the paper."""

    mean: float
    spread: float | None  # what the paper prints after the plus-minus; None: nothing
    seeds: int | None  # None: the paper does not say
    source: str  # the table or section


class PublishedClaim(NamedTuple):
    """What the paper says of a ratio."""

    source: str
    at_least: float | None  # in words: "at least 2 times"
    ratio: float | None  # as a number: "1.84x slower"


@cache
def published_numbers() -> dict[tuple[str, str, str], Published]:
    """By experiment, task (without its family) and row."""
    return {
        (table["name"], cell["task"], cell["row"]): Published(
            cell["mean"], cell["spread"], cell["seeds"], table["source"]
        )
        for table in _extract()["tables"]
        for cell in table["cells"]
    }


@cache
def published_claims() -> dict[str, PublishedClaim]:
    """By name."""
    return {
        claim["name"]: PublishedClaim(claim["source"], claim["at_least"], claim["ratio"])
        for claim in _extract()["claims"]
    }


def find_published(experiment: str, task: str, row: str) -> Published | None:
    """What the paper prints there; None where it prints no number."""
    return published_numbers().get((experiment, task, row))


def _extract() -> Any:
    return json.loads((files("episodic_curiosity.experiments") / "published.json").read_text())
