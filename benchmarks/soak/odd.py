"""Odd values: numbers, types, shapes and contents that nobody should give."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

INTEGERS = (0, -1, 1, 2, 3, 7, 100, 2**31, 2**63, -(2**63), 10**9, 10**18, 10**400)
FLOATS = (0.0, -0.0, 0.5, -0.5, 1.0, 1e38, 1e300, 5e-324, 1e-30, float("nan"), float("inf"))
CONTENTS = (0.0, 0.5, 1.0, 255.0, -1.0, 1e38, 1e-40, float("nan"), float("inf"))  # of tensors
TEXTS = (
    "",
    "ppo",
    "maze/sparse",
    "\0",
    "a" * 2000,
    "../x",
    "é\u202e",
    "1e3",
    "None",
    "cuda:99",
)
DTYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.bool, torch.complex64,
)  # fmt: skip


def odd_plain(draw: random.Random) -> Any:
    """A value that JSON can hold."""
    return draw.choice(
        [
            lambda: draw.choice(INTEGERS),
            lambda: draw.choice(FLOATS),
            lambda: draw.choice(TEXTS),
            lambda: draw.choice([True, False, None]),
            lambda: [odd_plain(draw) for _ in range(draw.randrange(3))],
            lambda: {draw.choice(TEXTS): odd_plain(draw)},
            lambda: -draw.choice(FLOATS),
            lambda: draw.randrange(-5, 300),
        ]
    )()


def odd_value(draw: random.Random) -> Any:
    """A value of any type."""
    return draw.choice(
        [
            lambda: odd_plain(draw),
            lambda: odd_plain(draw),
            lambda: tuple(odd_plain(draw) for _ in range(draw.randrange(4))),
            lambda: np.array(odd_shape(draw, ()), dtype=np.float32),
            lambda: np.float64(draw.choice(FLOATS)),
            lambda: np.int64(draw.randrange(-3, 9)),
            lambda: odd_tensor(draw, (2, 3)),
            lambda: draw.choice(DTYPES),
            lambda: Path("nowhere"),
            lambda: b"\xff",
            lambda: object(),
            lambda: int,
            lambda: {1, 2},
        ]
    )()


def odd_shape(draw: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape near the given one: axes swapped, dropped, added, resized."""
    sizes = list(shape)
    for _ in range(draw.randrange(1, 3)):
        at = draw.randrange(len(sizes) + 1)
        match draw.choice(["drop", "add", "resize", "swap", "keep"]):
            case "drop":
                del sizes[at : at + 1]
            case "add":
                sizes.insert(at, draw.choice([0, 1, 2, 5]))
            case "resize" if at < len(sizes):
                sizes[at] = draw.choice([0, 1, 2, sizes[at] + 1])
            case "swap":
                draw.shuffle(sizes)
    return tuple(sizes)


def odd_tensor(draw: random.Random, shape: tuple[int, ...]) -> Tensor:
    """A tensor of a shape near the given one, of any type and content."""
    tensor = torch.zeros(odd_shape(draw, shape) if draw.random() < 0.6 else shape)
    tensor += draw.choice(CONTENTS)
    if tensor.numel() and draw.random() < 0.3:
        tensor.view(-1)[draw.randrange(tensor.numel())] = draw.choice(CONTENTS)
    if draw.random() < 0.6:
        tensor = tensor.to(draw.choice(DTYPES))
    match draw.choice(["", "", "", "", "sparse", "meta", "grad", "strided", "expanded"]):
        case "sparse":
            return tensor.to_sparse()
        case "meta":
            return tensor.to("meta")
        case "grad" if tensor.is_floating_point():
            return tensor.requires_grad_()
        case "strided" if tensor.dim() > 1:
            return tensor.transpose(0, -1)
        case "expanded":
            return tensor.new_zeros(()).expand(tensor.shape)
    return tensor
