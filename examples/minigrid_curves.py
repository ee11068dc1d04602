"""Draws the curves of sb3_minigrid.py as a page, and prints their last points as a table.

    python examples/minigrid_curves.py docs/data/minigrid --out minigrid.html
    python examples/chart_picture.py minigrid.html MiniGrid-MultiRoom-N4-S5-v0 multiroom.png

A thick line is the mean over seeds, thin lines are the seeds.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from episodic_curiosity.show.report import page
from episodic_curiosity.show.report.chart import Axis, Line, Points, line_chart
from episodic_curiosity.show.report.figures import mean_curve

METHODS = (
    "ppo",
    "ppo+eco",
    "ppo+noveld",
    "ppo+rnd",
    "ppo+etd",
    "ppo+eco-paper",
)  # in the order of colours
LOW = 0.05  # lines below it hide each other
Curves = dict[str, dict[str, list[Points]]]  # by environment and method, one per seed


def read(folder: Path) -> Curves:
    """The curves of a folder; raises for a file that is none."""
    curves: Curves = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("*.json")):
        try:
            result: dict[str, Any] = json.loads(path.read_text())
            points = tuple((float(step), float(value)) for step, value in result["curve"])
            curves[result["env"]][result["method"]].append(points)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no curve of sb3_minigrid.py: {error}") from None
    if not curves:
        raise ValueError(f"{folder} must have curves of sb3_minigrid.py, got none")
    return curves


def chart(env: str, methods: dict[str, list[Points]]) -> str:
    lines = [
        Line(method, 1 + METHODS.index(method), mean_curve(seeds), runs=tuple(seeds))
        for method, seeds in sorted(methods.items(), key=lambda item: METHODS.index(item[0]))
    ]
    steps, returns = Axis("steps", shows=(0,)), Axis("return of the task", shows=(0, 1))
    low = [line.name for line in lines if all(value < LOW for _, value in line.points)]
    note = f"{', '.join(low)}: below {LOW} throughout" if low else ""
    return line_chart(env, steps, returns, lines, note)


def table(curves: Curves) -> str:
    """The last point of each seed, in Markdown."""
    rows = ["| | " + " | ".join(curves) + " |", "|---" * (1 + len(curves)) + "|"]
    for method in METHODS:
        cells = [
            ", ".join(f"{points[-1][1]:.2f}" for points in methods.get(method, [])) or "-"
            for methods in curves.values()
        ]
        rows.append(f"| `{method}` | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("minigrid.html"))
    options = parser.parse_args()
    try:
        curves = read(options.folder)
    except ValueError as error:
        sys.exit(str(error))
    charts = [chart(env, methods) for env, methods in curves.items()]
    lead = "The task's mean return of the newest 100 episodes, without the bonus."
    content = page.page("SB3's PPO on MiniGrid", lead, [page.row(charts, "charts")])
    options.out.write_text(content)
    print(table(curves))
    print(f"\nCurves: {options.out}")


if __name__ == "__main__":
    main()
