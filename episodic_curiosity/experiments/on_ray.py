"""Runs cells as tasks of a Ray cluster.

If a worker or node dies, its task is retried on any node and resumes from the run's folder.
The folders of results and runs must be visible to every node under the same path, on a file
system with `flock` across machines. Only the holder of a cell's lock writes its result, so that
it is written once, whichever process is killed.
"""

import contextlib
import dataclasses
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from episodic_curiosity.experiments.cells import Cell
from episodic_curiosity.experiments.runner import (
    PATIENCE,
    Outcome,
    RunnerConfig,
    check_cells,
    report,
    run_cell,
)
from episodic_curiosity.experiments.status import run_folder
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.support.checks import check_at_least, check_number
from episodic_curiosity.support.saving import LoadError

LOCAL = "auto"  # address of a cluster on this machine alone, which ends with the program
STORE_BYTES = 100_000_000  # of a local cluster's object store: cells and outcomes are small
LOOPBACK = "127.0.0.1"
# Read when Ray is imported. The second restricts Ray's servers to the loopback interface, as is
# the default on the systems in its name.
LOCAL_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage reports over the network
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
REACH_SECONDS = 5.0
TELL_EVERY = 30.0  # seconds between progress reports


@dataclass(frozen=True, kw_only=True)
class Request:
    """Resources that each cell requests."""

    num_cpus: float = 1.0
    num_gpus: float = 0.0
    num_retries: int = 5  # after the death of a worker or node

    def __post_init__(self) -> None:
        check_number("num_cpus", self.num_cpus, above=0.0)
        if self.num_gpus != 0:
            check_number("num_gpus", self.num_gpus, above=0.0)
        check_at_least("num_retries", self.num_retries, 0)


def run_cells_on_ray(
    cells: Sequence[Cell], settings: RunnerConfig, address: str, request: Request | None = None
) -> list[Outcome]:
    """Runs the missing cells on a cluster; reports progress on standard error.

    Without a request for GPUs, cells run on CPUs even if nodes have GPUs.
    """
    check_cells(cells)
    request = request or Request()
    if settings.device == "cuda" and not request.num_gpus:
        raise ValueError("device cuda needs num_gpus above 0 per cell, got 0")
    settings = dataclasses.replace(
        settings,
        results=settings.results.resolve(),
        runs=settings.runs.resolve(),
        device=settings.device if request.num_gpus else "cpu",
    )
    with _connected(address) as ray:
        _check_resources(ray.cluster_resources(), request, address)
        task = ray.remote(_run).options(
            num_cpus=request.num_cpus,
            num_gpus=request.num_gpus,
            max_retries=request.num_retries,
        )
        under_way = {task.remote(cell, settings): cell for cell in cells}
        return list(_collect(ray, under_way, settings.runs))


def _check_resources(there: Mapping[str, float], request: Request, address: str) -> None:
    """Raises if the cluster lacks the requested resources: Ray would wait forever."""
    for name, wanted in (("CPUs", request.num_cpus), ("GPUs", request.num_gpus)):
        found = there.get(name[:3], 0.0)
        if wanted > found:
            raise ValueError(
                f"a cell needs {wanted:g} {name}, but the Ray cluster at {address} has "
                f"{found:g}"
            )


def _run(cell: Cell, settings: RunnerConfig) -> Outcome:
    """Runs a cell in a worker; retries while a dying worker still holds the cell's lock."""
    deadline = time.monotonic() + PATIENCE
    while True:
        outcome = run_cell(cell, settings)
        if outcome.state != "busy" or time.monotonic() > deadline:
            return outcome
        time.sleep(1.0)


def _collect(ray: Any, under_way: dict[Any, Cell], runs: Path) -> Iterator[Outcome]:
    total = len(under_way)
    while under_way:
        ready, _ = ray.wait(list(under_way), num_returns=1, timeout=TELL_EVERY)
        for reference in ready:
            cell = under_way.pop(reference)
            try:
                outcome: Outcome = ray.get(reference)
            except ray.exceptions.RayError as error:
                reason = str(error).partition("\n")[0]
                outcome = Outcome(cell, "failed", f"failed: {type(error).__name__}: {reason}")
            report(outcome, total - len(under_way), total)
            yield outcome
        if not ready:
            _tell(under_way.values(), runs)


def _tell(cells: Iterable[Cell], runs: Path) -> None:
    """Prints the progress of the running cells."""
    for cell in cells:
        try:
            lines = read_metrics(run_folder(cell, runs))
        except LoadError:  # it has not started
            continue
        if lines:
            steps = f"{lines[-1]['steps']:,} of {cell.key.steps:,} steps"
            print(f"{cell.key.table} {cell.key.label}: {steps}", file=sys.stderr, flush=True)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    if address == LOCAL:
        os.environ |= LOCAL_ENVIRONMENT
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            f"a cluster needs Ray: pip install 'episodic-curiosity[ray]' ({error})"
        ) from None
    with _away_from_current_folder():
        if address == LOCAL:
            ray.init(
                address="local",
                include_dashboard=False,
                object_store_memory=STORE_BYTES,
                _node_ip_address=LOOPBACK,
            )
        else:
            _check_reachable(address)
            try:
                ray.init(address=address)
            except (ConnectionError, ray.exceptions.RayError) as error:
                raise OSError(f"cannot connect to Ray at {address}: {error}") from None
        try:
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def _away_from_current_folder() -> Iterator[None]:
    """Changes to an empty folder, unless this process imports from the current one.

    Ray's workers import from the current folder at the time of connecting: files there could
    shadow modules.
    """
    here = os.getcwd()
    if any(os.path.abspath(entry) == here for entry in sys.path):
        yield
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def _check_reachable(address: str) -> None:
    """Raises immediately if the address does not answer: Ray would try for minutes."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"a cluster's address must be HOST:PORT or {LOCAL}, got {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise OSError(f"there is no Ray cluster at {address} ({error})") from None
