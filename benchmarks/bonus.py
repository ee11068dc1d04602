"""Speed of the bonuses, compared with loops over environments.

    python benchmarks/bonus.py [--seconds 2] [--threads 2] [--only field]

Memories are full and embeddings are given: only comparing, aggregating and remembering are
timed. EC's loop is as in the authors' code: one environment after another, it concatenates the
memory with copies of the newest embedding, runs the complete comparator over them and takes
NumPy's percentile. The loops of NGU, E3B and ETD are ours, in the same manner: a memory is a
list of embeddings. The variants alternate for several rounds, and the shortest call of each
counts.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.e3b import E3B
from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.bonus.etd import ETD, ETDConfig
from episodic_curiosity.bonus.ngu import NGU, NGUConfig
from episodic_curiosity.bonus.quasimetric import quasimetric
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


class FieldLoop:
    """NGU, E3B and ETD, one environment after another."""

    def __init__(self, num_envs: int, capacity: int, size: int, device: str) -> None:
        self.capacity = capacity
        self.memories = [
            list(torch.randn(capacity, size, device=device)) for _ in range(num_envs)
        ]
        self.matrices = [torch.eye(size, device=device) / 0.1 for _ in range(num_envs)]
        self.averages = [2.0 * size] * num_envs

    def ngu(self, embedding: Tensor) -> list[float]:
        config, paid = NGUConfig(), []
        for env, present in enumerate(embedding):
            squared = (torch.stack(self.memories[env]) - present).square().sum(dim=1)
            nearest = squared.topk(config.k, largest=False).values
            self.averages[env] += 0.01 * (nearest.mean().item() - self.averages[env])
            apart = (nearest / self.averages[env] - config.cluster_distance).clamp(min=0)
            kernel = config.kernel_epsilon / (apart + config.kernel_epsilon)
            similarity = kernel.sum().sqrt().item() + config.c
            paid.append(0.0 if similarity > config.most_similar else 1 / similarity)
            self._remember(env, present)
        return paid

    def e3b(self, embedding: Tensor) -> list[float]:
        paid = []
        for matrix, present in zip(self.matrices, embedding, strict=True):
            across = matrix @ present
            length = present @ across
            matrix -= torch.outer(across, across) / (1 + length)
            paid.append(length.item())
        return paid

    def etd(self, embedding: Tensor) -> list[float]:
        paid = []
        for env, present in enumerate(embedding):
            paid.append(quasimetric(torch.stack(self.memories[env]), present).min().item())
            self._remember(env, present)
        return paid

    def _remember(self, env: int, present: Tensor) -> None:
        self.memories[env].append(present)
        self.memories[env].pop(0)


def measure_field(num_envs: int, capacity: int, device: str, seconds: float) -> None:
    """Prints a line for each of NGU, E3B and ETD."""
    ngu_config = NGUConfig(memory_capacity=capacity)
    etd_config = ETDConfig(memory_capacity=capacity)
    bonuses: dict[str, NGU | E3B | ETD] = {
        "ngu": NGU((8,), num_envs, num_actions=4, config=ngu_config, device=device),
        "e3b": E3B((8,), num_envs, num_actions=4, device=device),
        "etd": ETD((8,), num_envs, etd_config, device=device),
    }
    opens = torch.zeros(num_envs, dtype=torch.bool, device=device)
    for name, bonus in bonuses.items():
        size = bonus.config.embedding_size * (2 if name == "etd" else 1)
        if not isinstance(bonus, E3B):
            bonus.memory.embeddings.normal_()
            bonus.memory.added.fill_(capacity)
        loop = getattr(FieldLoop(num_envs, capacity, size, device), name)
        embedding = torch.randn(num_envs, size, device=device)
        rate = fastest(
            {
                "loop": lambda loop=loop, embedding=embedding: loop(embedding),
                "batch": lambda bonus=bonus, embedding=embedding: bonus.rate(
                    embedding, opens, ~opens
                ),
            },
            num_envs,
            seconds,
        )
        slots, ratio = "-" if name == "e3b" else capacity, rate["batch"] / rate["loop"]
        print(
            f"| `ppo+{name}` | {num_envs} | {slots} | {size} "
            f"| {rate['loop']:,.0f} | {rate['batch']:,.0f} | {ratio:.0f}x |"
        )


def fastest(
    ways: dict[str, Callable[[], object]], num_envs: int, seconds: float
) -> dict[str, float]:
    """Environment steps/s of each variant, by its shortest call."""
    best = dict.fromkeys(ways, float("inf"))
    with torch.no_grad():
        for _ in range(ROUNDS):
            for name, way in ways.items():
                best[name] = min(best[name], best_seconds(way, seconds / ROUNDS))
    return {name: num_envs / shortest for name, shortest in best.items()}


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
        "mlp": lambda: mlp.rate(both, first, ~first),
        "dot": lambda: dot.rate(both, first, ~first),
    }
    return fastest(ways, num_envs, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds per table cell")
    parser.add_argument("--only", choices=["ec", "field"], help="one of the two tables")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        where = torch.cuda.get_device_name() if device == "cuda" else f"{args.threads} threads"
        print(f"\n{device} ({where}), torch {torch.__version__}, environment steps/s")
        if args.only != "field":
            print_ec(device, args.seconds)
        if args.only != "ec":
            print("| method | N | K | D | loop | batch | ratio |")
            print("|---|---:|---:|---:|---:|---:|---:|")
            for num_envs in (16, 64):
                measure_field(num_envs, 200, device, args.seconds)


def print_ec(device: str, seconds: float) -> None:
    """Prints EC's table."""
    print(f"`ppo+ec`, D = {SIZE}")
    print("|  N |    K |   loop | split mlp |  un-shared dot | mlp/loop | dot/loop |")
    print("|---:|-----:|-------:|----------:|---------------:|---------:|---------:|")
    for num_envs in (16, 64):
        for capacity in (200, 1000):
            rate = measure(num_envs, capacity, device, seconds)
            ratios = rate["mlp"] / rate["loop"], rate["dot"] / rate["loop"]
            print(
                f"| {num_envs} | {capacity:4} | {rate['loop']:6,.0f} | {rate['mlp']:9,.0f} "
                f"| {rate['dot']:14,.0f} | {ratios[0]:7.1f}x | {ratios[1]:7.0f}x |"
            )


if __name__ == "__main__":
    main()
