"""The command `curiosity`, as it is installed."""

import subprocess
import sys
from pathlib import Path

import episodic_curiosity as ec

COMMAND = str(Path(sys.executable).parent / "curiosity")


def curiosity(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_version():
    assert curiosity("--version").stdout == f"curiosity {ec.__version__}\n"


def test_doctor_says_what_is_here_and_how_fast():
    result = curiosity("doctor")
    assert result.returncode == 0
    assert f"episodic-curiosity {ec.__version__}" in result.stdout
    assert "torch" in result.stdout
    assert "environment steps/s" in result.stdout


def test_a_mistake_is_answered_without_a_traceback():
    result = curiosity("docter")
    assert result.returncode == 2
    assert "docter" in result.stderr
    assert "doctor" in result.stderr
    assert "Traceback" not in result.stderr
