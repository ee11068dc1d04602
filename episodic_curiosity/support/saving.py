"""Weights in safetensors, configuration in JSON beside them; nothing is ever unpickled.

`<kind>.json` is written last and carries the fingerprint of `<kind>.safetensors`, so that a
folder is either whole or refused.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from episodic_curiosity.support.checks import first_difference

FORMAT = "episodic-curiosity"
VERSION = 1

Module = TypeVar("Module", bound=nn.Module)


class LoadError(ValueError):
    """A file that cannot be used; the message says which and why, in one sentence."""


class UnreadableError(LoadError):
    """A file that may well be whole: it cannot be opened, or a newer release wrote it."""


def save(folder: Path, kind: str, weights: dict[str, Tensor], config: dict[str, Any]) -> None:
    """Writes `<kind>.safetensors` and `<kind>.json`, each whole or not at all."""
    from safetensors.torch import save as to_bytes

    packed = to_bytes({name: tensor.cpu().contiguous() for name, tensor in weights.items()})
    fingerprint = hashlib.sha256(packed).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(
        {
            folder / f"{kind}.safetensors": packed,
            folder / f"{kind}.json": header_bytes(kind, config, sha256=fingerprint),
        }
    )


def load(
    folder: Path, kind: str, make: Callable[..., Module], device: torch.device | str
) -> Module:
    """Makes a module from the saved configuration and gives it the saved weights."""
    config, weights = read(folder, kind)
    try:
        module = make(**config)
    except (TypeError, ValueError, RuntimeError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise LoadError(f"{folder / kind}.json describes no {kind}: {reason}") from None
    if difference := first_difference(weights, module.state_dict()):
        raise LoadError(f"{folder / kind}.safetensors {difference}")
    module.load_state_dict(weights)
    return module.to(device)


def read(folder: Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The saved configuration and weights, the latter in main memory."""
    header = read_header(folder / f"{kind}.json", kind)
    weights = _read_weights(folder / f"{kind}.safetensors", header.get("sha256"))
    return header["config"], weights


def header_bytes(kind: str, config: dict[str, Any], **more: Any) -> bytes:
    """A JSON file that says what it is; `read_header` refuses any other."""
    header = {"format": FORMAT, "kind": kind, "version": VERSION, "config": config} | more
    return json.dumps(header, indent=2, allow_nan=False).encode() + b"\n"


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
            with open(_beside(path), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path in contents:
            os.replace(_beside(path), path)


def read_header(path: Path, kind: str) -> dict[str, Any]:
    """What `header_bytes` wrote, its config being a dict."""
    content = _read_bytes(path)
    try:
        header = json.loads(content)
    except (ValueError, RecursionError):
        raise LoadError(f"{path} is not JSON: it is damaged or something else") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise LoadError(f"{path} was not written by {FORMAT}")
    version = header.get("version")
    if type(version) is not int or version != VERSION:
        is_newer = type(version) is int and version > VERSION
        raise (UnreadableError if is_newer else LoadError)(
            f"{path} has version {version}, this release reads version {VERSION}"
        )
    if header.get("kind") != kind:
        raise LoadError(f"{path} describes {header.get('kind')!r}, wanted {kind!r}")
    if not isinstance(header.get("config"), dict):
        raise LoadError(f"{path} lacks its config")
    return header


def _beside(path: Path) -> Path:
    # Always the same name: what a killed process left is overwritten, not added to.
    return path.with_name(f".{path.name}.new")


def _read_weights(path: Path, fingerprint: str | None) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load as from_bytes

    content = _read_bytes(path)
    try:
        weights = from_bytes(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise LoadError(f"{path} is truncated or no safetensors file ({error})") from None
    if hashlib.sha256(content).hexdigest() != fingerprint:
        raise LoadError(
            f"{path} is not the file its JSON was written for (fingerprints differ)"
        )
    return weights


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read ({error.strerror})") from None
