"""Functions that work in place, replayed on a GPU as one CUDA graph."""

from collections.abc import Callable

import torch

WARM_UPS = 3  # calls before one is recorded: libraries set themselves up in the first ones


class Captured:
    """Calls a function of no results that reads and changes tensors of its own.

    Where `captures` is true, which wants a GPU, the calls after the first few are replays of
    a recorded one: whatever is not on the device (arguments, counters) is as it was then.
    """

    def __init__(self, function: Callable[..., None], *, captures: bool) -> None:
        self._function = function
        self._captures = captures
        self._graph: torch.cuda.CUDAGraph | None = None
        self._num_calls = 0

    def __call__(self, *arguments: object) -> None:
        if self._graph is not None:
            self._graph.replay()
        elif not self._captures:
            self._function(*arguments)
        else:
            self._warm_up(*arguments)

    def _warm_up(self, *arguments: object) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._function(*arguments)
        torch.cuda.current_stream().wait_stream(stream)
        self._num_calls += 1
        if self._num_calls == WARM_UPS:
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):  # records a call and does not make it
                self._function(*arguments)
            self._graph = graph
