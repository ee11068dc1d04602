"""Numba without a configuration from the current folder, and with as many threads as torch.

Every module with a cached kernel imports this one. Numba reads ./.numba_config.yaml: in a
folder from a stranger, that could name a cache there, and Numba unpickles its caches.
Environment variables still count.
"""

import numba
import torch
from numba.core import config

config._config_fname = ""
config.reload_config()  # type: ignore[no-untyped-call]


def match_threads() -> None:
    """Lets the next kernel use as many threads as torch does.

    Numba starts its threads, as many as there are cores, when it is first asked about them, and
    thereby changes torch's number, too: where torch was told to use fewer, every small
    operation of a network would then wait for a thread that has no core.
    """
    count = torch.get_num_threads()
    most = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    numba.set_num_threads(min(count, most))
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)
