"""Faults of runs on a GPU: kills, a full memory, NaN that is found later."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

import episodic_curiosity as ec
from benchmarks.soak import killing
from benchmarks.soak.killing import strike_and_resume
from benchmarks.soak.works import Training
from episodic_curiosity.reachability.online import OnlineConfig
from episodic_curiosity.support.machine import free_bytes
from tests.runs.tiny_runs import tiny_run

pytestmark = pytest.mark.gpu

COMPILING = 600.0  # seconds, of the first run on a machine
FULL = """
import torch
torch.cuda.set_per_process_memory_fraction(0.005)
from episodic_curiosity.cli.main import main
main("train --task maze/sparse --method ppo --preset gpu --device cuda --steps 4_000_000 "
     "--world.num-envs 4096 --ppo.num-steps 64 --world.num-levels 5 --out run".split())
"""


@pytest.mark.parametrize("method", ["ppo", "ppo+eco"])
def test_a_killed_run_is_resumed(method, tmp_path, monkeypatch):
    monkeypatch.setattr(killing, "PATIENCE", COMPILING)
    run = replace(tiny_run(method), device="cuda")
    kills = strike_and_resume(Training(method, run, exact=False), tmp_path, 3, seed=0)
    assert kills.stages.total() == 3
    assert not kills.differences + kills.failures, kills


def test_a_full_memory_is_one_line(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode in (1, 2), ended.stderr
    assert "Traceback" not in ended.stderr
    assert "memory" in ended.stderr.splitlines()[-1]


def test_what_cannot_fit_is_refused_beforehand():
    before = torch.cuda.memory_allocated()
    network = ec.RNetwork((5,)).to("cuda")
    with pytest.raises(MemoryError, match=r"needs .* GB, cuda.* GB free: lower `num_envs`"):
        ec.EpisodicCuriosity(network, num_envs=10**6, memory_capacity=10**6)
    assert torch.cuda.memory_allocated() - before < 1e8


def test_freed_memory_counts_as_free():
    free = free_bytes(torch.device("cuda"))
    held = torch.zeros(1 << 30, dtype=torch.uint8, device="cuda")
    del held  # torch keeps it
    assert free_bytes(torch.device("cuda")) > free - (1 << 28)


@pytest.mark.parametrize("asks", ["metrics", "learn"])
def test_nan_is_found_when_somebody_asks(asks):
    """A step does not synchronise with the GPU, so the error is raised later."""
    network = ec.RNetwork((5,)).to("cuda")
    network.fitted.fill_(True)
    online = OnlineConfig(refit_every=700, history=700)
    bonus = ec.EpisodicCuriosity(network, 3, memory_capacity=4, online=online)
    view = torch.zeros(3, 5, device="cuda")
    bonus.begin(view)
    bonus.bonus(torch.full_like(view, torch.nan))
    with pytest.raises(ValueError, match="got NaN or infinity in an earlier call"):
        getattr(bonus, asks)()
