"""The adapters' share of a step, with the fast R-network and 84 x 84 frames on a CPU.

    python benchmarks/adapters.py [--seconds 2] [--envs 16] [--threads 1]

Each library steps environments that return a stored frame at once: without curiosity, with an
adapter whose bonus is constant, and with episodic curiosity (memories of 200, EC). The three
alternate for several rounds, and the shortest call of each counts. `adapter` is what the
wrapper costs by itself, `curiosity` what embedding, comparing and remembering cost on top, in
microseconds per environment step; the share is the adapter's of the whole step. At last SB3's
PPO trains its CnnPolicy (64 steps per rollout, 4 epochs) without and with episodic curiosity:
the whole price of curiosity beside SB3's own time.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv
from torchrl.envs import GymWrapper, SerialEnv, TransformedEnv

import episodic_curiosity as ec
from episodic_curiosity.adapters.gymnasium import CuriousVectorEnv
from episodic_curiosity.adapters.stable_baselines3 import CuriousVecEnv
from episodic_curiosity.adapters.torchrl import CuriosityTransform
from episodic_curiosity.adapters.views import channels_first

ROUNDS = 3
EPISODE = 300  # steps
ROLLOUT = 64  # steps of an environment, of SB3's PPO
Step = Callable[[], Any]


class Frames(gymnasium.Env[Any, Any]):
    """Random frames, drawn beforehand."""

    observation_space = Box(0, 255, (84, 84, 3), np.uint8)
    action_space = Discrete(4)

    def __init__(self, seed: int) -> None:
        self.frames = np.random.default_rng(seed).integers(0, 256, (32, 84, 84, 3), np.uint8)
        self.time = 0

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        self.time = 0
        return self.frames[0], {}

    def step(self, _: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self.frames[self.time % 32], 0.0, False, self.time == EPISODE, {}


def gymnasium_step(num_envs: int, bonus: ec.Bonus | None) -> Step:
    makers = [partial(Frames, seed) for seed in range(num_envs)]
    envs = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    if bonus is not None:
        envs = CuriousVectorEnv(envs, bonus, view=channels_first)
    envs.reset()
    action = np.zeros(num_envs, np.int64)
    return lambda: envs.step(action)


def sb3_env(num_envs: int, bonus: ec.Bonus | None) -> Any:
    env: Any = DummyVecEnv([partial(Frames, seed) for seed in range(num_envs)])
    if bonus is not None:
        env = CuriousVecEnv(env, bonus, view=channels_first)
    return env


def sb3_step(num_envs: int, bonus: ec.Bonus | None) -> Step:
    env = sb3_env(num_envs, bonus)
    env.reset()
    action = np.zeros(num_envs, np.int64)
    return lambda: env.step(action)


def sb3_training(num_envs: int, bonus: ec.Bonus | None) -> Step:
    """One rollout of SB3's PPO with its update."""
    env = sb3_env(num_envs, bonus)
    model = PPO("CnnPolicy", env, n_steps=ROLLOUT, batch_size=256, n_epochs=4, device="cpu")
    return lambda: model.learn(ROLLOUT * num_envs, reset_num_timesteps=False)


def torchrl_step(num_envs: int, bonus: ec.Bonus | None) -> Step:
    makers = [
        lambda seed=seed: GymWrapper(Frames(seed), categorical_action_encoding=True)
        for seed in range(num_envs)
    ]
    env: Any = SerialEnv(num_envs, makers)
    if bonus is not None:
        view = lambda tensordict: channels_first(tensordict["pixels"])  # noqa: E731
        env = TransformedEnv(env, CuriosityTransform(bonus, view=view))
    now = env.reset().set("action", torch.zeros(num_envs, dtype=torch.int64))

    def step() -> None:
        nonlocal now
        _, now = env.step_and_maybe_reset(now)
        now.set("action", torch.zeros(num_envs, dtype=torch.int64))

    return step


def microseconds(steps: dict[str, Step], seconds: float, num_envs: int) -> dict[str, float]:
    """Per environment step, of the shortest call."""
    for step in steps.values():  # fills the memories
        for _ in range(EPISODE - 1):
            step()
    return fastest(steps, seconds, num_envs)


def fastest(steps: dict[str, Step], seconds: float, num_steps: int) -> dict[str, float]:
    """Microseconds per environment step, of the shortest of calls that take `num_steps`."""
    shortest = dict.fromkeys(steps, float("inf"))
    for _ in range(ROUNDS):
        for name, step in steps.items():
            end = time.perf_counter() + seconds / ROUNDS
            while (begun := time.perf_counter()) < end:
                step()
                shortest[name] = min(shortest[name], time.perf_counter() - begun)
    return {name: 1e6 * taken / num_steps for name, taken in shortest.items()}


def curious(num_envs: int) -> ec.Bonus:
    r_network = ec.RNetwork((3, 84, 84), **ec.FAST)
    r_network.fitted.fill_(True)
    return ec.EpisodicCuriosity(r_network, num_envs, beta=1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="per variant")
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    num_envs = args.envs
    print(
        f"{num_envs} environments, 84 x 84, {args.threads} thread(s); us per environment step"
    )
    print("| library | plain | adapter | curiosity | share |")
    print("|---|---:|---:|---:|---:|")
    for library, make in (
        ("Gymnasium", gymnasium_step),
        ("Stable-Baselines3", sb3_step),
        ("TorchRL", torchrl_step),
    ):
        steps = {
            "plain": make(num_envs, None),
            "constant": make(num_envs, ec.ConstantBonus(num_envs)),
            "curious": make(num_envs, curious(num_envs)),
        }
        took = microseconds(steps, args.seconds, num_envs)
        plain, constant, total = took.values()
        print(
            f"| {library} | {plain:.0f} | {constant - plain:.0f} | {total - constant:.0f} | "
            f"{(constant - plain) / total:.0%} |"
        )
    training = {"SB3": None, "SB3 with curiosity": curious(num_envs)}
    steps = {name: sb3_training(num_envs, bonus) for name, bonus in training.items()}
    plain, total = fastest(steps, args.seconds, ROLLOUT * num_envs).values()
    print(
        f"\nSB3's PPO, training included: {plain:.0f} us, with curiosity {total:.0f} us: "
        f"{(total - plain) / plain:.0%} more"
    )


if __name__ == "__main__":
    main()
