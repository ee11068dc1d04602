"""Worker processes, over a simulator that fails in every way."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from episodic_curiosity.support.checks import LONGEST_TIMEOUT
from episodic_curiosity.worlds.processes.worker import End
from episodic_curiosity.worlds.processes.workers import Workers, _Worker
from tests.worlds.processes.children import eventually, have_ended, members
from tests.worlds.processes.counting_engine import COUNT, CRASH, END, ERROR, FIELDS, HANG, LEAVE

pytestmark = pytest.mark.slow

ENGINE = (Path(__file__).with_name("counting_engine.py"), "CountingEngine")
ROOT = Path(__file__).parents[3]
TIMEOUT = 20.0
POPEN = subprocess.Popen


@pytest.fixture
def make():
    made = []

    def make(num_envs=5, num_workers=2, timeout=TIMEOUT, **options) -> Workers:
        workers = Workers(
            ENGINE,
            options,
            FIELDS,
            num_envs=num_envs,
            num_workers=num_workers,
            timeout=timeout,
            pinned=True,
        )
        made.append(workers)
        return workers

    yield make
    for workers in made:
        workers.close()


def begin(workers: Workers) -> None:
    workers.board.seed[:] = range(10, 10 + len(workers.board.seed))
    workers.begin()


def step(workers: Workers, *actions: int, last=()) -> list[End]:
    workers.board.action[:] = actions
    workers.board.last[:] = [row in last for row in range(len(actions))]
    return [End(end) for end in workers.step()]


def counts(workers: Workers, which="present") -> list[int]:
    return getattr(workers.board, which)["count"][:, 0].tolist()


GOES_ON = [End.NOT_YET] * 5


def test_all_environments_step_together(make):
    workers = make()
    begin(workers)
    assert workers.board.present["seed"].tolist() == [10, 11, 12, 13, 14]
    assert counts(workers) == [0] * 5
    for number in (1, 2, 3):
        assert step(workers, *[COUNT] * 5) == GOES_ON
        assert workers.board.present["count"].tolist() == [[number, -number]] * 5
        assert workers.board.reward.tolist() == [number] * 5
    assert len(workers.pids) == 2


def test_simulators_do_not_interrupt_their_worker(make):
    """Only the worker may interrupt others on its core, when the next command wakes it."""
    workers = make(helper=True)
    begin(workers)
    step(workers, *[COUNT] * 5)
    for pid in workers.pids:
        assert os.sched_getscheduler(pid) == os.SCHED_OTHER
        helpers = set(members(pid)) - {pid}
        assert helpers
        assert {os.sched_getscheduler(helper) for helper in helpers} == {os.SCHED_BATCH}


def test_ends_by_task_and_by_clock_begin_the_next_episode(make):
    workers = make()
    begin(workers)
    step(workers, *[COUNT] * 5)
    workers.board.seed[:] = range(20, 25)
    ends = step(workers, COUNT, END, COUNT, END, COUNT, last=(3, 4))
    assert ends == [End.NOT_YET, End.BY_TASK, End.NOT_YET, End.BY_TASK, End.BY_CLOCK]
    assert counts(workers) == [2, 0, 2, 0, 0]
    assert workers.board.present["seed"].tolist() == [10, 21, 12, 23, 24]
    # The task's end has no observation of its own; the clock's has.
    final = counts(workers, "final")
    assert (final[1], final[3], final[4]) == (1, 1, 2)
    assert workers.board.reward.tolist() == [2.0] * 5


def test_a_broken_simulator_costs_its_own_episode_only(make, caplog):
    workers = make()
    begin(workers)
    step(workers, *[COUNT] * 5)
    pids = workers.pids
    ends = step(workers, COUNT, COUNT, COUNT, ERROR, COUNT)
    assert ends == [*GOES_ON[:3], End.BY_FAULT, End.NOT_YET]
    assert counts(workers) == [2, 2, 2, 0, 2]
    assert counts(workers, "final")[3] == 1
    assert workers.board.reward.tolist() == [2, 2, 2, 0, 2]
    assert workers.pids == pids
    assert workers.num_faults == 1
    assert "last output 'ValueError: the counter broke'" in caplog.text
    assert "losing the episodes of [3]" in caplog.text
    assert step(workers, *[COUNT] * 5) == GOES_ON
    assert counts(workers) == [3, 3, 3, 1, 3]


def test_a_worker_that_dies_is_replaced(make, caplog):
    workers = make(helper=True)
    begin(workers)
    step(workers, *[COUNT] * 5)
    pids = workers.pids
    ends = step(workers, COUNT, COUNT, COUNT, CRASH, COUNT)
    assert ends == [End.NOT_YET, End.NOT_YET, *[End.BY_FAULT] * 3]
    assert counts(workers) == [2, 2, 0, 0, 0]
    assert counts(workers, "final")[3:] == [1, 1]
    assert workers.board.reward.tolist() == [2, 2, 0, 0, 0]
    assert workers.num_faults == 3
    assert "the worker of environments 2 to 4: died, no output" in caplog.text
    assert workers.pids[0] == pids[0]
    assert workers.pids[1] != pids[1]
    assert have_ended(pids[1:])  # its simulators with it
    assert step(workers, *[COUNT] * 5) == GOES_ON
    assert counts(workers) == [3, 3, 1, 1, 1]


def test_a_worker_killed_between_steps_is_replaced(make):
    workers = make()
    begin(workers)
    os.kill(workers.pids[0], signal.SIGKILL)
    assert step(workers, *[COUNT] * 5)[:2] == [End.BY_FAULT] * 2
    os.kill(workers.pids[1], signal.SIGKILL)
    workers.begin()
    assert counts(workers) == [0] * 5
    assert step(workers, *[COUNT] * 5) == GOES_ON


@pytest.mark.parametrize("how", ["hangs", "is stopped"])
def test_a_worker_that_does_not_answer_is_replaced(make, caplog, how):
    workers = make(helper=True, timeout=2.0)
    begin(workers)
    pids = workers.pids
    if how == "is stopped":
        os.kill(pids[0], signal.SIGSTOP)
    hanging = HANG if how == "hangs" else COUNT
    ends = step(workers, COUNT, hanging, *[COUNT] * 3)
    assert ends == [End.BY_FAULT, End.BY_FAULT, *GOES_ON[2:]]
    assert "the worker of environments 0 to 1: no answer in time" in caplog.text
    assert have_ended(pids[:1])
    assert step(workers, *[COUNT] * 5) == GOES_ON


@pytest.mark.parametrize("between", [0, 1, 30])
def test_failing_again_and_again_is_no_accident(make, between):
    workers = make()
    begin(workers)
    for _ in range(3):
        assert step(workers, ERROR, *[COUNT] * 4)[0] is End.BY_FAULT
        for _ in range(between):
            assert step(workers, *[COUNT] * 5) == GOES_ON
    pids = workers.pids
    with pytest.raises(
        ChildProcessError, match=r"0 to 1 fails again and again: .*the counter broke"
    ):
        step(workers, ERROR, *[COUNT] * 4)
    assert have_ended(pids)
    with pytest.raises(RuntimeError, match="this world is closed"):
        workers.step()


def test_good_steps_make_up_for_faults(make):
    workers = make(num_envs=2)
    begin(workers)
    for number in range(5):
        assert step(workers, ERROR, COUNT) == [End.BY_FAULT, End.NOT_YET], number
        for _ in range(100):
            step(workers, COUNT, COUNT)
    assert workers.num_faults == 5


def test_the_last_words_are_the_error_not_what_the_next_episode_prints(make, caplog):
    workers = make(num_envs=1, talks=True)
    begin(workers)
    step(workers, ERROR)
    assert "last output 'ValueError: the counter broke'" in caplog.text
    step(workers, CRASH)
    assert "died, last output 'act 3'" in caplog.text  # not an older error


def test_an_episode_that_cannot_begin_is_passed_over(make, caplog):
    """What had ended before stays as it ended; who shares the process loses what is played."""
    workers = make(broken=60)
    begin(workers)
    step(workers, *[COUNT] * 5)
    workers.board.seed[:] = [30, 40, 50, 60, 70]
    ends = step(workers, *[END] * 5)
    assert ends == [*[End.BY_TASK] * 4, End.BY_FAULT]
    assert workers.board.reward.tolist() == [2, 2, 2, 2, 0]
    assert counts(workers, "final") == [1] * 5
    assert workers.board.present["seed"].tolist() == [30, 40, 50, 61, 70]
    assert workers.num_faults == 2
    assert "last output 'OSError: this map is broken'" in caplog.text
    assert "losing the episodes of [4], skipping episodes that could not begin in [3]" in (
        caplog.text
    )
    assert step(workers, *[COUNT] * 5) == GOES_ON


def test_the_clock_ends_an_episode_whose_successor_cannot_begin(make):
    workers = make(num_envs=1, broken=60)
    begin(workers)
    workers.board.seed[:] = 60
    assert step(workers, COUNT, last=(0,)) == [End.BY_CLOCK]
    assert workers.board.reward.tolist() == [1.0]
    assert counts(workers, "final") == [1]
    assert workers.board.present["seed"].tolist() == [61]
    assert workers.num_faults == 1


def test_a_broken_episode_is_begun_by_one_process_only(make, tmp_path):
    log = tmp_path / "begun"
    workers = make(num_envs=1, broken=60, log=str(log))
    begin(workers)
    workers.board.seed[:] = 60
    step(workers, END)
    assert log.read_text().split() == ["10", "60", "60", "61"]


def test_no_episode_begins_after_the_final_one(make, tmp_path):
    log = tmp_path / "begun"
    workers = make(num_workers=1, log=str(log))
    begin(workers)
    workers.board.is_final[:] = [True, True, True, False, False]
    workers.board.seed[:] = range(20, 25)
    ends = step(workers, END, COUNT, COUNT, END, COUNT, last=(1,))
    assert ends == [End.BY_TASK, End.BY_CLOCK, End.NOT_YET, End.BY_TASK, End.NOT_YET]
    assert workers.board.present["seed"].tolist() == [10, 11, 12, 23, 14]
    assert counts(workers) == [0, 1, 1, 0, 1]  # the newest observation stays
    for number in (2, 3):
        assert step(workers, *[COUNT] * 5) == GOES_ON
        assert counts(workers) == [0, 1, number, number - 1, number]
        assert workers.board.reward.tolist() == [0, 0, number, number - 1, number]
    assert log.read_text().split() == ["10", "11", "12", "13", "14", "23"]


def test_a_worker_that_dies_begins_no_episode_that_nobody_plays(make, tmp_path):
    log = tmp_path / "begun"
    workers = make(num_workers=1, log=str(log))
    begin(workers)
    workers.board.is_final[:] = [True, True, False, False, False]
    step(workers, END, *[COUNT] * 4)
    workers.board.seed[:] = range(20, 25)
    ends = step(workers, CRASH, *[COUNT] * 4)  # it rests, and does nothing
    assert ends == GOES_ON
    assert workers.board.reward[0] == 0
    ends = step(workers, COUNT, CRASH, *[COUNT] * 3)
    assert ends == [End.NOT_YET, *[End.BY_FAULT] * 4]
    assert log.read_text().split()[5:] == ["22", "23", "24"]
    assert step(workers, *[COUNT] * 5) == GOES_ON
    assert workers.board.reward.tolist() == [0, 0, 1, 1, 1]


def test_what_cannot_start_says_why(make):
    workers = make(num_envs=1, starts=False)
    with pytest.raises(
        ChildProcessError,
        match="cannot be started: died, last output 'OSError: there is no map'",
    ):
        workers.begin()


def test_a_worker_that_fails_before_it_is_asked_says_why(make, monkeypatch):
    """As the first of many does: all are started before the first is asked."""
    start = _Worker.start

    def start_and_die(self):
        start(self)
        assert eventually(self._has_ended)

    monkeypatch.setattr(_Worker, "start", start_and_die)
    workers = make(num_envs=1, unknown=True)
    with pytest.raises(ChildProcessError, match=r'died, last output "TypeError: .*unknown'):
        workers.begin()


def test_the_reward_of_a_final_episode_is_paid_once(make):
    workers = make(num_workers=1)
    begin(workers)
    workers.board.is_final[4] = True
    step(workers, *[COUNT] * 4, END)
    assert workers.board.reward[4] == 1
    assert step(workers, CRASH, *[COUNT] * 4) == [*[End.BY_FAULT] * 4, End.NOT_YET]
    assert workers.board.reward.tolist() == [0] * 5


def test_a_process_may_take_longer_to_start_than_to_answer(make, caplog):
    workers = make(timeout=0.01)  # Python alone takes longer
    begin(workers)
    assert counts(workers) == [0] * 5
    assert caplog.text == ""


def test_closing_leaves_nothing(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    workers = make(helper=True)
    begin(workers)
    step(workers, *[LEAVE] * 5)
    pids = workers.pids
    assert sorted(members(pids[0]).values()) == ["python", "sleep", "sleep"]
    workers.close()
    workers.close()
    assert have_ended(pids)
    assert [path.name for path in tmp_path.rglob("*")] == ["temporary"]


def test_a_process_that_cannot_be_made_leaves_nothing(make, tmp_path, monkeypatch):
    workers = make()
    made = []

    def one(*arguments, **options):
        if made:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        made.append(POPEN(*arguments, **options))
        return made[0]

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", one)
    with pytest.raises(BlockingIOError, match="temporarily unavailable"):
        begin(workers)
    assert have_ended([made[0].pid])
    assert not list(tmp_path.iterdir())


def test_being_forgotten_closes_it():
    workers = Workers(
        ENGINE, {}, FIELDS, num_envs=2, num_workers=1, timeout=TIMEOUT, pinned=False
    )
    begin(workers)
    pids = workers.pids
    del workers
    assert have_ended(pids)


def test_an_interrupted_step_closes_it(make, monkeypatch):
    workers = make()
    begin(workers)
    pids = workers.pids

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(workers._crew[1], "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        step(workers, *[COUNT] * 5)
    assert have_ended(pids)


PARENT = """
    import json, sys, time
    from pathlib import Path
    from episodic_curiosity.worlds.processes.workers import Workers
    from tests.worlds.processes.counting_engine import FIELDS, HANG

    engine = (Path("tests/worlds/processes/counting_engine.py"), "CountingEngine")
    workers = Workers(
        engine, {"helper": True}, FIELDS, num_envs=3, num_workers=2, timeout=1000.0, pinned=True
    )
    workers.begin()
    print(json.dumps(workers.pids), flush=True)
    workers.board.action[0] = HANG
    workers.step()
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_a_parent(by, tmp_path):
    """With one worker stuck in its simulator, as at the worst moment."""
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT)],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with parent:
        assert parent.stdout is not None
        groups = json.loads(parent.stdout.readline())
        assert all(len(members(group)) >= 2 for group in groups)
        parent.send_signal(by)
        parent.wait(TIMEOUT)
    assert have_ended(groups)
    assert eventually(lambda: not list(tmp_path.iterdir()))


def test_more_environments_than_fit_are_refused_beforehand(make):
    with pytest.raises(MemoryError, match=r"a world of 10000000000 env.* lower `num_envs`"):
        make(num_envs=10**10)


@pytest.mark.parametrize(
    "wrong", [{"num_workers": 0}, {"num_envs": 0}, {"timeout": 0.0}, {"timeout": 1e7}]
)
def test_bad_numbers_are_refused(make, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make(**wrong)


def test_the_longest_timeout_can_be_waited_for(make):
    make(timeout=LONGEST_TIMEOUT).begin()
