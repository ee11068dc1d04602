"""A folder of results with numbers that can be worked out by hand."""

from pathlib import Path

from episodic_curiosity.experiments.results import Result, write_measured
from episodic_curiosity.experiments.tables import EXPERIMENTS
from episodic_curiosity.show.report.grids import Grid, Layout, TableCell

OFFSETS = (3.0, -0.5, 0.0, -1.0, 0.5)  # of five seeds from their middle, in spreads
STEPS = 20_000_000
# Middle and spread of table1's cells; ppo+icm is missing on dense-2.
TABLE1 = {
    "ppo": ((24, 4), (8, 4), (2, 0.4), (200, 20), (220, 20), (22, 1), (9.4, 0.1)),
    "ppo+icm": ((22, 2), (12, 4), (3, 0.4), (80, 4), (90, 4), (20, 1), None),
    "ppo+ec": ((28, 2), (26, 2), (9, 0.6), (460, 10), (480, 12), (20, 1), (9.5, 0.1)),
    "ppo+eco": ((40, 2), (40, 1), (19, 0.6), (470, 20), (460, 30), (23, 0.4), (9.6, 0.1)),
    "ppo+oracle": ((50, 1), (50, 1), (25, 0.4), (800, 4), (800, 4), (21, 0.6), (9.0, 0.1)),
}


def write_results(folder: Path) -> None:
    """Table 1 with five seeds and a hole; a little of it after 1M steps; parts of others."""
    for method, columns in TABLE1.items():
        for column, cell in zip(EXPERIMENTS["table1"].columns, columns, strict=True):
            for seed, offset in enumerate(OFFSETS):
                if cell is not None:
                    write(folder, "table1", method, column, cell[0] + offset * cell[1], seed)
    for method, value in (("ppo", 150.0), ("ppo+ec", 90.0)):
        write(folder, "table1", method, "no-reward", value, steps=1_000_000)
    for seed, value in enumerate((380.0, 400.0)):
        write(folder, "threshold", "k = 2", "no-reward", value, seed)
    for row, value in (("mlp", 0.92), ("shared dot", 0.79), ("un-shared dot", 0.93)):
        write(folder, "accuracy", row, "sparse", value)
    for seed, value in enumerate((0.9, 1.0, 1.0)):
        write(folder, "vizdoom", "ppo+ec", "sparse", value, seed, steps=5_000_000)


def write(
    folder: Path,
    table: str,
    row_name: str,
    column: str,
    value: float,
    seed: int = 0,
    steps: int = STEPS,
    preset: str = "gpu",
) -> Path:
    """One result; its curve climbs to the value. Returns where it was written."""
    experiment = EXPERIMENTS[table]
    (row,) = (row for row in experiment.rows if row.name == row_name)
    task = f"{experiment.worlds[0]}/{column}"
    cell = experiment.cell(row, task, preset, steps, seed)
    run = cell.run()
    metric = experiment.metric(task)
    start = run.random_play_steps
    shares = [number / 50 for number in range(1, 51)]
    climb = [
        {
            "steps": round(start + share * (steps - start)),
            metric: value * (1 - (1 - share) ** 3),
        }
        for share in shares
    ]
    is_agent = experiment.measure == "agent"
    length = {"length": {"num_values": 100, "mean": 1.0, "deviation": 0.0}}
    result = Result(
        key=cell.key,
        config=run.to_dict(),
        code="0.1.0 (sources 0123456789ab)",
        command=f"curiosity table {table} --cell {cell.key.label} --preset {preset} "
        f"--steps {steps}",
        curve=climb if is_agent else [],
        metrics={metric: {"num_values": 100, "mean": value, "deviation": 1.0}}
        | (length if is_agent else {}),
        action_shares={},
    )
    timing = {"seconds": steps / 10_000, "steps_per_second": 12_000.0, "hardware": "a GPU"}
    path = folder / cell.key.path
    write_measured(path, result, timing)
    return path


def grid_of(layout: Layout, table: str, steps: int = STEPS) -> Grid:
    (grid,) = (
        grid
        for grid in layout.grids
        if grid.experiment.name == table and grid.regime.steps == steps
    )
    return grid


def cell(grid: Grid, row_name: str, task: str) -> TableCell:
    (row,) = (row for row in grid.experiment.rows if row.name == row_name)
    return grid.cell(row, task)
