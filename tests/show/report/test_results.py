"""Results beside the published numbers: what is averaged, what is not, how it is written."""

import math
import os
from pathlib import Path

import pytest

from episodic_curiosity.cli.main import main
from episodic_curiosity.experiments.tables import EXPERIMENTS
from episodic_curiosity.show.report.comparison import baseline, improvement, normalised, overall
from episodic_curiosity.show.report.figures import mean_curve, thinned
from episodic_curiosity.show.report.grids import Regime, lay_out
from episodic_curiosity.show.report.markdown import markdown_table, results_markdown
from episodic_curiosity.show.report.page import Entry
from episodic_curiosity.show.report.results_page import results_page, table_command
from episodic_curiosity.show.report.tables import (
    Table,
    beside_table,
    numbers_table,
    overall_table,
)
from episodic_curiosity.support.statistics import interquartile_mean
from tests.show.report.fixture import STEPS, cell, grid_of, write, write_results
from tests.show.report.test_page import assert_nothing_from_elsewhere

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured") / "results"
    write_results(folder)
    return lay_out(folder)


def test_every_experiment_is_there_and_none_mixes_steps(layout):
    assert list(dict.fromkeys(grid.experiment.name for grid in layout.grids)) == list(
        EXPERIMENTS
    )
    table1 = [grid for grid in layout.grids if grid.experiment.name == "table1"]
    assert [grid.regime for grid in table1] == [Regime("gpu", STEPS), Regime("gpu", 1_000_000)]
    long, short = (cell(grid, "ppo", "maze/no-reward") for grid in table1)
    assert long.values == [260.0, 190.0, 200.0, 180.0, 210.0]
    assert short.values == [150.0]
    assert layout.problems == []


def test_presets_are_kept_apart(tmp_path):
    write(tmp_path, "table1", "ppo", "sparse", 10.0)
    write(tmp_path, "table1", "ppo", "sparse", 20.0, preset="cpu")
    values = {
        grid.regime: cell(grid, "ppo", "maze/sparse").values
        for grid in lay_out(tmp_path).grids
        if grid.measured and grid.experiment.name == "table1"
    }
    assert values == {Regime("gpu", STEPS): [10.0], Regime("cpu", STEPS): [20.0]}


def test_a_place_by_hand(layout):
    grid = grid_of(layout, "table1")
    ppo = cell(grid, "ppo", "maze/sparse")  # 36 22 24 20 26
    assert ppo.seeds == [0, 1, 2, 3, 4]
    assert ppo.summary.mean == 25.6
    # 10.4, -3.6, -1.6, -5.6 and 0.4, squared and over 4.
    assert ppo.summary.deviation == pytest.approx((155.2 / 4) ** 0.5)
    assert ppo.middle == 24.0
    assert ppo.published == (27.0, 5.1, 30, "Table 1")
    curious = cell(grid, "ppo+ec", "maze/sparse")  # 34 27 28 26 29
    # 34, 27, 28 and 29 beat all but 36; 26 beats 22, 24 and 20 and ties.
    assert improvement(grid, curious.row, "maze/sparse").value == pytest.approx(19.5 / 25)
    # The Grid Oracle: 53 49.5 50 49 50.5.
    assert normalised(grid, ppo) == pytest.approx([value / 50.4 for value in ppo.values])


def test_a_row_over_all_tasks(layout):
    grid = grid_of(layout, "table1")
    lines = {line.row.name: line for line in overall(grid)}
    assert [lines[name].num_tasks for name in ("ppo", "ppo+icm")] == [7, 6]
    assert lines["ppo"].improvement is None
    strata = [
        [value / (sum(oracle.values) / 5) for value in cell(grid, "ppo+ec", task).values]
        for task in grid.tasks
        for oracle in [cell(grid, "ppo+oracle", task)]
    ]
    assert lines["ppo+ec"].score == interquartile_mean(strata)
    assert [lines[name].num_compared for name in ("ppo", "ppo+icm", "ppo+ec")] == [0, 6, 7]
    head, rows, _ = overall_table(grid)
    column = head.index("tasks compared")
    assert [row[column] for row in rows[:3]] == ["-", "6 of 7", "7 of 7"]


def test_rows_borrowed_from_table_1_and_what_they_are_compared_with(layout):
    grid = grid_of(layout, "threshold")
    assert baseline(grid).name == "k = 5"
    assert cell(grid, "k = 5", "maze/no-reward").results[0].key.table == "table1"
    assert normalised(grid, cell(grid, "k = 2", "maze/no-reward")) == pytest.approx(
        [380 / 801.6, 400 / 801.6]  # the Grid Oracle of Table 1: 800 + 0.4 * 4
    )
    # Nothing of the memory's was measured but what it borrows: that is no measurement of it.
    assert grid_of(layout, "memory").measured == []


