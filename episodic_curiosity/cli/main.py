"""The command `curiosity`."""

import sys
from collections.abc import Callable, Sequence

from episodic_curiosity.cli.doctor import doctor
from episodic_curiosity.cli.errors import MISTAKEN, call, stop
from episodic_curiosity.cli.evaluate import evaluate
from episodic_curiosity.cli.fit import fit
from episodic_curiosity.cli.lists import methods, tasks
from episodic_curiosity.cli.report import report
from episodic_curiosity.cli.table import table
from episodic_curiosity.cli.train import train
from episodic_curiosity.cli.watch import watch
from episodic_curiosity.support.checks import suggestion
from episodic_curiosity.support.version import __version__

COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "train": train,
    "fit": fit,
    "evaluate": evaluate,
    "table": table,
    "report": report,
    "watch": watch,
    "tasks": tasks,
    "methods": methods,
    "doctor": doctor,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command; a mistake in the arguments prints one line, not a traceback."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name == "--version":
        print(f"curiosity {__version__}")
    elif name in ("-h", "--help"):
        print(_help())
    elif name not in COMMANDS:
        meant = suggestion(name, COMMANDS)
        choices = ", ".join(COMMANDS)
        stop(MISTAKEN, f"there is no command {name!r}{meant}; choose one of {choices}")
    else:
        call(COMMANDS[name], rest)


def _help() -> str:
    lines = [
        "Episodic curiosity: a bonus for observations far from memory.",
        "",
        "usage: curiosity COMMAND [OPTIONS]",
        "       curiosity COMMAND --help",
        "",
    ]
    for name, command in COMMANDS.items():
        summary = (command.__doc__ or "").partition("\n")[0].rstrip(".")
        lines.append(f"  {name:10} {summary[0].lower()}{summary[1:]}")
    lines += [
        "",
        "  curiosity train --task maze/no-reward --method ppo+eco --preset cpu --seed 0",
        "  curiosity evaluate runs/maze-no-reward__ppo_eco__s0",
    ]
    return "\n".join(lines)
