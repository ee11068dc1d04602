"""Tensors in the format of safetensors: described before they are read, written as a stream.

A file has the length of its JSON header in 8 bytes, the header with the dtype, shape and place
of every tensor, and the bytes of the tensors.
"""

import itertools
import json
import os
import struct
from collections.abc import Iterator, Mapping
from typing import BinaryIO

import torch
from torch import Tensor

from episodic_curiosity.support.strict_json import parse_json

Packed = bytes | memoryview

# In the order of the library, which writes the last ones first: all are then aligned.
DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "F32": torch.float32,
    "F64": torch.float64,
    "I64": torch.int64,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
PLACES = {dtype: place for place, dtype in enumerate(DTYPES.values())}
METADATA = "__metadata__"
# Errors of reading JSON that is none, or has other keys and types than expected.
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, OverflowError)


def pack(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Iterator[Packed]:
    """Returns the parts of a file; tensors are copied one at a time, those of a CPU not."""
    for name, tensor in tensors.items():
        if tensor.dtype not in NAMES:
            raise TypeError(f"{name} must be of dtype {', '.join(DTYPES)}, got {tensor.dtype}")
    names = sorted(tensors, key=lambda name: (-PLACES[tensors[name].dtype], name))
    header: dict[str, object] = {METADATA: dict(metadata)}
    end = 0
    for name in names:
        tensor = tensors[name]
        begin, end = end, end + tensor.numel() * tensor.element_size()
        dtype, shape = NAMES[tensor.dtype], list(tensor.shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    packed = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    packed += b" " * (-len(packed) % 8)
    start = struct.pack("<Q", len(packed)) + packed
    return itertools.chain([start], (bytes_of(tensors[name]) for name in names))


def bytes_of(tensor: Tensor) -> memoryview:
    """The content of a tensor, without a copy if it is contiguous and on the CPU."""
    flat = tensor.detach().cpu().contiguous()
    # A single element may have any stride, which `view` refuses.
    flat = flat.as_strided((flat.numel(),), (1,))
    content: memoryview = flat.view(torch.uint8).numpy().data
    return content


def describe(file: BinaryIO, max_bytes: int) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Returns the metadata and the declared tensors, on the meta device.

    Raises ValueError if the file is malformed, of another size than declared, or has a header
    of more than `max_bytes`.
    """
    length = os.fstat(file.fileno()).st_size
    try:
        (size,) = struct.unpack("<Q", file.read(8))
        if size > max_bytes:
            raise ValueError
        described = parse_json(file.read(size))
        metadata = described.pop(METADATA, {})
        ends = [entry["data_offsets"][1] for entry in described.values()]
        if length != 8 + size + max(ends, default=0):
            raise ValueError
        return metadata, {
            name: torch.empty(entry["shape"], dtype=DTYPES[entry["dtype"]], device="meta")
            for name, entry in described.items()
        }
    except (*MALFORMED, struct.error, RuntimeError):
        raise ValueError("not a safetensors file") from None


def unpack(file: BinaryIO, size: int) -> dict[str, Tensor]:
    """Reads the tensors of a file of that size; raises ValueError if it is malformed."""
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load
    except ImportError:
        raise ImportError("loading needs safetensors: pip install safetensors") from None

    file.seek(0)
    try:
        return load(file.read(size))
    except (SafetensorError, KeyError) as error:
        raise ValueError(str(error)) from None
