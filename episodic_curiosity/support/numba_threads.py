"""Sets Numba's number of threads to torch's without changing torch's."""

import numba
import torch


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
