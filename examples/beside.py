"""The demo's page, which compares curious with plain agents in mazes without reward."""

import os
from collections.abc import Sequence

import numpy as np

from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.runs.command import evaluate_command, train_command
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.show.report import page
from episodic_curiosity.show.report.chart import Axis, Line, Points, line_chart
from episodic_curiosity.show.report.figures import thinned
from examples.page_parts import beside, card, film, picture, scale
from examples.trained import Trained, mean_coverage
from examples.walks import COST, PAID, SMOOTH, Maps, Walk, mean_covered, path_colours

PLAIN, CURIOUS = 1, 2  # colours of the page
BARS = {PLAIN: (70, 134, 208), CURIOUS: (226, 104, 48)}  # the same in the film
FILM_WIDTH = 620  # pixels on a large screen
NUM_POINTS = 60  # of a line within an episode
NUM_LEARNING = 14  # points of a learning curve: each is the mean of about one episode of each
SHARE = Axis("right", ".0%", shows=(0.5, 1.0))
HOW_FITTED = {
    "ppo+ec": "It was fitted before, to random steps in other mazes of this kind, and is "
    "shipped with the package; those steps are not counted here.",
    "ppo+eco": "It is fitted while the agent plays, to the agent's own steps; before the "
    "first fit the bonus is zero.",
}


def beside_page(
    plain: Sequence[Trained],
    curious: Sequence[Trained],
    *,
    command: str,
    episodes: int,
    after: Sequence[str] = (),
) -> str:
    """Returns the page, from the folders of runs that differ only in method and seed.

    The sections `after` are those of the shipped agents.
    """
    everyone = [*plain, *curious]
    return page.page(
        _title(plain, curious),
        _lead(everyone[0]),
        [
            page.row(_tiles(plain, curious), "numbers"),
            *_film(plain[0], curious[0]),
            _unseen(everyone),
            _about(curious[0]),
            _learning(everyone, curious),
            *_from_above(plain[0], curious[0]),
            *after,
            _measured(everyone),
            _commands(everyone, command, episodes),
        ],
    )


def _title(plain: Sequence[Trained], curious: Sequence[Trained]) -> str:
    ratio = mean_coverage(curious) / mean_coverage(plain)
    return (
        f"In mazes without reward, a curious agent covers {ratio:.1f} times as much floor as "
        "plain PPO"
    )


def _lead(one: Trained) -> str:
    return (
        f"Both learnt from pictures, for {one.steps:,} steps, and play here in mazes that they "
        "have never seen. Only the curious agent gets a bonus, for views that are far from "
        "everything it remembers."
    )


def _tiles(plain: Sequence[Trained], curious: Sequence[Trained]) -> list[str]:
    ratio = mean_coverage(curious) / mean_coverage(plain)
    better = sum(_num_better(one, other) for one, other in zip(plain, curious, strict=True))
    total = sum(one.coverage.num_values for one in plain)
    note = f"and more cells in {better} of {total} episodes on the same levels"
    return [
        _tile(plain),
        _tile(curious),
        page.number(f"{ratio:.2f} times", "The curious agent covers, on average,", note),
    ]


def _num_better(plain: Trained, curious: Trained) -> int:
    """The number of test episodes in which the curious agent covers more cells."""
    ours, theirs = (each.evaluation.coverage for each in (curious, plain))
    assert ours is not None
    assert theirs is not None
    return int((ours > theirs).sum())


def _tile(group: Sequence[Trained]) -> str:
    short = group[0].coverage
    note = f"95 % interval {short.low:.1f} to {short.high:.1f}, {short.num_values} episodes"
    if len(group) > 1:
        note = f"mean of {len(group)} seeds: " + ", ".join(
            f"{each.coverage.mean:.1f}" for each in group
        )
    name = f"Cells covered, {_name(group[0])}"
    return page.number(f"{mean_coverage(group):.1f}", name, note, _colour(group[0]))


