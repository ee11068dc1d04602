"""What happens to workers between `begin_step` and `end_step`."""

import os
import signal
import time
from pathlib import Path

import pytest

from episodic_curiosity.worlds.processes.worker import End
from episodic_curiosity.worlds.processes.workers import Workers
from tests.worlds.processes.children import eventually, have_ended, members
from tests.worlds.processes.counting_engine import (
    COUNT,
    CRASH,
    DAWDLE,
    ERROR,
    FIELDS,
    HANG,
    SLOW,
)

pytestmark = pytest.mark.slow

ENGINE = (Path(__file__).with_name("counting_engine.py"), "CountingEngine")
TIMEOUT = 10.0


@pytest.fixture
def make():
    made = []

    def make(timeout: float = TIMEOUT) -> Workers:
        """Environments 0 and 1 of one worker, 2 to 4 of another, after one step."""
        workers = Workers(
            ENGINE,
            {"helper": True},
            FIELDS,
            num_envs=5,
            num_workers=2,
            timeout=timeout,
            pinned=True,
        )
        made.append(workers)
        workers.board.seed[:] = range(10, 15)
        workers.begin()
        begin_step(workers)
        assert end_step(workers) == [End.NOT_YET] * 5
        return workers

    yield make
    for workers in made:
        workers.close()


def begin_step(workers: Workers, *actions: int) -> None:
    workers.board.action[:] = actions or [COUNT] * 5
    workers.begin_step()


def end_step(workers: Workers) -> list[End]:
    return [End(end) for end in workers.end_step()]


def counts(workers: Workers) -> list[int]:
    return workers.board.present["count"][:, 0].tolist()


def continues(workers: Workers) -> bool:
    before = counts(workers)
    begin_step(workers)
    return end_step(workers) == [End.NOT_YET] * 5 and counts(workers) == [
        count + 1 for count in before
    ]


@pytest.mark.parametrize("slow", [0, 4])
def test_an_engine_is_slower_than_the_rest_of_the_step(make, slow):
    workers = make()
    started = time.monotonic()
    begin_step(workers, *[DAWDLE if row == slow else COUNT for row in range(5)])
    assert time.monotonic() - started < SLOW
    assert end_step(workers) == [End.NOT_YET] * 5
    assert time.monotonic() - started >= SLOW
    assert counts(workers) == [2] * 5
    assert workers.board.reward.tolist() == [2.0] * 5
    assert continues(workers)
    assert workers.num_faults == 0


def test_a_worker_dies_before_its_answer_is_awaited(make):
    workers = make()
    pids = workers.pids
    begin_step(workers, CRASH, *[COUNT] * 4)
    assert eventually(lambda: pids[0] not in members(pids[0]))
    assert end_step(workers) == [End.BY_FAULT] * 2 + [End.NOT_YET] * 3
    assert counts(workers) == [0, 0, 2, 2, 2]
    assert workers.board.final["count"][:2, 0].tolist() == [1, 1]
    assert have_ended(pids[:1])
    assert continues(workers)


def test_a_worker_is_killed_in_mid_step(make):
    """What its first game had already done in this step is lost with it."""
    workers = make()
    pids = workers.pids
    begin_step(workers, *[COUNT] * 3, HANG, COUNT)
    assert eventually(lambda: counts(workers)[2] == 2)
    os.kill(pids[1], signal.SIGKILL)
    assert end_step(workers) == [End.NOT_YET] * 2 + [End.BY_FAULT] * 3
    assert counts(workers) == [2, 2, 0, 0, 0]
    assert workers.board.reward.tolist() == [2, 2, 0, 0, 0]
    assert have_ended(pids[1:])
    assert continues(workers)


def test_a_worker_freezes_in_mid_step(make):
    workers = make(timeout=2.0)
    begin_step(workers, DAWDLE, *[COUNT] * 4)
    os.kill(workers.pids[0], signal.SIGSTOP)
    started = time.monotonic()
    assert end_step(workers) == [End.BY_FAULT] * 2 + [End.NOT_YET] * 3
    assert time.monotonic() - started < TIMEOUT
    assert continues(workers)


def test_all_workers_fail_in_one_step(make, caplog):
    workers = make(timeout=2.0)
    begin_step(workers, HANG, COUNT, ERROR, CRASH, COUNT)
    assert end_step(workers) == [End.BY_FAULT] * 5
    assert "0 to 1: no answer in time" in caplog.text
    assert "2 to 4: died, last output 'ValueError: the counter broke'" in caplog.text
    assert workers.num_faults == 5
    assert continues(workers)


@pytest.mark.parametrize("what", [COUNT, HANG, CRASH])
def test_closing_in_mid_step(make, what):
    workers = make()
    pids = workers.pids
    begin_step(workers, what, *[COUNT] * 4)
    started = time.monotonic()
    workers.close()
    assert time.monotonic() - started < TIMEOUT
    assert have_ended(pids)
    with pytest.raises(RuntimeError, match="this world is closed"):
        workers.end_step()
