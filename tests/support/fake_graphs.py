"""CUDA graphs on a CPU: a capture records operations without making them, a replay makes them.

What a capture computes holds NaN until the first replay, and asking for a tensor's value
raises, as on a GPU. It knows nothing of streams, of the allocator and of compiled functions.
"""

import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

WAITS = {"aten::_local_scalar_dense", "aten::nonzero", "aten::equal", "aten::is_nonzero"}


class _Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.tape = []  # (operation, arguments, keywords, what it returned)

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = operation._schema
        if schema.name in WAITS:
            raise RuntimeError(f"a CUDA graph cannot hold {operation}: it waits")
        written = [
            args[place] if place < len(args) else kwargs[argument.name]
            for place, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        if written:
            self.tape.append((operation, args, kwargs, None))
            return written[0] if schema.returns else None
        out = operation(*args, **kwargs)
        if any(returned.alias_info is not None for returned in schema.returns):
            return out  # a view
        for tensor in tree_flatten(out)[0]:
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                tensor.fill_(torch.nan)
        self.tape.append((operation, args, kwargs, out))
        return out


class _Graph:
    tape = ()

    @torch.no_grad()
    def replay(self):
        for operation, args, kwargs, out in self.tape:
            new = operation(*args, **kwargs)
            if out is not None:
                for held, made in zip(tree_flatten(out)[0], tree_flatten(new)[0], strict=True):
                    if isinstance(held, torch.Tensor):
                        held.copy_(made)


class _Stream:
    def wait_stream(self, stream):
        pass


@contextlib.contextmanager
def _capture(graph):
    with _Recorder() as recorder:
        yield
    graph.tape = recorder.tape


def install(monkeypatch):
    """`Captured` captures on a CPU from here on, given that as its GPU."""
    fakes = {
        "Stream": _Stream,
        "current_stream": _Stream,
        "stream": contextlib.nullcontext,
        "device": contextlib.nullcontext,
        "synchronize": lambda: None,
        "CUDAGraph": _Graph,
        "graph": _capture,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
