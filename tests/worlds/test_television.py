"""The randomised TV over a world one can reason about."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from episodic_curiosity.worlds.base import Step, WorldSpec
from episodic_curiosity.worlds.registry import make_world
from episodic_curiosity.worlds.television import PROGRAMMES, Television

IDLE = 2


class Grey:
    """Frames of one grey; an episode lasts five steps."""

    def __init__(self, num_envs: int = 3, size=(8, 12), view_size=None) -> None:
        self.size, self.view_size = size, view_size or size
        self.spec = WorldSpec(
            task="grey",
            num_envs=num_envs,
            device=torch.device("cpu"),
            observation_shape=(3, *self.size),
            observation_dtype=torch.uint8,
            view_shape=(3, *self.view_size),
            view_dtype=torch.uint8,
            num_actions=3,
            action_names=("left", "right", "idle"),
            episode_steps=5,
        )
        self.clock = 0

    def reset(self, seed: int | None = None) -> Step:  # noqa: ARG002, every grey is alike
        self.clock = 0
        return self._emit(first=True)

    def step(self, actions: Tensor) -> Step:
        assert actions.shape == (self.spec.num_envs,)
        self.clock = (self.clock + 1) % 5
        return self._emit(first=self.clock == 0)

    def close(self) -> None: ...

    def _emit(self, first: bool) -> Step:
        count = self.spec.num_envs
        observation = torch.full((count, 3, *self.size), 100, dtype=torch.uint8)
        view = observation
        if self.view_size != self.size:
            view = torch.full((count, 3, *self.view_size), 100, dtype=torch.uint8)
        flags = torch.full((count,), first)
        final = observation.clone() if first and self.clock == 0 else None
        return Step(
            observation=observation,
            view=view,
            reward=torch.zeros(count),
            first=flags,
            terminated=torch.zeros(count, dtype=torch.bool),
            truncated=flags,
            final_observation=final,
            final_view=None if final is None else view.clone(),
        )


def screen(frames: Tensor) -> Tensor:
    return frames[:, :, 4:, 6:]


def act(*actions: int) -> Tensor:
    return torch.tensor(actions)


@pytest.mark.parametrize("programme", PROGRAMMES)
def test_black_at_the_start_and_only_in_the_lower_right_quadrant(programme):
    tv = Television(Grey(), programme, seed=0)
    for _ in range(2):
        frames = tv.reset().observation
        assert (screen(frames) == 0).all()
        frames = tv.step(act(IDLE, IDLE, IDLE)).observation
        assert (screen(frames) != 0).any()
        screen(frames).fill_(100)
        assert (frames == 100).all()


@pytest.mark.parametrize("programme", PROGRAMMES)
def test_frames_of_floats_stay_within_0_and_1(programme):
    class Light(Grey):
        """Frames of floats."""

        def _emit(self, first: bool) -> Step:
            step = super()._emit(first)
            return step._replace(observation=step.observation / 255, view=step.view / 255)

    dark, light = (Television(world, programme, seed=0) for world in (Grey(), Light()))
    dark.reset()
    light.reset()
    shown = dark.step(act(IDLE, IDLE, IDLE)).observation
    assert torch.equal(light.step(act(IDLE, IDLE, IDLE)).observation, shown / 255)


def test_images_change_with_the_switch_alone():
    tv = Television(Grey(), "image-action-10", seed=0)
    assert tv.spec.action_names == ("left", "right", "switch")
    tv.reset()
    first = screen(tv.step(act(0, IDLE, 1)).observation)
    assert (first[0] == 0).all()
    assert (first[1] != 0).any()
    second = screen(tv.step(act(0, 1, IDLE)).observation)
    assert torch.equal(second[1], first[1])
    assert (second[2] != 0).any()


@pytest.mark.parametrize("count", [3, 10, 30])
def test_k_different_images_are_shown(count):
    tv = Television(Grey(num_envs=400, size=(32, 32)), f"image-action-{count}", seed=0)
    tv.reset()
    frames = tv.step(torch.full((400,), IDLE)).observation
    assert len(frames.flatten(1).unique(dim=0)) == count


def test_noise_is_new_at_every_step_and_differs_between_environments():
    tv = Television(Grey(size=(40, 40)), "noise", seed=0)
    assert tv.spec.action_names == ("left", "right", "idle")
    tv.reset()
    a, b = (tv.step(act(0, 0, 0)).observation[:, :, 20:, 20:] for _ in range(2))
    assert (a == b).float().mean() < 0.02
    assert (a[0] == a[1]).float().mean() < 0.02
    assert a.float().mean() == pytest.approx(127.5, abs=4)  # uniform per pixel
    assert a.float().std() == pytest.approx(73.9, abs=3)
    channels = a[:, :, 0].flatten(2)
    assert (channels[:, 0] == channels[:, 1]).float().mean() < 0.1


def test_noise_over_a_world_of_continuous_actions():
    world = Grey()
    world.spec = dataclasses.replace(
        world.spec, num_actions=0, action_shape=(2,), action_names=()
    )
    world.step = lambda _: world._emit(first=False)
    tv = Television(world, "noise", seed=0)
    tv.reset()
    a, b = (screen(tv.step(torch.zeros(3, 2)).observation) for _ in range(2))
    assert not torch.equal(a, b)


def test_noise_action_keeps_its_noise_until_switched():
    tv = Television(Grey(), "noise-action", seed=0)
    tv.reset()
    first = screen(tv.step(act(IDLE, IDLE, 0)).observation)
    second = screen(tv.step(act(0, IDLE, 0)).observation)
    assert torch.equal(first[0], second[0])
    assert not torch.equal(first[1], second[1])
    assert (second[2] == 0).all()


def test_an_ended_episode_keeps_its_picture_in_the_final_observation():
    tv = Television(Grey(), "image-action-3", seed=0)
    tv.reset()
    shown = tv.step(act(IDLE, IDLE, IDLE)).observation
    for _ in range(3):
        tv.step(act(0, 0, 0))
    last = tv.step(act(0, 0, 0))
    assert last.first.all()
    assert torch.equal(last.final_observation, shown)
    assert (screen(last.observation) == 0).all()


def test_both_sizes_show_the_same():
    tv = Television(Grey(size=(8, 8), view_size=(16, 16)), "noise", seed=0)
    tv.reset()
    step = tv.step(act(0, 0, 0))
    view = step.view[:, :, 8:, 8:].float()
    averaged = view.unfold(2, 2, 2).unfold(3, 2, 2).mean((-1, -2))
    assert (step.observation[:, :, 4:, 4:] - averaged).abs().max() <= 0.5


def test_own_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name, colour in (("a", (255, 0, 0)), ("b", (0, 255, 0)), ("c", (0, 0, 255))):
        pixels = np.full((10, 10, 3), colour, np.uint8)
        image.fromarray(pixels).save(tmp_path / f"{name}.png")
    tv = Television(Grey(num_envs=60), "image-action-3", seed=0, pictures=tmp_path)
    tv.reset()
    frames = screen(tv.step(torch.full((60,), IDLE)).observation)
    assert frames[:, :, 0, 0].unique(dim=0).tolist() == [[0, 0, 255], [0, 255, 0], [255, 0, 0]]
    with pytest.raises(ValueError, match="at least 10 pictures, got 3"):
        Television(Grey(), "image-action-10", seed=0, pictures=tmp_path)
    with pytest.raises(ValueError, match="noise"):
        Television(Grey(), "noise", seed=0, pictures=tmp_path)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="image-action-3, image-action-10"):
        Television(Grey(), "static", seed=0)
    maze = make_world("maze/sparse", num_envs=1, seed=0, num_levels=1, observation_size=(8, 8))
    with pytest.raises(ValueError, match="idle"):
        Television(maze, "noise-action", seed=0)
    with pytest.raises(ValueError, match="noise-action needs an idle action, which ant/"):
        make_world("ant/no-reward+noise-action", num_envs=1, seed=0)
    with pytest.raises(ValueError, match="neither be restored"):
        Television(Grey(), "noise", seed=0).state()


def test_make_world_adds_the_switch():
    options = {"num_envs": 2, "seed": 0, "num_levels": 2, "observation_size": (8, 8)}
    switched = make_world("maze/no-reward-no-fire+image-action-3", **options).spec
    assert switched.action_names[-1] == "switch"
    assert switched.num_actions == 9
    assert switched.task == "maze/no-reward-no-fire+image-action-3"
    assert make_world("maze/sparse+noise", **options).spec.num_actions == 9
    assert make_world("maze/sparse+noise-action", **options).spec.num_actions == 10
