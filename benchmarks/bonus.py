"""Speed of the bonus, compared with a loop over environments as in the authors' code.

    python benchmarks/bonus.py [--seconds 2] [--threads 2]

Memories are full and embeddings are given: only comparing, aggregating and remembering are
timed. The loop compares one environment after another: it concatenates the memory with copies
of the newest embedding, runs the complete comparator over them and takes NumPy's percentile.
The three variants alternate for several rounds, and the shortest call of each counts.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.reachability.comparators import MlpComparator
from episodic_curiosity.reachability.network import Embeddings, RNetwork

SIZE = 512  # D
ROUNDS = 3


def concatenated(comparator: MlpComparator) -> nn.Sequential:
    """The same comparator with an unsplit first layer, over [memory, present]."""
    norm = nn.BatchNorm1d(2 * SIZE)
    first = nn.Linear(2 * SIZE, SIZE)
    halves = (comparator.stored_norm, comparator.asked_norm)
    with torch.no_grad():
        for name in ("weight", "bias", "running_mean", "running_var"):
            getattr(norm, name).copy_(torch.cat([getattr(half, name) for half in halves]))
        first.weight.copy_(
            torch.cat([comparator.stored_first.weight, comparator.asked_first.weight], dim=1)
        )
        first.bias.copy_(comparator.stored_first.bias)
    layers: list[nn.Module] = [norm, nn.ReLU(), first]
    for hidden_norm, layer in zip(
        comparator.norms, [*comparator.layers, comparator.output], strict=True
    ):
        layers += [hidden_norm, nn.ReLU(), layer]
    return nn.Sequential(*layers, nn.Softmax(dim=1)).eval()


class LoopOverEnvironments:
    """Compares one environment after another; a memory is a list of embeddings."""

    def __init__(self, num_envs: int, capacity: int, device: str) -> None:
        comparator = MlpComparator(SIZE).eval()
        self.comparator = concatenated(comparator).to(device)
        self.capacity = capacity
        self.memories = [list(torch.randn(capacity, SIZE).to(device)) for _ in range(num_envs)]
        self.random = np.random.default_rng(0)

    @torch.no_grad()
    def bonus(self, embedding: Tensor) -> Tensor:
        bonuses = []
        for present, memory in zip(embedding, self.memories, strict=True):
            slots = torch.stack(memory)
            pairs = torch.cat([slots, present.expand(len(memory), -1)], dim=1)
            similarity = np.percentile(self.comparator(pairs)[:, 1].cpu().numpy(), 90)
            bonuses.append(0.03 * (0.5 - similarity))
            if bonuses[-1] > 0:
                memory[self.random.integers(self.capacity)] = present
        return torch.tensor(bonuses)


def full_bonus(num_envs: int, capacity: int, comparator: str, device: str) -> EpisodicBonus:
    """The batched bonus with full memories."""
    r_network = RNetwork((8,), comparator=comparator, embedding_size=SIZE).to(device)
    r_network.fitted.fill_(True)
    bonus = EpisodicBonus(r_network, num_envs, EpisodicConfig(memory_capacity=capacity))
    bonus.memory.embeddings.normal_()
    bonus.memory.added.fill_(capacity)
    return bonus


def best_seconds(step: Callable[[], object], seconds: float) -> float:
    """Seconds of the shortest call, the one least disturbed by other programs."""
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    best = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        wait()
        best = min(best, time.perf_counter() - start)
    return best


def measure(num_envs: int, capacity: int, device: str, seconds: float) -> dict[str, float]:
    """Environment steps/s of each variant."""
    embedding = torch.randn(num_envs, SIZE, device=device)
    both = Embeddings(embedding, embedding)
    first = torch.zeros(num_envs, dtype=torch.bool, device=device)
    loop = LoopOverEnvironments(num_envs, capacity, device)
    mlp = full_bonus(num_envs, capacity, "mlp", device)
    dot = full_bonus(num_envs, capacity, "dot", device)
    ways: dict[str, Callable[[], object]] = {
        "loop": lambda: loop.bonus(embedding),
        "mlp": lambda: mlp.rate(both, first),
        "dot": lambda: dot.rate(both, first),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            best[name] = min(best[name], best_seconds(way, seconds / ROUNDS))
    return {name: num_envs / seconds for name, seconds in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds per table cell")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        where = torch.cuda.get_device_name() if device == "cuda" else f"{args.threads} threads"
        print(
            f"\n{device} ({where}), torch {torch.__version__}, environment steps/s, D = {SIZE}"
        )
        print("|  N |    K |   loop | split mlp |  un-shared dot | mlp/loop | dot/loop |")
        print("|---:|-----:|-------:|----------:|---------------:|---------:|---------:|")
        for num_envs in (16, 64):
            for capacity in (200, 1000):
                rate = measure(num_envs, capacity, device, args.seconds)
                ratios = rate["mlp"] / rate["loop"], rate["dot"] / rate["loop"]
                print(
                    f"| {num_envs} | {capacity:4} | {rate['loop']:6,.0f} | {rate['mlp']:9,.0f} "
                    f"| {rate['dot']:14,.0f} | {ratios[0]:7.1f}x | {ratios[1]:7.0f}x |"
                )


if __name__ == "__main__":
    main()
