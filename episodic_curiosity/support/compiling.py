"""Functions compiled for a GPU once per process, for dynamic or a few fixed lengths."""

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, wraps
from types import FunctionType
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

P = ParamSpec("P")
T = TypeVar("T")

# The repr() of each network, which takes half a millisecond.
_ARCHITECTURES: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
_SIZES: dict[Hashable, list[int]] = {}  # see `compiled_size`
_FIRST_LENGTHS: dict[Hashable, Hashable] = {}  # see `fused_in_training`
# Fuses long chains of small operations; skips bounds checks, as indices are already clamped.
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

    This includes tensors in (nested) tuples and lists, but not arguments of the `fixed` types.
    Named tuples may be returned as plain ones. Unless `differentiable`, it runs without
    gradients in any context: otherwise it would be compiled twice. `tuned=False` skips
    autotuning, for functions that take little time.
    """
    # torch.compile limits recompilations per code object, and a process may run many tasks.
    own = FunctionType(
        function.__code__.replace(),
        function.__globals__,
        argdefs=function.__defaults__,
        closure=function.__closure__,
    )
    options = None
    if backend == "inductor":
        # Policy heads and losses are in float32 on purpose.
        warnings.filterwarnings("ignore", "TensorFloat32 tensor cores", UserWarning)
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


def fused(function: Callable[P, T]) -> Callable[P, T]:
    """Decorates a function of tensors: on a GPU it is compiled, to a few kernels.

    Tensors may have any length in their first dimension, and may be changed in place. Modules
    are distinguished by their `repr`. Other arguments are constants, which must be hashable.
    There are no gradients. On a CPU, and inside a compiled function, it is called as it is.
    """
    return _fused(function, differentiable=False)


def fused_in_training(function: Callable[P, T]) -> Callable[P, T]:
    """As `fused`, with gradients, and faster for the first lengths that it is called with."""
    return _fused(function, differentiable=True)


def _fused(function: Callable[P, T], differentiable: bool) -> Callable[P, T]:
    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        if named:
            raise TypeError(f"{function.__name__} takes no arguments by name, got {min(named)}")
        if torch.compiler.is_compiling() or not _is_on_gpu(arguments):
            return function(*arguments)  # type: ignore[call-arg]
        variant, lengths = _variant(arguments), _lengths(arguments)
        first = _FIRST_LENGTHS.setdefault((function, variant), lengths)
        is_fixed = differentiable and lengths == first
        compiled = _fused_for(function, variant, differentiable, is_fixed)
        result: T = compiled(*arguments)
        return result

    return call


def _is_on_gpu(arguments: Iterable[object]) -> bool:
    """True if the first tensor, which may be in a tuple, is on a GPU."""
    for each in arguments:
        if isinstance(each, Tensor):
            return compiles(each.device)
        if isinstance(each, tuple | list) and _is_on_gpu(each):
            return True
    return False


def _variant(argument: Any) -> Hashable:
    """The key of a compiled function: dtypes, shapes and flags; lengths above 1 are equal."""
    if isinstance(argument, Tensor):
        flags = argument.requires_grad, argument.is_inference(), argument.is_contiguous()
        is_short = argument.dim() > 0 and len(argument) < 2
        kind = argument.dtype, argument.device, argument.dim(), argument.shape[1:]
        return *kind, *flags, is_short and len(argument)
    if isinstance(argument, tuple | list):
        return tuple(_variant(part) for part in argument)
    if isinstance(argument, nn.Module):
        learns = tuple(weight.requires_grad for weight in argument.parameters())
        return architecture(argument), argument.training, learns
    constant: Hashable = argument
    return constant


def _lengths(argument: Any) -> Hashable:
    """The first dimensions of all tensors."""
    if isinstance(argument, Tensor):
        return argument.shape[:1]
    if isinstance(argument, tuple | list):
        return tuple(_lengths(part) for part in argument)
    return None


@cache
def _fused_for(
    function: Callable[..., Any], _: Hashable, differentiable: bool, is_fixed: bool
) -> Callable[..., Any]:
    """One compiled function per variant: torch stops recompiling after 8."""
    fixed: tuple[type, ...] = (object,) if is_fixed else (nn.Module,)
    return compile_varying(function, fixed=fixed, differentiable=differentiable)


def forget_fused() -> None:
    """Forgets what `fused` functions were compiled to, as a new process does."""
    _fused_for.cache_clear()
    _FIRST_LENGTHS.clear()


def architecture(network: nn.Module) -> str:
    """The layers of a network; those of equal architecture share compiled functions."""
    if network not in _ARCHITECTURES:
        _ARCHITECTURES[network] = repr(network)
    return _ARCHITECTURES[network]


def mark_varying(tensors: Any, dim: int = 0) -> None:
    """Marks one dimension of tensors, also in tuples and lists, as dynamic."""
    if isinstance(tensors, Tensor) and tensors.dim() > dim:
        torch._dynamo.maybe_mark_dynamic(tensors, dim)
    elif isinstance(tensors, tuple | list):
        for part in tensors:
            mark_varying(part, dim)


def compiled_size(what: Hashable, wanted: int, *, most_pieces: int = 1) -> int:
    """Returns a size that `what` is already compiled for, else records and returns `wanted`.

    A fixed size compiles in half the time of a dynamic one, but every further size compiles
    again. So rows are padded to a larger size, or processed in pieces of a smaller one.
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
    """True if functions are compiled for this device when first called."""
    return device.type == "cuda"


@contextmanager
def warming_up(device: torch.device) -> Iterator[None]:
    """Loads cuDNN and the compiler in a thread, so that the first GPU steps start faster."""
    if not compiles(device):
        yield
        return
    with ThreadPoolExecutor(1) as pool:
        warmed_up = pool.submit(_warm_up, device)
        yield
        warmed_up.result()  # re-raises the thread's exception


def _warm_up(device: torch.device) -> None:
    frames = torch.zeros(2, 8, 8, 8, dtype=torch.bfloat16, device=device)
    compile_varying(_twice)(conv2d(frames, frames))


def _twice(numbers: Tensor) -> Tensor:
    return numbers + numbers


def run_network(network: nn.Module, inputs: Tensor) -> Tensor:
    """Runs a network on a batch; on a GPU compiled, once per architecture."""
    if torch.compiler.is_compiling() or not compiles(inputs.device):
        return _run(network, inputs)
    compiled = _compiled_for(architecture(network), inputs.shape[1:], inputs.dtype)
    outputs: Tensor = compiled(network, inputs)
    return outputs


@cache
def _compiled_for(*_: object) -> Callable[..., Any]:
    """One function per key: torch stops recompiling after 8 variants."""
    return compile_varying(_run, fixed=(nn.Module,), differentiable=True)


def _run(network: nn.Module, inputs: Tensor) -> Tensor:
    outputs: Tensor = network(inputs)
    return outputs
