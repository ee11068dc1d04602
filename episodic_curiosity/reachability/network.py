"""The R-network: can one observation be reached from another within k steps?

Savinov et al. 2019, sections 2.1, S2 and S5.5. Shapes: N environments, K memory slots,
B pairs, D embedding.
"""

import copy
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn

from episodic_curiosity.reachability.architecture import (
    CUSTOM,
    EMBEDDING_SIZE,
    Branches,
    ComparatorName,
    EmbedderName,
    RNetworkConfig,
)
from episodic_curiosity.reachability.comparators import COMPARATORS
from episodic_curiosity.reachability.custom_embedder import (
    another,
    check_embedding,
    embedding_size_of,
)
from episodic_curiosity.reachability.embedders import EMBEDDERS, SMALL_PADDING, usual_embedder
from episodic_curiosity.support import saving
from episodic_curiosity.support.checks import check_at_least, check_choice, check_views, short
from episodic_curiosity.support.compiling import fused, run_network
from episodic_curiosity.support.pixels import (
    autocast,
    blocks_to_input,
    computing_in,
    separate_blocks,
    separate_blocks_to_input,
    to_input,
)
from episodic_curiosity.support.shared import find_folder


class Embeddings(NamedTuple):
    """Embeddings of N observations, as memory slots and as queries."""

    stored: Tensor  # (N, D)
    asked: Tensor  # (N, D)


