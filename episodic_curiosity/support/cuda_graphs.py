"""In-place functions replayed on a GPU as one CUDA graph."""

from collections.abc import Callable

import torch

WARM_UPS = 3  # calls before the capture: libraries initialise themselves in the first ones


def graph_device(device: torch.device, can_capture: bool = True) -> torch.device | None:
    """The device if it is a GPU and the work can be captured, else None."""
    return device if device.type == "cuda" and can_capture else None


class Captured:
    """Replays an in-place function as a CUDA graph after three warm-up calls.

    Without a GPU every call is a plain call. In a replay, everything that is not on the device
    (arguments, counters) keeps its value from the capture. The capture runs the function once
    without computing anything, so results must be written into existing tensors.
    """

    def __init__(self, function: Callable[..., None], gpu: torch.device | None) -> None:
        self._function = function
        self._gpu = gpu
        self._graph: torch.cuda.CUDAGraph | None = None
        self._num_calls = 0

    @property
    def has_graph(self) -> bool:
        """True if there is a graph, or will be, which refers to the tensors of its capture."""
        return self._gpu is not None

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
            with torch.cuda.graph(graph):  # records a call without executing it
                self._function(*arguments)
            self._graph = graph
