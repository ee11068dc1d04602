"""`curiosity watch`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from episodic_curiosity.cli.arguments import Once, Trust
from episodic_curiosity.show.film.config import FilmConfig


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """Options of `curiosity watch`."""

    # The run's folder, or pretrained:NAME.
    run: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="RUN")] = None
    out: Path  # the film: .gif or .mp4
    random: Once = False  # film an untrained agent on --task instead of a run
    task: str | None = None  # its task, with the settings of --preset cpu
    trust: Trust = False
    film: Annotated[FilmConfig, tyro.conf.arg(name="")] = field(default_factory=FilmConfig)


def watch(arguments: list[str]) -> None:
    """Films an agent on levels it has never seen."""
    options = tyro.cli(
        WatchOptions,
        args=arguments,
        prog="curiosity watch",
        description=watch.__doc__,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    if options.random != (options.task is not None) or options.random == (
        options.run is not None
    ):
        raise ValueError("give either a run's folder or --random --task TASK")
    from episodic_curiosity.show.film.watch import watch_run, watch_untrained

    if options.run is not None:
        film = watch_run(
            options.run, options.out, options.film, trust=options.trust, progress=True
        )
    else:
        assert options.task is not None
        film = watch_untrained(options.task, options.out, options.film, progress=True)
    print(film.report())
