"""Argument checks; each error names what was given and what is wanted."""

import difflib
import math
import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

LARGEST_INTEGER = 2**63 - 1  # of a tensor
LARGEST = torch.finfo(torch.float32).max
LARGEST_FEATURE = 1e9  # larger ones overflow in a network, and the bonus is NaN
LONGEST = 100  # characters of a value in a message
LONGEST_TIMEOUT = 1_000_000  # seconds; far more would overflow a wait
TOLERANCE = 1e-3  # of resized frames, about [0, 1]


def printable(text: str) -> str:
    """The text with control characters written out: they could repaint a terminal."""
    return "".join(
        char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text
    )


def short(value: object) -> str:
    """The value in a message: as it is written, or its type if that would be long."""
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return f"an integer of {math.ceil(value.bit_length() * math.log10(2))} digits"
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]!r}..."
    if isinstance(value, Tensor | np.ndarray):
        return f"{_type(value)} of shape {tuple(value.shape)}"
    written = repr(value)
    return written if len(written) <= 2 * LONGEST and "\n" not in written else _type(value)


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raises unless the value is one of the choices."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        wanted = f"{name} must be one of {', '.join(choices)}"
        raise ValueError(f"{wanted}, got {short(value)}{suggestion(value, choices)}")


def suggestion(value: object, choices: Iterable[str]) -> str:
    """Returns " (did you mean x?)" for a choice that is close to the value, else "".

    A choice is close, too, if the value is its last part: rnd means ppo+rnd.
    """
    text, choices = str(value)[:LONGEST], tuple(choices)
    near = difflib.get_close_matches(text, choices, n=1, cutoff=0.75)
    near += [choice for choice in choices if re.split("[/+]", choice)[-1] == text]
    return f" (did you mean {near[0]}?)" if near else ""


def check_type(name: str, value: object, wanted: type) -> None:
    """Raises unless the value is of the wanted type."""
    if not isinstance(value, wanted):
        article = "an" if re.match("[AEIO]|R[A-Z]", wanted.__name__) else "a"  # an RNetwork
        raise TypeError(f"{name} must be {article} {wanted.__name__}, got {_type(value)}")


def check_at_least(name: str, value: Any, least: int) -> None:
    """Raises unless the value is an integer of at least `least`."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {short(value)}")
    if number > LARGEST_INTEGER:
        raise ValueError(f"{name} must be at most {LARGEST_INTEGER}, got {short(value)}")


def check_seed(seed: Any) -> int:
    """Raises unless the value can be a seed; returns it as an int, which torch wants."""
    is_integer = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not is_integer or not 0 <= seed <= LARGEST_INTEGER:
        raise ValueError(f"seed must be an integer from 0 to 2**63 - 1, got {short(seed)}")
    return int(seed)


def check_number(name: str, value: Any, *, above: float = -math.inf) -> None:
    """Raises unless the value is a finite number above the bound, which float32 can hold."""
    kinds = int | float | np.integer | np.floating
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:  # of an integer
        number = math.nan
    if not math.isfinite(number) or not above < number:
        bound = "" if above == -math.inf else f" above {above:g}"
        raise ValueError(f"{name} must be a finite number{bound}, got {short(value)}")
    if abs(number) > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:.2g} in size, got {short(value)}")


def check_timeout(timeout: Any) -> None:
    """Raises unless an answer can be awaited for that many seconds."""
    check_number("timeout", timeout, above=0.0)
    if timeout > LONGEST_TIMEOUT:
        raise ValueError(
            f"timeout must be at most {LONGEST_TIMEOUT:,} seconds, got {timeout:g}"
        )


def check_share(name: str, value: Any) -> None:
    """Raises unless the value is above 0 and at most 1."""
    check_number(name, value)
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {value!r}")


def check_discount(name: str, value: Any) -> None:
    """Raises unless the value is at least 0 and below 1."""
    check_number(name, value)
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}")


def check_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Raises unless the shape is a tuple of positive integers; returns it as one."""
    if not isinstance(shape, tuple | list):
        raise ValueError(
            f"{name} must be a tuple of sizes, such as (4,) or (3, 84, 84), got {short(shape)}"
        )
    for size in shape:
        check_at_least(f"{name}'s sizes", size, 1)
    return tuple(operator.index(size) for size in shape)


