"""One damaged file among results stops neither a report nor a table."""

import re

import pytest

from episodic_curiosity.cli import main as cli
from tests.show.report.fixture import write_results

CELL = "maze/dense-1:ppo:0 "  # the first by name
VALUES = ["NaN", "1" + "0" * 400, "[" * 500 + "]" * 500]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize("field", ["mean", "seconds"])
def test_a_number_that_is_none(tmp_path, field, value, capsys):
    results = tmp_path / "results"
    write_results(results)
    name = "*__s0.timing.json" if field == "seconds" else "*__s0.json"
    path = sorted(results.glob(f"table1/{name}"))[0]
    content, count = re.subn(
        rf'"{field}": [-0-9.e]+', lambda _: f'"{field}": {value}', path.read_text(), count=1
    )
    assert count == 1
    path.write_text(content)
    cli.main(["report", str(results), "--out", str(tmp_path / "report.html")])
    assert f"not counted: {path} " in capsys.readouterr().err
    folders = ["--out", str(results), "--runs", str(tmp_path / "runs")]
    cli.main(["table", "table1", "--dry-run", "--preset", "gpu", *folders])
    (line,) = (line for line in capsys.readouterr().out.splitlines() if CELL in line)
    assert ("damaged" in line) == (field == "mean"), line
    assert path.read_text() == content
