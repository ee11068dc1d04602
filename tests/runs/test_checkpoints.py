"""A checkpoint is whole or absent, and what comes back is what went in, to the bit."""

import math
import os
import random
import struct
import subprocess
import sys
import time
import warnings

import pytest
import torch

from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.support.saving import LoadError
from tests.support.headers import read_header, write_header

pytestmark = pytest.mark.slow

DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float32,
    torch.float64,
    torch.bfloat16,
)

# Importing torch takes a second, so one process forks all those that are killed.
FORKS = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from episodic_curiosity.runs.checkpoints import Checkpoints

checkpoints = Checkpoints(Path(sys.argv[1]))

def save(number):
    checkpoints.save({"number": number, "weights": torch.full((7, 300), number)}, number)

def reached():
    number, state, *_ = checkpoints.load_newest()
    assert state["number"] == number
    assert torch.equal(state["weights"], torch.full((7, 300), number))
    return number

"""
AT_RANDOM = """
save(1)
newest, draw = 1, random.Random(1)
heard, told = os.pipe()
for _ in range(20):
    if (writer := os.fork()) == 0:
        newest += 1
        save(newest)
        os.write(told, b".")
        while True:
            newest += 1
            save(newest)
    os.read(heard, 1)  # however busy the machine: it is killed over its second or later
    newest += 1
    time.sleep(draw.uniform(0.001, 0.03))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    assert reached() >= newest, (reached(), newest)
    newest = reached()
print("checkpoints written:", newest)
"""
AT_EVERY_CALL = """
TOUCHES_FILES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")
save(1)
save(2)
calls, status = 0, None
while status != 0:
    newest = reached()
    if (writer := os.fork()) == 0:
        count = 0
        def hook(event, arguments):
            global count
            if event in TOUCHES_FILES:
                if count == calls:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1
        sys.addaudithook(hook)
        save(newest + 1)
        os._exit(0)
    status = os.waitpid(writer, 0)[1]
    assert reached() in (newest, newest + 1)
    calls += 1
