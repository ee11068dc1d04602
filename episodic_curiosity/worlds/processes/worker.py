"""A worker: a process that runs the simulators of some of a world's environments.

This file and an engine's are run by path, outside the package, so that a worker does not import
torch, only NumPy and the simulator.
Shapes: N environments of the world, over all workers.
"""

import contextlib
import importlib
import json
import mmap
import os
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from enum import IntEnum
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

BEGIN, STEP, DONE = b"B", b"S", b"D"  # commands to a worker, and its answer
ALIGNMENT = 64
PARENT_CHECKS = 0.2  # seconds between checks that the parent is alive
REMOVALS = 1000  # attempts: a simulator writes a file or two while it ends

Fields = Mapping[str, tuple[Sequence[int], str]]  # name: shape and dtype for one environment
Row = dict[str, NDArray[Any]]
ASKED: Fields = {
    "action": ((), "int64"),
    "seed": ((), "uint32"),
    "last": ((), "bool"),
    "is_final": ((), "bool"),
    "rests": ((), "bool"),
}
ANSWERED: Fields = {
    "reward": ((), "float32"),
    "end": ((), "uint8"),
    "is_beginning": ((), "bool"),
}


class End(IntEnum):
    """How a step ended the episode, if it did."""

    NOT_YET = 0
    BY_TASK = 1
    BY_CLOCK = 2
    BY_FAULT = 3  # the simulator or the worker died; a new one has begun a new episode


class Engine(Protocol):
    """Interface of one simulator; an exception from any method means that it is broken.

    A worker calls `Engine(**options)` for each of its environments, in the worker's folder.
    """

    def begin(self, seed: int) -> None:
        """Starts the episode of a seed; starts the simulator if it is not running."""

    def act(self, action: int) -> tuple[float, bool]:
        """Takes one action; returns the reward and whether the task has ended."""

    def observe(self, row: Row) -> None:
        """Writes all fields of the current observation in place; not called after the end."""

    def close(self) -> None:
        """Ends the simulator, whatever its state; `begin` may start it again."""


class Board:
    """Memory shared by a world and its workers: arrays of N rows, one per environment.

    The world writes `action`, `seed` (of the next episode to begin), `last` (truncate the
    episode after this step), `is_final` (begin no episode after this one) and `rests` (no
    episode is played); workers write the rest. `is_beginning` stays true where an episode could
    not begin.
    """

    def __init__(self, memory: int, num_envs: int, fields: Fields) -> None:
        """`memory` is the descriptor of a file of `board_bytes` bytes."""
        mapped = mmap.mmap(memory, board_bytes(num_envs, fields))
        offset = 0

        def arrays(fields: Fields) -> dict[str, NDArray[Any]]:
            nonlocal offset
            made: dict[str, NDArray[Any]] = {}
            for name, (shape, dtype) in fields.items():
                made[name] = np.ndarray((num_envs, *shape), dtype, mapped, offset)
                offset += _aligned(made[name].nbytes)
            return made

        asked, answered = arrays(ASKED), arrays(ANSWERED)
        self.action, self.seed, self.last, self.is_final, self.rests = asked.values()
        self.reward, self.end, self.is_beginning = answered.values()
        self.present = arrays(fields)
        self.final = arrays(fields)


def board_bytes(num_envs: int, fields: Fields) -> int:
    """The size of a board in bytes."""
    return sum(
        _aligned(num_envs * prod(shape) * np.dtype(dtype).itemsize)
        for part in (ASKED, ANSWERED, fields, fields)
        for shape, dtype in part.values()
    )


