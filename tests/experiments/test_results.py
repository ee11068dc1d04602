"""Results as files: what is written is read, and what is damaged is not counted."""

import contextlib
import dataclasses
import json
from collections.abc import Callable

import pytest

from episodic_curiosity.experiments.results import (
    Key,
    Result,
    load_results,
    load_timings,
    read_result,
    read_timing,
    set_aside,
    write_measured,
)
from episodic_curiosity.support.saving import LoadError, UnreadableError

RESULT = Result(
    key=Key("threshold", "maze/no-reward", "ppo+ec", "k-2", "gpu", 20_000_000, 3),
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
TIMING = {
    "seconds": 12.5,
    "steps_per_second": 2_000_000.0,
    "steps_per_second_in_all": 1_600_000.0,  # 20M steps in 12.5 s
    "hardware": "a machine",
}


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
    assert loaded.problems == []
    assert read_timing(tmp_path, RESULT.key) == TIMING
    assert load_timings(tmp_path) == [(RESULT, TIMING)]
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


def put(mean: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content.replace(b'"mean": 2.0', b'"mean": ' + mean)


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
        (lambda content: content.replace(b'"version": 1', b'"version": 2'), "in format 2"),
        (put(b"NaN"), "is not JSON"),
        (put(b"1" + b"0" * 400), "is not JSON"),
        (put(b"[" * 500 + b"]" * 500), "is not JSON"),
        (put(b"1e999"), "is not JSON"),
    ],
)
def test_a_damaged_file_is_reported_and_left_alone(damage, reason, tmp_path):
    write(tmp_path, dataclasses.replace(RESULT, key=RESULT.key._replace(seed=4)))
    path = write(tmp_path)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with read_only(path.parent):
        loaded = load_results(tmp_path)
    assert [result.key.seed for result in loaded.results] == [4]
    ((where, why),) = loaded.problems
    assert where == path
    assert reason in why
    assert path.read_bytes() == damaged
    # Set aside it is still reported, until its cell has been measured again.
    aside = set_aside(path)
    assert aside == path.with_name(f"{path.name}.damaged")
    ((where, why),) = load_results(tmp_path).problems
    assert where == aside
    assert reason in why
    write(tmp_path)
    assert load_results(tmp_path).problems == []


def test_what_cannot_be_opened_or_is_newer_need_not_be_damaged(tmp_path):
    path = write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"version": 1', b'"version": 2'))
    with pytest.raises(UnreadableError, match="in format 2"):
        read_result(path)
    path.write_bytes(whole.replace(b'"version": 1', b'"version": "x"'))
    with pytest.raises(LoadError, match="in format x") as caught:
        read_result(path)
    assert not isinstance(caught.value, UnreadableError)
    path.unlink()
    path.mkdir()  # as unreadable, as a file, as one gets where root may read everything
    with pytest.raises(UnreadableError, match="is not a regular file"):
        read_result(path)
    assert "is not a regular file" in load_results(tmp_path).problems[0].reason


def test_a_file_under_another_cells_name_is_reported(tmp_path):
    path = write(tmp_path)
    path.rename(path.with_name(path.name.replace("s3", "s5")))
    loaded = load_results(tmp_path)
    assert loaded.results == []
    assert PATH in loaded.problems[0].reason


def test_a_folder_of_something_else_is_refused(tmp_path):
    """`curiosity report .` in a project: nothing there is a result, or becomes renamed."""
    foreign = tmp_path / "package" / "published.json"
    foreign.parent.mkdir()
    foreign.write_text("{}")
    with pytest.raises(LoadError, match="is no folder of results: none of its JSON files"):
        load_results(tmp_path)
    assert [path.name for path in foreign.parent.iterdir()] == ["published.json"]
    write(tmp_path)
    loaded = load_results(tmp_path)  # among results it is only a problem
    assert loaded.results == [RESULT]
    assert [problem.path for problem in loaded.problems] == [foreign]
    (tmp_path / PATH).write_text("")  # a result by its name, though damaged
    assert len(load_results(tmp_path).problems) == 2


@pytest.mark.parametrize("seconds", [None, 0, -1.0, "12", True])
def test_timings_are_numbers_above_zero(seconds, tmp_path):
    path = tmp_path / RESULT.key.path
    write_measured(path, RESULT, TIMING | {"seconds": seconds})
    with pytest.raises(LoadError, match=f"says seconds: {seconds}, wanted a number above 0"):
        read_timing(tmp_path, RESULT.key)
    assert load_timings(tmp_path) == []


def test_timings_of_the_first_files_say_the_speed_in_all_too(tmp_path):
    path = tmp_path / RESULT.key.path
    first = {name: TIMING[name] for name in TIMING if name != "steps_per_second_in_all"}
    write_measured(path, RESULT, first)
    assert read_timing(tmp_path, RESULT.key) == TIMING
    write_measured(path, RESULT, {"seconds": 12.5})  # of an R-network alone
    assert read_timing(tmp_path, RESULT.key) == {"seconds": 12.5}


def test_the_episodes_of_the_test_are_those_that_were_played():
    assert RESULT.episodes is None
    played = {"num_values": 16, "mean": 1.0, "deviation": 0.0, "low": 1.0, "high": 1.0}
    assert dataclasses.replace(RESULT, metrics={"length": played}).episodes == 16


@contextlib.contextmanager
def read_only(folder):
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(LoadError, match="is no folder of results"):
        load_results(tmp_path / "nothing")
