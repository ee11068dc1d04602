"""`curiosity evaluate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from episodic_curiosity.cli.arguments import Once, Trust
from episodic_curiosity.worlds.base import Split


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Options of `curiosity evaluate`."""

    folder: tyro.conf.Positional[Path]  # of a run, or of an R-network (curiosity fit)
    task: str | None = None  # another task; None: the run's. An R-network needs one
    episodes: int = 100  # minimum number of episodes
    deterministic: Once = False  # take the most likely action instead of sampling
    split: Split = "test"  # the set of levels; "test" was never trained on
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU if available
    trust: Trust = False


def evaluate(arguments: list[str]) -> None:
    """Evaluates a trained agent, or an R-network, on levels it has never seen."""
    options = tyro.cli(
        EvaluateOptions, args=arguments, prog="curiosity evaluate", description=evaluate.__doc__
    )
    from episodic_curiosity.runs.evaluate_folder import (
        evaluate_r_network,
        evaluate_run,
        holds_r_network_alone,
    )

    shared = {name: getattr(options, name) for name in ("task", "episodes", "split", "device")}
    if holds_r_network_alone(options.folder):
        if options.task is None:
            raise ValueError(
                f"{options.folder} holds an R-network and no run: name the task whose random "
                f"play it is tested on with --task"
            )
        if options.deterministic:
            raise ValueError(
                "--deterministic is for agents, R-networks are tested on random play"
            )
        print(evaluate_r_network(options.folder, **shared, progress=True).report())
        return
    evaluation = evaluate_run(
        options.folder,
        **shared,
        deterministic=options.deterministic,
        trust=options.trust,
        progress=True,
    )
    print(evaluation.report())
