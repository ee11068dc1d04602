"""Files that are damaged at random, and what reads them."""

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import episodic_curiosity as ec
from benchmarks.soak.judging import is_refusal
from episodic_curiosity.experiments.results import load_results, read_measured
from episodic_curiosity.runs.build import REPLAY, load_bonus
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.runs.learner import Learner, restore
from episodic_curiosity.runs.metrics_files import read_metrics, read_timing
from episodic_curiosity.runs.record import read_config
from episodic_curiosity.runs.train import train
from episodic_curiosity.worlds.registry import make_world
from episodic_curiosity.worlds.vizdoom.scenario_file import read_scenario
from tests.runs.tiny_runs import NUM_ENVS, tiny_run
from tests.show.report.fixture import write

TASK = "gym/CartPole-v1"  # whose frames are in a file
SCENARIO = """# a scenario
living_reward = -0.0001
episode_timeout = 2100
doom_map = map01
available_buttons = { TURN_LEFT TURN_RIGHT
  MOVE_FORWARD }
render_decals = false
"""
TOKENS = [
    b"NaN",
    b"1" + b"0" * 400,
    b"-1",
    b"null",
    b"[" * 2000,
    b'"',
    b"{}",
    b"\xff\xfe",
    b"\0",
]
KINDS = (
    "agent.safetensors", "r_network.safetensors", "bonus.safetensors", "checkpoint",
    "config.json", "metrics.jsonl", "timing.jsonl", "replay.bin", "result", "result's timing",
    "scenario.cfg",
)  # fmt: skip


class Reader(NamedTuple):
    """A file, and the call that reads it."""

    path: Path
    read: Callable[[], object]


class Damages(NamedTuple):
    """How often damages to a kind of file were refused, and how often not."""

    refused: int
    accepted: int
    tracebacks: list[str]  # errors that are no sentence of the package's


def make_files(folder: Path) -> dict[str, Reader]:
    """Writes files of every kind."""
    eco, rnd = folder / "eco", folder / "rnd"
    run, other = tiny_run("ppo+eco", TASK, num_updates=4), tiny_run("ppo+rnd", TASK)
    train(run, eco, progress=False)
    train(other, rnd, progress=False)
    world = make_world(TASK, num_envs=NUM_ENVS, seed=0)  # in this process: nothing to close
    newest = Checkpoints(eco).load_newest()
    assert newest is not None
    newest_path = Checkpoints(eco).path(newest.number)
    learner = Learner.make(run, world, eco)
    result = write(folder / "results", "table1", "ppo", "sparse", 9.0)
    timing = result.with_name(result.stem + ".timing.json")
    scenario = folder / "scenario.cfg"
    scenario.write_text(SCENARIO)

    def read_results() -> None:
        if problems := load_results(folder / "results").problems:
            raise ec.LoadError(problems[0].reason)

    return {
        "agent.safetensors": Reader(eco / "agent.safetensors", lambda: ec.load_agent(eco)),
        "r_network.safetensors": Reader(
            eco / "r_network.safetensors", lambda: ec.RNetwork.load(eco)
        ),
        "bonus.safetensors": Reader(
            rnd / "bonus.safetensors", lambda: load_bonus(other, world, rnd)
        ),
        "checkpoint": Reader(newest_path / "state.safetensors", Checkpoints(eco).load_newest),
        "config.json": Reader(eco / "config.json", lambda: read_config(eco)),
        "metrics.jsonl": Reader(eco / "metrics.jsonl", lambda: read_metrics(eco)),
        "timing.jsonl": Reader(eco / "timing.jsonl", lambda: read_timing(eco)),
        "replay.bin": Reader(eco / REPLAY, lambda: restore(learner, newest.state, newest_path)),
        "result": Reader(result, read_results),
        "result's timing": Reader(timing, lambda: read_measured(result)),
        "scenario.cfg": Reader(scenario, lambda: read_scenario(scenario, folder)),
    }


def damage_and_read(kind: str, reader: Reader, num_damages: int, seed: int) -> Damages:
    """Damages a file again and again; leaves it as it was."""
    path = reader.path
    content, draw = path.read_bytes(), random.Random(f"{seed} {kind}")
    refused, tracebacks = 0, []
    for _ in range(num_damages):
        path.write_bytes(damaged(content, draw))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)  # back to an earlier checkpoint
                reader.read()
        except Exception as error:
            # A result's problem is read, not raised; a warning is not raised by a statement.
            if is_refusal(error) or (
                isinstance(error, ec.LoadError | RuntimeWarning) and "\n" not in str(error)
            ):
                refused += 1
            else:
                tracebacks.append(f"{path.name}: {type(error).__name__}: {error}")
    path.write_bytes(content)
    return Damages(refused, num_damages - refused - len(tracebacks), tracebacks)


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Cuts, flips, overwrites or inserts; half of the time near the beginning."""
    end = len(content) if draw.random() < 0.5 else min(len(content), 3000)
    place = draw.randrange(end)
    before, after = content[:place], content[place:]
    match draw.choice(["cut", "flip", "overwrite", "insert", "drop"]):
        case "cut":
            return before
        case "flip":
            return before + bytes([after[0] ^ 1 << draw.randrange(8)]) + after[1:]
        case "overwrite":
            token = draw.choice(TOKENS)
            return before + token + after[len(token) :]
        case "insert":
            return before + draw.choice(TOKENS) + after
        case _:
            return before + after[draw.randrange(1, 40) :]
