"""N ants are N times the ant that everybody knows."""

import numpy as np
import pytest
import torch

from episodic_curiosity.worlds.ant import body
from episodic_curiosity.worlds.ant.body import Ants
from episodic_curiosity.worlds.ant.rules import draw_start

pytest.importorskip("mujoco.batch")

NUM_ANTS = 3


def make_ants(num_ants: int = NUM_ANTS) -> Ants:
    ants = Ants(num_ants)
    key = torch.arange(num_ants) + 5
    ants.place(torch.arange(num_ants), *draw_start(key, torch.ones_like(key)))
    return ants


def random_actions(steps: int, num_ants: int = NUM_ANTS) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    # Some are beyond what the motors can do.
    return 3 * torch.rand(steps, num_ants, 8, generator=generator) - 1.5


def test_each_ant_moves_like_gymnasiums_bit_for_bit_over_200_steps():
    pytest.importorskip("imageio", reason="Gymnasium's own ant needs imageio")
    gymnasium = pytest.importorskip("gymnasium")
    ants = make_ants()
    singles = [
        gymnasium.make("Ant-v5", include_cfrc_ext_in_observation=False).unwrapped
        for _ in range(NUM_ANTS)
    ]
    for row, single in enumerate(singles):
        single.reset(seed=0)
        single.set_state(ants.positions[row].numpy(), ants.velocities[row].numpy())
    for actions in random_actions(200):
        assert not ants.step(actions).any()
        for row, single in enumerate(singles):
            observation, *_ = single.step(actions[row].numpy())
            assert observation.shape == (27,)
            ours = torch.cat((ants.positions[row, 2:], ants.velocities[row]))
            np.testing.assert_array_equal(observation, ours.numpy())
            np.testing.assert_array_equal(single.data.qpos[:2], ants.positions[row, :2].numpy())
    for single in singles:
        single.close()


def test_putting_one_ant_down_anew_does_not_disturb_the_others():
    disturbed, alone = make_ants(), make_ants()
    row = torch.tensor([1])
    for time, actions in enumerate(random_actions(30)):
        if time % 7 == 3:
            disturbed.place(row, *draw_start(row + 40, row))
        disturbed.step(actions)
        alone.step(actions)
    assert torch.equal(disturbed.state[[0, 2]], alone.state[[0, 2]])
    assert not torch.equal(disturbed.state[1], alone.state[1])


def test_an_ant_put_down_anew_forgets_its_past():
    used, fresh = make_ants(), make_ants()
    for actions in random_actions(20):
        used.step(actions)
    key = torch.arange(NUM_ANTS) + 5
    used.place(torch.arange(NUM_ANTS), *draw_start(key, torch.ones_like(key)))
    for actions in random_actions(10):
        used.step(actions)
        fresh.step(actions)
    assert torch.equal(used.state, fresh.state)


def test_the_number_of_threads_changes_nothing():
    before = torch.get_num_threads()
    states = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        try:
            ants = make_ants()
        finally:
            torch.set_num_threads(before)
        for actions in random_actions(20):
            ants.step(actions)
        states.append(ants.state)
    assert torch.equal(*states)


def test_an_ant_that_cannot_be_followed_is_named_and_left_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo leaves a log where it is
    ants = make_ants()
    ants.velocities[1] = 1e12
    before = ants.positions.clone()
    assert ants.step(torch.zeros(NUM_ANTS, 8)).tolist() == [False, True, False]
    assert torch.equal(ants.positions[1], before[1])
    assert not torch.equal(ants.positions[0], before[0])


@pytest.mark.parametrize(
    ("cores", "of_torch", "expected"),
    [(16, 16, 12), (16, 7, 7), (5, 5, 4), (2, 2, 2), (2, 8, 4)],
)
def test_not_all_of_many_cores_step_ants(cores, of_torch, expected, monkeypatch):
    monkeypatch.setattr(body, "num_cores", lambda: cores)
    monkeypatch.setattr(torch, "get_num_threads", lambda: of_torch)
    assert body._num_threads() == expected
