"""Frames/s and steps/s of the mazes; see `doom.py` and `ant.py` for the other worlds.

    python benchmarks/worlds.py [--device cpu] [--envs 64] [--tasks sparse dense-2]

`frames/s` is drawing alone, `steps/s` complete steps with their frames, for 256 environments on
a CPU. On a GPU both are replayed from a CUDA graph, of 1,024 environments for frames and 4,096
for steps. The last frames of episodes are not drawn, as in training. Each figure is the best of
three rounds, since other programs can only slow it down. On a GPU every task has a separate
process: all compile concurrently, for minutes, and are then measured one after another.
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

import torch

from episodic_curiosity.worlds.maze.tasks import TASKS
from episodic_curiosity.worlds.maze.world import MazeWorld
from episodic_curiosity.worlds.registry import make_world

ROUNDS = 3


def rate(work: Callable[[], object], per_call: int, seconds: float, device: str) -> float:
    """Units of work per second, the best of three rounds."""

    def wait() -> float:
        if device != "cpu":
            torch.cuda.synchronize()
        return time.perf_counter()

    work()
    best = 0.0
    for _ in range(ROUNDS):
        calls, start = 0, wait()
        while time.perf_counter() - start < seconds / ROUNDS:
            for _ in range(10):
                work()
            calls += 10
            if device != "cpu":
                torch.cuda.synchronize()
        best = max(best, calls * per_call / (wait() - start))
    return best


def make(task: str, num_envs: int, options: argparse.Namespace) -> MazeWorld:
    world = make_world(
        f"maze/{task}",
        num_envs=num_envs,
        seed=0,
        device=options.device,
        num_levels=options.levels,
        observation_size=tuple(options.size),
        stagger=True,
        final_frames=False,
    )
    world.reset()
    return world


def megabytes(*holders: object) -> float:
    """Size of the tensors in nested tuples, each counted once."""
    sizes: dict[int, int] = {}

    def count(held: object) -> None:
        if isinstance(held, torch.Tensor):
            sizes[held.data_ptr()] = held.numel() * held.element_size()
        elif isinstance(held, tuple):
            for part in held:
                count(part)

    count(holders)
    return sum(sizes.values()) / 1e6


def measure(
    task: str, options: argparse.Namespace, turn: Callable[[], object]
) -> tuple[float, float, float, float]:
    """Seconds until the first frames, MB of levels and textures, frames/s and steps/s.

    Everything is compiled before `turn` is called, which blocks until the GPU is free.
    """
    device = options.device
    frame_envs = options.envs or (256 if device == "cpu" else 1024)
    step_envs = options.envs or (256 if device == "cpu" else 4096)
    start = time.perf_counter()
    world = make(task, frame_envs, options)
    ready = time.perf_counter() - start
    held = megabytes(world._levels, world._draw_observation._fixed)
    # Random steps first, for marks of shots and opened doors.
    for actions in torch.randint(world.spec.num_actions, (50, frame_envs), device=device):
        world.step(actions)
    scene, renderer = world.scene(), world._draw_observation
    draw = captured(lambda: renderer.draw(scene), device)

    world = make(task, step_envs, options)
    plan = torch.randint(world.spec.num_actions, (64, step_envs), device=device)
    actions = plan[0].clone()
    act = captured(lambda: world.step(actions), device)
    number = 0

    def step() -> None:
        nonlocal number
        number += 1
        actions.copy_(plan[number % 64])
        act()

    step()
    turn()
    frames = rate(draw, frame_envs, options.seconds, device)
    return ready, held, frames, rate(step, step_envs, options.seconds, device)


def measure_in_turn(task: str, options: argparse.Namespace, pipe: Connection) -> None:
    """Runs in a task's process: reports that it is ready, then measures on request."""

    def turn() -> None:
        pipe.send("ready")
        pipe.recv()

    pipe.send(measure(task, options, turn))


def measure_all(options: argparse.Namespace) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Measures one task after another; on a GPU, after all have compiled concurrently."""
    if options.device == "cpu":
        yield from ((task, measure(task, options, lambda: None)) for task in options.tasks)
        return
    context = multiprocessing.get_context("spawn")
    pipes = {}
    for task in options.tasks:
        pipes[task], other = context.Pipe()
        context.Process(
            target=measure_in_turn, args=(task, options, other), daemon=True
        ).start()
        other.close()
    for pipe in pipes.values():
        pipe.recv()
    for task, pipe in pipes.items():
        pipe.send("go")
        yield task, pipe.recv()


def captured(work: Callable[[], object], device: str) -> Callable[[], object]:
    """On a GPU the replay of a CUDA graph of the work; on a CPU the work itself."""
    if device == "cpu":
        return work
    warm_up = torch.cuda.Stream()
    warm_up.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm_up):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(warm_up)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--envs", type=int, help="environments, instead of the defaults")
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds per figure")
    parser.add_argument("--size", type=int, nargs=2, default=(84, 84), help="height and width")
    parser.add_argument("--levels", type=int, help="size of the level pool, instead of 5,000")
    default_device = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=default_device)
    options = parser.parse_args()
    machine = (
        torch.cuda.get_device_name()
        if options.device != "cpu"
        else f"{torch.get_num_threads()} CPU threads"
    )
    print(f"{machine}, {options.size[0]} x {options.size[1]}, torch {torch.__version__}")
    print(f"{'task':<20} {'ready':>8} {'MB':>5} {'frames/s':>12} {'steps/s':>12}")
    for task, (ready, held, frames, steps) in measure_all(options):
        print(
            f"{task:<20} {ready:>6.1f} s {held:>5.0f} {frames:>12,.0f} {steps:>12,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