class Player:
    """Runs one environment, a row of the board."""

    def __init__(self, engine: Engine, board: Board, row: int) -> None:
        self.engine = engine
        self._board, self._row = board, row
        self._present = {name: field[row, ...] for name, field in board.present.items()}
        self._final = {name: field[row, ...] for name, field in board.final.items()}

    def begin(self) -> None:
        """Starts the next episode; a broken simulator is restarted once."""
        if self._board.rests[self._row]:
            return
        self._board.is_beginning[self._row] = True
        try:
            self._begin()
        except Exception:
            traceback.print_exc()
            self.engine.close()
            self._begin()
        self._board.is_beginning[self._row] = False

    def step(self) -> None:
        """Takes one action and starts the next episode if one ends.

        If the end has no observation, the previous one is the final one. The result is on the
        board before the next episode begins, which may fail.
        """
        board, row = self._board, self._row
        if board.rests[row]:
            board.reward[row] = 0.0
            return
        end = End.BY_CLOCK if board.last[row] else End.NOT_YET
        try:
            reward, has_ended = self.engine.act(int(board.action[row]))
            if has_ended:
                end = End.BY_TASK
            else:
                self.engine.observe(self._present)
        except Exception:
            traceback.print_exc()
            self.engine.close()
            reward, end = 0.0, End.BY_FAULT
        if end is not End.NOT_YET:
            for name, field in self._present.items():
                self._final[name][...] = field
        board.reward[row], board.end[row] = reward, end
        if end is not End.NOT_YET and not board.is_final[row]:
            self.begin()

    def _begin(self) -> None:
        self.engine.begin(int(self._board.seed[self._row]))
        self.engine.observe(self._present)


def serve(settings: Mapping[str, Any]) -> None:
    """Executes commands until the other side of the socket is closed.

    Errors are not handled: the parent reads the log and cleans up.
    """
    folder = settings["folder"]
    os.chdir(folder)
    if settings["core"] is not None:
        os.sched_setaffinity(0, {settings["core"]})
    for inherited in (settings["memory"], settings["socket"]):
        # A simulator that outlives this process must not keep the socket open.
        os.set_inheritable(inherited, False)
    watch = threading.Thread(target=_die_with, args=(settings["parent"], folder), daemon=True)
    watch.start()
    signals = socket.socket(fileno=settings["socket"])
    board = Board(settings["memory"], settings["num_envs"], settings["fields"])
    make = _find(*settings["engine"])
    players = [
        Player(make(**settings["options"]), board, row) for row in range(*settings["rows"])
    ]
    take_turns = settings["core"] is not None and os.sched_getscheduler(0) == os.SCHED_OTHER
    with contextlib.suppress(ConnectionError):
        while command := signals.recv(1):
            if take_turns:
                _schedule(os.SCHED_BATCH)
            for player in players:
                if command == BEGIN:
                    player.begin()
                else:
                    player.step()
            if take_turns:
                _schedule(os.SCHED_OTHER)  # the next command is to wake this process at once
            signals.sendall(DONE)
    for player in players:
        player.engine.close()
    remove(folder)


def _schedule(policy: int) -> None:
    """Sets the policy of this process, and of simulators that it starts.

    A process that is woken interrupts the one that has woken it, on the same core. That one
    still holds the lock of the message, so both switch twice as often. SCHED_BATCH does not
    interrupt.
    """
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.sched_setscheduler(0, policy, os.sched_param(0))


def _die_with(parent: int, folder: str) -> None:
    """Kills this process and its simulators once the parent has ended.

    Runs in a thread, because a frozen simulator blocks everything else.
    """
    while os.getppid() == parent:
        time.sleep(PARENT_CHECKS)
    remove(folder)
    os.killpg(0, signal.SIGKILL)


def remove(folder: str) -> None:
    """Removes a folder that a simulator may still write to, in up to REMOVALS attempts.

    A new file makes an attempt fail. Once the folder is removed, no file can be created in it.
    """
    for _ in range(REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return


def _find(file: str, name: str) -> Any:
    """Imports the engine class from a file.

    The file's folder becomes a package outside ours, which would import torch: an engine
    imports from its folder by `from .name import ...`.
    """
    package = ModuleType("engines")
    package.__path__ = [str(Path(file).parent)]
    sys.modules["engines"] = package
    return getattr(importlib.import_module(f"engines.{Path(file).stem}"), name)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


if __name__ == "__main__":
    given = cast(dict[str, Any], json.loads(sys.argv[1]))
    sys.path[:] = given["path"]
    serve(given)
