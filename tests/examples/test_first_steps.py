"""The notebook runs from its first cell to its last.

Its cells are run here, in this process, by a few lines: they are plain Python, without magics.
A notebook's kernel would be twenty more packages, and its warnings would be no errors here.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_steps.ipynb"
CONTENT = json.loads(NOTEBOOK.read_text())
CODE = ["".join(cell["source"]) for cell in CONTENT["cells"] if cell["cell_type"] == "code"]


def run_cell(code: str, names: dict[str, Any]) -> Any:
    """Runs a cell and returns the value of its last expression, which a notebook shows."""
    tree = ast.parse(code)
    shown = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NOTEBOOK.name, "exec"), names)
    if shown is None:
        return None
    return eval(compile(ast.Expression(shown.value), NOTEBOOK.name, "eval"), names)


@pytest.mark.slow
def test_it_trains_and_looks(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shorter = {"STEPS = 50_000": "STEPS = 8_000", "iterations=600": "iterations=60"}
    code = "\0".join(CODE)
    for long, short in shorter.items():
        code, count = re.subn(long, short, code)
        assert count == 1
    names: dict[str, Any] = {}
    shown = [run_cell(cell, names) for cell in code.split("\0")]
    pictures = [picture for picture in shown if isinstance(picture, Image.Image)]
    assert len(pictures) == 2
    for picture in pictures:
        assert picture.size == (4 * (9 * 24 + 8), 9 * 24)
        assert len(picture.getcolors(1_000_000)) > 20
    told = capsys.readouterr().out
    assert "held-out accuracy of the R-network: " in told
    assert re.search(r"remembered: \d+ of 200 views", told)
    assert re.search(r"trained: \d+\.\d cells .*\nnot trained: \d+\.\d cells", told)


def test_it_is_stored_without_outputs():
    assert len(CODE) > 5
    for cell in CONTENT["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    assert CONTENT["nbformat"] == 4
