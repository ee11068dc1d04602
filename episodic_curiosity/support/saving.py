"""Saves weights with their configuration as one safetensors file. Pickle is never used.

The file's metadata holds a JSON header with the configuration and a fingerprint of everything,
so that one rename replaces it all: a reader finds the old content or the new. Memory is
allocated only after the file was found to have the size it claims.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from episodic_curiosity.support.checks import first_difference
from episodic_curiosity.support.files import UnfitFileError, create_file, open_file, read_file
from episodic_curiosity.support.machine import free_bytes
from episodic_curiosity.support.strict_json import parse_json
from episodic_curiosity.support.tensor_files import Packed, bytes_of, describe, pack, unpack
from episodic_curiosity.support.version import __version__

FORMAT = "episodic-curiosity"
# The format of each kind of file. Raise it when the content changes: older files are refused.
VERSIONS = {"run": 2, "state": 3, "agent": 2, "r_network": 2}
FIRST_VERSION = 1  # all other kinds
MAX_JSON_BYTES = 1 << 24  # of a JSON file, or of the header of a safetensors file
MAX_WEIGHTS_BYTES = 1 << 32  # if the system does not report its free memory

Module = TypeVar("Module", bound=nn.Module)


class LoadError(ValueError):
    """A file cannot be used; the message names it and says why."""


class UnreadableError(LoadError):
    """A file that may be intact cannot be opened, or a newer release wrote it."""


def save(folder: Path, kind: str, weights: dict[str, Tensor], config: dict[str, Any]) -> None:
    """Writes `<kind>.safetensors` atomically, without a copy of all tensors."""
    header = json.loads(header_bytes(kind, config))  # with Python's numbers
    header["sha256"] = _fingerprint_of(header, weights)
    packed = pack(weights, {FORMAT: json.dumps(header, allow_nan=False)})
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically({_path(folder, kind): packed})


def load(
    folder: Path, kind: str, make: Callable[..., Module], device: torch.device | str
) -> Module:
    """Builds a module from the saved configuration and loads the saved weights."""
    config, weights = read_like(folder, kind, lambda **config: make(**config).state_dict())
    module = make(**config)
    module.load_state_dict(weights)
    return module.to(device)


def read_like(
    folder: Path, kind: str, wanted: Callable[..., Mapping[str, Tensor]]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """As `read`, for a file that must have the tensors that its configuration asks for.

    `wanted` returns them for a configuration. It is called on the meta device, and what it
    returns is compared before any memory is allocated. Tensors that were saved as bfloat16, as
    those of a shared agent, are returned as float32 if float32 is wanted.
    """
    path = _path(folder, kind)
    with _opened(path) as file:
        header, shapes = _read_description(file, path, kind)
        asked = _on_meta(path, kind, wanted, header)
        found = _widened(shapes, asked)
        if difference := first_difference(found, asked, has_content=False):
            raise LoadError(f"{path} {difference}{versions(header)}")
        return header["config"], _widened(_read_weights(file, path, header), asked)


def read(folder: Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Returns the saved configuration and weights, the weights on the CPU."""
    path = _path(folder, kind)
    with _opened(path) as file:
        header, _ = _read_description(file, path, kind)
        return header["config"], _read_weights(file, path, header)


def read_weights_header(folder: Path, kind: str) -> dict[str, Any]:
    """Returns the header that `save` wrote."""
    path = _path(folder, kind)
    with _opened(path) as file:
        return _read_description(file, path, kind)[0]


def header_bytes(kind: str, config: dict[str, Any], **more: Any) -> bytes:
    """Returns a JSON file with a header, which `read_header` checks."""
    header = {
        "format": FORMAT,
        "kind": kind,
        "version": VERSIONS.get(kind, FIRST_VERSION),
        "code": __version__,
        "config": config,
    } | more
    packed = json.dumps(header, indent=2, allow_nan=False, default=_plain_number)
    return packed.encode() + b"\n"


def _plain_number(value: Any) -> int | float:
    """NumPy's numbers as Python's, for JSON."""
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    raise TypeError(f"a config must be of plain values, got {type(value).__name__}")


