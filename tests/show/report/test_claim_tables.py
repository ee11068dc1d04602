"""The paper's claims in words: ratios, and why there is none."""

import dataclasses
from pathlib import Path

import pytest

from episodic_curiosity.experiments.claims import CLAIMS, Claim
from episodic_curiosity.experiments.results import Result, write_measured
from episodic_curiosity.show.report.claim_tables import (
    READING,
    SUCCESS,
    claims_table,
    measured_ratio,
    open_claims_table,
    steps_to_success,
)
from episodic_curiosity.show.report.grids import lay_out
from tests.show.report.fixture import cell, grid_of, write, write_results

ARRIVES = [
    {"steps": steps, "reward": reward}
    for steps, reward in ((10, 0.99), (20, 0.5), (30, 0.96), (40, 1.0), (50, 1.0))
]
NEVER = ARRIVES[:2]


def claim_of(experiment: str, column: str, worse: str) -> Claim:
    (claim,) = (
        claim
        for claim in CLAIMS
        if (claim.experiment, claim.column, claim.worse) == (experiment, column, worse)
    )
    return claim


def measured(folder: Path, claim: Claim):
    """The ratio, or why there is none; as the table shows it, too."""
    grids = lay_out(folder).grids
    (grid,) = (grid for grid in grids if grid.experiment.name == claim.experiment)
    task = f"{grid.world}/{claim.column}"
    found = measured_ratio(claim, cell(grid, claim.better, task), cell(grid, claim.worse, task))
    if isinstance(found, str):
        assert found in [row[1].text for row in claims_table(grids).rows]
    return found


def rewrite(path: Path, timing: dict | None = None, **changes) -> None:
    """Changes a result, and its timing where one is given."""
    seconds = {"seconds": 1.0, "steps_per_second": 9.0, "hardware": "a GPU"}
    result = dataclasses.replace(Result.read(path), **changes)
    write_measured(path, result, timing or seconds)


def test_claims_are_ratios(tmp_path):
    write_results(tmp_path)
    rows = claims_table(lay_out(tmp_path).grids).rows
    by_claim = {row[0].notes[0]: row[1:] for row in rows}
    more_goals = by_claim["ppo+ec against ppo+icm in table1, very-sparse"]
    assert more_goals[0].text.startswith("1.97 (")  # 26.8 / 13.6
    assert more_goals[0].notes == [
        "maze/very-sparse",
        "preset gpu, 20,000,000 steps",
        "5 and 5 seeds",
    ]
    assert more_goals[1:] == ["at least 2", "2.21"]  # 24.7 / 11.2
    missing = {
        row[0].notes[0]: row[1:] for row in open_claims_table(lay_out(tmp_path).grids).rows
    }
    assert missing["ppo+ec against ppo+icm in vizdoom, sparse"] == ["at least 2", "-"]
    assert not by_claim.keys() & missing.keys()
    assert len(by_claim.keys() | missing.keys()) == len(CLAIMS)


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        (3.0, 0.0, "infinite: ppo+icm got 0"),
        (0.0, 0.0, "no ratio: ppo+ec got 0.00, ppo+icm 0.00"),
        (3.0, -1.5, "no ratio: ppo+ec got 3.00, ppo+icm -1.50"),
    ],
)
def test_nothing_is_divided_by_nothing(tmp_path, ours, theirs, text):
    for method, value in (("ppo+ec", ours), ("ppo+icm", theirs)):
        write(tmp_path, "table1", method, "very-sparse", value)
    assert measured(tmp_path, claim_of("table1", "very-sparse", "ppo+icm")) == text


def test_one_seed_of_each_makes_a_ratio_without_an_interval(tmp_path):
    for method, value in (("ppo+ec", 6.0), ("ppo+icm", 3.0)):
        write(tmp_path, "table1", method, "very-sparse", value)
    assert measured(tmp_path, claim_of("table1", "very-sparse", "ppo+icm")).value == 2.0
    assert "2.00" in [row[1].text for row in claims_table(lay_out(tmp_path).grids).rows]


def test_steps_until_the_reward_stays(tmp_path):
    result = Result.read(write(tmp_path, "vizdoom", "ppo+ec", "sparse", 1.0))

    def steps(curve):
        return steps_to_success(dataclasses.replace(result, curve=curve))

    assert steps([*ARRIVES, {"steps": 60}]) == 30
    assert steps(NEVER) is None
    assert steps([{"steps": 0, "reward": 1.0}, {"steps": 10, "reward": 1.0}]) == 0
    assert f"{SUCCESS:g} or more" in READING


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        ([ARRIVES] * 3, [NEVER, ARRIVES, NEVER], "ppo+icm never does (2 of 3 seeds)"),
        ([NEVER] * 3, [ARRIVES] * 3, "ppo+ec never does"),
        ([NEVER, ARRIVES], [NEVER] * 2, "ppo+icm never does; ppo+ec never does (1 of 2 seeds)"),
    ],
)
def test_who_never_gets_there(tmp_path, ours, theirs, text):
    for method, curves in (("ppo+ec", ours), ("ppo+icm", theirs)):
        for seed, curve in enumerate(curves):
            rewrite(write(tmp_path, "vizdoom", method, "sparse", 1.0, seed), curve=curve)
    assert measured(tmp_path, claim_of("vizdoom", "sparse", "ppo+icm")) == text


def test_sooner_is_by_how_many_times_fewer_steps(tmp_path):
    late = [{"steps": 90, "reward": 1.0}, {"steps": 95, "reward": 1.0}]
    for method, curve in (("ppo+ec", ARRIVES), ("ppo+icm", late)):
        rewrite(write(tmp_path, "vizdoom", method, "sparse", 1.0), curve=curve)
    assert measured(tmp_path, claim_of("vizdoom", "sparse", "ppo+icm")).value == 3.0


def test_slower_is_by_the_seconds_of_whole_runs(tmp_path):
    # While training the one is as fast as the other; it waits for its R-network before.
    for method, seconds in (("ppo", 100.0), ("ppo+ec", 250.0)):
        timing = {"seconds": seconds, "steps_per_second": 9.0, "hardware": "a GPU"}
        rewrite(write(tmp_path, "speed", method, "sparse", 1e6), timing)
    claim = claim_of("speed", "sparse", "ppo+ec")
    write(tmp_path, "speed", "ppo", "sparse", 1e6, 1).with_suffix(".timing.json").unlink()
    assert measured(tmp_path, claim).value == 2.5
    notes = [row[1].notes for row in claims_table(lay_out(tmp_path).grids).rows]
    assert ["1 and 1 seeds"] in [note[2:] for note in notes]  # the other ppo's time is unknown
    for path in (tmp_path / "speed").glob("*ppo_ec*.timing.json"):
        path.unlink()
    assert measured(tmp_path, claim) == "no timing"
    assert grid_of(lay_out(tmp_path), "speed").measured
