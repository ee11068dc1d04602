"""docs/presets.md: its table is what the presets resolve to."""

from pathlib import Path
from typing import Any

from episodic_curiosity.runs.presets import PRESETS, resolve

PAGE = Path(__file__).parents[2] / "docs" / "presets.md"
METHODS = ("ppo", "ppo+ec", "ppo+eco")
HOUSEKEEPING = ("preset", "record.metrics_every", "record.checkpoint_every")


def flat(plain: dict[str, Any], path: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in plain.items():
        part = (
            flat(value, f"{path}{name}.") if isinstance(value, dict) else {path + name: value}
        )
        values |= part
    return values


def text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
    return " x ".join(map(str, value)) if isinstance(value, list) else str(value)


def table() -> str:
    """Every value of maze/no-reward that is not the same in all presets, in Markdown."""
    lines = ["| | " + " | ".join(f"`{name}`" for name in PRESETS) + " |"]
    lines.append("|---" * (len(PRESETS) + 1) + "|")
    shown: set[str] = set()
    for method in METHODS:
        runs = [
            flat(resolve("maze/no-reward", method, name, 20_000_000, seed=0).to_dict())
            for name in PRESETS
        ]
        for path in runs[0]:
            values = [text(run.get(path)) for run in runs]
            label = f"`{path}`"
            if path == "ppo.learning_rate":
                label += " of `ppo`" if method == "ppo" else " of `ppo+ec` and `ppo+eco`"
            row = f"| {label} | " + " | ".join(values) + " |"
            if path in HOUSEKEEPING or len(set(values)) == 1 or row in shown:
                continue
            shown.add(row)
            lines.append(row)
    return "\n".join(lines)


def test_the_table_is_that_of_the_presets():
    wanted = table()
    assert wanted in PAGE.read_text(), f"put this into {PAGE.name}:\n{wanted}"


def test_every_preset_is_explained():
    page = PAGE.read_text()
    for name, preset in PRESETS.items():
        assert f"| `{name}` |" in page
        assert preset.line
