"""Gymnasium's environments as worlds: the conformance suite and what spaces become."""

import os
import signal
import sys
from contextlib import closing
from copy import copy
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

gymnasium = pytest.importorskip("gymnasium")
from gymnasium import spaces  # noqa: E402

from episodic_curiosity.testing.worlds import NUM_ENVS, WorldConformance  # noqa: E402
from episodic_curiosity.worlds.base import SPLITS, World  # noqa: E402
from episodic_curiosity.worlds.gymnasium.spaces import _grey  # noqa: E402
from episodic_curiosity.worlds.registry import make_world  # noqa: E402

MAZE = "gym/EpisodicCuriosity/MazeSparse-v0"


class Counter(gymnasium.Env[Any, Any]):
    """Emits what it is told to, counts its steps and is over after `ends_after` of them."""

    def __init__(
        self,
        observation_space: Any = spaces.Discrete(5),  # noqa: B008
        action_space: Any = spaces.Discrete(2),  # noqa: B008
        ends_after: int = 3,
        position: Any = None,
    ) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self._ends_after, self._position = ends_after, position
        self._steps = 0
        self.action: Any = None

    def _emit(self) -> tuple[Any, dict[str, Any]]:
        space = self.observation_space
        if isinstance(space, spaces.Discrete):
            observation: Any = self._steps
        elif isinstance(space, spaces.Box):
            observation = np.full(space.shape, self._steps, space.dtype)
        else:
            observation = space.sample()
        return observation, {} if self._position is None else {"position": copy(self._position)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self._steps = 0
        return self._emit()

    def step(self, action):
        assert self.action_space.contains(action)
        self.action = action
        self._steps += 1
        observation, info = self._emit()
        return observation, 1.0, self._steps >= self._ends_after, False, info


@pytest.fixture(autouse=True)
def _registered():
    gymnasium.register("Tests/Counter-v0", entry_point=Counter)
    yield
    del gymnasium.registry["Tests/Counter-v0"]


def counter(num_envs: int = 2, **options: Any) -> World:
    return make_world("gym/Tests/Counter-v0", num_envs=num_envs, seed=0, **options)


def zeros(world: World) -> torch.Tensor:
    spec = world.spec
    if spec.num_actions:
        return torch.zeros(spec.num_envs, dtype=torch.int64)
    return torch.zeros(spec.num_envs, *spec.action_shape)


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("gym/CartPole-v1", {"episode_steps": 7}),
        ("gym/Pendulum-v1", {"episode_steps": 5}),
        (
            MAZE,
            {
                "episode_steps": 7,
                "num_levels": 20,
                "observation_size": (24, 20),
                "view_size": (18, 24),
                "oracle_cell": 30.0,
            },
        ),
        (
            MAZE,
            {
                "vectorization": "sync",
                "episode_steps": 7,
                "num_levels": 20,
                "observation_size": (24, 20),
            },
        ),
    ],
    ids=["CartPole", "Pendulum", "Maze", "Mazes one by one"],
    scope="class",
)
class TestGymnasium(WorldConformance):
    @pytest.fixture(autouse=True)
    def _case(self, task: str, options: dict[str, Any]):
        self.task, self.options = task, options

    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        return make_world(self.task, num_envs=num_envs, seed=seed, **self.options)


@pytest.mark.slow
class TestProcesses(WorldConformance):
    """The same in processes of their own."""

    options: ClassVar[dict[str, Any]] = {"vectorization": "async", "episode_steps": 7}

    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        return make_world("gym/CartPole-v1", num_envs=num_envs, seed=seed, **self.options)


def test_processes_leave_ctrl_c_to_the_one_who_started_them():
    heard = signal.getsignal(signal.SIGINT)
    world = make_world("gym/CartPole-v1", num_envs=2, seed=0, vectorization="async")
    assert signal.getsignal(signal.SIGINT) is heard
    world.reset()
    for pid in world._env.pids:
        os.kill(pid, signal.SIGINT)  # as a terminal does it
    assert not world.step(zeros(world)).first.any()
    world.close()


def test_a_discrete_observation_is_one_hot_and_the_last_one_is_kept():
    world = counter()
    assert (world.spec.observation_shape, world.spec.num_actions) == ((5,), 2)
    assert world.reset().observation.tolist() == [[1.0, 0, 0, 0, 0]] * 2
    for number in (1, 2):
        step = world.step(zeros(world))
        assert step.observation[1].argmax() == number
        assert step.final_observation is None
    step = world.step(zeros(world))
    assert step.terminated.all()
    assert step.observation.argmax(dim=1).tolist() == [0, 0]  # of the next episode already
    assert step.final_observation.argmax(dim=1).tolist() == [3, 3]
    assert step.view is step.observation
    assert step.final_view is step.final_observation
    assert world.step(zeros(world)).observation.argmax(dim=1).tolist() == [1, 1]


