"""The agents that the package ships, in mazes they have never seen, for the demo's page.

Shapes: T steps of the filmed part of an episode.
"""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from episodic_curiosity.runs.evaluate_folder import evaluate_run
from episodic_curiosity.runs.stored_run import read_run
from episodic_curiosity.show.film.config import FilmConfig
from episodic_curiosity.show.film.episode import Episode
from episodic_curiosity.show.report import page
from episodic_curiosity.support import shared
from episodic_curiosity.support.shared import read_card, shipped_names
from episodic_curiosity.support.statistics import Summary
from episodic_curiosity.worlds.base import Picture
from episodic_curiosity.worlds.maze.world import MazeWorld
from episodic_curiosity.worlds.registry import make_world
from examples.page_parts import card, picture

TASK = "maze/no-reward"
EPISODES = 4  # played of each agent, on as many unseen levels
FILM = FilmConfig(steps=600, frames=100, device="cpu")  # a third of an episode
PAID, COST = (226, 30, 136), (40, 90, 200)  # colours of a trail, where the bonus is + or -
PIXELS_PER_CELL = 24


class Shown(NamedTuple):
    """A shipped agent and what it did here."""

    name: str
    card: dict[str, Any]
    coverage: Summary  # of the episodes that were played here
    film: Path | None  # None: films need Pillow, which is not installed
    trail: Picture | None  # from above, coloured by the bonus; None: it has none

    @property
    def method(self) -> str:
        return str(self.card["method"])

    @property
    def on_the_card(self) -> Summary:
        """The coverage on the agent's card, of more episodes."""
        found = (score for score in self.card["scores"] if "summary" in score)
        measured = next(score["summary"] for score in found if score["task"] == TASK)
        return Summary(**measured["coverage"])


def folders_to_show() -> list[Path]:
    """The folders of the shipped agents of the task, plain PPO first."""
    folders = [shared.SHIPPED / name for name in shipped_names()]
    cards = {folder: read_card(folder) for folder in folders}
    fit = [
        folder
        for folder, found in cards.items()
        if found["task"] == TASK and "agent.safetensors" in found["files"]
    ]
    return sorted(fit, key=lambda folder: (cards[folder]["method"] != "ppo", folder))


def show(folder: Path, out: Path) -> Shown:
    """Plays a shipped agent on unseen levels, and films it on the first of them."""
    out.mkdir(parents=True, exist_ok=True)
    coverage = evaluate_run(folder, episodes=EPISODES, device="cpu").summary()["coverage"]
    film, trail = out / f"{folder.name}.gif", None
    try:
        from episodic_curiosity.show.film.watch import watch_run
    except ImportError:
        return Shown(folder.name, read_card(folder), coverage, None, None)
    story = watch_run(folder, film, FILM).story
    if story.has_bonus:
        trail = _trail(folder, story.episodes[0])
    return Shown(folder.name, read_card(folder), coverage, film, trail)


def shown_table(shown: Sequence[Shown]) -> str:
    """The coverage of the agents, one line each, for a terminal."""
    lines = [
        f"Shipped agents in unseen mazes: cells covered in an episode [95 % interval]\n"
        f"{'':24}{f'{EPISODES} episodes, here':>26}{'on the card':>26}"
    ]
    for each in shown:
        here, there = (
            f"{short.mean:.0f} [{short.low:.0f} .. {short.high:.0f}]"
            for short in (each.coverage, each.on_the_card)
        )
        lines.append(f"{each.name:24}{here:>26}{there:>26}")
    return "\n".join(lines)


def shipped_sections(shown: Sequence[Shown]) -> list[str]:
    """The sections of the demo's page about the shipped agents."""
    if not shown:
        return []
    films = [card(each.name, _film(each)) for each in shown if each.film is not None]
    trails = [
        card(f"{each.name}: its bonus", picture(each.trail, "Pink: paid. Blue: not paid"))
        for each in shown
        if each.trail is not None
    ]
    about = (
        "Agents that were trained before, in a maze that none of them has seen, from the same "
        f"place. The films have {FILM.steps} steps, in first person and from above."
    )
    if trails:
        about += (
            " The path of the film is pink where curiosity paid a bonus, and blue where it did "
            "not, because the view is reachable from memory."
        )
    return [
        page.section(
            "Shipped agents",
            page.paragraph(about),
            page.row([*films, *trails], "cards"),
            page.table(
                ("agent", "method", "steps of training", "cells, here", "cells, on the card"),
                [_row(each) for each in shown],
            ),
            page.paragraph(
                "Cells covered in an episode, with the 95 % interval of the mean, of "
                f"{EPISODES} episodes played just now and of those on the agent's card."
            ),
        )
    ]


def _row(each: Shown) -> tuple[str, ...]:
    cells = (
        f"{short.mean:.0f} ({short.low:.0f} to {short.high:.0f}), {short.num_values} episodes"
        for short in (each.coverage, each.on_the_card)
    )
    return each.name, each.method, f"{each.card['steps']:,}", *cells


def _film(each: Shown) -> str:
    assert each.film is not None
    data = base64.b64encode(each.film.read_bytes()).decode()
    caption = f"{each.method}: {each.coverage.mean:.0f} cells in an episode, on average"
    return (
        f'<figure><img src="data:image/gif;base64,{data}" alt="{escape(caption)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _trail(folder: Path, episode: Episode) -> Picture:
    """The level from above with the path of an episode, coloured by its bonus."""
    run = read_run(folder)
    options = run.world.options(FILM.split) | {"stagger": False}
    world = make_world(run.task, num_envs=1, seed=FILM.seed, split=FILM.split, **options)
    assert isinstance(world, MazeWorld)
    world.reset(FILM.seed)
    return world.overhead(
        pixels_per_cell=PIXELS_PER_CELL,
        trajectory=episode.path(len(episode.bonus) - 1),
        trail_colours=trail_colours(np.array(episode.bonus)),
    )


def trail_colours(bonus: np.ndarray) -> np.ndarray:
    """A colour (T, 3) per step: PAID where the bonus is above zero, else COST."""
    return np.where(bonus[:, None] > 0, np.array(PAID, float), np.array(COST, float))
