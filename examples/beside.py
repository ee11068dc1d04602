"""The page of the demo: curious agents beside plain ones, in mazes that pay nothing."""

import os
from collections.abc import Sequence

from episodic_curiosity.runs.command import evaluate_command, train_command
from episodic_curiosity.runs.config import Run
from episodic_curiosity.show.report import page
from episodic_curiosity.show.report.chart import Axis, Line, line_chart
from episodic_curiosity.show.report.curves import curve
from episodic_curiosity.worlds.maze.config import MazeConfig
from examples.trained import Trained, mean_coverage
from examples.walks import Walk, walk

PLAIN, CURIOUS = 1, 2  # colours of the page
NUM_LEVELS_SHOWN = 4
SHARE = Axis("right", ".0%", shows=(0.5, 1.0))
HOW_FITTED = {
    "ppo+ec": "It has learnt this before the run, from random steps, which are counted here as "
    "the agent's own.",
    "ppo+eco": "It learns this while the agent plays, from the agent's own steps; before its "
    "first lesson nothing is paid.",
}


def beside_page(
    plain: Sequence[Trained], curious: Sequence[Trained], *, command: str, episodes: int
) -> str:
    """The whole page, from the folders of runs that differ in the method and the seed alone."""
    everyone = [*plain, *curious]
    ratio = mean_coverage(curious) / mean_coverage(plain)
    tiles = [
        _tile(plain),
        _tile(curious),
        page.number(f"{ratio:.2f} times", "The curious agent visits", "as many, on average"),
    ]
    return page.page(
        "Curiosity in a maze that pays nothing",
        "Two agents learn to walk through mazes by what they see. One of them pays itself "
        "whenever it sees something that is far from all it remembers.",
        [
            page.row(tiles, "numbers"),
            _about(curious[0].run),
            page.section("Learning", *_learning(everyone, curious)),
            *_from_above(plain[0], curious[0]),
            _measured(everyone),
            _commands(everyone, command, episodes),
        ],
    )


def _tile(group: Sequence[Trained]) -> str:
    short = group[0].coverage
    note = f"95 % interval {short.low:.1f} to {short.high:.1f}, {short.num_values} episodes"
    if len(group) > 1:
        note = f"mean of {len(group)} seeds: " + ", ".join(
            f"{each.coverage.mean:.1f}" for each in group
        )
    name = f"Squares visited, {_name(group[0])}"
    return page.number(f"{mean_coverage(group):.1f}", name, note, _colour(group[0]))


def _about(run: Run) -> str:
    assert isinstance(run.world, MazeConfig)
    return page.section(
        "What you are looking at",
        page.paragraph(
            "Both agents see the maze through their own eyes, as small pictures, and both "
            "learn with PPO, a common method of reinforcement learning: it does more often "
            "what was paid for. The maze pays nothing, so plain PPO has nothing to learn from."
        ),
        page.paragraph(
            "The curious agent has an episodic memory, empty at the start of each episode, and "
            "a second network, the R-network, which judges from two pictures whether one is "
            f"only a few steps away from the other. {HOW_FITTED[run.method]} A picture that "
            "seems far from everything in memory earns a bonus and is put into memory; a "
            "familiar one costs a little. To be paid again, the agent has to move on."
        ),
        page.paragraph(
            "What is counted is coverage: the floor is divided into squares of 30 units, a "
            "corridor being 100 wide, and an episode is worth as many different squares as it "
            f"enters in its {run.world.episode_steps} steps. Neither agent knows where it is."
        ),
    )


