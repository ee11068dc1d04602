"""Sentences for the user, before a run starts and after it has ended."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.stored_run import loads

SHOWN = ("reward", "coverage", "bonus", "length")  # means over episodes
LAST = 0.1  # the share of a run that its outcome is taken from


def before(run: Run) -> list[str]:
    """Returns sentences about what a user may not expect of the run."""
    remarks = []
    steps = run.steps_after(run.num_updates)
    if steps != run.steps:
        remarks.append(
            f"{run.steps:,} steps are rounded down to {steps:,}, complete updates of "
            f"{run.batch_size:,}"
        )
    online = None if run.r_network is None else run.r_network.online
    if online is not None and run.r_network is not None and run.r_network.source is None:
        # Refits come after updates, so the one after the last would serve nothing.
        last_useful = steps - run.batch_size
        if online.refit_every > last_useful:
            remarks.append(
                f"warning: the R-network is first fitted after {online.refit_every:,} steps, "
                f"which this run of {steps:,} does not get to use: its bonus is always zero; "
                f"give more --steps or fewer --r-network.online.refit-every"
            )
    return remarks


def outcome(run: Run, folder: Path) -> list[str]:
    """Returns lines about the result of a run, its folder and the next commands."""
    lines = read_metrics(folder)
    start = (1 - LAST) * lines[-1]["steps"] if lines else 0
    means = _episode_means([line for line in lines if line["steps"] > start])
    shown = ", ".join(f"{name} {value:.4g}" for name, value in means.items())
    found = [f"episodes that ended in the last {LAST:.0%} of the run: {shown}"] if shown else []
    trust = " --trust" if any(loads(run, to_train=False)) else ""
    word, logs = shlex.quote(str(folder)), shlex.quote(str(folder / "tensorboard"))
    return [
        *found,
        f"the run is in {folder}; next:",
        f"  curiosity evaluate {word}{trust}",
        f"  curiosity watch {word} --out film.gif{trust}",
        f"  tensorboard --logdir {logs}",
    ]


def _episode_means(lines: Sequence[dict[str, float]]) -> dict[str, float]:
    """Means over all episodes that ended; none if no episode did."""
    ended = [line for line in lines if line.get("episodes")]
    number = sum(line["episodes"] for line in ended)
    return {
        name: sum(line[name] * line["episodes"] for line in ended) / number
        for name in SHOWN
        if ended and all(name in line for line in ended)
    }
