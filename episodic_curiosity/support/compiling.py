"""Functions compiled for a GPU once in a process, for tensors of any length or of a few."""

from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

# How networks are built, which takes half a millisecond to write down.
_ARCHITECTURES: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
_SIZES: dict[Hashable, list[int]] = {}  # see `compiled_size`
# Long chains of small operations are worth one kernel; the indices are clamped already.
OPTIONS: dict[str, Any] = {"max_fusion_size": 1000, "assert_indirect_indexing": False}


def compile_varying(
    function: Callable[..., Any],
    *,
    backend: str | Callable[..., Any] = "inductor",
    fixed: tuple[type, ...] = (),
    differentiable: bool = False,
    tuned: bool = True,
) -> Callable[..., Any]:
    """Compiles a function whose tensors may have any length in their first dimension.

    That goes for tensors in (nested) tuples and lists too, but not for arguments of the `fixed`
    types. What it returns may be plain tuples where the function makes named ones. Unless it is
    `differentiable` it runs without gradients, whoever calls: otherwise it would be compiled
    twice. Where little time is spent, several ways to run a kernel need not be `tuned`.
    """
    # torch.compile counts recompilations per code object, and a process may play many tasks.
    own = FunctionType(
        function.__code__.replace(),
        function.__globals__,
        argdefs=function.__defaults__,
        closure=function.__closure__,
    )
    options = None
    if backend == "inductor":
        options = OPTIONS if tuned else OPTIONS | {"triton.autotune_pointwise": False}
    compiled = torch.compile(
        own, backend=backend, fullgraph=True, dynamic=False, options=options
    )

    def call(*arguments: Any) -> Any:
        for argument in arguments:
            if not isinstance(argument, fixed):
                mark_varying(argument)
        with torch.set_grad_enabled(differentiable and torch.is_grad_enabled()):
            return compiled(*arguments)

    return call


def mark_varying(tensors: Any, dim: int = 0) -> None:
    """Says of tensors, in tuples and lists too, that one dimension may be of any length."""
    if isinstance(tensors, Tensor) and tensors.dim() > dim:
        torch._dynamo.maybe_mark_dynamic(tensors, dim)
    elif isinstance(tensors, tuple | list):
        for part in tensors:
            mark_varying(part, dim)


def compiled_size(what: Hashable, wanted: int, *, most_pieces: int = 1) -> int:
    """The best of the sizes that `what` is compiled for, or else the wanted one, then noted.

    A fixed size takes a compiler half as long as one that varies, but every other size as long
    again. So rows are filled up to a larger size, or worked on in pieces of a smaller one.
    """
    sizes = _SIZES.setdefault(what, [])
    larger = [size for size in sizes if size >= wanted]
    if larger:
        return min(larger)
    if sizes and wanted <= max(sizes) * most_pieces:
        return max(sizes)
    sizes.append(wanted)
    return wanted


def compiles(device: torch.device) -> bool:
    """Whether functions are compiled for this device when they are first called."""
    return device.type == "cuda"


@contextmanager
def warming_up(device: torch.device) -> Iterator[None]:
    """Loads meanwhile what the first steps on a GPU would wait for: cuDNN and a compiler."""
    if not compiles(device):
        yield
        return
    with ThreadPoolExecutor(1) as pool:
        warmed_up = pool.submit(_warm_up, device)
        yield
        warmed_up.result()  # raises what went wrong there


def _warm_up(device: torch.device) -> None:
    frames = torch.zeros(2, 8, 8, 8, dtype=torch.bfloat16, device=device)
    compile_varying(_twice)(conv2d(frames, frames))


def _twice(numbers: Tensor) -> Tensor:
    return numbers + numbers


def run_network(network: nn.Module, inputs: Tensor) -> Tensor:
    """What a network makes of a batch; on a GPU compiled, once for all that are built alike."""
    if not inputs.is_cuda:
        return _run(network, inputs)
    if network not in _ARCHITECTURES:
        _ARCHITECTURES[network] = repr(network)
    compiled = _compiled_for(_ARCHITECTURES[network], inputs.shape[1:], inputs.dtype)
    outputs: Tensor = compiled(network, inputs)
    return outputs


@cache
def _compiled_for(*_: object) -> Callable[..., Any]:
    """One for each architecture, shape and dtype: none may be compiled too often."""
    return compile_varying(_run, fixed=(nn.Module,), differentiable=True)


def _run(network: nn.Module, inputs: Tensor) -> Tensor:
    outputs: Tensor = network(inputs)
    return outputs
