"""A run that was killed or stopped ends with the same bytes as one that never was."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.soak.killing import Blow, play_on, start_server, strike_and_resume
from benchmarks.soak.works import Training, Work, a_fit, what_is_left
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.record import read_config
from tests.runs.tiny_runs import METHODS, tiny_run

pytestmark = pytest.mark.slow

NUM_KILLS = {"ppo+ec": 5, "ppo+eco": 5}  # of the other methods 2
SEED = 0
CURIOSITY = str(Path(sys.executable).parent / "curiosity")
# `curiosity train` as tiny_run has it.
COMMAND = """train
--task maze/sparse --method ppo+eco --device cpu --steps 1600
--world.num-envs 4 --world.observation-size 36 36 --world.episode-steps 40
--world.maze-size 9 --world.rooms 2 --world.num-levels 5
--ppo.num-steps 10 --ppo.num-minibatches 2 --ppo.num-epochs 2
--r-network.embedding-size 32 --r-network.online.refit-every 160
--r-network.online.history 200 --r-network.online.fit.iterations 6
--r-network.online.fit.pairs.k 2 --r-network.online.fit.pairs.gamma 2
"""


@pytest.mark.parametrize("method", METHODS)
def test_killed_and_resumed_a_run_ends_with_the_same_bytes(method, tmp_path):
    check_killed(Training(method, tiny_run(method)), NUM_KILLS.get(method, 2), tmp_path)


def test_so_does_a_fit(tmp_path):
    check_killed(a_fit(), 3, tmp_path)


def test_with_all_that_is_off_by_default(tmp_path):
    run = tiny_run("ppo+eco", "maze/sparse+noise-action")
    run = replace(run, normalise_bonus=True, ppo=replace(run.ppo, bonus_head=True))
    check_killed(Training("all", run), 2, tmp_path)


def test_a_world_that_cannot_be_restored_begins_new_episodes(tmp_path):
    """Its frames are in a file, which has to agree with the checkpoint that is gone on from."""
    run = tiny_run("ppo+eco", "gym/CartPole-v1", num_updates=40)
    work, folder = Training("CartPole", run, exact=False), tmp_path / "run"
    start_server()
    for delay in (0.5, 1.0, 1.5):
        play_on(work, folder, Blow(delay, "writing" if delay == 1.0 else "anywhere"))
    assert play_on(work, folder).code == 0
    lines = read_metrics(folder)
    assert [line["steps"] for line in lines] == [40 * number for number in range(1, 41)]
    assert lines[-1]["r_network_fits"] == 10
    assert (folder / "replay.bin").exists()


def test_control_c_leaves_a_checkpoint_and_says_how_to_go_on(tmp_path):
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    process = curiosity(f"{COMMAND} --out {stopped}")
    wait_for_lines(stopped / "metrics.jsonl", 5)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=600)[1]
    assert process.returncode == 130, said
    assert f"stopped; resume with: curiosity train --resume --out {stopped}" in said
    assert "Traceback" not in said
    num_lines = len(read_metrics(stopped))
    assert 5 <= num_lines < 40
    assert (stopped / "checkpoints" / f"{num_lines:012d}").is_dir()

    process = curiosity(f"train --resume --out {stopped}")
    said = process.communicate(timeout=600)[1]
    assert process.returncode == 0, said
    assert f"resuming from {stopped}/checkpoints/{num_lines:012d}" in said
    assert len(read_metrics(stopped)) == 40

    run = Run.from_dict(read_config(stopped))
    assert play_on(Training("command", run), whole).code == 0
    assert what_is_left(stopped) == what_is_left(whole)


def check_killed(work: Work, num_kills: int, folder: Path) -> None:
    kills = strike_and_resume(work, folder, num_kills, SEED)
    assert kills.stages.total() == num_kills
    assert not kills.differences + kills.failures, f"at the moments of seed {SEED}: {kills}"


def curiosity(line: str) -> subprocess.Popen[str]:
    return subprocess.Popen([CURIOSITY, *line.split()], stderr=subprocess.PIPE, text=True)


def wait_for_lines(path: Path, num_lines: int) -> None:
    deadline = time.monotonic() + 600
    while not path.exists() or path.read_bytes().count(b"\n") < num_lines:
        assert time.monotonic() < deadline, f"{path} has too few lines"
        time.sleep(0.01)