def test_an_end_on_the_last_step_of_the_clock_is_the_tasks():
    world = counter(episode_steps=3)
    world.reset()
    for _ in range(3):
        step = world.step(zeros(world))
    assert step.terminated.all()
    assert not step.truncated.any()


def test_the_clock_is_the_environments_own_or_ours_where_it_has_none():
    assert counter().spec.episode_steps == 27_000
    world = make_world("gym/CartPole-v1", num_envs=1, seed=0)
    assert world.spec.episode_steps == 500
    world = make_world(MAZE, num_envs=1, seed=0, num_levels=2)
    assert world.spec.episode_steps == 1800


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((40, 48, 3), np.uint8, (3, 40, 48)),
        ((40, 48), np.uint8, (1, 40, 48)),
        ((4, 40, 48), np.uint8, (4, 40, 48)),  # stacked grey frames
        ((2, 40, 48, 3), np.uint8, (6, 40, 48)),  # stacked coloured frames
        ((40, 48, 3), np.float32, (3, 40, 48)),
        ((128,), np.uint8, (128,)),
        ((3, 2), np.float64, (6,)),
        ((), np.float32, (1,)),
        ((7,), np.int64, (7,)),
    ],
)
def test_shapes_of_boxes(shape, dtype, expected):
    high = 255 if dtype == np.uint8 else 1000
    world = counter(observation_space=spaces.Box(0, high, shape, dtype))
    assert world.spec.observation_shape == expected
    assert world.spec.observation_dtype == (torch.uint8 if dtype == np.uint8 else torch.float32)
    world.reset()
    observation = world.step(zeros(world)).observation
    assert observation.shape == (2, *expected)
    assert (observation == 1).all()


def test_channels_keep_their_pixels():
    class Picture(Counter):
        def _emit(self):
            return np.arange(40 * 48 * 3, dtype=np.uint32).astype(np.uint8).reshape(
                40, 48, 3
            ), {}

    gymnasium.register("Tests/Picture-v0", entry_point=Picture)
    space = spaces.Box(0, 255, (40, 48, 3), np.uint8)
    options = {"num_envs": 1, "seed": 0, "observation_space": space}
    frame = make_world("gym/Tests/Picture-v0", **options).reset().observation[0]
    assert frame[2, 5, 7] == (5 * 48 * 3 + 7 * 3 + 2) % 256
    world = make_world(
        "gym/Tests/Picture-v0", observation_size=(20, 24), view_size=(10, 12), **options
    )
    del gymnasium.registry["Tests/Picture-v0"]
    step = world.reset()
    assert world.spec.observation_shape == step.observation.shape[1:] == (3, 20, 24)
    assert world.spec.view_shape == step.view.shape[1:] == (3, 10, 12)
    expected = frame[:, 2:4, 6:8].float().mean(dim=(1, 2)).round()
    assert torch.equal(step.observation[0, :, 1, 3].float(), expected)


def test_dictionaries_are_flattened():
    space = spaces.Dict({"place": spaces.Discrete(3), "speed": spaces.Box(-1, 1, (2,))})
    world = counter(observation_space=space)
    assert world.spec.observation_shape == (5,)
    observation = world.reset().observation
    assert observation[:, :3].sum(dim=1).tolist() == [1.0, 1.0]
    for _ in range(3):
        step = world.step(zeros(world))
    assert step.final_observation.shape == (2, 5)


FRAME = spaces.Box(0, 255, (8, 9, 3), np.uint8)
VECTOR = spaces.Box(-1, 1, (2,))
TEXT = spaces.Sequence(spaces.Discrete(2))  # cannot be flattened


@pytest.mark.parametrize(
    ("parts", "options", "shape"),
    [
        ({"image": FRAME, "depth": FRAME, "text": TEXT}, {}, (3, 8, 9)),
        ({"camera": FRAME, "speed": VECTOR}, {}, (3, 8, 9)),  # the only frame
        ({"speed": VECTOR, "text": TEXT}, {}, (2,)),  # the only Box, for want of a vector
        ({"image": FRAME, "speed": VECTOR}, {"key": "speed"}, (2,)),
        ({"image": FRAME, "place": spaces.Discrete(4)}, {"key": "place"}, (4,)),
        ({"speed": VECTOR, "place": spaces.Discrete(4)}, {}, (6,)),
    ],
)
@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_parts_of_dictionaries(parts, options, shape, vectorization):
    space = spaces.Dict(parts)
    with closing(
        counter(observation_space=space, vectorization=vectorization, **options)
    ) as world:
        assert world.spec.observation_shape == shape
        assert world.reset().observation.shape == (2, *shape)
        for _ in range(3):
            step = world.step(zeros(world))
        assert step.final_view.shape == (2, *shape)


