"""Weights in safetensors, configuration in JSON beside them; nothing is ever unpickled.

`<kind>.json` is written last and carries the fingerprint of `<kind>.safetensors`, so that a
folder is either whole or refused.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

FORMAT = "episodic-curiosity"
VERSION = 1

Module = TypeVar("Module", bound=nn.Module)


class LoadError(ValueError):
    """A file that cannot be used; the message says which and why, in one sentence."""


def save(folder: Path, kind: str, weights: dict[str, Tensor], config: dict[str, Any]) -> None:
    """Writes `<kind>.safetensors` and `<kind>.json`, each whole or not at all."""
    from safetensors.torch import save as to_bytes

    packed = to_bytes({name: tensor.cpu().contiguous() for name, tensor in weights.items()})
    header = {
        "format": FORMAT,
        "kind": kind,
        "version": VERSION,
        "config": config,
        "sha256": hashlib.sha256(packed).hexdigest(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{kind}.safetensors", packed)
    write_atomically(folder / f"{kind}.json", json.dumps(header, indent=2).encode() + b"\n")


def load(
    folder: Path, kind: str, make: Callable[..., Module], device: torch.device | str
) -> Module:
    """Makes a module from the saved configuration and gives it the saved weights."""
    header = _read_header(folder / f"{kind}.json", kind)
    weights = _read_weights(folder / f"{kind}.safetensors", header["sha256"])
    try:
        module = make(**header["config"])
    except (TypeError, ValueError) as error:
        raise LoadError(f"{folder / kind}.json does not describe a {kind}: {error}") from None
    _check_weights(folder / f"{kind}.safetensors", weights, module.state_dict())
    module.load_state_dict(weights)
    return module.to(device)


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces the file in one step: a reader sees the old content or the new, never a part."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _read_header(path: Path, kind: str) -> dict[str, Any]:
    content = _read_bytes(path)
    try:
        header = json.loads(content)
    except ValueError:
        raise LoadError(f"{path} is not JSON: it is damaged or something else") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise LoadError(f"{path} was not written by {FORMAT}")
    if header.get("version") != VERSION:
        raise LoadError(
            f"{path} has version {header.get('version')}, this release reads version {VERSION}"
        )
    if header.get("kind") != kind:
        raise LoadError(f"{path} describes a {header.get('kind')}, wanted a {kind}")
    if not isinstance(header.get("config"), dict) or not isinstance(header.get("sha256"), str):
        raise LoadError(f"{path} lacks its config or its fingerprint")
    return header


def _read_weights(path: Path, fingerprint: str) -> dict[str, Tensor]:
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
        raise LoadError(f"{path} cannot be read ({error.strerror})") from None


def _check_weights(path: Path, found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    """Names the first difference instead of listing all of them."""
    if missing := sorted(wanted.keys() - found.keys()):
        raise LoadError(
            f"{path} lacks {len(missing)} of the wanted weights, first {missing[0]}"
        )
    if extra := sorted(found.keys() - wanted.keys()):
        raise LoadError(f"{path} has {len(extra)} weights of another network, first {extra[0]}")
    for name, tensor in wanted.items():
        is_, should = found[name], tensor
        if is_.shape != should.shape or is_.dtype != should.dtype:
            raise LoadError(
                f"{path} holds {name} as {is_.dtype} {tuple(is_.shape)}, "
                f"wanted {should.dtype} {tuple(should.shape)}"
            )
