"""Training speed of our methods, and of Stable-Baselines3's PPO on the same maze.

    python benchmarks/train.py [--threads 2] [--envs 16] [--size 84 84] [--seconds 10]

Settings are those of the `cpu` preset, except for these options. All methods train on
maze/no-reward with the same Nature CNN, rollouts, minibatches and epochs, and alternate in one
process. Each figure is the best of at least three updates, including play, since other programs
can only slow it down. On a busy machine compare steps per second of CPU time, which they affect
least. Memories are full, the most expensive case. "with fit" spreads the R-network's fit, with
the preset's settings, over the steps it serves: the interval between refits (ppo+eco) or the
preset's complete run (ppo+ec). Needs Stable-Baselines3.
"""

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numba
import numpy as np
import stable_baselines3
import torch
from cpu_seconds import full_learner
from stable_baselines3.common.vec_env import VecEnv

from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.training import fit_r_network
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.learner import Learner
from episodic_curiosity.runs.presets import PRESETS, resolve
from episodic_curiosity.support.machine import reusing_freed_memory
from episodic_curiosity.worlds.maze.family import MazeConfig

TASK, GYMNASIUM_ID = "maze/no-reward", "EpisodicCuriosity/MazeNoReward-v0"
METHODS = ("ppo", "ppo+icm", "ppo+ec", "ppo+eco")
PEER = "SB3 PPO"
NUM_LEVELS = 100  # instead of thousands, which take long to draw
LONG = 10**9  # steps of a run; never reached
CPU = PRESETS["cpu"].batch
LEAST_UPDATES = 3
FEW, MORE = 40, 60  # iterations of two fits, which draw each view of a short replay once
DRAWN = 512  # views, to time one

Update = Callable[[], object]
Seconds = dict[str, float]  # of an update, or of fitting per step


class Adapter(VecEnv):
    """Wraps a Gymnasium vector environment as a Stable-Baselines3 VecEnv."""

    def __init__(self, envs: gymnasium.vector.VectorEnv) -> None:
        self.envs = envs  # before super(), which reads its render_mode
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.actions = np.zeros(envs.num_envs, np.int64)

    def reset(self) -> np.ndarray:
        return self.envs.reset(seed=0)[0]

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observation, reward, terminated, truncated, info = self.envs.step(self.actions)
        done = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in done]
        for env in np.flatnonzero(done):
            infos[env] = {
                "terminal_observation": info["final_obs"][env],
                "TimeLimit.truncated": not terminated[env],
            }
        return observation, reward, done, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError("batched environments have no attributes to set")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **options: Any):
        raise NotImplementedError("batched environments have no methods to call")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:  # noqa: ARG002
        return [False for _ in self._get_indices(indices)]


