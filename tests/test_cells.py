"""Cells: the paper's experiments as runs."""

import pytest

from episodic_curiosity.cells import Cell, Variant
from episodic_curiosity.experiments import EXPERIMENTS
from episodic_curiosity.presets import PRESETS, resolve
from episodic_curiosity.worlds import FAMILIES

STEPS = {"paper": 20_000_000, "gpu": 20_000_000, "cpu": 200_000}


def cell(variant=None, method="ppo+ec", steps=20_000_000, **more):
    names = {"table": "any", "task": "maze/no-reward", "preset": "gpu", "seed": 0}
    return Cell(**names | more, method=method, steps=steps, variant=variant)


def find(name, row, column=None, steps=20_000_000, preset="gpu"):
    experiment = EXPERIMENTS[name]
    (row,) = [each for each in experiment.rows if each.name == row]
    task = f"maze/{column or experiment.columns[0]}"
    return experiment.cell(row, task, preset, steps, 0)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_of_the_paper_is_a_run(name, preset):
    experiment = EXPERIMENTS[name]
    for world in experiment.worlds:
        if world in FAMILIES:
            cells = list(experiment.cells(world, preset, STEPS[preset], 2))
            keys = {cell.key for cell in cells}
            size = 2 * len(experiment.rows) * len(experiment.columns)
            assert len(cells) == len(keys) == size
            for each in cells:
                run = each.run()
                assert (run.task, run.method) == (each.task, each.method)


def test_the_tables_have_the_papers_shapes():
    shapes = {name: (len(e.columns), len(e.rows)) for name, e in EXPERIMENTS.items()}
    assert shapes["table1"] == (7, 5)
    assert shapes["vizdoom"] == (3, 3)
    assert shapes["ant"] == (2, 3)
    assert shapes["television-sparse"] == shapes["television-very-sparse"] == (6, 5)
    rows = {name: [row.name for row in e.rows] for name, e in EXPERIMENTS.items()}
    assert rows["threshold"] == [f"k = {k}" for k in (2, 3, 4, 5, 7, 10)]
    assert rows["memory"] == [f"{size} slots" for size in (100, 200, 350, 500)]
    assert rows["budget"] == ["100K", "300K", "1M", "2.5M", "5M"]
    assert rows["accuracy"] == ["mlp", "shared dot", "un-shared dot"]


def test_the_whole_table_of_one_seed_comes_before_the_next():
    cells = list(EXPERIMENTS["table1"].cells("maze", "gpu", 20_000_000, 2))
    assert [each.seed for each in cells] == [0] * 35 + [1] * 35
    assert cells[1].key.label == "maze/sparse:ppo+icm:0"


def test_what_is_as_in_table_1_is_measured_for_it():
    assert find("threshold", "k = 5").key == find("table1", "ppo+ec", "no-reward").key
    assert find("threshold", "k = 2").key.table == "threshold"
    assert find("television-sparse", "ppo", "sparse").key.table == "table1"
    assert find("television-sparse", "ppo", "sparse+noise").key.table == "television-sparse"
    assert find("speed", "ppo").key.table == "speed"


def test_variants_change_what_they_say_and_nothing_else():
    usual = resolve("maze/no-reward", "ppo+ec", "gpu", 20_000_000, 0)
    assert find("threshold", "k = 5").run() == usual
    near = find("threshold", "k = 2").run()
    assert near.r_network.random_play.fit.pairs.k == 2
    assert find("memory", "500 slots").run().bonus.memory_capacity == 500
    frozen = find("parts", "random embedding").run().r_network
    assert (frozen.comparator, frozen.branches, frozen.frozen_embedding) == (
        "mlp",
        "shared",
        True,
    )
    dot = find("parts", "no comparator").run().r_network
    assert (dot.comparator, dot.branches, dot.frozen_embedding) == ("dot", "shared", False)
    play = find("transfer", "from dense-2").run().r_network.random_play
    assert play.tasks == ("maze/dense-2",)
    assert len(find("universal", "universal").run().r_network.random_play.tasks) == 7


def test_a_budget_shrinks_with_the_run():
    def play(steps):
        return find("budget", "5M", steps=steps).run().r_network.random_play.steps

    assert [play(40_000_000), play(20_000_000), play(2_000_000)] == [
        5_000_000,
        5_000_000,
        500_000,
    ]


def test_metrics_are_those_of_the_papers_columns():
    table = EXPERIMENTS["table1"]
    assert table.metric("maze/no-reward-no-fire") == "coverage"
    assert table.metric("maze/dense-1") == "reward"
    assert EXPERIMENTS["ant"].metric("ant/no-reward") == "coverage"
    assert EXPERIMENTS["accuracy"].metric("maze/sparse") == "accuracy"
    assert EXPERIMENTS["speed"].metric("maze/sparse") == "parameters"


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"must be one of maze, dmlab, got 'mars'"):
        EXPERIMENTS["table1"].tasks("mars")
    wrong = Variant(name="x", changes=(("r_network.random_play.k", 2),))
    with pytest.raises(ValueError, match=r"has no r_network\.random_play\.k"):
        cell(wrong).run()
    with pytest.raises(ValueError, match=r"has no r_network\.comparator"):
        cell(Variant(name="x", changes=(("r_network.comparator", "dot"),)), "ppo").run()
    with pytest.raises(ValueError, match="memory_capacity must be a whole number"):
        cell(Variant(name="x", changes=(("bonus.memory_capacity", "all"),))).run()
    with pytest.raises(ValueError, match="steps are too few"):
        cell(steps=1000).run()
    for name in ("", "a:b", "a@b", "a__b", "a/b"):
        with pytest.raises(ValueError, match="a variant's name"):
            Variant(name=name)
    with pytest.raises(ValueError, match="measure must be one of"):
        cell(measure="luck")
