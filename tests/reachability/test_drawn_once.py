"""Views that are kept once drawn: the same views, each drawn once."""

import pytest
import torch

from episodic_curiosity import RNetwork
from episodic_curiosity.reachability import drawn_once
from episodic_curiosity.reachability.drawn_once import DrawnOnce, keep_drawn
from episodic_curiosity.reachability.experience import Frames, Mixture, Window
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.reachability.training import fit_r_network


class Redrawn(Frames):
    """Frames that count how often they are drawn."""

    redraws = True

    def __init__(self, num_steps: int, num_envs: int) -> None:
        generator = torch.Generator().manual_seed(0)
        shape = (num_steps, num_envs, 3, 17, 22)
        views = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        first = torch.zeros(num_steps, num_envs, dtype=torch.bool)
        first[0] = True
        super().__init__(views, first)
        self.drawn: list[tuple[int, int]] = []

    def views(self, time: torch.Tensor, env: torch.Tensor) -> torch.Tensor:
        self.drawn += list(zip(time.tolist(), env.tolist(), strict=True))
        return super().views(time, env)


def test_each_view_is_drawn_once():
    redrawn = Redrawn(5, 3)
    kept = DrawnOnce(redrawn, lambda views: views)
    redrawn.drawn.clear()  # one is drawn for its shape
    for time, env in (([4, 0, 1], [2, 0, 1]), ([1, 4, 3], [1, 2, 0])):
        time, env = torch.tensor(time), torch.tensor(env)
        assert torch.equal(kept.views(time, env), redrawn.all_views[time, env])
    assert redrawn.drawn == [(4, 2), (0, 0), (1, 1), (3, 0)]


def test_only_redrawn_views_that_are_wanted_again_and_fit(monkeypatch):
    redrawn = Redrawn(5, 3)
    window = Window(redrawn, 1, 5)
    assert isinstance(keep_drawn(window, torch.clone, 24), DrawnOnce)
    assert isinstance(keep_drawn(Mixture([redrawn, redrawn]), torch.clone, 60), DrawnOnce)
    assert keep_drawn(window, torch.clone, 23) is window  # not twice each
    frames = Frames(redrawn.all_views, redrawn.first)
    assert keep_drawn(frames, torch.clone, 1000) is frames
    num_bytes = 12 * 3 * 17 * 22
    monkeypatch.setattr(drawn_once, "free_bytes", lambda _: 4 * num_bytes - 1)
    assert keep_drawn(window, torch.clone, 24) is window
    monkeypatch.setattr(drawn_once, "free_bytes", lambda _: 4 * num_bytes)
    assert isinstance(keep_drawn(window, torch.clone, 24), DrawnOnce)


@pytest.mark.parametrize("embedder", ["small", "tiny"])
def test_a_fit_learns_the_same_from_kept_views(embedder):
    weights = []
    for redraws in (True, False):
        torch.manual_seed(0)
        r_network = RNetwork((3, 17, 22), embedder=embedder, embedding_size=8)
        experience = Redrawn(120, 2)
        experience.redraws = redraws
        config = FitConfig(iterations=30, batch_size=16, pairs=PairsConfig(k=2, gamma=2))
        fit_r_network(r_network, experience, config, progress=False)
        weights.append(r_network.state_dict())
        # Else 960 for training. Others are for the held-out accuracy and to check shapes.
        assert (len(experience.drawn) < 500) == redraws
    for name, weight in weights[0].items():
        assert torch.equal(weight, weights[1][name])
