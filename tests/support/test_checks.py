"""Arguments that would fail deep inside torch are refused in a sentence."""

import numpy as np
import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.runs.config import RecordConfig
from episodic_curiosity.support.checks import (
    check_at_least,
    check_number,
    check_taken,
    check_type,
    check_views,
)

CPU = torch.device("cpu")
FRAME, VECTOR = (3, 8, 8), (6,)


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf"), float("nan")])
def test_a_number_that_is_no_float(number):
    with pytest.raises(ValueError, match="alpha must be a finite number") as refusal:
        check_number("alpha", number)
    assert len(str(refusal.value)) < 100
    with pytest.raises(ValueError, match="alpha must be a finite number above 0"):
        ec.EpisodicCuriosity(ec.RNetwork(VECTOR), num_envs=2, alpha=number)


@pytest.mark.parametrize("number", [1e300, -1e39, 10**39])
def test_a_number_that_no_tensor_can_have(number):
    with pytest.raises(ValueError, match=r"alpha must be at most 3\.4e\+38 in size, got"):
        check_number("alpha", number)
    check_number("alpha", 3e38)


def test_a_count_that_no_tensor_can_have():
    with pytest.raises(ValueError, match=r"num_envs must be at most .* of 401 digits"):
        check_at_least("num_envs", 10**400, 1)
    check_at_least("num_envs", 2**63 - 1, 1)


@pytest.mark.parametrize(
    ("wanted", "words"), [(ec.RNetwork, "an RNetwork"), (RecordConfig, "a RecordConfig")]
)
def test_a_type_has_its_article(wanted, words):
    with pytest.raises(TypeError, match=f"^x must be {words}, got str$"):
        check_type("x", "text", wanted)


def test_a_memory_that_does_not_fit_is_refused_beforehand():
    with pytest.raises(
        MemoryError, match=r"a bonus of 1000000000000000 .* GB free: lower `num"
    ):
        ec.ConstantBonus(num_envs=10**15)
    with pytest.raises(
        MemoryError, match=r"a memory of 2 environments x 1000000000000 x 512 n"
    ):
        ec.EpisodicCuriosity(ec.RNetwork(VECTOR), num_envs=2, memory_capacity=10**12)


@pytest.mark.parametrize("values", [(-0.2, 0.5), (0.0, 255.0), (1.1, 1.2)])
def test_float_frames_are_in_0_to_1(values):
    views = torch.rand(4, *FRAME)
    views[2, 0, 0, :2] = torch.tensor(values)
    with pytest.raises(
        ValueError, match=r"view must be bytes, or floats in \[0, 1\], got .*row 2"
    ):
        check_views("view", views, FRAME, CPU)
    everywhere_else = torch.tensor([True, True, False, True])
    check_views("view", views, FRAME, CPU, where=everywhere_else)
    check_views("view", views.clamp(-0.0005, 1.0005), FRAME, CPU)  # resized


@pytest.mark.parametrize("value", [1e38, -1e38, 1e10])
def test_features_that_would_overflow(value):
    curiosity = ec.EpisodicCuriosity(ec.RNetwork(VECTOR), num_envs=3)
    views = torch.rand(3, *VECTOR)
    curiosity.begin(views)
    views[1, 5] = value
    with pytest.raises(
        ValueError, match=r"view must be from -1e\+09 to 1e\+09, got .* in row 1"
    ):
        curiosity.bonus(views)
    views[1, 5] = 1e9
    assert curiosity.bonus(views).isfinite().all()


def test_a_sparse_tensor():
    curiosity = ec.EpisodicCuriosity(ec.RNetwork(VECTOR), num_envs=3)
    with pytest.raises(TypeError, match=r"view must be a dense tensor, got torch\.sparse_coo"):
        curiosity.begin(torch.eye(3, 6).to_sparse())


@pytest.mark.parametrize("embedder", ["small", "resnet18", "tiny", None])
def test_channels_come_first(embedder):
    with pytest.raises(
        ValueError, match=r"got \(84, 80, 3\); channels come first: \(3, 84, 80\)"
    ):
        ec.RNetwork((84, 80, 3), embedder=embedder)


