"""RLlib's PPO with two env runners on a MiniGrid task, alone, with ECO or with NovelD.

    python examples/rllib_minigrid.py --env MiniGrid-DoorKey-5x5-v0 --method ppo+eco

Writes the learning curve to a JSON file: pairs of steps and the task's mean return, as RLlib
reports it after each update in which an episode has ended.
The policy sees the 7 x 7 cells in front of the agent, three indices each, as one-hot numbers;
so does NovelD, and ECO sees them as a picture. Needs the extras `rllib` and `minigrid`.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
import tyro
from gymnasium.spaces import Box
from numpy.typing import NDArray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env

import episodic_curiosity as ec
from episodic_curiosity.adapters.rllib import add_curiosity
from episodic_curiosity.adapters.views import FromInfo
from episodic_curiosity.worlds.gymnasium.packages import MINIGRID, import_package

NUM_INDICES = MINIGRID.largest_byte + 1  # of objects; colours and states have fewer
CELLS = (7, 7, 3)


@dataclass
class Args:
    env: str = "MiniGrid-DoorKey-5x5-v0"
    method: Literal["ppo", "ppo+eco", "ppo+noveld"] = "ppo+eco"
    steps: int = 100_000
    seed: int = 0
    out: Path | None = None  # None: <env>__<method>__s<seed>.json
    num_runners: int = 2
    num_envs: int = 8  # of a runner
    num_steps: int = 128  # of an environment per update
    learning_rate: float = 3e-4
    entropy: float = 0.01
    alpha: float = 0.01  # scale of ECO's bonus
    refit_every: int = 20_000  # steps of ECO, which is also the history that is fitted to


class Cells(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observes the cells as one-hot floats; `info["picture"]` has them as bytes (3, 7, 7)."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = Box(0, 1, (int(np.prod(CELLS)) * NUM_INDICES,), np.float32)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**options)
        return self._see(observation["image"], info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        seen, info = self._see(observation["image"], info)
        return seen, reward, terminated, truncated, info

    def _see(self, cells: NDArray[Any], info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        one_hot = (cells[..., None] == np.arange(NUM_INDICES)).astype(np.float32)
        # Networks divide bytes by 255.
        picture = np.round(np.moveaxis(cells, -1, 0) * (255 / MINIGRID.largest_byte))
        return one_hot.reshape(-1), info | {"picture": picture.astype(np.uint8)}


def make_env(name: str) -> gymnasium.Env[Any, Any]:
    """Makes one environment, in any process."""
    import_package(name)
    return Cells(gymnasium.make(name))


def make_config(args: Args) -> PPOConfig:
    """The config of PPO, with curiosity if it is asked for."""
    register_env("cells", lambda _: make_env(args.env))
    num_envs = args.num_runners * args.num_envs
    config = (
        PPOConfig()
        .environment("cells")
        .env_runners(
            num_env_runners=args.num_runners,
            num_envs_per_env_runner=args.num_envs,
            rollout_fragment_length=args.num_steps,
        )
        .training(
            train_batch_size_per_learner=num_envs * args.num_steps,
            minibatch_size=num_envs * args.num_steps // 4,
            num_epochs=4,
            lr=args.learning_rate,
            gamma=0.99,
            lambda_=0.95,
            entropy_coeff=args.entropy,
            vf_loss_coeff=0.5,
            use_kl_loss=False,
            grad_clip=0.5,
        )
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64]))
        .debugging(seed=args.seed, log_level="ERROR")
    )

    def make_noveld(num_envs: int) -> ec.Bonus:
        shape = (int(np.prod(CELLS)) * NUM_INDICES,)
        return ec.NovelD(shape, num_envs, num_steps=args.num_steps, seed=args.seed)

    def make_eco(num_envs: int) -> ec.Bonus:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(args.seed)
            r_network = ec.RNetwork((CELLS[2], CELLS[0], CELLS[1]))
        online = ec.OnlineConfig(refit_every=args.refit_every, history=args.refit_every)
        return ec.EpisodicCuriosity(
            r_network, num_envs, alpha=args.alpha, beta=1.0, online=online, seed=args.seed
        )

    if args.method == "ppo+eco":
        add_curiosity(config, make_eco, view=FromInfo("picture"))
    elif args.method == "ppo+noveld":
        add_curiosity(config, make_noveld)
    return config


def train(args: Args) -> dict[str, Any]:
    """Trains; returns what is written: the curve, and the steps/s after the first update."""
    algorithm = make_config(args).build_algo()
    curve: list[tuple[int, float]] = []
    steps, start = 0, (0, 0.0)
    while steps < args.steps:
        result = algorithm.train()
        steps = int(result["num_env_steps_sampled_lifetime"])
        if start[0] == 0:
            start = (steps, time.perf_counter())
        name = "episode_return_mean" if args.method == "ppo" else "episode_task_return_mean"
        mean = float(result["env_runners"].get(name, np.nan))
        if not np.isnan(mean):  # else no episode has ended
            curve.append((steps, round(mean, 4)))
            print(f"{steps:,} steps: return {mean:.3f}")
    seconds = time.perf_counter() - start[1]
    algorithm.stop()
    speed = (steps - start[0]) / seconds if steps > start[0] else None
    settings = {name: value for name, value in asdict(args).items() if name != "out"}
    return {**settings, "steps_per_second": speed, "curve": curve}


def main(args: Args) -> None:
    try:
        make_env(args.env).close()
    except (ValueError, gymnasium.error.Error) as error:
        sys.exit(f"rllib_minigrid.py: {error}")
    found = train(args)
    out = args.out or Path(f"{args.env}__{args.method}__s{args.seed}.json")
    out.write_text(json.dumps(found, allow_nan=False) + "\n")
    print(f"wrote {out}")


if __name__ == "__main__":
    main(tyro.cli(Args))
