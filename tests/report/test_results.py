"""Results beside the published numbers: what is averaged, what is not, how it is written."""

import dataclasses
from pathlib import Path

import pytest

from episodic_curiosity.claims import CLAIMS
from episodic_curiosity.cli import main
from episodic_curiosity.experiments import EXPERIMENTS
from episodic_curiosity.report.comparing import baseline, improvement, normalised, overall
from episodic_curiosity.report.curves import mean_curve
from episodic_curiosity.report.grids import Grid, Setting, lay_out
from episodic_curiosity.report.markdown import markdown_table, results_markdown
from episodic_curiosity.report.page import Entry
from episodic_curiosity.report.promises import claims_table, measured_ratio, steps_to_success
from episodic_curiosity.report.results_page import results_page
from episodic_curiosity.report.tables import Table, beside_table, numbers_table, overall_table
from episodic_curiosity.results import Result, write_measured
from episodic_curiosity.statistics import interquartile_mean
from tests.report.fixture import STEPS, write, write_results
from tests.report.test_page import assert_nothing_from_elsewhere

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured") / "results"
    write_results(folder)
    return lay_out(folder)


def grid_of(layout, table: str, steps: int = STEPS) -> Grid:
    (grid,) = (
        grid
        for grid in layout.grids
        if grid.experiment.name == table and grid.setting.steps == steps
    )
    return grid


def place(grid: Grid, row_name: str, task: str):
    (row,) = (row for row in grid.experiment.rows if row.name == row_name)
    return grid.place(row, task)


def test_every_experiment_is_there_and_none_mixes_steps(layout):
    assert list(dict.fromkeys(grid.experiment.name for grid in layout.grids)) == list(
        EXPERIMENTS
    )
    table1 = [grid for grid in layout.grids if grid.experiment.name == "table1"]
    assert [grid.setting for grid in table1] == [
        Setting("gpu", STEPS),
        Setting("gpu", 1_000_000),
    ]
    long, short = (place(grid, "ppo", "maze/no-reward") for grid in table1)
    assert long.values == [260.0, 190.0, 200.0, 180.0, 210.0]
    assert short.values == [150.0]
    assert layout.problems == []


def test_presets_are_kept_apart(tmp_path):
    write(tmp_path, "table1", "ppo", "sparse", 10.0)
    path = write(tmp_path, "table1", "ppo", "sparse", 20.0, steps=STEPS + 1)
    other = dataclasses.replace(Result.read(path), preset="cpu", steps=STEPS)
    write_measured(tmp_path / other.key.path, other, {"seconds": 1.0, "hardware": "a CPU"})
    path.unlink()
    values = {
        grid.setting: place(grid, "ppo", "maze/sparse").values
        for grid in lay_out(tmp_path).grids
        if grid.measured and grid.experiment.name == "table1"
    }
    assert values == {Setting("gpu", STEPS): [10.0], Setting("cpu", STEPS): [20.0]}


def test_a_place_by_hand(layout):
    grid = grid_of(layout, "table1")
    ppo = place(grid, "ppo", "maze/sparse")  # 36 22 24 20 26
    assert ppo.seeds == [0, 1, 2, 3, 4]
    assert ppo.summary.mean == 25.6
    # 10.4, -3.6, -1.6, -5.6 and 0.4, squared and over 4.
    assert ppo.summary.deviation == pytest.approx((155.2 / 4) ** 0.5)
    assert ppo.middle.value == 24.0
    assert ppo.published == (27.0, 5.1, 30, "Table 1")
    curious = place(grid, "ppo+ec", "maze/sparse")  # 34 27 28 26 29
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
        [value / (sum(oracle.values) / 5) for value in place(grid, "ppo+ec", task).values]
        for task in grid.tasks
        for oracle in [place(grid, "ppo+oracle", task)]
    ]
    assert lines["ppo+ec"].score == interquartile_mean(strata)


def test_rows_borrowed_from_table_1_and_what_they_are_compared_with(layout):
    grid = grid_of(layout, "threshold")
    assert baseline(grid).name == "k = 5"
    assert place(grid, "k = 5", "maze/no-reward").results[0].table == "table1"
    assert normalised(grid, place(grid, "k = 2", "maze/no-reward")) == pytest.approx(
        [380 / 801.6, 400 / 801.6]  # the Grid Oracle of Table 1: 800 + 0.4 * 4
    )
    # Nothing of the memory's was measured but what it borrows: that is no measurement of it.
    assert grid_of(layout, "memory").measured == []