def test_what_the_table_says(layout):
    head, rows, _ = beside_table(grid_of(layout, "table1"))
    assert head[:2] == ["preset gpu, 20,000,000 steps", "sparse"]
    assert rows[0][0] == Entry("ppo", colour=1)
    assert rows[0][1] == Entry("25.6 ± 6.2", ["5 seeds", "paper 27.0 ± 5.1 (30)"])
    assert rows[1][7] == Entry("missing", ["paper 9.39 ± 0.02 (30)"], kind="missing")
    assert rows[3][4] == Entry("478 ± 31", ["5 seeds", "paper 472 ± 18 (30)"])

    _, rows, _ = beside_table(grid_of(layout, "table1", 1_000_000))
    assert rows[0][4] == Entry("150", ["1 seed", "paper 191 ± 12 (30)"])
    _, rows, _ = beside_table(grid_of(layout, "accuracy"))
    assert [row[1] for row in rows] == [
        Entry("92.0%", ["1 seed", "paper 93%"]),
        Entry("79.0%", ["1 seed", "paper 78%"]),
        Entry("93.0%", ["1 seed", "paper 93%"]),
    ]


def test_all_numbers_of_a_place(layout):
    head, rows, _ = numbers_table(grid_of(layout, "table1"))
    (line,) = (row for row in rows if row[:2] == ["sparse", "ppo+ec"])
    known = dict(zip(head, line, strict=True))
    assert known.pop("95 % interval") == "24.9 to 32.7"
    assert known.pop("P(better than ppo)").startswith("0.78 (")
    assert known == {
        "task": "sparse",
        "method": "ppo+ec",
        "preset": "gpu",
        "steps": "20,000,000",
        "seeds": Entry("5", []),
        "test episodes": "100",
        "mean": "28.8",
        "deviation": "3.1",
        "IQM": "28.0",
        "published": "26.2 ± 1.9 (30)",
        "measured / published": "1.10",
        "minutes per run": "33.3",
        "steps/s while training": "12,000",
        "steps/s overall": "10,000",
        "hardware": "a GPU",
    }
    _, rows, _ = numbers_table(grid_of(layout, "table1", 1_000_000))
    # One seed has no spread, no interval, and beats nothing for certain.
    assert rows[1][6:11] == ["90.0", "-", "-", "90.0", "-"]


def test_nothing_is_called_better_for_having_more_parameters(tmp_path):
    for row, value in (("ppo", 1.7e6), ("ppo+ec", 13e6)):
        write(tmp_path, "speed", row, "sparse", value)
    grid = grid_of(lay_out(tmp_path), "speed")
    assert overall_table(grid).rows == []
    assert numbers_table(grid).rows[1][10] == "-"
    assert "<rect" not in results_page(lay_out(tmp_path), tmp_path)


def test_the_mean_of_curves_is_where_all_of_them_have_a_point():
    curves = (((10, 1.0), (20, 3.0), (30, 5.0)), ((10, 2.0), (30, 9.0), (40, 1.0)))
    assert mean_curve(curves) == ((10, 1.5), (30, 7.0))
    assert mean_curve(()) == ()


def test_seeds_whose_first_episode_ends_at_different_points_have_a_mean():
    early, late = (
        [{"steps": 10 * number} for number in range(1, begin)]
        + [
            {"steps": 10 * number, "reward": level, "episodes": 2.0}
            for number in range(begin, 101)
        ]
        for begin, level in ((2, 1.0), (7, 3.0))
    )
    points = mean_curve([thinned(curve, "reward") for curve in (early, late)])
    # Three lines to a point: at 30, 60 ... 960, and four to 1,000; the late one begins at 70.
    assert [steps for steps, _ in points] == [*range(90, 990, 30), 1000]
    assert {mean for _, mean in points} == {2.0}


def test_a_point_weighs_every_episode_alike():
    lines = [
        {"steps": 1, "reward": 1.0, "episodes": 3.0, "r_network_accuracy": 0.5},
        {"steps": 2, "reward": 5.0, "episodes": 1.0, "r_network_accuracy": 0.9},
        {"steps": 3},
    ]
    assert thinned(lines, "reward", 1) == ((3.0, 2.0),)  # (3 * 1 + 5) / 4
    assert thinned(lines, "r_network_accuracy", 1) == ((3.0, pytest.approx(0.7)),)


@pytest.mark.parametrize(
    ("num_lines", "ends"), [(0, []), (1, [1]), (6, [3, 6]), (7, [3, 7]), (8, [3, 6, 8])]
)
def test_a_short_rest_joins_the_last_point(num_lines, ends):
    """By itself it would be the noise of a few episodes at the end of the line."""
    lines = [{"steps": number, "loss": 1.0} for number in range(1, num_lines + 1)]
    num_points = math.ceil(num_lines / 3) or 1  # so that each is of three lines
    assert [steps for steps, _ in thinned(lines, "loss", num_points)] == ends


