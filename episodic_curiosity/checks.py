"""Errors are part of the interface: each names what was given and what is wanted."""

from collections.abc import Iterable

import torch
from torch import Tensor


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raises unless the value is one of the choices."""
    choices = tuple(choices)
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_at_least(name: str, value: int, least: int) -> None:
    """Raises unless the value is a whole number not below `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def check_tensor(
    name: str, value: Tensor, shape: tuple[int, ...], device: torch.device
) -> None:
    """Raises unless the value is a tensor of that shape on that device."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    if tuple(value.shape) != shape:
        raise ValueError(f"{name} must have shape {shape}, got {tuple(value.shape)}")
    if value.device != device:
        raise ValueError(f"{name} must be on {device}, got a tensor on {value.device}")


def check_mask(name: str, value: Tensor, num_envs: int, device: torch.device) -> None:
    """Raises unless the value is one boolean per environment."""
    check_tensor(name, value, (num_envs,), device)
    if value.dtype != torch.bool:
        raise TypeError(f"{name} must be of dtype bool, got {value.dtype}")


def check_views(
    name: str,
    view: Tensor,
    view_shape: tuple[int, ...],
    device: torch.device,
    num_views: int | None = None,
) -> None:
    """Raises unless these are observations of that shape, as bytes or floats.

    Not-a-number is looked for on a CPU only: on a GPU the answer would have to be waited for.
    """
    if not isinstance(view, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(view).__name__}")
    if num_views is None:
        num_views = view.shape[0] if view.dim() else 0
    check_tensor(name, view, (num_views, *view_shape), device)
    if view.dtype not in (torch.uint8, torch.float32):
        raise TypeError(f"{name} must be of dtype uint8 or float32, got {view.dtype}")
    if view.dtype == torch.float32 and device.type == "cpu" and not view.isfinite().all():
        row = int((~view.isfinite()).flatten(1).any(dim=1).nonzero()[0, 0])
        raise ValueError(f"{name} must be finite, got NaN or infinity in row {row}")
