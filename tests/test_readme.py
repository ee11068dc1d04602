"""The README's example runs as it is written."""

import re
from pathlib import Path

import torch

import episodic_curiosity as ec

README = Path(__file__).parent.parent / "README.md"


def test_the_example_of_the_api(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ec.Agent((3, 84, 84), num_actions=9).save("runs/x")
    (example,) = (
        code
        for code in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        if "curiosity.bonus" in code
    )
    frames = torch.randint(0, 256, (16, 3, 84, 84), dtype=torch.uint8)
    names = {"view": frames, "obs": frames, "first": torch.ones(16, dtype=torch.bool)}
    exec(example, names)
    assert names["bonus"].shape == (16,)
    assert isinstance(names["agent"], ec.Agent)