assert reached() == newest + 1
print("calls:", calls - 1)
"""


@pytest.fixture
def checkpoints(tmp_path):
    return Checkpoints(tmp_path)


def names(checkpoints):
    return sorted(path.name for path in checkpoints.folder.iterdir())


def bits(value):
    """Something that is equal where the values are equal to the bit, nan and -0.0 included."""
    if isinstance(value, torch.Tensor):
        content = value.contiguous().flatten().view(torch.uint8).tolist()
        return value.dtype, tuple(value.shape), content
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [bits(item) for item in value]
    return type(value), value


def round_trip(checkpoints, state):
    checkpoints.save(state, 3)
    number, loaded, *_ = checkpoints.load_newest()
    assert number == 3
    return loaded


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (3, 5)], ids=str)
def test_tensors_come_back_to_the_bit(checkpoints, dtype, shape):
    tensor = (torch.rand(shape, dtype=torch.float64) * 100 - 30).to(dtype)
    assert bits(round_trip(checkpoints, {"t": tensor})) == bits({"t": tensor})


def test_all_else_comes_back_to_the_bit(checkpoints):
    state = {
        "floats": [0.1, -0.0, 1e-320, math.pi, math.nan, math.inf, -math.inf, 1e308],
        "integers": [0, -1, 2**64 - 1, -(2**63)],
        "others": [True, False, None, "", "ein Stück €\n", [], {}, [[1], [2.0, [None]]]],
        "groups": [{"rate": 0.1, "moment": torch.tensor(float("nan"))}, {"rate": 1}],
    }
    assert bits(round_trip(checkpoints, state)) == bits(state)


def test_nothing_at_all(checkpoints):
    assert checkpoints.load_newest() is None
    assert round_trip(checkpoints, {}) == {}


def test_names_that_look_alike_stay_apart(checkpoints):
    state = {
        "a": {"b": torch.tensor(1), "b.c": torch.tensor(2)},
        "a/b": torch.tensor(3),
        "a~1b": torch.tensor(4),
        "a.b": {"c": torch.tensor(5)},
        "__metadata__": torch.tensor(6),
    }
    assert bits(round_trip(checkpoints, state)) == bits(state)


def test_tensors_that_share_their_memory(checkpoints):
    whole = torch.arange(12.0).view(3, 4)
    state = {
        "whole": whole,
        "again": whole,
        "row": whole[1],
        "transposed": whole.T,
        "every_other": whole[:, ::2],
        "expanded": torch.tensor([5]).expand(3),
        "weight": torch.nn.Parameter(whole),
        "picture": torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }
    loaded = round_trip(checkpoints, state)
    assert bits(loaded) == bits(state)
    loaded["row"] += 1  # they are separate now, and can be written to
    assert torch.equal(loaded["whole"], whole)
    assert not loaded["weight"].requires_grad


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"optimiser": {0: 1.0}}, r"must be strings .* got 0 in /state/optimiser"),
        ({3: 1.0}, r"must be strings .* got 3 in /state"),
        ({"$tensor": "a"}, r"do not begin with \$, got '\$tensor'"),
        ({"betas": [1, (0.9, 0.99)]}, "got tuple at /state/betas/1"),
        ({"a": {"b": object()}}, "got object at /state/a/b"),
    ],
)
def test_what_a_state_cannot_hold(checkpoints, state, message):
    with pytest.raises(TypeError, match=message):
        checkpoints.save(state, 1)
    assert not checkpoints.folder.exists()


def test_a_number_that_is_none(checkpoints):
    with pytest.raises(ValueError, match="number must be an integer of at least 0, got -1"):
        checkpoints.save({}, -1)


def test_the_newest_two_are_kept(checkpoints):
    for number in (2, 5, 10, 7_000):
        checkpoints.save({"n": number}, number)
    assert names(checkpoints) == ["000000000010", "000000007000"]
    assert checkpoints.load_newest()[:2] == (7_000, {"n": 7_000})


def test_a_checkpoint_can_be_written_again(checkpoints):
    for value in range(3):
        checkpoints.save({"value": value}, 4)
    assert names(checkpoints) == ["000000000004"]
    assert checkpoints.load_newest()[:2] == (4, {"value": 2})


def test_what_a_killed_run_left_half_written_goes_and_strange_files_stay(checkpoints):
    for name in (".000000000009.new", ".000000000001.old", ".mine", "notes"):
        (checkpoints.folder / name).mkdir(parents=True)
        (checkpoints.folder / name / "state.safetensors").write_text("{")
    assert checkpoints.load_newest() is None
    checkpoints.save({}, 9)
    assert names(checkpoints) == [".mine", "000000000009", "notes"]


def test_a_failing_save_leaves_what_was_there(checkpoints, monkeypatch):
    checkpoints.save({"n": 1}, 1)

    def fails(*_):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fails)
        with pytest.raises(OSError, match="the disk is full"):
            checkpoints.save({"n": 2}, 2)
    assert names(checkpoints) == ["000000000001"]
    assert checkpoints.load_newest()[:2] == (1, {"n": 1})


def empty(path):
    for file in path.iterdir():
        file.unlink()


def cut(name, keep):
    def damage(path):
        content = (path / name).read_bytes()
        (path / name).write_bytes(content[: int(len(content) * keep)])

    return damage


def change_a_number(path):
    header = read_header(path / "state.safetensors")
    assert header["config"]["state"]["n"] == 31
    header["config"]["state"]["n"] = 30
    write_header(path / "state.safetensors", header)


DAMAGES = {
    "empty": (empty, r"state\.safetensors cannot be read"),
    "header cut": (cut("state.safetensors", 0.05), r"state\.safetensors is truncated"),
    "tensors cut": (cut("state.safetensors", 0.9), r"state\.safetensors is truncated"),
    "all cut": (cut("state.safetensors", 0), r"state\.safetensors is truncated"),
    "another number": (change_a_number, r"state\.safetensors is not as it was written"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_one_falls_back_and_is_replaced(checkpoints, damage):
    harm, message = DAMAGES[damage]
    for number in (1, 2):
        checkpoints.save({"n": 31, "weights": torch.arange(300)}, number)
    harm(checkpoints.folder / "000000000002")
    with pytest.warns(RuntimeWarning, match=f"going back to checkpoint 1: .*{message}"):
        number, state, *_ = checkpoints.load_newest()
    assert number == 1
    assert torch.equal(state["weights"], torch.arange(300))

    # Going on from there, the damaged one is not counted among the newest two.
    checkpoints.save({"n": 31}, 2)
    assert names(checkpoints) == ["000000000001", "000000000002"]
    assert checkpoints.load_newest()[:2] == (2, {"n": 31})


def test_a_damaged_one_of_a_later_number_is_removed(checkpoints):
    for number in (1, 8):
        checkpoints.save({"n": number}, number)
    empty(checkpoints.folder / "000000000008")
    checkpoints.save({"n": 3}, 3)
    assert names(checkpoints) == ["000000000001", "000000000003"]


def test_both_damaged_is_one_sentence(checkpoints):
    for number in (1, 2):
        checkpoints.save({}, number)
        empty(checkpoints.folder / f"{number:012d}")
    with pytest.raises(LoadError, match=r"no checkpoint in .* is intact: .*") as refusal:
        checkpoints.load_newest()
    assert "\n" not in str(refusal.value)


def test_any_flipped_bit_is_noticed_or_harmless(checkpoints):
    state = {"n": 31, "rates": [0.5, math.nan], "weights": torch.arange(9), "s": "word"}
    checkpoints.save(state, 1)
    draw = random.Random(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = checkpoints.folder / "000000000001" / "state.safetensors"
        content = path.read_bytes()
        for _ in range(600):
            damaged = bytearray(content)
            damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            path.write_bytes(damaged)
            try:
                loaded = checkpoints.load_newest()
            except LoadError:
                continue
            assert bits(loaded.state) == bits(state)  # a blank in the JSON, at most


def run_forks(checkpoints, what):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKS + what, str(checkpoints.folder.parent)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    return int(result.stdout.split(":")[1])


def test_killed_at_random_moments_it_can_go_on(checkpoints):
    assert run_forks(checkpoints, AT_RANDOM) > 20


def test_killed_at_each_call_that_touches_a_file_it_can_go_on(checkpoints):
    assert run_forks(checkpoints, AT_EVERY_CALL) > 10


def test_forty_megabytes_take_well_under_a_second(checkpoints):
    state = {str(i): torch.rand(1_000_000) for i in range(10)}
    started = time.process_time()  # of the processor: others may be using the machine
    checkpoints.save(state, 1)
    checkpoints.load_newest()
    assert time.process_time() - started < 1.0
