"""Pages of one file: charts, pictures, commands, and nothing from elsewhere."""

import dataclasses
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from episodic_curiosity.cli.train import read_train
from episodic_curiosity.runs.command import evaluate_command, train_command
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.record import Record
from episodic_curiosity.show.report import page
from episodic_curiosity.show.report.chart import Axis, Line, line_chart, nice_ticks
from episodic_curiosity.show.report.figures import thinned

STEPS, SQUARES = Axis("steps"), Axis("squares", shows=(0,))
LINES = (
    Line("plain", 1, ((1000, 10.0), (2000, 20.0), (3000, 15.0))),
    Line("curious", 2, ((1000, 12.0), (3000, 37.5))),
)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (12, 37.5, [10, 20, 30, 40]),
        (-1.52, 0, [-2, -1.5, -1, -0.5, 0]),
        (0.5, 1, [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
        (7, 7, [6.4, 6.6, 6.8, 7.0, 7.2, 7.4, 7.6]),
    ],
)
def test_ticks_are_round_and_span_all_values(low, high, ticks):
    assert nice_ticks(low, high) == ticks


def test_a_chart_draws_its_points_where_they_belong():
    svg = parsed(line_chart("Coverage", STEPS, SQUARES, LINES)).find("svg")
    left, right, top, bottom = 46, 360 - 18, 10, 230 - 40
    first, second = (places(line) for line in svg.iter("polyline"))
    # x from 1000 to 3000, y from 0 to 40.
    assert first[0] == pytest.approx((left, bottom - 10 / 40 * (bottom - top)), abs=0.1)
    assert first[1][0] == pytest.approx((left + right) / 2, abs=0.1)
    assert second[-1] == pytest.approx((right, bottom - 37.5 / 40 * (bottom - top)), abs=0.1)


def test_a_chart_tells_the_value_of_every_point_and_names_each_colour_once():
    chart = parsed(line_chart("Coverage", STEPS, SQUARES, (*LINES, LINES[0])))
    told = [title.text for title in chart.iter("title")]
    assert told[:2] == ["plain: 10 squares at 1,000 steps", "plain: 20 squares at 2,000 steps"]
    assert told[4] == "curious: 37.5 squares at 3,000 steps"
    assert [entry.find("i").tail for entry in chart.iter("span")] == ["plain", "curious"]


def test_a_chart_without_points_is_refused():
    with pytest.raises(ValueError, match="'Coverage' has no points"):
        line_chart("Coverage", STEPS, SQUARES, [Line("plain", 1, ())])


def test_a_curve_is_the_mean_of_neighbouring_lines(tmp_path):
    with Record(tmp_path, {}) as record:
        for steps, coverage in ((10, 1.0), (20, 3.0), (30, 5.0), (40, 8.0)):
            record.write(steps, {"coverage": coverage})
        record.write(50, {"loss": 0.1})  # no episode ended
        record.write(60, {"coverage": float("nan")})
    lines = read_metrics(tmp_path)
    assert thinned(lines, "coverage") == ((10, 1.0), (20, 3.0), (30, 5.0), (40, 8.0))
    assert thinned(lines, "coverage", num_points=2) == ((30, 3.0), (60, 8.0))
    assert thinned(lines, "bonus") == ()


@pytest.mark.parametrize("method", ["ppo", "ppo+ec", "ppo+eco"])
def test_the_command_of_a_run_asks_for_that_very_run(method):
    run = resolve("maze/no-reward", method, "cpu", 50_000, 3)
    world = dataclasses.replace(
        run.world, maze_size=9, observation_size=(36, 48), stagger=False, doors=True
    )
    ppo = dataclasses.replace(run.ppo, learning_rate=1e-5, num_epochs=2)
    run = dataclasses.replace(run, world=world, ppo=ppo, device="cpu")
    if method == "ppo+eco":
        online = dataclasses.replace(run.r_network.online, refit_every=9_000)
        run = dataclasses.replace(
            run,
            normalise_bonus=True,
            bonus=dataclasses.replace(run.bonus, aggregate="max"),
            r_network=dataclasses.replace(run.r_network, online=online, frozen_embedding=True),
        )
    folder = Path("runs/some where")
    words = shlex.split(train_command(run, folder).replace("\\\n", " "))
    assert words[:2] == ["curiosity", "train"]
    options = read_train(words[2:])
    assert options.run == run
    assert options.folder.out == folder


def test_the_command_of_a_usual_run_is_short():
    run = resolve("maze/sparse", "ppo+ec", "paper", 20_000_000, 0)
    assert train_command(run, Path("runs/x")) == (
        "curiosity train \\\n  --task maze/sparse \\\n  --method ppo+ec \\\n"
        "  --preset paper \\\n  --steps 20000000 \\\n  --seed 0 \\\n  --out runs/x"
    )
    evaluate = "curiosity evaluate runs/x --episodes 100"
    assert evaluate_command(run, Path("runs/x"), 100) == evaluate


def test_a_page_is_one_file_and_text_stays_text():
    content = page.page(
        "A < B",
        "lead & more",
        [
            page.section("1 < 2", page.paragraph("<script>alert(1)</script>")),
            page.row([page.number("3", "things", "of <four>", colour=1)], "numbers"),
            page.table(("a", "b"), [("x", "<b>")]),
            page.commands("a && b"),
        ],
    )
    assert "<script" not in content
    for text in ("A &lt; B", "1 &lt; 2", "of &lt;four&gt;", "<td>&lt;b&gt;", "a &amp;&amp; b"):
        assert text in content
    assert_nothing_from_elsewhere(content)


def assert_nothing_from_elsewhere(content: str) -> None:
    """Of all that makes a browser fetch something, there are only pictures in the page.

    A link within the page fetches nothing.
    """
    assert not re.search(r"https?:|//\w|@import|<link|<script|<iframe", without_data(content))
    sources = re.findall(r'(?:src|href)="([^"]{0,30})', content)
    kinds = (*(f"data:image/{kind};base64," for kind in ("png", "gif", "webp")), "#")
    assert all(source.startswith(kinds) for source in sources)
    assert "url(" not in content


def without_data(content: str) -> str:
    return re.sub(r"data:image/(png|gif|webp);base64,[^\"]*", "", content)


def parsed(figure: str) -> ElementTree.Element:
    return ElementTree.fromstring(figure)


def places(line: ElementTree.Element) -> list[tuple[float, ...]]:
    return [tuple(map(float, place.split(","))) for place in line.get("points").split()]