def test_grey_frames():
    space = spaces.Box(0, 255, (2, 40, 48, 3), np.uint8)  # a stack of two
    world = counter(observation_space=space, grey=True, ends_after=9)
    assert world.spec.view_shape == (2, 40, 48)
    colours = torch.zeros(1, 6, 1, 2, dtype=torch.uint8)
    colours[0, :, 0, 1] = torch.tensor([200, 100, 50, 0, 0, 255])
    # 0.299 * 200 + 0.587 * 100 + 0.114 * 50 = 124.2; 0.114 * 255 = 29.07
    assert _grey(colours).tolist() == [[[[0, 124]], [[0, 29]]]]
    assert _grey(colours / 1.0)[0, 0, 0, 1].item() == pytest.approx(124.2)
    assert _grey(colours[:, :4]).shape == (1, 4, 1, 2)  # no colours


def test_the_largest_byte_becomes_255():
    space = spaces.Box(0, 255, (3, 3), np.uint8)
    world = counter(observation_space=space, largest_byte=2, ends_after=9)
    world.reset()
    seen = [world.step(zeros(world)).observation[0, 0, 0, 0].item() for _ in range(3)]
    assert seen == [128, 255, 255]  # 3 counts as 2
    world = counter(observation_space=space, largest_byte=200, ends_after=9)
    world.reset()
    seen = [world.step(zeros(world)).observation[0, 0, 0, 0].item() for _ in range(4)]
    assert seen == [1, 3, 4, 5]  # 1.275, 2.55, 3.825 and 5.1
    floats = spaces.Box(0, 9, (3, 3, 3), np.float32)
    world = counter(observation_space=floats, largest_byte=2, ends_after=9)
    world.reset()
    assert (world.step(zeros(world)).observation == 1).all()


def test_an_action_is_scaled_to_its_bounds():
    space = spaces.Box(np.array([[0.0, -2.0]]), np.array([[1.0, 6.0]]), dtype=np.float64)
    world = counter(action_space=space)
    assert (world.spec.num_actions, world.spec.action_shape) == (0, (2,))
    world.reset()
    world.step(torch.tensor([[-1.0, 1.0], [0.5, 0.0]]))
    actions = [env.unwrapped.action.tolist() for env in world._env.envs]
    assert actions == [[[0.0, 6.0]], [[0.75, 2.0]]]
    for bad in (1.5, float("nan")):
        with pytest.raises(ValueError, match=r"action .* within -1 \.\. 1"):
            world.step(torch.tensor([[0.0, bad], [0.0, 0.0]]))


def test_actions_begin_where_their_space_does():
    world = counter(action_space=spaces.Discrete(3, start=4))
    world.reset()
    world.step(torch.tensor([0, 2]))
    assert [env.unwrapped.action for env in world._env.envs] == [4, 6]


def test_combined_actions_are_numbered():
    world = counter(action_space=spaces.MultiDiscrete([2, 3], start=[0, 10]))
    assert world.spec.num_actions == 6
    world.reset()
    world.step(torch.tensor([1, 5]))
    actions = [env.unwrapped.action.tolist() for env in world._env.envs]
    assert actions == [[0, 11], [1, 12]]


def test_positions_come_from_info():
    for position in (np.array([1.0, 2.0, 3.0]), (1, 2, 3)):
        world = counter(position=position, oracle_cell=5.0, ends_after=1)
        assert world.reset().position.tolist() == [[1.0, 2.0, 3.0]] * 2
        assert world.step(zeros(world)).final_position.tolist() == [[1.0, 2.0, 3.0]] * 2
    for position in (None, np.zeros(2)):
        world = counter(position=position, oracle_cell=5.0)
        with pytest.raises(ValueError, match="no 'position' of three numbers"):
            world.reset()


def test_splits_share_no_seeds():
    starts = [
        make_world("gym/CartPole-v1", num_envs=3, seed=1, split=split).reset().observation
        for split in SPLITS
    ]
    rows = {tuple(row) for start in starts for row in start.tolist()}
    assert len(rows) == 3 * len(SPLITS)


