"""Cells: the paper's experiments as runs."""

from pathlib import Path

import pytest
import torch

from episodic_curiosity.experiments.cells import EPISODES, Cell, Variant, why_stale
from episodic_curiosity.experiments.results import Key, Result, load_results
from episodic_curiosity.experiments.tables import EXPERIMENTS, find_trained
from episodic_curiosity.reachability.pairs import draw_pairs
from episodic_curiosity.runs.presets import PRESETS, resolve
from episodic_curiosity.worlds.registry import split_tasks

ROOT = Path(__file__).parents[2]
STEPS = {"paper": 20_000_000, "gpu": 20_000_000, "turbo": 20_000_000, "cpu": 200_000}


def cell(variant=None, method="ppo+ec", steps=20_000_000, measure="agent", **more):
    key = Key("any", "maze/no-reward", method, variant and variant.name, "gpu", steps, 0)
    return Cell(key=key._replace(**more), variant=variant, measure=measure)


def find(name, row, column=None, steps=20_000_000, preset="gpu"):
    experiment = EXPERIMENTS[name]
    (row,) = [each for each in experiment.rows if each.name == row]
    task = f"maze/{column or experiment.columns[0]}"
    return experiment.cell(row, task, preset, steps, 0)


def measured(cell: Cell, num_episodes: int) -> Result:
    """A result of the cell as it is today."""
    length = {"num_values": num_episodes, "mean": 1.0, "deviation": 0.0}
    return Result(
        key=cell.key,
        config=cell.run().to_dict(),
        code="0.1.0 (sources 0123456789ab)",
        command="curiosity table any",
        curve=[],
        metrics={"length": length},
        action_shares={},
    )


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_of_the_paper_is_a_run(name, preset):
    experiment = EXPERIMENTS[name]
    for world in experiment.worlds:
        cells = list(experiment.cells(world, preset, STEPS[preset], 2))
        keys = {cell.key for cell in cells}
        size = 2 * len(experiment.rows) * len(experiment.columns)
        assert len(cells) == len(keys) == size
        for each in cells:
            run = each.run()
            assert (run.task, run.method) == (each.key.task, each.key.method)


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
    assert [each.key.seed for each in cells] == [0] * 35 + [1] * 35
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
    near = find("threshold", "k = 2").run().r_network.random_play.fit.pairs
    assert (near.k, near.sampler) == (2, "online")
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


@pytest.mark.parametrize("preset", PRESETS)
def test_every_k_has_the_same_number_of_pairs(preset):
    """In 3 episodes of 40,000 steps one pair for every 4; the offline walk at k = 2: 48,000."""
    first = torch.zeros(40_000, 3, dtype=torch.bool)
    for row in EXPERIMENTS["threshold"].rows:
        run = find("threshold", row.name, steps=STEPS[preset], preset=preset).run()
        generator = torch.Generator().manual_seed(0)
        pairs = draw_pairs(first, run.r_network.random_play.fit.pairs, generator)
        assert len(pairs.reachable) == pytest.approx(30_000, rel=0.01), row.name


@pytest.mark.parametrize(
    ("preset", "steps", "usual"),
    [
        ("paper", 20_000_000, 2_500_000),
        ("paper", 6_000_000, 2_500_000),
        ("gpu", 40_000_000, 2_500_000),
        ("gpu", 8_000_000, 1_000_000),
        ("cpu", 200_000, 40_000),
    ],
)
def test_budgets_are_in_proportion_to_what_the_preset_has(preset, steps, usual):
    budgets = {row.name: budget(row.name, preset, steps) for row in EXPERIMENTS["budget"].rows}
    assert budgets == {
        "100K": usual // 25,
        "300K": usual * 3 // 25,
        "1M": usual * 2 // 5,
        "2.5M": usual,
        "5M": usual * 2,
    }


def budget(row, preset, steps):
    return find("budget", row, steps=steps, preset=preset).run().random_play_steps