def middle_level(plain: Sequence[Walk], curious: Sequence[Walk]) -> int:
    """The level with the median difference in cells; of an even number, the lower of two."""
    differences = [
        ours.coverage - theirs.coverage for ours, theirs in zip(curious, plain, strict=True)
    ]
    return int(np.argsort(differences, kind="stable")[(len(differences) - 1) // 2])


def _film(plain: Trained, curious: Trained) -> list[str]:
    """The film of both agents; none without Pillow."""
    try:
        from examples.pair_film import Side, pair_film
    except ImportError:
        return []
    pair, level = (plain, curious), middle_level(plain.walks, curious.walks)
    sides = [
        Side(each.run, each.walks[level], _path(each, level), BARS[_colour(each)])
        for each in pair
    ]
    captions = [
        (f"{name}: {each.walks[level].coverage} cells", _colour(each))
        for name, each in zip(("plain PPO", "curious"), pair, strict=True)
    ]
    steps = sides[0].walk.num_steps
    return [
        page.section(
            "Both agents in one unseen maze",
            beside(
                film(pair_film(sides, level), FILM_WIDTH, captions),
                page.paragraph(
                    f"One complete episode of {steps:,} steps as a time lapse, from the same "
                    f"start. Of the levels drawn below it is number {level + 1}, where the "
                    "difference between both agents is the median. Above: the agent's view. "
                    "Below: its path on the map, which neither agent has."
                )
                + page.paragraph("The colour of the curious agent's path is its bonus:")
                + scale(COST, PAID, "costs", "pays")
                + page.paragraph(
                    f"It is the mean over {SMOOTH} steps. Places far from memory pay; known "
                    "ones cost a little. In the first steps of an episode, memory holds only "
                    "views from close by, so little is paid."
                )
                + page.paragraph(
                    "Plain PPO gets no reward, so it has nothing to learn from: its policy "
                    "only drifts. The red dot is the goal, which pays nothing in this task. An "
                    "agent that touches it is moved to another place."
                ),
            ),
        )
    ]


def _unseen(everyone: Sequence[Trained]) -> str:
    within = [
        Line(_name(each), _colour(each), _every(mean_covered(each.walks))) for each in everyone
    ]
    ordered = [Line(_name(each), _colour(each), _sorted(each)) for each in everyone]
    num_walks, num_episodes = len(everyone[0].walks), everyone[0].coverage.num_values
    charts = [
        line_chart(
            "Cells covered so far in an episode",
            Axis("steps of the episode", shows=(0,)),
            Axis("cells", shows=(0,)),
            within,
            f"mean of the first {num_walks} test levels",
        ),
        line_chart(
            "Cells covered in each test episode",
            Axis("episodes, from worst to best", shows=(1,)),
            Axis("cells", shows=(0,)),
            ordered,
            f"{num_episodes} episodes of each agent, on the same levels",
        ),
    ]
    return page.section("On unseen levels", page.row(charts, "cards"))


def _every(covered: np.ndarray) -> Points:
    steps = np.linspace(0, len(covered) - 1, min(NUM_POINTS, len(covered))).round().astype(int)
    return tuple((float(step), float(covered[step])) for step in steps)


def _sorted(each: Trained) -> Points:
    assert each.evaluation.coverage is not None
    ordered = np.sort(each.evaluation.coverage)
    return tuple((float(rank), float(cells)) for rank, cells in enumerate(ordered, 1))


def _about(curious: Trained) -> str:
    run, length = curious.run, curious.evaluation.summary()["length"].mean
    actions = ", ".join(curious.evaluation.action_shares)
    return page.section(
        "How it works",
        page.paragraph(
            "Both agents see the maze in first person, as small pictures, and both learn with "
            "PPO, a common method of reinforcement learning: it makes rewarded actions more "
            f"likely. Their actions are the paper's: {actions}."
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
            f"enters in its {length:,.0f} steps. Neither agent knows its position."
        ),
    )


def _learning(everyone: Sequence[Trained], curious: Sequence[Trained]) -> str:
    steps = Axis("steps", shows=(0, max(each.steps for each in everyone)))
    charts = [
        ("Cells covered in an episode", "coverage", Axis("cells", shows=(0,)), everyone),
        ("Bonus of a step", "bonus_mean", Axis("of bonus", shows=(0,)), curious),
    ]
    tested = ""
    if curious[0].run.method == "ppo+eco":  # that of EC stays what it is
        title = "Held-out accuracy of the R-network"
        charts.append((title, "r_network_accuracy", SHARE, curious))
        tested = (
            " The R-network is tested on held-out pairs of pictures, half of them near and "
            "half far: chance is 50 %."
        )
    drawn = [
        line_chart(title, steps, axis, lines)
        for title, metric, axis, group in charts
        if (lines := _lines(group, metric))
    ]
    return page.section(
        "Learning",
        page.row(drawn, "cards"),
        page.paragraph(
            "Each point is the mean over an interval of training, on the training levels. The "
            "bonus of a step rises while the agent learns to find new places."
            f"{tested}"
        ),
    )


def _lines(group: Sequence[Trained], metric: str) -> list[Line]:
    """One line per run with the metric; a short run may have completed no episode."""
    curves = [
        (each, thinned(read_metrics(each.folder), metric, NUM_LEARNING)) for each in group
    ]
    return [Line(_name(each), _colour(each), points) for each, points in curves if points]


def _from_above(plain: Trained, curious: Trained) -> list[str]:
    """Both agents on the first levels, from the same starts."""
    num_levels = min(len(plain.walks), len(curious.walks))
    maps = Maps(plain.run, num_levels)
    cards, memories = [], []
    for level in range(num_levels):
        ways = [_way(each, maps, level) for each in (plain, curious)]
        cards.append(card(f"Level {level + 1}", page.row(ways, "pictures")))
        one = curious.walks[level]
        caption = f"Level {level + 1}: {len(one.remembered)} of {len(one.places)} views"
        memories.append(picture(maps.picture(level, memory=one.remembered), caption))
    return [
        page.section(
            "From above",
            page.paragraph(
                f"The first {num_levels} test levels, which neither agent has trained on. Both "
                "start at the black arrow. Rooms are grey, corridors orange, walls dark green. "
                "The curious agent's path has the colours of its bonus, as in the film."
            ),
            scale(COST, PAID, "costs", "pays"),
            page.row(cards, "cards"),
        ),
        page.section(
            "Remembered positions",
            page.paragraph(
                "A white ring marks each position on the curious agent's path at which a "
                f"picture was added to its memory. {_forgetting(curious)}"
            ),
            card("The curious agent's memory", page.row(memories, "pictures")),
        ),
    ]


def _forgetting(curious: Trained) -> str:
    bonus = curious.run.bonus
    assert isinstance(bonus, EpisodicConfig)
    gives_way = {"random": "a random one", "fifo": "the oldest"}[bonus.replacement]
    return f"It holds {bonus.memory_capacity}: when it is full, {gives_way} is forgotten."


def _way(who: Trained, maps: Maps, level: int) -> str:
    one = who.walks[level]
    caption = f"{_name(who)}: {one.coverage} cells"
    return picture(maps.path(level, one, _path(who, level)), caption, _colour(who))


def _path(who: Trained, level: int) -> np.ndarray:
    one: Walk = who.walks[level]
    return path_colours(one, is_curious=who.run.bonus is not None)


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
