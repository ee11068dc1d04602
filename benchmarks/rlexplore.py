"""Our RND and E3B beside RLeXplore's, as both are delivered, on a CPU.

    python -m venv other
    other/bin/pip install rllte-core safetensors && other/bin/pip install -U gymnasium
    PYTHONPATH=. other/bin/python benchmarks/rlexplore.py [--rounds 3] [--envs 16] [--threads 1]

RLeXplore 1.0.1 has pins of its own, so it is installed apart; the core of this package needs
torch and NumPy alone. Its NGU is left out: it ends with an AttributeError. Both see the same
rollout of random 84 x 84 frames. `pay`: every step is shown (`watch`, or `bonus`) and the bonus
computed; `learn`: the networks learn from the rollout, RLeXplore's in one pass, ours in four.
Microseconds per environment step, of the fastest rollout; rollouts alternate.
"""

import argparse
import time
from collections.abc import Callable

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from rllte.xplore.reward import E3B, RND

import episodic_curiosity as ec

NUM_STEPS = 128  # of a rollout
EPISODE = 64  # steps
SHAPE = (3, 84, 84)
NUM_ACTIONS = 7
Play = Callable[[], object]


class Spaces(gymnasium.vector.VectorEnv):
    """The spaces that RLeXplore reads; it plays some steps of it to normalise by."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.single_observation_space = Box(0, 255, SHAPE, np.uint8)
        self.single_action_space = Discrete(NUM_ACTIONS)
        self.observation_space = Box(0, 255, (num_envs, *SHAPE), np.uint8)
        self.action_space = gymnasium.spaces.MultiDiscrete([NUM_ACTIONS] * num_envs)
        self._frames = np.random.default_rng(0).integers(0, 256, (num_envs, *SHAPE), np.uint8)

    def reset(self, **_):
        return torch.as_tensor(self._frames), {}

    def step(self, _):
        zeros = torch.zeros(self.num_envs)
        return torch.as_tensor(self._frames), zeros, zeros.bool(), zeros.bool(), {}


def make_rollout(num_envs: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shape = (NUM_STEPS + 1, num_envs, *SHAPE)
    frames = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    truncated = torch.zeros(NUM_STEPS, num_envs, dtype=torch.bool)
    truncated[EPISODE - 1 :: EPISODE] = True
    return {
        "frames": frames,
        "actions": torch.randint(0, NUM_ACTIONS, (NUM_STEPS, num_envs), generator=generator),
        "truncateds": truncated,
    }


def theirs(reward, rollout: dict[str, torch.Tensor]) -> tuple[Play, Play]:
    frames = rollout["frames"].float()
    nothing = torch.zeros(rollout["truncateds"].shape)
    samples = {
        "observations": frames[:-1],
        "next_observations": frames[1:],
        "actions": rollout["actions"],
        "rewards": nothing,
        "terminateds": nothing.bool(),
        "truncateds": rollout["truncateds"],
    }
    order = ("observations", "actions", "rewards", "terminateds", "truncateds")

    def play() -> None:
        for time_step in range(NUM_STEPS):
            now = [samples[name][time_step] for name in order]
            reward.watch(*now, samples["next_observations"][time_step])
        reward.compute(samples, sync=False)

    return play, lambda: reward.update(samples)


def ours(bonus: ec.Bonus, rollout: dict[str, torch.Tensor]) -> tuple[Play, Play]:
    frames, actions, truncated = rollout["frames"], rollout["actions"], rollout["truncateds"]

    def play() -> None:
        bonus.begin(frames[0])
        for time_step in range(NUM_STEPS):
            bonus.bonus(frames[time_step + 1], action=actions[time_step])
            if truncated[time_step].any():
                bonus.begin(frames[time_step + 1], where=truncated[time_step])

    return play, bonus.learn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    num_envs = args.envs
    rollout, envs = make_rollout(num_envs), Spaces(num_envs)
    pairs = {
        "RND": (RND(envs), ec.RND(SHAPE, num_envs, num_steps=NUM_STEPS)),
        "E3B": (
            E3B(envs),
            ec.E3B(SHAPE, num_envs, num_actions=NUM_ACTIONS, num_steps=NUM_STEPS),
        ),
    }
    print(f"{num_envs} environments, {args.threads} thread(s); us per environment step")
    print("| bonus | | RLeXplore | ours | ratio |\n|---|---|---:|---:|---:|")
    for name, (reward, bonus) in pairs.items():
        sides = theirs(reward, rollout), ours(bonus, rollout)
        them, us = fastest(sides, args.rounds, NUM_STEPS * num_envs)
        for what, one, other in zip(("pay", "learn"), them, us, strict=True):
            print(f"| {name} | {what} | {one:,.0f} | {other:,.0f} | {one / other:.1f}x |")


def fastest(
    sides: tuple[tuple[Play, Play], ...], rounds: int, num_steps: int
) -> list[list[float]]:
    """Microseconds per step to pay and to learn, of each side's fastest rollout."""
    taken = [[float("inf")] * 2 for _ in sides]
    for _ in range(rounds):
        for side, parts in enumerate(sides):
            for number, part in enumerate(parts):  # ours learns what it has paid
                begun = time.perf_counter()
                part()
                seconds = time.perf_counter() - begun
                taken[side][number] = min(taken[side][number], 1e6 * seconds / num_steps)
    return taken


if __name__ == "__main__":
    main()
