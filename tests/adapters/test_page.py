"""The scripts of docs/adapters.md run as they are written."""

import re
from pathlib import Path

import numpy as np
import pytest

import episodic_curiosity as ec

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
CODE = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
# That of RLlib starts Ray: test_rllib.py runs it.
SCRIPTS = [code for code in CODE if "import" in code and "rllib" not in code]
(CALLS,) = (code for code in CODE if "import" not in code)
NUM_STEPS = {"MiniGrid": 128, "MazeSparse": 32, "PPO": 4_096, "DQN": 400, "Collector": 1_024}


def name_of(script):
    return next(name for name in NUM_STEPS if name in script)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_a_script(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    added = [line for line in script.splitlines() if line.endswith("  # curiosity")]
    assert 5 <= len(added) <= 10
    names = {"total_steps": NUM_STEPS[name_of(script)]}
    exec(script, names)
    curiosity = names["curiosity"]
    assert curiosity.opened.all()
    assert curiosity.fitting.steps_since_fit >= names["total_steps"]
    if "save" in script:
        assert (tmp_path / "agent.curiosity" / "curiosity.safetensors").exists()


def test_every_library_has_a_script():
    assert sorted(map(name_of, SCRIPTS)) == sorted(NUM_STEPS)


def test_the_calls_of_a_custom_loop():
    names = {
        "curiosity": ec.ConstantBonus(2),
        "observation": np.zeros((2, 3), np.float32),
        "stepped_to": np.ones((2, 3), np.float32),
        "action": np.zeros(2, np.int64),
        "done": np.array([True, False]),
    }
    exec(CALLS, names)
    assert names["bonus"].tolist() == [1.0, 1.0]