def check_size(name: str, size: Any) -> tuple[int, int]:
    """Raises unless `size` is (height, width); returns it as a tuple."""
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise ValueError(f"{name} must be (height, width), got {short(size)}")
    for side in size:
        check_at_least(f"{name}'s sides", side, 1)
    return operator.index(size[0]), operator.index(size[1])


def usable_device(device: torch.device | str) -> torch.device:
    """Returns the device with its index; raises if it cannot be used here."""
    if not isinstance(device, torch.device | str):
        raise TypeError(f"device must be a torch.device or its name, got {short(device)}")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device {short(str(device))} cannot be used here: {reason}") from None


def to_tensor(name: str, value: Any, device: torch.device) -> Tensor:
    """Returns a tensor unchanged; copies an array to the device, float64 as float32."""
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name} must be a tensor or an array, got {_type(value)}")
    if value.dtype.kind not in "buif":
        raise TypeError(f"{name} must be of dtype uint8, float32 or bool, got {value.dtype}")
    dtype = (
        np.dtype(np.float32) if value.dtype.itemsize == 8 and value.dtype.kind == "f" else None
    )
    # The copy is contiguous, writable and in the machine's byte order.
    return torch.from_numpy(np.array(value, dtype or value.dtype.newbyteorder("="))).to(device)


def check_tensor(
    name: str, value: Tensor, shape: tuple[int, ...], device: torch.device
) -> None:
    """Raises unless the value is a tensor of that shape on that device."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {_type(value)}")
    if value.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got {value.layout}")
    if tuple(value.shape) != shape:
        raise ValueError(f"{name} must have shape {shape}, got {tuple(value.shape)}")
    if not _is_on(value.device, device):
        raise ValueError(f"{name} must be on {device}, got a tensor on {value.device}")


def check_actions(name: str, value: Tensor, num_envs: int) -> None:
    """Raises unless the value is one integer per environment, on any device."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} must be a tensor, got {_type(value)}")
    if value.shape != (num_envs,) or value.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"{name} must be an int64 or int32 tensor of shape {(num_envs,)}, "
            f"got {value.dtype} of shape {tuple(value.shape)}"
        )


def check_taken(action: Tensor, like: Tensor, num_actions: int, where: Tensor) -> None:
    """Raises unless these are actions as `like`; on a CPU, their (N,) rows `where` are checked.

    With `num_actions` they are integers below it; else any real numbers.
    """
    check_tensor("action", action, tuple(like.shape), like.device)
    if action.is_complex() or (num_actions and action.is_floating_point()):
        raise TypeError(f"action must be of dtype {like.dtype}, got {action.dtype}")
    if action.device.type != "cpu":
        return
    if num_actions:
        index = action.long()
        wrong = (index < 0) | (index >= num_actions)
    else:
        wrong = ~action.isfinite()
    rows = (wrong.flatten(1).any(dim=1) if wrong.dim() > 1 else wrong) & where
    if rows.any():
        wanted = f"one of 0 .. {num_actions - 1}" if num_actions else "finite"
        row = int(rows.nonzero()[0, 0])
        raise ValueError(
            f"action must be {wanted}, got {short(action[row].tolist())} in row {row}"
        )


def check_mask(name: str, value: Tensor, num_envs: int, device: torch.device) -> None:
    """Raises unless the value is one boolean per environment."""
    check_tensor(name, value, (num_envs,), device)
    if value.dtype != torch.bool:
        raise TypeError(f"{name} must be of dtype bool, got {value.dtype}")