class RNetwork(nn.Module):
    """R(o_i, o_j) = C(E(o_i), E(o_j)), with o_i from memory and o_j the current observation.

    The default is the paper's fast architecture (unshared branches and a dot product) with a
    small embedder; `RNetwork(view_shape, **PAPER)` is that of its tables. Shared branches with
    a dot product are the ablation that fails.

    Args:
        view_shape: of one observation, (channels, height, width) or (features,).
        embedder: "resnet18", "small", "tiny" (frames under 16 x 16) or "mlp" (vectors); None:
            one of the last three. Or any module that maps (B, *view_shape) floats, bytes scaled
            to [0, 1], to (B, D) float32 embeddings.
        comparator: "mlp" is the paper's; "dot" is one matrix product for all of memory.
        branches: "shared", one embedding for memories and queries, or "unshared".
        embedding_size: D; None: 512, or that of a custom module, found by trying it.
        frozen_embedding: train the comparator alone, on a random or given embedding.

    With un-shared branches, the second one begins as a copy of a custom embedder with newly
    drawn weights, or with the same weights if the embedding is frozen.
    """

    fitted: Tensor  # () bool, set by training; the bonus of an unfitted network is noise
    held_out_accuracy: Tensor  # () float32, of the last fit

    def __init__(
        self,
        view_shape: tuple[int, ...],
        *,
        embedder: EmbedderName | nn.Module | None = None,
        comparator: ComparatorName = "dot",
        branches: Branches = "unshared",
        embedding_size: int | None = None,
        frozen_embedding: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(view_shape, tuple | list):
            raise ValueError(f"view_shape must be a tuple of sizes, got {short(view_shape)}")
        for size in view_shape:
            check_at_least("view_shape's sizes", size, 1)
        shape = tuple(view_shape)
        if not shape:
            raise ValueError("view_shape must have one size or three, got ()")
        if isinstance(embedder, nn.Module):
            name: EmbedderName | Literal["custom"] = CUSTOM
            if embedding_size is None:
                embedding_size = embedding_size_of(embedder, shape)
        else:
            name = usual_embedder(shape) if embedder is None else embedder
            check_choice("embedder", name, EMBEDDERS)
        self.config = RNetworkConfig(
            view_shape=shape,
            embedder=name,
            comparator=comparator,
            branches=branches,
            embedding_size=EMBEDDING_SIZE if embedding_size is None else embedding_size,
            frozen_embedding=frozen_embedding,
        )
        self.branches = nn.ModuleList(_make_branches(self.config, embedder))
        self.comparator = COMPARATORS[comparator](self.config.embedding_size)
        self.register_buffer("fitted", torch.tensor(False))
        self.register_buffer("held_out_accuracy", torch.tensor(float("nan")))
        if frozen_embedding:
            self.branches.requires_grad_(False)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.eval()

    @property
    def slot_size(self) -> int:
        """D, the size of a memory slot."""
        return self.comparator.size

    @property
    def view_shape(self) -> tuple[int, ...]:
        return self.config.view_shape

    @property
    def device(self) -> torch.device:
        return self.fitted.device

    def embed(self, view: Tensor, where: Tensor | None = None) -> Embeddings:
        """Embeds (N, *view_shape) observations as slots and as queries, (N, D) each.

        Rows outside the (N,) mask `where` may hold anything, and so may their embeddings.
        """
        self.check_ready()
        check_views("view", view, self.config.view_shape, self.device, where=where)
        # A custom embedder may not compile, and what is compiled here has no gradients.
        is_plain = self.config.embedder == CUSTOM or torch.is_grad_enabled()
        embed = _embed_eagerly if is_plain else _embed
        return Embeddings(*embed(self, view))

    def compare(self, stored: Tensor, asked: Tensor) -> Tensor:
        """Similarities (N, K) in [0, 1] of (N, K, D) memory slots and (N, D) queries."""
        return torch.sigmoid(self.comparator.with_memory(stored, asked))

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Log-odds (B,) that `second` is within reach of `first`, for training."""
        (stored,) = self._embeddings(first, [self.branches[0]])
        (asked,) = self._embeddings(second, [self.branches[-1]])
        logits: Tensor = self.comparator(
            self.comparator.stored(stored), self.comparator.asked(asked)
        )
        return logits

    @torch.no_grad()
    def reachable(self, first: Tensor, second: Tensor) -> Tensor:
        """Probabilities (B,) that `second` is within reach of `first`."""
        self.check_ready()
        check_views("first", first, self.config.view_shape, self.device)
        check_views("second", second, self.config.view_shape, self.device, len(first))
        return torch.sigmoid(self(first, second))

    def prepare(self, view: Tensor) -> Tensor:
        """Rearranges (B, ...) views for several calls of `forward`, if that saves time.

        On a CPU, frames for the small embedder become blocks of pixels, (B, H, W, C, 16).
        """
        if self.config.embedder != "small" or not view.is_cpu:
            return view
        return separate_blocks(view, SMALL_PADDING)

    def _embeddings(self, view: Tensor, branches: list[nn.Module]) -> list[Tensor]:
        """The embedding of each branch, (B, D) float32."""
        if self.config.embedder == CUSTOM:
            found = [branch(to_input(view)) for branch in branches]
            for embedding in found:
                check_embedding(embedding, view, self.config.embedding_size)
            return found
        if view.dim() == 2:
            inputs = to_input(view)
            return [branch(inputs) for branch in branches]
        dtype = computing_in(self.device)
        if view.dim() == 5:  # of `prepare`
            inputs = separate_blocks_to_input(view, dtype)
        elif self.config.embedder == "small":
            inputs = blocks_to_input(view, dtype, SMALL_PADDING)
        else:
            inputs = to_input(view, dtype)
        with autocast(self.device, dtype):
            return [run_network(branch, inputs).float() for branch in branches]

    def train(self, mode: bool = True) -> Self:
        """Leaves a custom embedder that is frozen in evaluation mode."""
        super().train(mode)
        if self.config.frozen_embedding and self.config.embedder == CUSTOM:
            self.branches.eval()
        return self

    def check_ready(self) -> None:
        """Raises in training mode."""
        # In training mode normalisation would use, and update, the statistics of this batch.
        if self.training:
            raise RuntimeError("the R-network is in training mode: call its eval() first")

    def save(self, folder: str | Path) -> None:
        """Writes r_network.safetensors into the folder."""
        saving.save(Path(folder), "r_network", self.state_dict(), asdict(self.config))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: torch.device | str = "cpu",
        *,
        embedder: nn.Module | None = None,
    ) -> Self:
        """Reads what `save` wrote; raises `saving.LoadError` for anything else.

        The folder may be a name, as `load_agent` accepts it.
        Of a custom embedder only the weights are saved: give such a module again.
        """

        def make(**config: Any) -> Any:
            if (config.get("embedder") == CUSTOM) != (embedder is not None):
                wanted = "with" if embedder is None else "without"
                raise saving.LoadError(
                    f"the R-network in {folder} was saved {wanted} a custom embedder: "
                    f"{'give' if embedder is None else 'leave out'} `embedder`"
                )
            if embedder is None:
                return cls(**config)
            # With the size of the embedding, the module is not tried on views of any size.
            whole = asdict(RNetworkConfig(**config))
            return cls(**whole | {"embedder": embedder})

        found = find_folder(folder, "r_network")
        loaded: Self = saving.load(found, "r_network", make, device)
        return loaded


def _embed_eagerly(r_network: RNetwork, view: Tensor) -> tuple[Tensor, Tensor]:
    embeddings = r_network._embeddings(view, list(r_network.branches))
    comparator = r_network.comparator
    return comparator.stored(embeddings[0]), comparator.asked(embeddings[-1])


_embed = fused(_embed_eagerly)


def _make_branches(
    config: RNetworkConfig, embedder: EmbedderName | nn.Module | None
) -> list[nn.Module]:
    is_shared = config.branches == "shared"
    if isinstance(embedder, nn.Module):
        if is_shared:
            return [embedder]
        other = copy.deepcopy(embedder) if config.frozen_embedding else another(embedder)
        return [embedder, other]
    make = EMBEDDERS[config.embedder]
    num_branches = 1 if is_shared else 2
    return [make(config.view_shape, config.embedding_size) for _ in range(num_branches)]
