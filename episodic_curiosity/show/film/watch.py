"""Films a run's agent, or an untrained agent on a task."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from episodic_curiosity.support.importing import import_object
from episodic_curiosity.worlds.base import World
from episodic_curiosity.worlds.registry import find_family, make_world
from episodic_curiosity.worlds.scenery import Scenery, show_views

try:
    import PIL  # noqa: F401, needed for every film
except ImportError as missing:
    raise ImportError("films need Pillow: pip install 'episodic-curiosity[film]'") from missing

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.nothing import NoBonus
from episodic_curiosity.runs import presets
from episodic_curiosity.runs.build import load_bonus
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.evaluate import Play
from episodic_curiosity.runs.learner import make_agent
from episodic_curiosity.runs.stored_run import read_run
from episodic_curiosity.show.film.config import FilmConfig
from episodic_curiosity.show.film.episode import Filmed
from episodic_curiosity.show.film.film import check_film, write_film
from episodic_curiosity.show.film.frames import Storyboard
from episodic_curiosity.support.machine import find_device
from episodic_curiosity.support.progress import Progress
from episodic_curiosity.support.shared import find_folder


@dataclass(frozen=True)
class Film:
    """A written film and its episodes."""

    path: Path
    story: Storyboard
    seconds: float

    def report(self) -> str:
        """Lines to print."""
        height, width, _ = self.story[0].picture.shape
        size = self.path.stat().st_size / 1000
        lines = [
            f"{self.path}: {width} x {height}, {len(self.story)} frames, "
            f"{self.seconds:.1f} s, {size:,.0f} KB"
        ]
        for number, episode in enumerate(self.story.episodes, 1):
            first = "" if episode.has_ended else "the first "
            line = f"episode {number}: {first}{episode.num_steps} steps"
            line += f", reward {episode.reward[-1]:g}"
            if episode.coverage:
                line += f", coverage {episode.coverage[-1]}"
            lines.append(line)
        return "\n".join(lines)


def watch_run(
    folder: str | Path,
    out: Path,
    config: FilmConfig,
    *,
    trust: bool = False,
    progress: bool = False,
) -> Film:
    """Films the agent of a run's folder: the first episodes that `evaluate_run` would count.

    The folder may be a name, as `load_agent` accepts it.
    A run whose config names a module or a path is refused unless `trust` is set. With
    `progress`, a terminal shows a bar.
    """
    check_film(out)
    folder = find_folder(folder, "agent")
    run = replace(read_run(folder, trust=trust), device=config.device)
    agent = Agent.load(folder, find_device(run.device))
    with _opened(run, config) as scenery:
        bonus = load_bonus(run, scenery.world, folder)
        title = (run.task, run.method)
        return film(title, agent, bonus, scenery, out, config, progress=progress)


def watch_untrained(
    task: str, out: Path, config: FilmConfig, *, progress: bool = False
) -> Film:
    """Films an untrained agent, which acts at random."""
    check_film(out)
    run = presets.resolve(task, "ppo", "cpu", presets.PRESETS["cpu"].steps, config.seed)
    run = replace(run, device=config.device)
    with _opened(run, config) as scenery:
        agent = make_agent(run, scenery.world.spec)
        bonus = NoBonus(1, None, find_device(run.device))
        return film((task, "untrained"), agent, bonus, scenery, out, config, progress=progress)


def _opened(run: Run, config: FilmConfig) -> contextlib.AbstractContextManager[Scenery]:
    options = run.world.options(config.split)
    options.pop("stagger", None)  # complete episodes are needed on any split
    options |= {"seed": config.seed, "device": find_device(run.device), "split": config.split}
    return open_scenery(run.task, config.height, **options)


def film(
    title: tuple[str, str],
    agent: Agent,
    bonus: Bonus,
    scenery: Scenery,
    out: Path,
    config: FilmConfig,
    *,
    progress: bool = False,
) -> Film:
    """Plays and films an agent in a world with cameras."""
    spec = scenery.world.spec
    num_steps = config.steps or spec.episode_steps
    filmed = Filmed(
        scenery.world,
        bonus,
        list(scenery.cameras.values()),
        num_episodes=config.episodes,
        num_steps=num_steps,
        num_shots=config.frames,
    )
    play = Play(
        agent, filmed, deterministic=config.deterministic, seed=config.seed, bonus=bonus
    )
    done = 0
    with Progress(config.episodes * num_steps, is_shown=progress) as display:
        while not filmed.is_over:
            play.finish(torch.tensor([filmed.is_final], device=spec.device))
            play.step()
            done += 1
            display.update(done, {})
    story = Storyboard(
        title=title,
        episodes=filmed.episodes,
        captions=tuple(scenery.cameras),
        fps=config.fps,
        height=config.height,
        map_cell=spec.oracle_cell if spec.has_position and not scenery.has_map else None,
        has_bonus=bonus.pays,
    )
    return Film(out, story, write_film(out, story, config.colours))


@contextlib.contextmanager
def open_scenery(task: str, height: int, **options: Any) -> Iterator[Scenery]:
    """Makes one environment with cameras; pictures have that height if the world can.

    `options` are those of make_world. Closes the worlds that the cameras needed, too.
    """
    with contextlib.ExitStack() as opened:

        def make(**changes: Any) -> World:
            world = make_world(task, num_envs=1, **options | changes)
            opened.callback(world.close)
            return world

        scenery = find_family(task).scenery
        yield import_object(scenery)(make, height) if scenery else show_views(make())
