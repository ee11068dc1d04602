"""The command `curiosity`."""

import sys

import tyro

from episodic_curiosity import __version__
from episodic_curiosity.doctor import doctor


def main() -> None:
    """Reads the command line; a mistake there is answered in a sentence, not a traceback."""
    if sys.argv[1:] == ["--version"]:
        print(f"curiosity {__version__}")
        return
    commands = tyro.extras.SubcommandApp()
    commands.command(doctor)
    commands.cli(
        prog="curiosity",
        description="Episodic curiosity: reward for what memory could not have reached.",
    )
