"""The extract of the paper's numbers, beside values read in its text by hand."""

import pytest

from episodic_curiosity.experiments.claims import CLAIMS, claimed_cells
from episodic_curiosity.experiments.published import (
    find_published,
    published_claims,
    published_numbers,
)
from episodic_curiosity.experiments.tables import EXPERIMENTS

# Experiment, task, row; then mean, spread and seeds as the paper prints them, and where.
READ_BY_HAND = [
    ("table1", "sparse", "ppo", 27.0, 5.1, 30, "Table 1"),
    ("table1", "very-sparse", "ppo+icm", 11.2, 3.9, 30, "Table 1"),
    ("table1", "sparse-doors", "ppo+eco", 19.8, 0.5, 30, "Table 1"),
    ("table1", "no-reward", "ppo+ec", 475, 8, 30, "Table 1"),
    ("table1", "no-reward-no-fire", "ppo+oracle", 795, 3, 30, "Table 1"),
    ("table1", "dense-1", "ppo+ec", 19.9, 0.7, 30, "Table 1"),
    ("table1", "dense-2", "ppo+oracle", 8.97, 0.04, 30, "Table 1"),
    ("vizdoom", "very-sparse", "ppo+ec", 1, None, 3, "Figure 6 and section 4.1"),
    ("ant", "no-reward", "ppo+1", 1.7, 0.06, 30, "Table S1"),
    ("ant", "escape-circle", "ppo+ec", 6.53, 3.57, 10, "Table S1"),
    ("universal", "no-reward", "universal", 348, 8, None, "Table S6"),
    ("transfer", "very-sparse", "from dense-2", 0.8, 0.5, None, "Table S7"),
    ("threshold", "very-sparse", "k = 4", 31.1, 1.2, None, "Table S8"),
    ("memory", "no-reward", "350 slots", 459, 6, None, "Table S9"),
    ("budget", "very-sparse", "100K", 12.2, 1.3, None, "Table S10"),
    ("parts", "no-reward", "no comparator", 48, 3, None, "Table S11"),
    ("accuracy", "sparse", "shared dot", 0.78, None, None, "section S5.5"),
    ("television-sparse", "sparse+noise", "ppo+eco", 28.2, 2.4, 30, "Table S12"),
    ("television-very-sparse", "very-sparse+image-action-30", "ppo", 6.3, 1.8, 30, "Table S13"),
]
SIZES = {
    "table1": 35,
    "vizdoom": 6,
    "ant": 6,
    "universal": 6,
    "transfer": 8,
    "threshold": 12,
    "memory": 8,
    "budget": 10,
    "parts": 8,
    "accuracy": 3,
    "television-sparse": 30,
    "television-very-sparse": 30,
    "speed": 3,
}


@pytest.mark.parametrize("line", READ_BY_HAND, ids=lambda line: " ".join(line[:3]))
def test_the_extract_says_what_the_paper_says(line):
    assert find_published(*line[:3]) == line[3:]


def test_every_number_belongs_to_a_place_of_an_experiment():
    places = {
        (experiment.name, column, row.name)
        for experiment in EXPERIMENTS.values()
        for column in experiment.columns
        for row in experiment.rows
    }
    assert published_numbers().keys() <= places
    sizes = dict.fromkeys(EXPERIMENTS, 0)
    for name, _, _ in published_numbers():
        sizes[name] += 1
    assert sizes == SIZES


def test_what_two_tables_print_is_the_same_in_both():
    """Rows for comparison are copies of Table 1's; so a slip in either would show."""
    num_copies = 0
    for experiment in EXPERIMENTS.values():
        for row in experiment.rows:
            for task in experiment.tasks(experiment.worlds[0]):
                key = experiment.cell(row, task, "gpu", 20_000_000, 0).key
                if row.variant is None and key.table == "table1" != experiment.name:
                    first = find_published("table1", task.partition("/")[2], row.method)
                    copy = experiment.published(row, task)
                    assert first is not None
                    assert copy is not None
                    assert copy[:2] == first[:2]
                    num_copies += 1
    # universal 4, transfer 2, threshold 2, memory 2, budget 2, parts 2, televisions 5 each
    assert num_copies == 24


def test_claims_are_ratios_of_published_numbers():
    by_name = {(claim.name, claim.column, claim.better): claim for claim in CLAIMS}
    goals = by_name["more goals", "very-sparse", "ppo+ec"]
    assert (goals.at_least, goals.source) == (2, "section 1")
    assert goals.published == pytest.approx(24.7 / 11.2)
    area = by_name["more area", "no-reward", "ppo+ec"]
    assert area.at_least == 4
    assert area.metric == "coverage"
    assert area.published == pytest.approx(475 / 72)
    dense = by_name["dense tasks", "dense-2", "ppo+eco"]
    assert dense.at_least is None
    assert dense.published == pytest.approx(9.60 / 9.41)
    doom = by_name["faster on ViZDoom", "sparse", "ppo+ec"]
    assert (doom.at_least, doom.published) == (2, None)
    slower = [claim.published for claim in CLAIMS if claim.metric == "seconds_per_step"]
    assert slower == [1.09, 1.84]
    assert {claim.name for claim in CLAIMS} == published_claims().keys()


def test_the_cells_of_claims_are_those_of_the_tables_each_once():
    cells = list(claimed_cells("maze", "gpu", 20_000_000, 2))
    # very-sparse 2, no-reward 2, no-reward-no-fire 2, dense 3 each, speed 3; two seeds
    assert len(cells) == len({cell.key for cell in cells}) == 2 * 15
    assert {cell.key.table for cell in cells} == {"table1", "speed"}
    assert {cell.key.table for cell in claimed_cells("vizdoom", "gpu", 10**6, 1)} == {"vizdoom"}
