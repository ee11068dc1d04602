"""From a run's folder to a result."""

import dataclasses
import math
import os

import pytest

from episodic_curiosity.cli.train import read_train
from episodic_curiosity.experiments import measure as measuring
from episodic_curiosity.experiments.measure import (
    CURVE_POINTS,
    code_version,
    command_for,
    count_parameters,
    measure,
    measure_speed,
    thin,
)
from episodic_curiosity.experiments.sources import fingerprint_in
from episodic_curiosity.experiments.tables import EXPERIMENTS
from episodic_curiosity.runs.metrics_files import read_metrics, read_timing
from tests.experiments.small_table import small_cell


def test_points_of_a_curve_are_means_weighted_by_episodes():
    lines = [
        {"steps": 10, "episodes": 1.0, "reward": 4.0, "entropy": 1.0},
        {"steps": 20, "episodes": 3.0, "reward": 8.0, "r_network_accuracy": 0.5},
        {"steps": 30, "episodes": 0.0, "reward": math.nan, "r_network_accuracy": 0.75},
    ]
    lines = [line for line in lines for _ in range(CURVE_POINTS)]  # 300 lines, 3 a point
    points = thin(lines)
    assert len(points) == CURVE_POINTS
    assert points[0] == {"steps": 10, "reward": 4.0, "episodes": 3.0}
    # Line 99 is the last with a reward of 4; 100 and 101 have 8: (4 + 3 * 8 + 3 * 8) / 7.
    assert points[33] == {
        "steps": 20,
        "reward": 7.42857,
        "episodes": 7.0,
        "r_network_accuracy": 0.5,
    }
    assert points[-1] == {"steps": 30, "r_network_accuracy": 0.75}


def test_a_short_run_keeps_every_line():
    lines = [{"steps": step, "episodes": 1.0, "bonus": 0.1} for step in range(5)]
    assert [point["steps"] for point in thin(lines)] == [0, 1, 2, 3, 4]
    assert thin([]) == []


def test_the_code_has_one_version():
    assert code_version() == code_version()
    assert code_version().startswith("0.")
    assert "(sources " in code_version()


def test_an_agent_is_measured_on_whole_test_episodes(tmp_path):
    cell = small_cell("maze/sparse", "ppo+ec", num_updates=5)
    result, timing = measure(cell, tmp_path, episodes=6, device="cpu")
    assert result.key == cell.key
    assert result.config == cell.run().to_dict()
    assert result.metrics["length"] == {
        "num_values": 8,  # of four environments at once
        "mean": 40.0,
        "deviation": 0.0,
        "low": 40.0,
        "high": 40.0,
    }
    assert set(result.metrics) == {"reward", "coverage", "length"}
    assert sum(result.action_shares.values()) == pytest.approx(1.0)
    assert [point["steps"] for point in result.curve] == [200, 240, 280, 320, 360, 400]
    assert read_metrics(tmp_path)[-1]["steps"] == 400
    assert result.episodes == 8
    assert timing["seconds"] > 0
    assert timing["steps_per_second"] > 0
    in_all = read_timing(tmp_path)[-1]
    assert timing["steps_per_second_in_all"] == pytest.approx(400 / in_all["seconds"], rel=0.01)
    assert timing["evaluation_seconds"] > 0
    assert timing["hardware"]


def test_an_r_network_alone_is_measured_by_its_accuracy(tmp_path):
    cell = dataclasses.replace(small_cell("maze/sparse", "ppo+ec"), measure="r-network")
    first, timing = measure(cell, tmp_path, device="cpu")
    assert set(first.metrics) == {"accuracy"}
    assert 0.0 <= first.metrics["accuracy"]["mean"] <= 1.0
    assert first.curve == []
    assert timing["seconds"] > 0
    assert first.episodes is None
    assert measure(cell, tmp_path, device="cpu").result == first  # in the same folder, again


def test_speed_counts_all_that_is_trained(tmp_path):
    counts = {}
    for method in ("ppo", "ppo+icm", "ppo+ec"):
        cell = dataclasses.replace(
            small_cell("maze/sparse", method, num_updates=1), measure="speed"
        )
        result, timing = measure(cell, tmp_path / method, device="cpu")
        counts[method] = result.metrics["parameters"]["mean"]
        assert timing["steps_per_second"] > 0
    assert counts["ppo"] < counts["ppo+icm"]
    assert counts["ppo"] < counts["ppo+ec"]


def test_speed_of_a_run_that_was_trained_for_another_cell(tmp_path):
    cell = small_cell("maze/sparse", "ppo", num_updates=1)
    trained = measure(cell, tmp_path / "agent", episodes=4, device="cpu")
    timed = dataclasses.replace(cell, key=cell.key._replace(table="timed"), measure="speed")
    shared = measure_speed(timed, trained, tmp_path / "speed", "cpu")
    alone = measure(timed, tmp_path / "alone", device="cpu")
    assert shared.result.key == timed.key
    assert shared.result.metrics == alone.result.metrics
    assert shared.result.curve == trained.result.curve
    assert shared.timing.keys() == alone.timing.keys()
    assert shared.timing["seconds"] == trained.timing["seconds"]


def test_a_frozen_embedding_is_not_counted(tmp_path):
    run = small_cell("maze/sparse", "ppo+ec").run()
    complete = dataclasses.replace(run.r_network, comparator="mlp", branches="shared")
    frozen = dataclasses.replace(complete, frozen_embedding=True)
    counts = [
        count_parameters(dataclasses.replace(run, device="cpu", r_network=options), tmp_path)
        for options in (complete, frozen)
    ]
    assert counts[1] < counts[0]


def test_the_sources_are_looked_at_before_the_run(tmp_path, monkeypatch):
    """Somebody may edit them while it trains for days."""
    versions = ["0.2.0 (sources 0123456789ab)", "0.2.0 (sources ba9876543210)"]
    monkeypatch.setattr(measuring, "code_version", lambda: versions[0])
    train = measuring.train

    def train_and_edit(*arguments, **options):
        train(*arguments, **options)
        versions.pop(0)

    monkeypatch.setattr(measuring, "train", train_and_edit)
    cell = dataclasses.replace(small_cell("maze/sparse", "ppo", num_updates=1), measure="speed")
    assert fingerprint_in(measure(cell, tmp_path, device="cpu").result.code) == "0123456789ab"


def test_the_command_of_a_cell_can_be_run():
    row = EXPERIMENTS["table1"].rows[2]
    known = EXPERIMENTS["table1"].cell(row, "maze/sparse", "gpu", 20_000_000, 3)
    assert command_for(known, 512) == (
        "curiosity table table1 --cell maze/sparse:ppo+ec:3 --preset gpu --steps 20000000 "
        "--episodes 512"
    )
    small = small_cell("maze/sparse", "ppo+ec")
    for table in ("small", "table1"):
        own = dataclasses.replace(small, key=small.key._replace(table=table))
        train, evaluate = command_for(own, 8).replace("\\\n", "").splitlines()
        assert read_train(train.split()[2:]).run == own.run()
        assert evaluate == "curiosity evaluate runs/maze-sparse__ppo_ec__s0 --episodes 8"
        alone = dataclasses.replace(own, measure="r-network")
        assert command_for(alone, 8) == ""


def test_cores_are_counted_where_the_system_does_not_say_which(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    cell = dataclasses.replace(small_cell("maze/sparse", "ppo", num_updates=1), measure="speed")
    assert measure(cell, tmp_path, device="cpu").timing["cores"] == os.cpu_count()
