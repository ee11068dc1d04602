"""Numba without a configuration from the current folder, and with as many threads as torch.

Every module with a cached kernel uses `cached`. Numba reads ./.numba_config.yaml: in a
folder from a stranger, that could name a cache there, and Numba unpickles its caches.
Environment variables still count.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numba
import torch
from numba.core import config

config._config_fname = ""
config.reload_config()  # type: ignore[no-untyped-call]


def cached(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As `numba.njit` with a cache, but without one if no folder for it can be written."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError as error:
            warnings.warn(
                f"a kernel is compiled at every start, set NUMBA_CACHE_DIR: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
            return numba.njit(**options)(function)

    return compiled


def match_threads() -> None:
    """Lets the next kernel use as many threads as torch does.

    Numba starts one thread per core when first queried, and thereby changes torch's number of
    threads, too. If torch was set to use fewer, every small operation of a network would then
    wait for a thread without a core.
    """
    count = torch.get_num_threads()
    most = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    numba.set_num_threads(min(count, most))
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)
