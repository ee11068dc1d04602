"""What a user is told before a run, and of what came of it."""

import dataclasses
import shlex

import pytest

from episodic_curiosity.runs import remarks
from episodic_curiosity.runs.metrics_files import LinesWriter
from episodic_curiosity.runs.presets import resolve

RUN = resolve("maze/sparse", "ppo", "cpu", 1024, seed=0)


def test_rounded_steps_are_said():
    run = resolve("maze/sparse", "ppo", "cpu", 8000, seed=0)
    assert remarks.before(run) == [
        "8,000 steps are rounded down to 7,168, complete updates of 1,024"
    ]
    assert remarks.before(dataclasses.replace(run, steps=7168)) == []


@pytest.mark.parametrize(("refit_every", "is_told"), [(6144, False), (6145, True)])
def test_a_refit_that_comes_too_late_is_said(refit_every, is_told):
    """Of 7 updates of 1,024 steps, the last can be paid by a refit after the sixth."""
    run = resolve("maze/sparse", "ppo+eco", "cpu", 7168, seed=0)
    online = dataclasses.replace(run.r_network.online, refit_every=refit_every)
    r_network = dataclasses.replace(run.r_network, online=online)
    told = remarks.before(dataclasses.replace(run, r_network=r_network))
    assert len(told) == is_told
    assert not is_told or told[0].startswith(
        "warning: the R-network is first fitted after 6,145 steps, which this run of 7,168 "
    )


def test_the_outcome_is_the_mean_over_the_last_episodes(tmp_path):
    lines = LinesWriter(tmp_path)
    for steps, episodes, reward in (
        (850, 5, 100.0),
        (950, 1, 2.0),
        (980, 0, None),
        (1000, 3, 6),
    ):
        shown = {} if reward is None else {"reward": reward, "length": 10.0}
        lines.write(steps, {"episodes": episodes} | shown, {"seconds": 1.0})
    lines.close()
    first, *rest = remarks.outcome(RUN, tmp_path)
    assert first == "episodes that ended in the last 10% of the run: reward 5, length 10"
    assert rest[1] == f"  curiosity evaluate {tmp_path}"


def test_no_episode_has_ended(tmp_path):
    lines = LinesWriter(tmp_path)
    lines.write(1000, {"episodes": 0}, {"seconds": 1.0})
    lines.close()
    assert remarks.outcome(RUN, tmp_path)[0] == f"the run is in {tmp_path}; next:"


def test_the_next_commands_can_be_pasted(tmp_path):
    folder = tmp_path / "my run"
    folder.mkdir()
    LinesWriter(folder).close()
    commands = remarks.outcome(RUN, folder)[1:]
    assert shlex.split(commands[0]) == ["curiosity", "evaluate", str(folder)]
    assert shlex.split(commands[1])[:3] == ["curiosity", "watch", str(folder)]
    assert shlex.split(commands[2])[2] == str(folder / "tensorboard")


def test_the_next_commands_trust_a_run_that_loads_a_file(tmp_path):
    """They would be refused without."""
    LinesWriter(tmp_path).close()
    world = dataclasses.replace(RUN.world, pictures=tmp_path)
    run = dataclasses.replace(RUN, task="maze/sparse+image-action-3", world=world)
    _, evaluate, watch, logs = remarks.outcome(run, tmp_path)
    assert evaluate.endswith(" --trust")
    assert watch.endswith(" --trust")
    assert not logs.endswith(" --trust")
