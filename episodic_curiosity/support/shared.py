"""Shared agents and R-networks: folders with a card, found by name.

    pretrained:NAME              shipped with this package
    hf:OWNER/NAME[@REVISION]     a repository of the Hugging Face Hub; needs huggingface_hub

A folder that has a card must fit it, and is only read: its scores are in the card.
"""

import contextlib
import sys
from pathlib import Path
from typing import Any, NoReturn

from episodic_curiosity.support import saving
from episodic_curiosity.support.checks import suggestion
from episodic_curiosity.support.saving import LoadError, UnreadableError
from episodic_curiosity.support.version import PACKAGE

SHIPPED = PACKAGE / "pretrained"
CARD, KIND = "card.json", "card"
CONFIG = "config.json"
PARTS = {"agent": "agent", "r_network": "R-network", "bonus": "bonus"}  # of weights
PRETRAINED, HUB = "pretrained", "hf"
FILES = (CARD, CONFIG, *(f"{part}.safetensors" for part in PARTS))  # of a shared folder


def find_folder(name: str | Path, part: str | None = None) -> Path:
    """Returns the folder of a name, or a path as it is; raises if its card does not fit.

    With a `part`, such as "agent", raises unless the folder has it.
    """
    prefix, _, rest = str(name).partition(":")
    if prefix == PRETRAINED:
        folder = _shipped(rest)
    elif prefix == HUB:
        folder = _from_hub(str(name), rest)
    else:
        folder = Path(name)
    if has_card(folder):
        check_card(folder, read_card(folder))
    if part is not None:
        _check_part(name, folder, part)
    return folder


def is_name(name: str | Path) -> bool:
    """True for a name of `find_folder`, False for a path."""
    return str(name).partition(":")[0] in (PRETRAINED, HUB) and ":" in str(name)


def is_shipped(name: str | Path) -> bool:
    """True for a name of what this package contains: nothing is downloaded for it."""
    return str(name).startswith(f"{PRETRAINED}:")


def shipped_names() -> list[str]:
    """The names of the shipped folders, without `pretrained:`."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{CARD}"))


def has_card(folder: Path) -> bool:
    """True for a shared folder, which nothing is written to."""
    return (folder / CARD).exists()


def read_card(folder: Path) -> dict[str, Any]:
    """Reads a card; an edited one is refused."""
    path = folder / CARD
    header = saving.read_header(path, KIND)
    card: dict[str, Any] = header["config"]
    if header.get("sha256") != saving.fingerprint(card):
        raise LoadError(f"{path} was changed after it was written (fingerprints differ)")
    if not isinstance(card.get("files"), dict):
        raise LoadError(f"{path} does not list the files that it describes")
    return card


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Writes a card with the fingerprint that `read_card` checks."""
    content = saving.header_bytes(KIND, card, sha256=saving.fingerprint(card))
    saving.write_atomically({folder / CARD: content})


def fingerprints(folder: Path) -> dict[str, str]:
    """The fingerprint in the header of each file of a folder, by the file's name."""
    found = {}
    if (folder / CONFIG).exists():
        found[CONFIG] = saving.read_header(folder / CONFIG, "run").get("sha256")
    for part in PARTS:
        if (folder / f"{part}.safetensors").exists():
            found[f"{part}.safetensors"] = saving.read_weights_header(folder, part).get(
                "sha256"
            )
    return {name: str(value) for name, value in found.items()}


def check_card(folder: Path, card: dict[str, Any]) -> None:
    """Raises unless the folder has the files of its card.

    Fingerprints in headers are compared; loading compares them with the content.
    """
    there, listed = fingerprints(folder), card["files"]
    for name in sorted(there.keys() | listed.keys()):
        if name not in there:
            raise LoadError(f"{folder / CARD} describes {name}, which is missing")
        if name not in listed:
            raise LoadError(f"{folder / CARD} does not describe {name}, which lies beside it")
        if there[name] != listed[name]:
            raise LoadError(f"{folder / CARD} describes another {name} than the one beside it")


def _check_part(name: str | Path, folder: Path, part: str) -> None:
    """Raises unless the folder of this name has the weights of a part."""
    if not folder.is_dir():
        is_file = folder.exists()
        raise UnreadableError(
            f"{name} is a file, not a folder" if is_file else f"there is no folder {name}"
        )
    held = [other for other in PARTS if (folder / f"{other}.safetensors").exists()]
    if part not in held:
        only = ", ".join(PARTS[other] for other in held)
        rest = f", only: {only}" if only else ""
        if not held and (folder / CONFIG).exists():
            rest = " yet: resume the run, or begin it again in another folder"
        raise UnreadableError(f"{name} has no {PARTS[part]}{rest}")


def _shipped(name: str) -> Path:
    names = shipped_names()
    if name in names:
        return SHIPPED / name
    if not names:
        raise LoadError(f"there is no {PRETRAINED}:{name}: this installation ships nothing")
    meant, there = suggestion(name, names), ", ".join(names)
    raise LoadError(f"there is no {PRETRAINED}:{name}{meant}; there are {there}")


def _from_hub(name: str, repository: str) -> Path:
    """The folder of a repository in the Hub's cache, after a download if it is not there."""
    repository, _, revision = repository.partition("@")
    if len([part for part in repository.split("/") if part]) != 2:
        raise ValueError(
            f"a repository must be {HUB}:OWNER/NAME or {HUB}:OWNER/NAME@REVISION, got {name}"
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise ImportError(
            f"{name} needs huggingface_hub: pip install huggingface_hub, or download the "
            f"repository and give its folder"
        ) from None

    def fetch(*, local_files_only: bool) -> Path:
        return Path(
            snapshot_download(
                repository,
                revision=revision or None,
                allow_patterns=list(FILES),
                local_files_only=local_files_only,
            )
        )

    # Its errors vary: at first any of them means that the cache lacks something.
    with contextlib.suppress(Exception):
        folder = fetch(local_files_only=True)
        if _is_complete(folder):
            return folder
    print(f"downloading {name} from the Hugging Face Hub", file=sys.stderr)
    try:
        folder = fetch(local_files_only=False)
    except Exception as error:
        _refuse(name, error)
    if not has_card(folder):
        raise LoadError(f"{name} has no {CARD}: it is no shared agent of this package")
    return folder


def _is_complete(folder: Path) -> bool:
    return has_card(folder) and all(
        (folder / file).exists() for file in read_card(folder)["files"]
    )


def _refuse(name: str, error: Exception) -> NoReturn:
    reason = str(error).strip().partition("\n")[0].rstrip(".")
    raise UnreadableError(
        f"{name} cannot be downloaded ({type(error).__name__}: {reason})"
    ) from None