def fingerprint(content: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of a JSON object, to detect later edits."""
    packed = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(packed.encode()).hexdigest()


def versions(header: dict[str, Any]) -> str:
    """Returns the end of a message about a file, naming both releases if they differ."""
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


def write_atomically(contents: Mapping[Path, bytes | Iterable[Packed]]) -> None:
    """Replaces files, each in one step: a reader sees the old content or the new, no part.

    All are on disk before the first is replaced, and they are replaced in the order given. For
    one writer of a path at a time: two would write to the same new file.
    """
    with contextlib.ExitStack() as stack:
        for path, content in contents.items():
            stack.callback(_beside(path).unlink, missing_ok=True)
            with create_file(_beside(path)) as file:
                file.writelines([content] if isinstance(content, bytes) else content)
                file.flush()
                os.fsync(file.fileno())
        for path in contents:
            os.replace(_beside(path), path)


def read_header(path: Path, kind: str) -> dict[str, Any]:
    """Reads what `header_bytes` wrote; the config is a dict."""
    with reading(path):
        content = read_file(path, MAX_JSON_BYTES)
    try:
        header = parse_json(content)
    except ValueError:
        raise LoadError(f"{path} is not JSON: it is damaged or something else") from None
    return _checked_header(header, path, kind)


def _checked_header(header: Any, path: Path, kind: str) -> dict[str, Any]:
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


def _on_meta(
    path: Path, kind: str, wanted: Callable[..., Mapping[str, Tensor]], header: dict[str, Any]
) -> Mapping[str, Tensor]:
    """Returns the wanted tensors on the meta device, which takes no memory."""
    try:
        with torch.device("meta"):
            return wanted(**header["config"])
    except (TypeError, ValueError, RuntimeError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise LoadError(f"{path} describes no {kind}: {reason}") from None


def _beside(path: Path) -> Path:
    # Always the same name: what a killed process left is replaced, not added to.
    return path.with_name(f".{path.name}.new")


def _path(folder: Path, kind: str) -> Path:
    return folder / f"{kind}.safetensors"


@contextlib.contextmanager
def reading(path: Path, kind: type[LoadError] = UnreadableError) -> Iterator[None]:
    """Raises this kind of error where the block cannot open a file."""
    try:
        yield
    except UnfitFileError as error:
        raise kind(str(error)) from None
    except OSError as error:
        raise kind(f"{path} cannot be read ({error.strerror})") from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file once for all its parts: a writer may replace it in between."""
    with reading(path), open_file(path) as file:
        yield file


def _read_description(
    file: BinaryIO, path: Path, kind: str
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Returns our header and the tensors that the file declares, on the meta device."""
    try:
        metadata, shapes = describe(file, MAX_JSON_BYTES)
        header = parse_json(metadata.get(FORMAT, "null"))
    except (ValueError, TypeError, AttributeError):
        raise LoadError(f"{path} is truncated or no safetensors file") from None
    if header is None:
        raise LoadError(
            f"{path} lacks its config: a release before 0.2.0 or another program wrote it"
        )
    return _checked_header(header, path, kind), shapes


def _widened(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, those in bfloat16 as float32 where float32 is wanted."""
    wide = {name for name, tensor in wanted.items() if tensor.dtype == torch.float32}
    return {
        name: tensor.float() if name in wide and tensor.dtype == torch.bfloat16 else tensor
        for name, tensor in found.items()
    }


def _read_weights(file: BinaryIO, path: Path, header: dict[str, Any]) -> dict[str, Tensor]:
    """Returns the tensors of a file that `_read_description` has found well-formed."""
    # A third: the file's bytes, its tensors, and the module they are copied into.
    free = free_bytes(torch.device("cpu"))
    most = MAX_WEIGHTS_BYTES if free is None else free // 3
    size = os.fstat(file.fileno()).st_size
    if size > most:
        raise UnreadableError(f"{path} must have at most {most:,} bytes, got {size:,}")
    try:
        weights = unpack(file, size)
    except ValueError as error:
        raise LoadError(f"{path} is truncated or no safetensors file ({error})") from None
    unsigned = {name: value for name, value in header.items() if name != "sha256"}
    if _fingerprint_of(unsigned, weights) != header.get("sha256"):
        raise LoadError(f"{path} is not as it was written (fingerprints differ)")
    return weights


def _fingerprint_of(header: dict[str, Any], weights: dict[str, Tensor]) -> str:
    """Returns the SHA-256 of a header and its tensors."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(bytes_of(tensor))
    return digest.hexdigest()
