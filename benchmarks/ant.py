"""Speed of the ant: bare MuJoCo, Gymnasium, EnvPool, our world and training.

    python benchmarks/ant.py [--seconds 3] [--cameras]

All alternate in one run. Without a camera all return joints and velocities. Ours draws views of
160 x 120, final ones included; training is that of the preset `cpu` with 16 ants. EnvPool is
measured if it can be imported. `--cameras` adds Gymnasium's ant with its own renderer, at the
same size; "plain" is without shadows, reflections and multisampling, like our views. That needs
imageio and EGL, or `MUJOCO_GL=osmesa`.
"""

import argparse
import os
from collections.abc import Callable

import gymnasium
import mujoco
import numpy as np
import torch
from cpu_seconds import Player, compare, training
from gymnasium.wrappers import AddRenderObservation

from episodic_curiosity.worlds.ant.body import NUM_MOTORS, SUBSTEPS, describe_ant
from episodic_curiosity.worlds.registry import make_world

TASK, ID = "ant/no-reward", "Ant-v5"
SIZE = (120, 160)
ANTS, TRAINED = 64, 16
THEIRS = "AsyncVectorEnv"


def engine() -> Player:
    """One ant that is never reset, as MuJoCo simulates it alone."""
    model = mujoco.MjModel.from_xml_string(describe_ant())
    data, random = mujoco.MjData(model), np.random.default_rng(0)

    def play() -> None:
        data.ctrl[:] = random.uniform(-1, 1, NUM_MOTORS)
        mujoco.mj_step(model, data, SUBSTEPS)

    return Player(play, 1, lambda: None)


def ours(size: tuple[int, int] | None) -> Player:
    world = make_world(TASK, num_envs=ANTS, seed=0, view_size=size)
    world.reset()
    return Player(lambda: world.step(2 * torch.rand(ANTS, NUM_MOTORS) - 1), ANTS, world.close)


def make_gymnasium(camera: str) -> gymnasium.Env:
    if camera == "none":
        return gymnasium.make(ID, include_cfrc_ext_in_observation=False)
    height, width = SIZE
    env = gymnasium.make(
        ID,
        render_mode="rgb_array",
        height=height,
        width=width,
        include_cfrc_ext_in_observation=False,
    )
    if camera == "plain":
        model = env.unwrapped.model
        model.light_castshadow[:] = False
        model.mat_reflectance[:] = 0
        model.vis.quality.offsamples = 0
    return AddRenderObservation(env, render_only=True)


def async_vector_env(camera: str = "none") -> Player:
    """One ant per core, each in its own process."""
    count = os.cpu_count() or 1
    makers = [lambda: make_gymnasium(camera)] * count
    envs = gymnasium.vector.AsyncVectorEnv(makers, context="spawn")
    envs.reset(seed=0)
    random = np.random.default_rng(0)

    def play() -> None:
        envs.step(random.uniform(-1, 1, (count, NUM_MOTORS)).astype(np.float32))

    return Player(play, count, envs.close)


def envpool() -> Player:
    import envpool

    envs = envpool.make_gymnasium(ID, num_envs=ANTS, num_threads=os.cpu_count(), seed=0)
    envs.reset()
    random = np.random.default_rng(0)
    return Player(
        lambda: envs.step(random.uniform(-1, 1, (ANTS, NUM_MOTORS))), ANTS, envs.close
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="per round")
    parser.add_argument("--cameras", action="store_true", help="Gymnasium's renderer, too")
    options = parser.parse_args()
    os.environ.setdefault("MUJOCO_GL", "egl")
    makers: dict[str, Callable[[], Player]] = {
        "bare engine, 1 ant": engine,
        THEIRS: async_vector_env,
        "EnvPool": envpool,
        "ours, no view": lambda: ours(None),
        "ours, views of 84 x 84": lambda: ours((84, 84)),
        "ours, views of 160 x 120": lambda: ours(SIZE),
        "ours, training ppo": lambda: training(TASK, "ppo", TRAINED),
        "ours, training ppo+ec": lambda: training(TASK, "ppo+ec", TRAINED),
    }
    if options.cameras:
        makers["AsyncVectorEnv, camera"] = lambda: async_vector_env("own")
        makers["AsyncVectorEnv, plain camera"] = lambda: async_vector_env("plain")
    compare(makers, than=THEIRS, seconds=options.seconds)


if __name__ == "__main__":
    main()
