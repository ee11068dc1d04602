"""What the paper says in words, as ratios with intervals."""

from collections.abc import Sequence

from episodic_curiosity.claims import CLAIMS, Claim
from episodic_curiosity.report import written
from episodic_curiosity.report.grids import Grid, Place
from episodic_curiosity.report.page import Entry
from episodic_curiosity.report.tables import Table
from episodic_curiosity.results import Result
from episodic_curiosity.statistics import Estimate, ratio_of_means

SUCCESS = 0.95  # of a training curve's reward, of which 1 is the most there is


def claims_table(grids: Sequence[Grid]) -> Table:
    """A line for each claim and each setting in which both of its methods were measured."""
    rows: list[list[str | Entry]] = []
    for claim in CLAIMS:
        about = f"{claim.better} against {claim.worse} in {claim.experiment}, {claim.column}"
        promised = "-" if claim.at_least is None else f"at least {claim.at_least:g}"
        published = "-" if claim.published is None else f"{claim.published:.2f}"
        for found in _measured(claim, grids) or [Entry("missing", kind="missing")]:
            text = Entry(claim.text, [about, claim.source])
            rows.append([text, found, promised, published])
    return Table(
        ["what the paper says", "measured (95 % interval)", "promised", "published"], rows
    )


def measured_ratio(claim: Claim, better: Place, worse: Place) -> Estimate | None:
    """How many times better; None where a method was not measured, or never got there."""
    ours, theirs = (_values(claim, place) for place in (better, worse))
    if claim.metric in ("steps_to_success", "seconds_per_step"):  # less is better
        ours, theirs = theirs, ours
    if not ours or not theirs or sum(theirs) <= 0:
        return None
    return ratio_of_means(ours, theirs)


def steps_to_success(result: Result) -> float | None:
    """Steps until the reward of training stays at its most; None where it never does."""
    since = None
    for point in result.curve:
        if "reward" in point:
            is_success = point["reward"] >= SUCCESS
            since = (since or point["steps"]) if is_success else None
    return since


def _measured(claim: Claim, grids: Sequence[Grid]) -> list[Entry]:
    """The ratio in each setting."""
    found = []
    for grid in grids:
        if grid.experiment.name != claim.experiment:
            continue
        task = f"{grid.world}/{claim.column}"
        rows = {row.name: row for row in grid.experiment.rows}
        better, worse = (grid.place(rows[name], task) for name in (claim.better, claim.worse))
        if better.results and worse.results:
            ratio = measured_ratio(claim, better, worse)
            seeds = f"{len(better.results)} and {len(worse.results)} seeds"
            text = "not reached" if ratio is None else written.estimate(ratio)
            found.append(Entry(text, [task, str(grid.setting), seeds]))
    return found


def _values(claim: Claim, place: Place) -> list[float]:
    """One for each seed; none at all where a seed lacks its own."""
    if claim.metric == "seconds_per_step":
        return [1.0 / timing["steps_per_second"] for timing in place.timings]
    if claim.metric == "steps_to_success":
        steps = [steps_to_success(result) for result in place.results]
        return [] if None in steps else [value for value in steps if value is not None]
    return place.values
