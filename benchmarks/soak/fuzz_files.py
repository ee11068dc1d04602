"""Forged files: intact, with valid fingerprints, and with odd content.

Damage is caught by fingerprints; this is what a stranger, or another release, could have saved.
"""

import copy
import json
import math
import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch import Tensor

import episodic_curiosity as ec
from benchmarks.soak.judging import Verdicts
from benchmarks.soak.odd import odd_plain, odd_tensor
from episodic_curiosity.experiments.results import read_result
from episodic_curiosity.runs.build import load_bonus
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.learner import Learner, restore
from episodic_curiosity.runs.metrics_files import CHECKSUM, METRICS, TIMING, read_metrics
from episodic_curiosity.runs.record import read_config, write_config
from episodic_curiosity.runs.remarks import outcome
from episodic_curiosity.runs.stored_run import read_run
from episodic_curiosity.runs.train import train
from episodic_curiosity.show.report.grids import lay_out
from episodic_curiosity.show.report.results_page import results_page
from episodic_curiosity.support import saving
from episodic_curiosity.worlds.registry import make_world
from episodic_curiosity.worlds.vizdoom.scenario_file import KEYS, read_scenario
from tests.runs.tiny_runs import tiny_run
from tests.show.report.fixture import write

TASK = "gym/CartPole-v1"
Fuzz = Callable[[random.Random, Verdicts], None]


@contextmanager
def forgers(folder: Path) -> Iterator[dict[str, Fuzz]]:
    """Writes a run and results to forge; yields the targets by name."""
    run, other = tiny_run("ppo+eco", TASK, num_updates=4), tiny_run("ppo+rnd", TASK)
    train(run, folder / "eco", progress=False)
    train(other, folder / "rnd", progress=False)
    world = make_world(TASK, num_envs=run.world.num_envs, seed=0)
    learner = Learner.make(run, world, folder / "parts")
    newest = Checkpoints(folder / "eco").load_newest()
    assert newest is not None
    path = Checkpoints(folder / "eco").path(newest.number)
    result = write(folder / "results", "table1", "ppo", "sparse", 9.0)
    yield {
        "config.json": lambda draw, verdicts: _config(folder / "eco", draw, verdicts),
        "agent.safetensors": _weights(folder / "eco", "agent", ec.load_agent),
        "r_network.safetensors": _weights(folder / "eco", "r_network", ec.RNetwork.load),
        "bonus.safetensors": _weights(
            folder / "rnd", "bonus", lambda where: load_bonus(other, world, where)
        ),
        "checkpoint": lambda draw, verdicts: _checkpoint(
            _forged(newest.state, draw), lambda state: restore(learner, state, path), verdicts
        ),
        "metrics.jsonl": lambda draw, verdicts: _metrics(run, folder / "eco", draw, verdicts),
        "results": lambda draw, verdicts: _results(result, draw, verdicts),
        "scenario.cfg": lambda draw, verdicts: _scenario(folder, draw, verdicts),
    }
    world.close()


def _config(folder: Path, draw: random.Random, verdicts: Verdicts) -> None:
    config = read_config(folder)
    forged = _forged(config, draw)
    try:
        write_config(folder, forged)
    except ValueError:  # NaN
        return
    verdicts.judge(
        f"config.json {_changed(config, forged)}",
        lambda: read_run(folder, trust=draw.random() < 0.5),
    )
    write_config(folder, config)


def _weights(folder: Path, kind: str, load: Callable[[Path], object]) -> Fuzz:
    config, weights = saving.read(folder, kind)
    there = folder / f"forged {kind}"

    def fuzz(draw: random.Random, verdicts: Verdicts) -> None:
        forged, tensors = config, dict(weights)
        if config and draw.random() < 0.6:
            forged = _forged(config, draw)
        else:
            name = draw.choice(sorted(tensors))
            tensor = odd_tensor(draw, tuple(tensors[name].shape))
            if tensor.is_meta or tensor.is_sparse or tensor.is_complex():
                return
            tensors[name] = tensor.detach().clone()
        try:
            saving.save(there, kind, tensors, forged)
        except ValueError:  # NaN in the config
            return
        verdicts.judge(f"{kind} {_changed(config, forged)}", lambda: load(there))

    return fuzz


