"""Odd command lines: any option of any command with any value.

What would train, evaluate, film or use other machines is left out: this is about what becomes
of the words. A mistake must end with exit code 2, a failure with 1, and no traceback.
"""

import contextlib
import io
import random
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from benchmarks.soak.judging import Verdicts
from benchmarks.soak.odd import odd_plain
from episodic_curiosity.bonus.registry import methods
from episodic_curiosity.cli.main import COMMANDS, main
from episodic_curiosity.runs.presets import PRESETS

# Imported by the commands when they are called.
LEFT_OUT = (
    "episodic_curiosity.runs.train.train",
    "episodic_curiosity.runs.fit.fit",
    "episodic_curiosity.runs.evaluate_folder.evaluate_run",
    "episodic_curiosity.runs.evaluate_folder.evaluate_r_network",
    "episodic_curiosity.show.film.watch.watch_run",
    "episodic_curiosity.show.film.watch.watch_untrained",
    "episodic_curiosity.experiments.runner.run_cells",
    "episodic_curiosity.experiments.side_by_side.run_side_by_side",
    "episodic_curiosity.experiments.on_ray.run_cells_on_ray",
)
SPEED = "episodic_curiosity.cli.doctor._bonus_per_second"  # for `doctor`
CODES = (None, 0, 1, 2, 3, 4, 130)
TASKS = ("maze/sparse", "gym/CartPole-v1", "ant/no-reward", "vizdoom/dense", "dmlab/sparse")
FOLDERS = ("run", "results", "nowhere", ".", "/dev/null", "file.json", "a/b/c")
OPTIONS = {
    "train": (
        "task", "method", "preset", "steps", "seed", "out", "resume", "trust", "device",
        "accept-changes", "r-network", "r-network-from", "r-network-tasks", "normalise-bonus",
        "world.num-envs", "world.maze-size", "world.rooms", "world.observation-size",
        "world.vectorization", "world.episode-steps", "world.stagger", "world.layout",
        "ppo.num-steps", "ppo.num-minibatches", "ppo.learning-rate", "ppo.discount",
        "bonus.alpha", "bonus.beta", "bonus.aggregate", "bonus.memory-capacity",
        "r-network.embedding-size", "r-network.online.refit-every",
        "r-network.online.fit.iterations", "r-network.random-play.steps",
        "record.checkpoint-every", "record.metrics-every", "help",
    ),
    "fit": ("task", "tasks", "out", "preset", "steps", "seed", "device", "r-network",
            "world.num-envs", "r-network.embedding-size"),
    "evaluate": ("task", "episodes", "deterministic", "split", "device", "trust"),
    "table": ("seeds", "seed", "preset", "steps", "episodes", "cell", "dry-run", "list", "out",
              "runs", "budget", "ray", "ray-cpus", "device", "side-by-side", "world", "worlds"),
    "report": ("out", "markdown"),
    "watch": ("out", "random", "task", "episodes", "seed", "fps", "trust", "size", "split"),
}  # fmt: skip


@contextlib.contextmanager
def harmless() -> Iterator[None]:
    """Leaves out what would take long."""
    with contextlib.ExitStack() as stack:
        for name in LEFT_OUT:
            found = mock.MagicMock()
            found.report.return_value = "a report"
            found.__bool__.return_value = False
            stack.enter_context(mock.patch(name, return_value=found))
        stack.enter_context(mock.patch(SPEED, return_value=1.0))
        yield


def fuzz_commands(draw: random.Random, verdicts: Verdicts) -> None:
    """One command line, in the current folder."""
    words, codes = _words(draw), []
    what = f"curiosity {' '.join(words)!r:.200}"
    if verdicts.judge(what, lambda: codes.append(_call(words))) and codes[0]:
        verdicts.accepted -= 1
        verdicts.refused += 1


def _call(words: list[str]) -> object:
    """Returns the exit code; raises where it does not end as a command should."""
    out, err, code = io.StringIO(), io.StringIO(), None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(words)
    except SystemExit as end:
        code = end.code
    if code not in CODES:
        raise AssertionError(f"exit code {code}")
    if "Traceback" in err.getvalue():
        raise AssertionError("a traceback was printed")
    return code


def _words(draw: random.Random) -> list[str]:
    command = draw.choice([*COMMANDS, "train", "train", "table", "fit", str(odd_plain(draw))])
    words = [command]
    if command == "table" and draw.random() < 0.8:
        words.append(draw.choice(["table1", "table2", "claims", "vizdoom", "x"]))
    if command in ("evaluate", "report", "watch") and draw.random() < 0.8:
        words.append(draw.choice(FOLDERS))
    if command == "train" and draw.random() < 0.8:
        words += ["--task", draw.choice(TASKS)]
    names = OPTIONS.get(command, ("help", "out"))
    for _ in range(draw.randrange(4)):
        words.append("--" + draw.choice(names) + draw.choice(["", "", "", "", "x"]))
        words += [_value(draw) for _ in range(draw.choice([0, 1, 1, 1, 1, 2]))]
    return [word.replace("\0", "") for word in words]  # no argument can have one


def _value(draw: random.Random) -> str:
    return draw.choice(
        [
            lambda: str(odd_plain(draw)),
            lambda: str(odd_plain(draw)),
            lambda: draw.choice(TASKS) + draw.choice(["", "+noise", "+", "/"]),
            lambda: draw.choice(list(methods())),
            lambda: draw.choice(list(PRESETS)),
            lambda: draw.choice(FOLDERS),
            lambda: str(draw.choice([1, 7, 64, 1000, 100_000])),
            lambda: draw.choice(["cpu", "auto", "test", "small", "None", "true", "--"]),
        ]
    )()


def prepare(folder: Path) -> None:
    """A file and folders that command lines name."""
    (folder / "results").mkdir()
    (folder / "run").mkdir()
    (folder / "file.json").write_text("{}")
