"""Stable-Baselines3's PPO on MiniGrid, alone or with a bonus, on a CPU.

    python examples/sb3_minigrid.py --env MiniGrid-MultiRoom-N4-S5-v0 --method ppo+eco \
        --steps 1_000_000 --seed 0 --out docs/data/minigrid

Policy and curiosity see the 7 x 7 cells in front of the agent as one-hot vectors. Lines that
end with `# curiosity` are all that curiosity adds. Writes the task's mean return of the newest
100 episodes after every fourth rollout, as `OUT/<env>__<method>__s<seed>.json`.
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium
import minigrid  # noqa: F401 (registers its environments)
import numpy as np
import torch
import tyro
from gymnasium.spaces import Box
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.env_util import make_vec_env
from torch import nn

import episodic_curiosity as ec  # curiosity
from episodic_curiosity.adapters.stable_baselines3 import (  # curiosity
    CuriosityCallback,
    CuriousVecEnv,
)

# ppo+eco-paper fits its R-network to unreachable pairs of one episode, as the paper does.
BONUSES = ("ppo+eco", "ppo+eco-paper", "ppo+rnd", "ppo+noveld", "ppo+etd")
NUM_ENVS = 16
NUM_STEPS = 128  # of an environment per rollout
ROLLOUTS_PER_POINT = 4  # of the curve
KINDS = (len(OBJECT_TO_IDX), len(COLOR_TO_IDX), len(STATE_TO_IDX))  # of the parts of a cell


@dataclass
class Args:
    env: str = "MiniGrid-MultiRoom-N4-S5-v0"
    method: str = "ppo+eco"  # or ppo, ppo+eco-paper, ppo+rnd, ppo+noveld, ppo+etd
    steps: int = 1_000_000
    seed: int = 0
    weight: float = 1.0  # factor on the bonus
    out: Path = Path("docs/data/minigrid")


class OneHot(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The cells in view as one vector of zeros and ones."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        height, width, _ = env.observation_space["image"].shape  # type: ignore[index]
        self.observation_space = Box(0.0, 1.0, (height * width * sum(KINDS),), np.float32)
        self._codes = [np.eye(kinds, dtype=np.float32) for kinds in KINDS]

    def observation(self, observation: Any) -> Any:
        parts = np.moveaxis(observation["image"], -1, 0)
        coded = [code[part].ravel() for code, part in zip(self._codes, parts, strict=True)]
        return np.concatenate(coded)


def make_bonus(method: str, shape: tuple[int, ...], seed: int) -> ec.Bonus:
    """The bonus of a method, for vectors of this shape."""
    room: dict[str, Any] = {"num_steps": NUM_STEPS, "seed": seed}
    match method:
        case "ppo+eco":
            return make_eco(shape, seed, "other_episodes")
        case "ppo+eco-paper":
            return make_eco(shape, seed, "same_episode")
        case "ppo+rnd":
            return ec.RND(shape, NUM_ENVS, **room)
        case "ppo+noveld":
            return ec.NovelD(shape, NUM_ENVS, **room)
        case "ppo+etd":
            return ec.ETD(shape, NUM_ENVS, ec.ETDConfig(memory_capacity=200), **room)
        case _:
            sys.exit(f"--method must be ppo, {', '.join(BONUSES)}, got {method}")


def make_eco(
    shape: tuple[int, ...], seed: int, far_from: Literal["same_episode", "other_episodes"]
) -> ec.EpisodicCuriosity:
    """Episodic curiosity that is refitted every 40,960 steps.

    Rooms are so small that hardly two views of an episode are far from each other: views of
    other episodes are the better unreachable ones.
    """
    torch.manual_seed(seed)
    embedder = nn.Sequential(nn.Linear(*shape, 256), nn.ReLU(), nn.Linear(256, 128))
    pairs = ec.PairsConfig(k=3, sampler="uniform", far_from=far_from)
    fit = ec.FitConfig(iterations=600, batch_size=128, learning_rate=5e-4, pairs=pairs)
    return ec.EpisodicCuriosity(
        ec.RNetwork(shape, embedder=embedder),
        NUM_ENVS,
        alpha=0.01,
        beta=1.0,
        online=ec.OnlineConfig(refit_every=40_960, history=40_960, fit=fit),
        seed=seed,
    )


class Curve(BaseCallback):
    """Keeps (steps, mean return of the task over the newest 100 episodes) of some rollouts."""

    def __init__(self) -> None:
        super().__init__()
        self.points: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        episodes = self.model.ep_info_buffer
        rollout = self.num_timesteps // (NUM_ENVS * NUM_STEPS)
        if episodes and rollout % ROLLOUTS_PER_POINT == 0:
            returns = float(np.mean([episode["r"] for episode in episodes]))
            self.points.append((self.num_timesteps, round(returns, 4)))


def train(args: Args) -> dict[str, Any]:
    """Trains one agent and returns its curve."""
    env = make_vec_env(args.env, NUM_ENVS, seed=args.seed, wrapper_class=OneHot)
    curve = Curve()
    callbacks: list[BaseCallback] = [curve]
    if args.method != "ppo":
        bonus = make_bonus(args.method, env.observation_space.shape, args.seed)  # curiosity
        env = CuriousVecEnv(env, bonus, weight=args.weight)  # curiosity
        callbacks.append(CuriosityCallback())  # curiosity
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=NUM_STEPS,
        batch_size=512,
        n_epochs=4,
        learning_rate=3e-4,
        ent_coef=0.01,
        seed=args.seed,
        device="cpu",
    )
    begun = time.perf_counter()
    model.learn(args.steps, callback=CallbackList(callbacks))
    # At the end; the callback has logged those of the bonus, which are since the last call.
    metrics = {} if args.method == "ppo" else env.curiosity.metrics()
    state = {name: round(value, 4) for name, value in metrics.items() if "bonus" not in name}
    return {
        "env": args.env,
        "method": args.method,
        "seed": args.seed,
        "weight": args.weight,
        "seconds": round(time.perf_counter() - begun),
        "curiosity": state,
        "curve": curve.points,
    }


def main(args: Args) -> None:
    try:
        result = train(args)
    except gymnasium.error.Error as error:
        sys.exit(f"--env {args.env}: {error}")
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{args.env}__{args.method}__s{args.seed}.json"
    path.write_text(json.dumps(result) + "\n")
    last = result["curve"][-1] if result["curve"] else "no episode ended"
    print(f"{path}: {last}, {result['seconds']} s")


if __name__ == "__main__":
    main(tyro.cli(Args))