def _learning(everyone: Sequence[Trained], curious: Sequence[Trained]) -> list[str]:
    steps = Axis("steps", shows=(0, max(each.steps for each in everyone)))
    charts = [
        ("Squares visited in an episode", "coverage", Axis("squares", shows=(0,)), everyone),
        ("Bonus earned in an episode", "bonus", Axis("of bonus", shows=(0,)), curious),
        ("Pairs the R-network judges right", "r_network_accuracy", SHARE, curious),
    ]
    drawn = [
        line_chart(title, steps, axis, lines)
        for title, metric, axis, group in charts
        if (lines := _lines(group, metric))
    ]
    return [
        page.row(drawn, "charts"),
        page.paragraph(
            "Each point is the mean over a stretch of training, on the training levels. The "
            "R-network is examined on pairs of pictures that it was not taught with, half of "
            "them near and half far: guessing gets 50 % right."
        ),
    ]


def _lines(group: Sequence[Trained], metric: str) -> list[Line]:
    """A line for each run that recorded the metric: a short one may have ended no episode."""
    curves = [(each, curve(each.folder, metric)) for each in group]
    return [Line(_name(each), _colour(each), points) for each, points in curves if points]


def _from_above(plain: Trained, curious: Trained) -> list[str]:
    """The same levels from the same starts; the first ones, not the prettiest."""
    num_envs = min(plain.run.world.num_envs, plain.coverage.num_values)
    plain_walks, curious_walks = (
        walk(each.folder, num_envs)[:NUM_LEVELS_SHOWN] for each in (plain, curious)
    )
    cards = [
        page.card(
            f"Level {number}",
            page.row([_way(plain, one), _way(curious, other)], "pictures"),
        )
        for number, (one, other) in enumerate(zip(plain_walks, curious_walks, strict=True), 1)
    ]
    memories = [
        page.picture(
            one.picture(memory=one.remembered),
            f"Level {number}: {len(one.remembered)} of {len(one.places)} views remembered",
        )
        for number, one in enumerate(curious_walks, 1)
    ]
    return [
        page.section(
            "From above",
            page.paragraph(
                f"The first {len(cards)} of the levels that neither agent has trained on. Both "
                "begin at the black arrow; their way turns from blue to yellow with time. "
                "Rooms are grey, corridors orange, walls dark green. The red dot is a goal "
                "that pays nothing here; whoever touches it is put somewhere else in the same "
                "maze, so that a way can leap."
            ),
            page.row(cards, "cards"),
        ),
        page.section(
            "Where memory was filled",
            page.paragraph(
                "A white ring marks each place on the curious agent's way at which its memory "
                "took a picture in."
            ),
            page.card("The curious agent's memory", page.row(memories, "pictures")),
        ),
    ]


def _way(who: Trained, one: Walk) -> str:
    caption = f"{_name(who)}: {one.coverage} squares"
    return page.picture(one.picture(trajectory=one.places), caption, _colour(who))


def _measured(everyone: Sequence[Trained]) -> str:
    rows = []
    for each in everyone:
        short = each.coverage
        deviation = "-" if short.deviation is None else f"{short.deviation:.1f}"
        interval = f"{short.low:.1f} to {short.high:.1f}"
        coverage = (f"{short.mean:.1f}", interval, deviation, str(short.num_values))
        cost = (f"{each.steps:,}", f"{each.minutes:.1f}")
        rows.append((_name(each), str(each.run.seed), *coverage, *cost))
    head = ("agent", "seed", "squares", "95 % interval", "deviation", "episodes", "steps")
    return page.section(
        "Measured",
        page.paragraph(
            "Squares visited in an episode, on levels that were never trained on. The interval "
            "is about the episodes of one trained agent; another seed trains another agent. "
            f"The minutes of training are those of a machine with {os.cpu_count()} cores."
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
        "The commands behind every number",
        page.paragraph("This page and all that it needs:"),
        page.commands(command),
        page.paragraph("The same agents one by one, trained and measured:"),
        *map(page.commands, each_alone),
    )


def _name(trained: Trained) -> str:
    return "plain PPO" if trained.run.bonus is None else f"curious ({trained.run.method})"


def _colour(trained: Trained) -> int:
    return PLAIN if trained.run.bonus is None else CURIOUS
