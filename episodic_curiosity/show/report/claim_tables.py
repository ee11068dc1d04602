"""The table of the paper's claims, as ratios with intervals."""

from collections.abc import Sequence
from statistics import mean

from episodic_curiosity.experiments.claims import CLAIMS, Claim
from episodic_curiosity.experiments.results import Result
from episodic_curiosity.show.report import formatting
from episodic_curiosity.show.report.grids import Grid, TableCell
from episodic_curiosity.show.report.page import Entry
from episodic_curiosity.show.report.tables import Table
from episodic_curiosity.support.statistics import Estimate, ratio_of_means

SUCCESS = 0.95  # minimum reward of a training curve; the maximum is 1
READING = (
    "A run “always finds the goal” from the step at which its training reward stays at "
    f"{SUCCESS:g} or more; the maximum is 1. “Slower” compares the seconds of complete runs, "
    "including R-networks and compilation, which takes longest in the first run of a process, "
    "but not the test."
)


def claims_table(grids: Sequence[Grid]) -> Table:
    """One row per claim and setting in which both methods were measured."""
    rows: list[list[str | Entry]] = []
    for claim in CLAIMS:
        text, *expected = _stated(claim)
        rows += [[text, found, *expected] for found in _measured(claim, grids)]
    head = ["claim", "measured (95 % interval)", "claimed", "published"]
    return Table(head, rows, aside=["claimed"])  # the text has it, too


def open_claims_table(grids: Sequence[Grid]) -> Table:
    """The claims that no setting was measured for."""
    rows = [_stated(claim) for claim in CLAIMS if not _measured(claim, grids)]
    return Table(["claim", "claimed", "published"], rows, aside=["claimed"])


def measured_ratio(claim: Claim, better: TableCell, worse: TableCell) -> Estimate | str:
    """The measured ratio, or the reason why there is none."""
    if claim.metric == "seconds_per_step":
        return _slowdown(worse, better)
    if claim.metric == "steps_to_success":
        return _sooner(better, worse)
    ours, theirs = (mean(cell.values) for cell in (better, worse))
    if theirs > 0:
        return ratio_of_means(better.values, worse.values)
    if theirs == 0 < ours:
        return f"infinite: {worse.row.name} got 0"
    return f"no ratio: {better.row.name} got {ours:.2f}, {worse.row.name} {theirs:.2f}"


def steps_to_success(result: Result) -> float | None:
    """Steps until the training reward stays at SUCCESS or more, or None."""
    since = None
    for point in result.curve:
        if "reward" in point:
            is_success = point["reward"] >= SUCCESS
            since = (point["steps"] if since is None else since) if is_success else None
    return since


def _stated(claim: Claim) -> list[str | Entry]:
    """The claim and its two numbers in the paper: of the text, and of its tables."""
    about = f"{claim.better} against {claim.worse} in {claim.experiment}, {claim.column}"
    promised = "-" if claim.at_least is None else f"at least {claim.at_least:g}"
    published = "-" if claim.published is None else f"{claim.published:.2f}"
    return [Entry(claim.text, [about, claim.source]), promised, published]


def _measured(claim: Claim, grids: Sequence[Grid]) -> list[Entry]:
    """The ratio in each setting."""
    found = []
    for grid in grids:
        if grid.experiment.name != claim.experiment:
            continue
        task = f"{grid.world}/{claim.column}"
        rows = {row.name: row for row in grid.experiment.rows}
        better, worse = (grid.cell(rows[name], task) for name in (claim.better, claim.worse))
        if better.results and worse.results:
            ratio = measured_ratio(claim, better, worse)
            is_timed = claim.metric == "seconds_per_step"
            ours, theirs = (
                len(each.timings if is_timed else each.results) for each in (better, worse)
            )
            seeds = f"{ours} and {theirs} seeds"
            text = ratio if isinstance(ratio, str) else formatting.estimate(ratio)
            found.append(Entry(text, [task, str(grid.regime), seeds], kind="words"))
    return found


def _slowdown(slow: TableCell, fast: TableCell) -> Estimate | str:
    """The ratio of the seconds of complete runs, without the test."""
    if not slow.timings or not fast.timings:
        return "no timing"
    ours, theirs = ([timing["seconds"] for timing in each.timings] for each in (slow, fast))
    return ratio_of_means(ours, theirs)


def _sooner(soon: TableCell, late: TableCell) -> Estimate | str:
    never, found = [], []
    for cell in (late, soon):
        steps = [steps_to_success(result) for result in cell.results]
        found.append(reached := [value for value in steps if value is not None])
        missing = len(steps) - len(reached)
        some = f" ({missing} of {len(steps)} seeds)" if reached else ""
        never += [f"{cell.row.name} never does{some}"] if missing else []
    return "; ".join(never) if never else ratio_of_means(*found)
