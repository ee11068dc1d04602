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

    run: tyro.conf.Positional[Path]  # the run's folder
    episodes: int = 100  # minimum number of episodes
    deterministic: Once = False  # take the most likely action instead of sampling
    split: Split = "test"  # the set of levels; "test" was never trained on
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU if available
    trust: Trust = False


def evaluate(arguments: list[str]) -> None:
    """Evaluates a trained agent on levels it has never seen."""
    options = tyro.cli(
        EvaluateOptions, args=arguments, prog="curiosity evaluate", description=evaluate.__doc__
    )
    from episodic_curiosity.runs.evaluate import evaluate_run

    evaluation = evaluate_run(
        options.run,
        episodes=options.episodes,
        split=options.split,
        deterministic=options.deterministic,
        device=options.device,
        trust=options.trust,
        progress=True,
    )
    print(evaluation.report())
