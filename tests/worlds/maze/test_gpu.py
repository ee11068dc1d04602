"""The mazes on a GPU against the same mazes on a CPU."""

import pytest
import torch
from torch._dynamo.utils import counters

from episodic_curiosity.worlds.maze import ahead
from episodic_curiosity.worlds.maze.world import MazeWorld
from episodic_curiosity.worlds.registry import make_world

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:Numba is missing"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the compiler's own making
    pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype"),
]

NUM_ENVS = 64
STEPS = 200
EPISODE_STEPS = 150  # so that every row begins a new one, at a time of its own


def world(task: str, device: str, **options) -> MazeWorld:
    defaults = {
        "num_envs": NUM_ENVS,
        "observation_size": (36, 48),
        "final_frames": False,
        "stagger": True,
    }
    options = defaults | options
    num_levels = 1 if task == "dense-2" else 20
    return make_world(
        f"maze/{task}",
        seed=3,
        device=device,
        num_levels=num_levels,
        episode_steps=EPISODE_STEPS,
        **options,
    )


@pytest.mark.parametrize("task", ["sparse", "sparse-doors", "dense-1", "dense-2"])
def test_every_step_is_that_of_the_cpu(task):
    gpu, cpu = world(task, "cuda"), world(task, "cpu", observation_size=(1, 1))
    frames = world(task, "cpu")
    for each in (gpu, cpu, frames):
        each.reset()
    generator = torch.Generator().manual_seed(0)
    plan = torch.randint(gpu.spec.num_actions, (STEPS, NUM_ENVS), generator=generator)
    plan[torch.rand(plan.shape, generator=generator) < 0.4] = 0  # forward: get somewhere
    num_ended, num_rewards, num_different = 0, 0.0, 0
    for number, actions in enumerate(plan):
        before = {name: field.cpu() for name, field in gpu.state().items()}
        cpu.load_state(before)
        expected, step = cpu.step(actions), gpu.step(actions.cuda())
        for name in ("first", "terminated", "truncated", "reward"):
            num_different += int((getattr(step, name).cpu() != getattr(expected, name)).sum())
        apart = (step.position.cpu() - expected.position).abs().amax(1)
        num_different += int((apart > 0.01).sum())
        num_ended += int(expected.first.sum())
        num_rewards += float(expected.reward.abs().sum())
        if expected.first.any():
            where = expected.first
            final = step.final_position.cpu()[where] - expected.final_position[where]
            assert final.abs().max() < 0.01
        if number % 50 == 49:
            frames.load_state({name: field.cpu() for name, field in gpu.state().items()})
            drawn = frames.observe().view.int() - step.view.cpu().int()
            assert (drawn.abs() <= 2).float().mean() > 0.995
            assert torch.equal(gpu.redraw(gpu.snapshot()), step.view)
    assert num_ended >= NUM_ENVS
    assert num_rewards > 0
    # A body that touches a thing by a rounding error may do so on one side only.
    assert num_different <= 3


@pytest.mark.parametrize("num_envs", [NUM_ENVS, 7])  # 7 fill up what 64 have compiled
def test_a_captured_step_waits_for_nothing_and_is_the_eager_one(num_envs):
    world("sparse", "cuda")
    captured, eager = (world("sparse", "cuda", num_envs=num_envs) for _ in range(2))
    plan = torch.randint(9, (50, num_envs), device="cuda")
    actions = plan[0].clone()
    for each in (captured, eager):
        each.reset()
        each.step(actions)  # compiles
    start = captured.state()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step = captured.step(actions)
    captured.load_state(start)
    torch.cuda.synchronize()
    try:
        torch.cuda.set_sync_debug_mode("error")
        for row in plan:
            actions.copy_(row)
            graph.replay()
            expected = eager.step(row)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for field, wanted in zip(step, expected, strict=True):
        assert (field is None and wanted is None) or torch.equal(field, wanted)


def test_a_first_start_finds_what_other_processes_compiled(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ahead, "num_cores", lambda: 2 * ahead.CORES_EACH)
    options = {"seed": 0, "device": "cuda", "maze_size": (9, 9)}
    first = make_world("maze/sparse", num_envs=NUM_ENVS, **options)
    hits = counters["aot_autograd"]["autograd_cache_hit"]
    first.reset()
    assert counters["aot_autograd"]["autograd_cache_hit"] == hits + 1
    actions = torch.arange(NUM_ENVS, device="cuda") % 9
    large = [first.step(actions) for _ in range(3)]
    assert counters["aot_autograd"]["autograd_cache_hit"] == hits + 2
    assert len(list(tmp_path.glob("episodic-curiosity-*"))) == 2

    # What is compiled for many rows will do for fewer.
    misses = counters["aot_autograd"]["autograd_cache_miss"]
    second = make_world("maze/sparse", num_envs=7, **options)
    second.reset()
    for step in large:
        fewer = second.step(actions[:7])
        assert torch.equal(fewer.view, step.view[:7])
        assert torch.equal(fewer.position, step.position[:7])
    assert counters["aot_autograd"]["autograd_cache_miss"] == misses