@pytest.mark.parametrize("embedder", ["small", "resnet18"])
def test_frames_too_small_for_an_embedder(embedder):
    with pytest.raises(ValueError, match=r"at least 8 x 8 for .*, got \(3, 84, 3\); the tiny"):
        ec.RNetwork((3, 84, 3), embedder=embedder)


def test_views_with_channels_last_are_told_so():
    curiosity = ec.EpisodicCuriosity(ec.RNetwork((3, 16, 20)), num_envs=2)
    message = r"must have shape \(2, 3, 16, 20\), got \(2, 16, 20, 3\): channels come first"
    with pytest.raises(ValueError, match=message):
        curiosity.begin(torch.zeros(2, 16, 20, 3, dtype=torch.uint8))


@pytest.mark.parametrize(
    ("given", "meant"), [("ppo+ecco", "ppo+eco"), ("ppo+oracel", "ppo+oracle"), ("xyz", None)]
)
def test_a_close_choice_is_suggested(given, meant):
    with pytest.raises(ValueError, match="method must be one of") as refused:
        find_method(given)
    assert (f"(did you mean {meant}?)" in str(refused.value)) == (meant is not None)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.bool, torch.uint16])
def test_integers_of_every_width_are_actions(dtype):
    everywhere, where = torch.ones(2, dtype=torch.bool), torch.tensor([True, False])
    indices, numbers = torch.zeros(2, dtype=torch.int64), torch.zeros(2, 3)
    check_taken(torch.tensor([1, 0]).to(dtype), indices, 2, everywhere)
    check_taken(torch.ones(2, 3).to(dtype), numbers, 0, everywhere)
    check_taken(torch.tensor([1, 7]), indices, 2, where)
    with pytest.raises(ValueError, match=r"action must be one of 0 \.\. 1, got 7 in row 1"):
        check_taken(torch.tensor([1, 7]), indices, 2, everywhere)
    with pytest.raises(TypeError, match=r"action must be of dtype torch\.int64, got torch\.f"):
        check_taken(torch.zeros(2), indices, 2, everywhere)


@pytest.mark.parametrize("number", [np.int64(3), np.int32(3), np.uint8(3), np.float32(3.0), 3])
def test_numbers_of_numpy_are_numbers(number):
    check_number("alpha", number, above=2)
    with pytest.raises(ValueError, match="alpha must be a finite number above 3"):
        check_number("alpha", number, above=3)


@pytest.mark.parametrize("number", [np.bool_(True), np.float32("inf"), np.float64("nan"), "3"])
def test_what_is_no_number(number):
    with pytest.raises(ValueError, match="alpha must be a finite number, got"):
        check_number("alpha", number)


def test_counts_of_numpy_are_counts():
    check_at_least("num_envs", np.int64(3), 3)
    with pytest.raises(ValueError, match="num_envs must be an integer of at least 4"):
        check_at_least("num_envs", np.int64(3), 4)


def test_what_numpy_counted_can_be_saved(tmp_path):
    size = np.int64(6)
    ec.RNetwork((size,), embedding_size=np.int32(8)).save(tmp_path)
    config = ec.RNetwork.load(tmp_path).config
    assert (config.view_shape, config.embedding_size) == ((6,), 8)
    assert type(config.embedding_size) is int


def test_a_shape_that_is_none():
    for shape, said in (
        (4, r" must be a tuple of sizes, such as \(4,\) or \(3, 84, 84\), got 4"),
        ("4", r" must be a tuple of sizes, such as \(4,\) or \(3, 84, 84\), got '4'"),
        ((4.0,), "'s sizes must be an integer of at least 1, got 4.0"),
        ((3, 0, 4), "'s sizes must be an integer of at least 1, got 0"),
    ):
        for make in (ec.RND, ec.NovelD, ec.ETD):
            with pytest.raises(ValueError, match=f"observation_shape{said}"):
                make(shape, 4)
        with pytest.raises(ValueError, match=f"observation_shape{said}"):
            ec.ICM(shape, 4, num_actions=2)
    assert ec.RND([np.int64(4)], 2).seen_shape == (4,)
    with pytest.raises(TypeError, match="r_network must be a Module, got int"):
        ec.ECRND(4, 4)