def test_bad_folders(tmp_path, capsys):
    for folder, words in (
        (tmp_path / "no", "is no folder of results"),
        (tmp_path, "no results"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["report", str(folder), "--out", str(tmp_path / "report.html")])
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file_to_write_to(tmp_path, capsys):
    write(tmp_path / "results", "table1", "ppo", "sparse", 10.0)
    for option in ("--out", "--markdown"):
        with pytest.raises(SystemExit) as stopped:
            main(["report", str(tmp_path / "results"), option, str(tmp_path)])
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert error == f"curiosity: {tmp_path} is a folder; name a file in it\n"
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--out x.md", "--out is for an HTML page, got x.md"),
        ("--markdown x.html", "--markdown is for Markdown tables, got x.html"),
        (
            "--out x --markdown ./x",
            "--out and --markdown must be different files, got x for both",
        ),
    ],
)
def test_a_page_is_no_markdown(tmp_path, monkeypatch, capsys, line, words):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "results", "table1", "ppo", "sparse", 10.0)
    with pytest.raises(SystemExit) as stopped:
        main(["report", "results", *line.split()])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_what_is_no_file_is_not_replaced(tmp_path, capsys):
    write(tmp_path / "results", "table1", "ppo", "sparse", 10.0)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SystemExit) as stopped:
        main(["report", str(tmp_path / "results"), "--out", str(pipe)])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"curiosity: {pipe} is neither a file nor new\n"
    assert pipe.is_fifo()


def test_a_file_is_no_folder_to_write_into(tmp_path, capsys):
    write(tmp_path / "results", "table1", "ppo", "sparse", 10.0)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SystemExit) as stopped:
        main(["report", str(tmp_path / "results"), "--out", str(file / "deep" / "report.html")])
    assert stopped.value.code == 2
    page = file / "deep" / "report.html"
    error = capsys.readouterr().err
    assert error == (f"curiosity: {page} cannot be written: {file} is no folder to write to\n")


def test_an_axis_speaks_of_the_r_network_s_steps_where_there_are_any(tmp_path):
    axes = []
    for method in ("ppo", "ppo+ec"):
        write(tmp_path, "table1", method, "sparse", 10.0)
        axes.append("steps, with random play" in results_page(lay_out(tmp_path), tmp_path))
    assert axes == [False, True]


def test_help_asks_for_files(capsys):
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    told = capsys.readouterr().out
    assert "--out FILE" in told
    assert "{None}" not in told


def test_what_would_measure_an_experiment_as_the_paper_did(layout):
    html = results_page(layout, Path("results"))
    for command in (
        "curiosity table ant --world ant --preset paper --steps 10000000 --seeds 30",
        "curiosity table television-sparse --world maze --preset paper --steps 20000000 "
        "--seeds 30",
        "curiosity table memory --world maze --preset paper --steps 20000000 --seeds 5",
    ):
        assert f"{command} --out results" in html
    assert "10 for escape-circle" in html
    assert html.count("the paper does not state its number of seeds") == 6


def test_a_folder_with_nothing_but_damage_still_makes_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(Path("results"), "table1", "ppo", "sparse", 10.0)
    path.write_text("nonsense")
    main(["report", "results"])
    html = Path("report.html").read_text()
    assert "1 file not counted:" in html
    assert "0 of 13" in html


def test_the_page_is_one_file_and_the_same_every_time(layout):
    html = results_page(layout, Path("results"))
    assert_nothing_from_elsewhere(html)
    assert results_page(layout, Path("results")) == html


def test_markdown(layout, tmp_path):
    table = Table(["a", "b"], [["x|y", Entry("1", ["paper 2"], colour=1)]])
    assert markdown_table(table) == "| a | b |\n|---|---:|\n| x\\|y | 1<br>paper 2 |"
    text = results_markdown(layout, Path("results"), "curiosity report")
    assert "| ppo | 25.6 ± 6.2<br>5 seeds<br>paper 27.0 ± 5.1 (30) |" in text
    assert "maze, preset gpu, 1,000,000 steps" in text
    assert "--steps 1000000 --seeds 1 --out results" in text
    assert "- Ant locomotion out of curiosity" in text
    write_results(tmp_path / "results")
    main(["report", str(tmp_path / "results"), "--markdown", str(tmp_path / "tables.md")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "tables.md"]


def test_the_command_for_missing_cells_tests_them_as_the_others(layout):
    """With another number of episodes they would not be averaged with those."""
    command = table_command(grid_of(layout, "table1"), Path("results"), 5)
    assert command.endswith("--seeds 5 --out results --episodes 100")
    (unmeasured,) = (grid for grid in layout.grids if grid.experiment.name == "ant")
    assert "--episodes" not in table_command(unmeasured, Path("results"), 5)


def test_the_tables_of_the_documentation_are_those_of_the_results(monkeypatch):
    """`curiosity report results --markdown docs/results_tables.md` makes them."""
    monkeypatch.chdir(ROOT)
    command = "curiosity report results --markdown docs/results_tables.md"
    wanted = results_markdown(lay_out(Path("results")), Path("results"), command)
    assert Path("docs/results_tables.md").read_text() == wanted, f"`{command}` makes it anew"
