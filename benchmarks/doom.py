"""Speed of ViZDoom's MyWayHome: the bare engine, Gymnasium, EnvPool, our world and training.

    python benchmarks/doom.py [--seconds 3]

All play at 160 x 120 with 4 tics per step, and alternate in one run. "frames" is what
Gymnasium's AsyncVectorEnv returns, too: a copy of the colour frames. "world" is our complete
step, with the policy's grey 84 x 84, rewards, resets and positions, all as tensors. Training is
that of the preset `cpu` with 8 games. EnvPool is measured if it can be imported.
"""

import argparse
import os
import tempfile
from collections.abc import Callable

import gymnasium
import numpy as np
import torch
from cpu_seconds import Player, compare, training

from episodic_curiosity.worlds.processes.workers import Workers
from episodic_curiosity.worlds.registry import make_world
from episodic_curiosity.worlds.vizdoom.scenarios import REPEAT, find_scenario
from episodic_curiosity.worlds.vizdoom.world import ENGINE, FIELDS

TASK, GYMNASIUM_ID, ENVPOOL_ID = "vizdoom/dense", "VizdoomMyWayHome-v1", "MyWayHome-v1"
GAMES = 8
THEIRS = "AsyncVectorEnv"


def engine() -> Player:
    """One game in this process: nothing but actions, and frames to look at."""
    from vizdoom import DoomGame, ScreenFormat, ScreenResolution, scenarios_path

    game, random = DoomGame(), np.random.default_rng(0)
    game.load_config(os.path.join(scenarios_path, "my_way_home.cfg"))
    game.set_screen_resolution(ScreenResolution.RES_160X120)
    game.set_screen_format(ScreenFormat.RGB24)
    game.set_window_visible(False)
    game.init()
    actions = np.eye(len(game.get_available_buttons())).tolist()

    def play() -> None:
        game.make_action(actions[random.integers(len(actions))], REPEAT)
        if game.is_episode_finished():
            game.new_episode()
        game.get_state().screen_buffer.copy()

    return Player(play, 1, game.close)


def frames() -> Player:
    """Our workers, without what the world adds."""
    scenario = find_scenario("dense", None, None)
    options = scenario.engine | {"sizes": None}
    workers = Workers(
        ENGINE, options, FIELDS, num_envs=GAMES, num_workers=None, timeout=60.0, pinned=True
    )
    board, random = workers.board, np.random.default_rng(0)
    board.seed[:] = range(GAMES)
    workers.begin()

    def play() -> None:
        board.action[:] = random.integers(len(scenario.action_names), size=GAMES)
        workers.step()
        board.present["frame"].copy()

    return Player(play, GAMES, workers.close)


def world() -> Player:
    ours = make_world(TASK, num_envs=GAMES, seed=0)
    ours.reset()
    return Player(
        lambda: ours.step(torch.randint(ours.spec.num_actions, (GAMES,))), GAMES, ours.close
    )


def make_gymnasium() -> gymnasium.Env:
    from vizdoom import ScreenResolution, gymnasium_wrapper

    assert gymnasium_wrapper  # its import registers the id
    os.chdir(tempfile.mkdtemp())  # the engine writes to the current folder
    size = ScreenResolution.RES_160X120
    return gymnasium.make(GYMNASIUM_ID, frame_skip=REPEAT, screen_resolution=size)


def async_vector_env() -> Player:
    envs = gymnasium.vector.AsyncVectorEnv([make_gymnasium] * GAMES, context="spawn")
    envs.reset(seed=0)
    random = np.random.default_rng(0)
    left, _, forward = 1, 2, 3  # 0 does nothing
    return Player(
        lambda: envs.step(random.integers(left, forward + 1, GAMES)), GAMES, envs.close
    )


def envpool() -> Player:
    import envpool

    envs = envpool.make_gymnasium(
        ENVPOOL_ID,
        num_envs=GAMES,
        num_threads=os.cpu_count(),
        seed=0,
        frame_skip=REPEAT,
        stack_num=1,
        use_combined_action=True,
        img_height=120,
        img_width=160,
    )
    envs.reset()
    random = np.random.default_rng(0)
    return Player(
        lambda: envs.step(random.integers(envs.action_space.n, size=GAMES)), GAMES, envs.close
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="per round")
    seconds = parser.parse_args().seconds
    makers: dict[str, Callable[[], Player]] = {
        "bare engine, 1 game": engine,
        THEIRS: async_vector_env,
        "EnvPool": envpool,
        "ours, frames": frames,
        "ours, world": world,
        "ours, training ppo": lambda: training(TASK, "ppo", GAMES),
        "ours, training ppo+ec": lambda: training(TASK, "ppo+ec", GAMES),
    }
    compare(makers, than=THEIRS, seconds=seconds)


if __name__ == "__main__":
    main()
