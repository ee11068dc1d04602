"""Section 2 of the paper for one environment, loop by loop, with nothing of the package."""

import numpy as np

MASK = 0xFFFFFFFF


def mix(bits: int) -> int:
    bits = ((bits ^ (bits >> 16)) * 0x7FEB352D) & MASK
    bits = ((bits ^ (bits >> 15)) * 0x846CA68B) & MASK
    return bits ^ (bits >> 16)


def replaced_slot(capacity: int, seed: int, env: int, draws: int) -> int:
    """Which slot gives way: the package's counter-based random number, in plain integers."""
    bits = mix((seed + 0x9E3779B9) & MASK)
    for counter in (env, draws):
        bits = mix(bits ^ mix(counter & MASK))
    return (bits * capacity) >> 32


AGGREGATES = {
    "percentile_90": lambda c: float(np.percentile(c, 90)),
    "tenth_largest": lambda c: sorted(c, reverse=True)[min(10, len(c)) - 1],
    "max": max,
    "relative_count": lambda c: sum(value > 0.5 for value in c) / len(c),
}


class OneEnvironment:
    """The bonus of a single environment."""

    def __init__(
        self,
        embed,
        compare,
        *,
        alpha,
        beta,
        threshold,
        aggregate,
        capacity,
        replacement,
        seed,
        env,
    ):
        self.embed, self.compare = embed, compare  # E and C for single observations
        self.alpha, self.beta, self.threshold = alpha, beta, threshold
        self.f, self.capacity, self.replacement = AGGREGATES[aggregate], capacity, replacement
        self.seed, self.env = seed, env
        self.memory, self.oldest, self.draws, self.replacements = [], 0, 0, 0

    def begin(self, observation) -> None:
        self.memory, self.oldest = [], 0
        self.remember(self.embed(observation))

    def bonus(self, observation) -> float:
        embedding = self.embed(observation)
        c = [self.compare(memory, embedding) for memory in self.memory]
        b = self.alpha * (self.beta - self.f(c))
        if b > self.threshold:
            self.remember(embedding)
        return b

    def remember(self, embedding) -> None:
        if len(self.memory) < self.capacity:
            self.memory.append(embedding)
        else:
            slot = replaced_slot(self.capacity, self.seed, self.env, self.draws)
            if self.replacement == "fifo":
                slot, self.oldest = self.oldest, (self.oldest + 1) % self.capacity
            self.memory[slot] = embedding
            self.replacements += 1
        self.draws += 1
