"""Weights in safetensors, configuration in JSON beside them; nothing is ever unpickled.

`<kind>.json` is written last and carries the fingerprint of `<kind>.safetensors`, so that a
folder is either whole or refused. Nothing of a size that a file claims is allocated before the
file has been found to have it.
"""

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor, nn

from episodic_curiosity.support.checks import first_difference
from episodic_curiosity.support.files import UnfitFileError, create_file, open_file, read_file
from episodic_curiosity.support.machine import free_bytes
from episodic_curiosity.support.version import __version__

FORMAT = "episodic-curiosity"
# Of each kind of file: raised when what it holds changes, so that older ones are refused.
VERSIONS = {"run": 2, "state": 2}
FIRST_VERSION = 1  # of all others
MAX_JSON_BYTES = 1 << 24
MAX_NAMES_BYTES = 1 << 20  # of a safetensors file, before its tensors
MAX_WEIGHTS_BYTES = 1 << 32  # where the system does not tell how much memory is free
DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I32": torch.int32,
    "I64": torch.int64,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}

Module = TypeVar("Module", bound=nn.Module)


class LoadError(ValueError):
    """A file that cannot be used; the message says which and why, in one sentence."""


class UnreadableError(LoadError):
    """A file that may well be whole: it is not opened, or a newer release wrote it."""


def save(folder: Path, kind: str, weights: dict[str, Tensor], config: dict[str, Any]) -> None:
    """Writes `<kind>.safetensors` and `<kind>.json`, each whole or not at all."""
    from safetensors.torch import save as to_bytes

    packed = to_bytes({name: tensor.cpu().contiguous() for name, tensor in weights.items()})
    sha256 = hashlib.sha256(packed).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(
        {
            folder / f"{kind}.safetensors": packed,
            folder / f"{kind}.json": header_bytes(kind, config, sha256=sha256),
        }
    )


def load(
    folder: Path, kind: str, make: Callable[..., Module], device: torch.device | str
) -> Module:
    """Makes a module from the saved configuration and gives it the saved weights."""
    header = read_header(folder / f"{kind}.json", kind)
    wanted = _shapes(folder, kind, make, header["config"])
    path = folder / f"{kind}.safetensors"
    if difference := first_difference(_read_shapes(path), wanted):
        raise LoadError(f"{path} {difference}{versions(header)}")
    weights = _read_weights(path, header.get("sha256"))
    module = make(**header["config"])
    module.load_state_dict(weights)
    return module.to(device)


def read(folder: Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The saved configuration and weights, the latter in main memory."""
    header = read_header(folder / f"{kind}.json", kind)
    weights = _read_weights(folder / f"{kind}.safetensors", header.get("sha256"))
    return header["config"], weights


def header_bytes(kind: str, config: dict[str, Any], **more: Any) -> bytes:
    """A JSON file that says what it is; `read_header` refuses any other."""
    header = {
        "format": FORMAT,
        "kind": kind,
        "version": VERSIONS.get(kind, FIRST_VERSION),
        "code": __version__,
        "config": config,
    } | more
    return json.dumps(header, indent=2, allow_nan=False).encode() + b"\n"


def fingerprint(content: Mapping[str, Any]) -> str:
    """Tells whether JSON was edited after it was written."""
    packed = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(packed.encode()).hexdigest()


def versions(header: dict[str, Any]) -> str:
    """Words that end a message about a file of another release."""
    code = header.get("code", "an earlier release")
    if code == __version__:
        return ""
    return f" (written by {FORMAT} {code}, this is {__version__})"


def check_writable(path: Path) -> None:
    """Raises where no file can be written under that name; makes nothing."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    if path.exists() and not path.is_file():  # a device would be replaced
        raise ValueError(f"{path} is neither a file nor new")
    there = next(folder for folder in path.absolute().parents if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: {there} is no folder to write to")


def write_atomically(contents: dict[Path, bytes]) -> None:
    """Replaces files, each in one step: a reader sees the old content or the new, no part.

    All are on disk before the first is replaced, and they are replaced in the order given.
    """
    with contextlib.ExitStack() as stack:
        for path, content in contents.items():
            stack.callback(_beside(path).unlink, missing_ok=True)
            with create_file(_beside(path)) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path in contents:
            os.replace(_beside(path), path)


def read_header(path: Path, kind: str) -> dict[str, Any]:
    """What `header_bytes` wrote, its config being a dict."""
    content = _read_bytes(path, MAX_JSON_BYTES)
    try:
        header = json.loads(content, parse_constant=_refuse)  # NaN is no JSON
    except (ValueError, RecursionError):
        raise LoadError(f"{path} is not JSON: it is damaged or something else") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise LoadError(f"{path} was not written by {FORMAT}")
    if header.get("kind") != kind:
        raise LoadError(f"{path} describes {header.get('kind')!r}, wanted {kind!r}")
    version, wanted = header.get("version"), VERSIONS.get(kind, FIRST_VERSION)
    if type(version) is not int or version != wanted:
        is_newer = type(version) is int and version > wanted
        code = header.get("code", "an unknown release")
        raise (UnreadableError if is_newer else LoadError)(
            f"{path} was written by {FORMAT} {code} in format {version}; this is "
            f"{__version__}, which reads format {wanted}"
        )
    if not isinstance(header.get("config"), dict):
        raise LoadError(f"{path} lacks its config")
    return header


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _shapes(
    folder: Path, kind: str, make: Callable[..., nn.Module], config: dict[str, Any]
) -> dict[str, Tensor]:
    """The tensors of such a module, on the device that has shapes and no memory."""
    try:
        with torch.device("meta"):
            return make(**config).state_dict()
    except (TypeError, ValueError, RuntimeError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise LoadError(f"{folder / kind}.json describes no {kind}: {reason}") from None


def _beside(path: Path) -> Path:
    # Always the same name: what a killed process left is replaced, not added to.
    return path.with_name(f".{path.name}.new")


def _read_shapes(path: Path) -> dict[str, Tensor]:
    """The tensors that a safetensors file says it holds, on the meta device."""
    try:
        with open_file(path) as file:
            (size,) = struct.unpack("<Q", file.read(8))
            described = json.loads(file.read(min(size, MAX_NAMES_BYTES)))
            length = os.fstat(file.fileno()).st_size
        described.pop("__metadata__", None)
        ends = [entry["data_offsets"][1] for entry in described.values()]
        if length != 8 + size + max(ends, default=0):
            raise ValueError
        return {
            name: torch.empty(entry["shape"], dtype=DTYPES[entry["dtype"]], device="meta")
            for name, entry in described.items()
        }
    except UnfitFileError as error:
        raise UnreadableError(str(error)) from None
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read ({error.strerror})") from None
    except (struct.error, ValueError, LookupError, TypeError, AttributeError, RuntimeError):
        raise LoadError(f"{path} is truncated or no safetensors file") from None


def _read_weights(path: Path, fingerprint: str | None) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load as from_bytes

    # The file's bytes, the tensors made of them, and the module that they are copied into.
    free = free_bytes(torch.device("cpu"))
    content = _read_bytes(path, MAX_WEIGHTS_BYTES if free is None else free // 3)
    if hashlib.sha256(content).hexdigest() != fingerprint:
        raise LoadError(
            f"{path} is not the file its JSON was written for (fingerprints differ)"
        )
    try:
        return from_bytes(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise LoadError(f"{path} is truncated or no safetensors file ({error})") from None


def _read_bytes(path: Path, max_bytes: int) -> bytes:
    try:
        return read_file(path, max_bytes)
    except UnfitFileError as error:
        raise UnreadableError(str(error)) from None
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read ({error.strerror})") from None
