"""Any module as the embedder of an R-network.

Shapes: B views, D embedding.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn


def embedding_size_of(embedder: nn.Module, view_shape: tuple[int, ...]) -> int:
    """D of a custom embedder, found by trying it."""
    view = torch.zeros(2, *view_shape, device=_device_of(embedder))
    was_training = embedder.training
    with torch.no_grad():
        found = embedder.eval()(view)
    embedder.train(was_training)
    check_embedding(found, view)
    return int(found.shape[1])


def check_embedding(found: Any, view: Tensor, size: int | None = None) -> None:
    """Raises unless a custom embedder made (B, D) float32 of (B, ...) views."""
    if isinstance(found, Tensor):
        is_fit = found.dim() == 2 and len(found) == len(view) and found.dtype == torch.float32
        if is_fit and size in (None, found.shape[1]):
            return
        got = f"{found.dtype} {tuple(found.shape)}"
    else:
        got = type(found).__name__
    raise ValueError(
        f"the embedder must map {tuple(view.shape)} to torch.float32 "
        f"({len(view)}, {'embedding size' if size is None else size}), got {got}"
    )


def _device_of(module: nn.Module) -> torch.device:
    return next(module.parameters(), torch.zeros(0, device="cpu")).device


def another(embedder: nn.Module) -> nn.Module:
    """A copy with other weights, where layers can draw them."""
    other = copy.deepcopy(embedder)
    with torch.device(_device_of(embedder)):  # loading may have chosen the meta device
        for layer in other.modules():
            if callable(reset := getattr(layer, "reset_parameters", None)):
                reset()
    return other
