"""A step, an update and a fit with their functions compiled, as on a GPU, but for the kernels.

The rules and the renderer of the mazes have tests of their own.
"""

from dataclasses import replace

import pytest
import torch

from episodic_curiosity.bonus import icm
from episodic_curiosity.reachability import comparators
from episodic_curiosity.runs.learner import Learner
from episodic_curiosity.support import compiling, pixels
from episodic_curiosity.worlds.registry import make_world
from tests.runs.tiny_runs import tiny_run

NUM_UPDATES = 2


@pytest.fixture
def compile_all(monkeypatch):
    """Returns a function: from then on, fused functions are compiled on a CPU, too."""
    compile_varying, made = compiling.compile_varying, []
    # In bfloat16 compiled and plain sums would differ by more.
    monkeypatch.setattr(pixels, "CPU_HAS_BFLOAT16", False)

    def traced(function, **options):
        made.append(function.__name__)
        return compile_varying(function, **options, backend="aot_eager")

    def begin():
        for module in (compiling, comparators, icm):
            monkeypatch.setattr(module, "compiles", lambda _: True)
        monkeypatch.setattr(compiling, "compile_varying", traced)
        compiling.forget_fused()
        return made

    yield begin
    compiling.forget_fused()


def play(method, folder, *, sees_memory):
    """The rollouts and the metrics of two updates."""
    run = tiny_run(method, "maze/sparse")
    run = replace(run, ppo=replace(run.ppo, sees_memory=sees_memory))
    if run.r_network is not None:
        run = replace(run, r_network=run.r_network.with_architecture("small"))
    torch.manual_seed(0)
    world = make_world(run.task, num_envs=4, seed=0, **run.world.options("train"))
    learner = Learner.make(run, world, folder)
    if learner.r_network is not None:
        learner.r_network.fitted.fill_(True)
    learner.collector.reset()
    seen = []
    for number in range(NUM_UPDATES):
        rollout = learner.collector.collect()
        kept = {
            name: field.clone()
            for name, field in rollout._asdict().items()
            if field is not None
        }
        seen.append((kept, learner.ppo.update(rollout, number) | learner.metrics()))
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "own"),
    [
        ("ppo", set()),
        ("ppo+oracle", {"_find"}),
        ("ppo+icm", {"_errors", "_surprise"}),
        ("ppo+ec", {"_embed_eagerly", "_with_memory", "percentile_90", "_rate", "_take_slot"}),
        ("ppo+ec", {"_summarise"}),
    ],
)
def test_compiled_functions_do_what_plain_ones_do(method, own, tmp_path, compile_all):
    sees_memory = "_summarise" in own
    plain = play(method, tmp_path, sees_memory=sees_memory)
    made = compile_all()
    compiled = play(method, tmp_path, sees_memory=sees_memory)
    for (rollout, metrics), (other, other_metrics) in zip(plain, compiled, strict=True):
        for name, field in rollout.items():
            torch.testing.assert_close(other[name], field, rtol=1e-3, atol=2e-3)
        assert own | {"_decide", "_losses", "_select", "_end", "_sorted_out"} <= set(made)
        assert other_metrics == pytest.approx(metrics, rel=0.02, abs=2e-3, nan_ok=True)
