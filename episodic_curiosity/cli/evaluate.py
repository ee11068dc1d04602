"""`curiosity evaluate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from episodic_curiosity.cli.arguments import Once, Trust
from episodic_curiosity.worlds.base import Split


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """What `curiosity evaluate` takes."""

    run: tyro.conf.Positional[Path]  # the run's folder
    episodes: int = 100  # at least
    deterministic: Once = False  # the likeliest action instead of a drawn one
    split: Split = "test"  # the levels; those of "test" were never trained on
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU where there is one
    trust: Trust = False


def evaluate(arguments: list[str]) -> None:
    """Plays a trained agent on levels it has never seen."""
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
