"""Results as files: what is written is read, and what is damaged is not counted."""

import dataclasses
import json

import pytest

from episodic_curiosity.results import (
    Key,
    Result,
    load_results,
    load_timings,
    read_timing,
    write_measured,
)
from episodic_curiosity.saving import LoadError

RESULT = Result(
    table="threshold",
    task="maze/no-reward",
    method="ppo+ec",
    variant="k-2",
    preset="gpu",
    steps=20_000_000,
    seed=3,
    config={"task": "maze/no-reward", "world": {"observation_size": [84, 84]}},
    code="0.1.0 (sources 0123456789ab)",
    command="curiosity table threshold ...",
    curve=[{"steps": 1000, "coverage": 1.5}, {"steps": 2000}],
    metrics={
        "coverage": {"num_values": 1, "mean": 2.0, "deviation": None, "low": 2.0, "high": 2.0}
    },
    action_shares={"fire": 0.25, "forward": 0.75},
)
PATH = "threshold/maze-no-reward__ppo_ec@k-2__gpu__20000000__s3.json"
TIMING = {"seconds": 12.5, "steps_per_second": 1600.0, "hardware": "a machine"}


def write(folder, result=RESULT):
    path = folder / result.key.path
    write_measured(path, result, TIMING)
    return path


def test_the_file_is_named_after_all_that_tells_cells_apart():
    assert str(RESULT.key.path) == PATH
    assert RESULT.key.label == "maze/no-reward:ppo+ec@k-2:3"
    plain = Key("table1", "maze/sparse+noise", "ppo", None, "cpu", 1000, 0)
    assert str(plain.path) == "table1/maze-sparse_noise__ppo__cpu__1000__s0.json"
    assert plain.label == "maze/sparse+noise:ppo:0"


def test_what_is_written_is_read(tmp_path):
    path = write(tmp_path)
    assert str(path.relative_to(tmp_path)) == PATH
    loaded = load_results(tmp_path)
    assert loaded.results == [RESULT]
    assert loaded.damaged == []
    assert read_timing(tmp_path, RESULT.key) == TIMING
    assert load_timings(tmp_path) == [(RESULT.key, TIMING)]
    assert read_timing(tmp_path, RESULT.key._replace(seed=4)) is None
    lines = path.read_text().splitlines()
    assert '    {"steps": 1000, "coverage": 1.5},' in lines  # a line for each point


def test_without_a_curve_the_file_is_still_json(tmp_path):
    result = dataclasses.replace(RESULT, curve=[])
    path = write(tmp_path, result)
    assert json.loads(path.read_text())["curve"] == []
    assert load_results(tmp_path).results == [result]


def truncate(content: bytes) -> bytes:
    return content[: len(content) // 2]


def change_a_number(content: bytes) -> bytes:
    return content.replace(b'"mean": 2.0', b'"mean": 9.0')


def drop_a_field(content: bytes) -> bytes:
    return content.replace(b'"code"', b'"kode"')


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate, "is not JSON"),
        (change_a_number, "was changed after it was written"),
        (drop_a_field, "lacks code"),
        (lambda _: b"", "is not JSON"),
        (lambda _: b"{}", "was not written by episodic-curiosity"),
        (lambda content: content.replace(b'"version": 1', b'"version": 2'), "has version 2"),
    ],
)
def test_a_damaged_file_is_reported_and_set_aside(damage, reason, tmp_path):
    whole = write(tmp_path, dataclasses.replace(RESULT, seed=4))
    path = write(tmp_path)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    for _ in range(2):  # the second time it has been set aside before
        loaded = load_results(tmp_path)
        assert [result.seed for result in loaded.results] == [4]
        ((aside, why),) = loaded.damaged
        assert aside == path.with_name(f"{path.name}.damaged")
        assert reason in why
    assert aside.read_bytes() == damaged
    assert not path.exists()
    assert whole.exists()


def test_a_file_under_another_cells_name_is_set_aside(tmp_path):
    path = write(tmp_path)
    path.rename(path.with_name(path.name.replace("s3", "s5")))
    loaded = load_results(tmp_path)
    assert loaded.results == []
    assert PATH in loaded.damaged[0].reason


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(LoadError, match="is no folder of results"):
        load_results(tmp_path / "nothing")
