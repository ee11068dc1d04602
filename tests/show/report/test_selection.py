"""What counts in a report: results of today's cells, alike; everything else is named."""

import dataclasses
import json

import pytest

from episodic_curiosity.cli.main import main
from episodic_curiosity.experiments.results import Key, Result, write_measured
from episodic_curiosity.show.report.grids import lay_out
from episodic_curiosity.show.report.markdown import results_markdown
from episodic_curiosity.show.report.page import Entry
from episodic_curiosity.show.report.results_page import results_page
from episodic_curiosity.show.report.tables import beside_table, numbers_table, plain_table
from episodic_curiosity.support.saving import header_bytes
from tests.show.report.fixture import cell, grid_of, write

NAME = "maze-sparse__ppo__gpu__20000000"
TIMING = {"seconds": 1.0, "hardware": "a CPU"}


def rewrite(folder, path, **changes) -> None:
    """Writes a result with something changed, where it then belongs."""
    result = Result.read(path)
    key = {name: changes.pop(name) for name in Key._fields if name in changes}
    other = dataclasses.replace(result, key=result.key._replace(**key), **changes)
    write_measured(folder / other.key.path, other, TIMING)


def reasons(layout) -> list[str]:
    return sorted(problem.reason for problem in layout.problems)


def test_results_of_yesterdays_cells_are_named_and_left_out(tmp_path):
    write(tmp_path, "table1", "ppo", "sparse", 10.0)
    path = write(tmp_path, "table1", "ppo+ec", "sparse", 20.0)
    config = Result.read(path).config
    rewrite(tmp_path, path, config=config | {"ppo": config["ppo"] | {"num_epochs": 99}})
    layout = lay_out(tmp_path)
    grid = grid_of(layout, "table1")
    assert [each.row.name for each in grid.measured] == ["ppo"]
    assert reasons(layout) == [
        "table1/maze-sparse__ppo_ec__gpu__20000000__s0.json was measured with another config "
        "(ppo.num_epochs was 99, now 4)"
    ]
    assert reasons(layout)[0] in results_markdown(layout, tmp_path, "curiosity report")


def test_results_of_no_commit_are_named_and_left_out(tmp_path):
    write(tmp_path, "table1", "ppo", "sparse", 10.0)
    path = write(tmp_path, "table1", "ppo+ec", "sparse", 20.0)
    rewrite(tmp_path, path, code="0.1.0 (sources 0123456789ab; not committed)")
    # A table that is not in the paper is no exception.
    rewrite(tmp_path, path, code="0.1.0 (sources 0123456789ab; not committed)", table="mine")
    layout = lay_out(tmp_path)
    assert [each.row.name for each in grid_of(layout, "table1").measured] == ["ppo"]
    assert layout.others == []
    name, why = NAME.replace("ppo", "ppo_ec"), "was measured from sources of no commit: 0.1.0"
    for table, reason in zip(("mine", "table1"), reasons(layout), strict=True):
        assert reason.startswith(f"{table}/{name}__s0.json {why} (sources 0123456789ab; not")

    listed = header_bytes("sources", {"ba9876543210": "0" * 40})
    (tmp_path / "sources.json").write_bytes(listed)
    layout = lay_out(tmp_path)
    assert not grid_of(layout, "table1").measured
    assert "(sources 0123456789ab), which sources.json does not list" in reasons(layout)[1]
    assert "sources.json does not list" in results_page(layout, tmp_path)


def test_what_cannot_be_averaged_is_named_and_left_out(tmp_path):
    write(tmp_path, "table1", "ppo", "sparse", 10.0)
    path = write(tmp_path, "table1", "ppo", "sparse", 20.0, seed=1)
    result = Result.read(path)
    of_512 = result.metrics | {"length": result.metrics["length"] | {"num_values": 512}}
    config = result.config | {"seed": 2}
    rewrite(tmp_path, path, metrics=of_512)
    of_length = {"length": result.metrics["length"]}
    rewrite(tmp_path, path, metrics=of_length, seed=2, config=config)
    rewrite(tmp_path, path, variant="mine")
    rewrite(tmp_path, path, preset="mine")
    layout = lay_out(tmp_path)
    assert cell(grid_of(layout, "table1"), "ppo", "maze/sparse").values == [10.0]
    mine = "table1/maze-sparse__ppo__mine__20000000__s1.json"
    *others, unknown = sorted(reasons(layout), key=lambda reason: mine in reason)
    assert unknown.startswith(f"{mine} can no longer be measured: preset")
    assert others == [
        "table1/maze-sparse__ppo@mine__gpu__20000000__s1.json is in no row and column of "
        "table1",
        f"table1/{NAME}__s1.json has 512 test episodes, seed 0 100",
        f"table1/{NAME}__s2.json lacks the metric of its table: reward",
    ]


