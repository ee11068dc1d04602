"""Files of a run that are damaged at random, and what reads them."""

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import episodic_curiosity as ec
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.runs.metrics_files import read_metrics, read_timing
from episodic_curiosity.runs.record import read_config

READERS: dict[str, Callable[[Path], object]] = {
    "agent.safetensors": ec.load_agent,
    "r_network.safetensors": ec.RNetwork.load,
    "checkpoints/*/state.safetensors": lambda folder: Checkpoints(folder).load_newest(),
    "config.json": read_config,
    "metrics.jsonl": read_metrics,
    "timing.jsonl": read_timing,
}
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


class Damages(NamedTuple):
    """How often damages to a kind of file were refused, and how often not."""

    refused: int
    accepted: int
    tracebacks: list[str]  # errors other than a LoadError of one line


def damage_and_read(folder: Path, pattern: str, num_damages: int, seed: int) -> Damages:
    """Damages the newest file of a name pattern again and again; leaves it as it was."""
    path = sorted(folder.glob(pattern))[-1]
    content, draw = path.read_bytes(), random.Random(f"{seed} {pattern}")
    refused, tracebacks = 0, []
    for _ in range(num_damages):
        path.write_bytes(damaged(content, draw))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)  # back to an earlier checkpoint
                READERS[pattern](folder)
        except (ec.LoadError, RuntimeWarning) as error:
            refused += 1
            if "\n" in str(error):
                tracebacks.append(f"{path.name}: {error}")
        except Exception as error:
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
