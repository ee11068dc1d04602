"""The README's examples run as they are written."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_examples_of_the_api(capsys):
    examples = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(examples) == 2
    names: dict[str, object] = {}
    for example in examples:  # the second continues the first
        exec(example, names)
        bonus = names["bonus"]
        assert bonus.shape == (16,)
        assert bonus.abs().sum() == 0  # the R-network is not fitted yet
    assert "memory_fill" in capsys.readouterr().out


def test_it_is_short():
    assert len(README.read_text().split()) <= 1100
