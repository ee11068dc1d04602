"""Steps/s of ants with their views, compared with Gymnasium's ant and its renderer.

    python benchmarks/ant.py [--envs 64] [--seconds 9]

All draw 160 x 120 and alternate in one run. Each figure is the best of three rounds, since
other programs can only slow it down. Gymnasium steps one ant per core, each in its own process;
"plain" is without shadows, reflections and multisampling, like our views. Needs Gymnasium's
requirements for MuJoCo (imageio) and EGL, or `MUJOCO_GL=osmesa`.
"""

import argparse
import os
from collections.abc import Callable

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import AddRenderObservation
from worlds import rate

from episodic_curiosity.worlds.registry import make_world

SIZE = (120, 160)
Player = tuple[Callable[[], object], int, Callable[[], object]]  # step, ants, close


def ours(num_envs: int, size: tuple[int, int] | None = SIZE) -> Player:
    world = make_world("ant/no-reward", num_envs=num_envs, seed=0, view_size=size)
    world.reset()
    return lambda: world.step(2 * torch.rand(num_envs, 8) - 1), num_envs, world.close


def make_gymnasiums(plain: bool) -> gymnasium.Env:
    height, width = SIZE
    env = gymnasium.make(
        "Ant-v5",
        render_mode="rgb_array",
        height=height,
        width=width,
        include_cfrc_ext_in_observation=False,
    )
    if plain:
        model = env.unwrapped.model
        model.light_castshadow[:] = False
        model.mat_reflectance[:] = 0
        model.vis.quality.offsamples = 0
    return AddRenderObservation(env, render_only=True)


def gymnasiums(plain: bool) -> Player:
    count = os.cpu_count() or 1
    envs = gymnasium.vector.AsyncVectorEnv(
        [lambda: make_gymnasiums(plain)] * count, context="spawn"
    )
    envs.reset(seed=0)
    random = np.random.default_rng(0)
    actions = random.uniform(-1, 1, (count, 8)).astype(np.float32)
    return lambda: envs.step(actions), count, envs.close


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, default=64, help="number of our ants")
    parser.add_argument("--seconds", type=float, default=9.0, help="seconds per figure")
    options = parser.parse_args()
    os.environ.setdefault("MUJOCO_GL", "egl")
    players = {
        "ours": ours(options.envs),
        "ours, 84 x 84": ours(options.envs, (84, 84)),
        "ours, no view": ours(options.envs, None),
        "Gymnasium's": gymnasiums(plain=False),
        "Gymnasium's, plain": gymnasiums(plain=True),
    }
    best = dict.fromkeys(players, 0.0)
    for _ in range(3):
        for name, (step, count, _) in players.items():
            best[name] = max(best[name], rate(step, count, options.seconds / 3, "cpu"))
    print(f"{'ants':<20} {'steps/s':>10} {'ours is':>10}")
    for name, steps in best.items():
        print(f"{name:<20} {steps:>10,.0f} {best['ours'] / steps:>9.1f}x")
    for _, _, close in players.values():
        close()


if __name__ == "__main__":
    main()
