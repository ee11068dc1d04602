"""The Grid Oracle on a path, and visited cells beside a set of tuples."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from episodic_curiosity.bonus.base import BonusContext, shown
from episodic_curiosity.bonus.coverage import VisitedCells
from episodic_curiosity.bonus.oracle import GridOracle, OracleConfig
from episodic_curiosity.worlds.base import Step
from tests.worlds.on_paper import spec


def test_a_path_by_hand():
    """Cells of 30: out along x, back, up along y, and over the origin, where cells are wide."""
    oracle = GridOracle(1, episode_steps=12, cell=30.0, config=OracleConfig(alpha=0.5))
    path = [
        ([10.0, 10.0, 50.0], True, 0.0, 1),  # opens the episode: visited, not paid
        ([29.9, 10.0, 50.0], False, 0.0, 1),
        ([30.0, 10.0, 50.0], False, 0.5, 2),
        ([59.9, 29.9, 59.9], False, 0.0, 2),
        ([10.0, 10.0, 50.0], False, 0.0, 2),
        ([10.0, 30.0, 50.0], False, 0.5, 3),
        ([-29.9, 10.0, 50.0], False, 0.0, 3),  # truncated toward zero: still the first cell
        ([-30.0, 10.0, 50.0], False, 0.5, 4),
        ([-30.0, 10.0, 60.0], False, 0.5, 5),  # z counts too
        ([-30.0, 10.0, 60.0], True, 0.0, 1),  # the next episode opens where this one was
        ([10.0, 10.0, 50.0], False, 0.5, 2),
    ]
    for position, first, bonus, count in path:
        paid = oracle.bonus_same_step(torch.tensor([position]), torch.tensor([first]))
        assert paid.tolist() == [bonus]
        assert oracle.cells.count.tolist() == [count]
    metrics = oracle.metrics()
    assert metrics["bonus_mean"] == pytest.approx(5 * 0.5 / 9)
    assert metrics["bonus_spread"] == pytest.approx((5 * 0.25 / 9 - (2.5 / 9) ** 2) ** 0.5)


POSITIONS = st.lists(
    st.tuples(*[st.floats(-200, 200, width=32)] * 3, st.booleans()), min_size=2, max_size=2
)


@settings(max_examples=50, deadline=None)
@given(cell=st.sampled_from([5.0, 30.0, 0.3]), steps=st.lists(POSITIONS, max_size=25))
def test_any_path_beside_a_set_of_tuples(cell, steps):
    cells = VisitedCells(2, episode_steps=25, cell=cell)
    sets: list[set[tuple[int, ...]]] = [set(), set()]
    for now in steps:
        first = torch.tensor([row[3] for row in now])
        new = cells.visit(torch.tensor([row[:3] for row in now]), first)
        for env, (*position, begins) in enumerate(now):
            if begins:
                sets[env] = set()
            here = tuple(int(value / cell) for value in position)
            assert new[env].item() == (here not in sets[env])
            sets[env].add(here)
    assert cells.count.tolist() == [len(visited) for visited in sets]


def test_worlds_of_any_extent():
    cells = VisitedCells(1, episode_steps=20, cell=30.0)
    no = torch.tensor([False])
    for x in (0.0, 3e7, -3e7, 3e7 - 32, 1e9, -1e9):
        for y in (0.0, -3e7):
            assert cells.visit(torch.tensor([[x, y, 0.0]]), no).item()
    assert not cells.visit(torch.tensor([[2e9, 0.0, 0.0]]), no).item()  # beyond the border


def test_an_episode_longer_than_promised_finds_nothing_new_at_last():
    cells = VisitedCells(2, episode_steps=3, cell=1.0)
    found = []
    for time in range(7):
        position = torch.tensor([[float(time), 0.0, 0.0], [0.0, 0.0, 0.0]])
        found.append(cells.visit(position, torch.tensor([time == 0, time == 5])).tolist())
    assert [one for one, _ in found] == [True] * 4 + [False] * 3
    assert [other for _, other in found] == [True] + [False] * 4 + [True, False]
    assert cells.count.tolist() == [4, 1]


def test_the_last_place_of_an_episode_is_paid_where_it_is_shown():
    """Two environments; the first ends in a new cell, and opens anew in that of the second."""
    oracle = GridOracle(2, episode_steps=12, cell=1.0, config=OracleConfig(alpha=1.0))
    oracle.begin(torch.zeros(2, 3))
    assert oracle.bonus(torch.full((2, 3), 5.0)).tolist() == [1.0, 1.0]
    ended = torch.tensor([True, False])
    oracle.begin(torch.tensor([[7.0, 0.0, 0.0], [torch.nan] * 3]), where=ended)
    assert oracle.cells.count.tolist() == [1, 2]
    assert oracle.bonus(torch.full((2, 3), 5.0), where=~ended).tolist() == [0.0, 0.0]
    assert oracle.bonus(torch.full((2, 3), 5.0)).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("cell", "bonus"), [(5.0, 1.0), (None, 0.0)])
def test_cells_of_another_size_than_the_worlds(cell, bonus):
    world = spec(num_envs=1, oracle_cell=30.0)
    config = OracleConfig(alpha=1.0, cell=cell)
    oracle = GridOracle.for_run(config, world, BonusContext(seed=0))
    oracle.begin(torch.tensor([[0.0, 0.0, 0.0]]))
    assert oracle.bonus(torch.tensor([[6.0, 0.0, 0.0]])).tolist() == [bonus]


def test_a_world_without_positions():
    with pytest.raises(ValueError, match="paper/world does not tell positions"):
        GridOracle.for_run(OracleConfig(), spec(oracle_cell=0.0), BonusContext(seed=0))
    no = torch.tensor([False])
    step = Step(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1), no, no, no)
    with pytest.raises(ValueError, match="needs a position, got a step without it"):
        shown(GridOracle(1, episode_steps=3, cell=1.0), step)


def test_bad_input():
    cells = VisitedCells(2, episode_steps=3, cell=1.0)
    yes = torch.ones(2, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"position must have shape \(2, 3\), got \(2, 2\)"):
        cells.visit(torch.zeros(2, 2), yes)
    with pytest.raises(TypeError, match=r"first must be of dtype bool, got torch.int64"):
        cells.visit(torch.zeros(2, 3), yes.long())
    with pytest.raises(ValueError, match="alpha must be a finite number above 0, got -1"):
        OracleConfig(alpha=-1)
    with pytest.raises(ValueError, match="cell must be a finite number above 0, got 0"):
        OracleConfig(cell=0)
    with pytest.raises(ValueError, match="episode_steps must be an integer of at least 1"):
        VisitedCells(2, episode_steps=0, cell=1.0)
