"""Odd input is refused in a sentence of the package's; `make soak` tries many more."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import episodic_curiosity as ec
from benchmarks.soak.fuzz_api import TARGETS
from benchmarks.soak.fuzz_files import forgers
from benchmarks.soak.judging import Verdicts, is_refusal
from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.experiments.results import read_result
from episodic_curiosity.support import saving
from episodic_curiosity.worlds.registry import make_world
from tests.show.report.fixture import write

MATRIX = torch.zeros(2, 3)
FIRST = torch.zeros(60, 3, dtype=torch.bool)
VIEWS = torch.rand(60, 3, 5)
SLOW = ("worlds", "results", "bonus.safetensors", "config.json")
RESULT = {"curve": [{"reward": 1.0}], "metrics": {"length": {"mean": 1.0}}}


def world(**options):
    with_all = {"num_envs": 2, "seed": 0} | options
    return make_world(with_all.pop("task", "maze/sparse"), **with_all)


def changed_state(change):
    bonus = ec.ConstantBonus(3)
    state = bonus.state_dict()
    bonus.load_state_dict(state | {"paid.sums": change(state["paid.sums"])})


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ec.RNetwork(MATRIX), r"view_shape must be a tuple .*got Tensor of shape"),
        (lambda: ec.RNetwork((7, "1e3")), "view_shape's sizes must be an integer .*got '1e3'"),
        (lambda: ec.RNetwork((5,), comparator=MATRIX), "one of mlp, dot, got Tensor of shape"),
        (lambda: ec.RNetwork((10**18,)), r"an embedder of views \(10+,\) needs .* GB"),
        (lambda: ec.RNetwork((10**9, 99, 99), embedder="small"), "an embedder of views"),
        (lambda: changed_state(lambda part: part.to("meta")), "paid.sums without content"),
        (lambda: changed_state(Tensor.to_sparse), "paid.sums as torch.sparse_coo, wanted a d"),
        (lambda: ec.RND((5,), 3, seed=1.0), "seed must be an integer from 0 .*got 1.0"),
        (lambda: ec.ETD((5,), 3, seed=-1), "seed must be an integer from 0 .*got -1"),
        (lambda: ec.FitConfig(convolution_l2=None), "convolution_l2 must be a finite number"),
        (lambda: ec.Frames(VIEWS.to_sparse(), FIRST), "views must be a dense tensor"),
        (lambda: ec.Frames(VIEWS, FIRST.to("meta")), "first must have content"),
        (lambda: world(task=1.0), "task must be a str, got float"),
        (lambda: world(device=1 << 90), "device must be a torch.device or its name"),
        (lambda: world(stagger=np.zeros(0)), "stagger must be a bool, got ndarray"),
        (lambda: world(view_size=np.zeros(0)), r"view_size must be \(height, width\), got nd"),
        (lambda: world(num_envs=1 << 31), "a world of 2147483648 mazes needs .* GB"),
        (lambda: world(num_levels=10**9), "1,000,000,000 levels needs .*lower `num_levels`"),
        (lambda: world(actions={}), "actions must be one of nine"),
        (lambda: world(task="gym/CartPole-v1", key=MATRIX), "key must be a str, got Tensor"),
        (lambda: world(task="gym/CartPole-v1", grey=MATRIX), "grey must be a bool, got Tensor"),
        (lambda: find_method(["ppo"]), "method must be a str, got list"),
        (lambda: ec.resolve("maze/sparse", "ppo+ec", "cpu", MATRIX, 0), "steps must be an int"),
        (lambda: ec.resolve("maze/sparse", "ppo", "x" * 999, 9999, 0), r"got 'x{100}'\.\.\."),
    ],
)  # fmt: skip
def test_what_was_an_error_of_torch_or_python(call, sentence):
    with pytest.raises((ValueError, TypeError, MemoryError), match=sentence) as caught:
        call()
    assert is_refusal(caught.value)


@pytest.mark.parametrize("seed", [(1,), 0.5])
def test_seeds_of_fits(seed):
    config = ec.FitConfig(iterations=1, pairs=ec.PairsConfig(k=2, gamma=2))
    with pytest.raises(ValueError, match="seed must be an integer"):
        ec.fit_r_network(ec.RNetwork((5,)), ec.Frames(VIEWS, FIRST), config, seed=seed)


@pytest.mark.parametrize("field", RESULT)
def test_a_result_without_steps_or_counts_is_none(tmp_path, field):
    path = write(tmp_path, "table1", "ppo", "sparse", 9.0)
    path.write_bytes(replace(read_result(path), **{field: RESULT[field]}).to_bytes())
    with pytest.raises(ec.LoadError, match=f"holds no result: {field} is"):
        read_result(path)


def test_a_single_element_of_any_stride_is_saved(tmp_path):
    """`expand` leaves a stride of 0, which counts as contiguous."""
    weights = {"one": torch.tensor(7.0).expand(1)}
    saving.save(tmp_path, "agent", weights, {})
    assert saving.read(tmp_path, "agent")[1]["one"].tolist() == [7.0]


@pytest.mark.slow
def test_random_odd_input(tmp_path):
    with forgers(tmp_path) as files:
        for name, target in (TARGETS | files).items():
            verdicts, draw = Verdicts(), random.Random(f"0 {name}")
            while verdicts.total < 150 and name not in SLOW:
                target(draw, verdicts)
            assert verdicts.wrong == {}, name
