"""`curiosity evaluate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from episodic_curiosity.cli.arguments import Once, Trust
from episodic_curiosity.support.shared import find_folder
from episodic_curiosity.worlds.base import Split


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Options of `curiosity evaluate`."""

    # Of a run, or of an R-network (curiosity fit); or pretrained:NAME.
    folder: tyro.conf.Positional[Path]
    task: str | None = None  # another task; None: the run's. An R-network needs one
    episodes: int = 100  # minimum number of episodes
    r_network: Once = False  # test the R-network of a run instead of its agent
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
        remarks_on,
    )

    folder = find_folder(options.folder)
    shared = {name: getattr(options, name) for name in ("task", "episodes", "split", "device")}
    if options.r_network or holds_r_network_alone(folder):
        if options.task is None:
            raise ValueError(
                f"name the task whose random play the R-network in {options.folder} is tested "
                f"on with --task"
            )
        if options.deterministic:
            raise ValueError(
                "--deterministic is for agents, R-networks are tested on random play"
            )
        print(evaluate_r_network(folder, **shared, progress=True).report())
        return
    evaluation = evaluate_run(
        folder,
        **shared,
        deterministic=options.deterministic,
        trust=options.trust,
        progress=True,
    )
    for remark in remarks_on(folder, trust=options.trust):
        print(remark)
    print(evaluation.report())
