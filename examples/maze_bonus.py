"""The bonus that an agent is paid at new places of a maze, and at known ones.

    python examples/maze_bonus.py RUN --episodes 8 --aggregate tenth_largest --turns-from 500

RUN is the folder of a run of ppo+ec or ppo+eco in a maze without reward, or pretrained:NAME.
Its agent plays on validation levels. A place is known if the agent was within 75 units of it
more than 30 steps before; its direction, too, if the agent then looked within 40 degrees of it.
The first 300 steps of an episode, in which memories fill, have a row of their own.

The last line compares the bonus with coverage: the correlation, over all intervals of 50 steps,
of the mean bonus with the number of cells that are newly covered.

Shapes: N episodes side by side, T steps.
"""

import argparse
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args, get_type_hints

import torch
from torch import Tensor

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.bonus.coverage import VisitedCells
from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.runs.build import load_bonus
from episodic_curiosity.runs.stored_run import read_run
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.shared import find_folder
from episodic_curiosity.worlds.maze.world import MazeWorld
from episodic_curiosity.worlds.registry import make_world

NEAR, ALIKE, LONG_AGO = 75.0, 40.0, 30  # units, degrees, steps
STEPS, FILLING = 1_790, 300  # an episode without reward has 1,800
INTERVAL = 50  # steps
KINDS = ("new place", "known place, new direction", "known place and direction")
CHANGES = ("aggregate", "memory_capacity", "novelty_threshold", "replacement")
TURN = "look left"


class Play(NamedTuple):
    """What one agent did and was paid, step by step."""

    bonus: Tensor  # (T, N), as a share of the largest
    kind: Tensor  # (T, N), index into KINDS
    is_new_cell: Tensor  # (T, N) bool


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(arguments)
    changes = {name: getattr(options, name) for name in CHANGES}
    changes = {name: value for name, value in changes.items() if value is not None}
    try:
        played = play(options.run, options.episodes, changes, options.turns_from)
    except (LoadError, ValueError) as error:
        sys.exit(f"maze_bonus: {error}")
    print(f"{'':28}of the steps   mean bonus   paid above 0")
    later, kind = played.bonus[FILLING:], played.kind[FILLING:]
    for number, name in enumerate(KINDS):
        print(row(name, later[kind == number], later.numel()))
    print(row(f"first {FILLING} steps", played.bonus[:FILLING], played.bonus.numel()))
    print("The mean bonus is a share of the largest that a step can be paid.")
    found = correlation(by_interval(played.bonus), by_interval(played.is_new_cell.float()))
    print(f"Correlation with newly covered cells, intervals of {INTERVAL} steps: {found:.2f}")


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("run", help="folder of a run, or pretrained:NAME")
    reader.add_argument("--episodes", type=int, default=8, help="played side by side")
    reader.add_argument(
        "--turns-from", type=int, default=STEPS, help="step from which the agent only turns"
    )
    kinds = get_type_hints(EpisodicConfig)
    for name in CHANGES:
        option = f"--{name.replace('_', '-')}"
        if choices := get_args(kinds[name]):
            reader.add_argument(option, choices=choices, help="default: the run's")
        else:
            reader.add_argument(option, type=kinds[name], help="default: the run's")
    options = reader.parse_args(arguments)
    if options.episodes < 1:
        reader.error(f"--episodes must be at least 1, got {options.episodes}")
    return options


def row(name: str, paid: Tensor, out_of: int) -> str:
    share = f"{name:28}{paid.numel() / out_of:12.0%}"
    if not paid.numel():
        return f"{share}{'-':>13}{'-':>15}"
    return f"{share}{paid.mean():13.0%}{(paid > 0).double().mean():15.0%}"


def play(run_name: str, num_episodes: int, changes: Mapping[str, Any], turns_from: int) -> Play:
    """Plays a stored agent, paid by its bonus with changes to the config."""
    folder = find_folder(run_name, "agent")
    run = read_run(folder)
    world = make_world(
        run.task,
        num_envs=num_episodes,
        seed=0,
        device=torch.device("cpu"),
        split="validation",
        **run.world.options("test"),
    )
    if not isinstance(world, MazeWorld):
        raise ValueError(f"only mazes are known well enough, got a run of {run.task}")
    bonus = load_bonus(run, world, folder)
    if type(bonus) is not EpisodicBonus:  # ppo+ec-rnd multiplies it
        raise ValueError(f"only ppo+ec and ppo+eco have a memory of views, got {run.method}")
    config = dataclasses.replace(bonus.config, **changes)
    bonus = EpisodicBonus(bonus.r_network, num_episodes, config, seed=run.seed)
    agent = Agent.load(folder, torch.device("cpu"))
    turn = torch.full((num_episodes,), world.spec.action_names.index(TURN))
    cells = VisitedCells.of(world.spec)
    torch.manual_seed(0)  # the same actions, so that bonuses can be compared
    step = world.reset()
    bonus.begin(step.view)
    paid, new, places, yaws = [], [], [], []
    for time in range(STEPS):
        step = world.step(turn if time >= turns_from else agent.act(step.observation))
        if step.first.any():
            raise ValueError(f"an episode must last {STEPS:,} steps, got {time + 1:,}")
        scene = world.scene()
        paid.append(bonus.bonus(step.view))
        new.append(cells.visit(step.position, step.first))
        places.append(scene.position.clone())
        yaws.append(scene.yaw.clone())
    kind = kinds_of_place(torch.stack(places), torch.stack(yaws))
    return Play(torch.stack(paid) / config.largest, kind, torch.stack(new))


def kinds_of_place(places: Tensor, yaws: Tensor) -> Tensor:
    """The index into KINDS, (T, N), of (T, N, 2) places and (T, N) directions in degrees."""
    kinds = torch.zeros(yaws.shape, dtype=torch.int64)
    for time in range(LONG_AGO, len(places)):
        before = slice(0, time - LONG_AGO + 1)
        near = (places[before] - places[time]).norm(dim=2) < NEAR  # (t, N)
        turned = ((yaws[before] - yaws[time] + 180) % 360 - 180).abs()
        kinds[time] = near.any(dim=0).long() + (near & (turned < ALIKE)).any(dim=0)
    return kinds


def by_interval(values: Tensor) -> Tensor:
    """The mean (T // INTERVAL, N) of each interval of (T, N) values."""
    whole = len(values) // INTERVAL * INTERVAL
    return values[:whole].unflatten(0, (-1, INTERVAL)).mean(dim=1)


def correlation(first: Tensor, second: Tensor) -> Tensor:
    """Pearson's correlation () over all elements; nan if one of them is constant."""
    return torch.corrcoef(torch.stack([first.flatten(), second.flatten()]))[0, 1]


if __name__ == "__main__":
    main()
