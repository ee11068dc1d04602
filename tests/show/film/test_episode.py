"""What is noted and photographed while an agent plays."""

import numpy as np
import pytest
import torch

from episodic_curiosity.agent.collector import Collector
from episodic_curiosity.agent.network import Agent
from episodic_curiosity.bonus.nothing import NoBonus
from episodic_curiosity.bonus.oracle import GridOracle, OracleConfig
from episodic_curiosity.runs.evaluate import evaluate
from episodic_curiosity.show.film.episode import Episode, Filmed
from episodic_curiosity.worlds.base import Step, WorldSpec

pytestmark = pytest.mark.slow


class Corridor:
    """One environment that walks east, 1 a step, paid 1; episodes of 3, 4, 3 ... steps."""

    def __init__(self, num_envs: int = 1, *, reports_last: bool = True) -> None:
        self._reports_last = reports_last
        self.spec = WorldSpec(
            task="test/corridor",
            num_envs=num_envs,
            device=torch.device("cpu"),
            observation_shape=(1,),
            observation_dtype=torch.float32,
            view_shape=(1,),
            view_dtype=torch.float32,
            num_actions=2,
            episode_steps=4,
            has_position=True,
            oracle_cell=2.0,
        )

    def reset(self, seed: int | None = None) -> Step:  # noqa: ARG002
        self.clock, self.number = 0, 0
        return self._emit(0.0, first=True)

    def step(self, actions: torch.Tensor) -> Step:  # noqa: ARG002
        self.clock += 1
        last = torch.tensor([[float(self.clock), 0.0, 0.0]])
        if self.clock < 3 + self.number % 2:
            return self._emit(1.0, first=False)
        self.clock, self.number = 0, self.number + 1
        step = self._emit(1.0, first=True)._replace(terminated=torch.tensor([True]))
        return step._replace(final_position=last) if self._reports_last else step

    def close(self) -> None:
        pass

    def _emit(self, reward: float, *, first: bool) -> Step:
        place = torch.tensor([[float(self.clock), 0.0, 0.0]])
        no = torch.tensor([False])
        return Step(
            place[:, :1], place[:, :1], torch.tensor([reward]), ~no & first, no, no, place
        )


def filmed(**options) -> list[Episode]:
    """Ten steps of the corridor; the one camera shows how many steps the world has done."""
    world = Corridor()
    bonus = options.pop("bonus", None) or GridOracle(
        1, episode_steps=4, cell=2.0, config=OracleConfig(alpha=0.5)
    )
    settings = {"num_episodes": 2, "num_steps": 9, "num_shots": 9} | options
    camera = [lambda _, step: np.full((1, 1, 3), int(step.position[0, 0]), np.uint8)]
    watched = Filmed(world, bonus, camera, **settings)
    watched.reset()
    for _ in range(10):
        watched.step(torch.tensor([0]))
    return watched.episodes


def shown(episode: Episode) -> list[tuple[int, int]]:
    return [(shot.step, int(shot.pictures[0].max())) for shot in episode.shots]


def test_an_episode_is_noted_from_its_start_to_its_last_step():
    first, second = filmed()
    assert (first.num_steps, second.num_steps) == (3, 4)
    assert first.reward == [0, 1, 2, 3]
    assert first.places == [(0, 0), (1, 0), (2, 0), (3, 0)]  # the last is the final position
    assert first.coverage == [1, 1, 2, 2]
    assert first.bonus == [0, 0, 0.5]
    assert second.coverage == [1, 1, 2, 2, 3]
    # When the last step is done the world is in its next episode: the picture is that before.
    assert shown(first) == [(0, 0), (1, 1), (2, 2), (3, 2)]
    assert not any(first.remembered)


@pytest.mark.parametrize(("reports_last", "wanted"), [(True, [2, 3]), (False, [2, 2])])
def test_training_evaluation_and_film_count_the_same_coverage(reports_last, wanted):
    """Places 0 to 3, then 0 to 4, in cells of 2: the last step of the second enters a cell."""
    world = Corridor(reports_last=reports_last)
    watched = Filmed(
        world, NoBonus(1, None, "cpu"), [], num_episodes=2, num_steps=9, num_shots=9
    )
    agent = Agent((1,), 2)
    evaluation = evaluate(agent, watched, num_episodes=2)
    assert evaluation.coverage.tolist() == wanted
    assert [episode.coverage[-1] for episode in watched.episodes] == wanted
    first, second = watched.episodes
    assert first.coverage == [1, 1, 2, 2]
    assert second.coverage == [1, 1, 2, 2, wanted[1]]

    collector = Collector(world, agent, NoBonus(1, None, "cpu"), 1, seed=0)
    collector.reset()
    told = []
    for _ in range(4 + world.spec.episode_steps):
        collector.collect()
        told.append(collector.tally.take().get("coverage"))
    assert [coverage for coverage in told if coverage is not None][:2] == wanted


def test_a_film_is_over_with_the_last_step_that_is_wanted():
    world = Corridor()
    settings = {"num_episodes": 2, "num_steps": 2, "num_shots": 9}
    watched = Filmed(world, NoBonus(1, None, "cpu"), [], **settings)
    watched.reset()
    steps = 0
    while not watched.is_over:
        watched.step(torch.tensor([0]))
        steps += 1
    assert steps == 3 + 2
    assert [episode.num_steps for episode in watched.episodes] == [2, 2]


def test_long_episodes_are_thinned_evenly():
    _, second = filmed(num_shots=3)
    assert shown(second) == [(0, 0), (2, 2), (4, 2)]
    assert len(second.reward) == 5  # numbers are all kept
    assert [shown(episode) for episode in filmed(num_shots=2)] == [
        [(0, 0), (3, 0)],
        [(0, 0), (4, 0)],
    ]


def test_only_the_first_steps_and_episodes_are_kept():
    (only,) = filmed(num_episodes=1, num_steps=2)
    assert only.reward == [0, 1, 2]
    assert shown(only) == [(0, 0), (1, 1), (2, 2)]
    (only,) = filmed(num_episodes=1, num_steps=2, num_shots=2)
    assert shown(only) == [(0, 0), (2, 2)]  # the episode goes on: there is a last picture
    assert not only.has_ended
    with pytest.raises(ValueError, match="one environment can be filmed, got 3"):
        Filmed(
            Corridor(3), NoBonus(1, None, "cpu"), [], num_episodes=1, num_steps=1, num_shots=2
        )
