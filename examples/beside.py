"""The demo's page, which compares curious with plain agents in mazes without reward."""

import os
from collections.abc import Sequence

from episodic_curiosity.runs.command import evaluate_command, train_command
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.show.report import page
from episodic_curiosity.show.report.chart import Axis, Line, line_chart
from episodic_curiosity.show.report.figures import thinned
from episodic_curiosity.worlds.maze.family import MazeConfig
from examples.page_parts import card, picture
from examples.trained import Trained, mean_coverage
from examples.walks import Walk, walk

TITLE = "Curiosity in a maze without reward"
LEAD = (
    "Agents learn to explore mazes from pictures. The curious ones get a bonus whenever they "
    "see something that is far from everything they remember."
)
PLAIN, CURIOUS = 1, 2  # colours of the page
NUM_LEVELS_SHOWN = 4
SHARE = Axis("right", ".0%", shows=(0.5, 1.0))
HOW_FITTED = {
    "ppo+ec": "It was fitted before the run, to random steps, which count as steps of the "
    "agent here.",
    "ppo+eco": "It is fitted while the agent plays, to the agent's own steps; before the "
    "first fit the bonus is zero.",
}


def beside_page(
    plain: Sequence[Trained],
    curious: Sequence[Trained],
    *,
    command: str,
    episodes: int,
    before: Sequence[str] = (),
) -> str:
    """Returns the page, from the folders of runs that differ only in method and seed.

    The sections `before` are those of the shipped agents.
    """
    everyone = [*plain, *curious]
    ratio = mean_coverage(curious) / mean_coverage(plain)
    tiles = [
        _tile(plain),
        _tile(curious),
        page.number(f"{ratio:.2f} times", "The curious agent covers", "as many, on average"),
    ]
    return page.page(
        TITLE,
        LEAD,
        [
            *before,
            page.section("Trained just now", page.row(tiles, "numbers")),
            _about(curious[0].run),
            page.section("Learning", *_learning(everyone, curious)),
            *_from_above(plain[0], curious[0]),
            _measured(everyone),
            _commands(everyone, command, episodes),
        ],
    )


def first_page(before: Sequence[str]) -> str:
    """Returns the page while the pair is being trained."""
    later = page.paragraph("Two small agents are being trained; this page will show them.")
    return page.page(TITLE, LEAD, [*before, page.section("Trained just now", later)])


def _tile(group: Sequence[Trained]) -> str:
    short = group[0].coverage
    note = f"95 % interval {short.low:.1f} to {short.high:.1f}, {short.num_values} episodes"
    if len(group) > 1:
        note = f"mean of {len(group)} seeds: " + ", ".join(
            f"{each.coverage.mean:.1f}" for each in group
        )
    name = f"Cells covered, {_name(group[0])}"
    return page.number(f"{mean_coverage(group):.1f}", name, note, _colour(group[0]))


def _about(run: Run) -> str:
    assert isinstance(run.world, MazeConfig)
    return page.section(
        "What you are looking at",
        page.paragraph(
            "Both agents see the maze in first person, as small pictures, and both learn with "
            "PPO, a common method of reinforcement learning: it makes rewarded actions more "
            "likely. The maze gives no reward, so plain PPO has nothing to learn from."
        ),
        page.paragraph(
            "The curious agent has an episodic memory, empty at the start of each episode, and "
            "a second network, the R-network, which predicts from two pictures whether one is "
            f"only a few steps away from the other. {HOW_FITTED[run.method]} A picture that "
            "is far from everything in memory earns a bonus and is added to memory; a "
            "familiar one costs a little. To earn more, the agent has to explore."
        ),
        page.paragraph(
            "The measure is coverage: the floor is divided into cells of 30 units (a corridor "
            "is 100 wide), and the coverage of an episode is the number of different cells it "
            f"enters in its {run.world.episode_steps} steps. Neither agent knows its position."
        ),
    )