def test_universal_is_the_papers_where_there_is_dmlab_30():
    (row,) = [row for row in EXPERIMENTS["universal"].rows if row.name == "universal"]
    lab = EXPERIMENTS["universal"].cell(row, "dmlab/no-reward", "paper", 20_000_000, 0)
    play = lab.run().r_network.random_play
    assert play.tasks == split_tasks("dmlab-30")
    assert play.steps == 10_000_000
    assert lab.key.label == "dmlab/no-reward:ppo+ec@universal:0"
    mazes = find("universal", "universal").run().r_network.random_play
    assert (len(mazes.tasks), mazes.steps) == (7, 2_500_000)


def test_a_variant_that_is_the_plain_method_is_measured_once():
    # The fast R-network has unshared branches and a dot product; the others, mlp and shared.
    plain = find("table1", "ppo+ec", "no-reward", preset="cpu").key
    assert find("parts", "un-shared dot", preset="cpu").key == plain
    assert find("parts", "complete", preset="cpu").key.variant == "mlp"
    for preset in ("paper", "gpu", "turbo"):
        plain = find("table1", "ppo+ec", "no-reward", preset=preset).key
        assert find("parts", "complete", preset=preset).key == plain
        assert find("parts", "un-shared dot", preset=preset).key.variant == "unshared-dot"
    # Asked about a place, nobody minds what could not be run.
    assert find("parts", "complete", steps=1, preset="huge").key.table == "parts"
    assert find("parts", "complete", steps=1, preset="paper").key.table == "table1"


def test_speed_is_that_of_the_runs_of_table_1():
    timed = find("speed", "ppo+ec")
    trained = find_trained(timed)
    assert trained == find("table1", "ppo+ec", "sparse")
    assert trained.is_same_run(timed)
    assert find_trained(trained) is None
    assert find_trained(cell(table="mine", measure="speed")) is None


@pytest.mark.parametrize(
    "result", load_results(ROOT / "results").results, ids=lambda one: one.key.label
)
def test_what_has_been_committed_still_counts(result):
    """A preset or a hyper-parameter that moves makes these stale: then measure them again."""
    experiment = EXPERIMENTS[result.key.table]
    world = result.key.task.partition("/")[0]
    cells = experiment.cells(world, result.key.preset, result.key.steps, result.key.seed + 1)
    (today,) = [each for each in cells if each.key == result.key]
    assert why_stale(result, today, EPISODES) is None


def test_a_result_is_stale_against_another_cell():
    today = cell(method="ppo", table="table1")
    result = measured(today, num_episodes=512)
    assert why_stale(result, today) is None
    other = cell(method="ppo", table="table1", seed=1)
    assert why_stale(result, other) == "was measured with another config (seed was 0, now 1)"
    words = "was measured on 512 test episodes, 513 are wanted"
    assert why_stale(result, today, 513) == words


def test_an_option_that_came_later_and_is_not_used_is_no_difference():
    today = cell(method="ppo", table="table1")
    result = measured(today, num_episodes=512)
    del result.config["ppo"]["separate_networks"]
    assert why_stale(result, today) is None
    variant = Variant(name="apart", changes=(("ppo.separate_networks", True),))
    used = Cell(key=today.key._replace(variant="apart"), variant=variant)
    assert why_stale(result, used) == (
        "was measured with another config (ppo.separate_networks was false, now true)"
    )
    del result.config["ppo"]["num_steps"]  # always was an option
    assert "the field ppo.num_steps is missing" in why_stale(result, today)


@pytest.mark.parametrize("changes", [{"method": None}, {"r_network": None}, {"world": []}])
def test_a_result_whose_config_is_none_is_stale(changes):
    today = cell(method="ppo+ec", table="table1")
    result = measured(today, num_episodes=512)
    result.config.update(changes)
    assert why_stale(result, today).startswith("was measured with another config (")


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
    with pytest.raises(ValueError, match="memory_capacity must be an integer"):
        cell(Variant(name="x", changes=(("bonus.memory_capacity", "all"),))).run()
    with pytest.raises(ValueError, match="steps are too few"):
        cell(steps=1000, method="ppo").run()
    for name in ("", "a:b", "a@b", "a__b", "a/b"):
        with pytest.raises(ValueError, match="a variant's name"):
            Variant(name=name)
    with pytest.raises(ValueError, match="measure must be one of"):
        cell(measure="luck")
    with pytest.raises(ValueError, match="the key names variant 'k-2', got None"):
        Cell(key=cell().key._replace(variant="k-2"))