def test_what_the_table_says(layout):
    head, rows = beside_table(grid_of(layout, "table1"))
    assert head[:2] == ["preset gpu, 20,000,000 steps", "sparse"]
    assert rows[0][0] == Entry("ppo", colour=1)
    assert rows[0][1] == Entry("25.6 ± 6.2", ["5 seeds", "paper 27.0 ± 5.1 (30)"])
    assert rows[1][7] == Entry("missing", ["paper 9.39 ± 0.02 (30)"], kind="missing")
    assert rows[3][4] == Entry("478 ± 31", ["5 seeds", "paper 472 ± 18 (30)"])

    _, rows = beside_table(grid_of(layout, "table1", 1_000_000))
    assert rows[0][4] == Entry("150", ["1 seed", "paper 191 ± 12 (30)"])
    _, rows = beside_table(grid_of(layout, "accuracy"))
    assert [row[1] for row in rows] == [
        Entry("92.0%", ["1 seed", "paper 93%"]),
        Entry("79.0%", ["1 seed", "paper 78%"]),
        Entry("93.0%", ["1 seed", "paper 93%"]),
    ]


def test_all_numbers_of_a_place(layout):
    head, rows = numbers_table(grid_of(layout, "table1"))
    (line,) = (row for row in rows if row[:2] == ["sparse", "ppo+ec"])
    known = dict(zip(head, line, strict=True))
    low, high = known.pop("95 % interval").split(" to ")
    assert 26.0 <= float(low) < 28.0 < float(high) <= 34.0
    assert known.pop("P(better than ppo)").startswith("0.78 (")
    assert known == {
        "task": "sparse",
        "method": "ppo+ec",
        "preset": "gpu",
        "steps": "20,000,000",
        "seeds": "5",
        "mean": "28.8",
        "deviation": "3.1",
        "IQM": "28.0",
        "published": "26.2 ± 1.9 (30)",
        "measured / published": "1.10",
        "minutes a run": "33",
        "steps/s": "10,000",
        "on": "a GPU",
    }
    _, rows = numbers_table(grid_of(layout, "table1", 1_000_000))
    # One seed has no spread and no interval, and says little about the next.
    assert rows[1][5:10] == ["90.0", "-", "90.0", "-", "0.00"]


def test_nothing_is_called_better_for_having_more_parameters(tmp_path):
    for row, value in (("ppo", 1.7e6), ("ppo+ec", 13e6)):
        write(tmp_path, "speed", row, "sparse", value)
    grid = grid_of(lay_out(tmp_path), "speed")
    assert overall_table(grid).rows == []
    assert numbers_table(grid).rows[1][9] == "-"
    assert "<rect" not in results_page(lay_out(tmp_path), tmp_path)


def test_claims_are_ratios(layout):
    rows = claims_table(layout.grids).rows
    by_claim = {row[0].notes[0]: row[1:] for row in rows}
    more_goals = by_claim["ppo+ec against ppo+icm in table1, very-sparse"]
    assert more_goals[0].text.startswith("1.97 (")  # 26.8 / 13.6
    assert more_goals[0].notes == [
        "maze/very-sparse",
        "preset gpu, 20,000,000 steps",
        "5 and 5 seeds",
    ]
    assert more_goals[1:] == ["at least 2", "2.21"]  # 24.7 / 11.2
    faster = by_claim["ppo+ec against ppo+icm in vizdoom, sparse"]
    assert faster[0] == Entry("missing", kind="missing")


