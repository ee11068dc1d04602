"""The commands that list tasks and methods: `curiosity tasks`, `curiosity methods`."""

import textwrap
from collections.abc import Callable

import tyro

from episodic_curiosity.bonus import registry
from episodic_curiosity.worlds.registry import families, known_tasks
from episodic_curiosity.worlds.television import PROGRAMMES


def tasks(arguments: list[str]) -> None:
    """Lists the tasks."""
    read_nothing(tasks, arguments)
    known = families().values()
    for task, line in known_tasks().items():
        print(f"{task:24} {line}")
    for family in known:
        if family.open_tasks is not None:
            print(f"{family.name}/{family.open_tasks.pattern}: {family.open_tasks.line}")
    for family in known:
        for name, members in family.task_sets.items():
            print(f"{name}, a set of {len(members)} tasks {family.name}/...:")
            listed = textwrap.fill(", ".join(members), width=94)
            print(textwrap.indent(listed, "  "))
    unswitched = [name for name, programme in PROGRAMMES.items() if not programme.switched]
    for television, programmes in (("any", PROGRAMMES), ("unswitched", unswitched)):
        names = [f"{family.name}/..." for family in known if family.television == television]
        print(f"{', '.join(names)} with a television: +{', +'.join(programmes)}")


def methods(arguments: list[str]) -> None:
    """Lists the methods and the bonus that each adds to PPO."""
    read_nothing(methods, arguments)
    for method in registry.methods().values():
        print(f"{method.name:12} {method.line}")


def read_nothing(command: Callable[[list[str]], None], arguments: list[str]) -> None:
    """Parses the command line of a command without options, for its --help."""
    name, about = command.__name__, command.__doc__
    tyro.cli(lambda: None, args=arguments, prog=f"curiosity {name}", description=about)