def _checkpoint(state: Any, load: Callable[[Any], object], verdicts: Verdicts) -> None:
    verdicts.judge("checkpoint", lambda: load(state))


def _metrics(run: Run, folder: Path, draw: random.Random, verdicts: Verdicts) -> None:
    before = {name: (folder / name).read_bytes() for name in (METRICS, TIMING)}
    lines = [[json.loads(line) for line in part.splitlines()] for part in before.values()]
    _odd_item(draw.choice(lines[draw.randrange(2)]), draw)
    packed = [json.dumps(line).encode() + b"\n" for line in lines[0]]
    if draw.random() < 0.9:
        for timing, line in zip(lines[1], packed, strict=True):
            timing[CHECKSUM] = zlib.crc32(line)
    (folder / METRICS).write_bytes(b"".join(packed))
    (folder / TIMING).write_text("".join(json.dumps(line) + "\n" for line in lines[1]))

    def read() -> None:
        read_metrics(folder)
        outcome(run, folder)

    verdicts.judge("metrics", read)
    for name, content in before.items():
        (folder / name).write_bytes(content)


def _results(path: Path, draw: random.Random, verdicts: Verdicts) -> None:
    before, result = path.read_bytes(), read_result(path)
    field = draw.choice(fields(result)).name
    if field == "key":
        key = draw.choice(result.key._fields)
        forged = replace(result, key=result.key._replace(**{key: odd_plain(draw)}))
    else:
        value = getattr(result, field)
        odd = _forged(value, draw) if isinstance(value, dict | list) else odd_plain(draw)
        forged = replace(result, **{field: odd})
    try:
        content = forged.to_bytes()
    except (ValueError, TypeError, AttributeError):  # it could not be written by anyone
        return
    path.write_bytes(content)
    folder = path.parents[1]
    verdicts.judge(f"results, {field}", lambda: results_page(lay_out(folder), folder))
    path.write_bytes(before)


def _scenario(folder: Path, draw: random.Random, verdicts: Verdicts) -> None:
    lines = [
        f"{draw.choice(list(KEYS.values()))} {draw.choice(['=', '+=', '', '= {'])} "
        f"{draw.choice(['1', 'true', '{ ATTACK }', str(odd_plain(draw)), '}', '{'])}"
        for _ in range(draw.randrange(1, 4))
    ]
    path = folder / "scenario.cfg"
    path.write_bytes("\n".join(lines).encode(errors="replace"))
    verdicts.judge(f"scenario {lines}", lambda: read_scenario(path, folder))


def _forged(tree: Any, draw: random.Random) -> Any:
    """A copy with one to three odd values."""
    tree = copy.deepcopy(tree)
    for _ in range(draw.randrange(1, 4)):
        at = tree
        while inner := [item for item in _items(at) if isinstance(item, dict | list) and item]:
            if draw.random() < 0.2:
                break
            at = draw.choice(inner)
        _odd_item(at, draw)
    return tree


def _odd_item(at: Any, draw: random.Random) -> None:
    """Replaces, removes or adds an item in place."""
    if not at:
        return
    key = draw.choice(sorted(at)) if isinstance(at, dict) else draw.randrange(len(at))
    match draw.choice(["replace", "replace", "replace", "remove", "add"]):
        case "remove":
            del at[key]
        case "add" if isinstance(at, dict):
            at[draw.choice(["steps", "x", ""])] = odd_plain(draw)
        case "add":
            at.append(odd_plain(draw))
        case _ if isinstance(at[key], Tensor) and draw.random() < 0.7:
            at[key] = odd_tensor(draw, tuple(at[key].shape))
        case _:
            at[key] = odd_plain(draw)


def _items(at: Any) -> list[Any]:
    return list(at.values()) if isinstance(at, dict) else list(at)


def _changed(before: Any, after: Any) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        return ", ".join(
            f"{key}: {_changed(before.get(key), after.get(key))}"
            for key in before | after
            if not _same(before.get(key), after.get(key))
        )[:150]
    return f"{after!r:.60}"


def _same(one: Any, other: Any) -> bool:
    is_nan = isinstance(one, float) and math.isnan(one)
    return one is other or (type(one) is type(other) and (is_nan or bool(one == other)))
