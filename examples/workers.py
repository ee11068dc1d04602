"""Processes of one thread each, side by side on the machine's cores.

Two threads of one process are slower than one as soon as other programs run beside them; two
processes of one thread are not. With one thread a run learns the same agent on every machine
of the same kind.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait

import torch

from episodic_curiosity.support.machine import num_cores

MOST = 2  # an agent's training takes half a gigabyte of memory
PATIENCE = 30.0  # seconds for the last checkpoint of a run whose parent has ended


@contextmanager
def workers() -> Iterator[ProcessPoolExecutor]:
    """A pool of processes; an error in the block ends them, which runs survive.

    After Ctrl-C, which they receive too, it waits for them: a run stops with a checkpoint.
    """
    pool = ProcessPoolExecutor(
        min(MOST, num_cores()), multiprocessing.get_context("spawn"), initializer=_begin
    )
    try:
        yield pool
    except Exception:
        for process in multiprocessing.active_children():
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # training handles it, an idle process ends
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this process when its parent was killed: a run writes its checkpoint before."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)  # training handles it, an idle process ends
    time.sleep(PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)  # it stopped training and has nobody to tell
