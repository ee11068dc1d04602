"""The commands that only print information: `curiosity tasks`, `methods` and `doctor`."""

from collections.abc import Callable

import tyro

from episodic_curiosity.bonus import registry
from episodic_curiosity.runs import settings
from episodic_curiosity.worlds.registry import FAMILIES
from episodic_curiosity.worlds.television import PROGRAMMES


def tasks(arguments: list[str]) -> None:
    """Lists the tasks."""
    _read_nothing(tasks, arguments)
    for task, line in settings.known_tasks().items():
        print(f"{task:24} {line}")
    for family, line in settings.OPEN.items():
        if family in FAMILIES:
            print(line)
    print(f"maze/... and dmlab/... with a television: maze/...+{', +'.join(PROGRAMMES)}")


def methods(arguments: list[str]) -> None:
    """Lists the methods and the bonus that each adds to PPO."""
    _read_nothing(methods, arguments)
    for method in registry.methods().values():
        print(f"{method.name:12} {method.line}")


def doctor(arguments: list[str]) -> None:
    """Prints versions, devices and the speed of the bonus on them."""
    _read_nothing(doctor, arguments)
    from episodic_curiosity.cli.doctor import doctor as examine

    examine()


def _read_nothing(command: Callable[[list[str]], None], arguments: list[str]) -> None:
    name, about = command.__name__, command.__doc__
    tyro.cli(lambda: None, args=arguments, prog=f"curiosity {name}", description=about)
