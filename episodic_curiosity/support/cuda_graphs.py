"""Functions that work in place, replayed on a GPU as one CUDA graph."""

from collections.abc import Callable

import torch

WARM_UPS = 3  # calls before one is recorded: libraries set themselves up in the first ones


def graph_device(device: torch.device, can_capture: bool = True) -> torch.device | None:
    """The device if it is a GPU, for work that can be captured; else None."""
    return device if device.type == "cuda" and can_capture else None


class Captured:
    """Calls a function of no results that reads and changes tensors of its own.

    Given a GPU, the calls after the first few are replays of a recorded one: whatever is not on
    the device (arguments, counters) is as it was then. Recording goes through the function once
    without computing anything, so its results have to be written into tensors that were there
    before, never bound to new ones.
    """

    def __init__(self, function: Callable[..., None], gpu: torch.device | None) -> None:
        self._function = function
        self._gpu = gpu
        self._graph: torch.cuda.CUDAGraph | None = None
        self._num_calls = 0

    def __call__(self, *arguments: object) -> None:
        if self._gpu is None:
            self._function(*arguments)
            return
        with torch.cuda.device(self._gpu):
            if self._graph is not None:
                self._graph.replay()
            else:
                self._warm_up(*arguments)

    def _warm_up(self, *arguments: object) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._function(*arguments)
        torch.cuda.current_stream().wait_stream(stream)
        self._num_calls += 1
        if self._num_calls >= WARM_UPS:
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):  # records a call and does not make it
                self._function(*arguments)
            self._graph = graph
