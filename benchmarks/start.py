"""Time of the start of a run, up to its second update; on a GPU mostly compilation.

    python benchmarks/start.py [--method ppo] [--task maze/no-reward] [--rollouts 40]

For the first start on a machine, use an empty cache: TORCHINDUCTOR_CACHE_DIR=$(mktemp -d). The
last line is the speed of the same process after compilation. With --device cpu there are 16
environments.
"""

import argparse
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch._dynamo.utils import get_compilation_metrics

from episodic_curiosity.runs.learner import Learner
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.support.checks import usable_device
from episodic_curiosity.support.compiling import warming_up
from episodic_curiosity.worlds.registry import make_world

STEPS = 20_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--method", default="ppo")
    parser.add_argument("--task", default="maze/no-reward")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rollouts", type=int, default=40, help="timed after compilation")
    options = parser.parse_args()
    if options.rollouts < 1:
        parser.error(f"--rollouts must be at least 1, got {options.rollouts}")
    try:
        usable_device(options.device)
        run = resolve(options.task, options.method, "gpu", STEPS, seed=0)
    except ValueError as error:
        parser.error(str(error))
    device = torch.device(options.device)
    if device.type == "cpu":
        world = dataclasses.replace(run.world, num_envs=16)
        run = dataclasses.replace(
            run, world=world, ppo=dataclasses.replace(run.ppo, num_minibatches=1)
        )
    lap = _Laps(device)
    with TemporaryDirectory() as folder:
        with warming_up(device):
            world = make_world(
                run.task,
                num_envs=run.world.num_envs,
                seed=0,
                device=device,
                **run.world.options("train"),
            )
            lap("levels")
            learner = Learner.make(run, world, Path(folder))
            if learner.r_network is not None:
                learner.r_network.fitted.fill_(True)
        lap("networks and the start of the compiler")
        learner.collector.reset()
        lap("the first frames")
        for number, name in enumerate(("first", "second")):
            rollout = learner.collector.collect()
            lap(f"the {name} rollout")
            learner.ppo.update(rollout, number)
            lap(f"the {name} update")
        print(f"{lap.last - lap.begin:7.1f} s in total\n")
        for compiled in get_compilation_metrics():
            seconds, count = compiled.entire_frame_compile_time_s, compiled.graph_op_count
            if compiled.co_name:
                print(f"{seconds or 0:7.1f} s of it for {compiled.co_name}, {count} operations")
        collect = lap.timed(learner.collector.collect, options.rollouts)
        learn = lap.timed(lambda: learner.ppo.update(rollout, 1), -(-options.rollouts // 2))
    print(
        f"\nthen {collect * 1e3:.1f} ms for a rollout of {run.batch_size:,} steps and "
        f"{learn * 1e3:.1f} ms for an update: {run.batch_size / (collect + learn):,.0f} steps/s"
    )


class _Laps:
    """Prints the time since the last lap."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.begin = self.last = self._now()

    def __call__(self, what: str) -> None:
        now = self._now()
        print(f"{now - self.last:7.1f} s for {what}", flush=True)
        self.last = now

    def timed(self, work: Callable[[], object], count: int) -> float:
        begin = self._now()
        for _ in range(count):
            work()
        return (self._now() - begin) / count

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


if __name__ == "__main__":
    main()
