"""The names of charts: every metric of a run is in the group of its kind."""

import pytest

from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.tensorboard_files import RESULTS, TRAINING, tag
from episodic_curiosity.runs.train import train
from tests.runs.tiny_runs import tiny_run


@pytest.mark.slow
def test_all_metrics_of_a_run_are_shown_in_groups(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(tiny_run("ppo+eco"), tmp_path, progress=False)
    shown = EventAccumulator(str(tmp_path / "tensorboard"))
    shown.Reload()
    groups: dict[str, set[str]] = {}
    for name in shown.Tags()["scalars"]:
        group, metric = name.split("/")
        groups.setdefault(group, set()).add(metric)
    assert sorted(groups) == ["1 results", "2 curiosity", "3 training", "4 actions"]
    assert groups["1 results"] == set(RESULTS)
    assert groups["3 training"] == set(TRAINING)
    assert {"memory_fill", "r_network_fits"} <= groups["2 curiosity"]
    assert "forward" in groups["4 actions"]
    metrics = {name for line in read_metrics(tmp_path) for name in line} - {"steps"}
    assert sum(map(len, groups.values())) == len(metrics | {"steps_per_second"})


def test_a_metric_of_a_custom_bonus_is_one_of_curiosity():
    assert tag("number_of_surprises") == "2 curiosity/number_of_surprises"