def test_an_own_vector_form_that_resets_late_is_not_taken():
    world = make_world("gym/CartPole-v1", num_envs=2, seed=0)
    assert isinstance(world._env, gymnasium.vector.SyncVectorEnv)
    with pytest.raises(ValueError, match="does not reset in the same step"):
        make_world("gym/CartPole-v1", num_envs=2, seed=0, vectorization="vector_entry_point")


def test_a_module_that_registers_its_ids(tmp_path, monkeypatch):
    (tmp_path / "late_ids.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "gymnasium.register('Late-v0', entry_point=CartPoleEnv, max_episode_steps=9)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    world = make_world("gym/late_ids:Late-v0", num_envs=2, seed=0)
    assert world.spec.task == "gym/late_ids:Late-v0"
    assert world.spec.episode_steps == 9
    assert world.reset().observation.shape == (2, 4)
    del gymnasium.registry["Late-v0"]


@pytest.mark.parametrize(
    ("task", "options", "sentence"),
    [
        ("gym/Nowhere-v0", {}, "gym/Nowhere-v0 cannot be made: .*Nowhere"),
        ("gym/CartPole-v99", {}, "CartPole-v99 cannot be made"),
        ("gym/no_such_module:Id-v0", {}, "cannot be made: No module named 'no_such_module'"),
        ("gym/CartPole-v1", {"colour": "red"}, "cannot be made: .*colour"),
        ("gym/CartPole-v1", {"vectorization": "threads"}, "vectorization must be one of"),
        ("gym/CartPole-v1", {"split": "exam"}, "split must be one of"),
        ("gym/CartPole-v1", {"observation_size": (84, 84)}, "observes no frames"),
        ("gym/CartPole-v1", {"episode_steps": 0}, "episode_steps must be"),
        ("gym/CartPole-v1", {"oracle_cell": 0.0}, "oracle_cell must be"),
        ("gym/CartPole-v1", {"seed": -1}, "seed must be"),
        ("gym/CartPole-v1", {"grey": True}, "observes no frames, so grey cannot be set"),
        ("gym/CartPole-v1", {"largest_byte": 0}, "largest_byte must be"),
        ("gym/CartPole-v1", {"largest_byte": 256}, "largest_byte must be"),
        ("gym/CartPole-v1", {"key": "image"}, "key is for dictionaries"),
        (
            "gym/Tests/Counter-v0",
            {"observation_space": spaces.Dict({"a": FRAME, "b": VECTOR}), "key": "c"},
            "key must be one of a, b, got 'c'",
        ),
        (
            "gym/Tests/Counter-v0",
            {"observation_space": spaces.Dict({"a": VECTOR, "b": VECTOR, "c": TEXT})},
            "cannot flatten to a vector; set key to one of a, b, c",
        ),
    ],
)
def test_bad_requests_are_one_sentence(task, options, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        make_world(task, **{"num_envs": 2, "seed": 0, **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"action_space": spaces.Box(-np.inf, np.inf, (2,))}, "must have bounded actions"),
        ({"action_space": spaces.MultiDiscrete([100, 100])}, "10000 combinations"),
        ({"action_space": spaces.MultiBinary(3)}, "MultiBinary.* actions"),
        ({"observation_space": spaces.Sequence(spaces.Discrete(2))}, "cannot flatten"),
    ],
)
def test_spaces_that_cannot_be_learnt_from_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        counter(**options)


def test_a_step_before_the_first_reset():
    world = counter()
    with pytest.raises(RuntimeError, match=r"reset\(\) first"):
        world.step(zeros(world))


def test_without_gymnasium_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "episodic_curiosity.worlds.gymnasium.world")
    with pytest.raises(ImportError, match="pip install gymnasium"):
        make_world("gym/CartPole-v1", num_envs=1, seed=0)


def test_pictures_are_what_is_rendered():
    pytest.importorskip("pygame")
    options = {"num_envs": 2, "seed": 0}
    with closing(make_world("gym/CartPole-v1", render_mode="rgb_array", **options)) as world:
        assert world.can_render
        world.reset()
        one, two = world.picture(), world.picture(1)
        assert (one.shape, one.dtype) == ((400, 600, 3), np.uint8)
        assert not np.array_equal(one, two)
    with (
        closing(make_world("gym/CartPole-v1", **options)) as world,
        pytest.raises(ValueError, match="made with render_mode 'rgb_array'"),
    ):
        world.picture()
