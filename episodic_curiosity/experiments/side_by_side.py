"""Measures cells in several processes that share this machine and its GPU.

All of them are given the same cells: locks keep them apart. Runs with small batches leave most
of a GPU idle, so under CUDA's multi-process service several of them together do more steps/s
than one.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from episodic_curiosity.experiments.cells import Cell
from episodic_curiosity.experiments.runner import RunnerConfig, check_cells
from episodic_curiosity.support.machine import find_device, free_bytes, num_cores

LOOK_EVERY, TELL_EVERY = 1.0, 30.0  # seconds
MOST_RESTARTS = 5  # of all processes together, after they were killed
# Rough memory of one run on its device. Only a number of processes that cannot work is refused.
BYTES_PER_PROCESS = 1_500_000_000
SERVICE = "nvidia-cuda-mps-control"
FOLDERS = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")


def run_side_by_side(
    cells: Sequence[Cell], settings: RunnerConfig, num_processes: int, command: Sequence[str]
) -> list[Cell]:
    """Measures the missing cells in that many processes; returns those that are still missing.

    `command` starts one process, which measures the cells that no other is measuring. Progress
    is reported on standard error. A process that is killed is started again and resumes its
    run. Each has a log in the folder of runs.
    """
    check_cells(cells)
    left = [cell for cell in cells if settings.status(cell).is_to_measure]
    num_processes = min(num_processes, len(left))
    _check_memory(num_processes, settings)
    settings.runs.mkdir(parents=True, exist_ok=True)
    logs = [settings.runs / f"side-by-side-{number}.log" for number in range(num_processes)]
    with _service(settings), contextlib.ExitStack() as opened:
        # SIGTERM unwinds as Ctrl-C does, so that no worker is left behind.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        opened.callback(signal.signal, signal.SIGTERM, before)
        workers = []
        for log in logs:
            workers.append(_Worker(command, log, num_processes))
            opened.callback(workers[-1].stop)
        _watch(workers, left, settings)
    return [cell for cell in cells if settings.status(cell).is_to_measure]


class _Worker:
    """One of the processes, in a new session: Ctrl-C does not reach it."""

    def __init__(self, command: Sequence[str], log: Path, num_workers: int) -> None:
        self.log = log
        self._command = command
        threads = max(1, num_cores() // num_workers)
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)  # as here
        self._environment = {"OMP_NUM_THREADS": str(threads), **os.environ, "PYTHONPATH": path}
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        """Ends the process, after a checkpoint."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()


def _watch(workers: Sequence[_Worker], cells: list[Cell], settings: RunnerConfig) -> None:
    """Reports until all workers have ended; starts killed ones again."""
    left, restarts, told_at = list(cells), 0, time.monotonic()
    if workers:
        names = ", ".join(str(worker.log) for worker in workers)
        _say(f"{len(left)} cells in {len(workers)} processes; their logs: {names}")
    is_over = False
    while not is_over:
        is_over = all(worker.process.poll() is not None for worker in workers)
        for worker in workers:
            code = worker.process.poll()
            if code is not None and code < 0 and restarts < MOST_RESTARTS:
                restarts, is_over = restarts + 1, False
                _say(f"{worker.log}: ended by signal {-code}, started again")
                worker.start()
        for cell in [cell for cell in left if settings.status(cell).state == "done"]:
            left.remove(cell)
            name = f"{cell.key.table} {cell.key.label}"
            _say(f"[{len(cells) - len(left)}/{len(cells)}] {name}: done")
        if time.monotonic() - told_at > TELL_EVERY:
            told_at = time.monotonic()
            _tell(left, settings)
        if not is_over:
            time.sleep(LOOK_EVERY)


def _tell(cells: Sequence[Cell], settings: RunnerConfig) -> None:
    """Prints the progress of the runs that have begun."""
    shares = {cell.key.label: settings.status(cell).steps / cell.key.steps for cell in cells}
    if begun := [f"{label} {share:.0%}" for label, share in shares.items() if share]:
        _say(", ".join(begun))


def _check_memory(num_processes: int, settings: RunnerConfig) -> None:
    device = find_device(settings.device)
    free = free_bytes(device)
    wanted = num_processes * BYTES_PER_PROCESS
    if free is not None and wanted > free:
        raise ValueError(
            f"{num_processes} runs side by side need about {wanted / 1e9:.1f} GB, {device} has "
            f"{free / 1e9:.1f} GB free: try --side-by-side {max(1, free // BYTES_PER_PROCESS)}"
        )


@contextlib.contextmanager
def _service(settings: RunnerConfig) -> Iterator[None]:
    """Runs CUDA's multi-process service for the block, on a GPU where none runs yet."""
    if find_device(settings.device).type != "cuda" or FOLDERS[0] in os.environ:
        yield
        return
    if shutil.which(SERVICE) is None:
        _say(f"{SERVICE} is not installed: the processes take turns on the GPU")
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= dict.fromkeys(FOLDERS, folder)
        try:
            subprocess.run([SERVICE, "-d"], check=True)
            yield
        finally:
            subprocess.run([SERVICE], input=b"quit\n", check=False)
            for name in FOLDERS:
                del os.environ[name]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