def _learning(everyone: Sequence[Trained], curious: Sequence[Trained]) -> list[str]:
    steps = Axis("steps", shows=(0, max(each.steps for each in everyone)))
    charts = [
        ("Cells covered in an episode", "coverage", Axis("cells", shows=(0,)), everyone),
        ("Bonus earned in an episode", "bonus", Axis("of bonus", shows=(0,)), curious),
        ("Held-out accuracy of the R-network", "r_network_accuracy", SHARE, curious),
    ]
    drawn = [
        line_chart(title, steps, axis, lines)
        for title, metric, axis, group in charts
        if (lines := _lines(group, metric))
    ]
    return [
        page.row(drawn, "charts"),
        page.paragraph(
            "Each point is the mean over an interval of training, on the training levels. The "
            "R-network is tested on held-out pairs of pictures, half of them near and half "
            "far: chance is 50 %."
        ),
    ]


def _lines(group: Sequence[Trained], metric: str) -> list[Line]:
    """One line per run with the metric; a short run may have completed no episode."""
    curves = [(each, thinned(read_metrics(each.folder), metric)) for each in group]
    return [Line(_name(each), _colour(each), points) for each, points in curves if points]


def _from_above(plain: Trained, curious: Trained) -> list[str]:
    """Both agents on the first levels, from the same starts."""
    num_envs = min(plain.run.world.num_envs, plain.coverage.num_values)
    plain_walks, curious_walks = (
        walk(each.folder, num_envs)[:NUM_LEVELS_SHOWN] for each in (plain, curious)
    )
    cards = [
        card(f"Level {number}", page.row([_way(plain, one), _way(curious, other)], "pictures"))
        for number, (one, other) in enumerate(zip(plain_walks, curious_walks, strict=True), 1)
    ]
    memories = [
        picture(
            one.picture(memory=one.remembered),
            f"Level {number}: {len(one.remembered)} of {len(one.places)} views remembered",
        )
        for number, one in enumerate(curious_walks, 1)
    ]
    return [
        page.section(
            "From above",
            page.paragraph(
                f"The first {len(cards)} test levels, which neither agent has trained on. Both "
                "start at the black arrow; the path's colour goes from blue to yellow. "
                "Rooms are grey, corridors orange, walls dark green. The red dot is the goal, "
                "which pays nothing here. An agent that touches it is moved to another place "
                "in the same maze, so a path can jump."
            ),
            page.row(cards, "cards"),
        ),
        page.section(
            "Remembered positions",
            page.paragraph(
                "A white ring marks each position on the curious agent's path at which a "
                "picture was added to its memory."
            ),
            card("The curious agent's memory", page.row(memories, "pictures")),
        ),
    ]


def _way(who: Trained, one: Walk) -> str:
    caption = f"{_name(who)}: {one.coverage} cells"
    return picture(one.picture(trajectory=one.places), caption, _colour(who))


def _measured(everyone: Sequence[Trained]) -> str:
    rows = []
    for each in everyone:
        short = each.coverage
        deviation = "-" if short.deviation is None else f"{short.deviation:.1f}"
        interval = f"{short.low:.1f} to {short.high:.1f}"
        coverage = (f"{short.mean:.1f}", interval, deviation, str(short.num_values))
        cost = (f"{each.steps:,}", f"{each.minutes:.1f}")
        rows.append((_name(each), str(each.run.seed), *coverage, *cost))
    head = ("agent", "seed", "cells", "95 % interval", "deviation", "episodes", "steps")
    return page.section(
        "Measured",
        page.paragraph(
            "Cells covered in an episode, on unseen levels. The interval is over the episodes "
            "of one trained agent; another seed trains another agent. Training times are for "
            f"one thread each, side by side, on a machine with {os.cpu_count()} cores."
        ),
        page.table((*head, "minutes"), rows),
    )


def _commands(everyone: Sequence[Trained], command: str, episodes: int) -> str:
    each_alone = (
        f"{train_command(each.run, each.folder)}\n"
        f"{evaluate_command(each.run, each.folder, episodes)}"
        for each in everyone
    )
    return page.section(
        "Commands",
        page.paragraph("This page and its runs:"),
        page.commands(command),
        page.paragraph("Training and evaluation of each agent:"),
        *map(page.commands, each_alone),
    )


def _name(trained: Trained) -> str:
    return "plain PPO" if trained.run.bonus is None else f"curious ({trained.run.method})"


def _colour(trained: Trained) -> int:
    return PLAIN if trained.run.bonus is None else CURIOUS
