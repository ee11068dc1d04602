"""Trains one run, from its config to a trained agent: the algorithm on one page.

Savinov et al. 2019, section 2: collect a rollout, with a bonus for observations that are not
reachable from memory; update PPO on reward and bonus; refit the R-network (ECO).
"""

from contextlib import closing
from pathlib import Path

from episodic_curiosity.runs import build, remarks
from episodic_curiosity.runs.config import Run, in_full
from episodic_curiosity.runs.fit import fit_beforehand
from episodic_curiosity.runs.learner import Learner, restore
from episodic_curiosity.runs.record import Record
from episodic_curiosity.support.compiling import compiles
from episodic_curiosity.support.interruption import StopRequest, stop_request
from episodic_curiosity.support.machine import reusing_freed_memory
from episodic_curiosity.support.progress import Progress

# Fields that may change on resume: they say where a run executes, not what it learns.
MAY_DIFFER = ("device", "world.level_cache", "world.timeout")


def train(
    run: Run,
    folder: Path,
    *,
    resume: bool = False,
    accept_changes: bool = False,
    progress: bool = True,
) -> None:
    """Trains an agent and writes everything to the folder.

    Ctrl-C or SIGTERM ends the run with a checkpoint after the current update.

    Args:
        run: the config, as `resolve` returns it.
        folder: for the agent, metrics and checkpoints.
        resume: continues a run that was stopped.
        accept_changes: resumes it even if its config or metrics were edited.
        progress: shows a bar on a terminal.
    """
    run = Run.from_dict(run.to_dict())  # NumPy's numbers as Python's
    total_steps = run.steps_after(run.num_updates)  # raises if there are too few for one update
    # Built before the folder, so that an invalid run leaves no folder behind.
    with reusing_freed_memory(), closing(build.open_first_world(run)) as world:
        learner = Learner.make(run, world, folder)
        with (
            Record(
                folder,
                run.to_dict(),
                resume=resume,
                may_differ=MAY_DIFFER,
                accept_changes=accept_changes,
                in_full=in_full,
            ) as record,
            Progress(total_steps, record.steps, is_shown=progress) as display,
            stop_request(display.note) as stop,
        ):
            _learn(run, learner, record, display, stop)


def _learn(
    run: Run, learner: Learner, record: Record, display: Progress, stop: StopRequest
) -> None:
    """Runs the remaining updates; writes metrics and checkpoints."""
    number, metrics = _begin(run, learner, record, display)
    if number == run.num_updates:
        learner.save(record.folder)  # one of its files may be lost or damaged
    while number < run.num_updates:
        metrics |= _update(learner, number, record)
        number += 1
        is_last = number == run.num_updates
        if number % run.record.metrics_every == 0 or is_last:
            steps = run.steps_after(number)
            metrics |= learner.metrics()
            record.write(steps, metrics)
            display.update(steps, metrics)
            for trouble in learner.diagnosis.look(metrics):
                display.note(f"warning: {trouble}")
            metrics = {}
        if number % run.record.checkpoint_every == 0 or is_last or stop.is_set:
            # In this order: if the run is killed in between, a resumed run does both again.
            learner.save(record.folder)
            progress = {"number": number, "metrics": metrics}
            record.checkpoint(number, learner.state_dict() | progress)
        if stop.is_set and not is_last:
            raise KeyboardInterrupt


def _begin(
    run: Run, learner: Learner, record: Record, display: Progress
) -> tuple[int, dict[str, float]]:
    """Restores or initialises the run; returns the updates done and metrics not yet written."""
    if compiles(learner.agent.device):
        display.note(
            "compiling at first use, which takes about a minute unless torch has cached it "
            "in an earlier run"
        )
    for remark in remarks.before(run):
        display.note(remark)
    state = record.resume()
    if state is not None:
        assert record.last_checkpoint is not None
        progress = restore(learner, state, record.last_checkpoint)
        is_over = progress[0] == run.num_updates
        display.note(
            f"the run in {record.folder} is complete: nothing is left to train"
            if is_over
            else f"resuming from {record.last_checkpoint}"
        )
        return progress
    if (replay := learner.replay) is not None:
        display.note(
            f"the R-network's replay takes {replay.memory_bytes / 1e6:,.0f} MB of memory "
            f"and {replay.disk_bytes / 1e6:,.0f} MB of disk"
        )
    if run.random_play_steps and learner.r_network is not None:
        spec = learner.collector.world.spec
        report = fit_beforehand(run, learner.r_network, spec, record.folder, display)
        display.note(f"R-network fitted: held-out accuracy {report.held_out_accuracy:.1%}")
        record.write(
            run.random_play_steps,
            {
                "r_network_accuracy": report.held_out_accuracy,
                "r_network_training_accuracy": report.accuracy,
                "r_network_loss": report.loss,
            },
        )
    learner.collector.reset()
    record.checkpoint(0, learner.state_dict() | {"number": 0, "metrics": {}})
    learner.save(record.folder)  # so that an unfinished run can be evaluated and watched
    return 0, {}


def _update(learner: Learner, number: int, record: Record) -> dict[str, float]:
    """Collects a rollout and learns from it."""
    try:
        rollout = learner.collector.collect()
        # PPO first: in `learn`, ECO refits its R-network and clears the memories.
        return learner.ppo.update(rollout, number) | learner.bonus.learn(rollout)
    except FloatingPointError as error:
        raise FloatingPointError(
            f"{error}; the last good checkpoint is {record.last_checkpoint}"
        ) from None
