"""Functions compiled once for any number of environments and of levels."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

# Long chains of small operations are worth one kernel; the indices are clamped already.
OPTIONS: dict[str, Any] = {"max_fusion_size": 1000, "assert_indirect_indexing": False}


def compile_varying(
    function: Callable[..., Any], *, backend: str = "inductor", fixed: tuple[type, ...] = ()
) -> Callable[..., Any]:
    """Compiles a function whose tensors may have any length in their first dimension.

    That goes for tensors in (nested) tuples and lists too, but not for arguments of the `fixed`
    types. What it returns may be plain tuples where the function makes named ones.
    """
    # torch.compile counts recompilations per code object, and a process may play many tasks.
    own = FunctionType(function.__code__.replace(), function.__globals__)
    options = OPTIONS if backend == "inductor" else None
    compiled = torch.compile(
        own, backend=backend, fullgraph=True, dynamic=False, options=options
    )

    def call(*arguments: Any) -> Any:
        for argument in arguments:
            if not isinstance(argument, fixed):
                mark_varying(argument)
        return compiled(*arguments)

    return call


def mark_varying(tensors: Any, dim: int = 0) -> None:
    """Says of tensors, in tuples and lists too, that one dimension may be of any length."""
    if isinstance(tensors, Tensor) and tensors.dim() > dim:
        torch._dynamo.maybe_mark_dynamic(tensors, dim)
    elif isinstance(tensors, tuple | list):
        for part in tensors:
            mark_varying(part, dim)