def test_several_versions_of_the_code_in_one_mean_are_noted(tmp_path):
    write(tmp_path, "table1", "ppo", "sparse", 10.0)
    path = write(tmp_path, "table1", "ppo", "sparse", 20.0, seed=1)
    one = grid_of(lay_out(tmp_path), "table1")
    assert beside_table(one).rows[0][1].notes[0:2] == ["2 seeds", "paper 27.0 ± 5.1 (30)"]
    rewrite(tmp_path, path, code="0.2.0 (sources ba9876543210)")
    layout = lay_out(tmp_path)
    grid, note = grid_of(layout, "table1"), "2 code versions"
    assert beside_table(grid).rows[0][1].notes[:2] == ["2 seeds", note]
    assert numbers_table(grid).rows[0][4] == Entry("2", [note])
    codes = "code 0.1.0 (sources 0123456789ab), 0.2.0 (sources ba9876543210)"
    assert codes in results_page(layout, tmp_path)


def test_a_table_that_the_paper_does_not_have_is_shown_plainly(tmp_path):
    for seed, value in enumerate((10.0, 20.0)):
        path = write(tmp_path, "table1", "ppo", "sparse", value, seed)
        rewrite(tmp_path, path, table="mine", variant="bold", command="")
        path.unlink()
    path = write(tmp_path, "table1", "ppo", "sparse", 99.0, 2)
    config = Result.read(path).config
    rewrite(tmp_path, path, table="mine", variant="bold", config=config | {"device": "cpu"})
    path.unlink()
    layout = lay_out(tmp_path)
    head, rows, _ = plain_table(layout.others)
    reward, length = (dict(zip(head, row, strict=True)) for row in rows)
    assert reward == {
        "task": "maze/sparse",
        "method": "ppo@bold",
        "number": "reward",
        "preset": "gpu",
        "steps": "20,000,000",
        "seeds": Entry("2", []),
        "test episodes": "100",
        "mean": "15.0",
        "deviation": "7.1",
        "IQM": "15.0",
        "95 % interval": "-48.5 to 78.5",  # 15 -+ 12.7062 * 7.07 / sqrt(2)
        "minutes per run": "0.0",
        "steps/s while training": "-",
        "steps/s overall": "-",
        "hardware": "a CPU",
    }
    assert length["number"] == "length"
    name = "mine/maze-sparse__ppo@bold__gpu__20000000__s2.json"
    assert reasons(layout) == [f"{name} differs in device from seed 0"]
    assert not any(grid.measured for grid in layout.grids)
    page = results_page(layout, tmp_path)
    assert "Not in the paper: mine" in page
    assert "<span>Runs</span><b>2</b>" in page
    text = results_markdown(layout, tmp_path, "curiosity report")
    assert "## Not in the paper: mine" in text
    assert "| maze/sparse | ppo@bold | reward | gpu |" in text


@pytest.mark.parametrize(
    "broken", [{"seconds": None}, {"seconds": 0}, {"steps_per_second": 0.0}, {"seconds": "x"}]
)
def test_a_timing_that_cannot_be_is_no_timing(tmp_path, broken):
    for method in ("ppo", "ppo+ec"):
        path = write(tmp_path, "speed", method, "sparse", 1e6)
    timing = path.with_suffix(".timing.json")
    content = json.loads(timing.read_text())
    timing.write_text(json.dumps(content | {"config": content["config"] | broken}))
    layout = lay_out(tmp_path)
    (reason,) = reasons(layout)
    assert timing.name in reason
    grid = grid_of(layout, "speed")
    assert [row[-4:] for row in numbers_table(grid).rows] == [
        ["33.3", "12,000", "10,000", "a GPU"],
        ["-", "-", "-", "-"],
    ]
    assert "no timing" in results_page(layout, tmp_path)


def test_equal_seeds_have_an_interval_and_one_seed_has_none(tmp_path):
    for seed in range(2):
        write(tmp_path, "table1", "ppo", "sparse", 10.0, seed)
    write(tmp_path, "table1", "ppo+ec", "sparse", 20.0)
    layout = lay_out(tmp_path)
    several, one = numbers_table(grid_of(layout, "table1")).rows
    assert several[7] == "10.0 to 10.0"
    assert one[7:9] == ["-", "-"]
    assert results_page(layout, tmp_path).count('class="interval"') == 1


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
    assert path.exists()  # reading renames nothing


def test_what_was_set_aside_and_measured_again_is_no_problem(tmp_path):
    path = write(tmp_path, "table1", "ppo", "sparse", 10.0)
    path.with_name(path.name + ".damaged").write_text("nonsense")
    assert lay_out(tmp_path).problems == []
    path.unlink()
    (reason,) = reasons(lay_out(tmp_path))
    assert f"{path.name}.damaged" in reason


def test_seeds_measured_before_an_option_came_are_averaged_with_later_ones(tmp_path):
    for seed, value in enumerate((10.0, 20.0)):
        path = write(tmp_path, "table1", "ppo", "sparse", value, seed)
    config = Result.read(path).config
    without = {
        name: value for name, value in config["ppo"].items() if name != "separate_networks"
    }
    rewrite(tmp_path, path, config=config | {"ppo": without})
    layout = lay_out(tmp_path)
    assert reasons(layout) == []
    assert dict(zip(*plain_numbers(layout), strict=True))["seeds"] == "2"


def plain_numbers(layout):
    """The head and the only row of Table 1's numbers."""
    head, (row,), _ = numbers_table(grid_of(layout, "table1"))
    return head, [getattr(cell, "text", cell) for cell in row]