def test_steps_to_success_and_seconds_a_step(tmp_path):
    for method, value in (("ppo+ec", 1.0), ("ppo+icm", 0.9)):
        write(tmp_path, "vizdoom", method, "sparse", value)
    for method, rate in (("ppo", 400.0), ("ppo+ec", 100.0)):
        path = write(tmp_path, "speed", method, "sparse", 1e6)
        timing = {"seconds": 1.0, "steps_per_second": rate, "hardware": "a GPU"}
        write_measured(path, Result.read(path), timing)
    grids = {grid.experiment.name: grid for grid in lay_out(tmp_path).grids}
    curious = place(grids["vizdoom"], "ppo+ec", "vizdoom/sparse").results[0]
    curve = [
        {"steps": steps, "reward": reward}
        for steps, reward in ((10, 0.99), (20, 0.5), (30, 0.96), (40, 1.0))
    ]
    assert steps_to_success(dataclasses.replace(curious, curve=[*curve, {"steps": 50}])) == 30
    assert steps_to_success(dataclasses.replace(curious, curve=curve[:2])) is None

    (faster,) = (
        claim for claim in CLAIMS if (claim.experiment, claim.column) == ("vizdoom", "sparse")
    )
    rows = [
        place(grids["vizdoom"], name, "vizdoom/sparse")
        for name in (faster.better, faster.worse)
    ]
    assert measured_ratio(faster, *rows) is None  # ICM never gets there
    (slower,) = (claim for claim in CLAIMS if "slower with EC" in claim.name)
    rows = [
        place(grids["speed"], name, "maze/sparse") for name in (slower.better, slower.worse)
    ]
    assert measured_ratio(slower, *rows).value == 4.0


def test_the_mean_of_curves_is_where_all_of_them_have_a_point():
    curves = (((10, 1.0), (20, 3.0), (30, 5.0)), ((10, 2.0), (30, 9.0), (40, 1.0)))
    assert mean_curve(curves) == ((10, 1.5), (30, 7.0))
    assert mean_curve(()) == ()


def test_what_cannot_be_averaged_is_named_and_left_out(tmp_path):
    write(tmp_path, "table1", "ppo", "sparse", 10.0)
    path = write(tmp_path, "table1", "ppo", "sparse", 20.0, seed=1)
    result = Result.read(path)
    ppo = result.config["ppo"] | {"num_epochs": 99}
    changes = (
        {"config": result.config | {"ppo": ppo}},
        {"table": "mine"},
        {"metrics": {"length": result.metrics["reward"]}, "seed": 2},
        {"variant": "mine"},
    )
    for change in changes:
        other = dataclasses.replace(result, **change)
        write_measured(tmp_path / other.key.path, other, {"seconds": 1, "hardware": "a CPU"})
    layout = lay_out(tmp_path)
    assert place(grid_of(layout, "table1"), "ppo", "maze/sparse").values == [10.0]
    name = "maze-sparse__ppo__gpu__20000000"
    assert sorted(problem.reason for problem in layout.problems) == [
        "mine/" + f"{name}__s1.json is of no experiment: 'mine'",
        "table1/maze-sparse__ppo@mine__gpu__20000000__s1.json stands in no row and column of "
        "table1",
        f"table1/{name}__s1.json has another ppo.num_epochs than seed 0",
        f"table1/{name}__s2.json lacks the number that its table shows: reward",
    ]


def test_a_damaged_file_is_reported_on_the_page_and_on_stderr(tmp_path, capsys):
    results, out = tmp_path / "results", tmp_path / "pages" / "report.html"
    write(results, "table1", "ppo", "sparse", 10.0)
    path = write(results, "table1", "ppo", "sparse", 99.0, seed=1)
    path.write_bytes(path.read_bytes().replace(b"99.0", b"11.0"))
    timing = write(results, "table1", "ppo", "sparse", 20.0, seed=2).with_suffix(".timing.json")
    timing.write_text("{")
    main(["report", str(results), "--out", str(out)])
    told = capsys.readouterr()
    assert told.out == f"{out}\n"
    assert "s1.json" in told.err
    assert "fingerprints differ" in told.err
    assert timing.name in told.err
    html = out.read_text()
    assert "2 files not counted:" in html
    assert "fingerprints differ" in html
    assert "15.0 ± 7.1" in html  # 10 and 20: the time of a run is not its result
    assert not path.exists()


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
    assert "- An ant that walks because it is curious" in text
    write_results(tmp_path / "results")
    main(["report", str(tmp_path / "results"), "--markdown", str(tmp_path / "tables.md")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "tables.md"]


def test_the_tables_of_the_documentation_are_those_of_the_results(monkeypatch):
    """`curiosity report results --markdown docs/results_tables.md` makes them."""
    monkeypatch.chdir(ROOT)
    committed = Path("docs/results_tables.md")
    assert committed.exists() == Path("results").exists()
    if committed.exists():
        command = "curiosity report results --markdown docs/results_tables.md"
        wanted = results_markdown(lay_out(Path("results")), Path("results"), command)
        assert committed.read_text() == wanted, f"`{command}` makes it anew"