def make_run(method: str, num_envs: int, size: tuple[int, int]) -> Run:
    """The preset's run with other numbers of environments; the rollout length is kept."""
    run = resolve(TASK, method, "cpu", LONG, seed=0)
    assert isinstance(run.world, MazeConfig)
    world = dataclasses.replace(
        run.world, num_envs=num_envs, observation_size=size, num_levels=NUM_LEVELS
    )
    num_minibatches = max(1, num_envs * run.ppo.num_steps // CPU.minibatch_size)
    ppo = dataclasses.replace(run.ppo, num_minibatches=num_minibatches)
    return dataclasses.replace(run, device="cpu", world=world, ppo=ppo)


def ours(run: Run, folder: Path) -> tuple[Learner, Update]:
    """The parts of the run, and its update without the R-network's fit."""
    learner = full_learner(run, folder)

    def update() -> None:
        rollout = learner.collector.collect()
        learner.ppo.update(rollout, 0)
        if learner.replay is not None:
            learner.replay.extend(rollout.snapshot, rollout.first[:-1])
        else:
            learner.bonus.learn(rollout)

    return learner, update


def theirs(run: Run) -> Update:
    """An update of Stable-Baselines3's PPO with the run's hyper-parameters."""
    options = run.world.options("train")
    del options["final_frames"]  # Gymnasium always returns them
    envs = gymnasium.make_vec(GYMNASIUM_ID, num_envs=run.world.num_envs, **options)
    ppo = run.ppo
    model = stable_baselines3.PPO(
        "CnnPolicy",
        Adapter(envs),
        learning_rate=ppo.learning_rate,
        n_steps=ppo.num_steps,
        batch_size=run.batch_size // ppo.num_minibatches,
        n_epochs=ppo.num_epochs,
        gamma=ppo.gamma,
        gae_lambda=ppo.lam,
        clip_range=ppo.clip_range,
        ent_coef=ppo.entropy_coefficient,
        vf_coef=ppo.value_coefficient,
        max_grad_norm=ppo.max_gradient_norm,
        seed=0,
        device="cpu",
    )
    return lambda: model.learn(run.batch_size, reset_num_timesteps=False)


def seconds_of(work: Callable[[], object]) -> np.ndarray:
    """Wall and CPU seconds of the work, (2,)."""
    start = np.array([time.perf_counter(), time.process_time()])
    work()
    return np.array([time.perf_counter(), time.process_time()]) - start


def best_updates(updates: dict[str, Update], seconds: float) -> dict[str, np.ndarray]:
    """Seconds of the shortest update of each, (2,); they alternate for `seconds` each."""
    for update in updates.values():
        update()  # compiles, allocates
    taken: dict[str, list[np.ndarray]] = {name: [] for name in updates}
    start = time.perf_counter()
    while (
        time.perf_counter() - start < seconds * len(updates) or len(taken[PEER]) < LEAST_UPDATES
    ):
        for name, update in updates.items():
            taken[name].append(seconds_of(update))
    return {name: np.min(times, axis=0) for name, times in taken.items()}


def seconds_to_fit(learner: Learner, config: FitConfig, num_views: int) -> np.ndarray:
    """Seconds of a complete fit, (2,), extrapolated from two short ones to ECO's replay.

    Each of `num_views` is drawn once, those of the short replay twice.
    """
    replay, r_network = learner.replay, learner.r_network
    assert replay is not None
    assert r_network is not None

    def short(iterations: int) -> Callable[[], object]:
        shortened = dataclasses.replace(config, iterations=iterations, epochs=None)
        return lambda: fit_r_network(r_network, replay, shortened, progress=False)

    few, more = (np.min([seconds_of(short(n)) for _ in range(2)], axis=0) for n in (FEW, MORE))
    each = (more - few) / (MORE - FEW)
    env = torch.arange(DRAWN) % replay.first.shape[1]
    draw = min((seconds_of(lambda: replay.views(env, env)) for _ in range(3)), key=tuple)
    fitting = few + each * (config.num_iterations(replay.first.numel()) - FEW)
    return fitting + draw / DRAWN * num_views


def play_on(learner: Learner, num_steps: int) -> None:
    """Adds that many steps of every environment to ECO's replay, enough for a fit."""
    assert learner.replay is not None
    played = 0
    while played < num_steps:
        rollout = learner.collector.collect()
        assert rollout.snapshot is not None
        learner.replay.extend(rollout.snapshot, rollout.first[:-1])
        played += rollout.num_steps


def fits_per_step(learners: dict[str, Learner], runs: dict[str, Run]) -> dict[str, np.ndarray]:
    """Seconds of fitting per step, (2,), for the methods with an R-network."""
    online, play = runs["ppo+eco"].r_network.online, runs["ppo+ec"].r_network.random_play
    play_on(learners["ppo+eco"], online.fit.least_steps)
    refit = seconds_to_fit(learners["ppo+eco"], online.fit, online.history)
    preset = PRESETS["cpu"]
    num_views = preset.steps // preset.play_share
    fit_before = seconds_to_fit(learners["ppo+eco"], play.fit, num_views)
    return {"ppo+eco": refit / online.refit_every, "ppo+ec": fit_before / preset.steps}


def report(title: str, batch_size: int, best: Seconds, fits: Seconds) -> None:
    """Prints a line per method, compared with our PPO and with SB3's."""
    print(
        f"\n{title:<10} {'steps/s':>9} {'vs SB3':>11} {'slower than ppo':>16}"
        f" {'with fit':>9} {'slower than ppo':>16}"
    )
    for name, seconds in best.items():
        line = f"{name:<10} {batch_size / seconds:>9,.0f} {best[PEER] / seconds:>10.2f}x"
        line += f" {seconds / best['ppo']:>15.2f}x"
        if name in fits:
            whole = seconds + fits[name] * batch_size
            line += f" {batch_size / whole:>9,.0f} {whole / best['ppo']:>15.2f}x"
        print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--envs", type=int, default=CPU.num_envs)
    parser.add_argument("--size", type=int, nargs=2, default=(84, 84), help="height and width")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds per method")
    options = parser.parse_args(arguments)
    # Numba first: starting its threads also sets torch's number of threads.
    numba.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)

    runs = {name: make_run(name, options.envs, tuple(options.size)) for name in METHODS}
    ppo, batch_size = runs["ppo"].ppo, runs["ppo"].batch_size
    print(
        f"{options.threads} CPU threads, {options.envs} environments x {ppo.num_steps} steps, "
        f"{options.size[0]} x {options.size[1]}, {ppo.num_epochs} epochs of "
        f"{ppo.num_minibatches} minibatches, torch {torch.__version__}, "
        f"Stable-Baselines3 {stable_baselines3.__version__}"
    )
    # Freed memory as in a run; Stable-Baselines3 gains by it, too.
    with reusing_freed_memory(), tempfile.TemporaryDirectory() as folder:
        made = {name: ours(run, Path(folder)) for name, run in runs.items()}
        updates = {PEER: theirs(runs["ppo"])}
        updates |= {name: update for name, (_, update) in made.items()}
        best = best_updates(updates, options.seconds)
        fits = fits_per_step({name: learner for name, (learner, _) in made.items()}, runs)
    for column, title in enumerate(("time", "CPU time")):
        report(
            title,
            batch_size,
            {name: float(seconds[column]) for name, seconds in best.items()},
            {name: float(seconds[column]) for name, seconds in fits.items()},
        )


if __name__ == "__main__":
    main()
