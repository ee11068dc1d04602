"""The architecture of an R-network: its options, and those of the paper's networks."""

from dataclasses import dataclass
from math import prod
from typing import Literal, TypedDict

import torch

from episodic_curiosity.reachability.comparators import COMPARATORS
from episodic_curiosity.reachability.embedders import SHORTEST_SIDE
from episodic_curiosity.support.checks import check_at_least, check_choice
from episodic_curiosity.support.machine import check_memory

EmbedderName = Literal["resnet18", "small", "tiny", "mlp"]
ComparatorName = Literal["mlp", "dot"]
Branches = Literal["shared", "unshared"]
CUSTOM: Literal["custom"] = "custom"
EMBEDDING_SIZE = 512  # of the paper
FIRST_HIDDEN = 512  # units in the first layer for vectors
LAST_HIDDEN = 64  # inputs at least of an embedder's last layer


@dataclass(frozen=True, kw_only=True)
class RNetworkConfig:
    """The architecture, including the paper's ablations."""

    view_shape: tuple[int, ...]  # (C, H, W) of a frame or (F,) of a vector
    embedder: EmbedderName | Literal["custom"]  # custom: a module of the user's
    comparator: ComparatorName
    branches: Branches
    embedding_size: int = EMBEDDING_SIZE
    frozen_embedding: bool = False  # train the comparator over a random embedding

    def __post_init__(self) -> None:
        check_choice("comparator", self.comparator, COMPARATORS)
        check_choice("branches", self.branches, ("shared", "unshared"))
        for size in self.view_shape:
            check_at_least("view_shape's sizes", size, 1)
        if self.embedder != CUSTOM:
            self._check_view_shape()
        check_at_least("embedding_size", self.embedding_size, 1)
        what, cpu = f"an embedding of {self.embedding_size:,}", torch.device("cpu")
        weights = 4 * LAST_HIDDEN * self.embedding_size
        check_memory(what, weights, cpu, "lower `embedding_size`")
        # A weight for each feature and hidden unit, or a frame to find out an embedder's sizes.
        inputs = 4 * prod(self.view_shape) * (FIRST_HIDDEN if self.embedder == "mlp" else 1)
        what = f"an embedder of views {self.view_shape}"
        check_memory(what, inputs, cpu, "lower `view_shape`")
        if self.frozen_embedding and self.comparator == "dot":
            raise ValueError(
                "frozen_embedding with the dot comparator leaves nothing to train; "
                "use the mlp comparator"
            )

    def _check_view_shape(self) -> None:
        wants_vectors = self.embedder == "mlp"
        if len(self.view_shape) != (1 if wants_vectors else 3):
            wanted = "(features,)" if wants_vectors else "(channels, height, width)"
            raise ValueError(
                f"the {self.embedder} embedder needs a view_shape {wanted}, "
                f"got {self.view_shape}"
            )
        if not wants_vectors and self.view_shape[2] <= 4 < min(self.view_shape[:2]):
            height, width, channels = self.view_shape
            raise ValueError(
                f"frames must be (channels, height, width), got {self.view_shape}; channels "
                f"come first: {(channels, height, width)}"
            )
        side = SHORTEST_SIDE.get(self.embedder, 0)
        if side and min(self.view_shape[1:]) < side:
            raise ValueError(
                f"frames must be at least {side} x {side} for the {self.embedder} embedder, "
                f"got {self.view_shape}; the tiny one accepts any size"
            )


class Architecture(TypedDict):
    """The arguments of RNetwork that choose the architecture."""

    embedder: EmbedderName
    comparator: ComparatorName
    branches: Branches


# Arguments of RNetwork: the paper's tables, the same on a small embedder, the paper's fast one.
PAPER: Architecture = {"embedder": "resnet18", "comparator": "mlp", "branches": "shared"}
SMALL: Architecture = {"embedder": "small", "comparator": "mlp", "branches": "shared"}
FAST: Architecture = {"embedder": "small", "comparator": "dot", "branches": "unshared"}
ARCHITECTURES = {"paper": PAPER, "small": SMALL, "fast": FAST}
