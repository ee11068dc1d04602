"""Worker processes that run a world's environments: lockstep, watchdog, restarts.

Frames and numbers go through shared memory, signalled by one byte in each direction. A worker
leads a process group that includes its simulators, and a group that hangs is killed together.
The memory is anonymous and workers monitor their parent, so that a killed parent leaves nothing
behind. Shapes: N environments.
"""

import contextlib
import json
import logging
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from episodic_curiosity.support.checks import check_at_least, check_timeout
from episodic_curiosity.support.machine import check_memory
from episodic_curiosity.worlds.processes.faults import MAX_RESTARTS, FaultLimit
from episodic_curiosity.worlds.processes.worker import (
    BEGIN,
    STEP,
    Board,
    End,
    Fields,
    board_bytes,
)

SCRIPT = Path(__file__).with_name("worker.py")
PATIENCE = 2.0  # seconds that workers get to exit
TRACEBACK = "Traceback (most recent call last):"
GLANCE = 0.002  # seconds between checks that they have
START = 30.0  # seconds that a process has at least for its first answer: it may compile

logger = logging.getLogger(__name__)


class Workers:
    """N environments distributed over processes; their output is on the `board`.

    A worker that dies, or does not answer for `timeout` seconds, is replaced: the episodes of
    its environments end by fault, new ones begin, and a warning is logged. Episodes that had
    already ended keep their result, and an episode that cannot begin is skipped.
    """

    def __init__(
        self,
        engine: tuple[Path, str],
        options: Mapping[str, Any],
        fields: Fields,
        *,
        num_envs: int,
        num_workers: int | None,
        timeout: float,
        pinned: bool,
    ) -> None:
        """`engine` is a file and the name of an `Engine` in it, `options` are its arguments.

        Processes, by default one per core, start with the first `begin`. `pinned` binds each
        worker and its simulators to one core. It helps if simulators are processes: worker and
        simulator take turns, and waking each other across cores costs as much as a step.
        """
        if sys.platform != "linux":
            raise OSError(f"worker processes run on Linux only, this is {sys.platform}")
        check_at_least("num_envs", num_envs, 1)
        cores = sorted(os.sched_getaffinity(0))
        num_workers = len(cores) if num_workers is None else num_workers
        check_at_least("num_workers", num_workers, 1)
        check_timeout(timeout)
        self._timeout = timeout
        what, size = f"a world of {num_envs} environments", board_bytes(num_envs, fields)
        check_memory(what, size, torch.device("cpu"), "lower `num_envs` or the frames")
        memory = os.memfd_create("environments")
        os.truncate(memory, size)
        self.board = Board(memory, num_envs, fields)
        self._deadline = 0.0  # for the answers to the latest command
        self.num_faults = 0  # episodes so far that were lost or skipped
        self._passed_over = np.zeros(num_envs, np.bool_)  # in the current step
        self._fault_limit = FaultLimit(num_envs)
        settings = {
            "engine": [str(engine[0].resolve()), engine[1]],
            "options": dict(options),
            "fields": dict(fields),
            "num_envs": num_envs,
            "memory": memory,
            "parent": os.getpid(),
            "path": [os.path.abspath(entry) for entry in sys.path],
        }
        count = min(num_workers, num_envs)
        bounds = [num_envs * number // count for number in range(count + 1)]
        self._crew = []
        for number in range(count):
            core = cores[(os.getpid() + number) % len(cores)] if pinned else None
            rows = slice(bounds[number], bounds[number + 1])
            self._crew.append(_Worker({**settings, "core": core}, rows))
        self._dismissal = weakref.finalize(self, _dismiss, self._crew, memory, os.getpid())

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers; each is also the id of its simulators' process group."""
        return [worker.process.pid for worker in self._crew if worker.process is not None]

    def begin(self) -> None:
        """Starts the episode of `board.seed` in every environment."""
        self._check_open()
        try:
            for worker in self._crew:
                if worker.process is None:
                    worker.start()
        except OSError:
            self.close()  # some have started, others have not
            raise
        self._ask(BEGIN)
        for worker, failure in self._await().items():
            logger.warning("%s: %s; restarted", worker, failure)

    def step(self) -> NDArray[np.uint8]:
        """Takes `board.action` in every environment; returns the (N,) values of `End`."""
        self.begin_step()
        return self.end_step()

    def begin_step(self) -> None:
        """Starts the step with `board.action`, and returns before it is complete."""
        self._check_open()
        self._ask(STEP)

    def end_step(self) -> NDArray[np.uint8]:
        """Awaits what `begin_step` began; returns the (N,) values of `End`."""
        self._check_open()
        failures = self._await()
        if not failures and not self.board.end.any():  # as nearly always
            self._fault_limit.make_up()
            return self.board.end.copy()
        self._rest()
        faulty = (self.board.end == End.BY_FAULT) | self._passed_over
        broken = self._fault_limit.first_beyond(faulty)
        if faulty.any():
            self.num_faults += int(faulty.sum())
            for worker in self._crew:
                if faulty[worker.rows].any():
                    failure = failures.get(worker) or worker.last_words()
                    if broken in range(worker.rows.start, worker.rows.stop):
                        self.close()
                        raise ChildProcessError(f"{worker} fails again and again: {failure}")
                    self._report(worker, failure)
        return self.board.end.copy()

    def close(self) -> None:
        """Ends all processes; safe to call again."""
        self._dismissal()

    def _check_open(self) -> None:
        if not self._dismissal.alive:
            raise RuntimeError("this world is closed")

    def _ask(self, command: bytes) -> None:
        """Sends a command to all workers."""
        self.board.end.fill(End.NOT_YET)
        self.board.is_beginning.fill(False)
        self._passed_over.fill(False)
        self._deadline = time.monotonic() + self._timeout
        try:
            for worker in self._crew:
                worker.ask(command)
        except BaseException:
            self.close()  # some have begun, others have not
            raise

    def _await(self) -> dict["_Worker", str]:
        """Awaits the answers of all workers; returns the failures of those it replaced."""
        failures = {}
        try:
            for worker in self._crew:
                if failure := worker.wait(self._deadline):
                    failures[worker] = failure
                    self._replace(worker)
        except BaseException:
            self.close()  # a late answer would be taken for the next one
            raise
        return failures

    def _replace(self, worker: "_Worker") -> None:
        """Starts a new process and new episodes, in up to MAX_RESTARTS attempts."""
        board, rows = self.board, worker.rows
        played = (board.end[rows] == End.NOT_YET) & ~board.rests[rows]
        lost = rows.start + np.flatnonzero(played)
        for name, field in board.present.items():
            board.final[name][lost] = field[lost]
        board.reward[lost], board.end[lost] = 0.0, End.BY_FAULT
        board.reward[rows][board.rests[rows]] = 0.0  # a slice: no copy
        self._rest()
        for _ in range(MAX_RESTARTS):
            worker.stop(patience=0.0)
            # A seed that breaks the simulator is not tried again.
            board.seed[rows] += board.is_beginning[rows]
            self._passed_over[rows] |= board.is_beginning[rows]
            board.is_beginning[rows] = False
            worker.start()
            worker.ask(BEGIN)
            if not (failure := worker.wait(time.monotonic() + self._timeout)):
                return
        raise ChildProcessError(f"{worker} cannot be started: {failure}")

    def _rest(self) -> None:
        """Stops stepping environments whose final episode has ended."""
        self.board.rests |= self.board.is_final & (self.board.end != End.NOT_YET)

    def _report(self, worker: "_Worker", failure: str) -> None:
        """Logs which episodes were lost or skipped."""
        words = f"{worker}: {failure}; restarted"
        for what, where in (
            ("losing the episodes of", self.board.end == End.BY_FAULT),
            ("skipping episodes that could not begin in", self._passed_over),
        ):
            if where[worker.rows].any():
                numbers = worker.rows.start + np.flatnonzero(where[worker.rows])
                words += f", {what} {numbers.tolist()}"
        logger.warning(words)


class _Worker:
    """One worker process with its socket and folder."""

    def __init__(self, settings: Mapping[str, Any], rows: slice) -> None:
        self.rows = rows
        self.process: subprocess.Popen[bytes] | None = None
        self._settings = settings
        self._folder = Path()
        self._signals = socket.socket()
        self._answers = select.poll()
        self._log: BinaryIO | None = None  # what process and simulators print
        self._said_before = 0  # bytes of it, at the last command
        self._starts_by = 0.0  # the deadline of the first answer

    def __str__(self) -> str:
        return f"the worker of environments {self.rows.start} to {self.rows.stop - 1}"

    def start(self) -> None:
        """Starts the process in a temporary folder, as leader of a process group."""
        self._starts_by = time.monotonic() + START
        self._folder = Path(tempfile.mkdtemp(prefix="episodic-curiosity-"))
        self._signals.close()
        self._signals, theirs = socket.socketpair()
        self._answers = select.poll()
        self._answers.register(self._signals, select.POLLIN)
        self.forget()
        self._log = log = (self._folder / "log").open("w+b", buffering=0)
        self._said_before = 0
        memory = self._settings["memory"]
        settings = {
            **self._settings,
            "rows": [self.rows.start, self.rows.stop],
            "folder": str(self._folder),
            "socket": theirs.fileno(),
        }
        with theirs:
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", str(SCRIPT), json.dumps(settings)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(memory, theirs.fileno()),
                    start_new_session=True,
                    env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
                )
            except OSError:  # no memory, or too many processes
                shutil.rmtree(self._folder, ignore_errors=True)
                raise

    def ask(self, command: bytes) -> None:
        """Sends a command; `wait` reports failures."""
        # What it has printed since its start belongs to its first command.
        if self._log is not None and not self._starts_by:
            self._said_before = os.fstat(self._log.fileno()).st_size
        with contextlib.suppress(OSError):
            self._signals.send(command)

    def wait(self, deadline: float) -> str:
        """Awaits the answer; returns why there is none, or an empty string."""
        patience = max(max(deadline, self._starts_by) - time.monotonic(), GLANCE)
        self._starts_by = 0.0
        if not self._answers.poll(1000.0 * patience):
            return "no answer in time"
        with contextlib.suppress(OSError):
            if self._signals.recv(1):
                return ""
        return f"died, {self.last_words()}"

    def last_words(self) -> str:
        """The error since the last command, or else the last line of the simulators."""
        written = b""
        if self._log is not None:  # without moving the place where the process writes
            log = self._log.fileno()
            written = os.pread(
                log, os.fstat(log).st_size - self._said_before, self._said_before
            )
        lines = [line for line in written.decode(errors="replace").split("\n") if line.strip()]
        # Simulators may print after an error: Lab prints the maze of the next episode.
        _, *tracebacks = "\n".join(lines).split(TRACEBACK)
        if tracebacks:
            lines = [line for line in tracebacks[-1].split("\n")[1:] if line[:1] != " "][:1]
        return f"last output {lines[-1].strip()!r}" if lines else "no output"

    def dismiss(self) -> None:
        """Asks the process to end."""
        self._signals.close()

    def stop(self, patience: float) -> None:
        """Ends the process and its simulators, by force after `patience` seconds."""
        self.dismiss()
        if self.process is None:
            return
        deadline = time.monotonic() + patience
        while not self._has_ended() and time.monotonic() < deadline:
            time.sleep(GLANCE)
        # Not reaped yet, so its process id cannot have been reused.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def forget(self) -> None:
        """Closes the log of a process that has ended."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _has_ended(self) -> bool:
        assert self.process is not None
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.process.pid, options) is not None


def _dismiss(crew: list[_Worker], memory: int, owner: int) -> None:
    """Ends all workers together; does nothing in a fork of the owner."""
    if os.getpid() != owner:
        return
    for worker in crew:
        worker.dismiss()
    deadline = time.monotonic() + PATIENCE
    for worker in crew:
        worker.stop(max(deadline - time.monotonic(), 0.0))
        worker.forget()
    os.close(memory)