def _is_channels_last(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(wanted) == 3 and shape != wanted and shape == (*wanted[1:], wanted[0])


def check_views(
    name: str,
    view: Tensor,
    view_shape: tuple[int, ...],
    device: torch.device,
    num_views: int | None = None,
    where: Tensor | None = None,
    is_scaled: bool = True,
) -> None:
    """Raises unless the views have the wanted shape, as bytes or floats that `unfit` accepts.

    Floats are checked on a CPU only: on a GPU this would synchronise. Rows outside the mask
    `where` are not. Float frames that are not `is_scaled` may exceed [0, 1].
    """
    if num_views is None:
        num_views = view.shape[0] if isinstance(view, Tensor) and view.dim() else 0
    if isinstance(view, Tensor) and _is_channels_last(tuple(view.shape[1:]), view_shape):
        raise ValueError(
            f"{name} must have shape {(num_views, *view_shape)}, got {tuple(view.shape)}: "
            f"channels come first"
        )
    check_tensor(name, view, (num_views, *view_shape), device)
    if view.dtype not in (torch.uint8, torch.float32):
        raise TypeError(f"{name} must be of dtype uint8 or float32, got {view.dtype}")
    if view.dtype == torch.float32 and device.type == "cpu":
        seen = view if is_scaled else view.flatten(1)
        wrong = unfit(seen)  # (N,)
        rows = (wrong if where is None else wrong & where).nonzero()
        if len(rows):
            row = int(rows[0, 0])
            if not view[row].isfinite().all():
                raise ValueError(f"{name} must be finite, got NaN or infinity in row {row}")
            low, high = view[row].aminmax()
            raise ValueError(
                f"{name} must be {range_of(seen.dim())}, got {low:g} to {high:g} in row {row}"
            )


def unfit(view: Tensor) -> Tensor:
    """(N,) bool, rows of float views with NaN or out of range, which is [0, 1] for frames."""
    most = 1.0 + TOLERANCE if view.dim() == 4 else LARGEST_FEATURE
    least = -TOLERANCE if view.dim() == 4 else -LARGEST_FEATURE
    low, high = view.flatten(1).aminmax(dim=1)
    return ~((low >= least) & (high <= most))  # true for NaN, too


def range_of(num_axes: int) -> str:
    """Describes what `unfit` accepts in views with this number of axes."""
    if num_axes == 4:
        return "bytes, or floats in [0, 1]"
    return f"from {-LARGEST_FEATURE:g} to {LARGEST_FEATURE:g}"


def first_difference(
    found: Mapping[str, Any], wanted: Mapping[str, Tensor], *, has_content: bool = True
) -> str | None:
    """Describes the first difference between saved and wanted tensors; None if equal.

    Only shapes were read where `has_content` is false.
    """
    if missing := sorted(wanted.keys() - found.keys()):
        return f"lacks {len(missing)} of the wanted tensors, first {missing[0]}"
    if extra := sorted(found.keys() - wanted.keys()):
        return f"has {len(extra)} unexpected tensors, first {extra[0]}"
    for name, tensor in wanted.items():
        other = found[name]
        if other.shape != tensor.shape or other.dtype != tensor.dtype:
            return (
                f"holds {name} as {other.dtype} {tuple(other.shape)}, "
                f"wanted {tensor.dtype} {tuple(tensor.shape)}"
            )
        if other.layout != torch.strided:
            return f"holds {name} as {other.layout}, wanted a dense tensor"
        if has_content and other.is_meta:
            return f"holds {name} without content, on the meta device"
    return None


def _is_on(device: torch.device, wanted: torch.device) -> bool:
    """True if the device is the wanted one; "cuda" without an index matches any GPU."""
    return device.type == wanted.type and (wanted.index is None or device.index == wanted.index)


def _type(value: object) -> str:
    return type(value).__name__
