"""Rules compiled in a second process; what only a GPU can show of it is in test_gpu."""

import logging

import pytest
import torch
import torch._inductor.config

from episodic_curiosity.worlds.maze import ahead, render_torch, walk_torch
from episodic_curiosity.worlds.maze.advance import compile_advance
from episodic_curiosity.worlds.maze.level_map import make_level_map
from episodic_curiosity.worlds.maze.render import compiled_parts
from episodic_curiosity.worlds.maze.rules import Rules
from episodic_curiosity.worlds.maze.textures import textures
from episodic_curiosity.worlds.maze.world import MazeWorld


class Seen:
    """A compiler that only writes down what it is given."""

    def __init__(self):
        self.graphs = []

    def __call__(self, module, _inputs):
        shapes = [
            (node.name, node.meta["example_value"].stride())
            for node in module.graph.find_nodes(op="placeholder")
            if isinstance(node.meta["example_value"], torch.Tensor)
        ]
        self.graphs.append((module.code, str(shapes)))
        return module.forward


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("sparse-doors", {"maze_size": (11, 13)}),
        ("no-reward-no-fire", {"idle": True}),
        ("dense-1", {}),
    ],
)
def test_a_few_levels_are_compiled_as_many_are(task, changes):
    few, many = Seen(), Seen()
    ahead.compile_rules(task, changes, 6, 8, "cpu", backend=few)
    world = MazeWorld(task, num_envs=6, seed=3, num_levels=50, **changes)
    world.reset()
    rules = Rules(world._task, world._levels, always=True)
    actions = world._checked(torch.arange(6))
    compile_advance(rules, 6, backend=many)(world._state, actions)
    assert len(many.graphs) == 1
    assert few.graphs == many.graphs


@pytest.mark.parametrize("task", ["sparse-doors", "dense-1"])
def test_pictures_of_a_few_levels_are_compiled_as_those_of_many(task):
    size, few, many = (12, 16), Seen(), Seen()
    with torch.no_grad():
        ahead.compile_pictures(task, {}, 6, 8, "cpu", size, backend=few)
    world = MazeWorld(task, num_envs=6, seed=3, num_levels=50)
    world.reset()
    theme, level_map = world._task.theme, make_level_map(world._task.theme, world._levels.stage)
    shape = (*level_map.code.shape[1:], *size)
    parts = compiled_parts(theme, level_map.has_slabs, shape, many)
    camera = walk_torch.make_camera(*size, torch.device("cpu"))
    render_torch.render(theme, level_map, textures(), camera, world.scene(), parts=parts)
    assert len(many.graphs) > len(few.graphs) == 1  # all of its parts, and the last of them
    assert few.graphs == many.graphs[-1:]


@pytest.mark.parametrize(("what", "more"), [("rules", ()), ("pictures", ((12, 16),))])
def test_the_other_process_leaves_a_mark(tmp_path, caplog, what, more):
    mark = tmp_path / "mark"
    arguments = ("sparse", {"maze_size": (9, 9)}, 4, 8, "cpu")
    helper = ahead.Helper(mark, what, *arguments, *more, "eager")
    helper.wait()
    assert mark.exists()
    helper.wait()
    assert not caplog.records


def test_what_goes_wrong_there_is_said_and_goes_no_further(tmp_path, caplog):
    mark = tmp_path / "mark"
    with caplog.at_level(logging.WARNING):
        ahead.Helper(mark, "rules", "nowhere", {}, 4, 8, "cpu", "eager").wait()
    assert not mark.exists()
    (said,) = caplog.messages
    assert "ended with status 1" in said
    assert "there is no maze task 'nowhere'" in said


def test_nobody_waits_for_ever(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(ahead, "PATIENCE", 0.01)
    with caplog.at_level(logging.WARNING):
        ahead.Helper(tmp_path / "mark", "rules", "sparse", {}, 4, 8, "cpu", "eager").wait()
    assert "was stopped after 0.01 s, saying 'nothing'" in caplog.text


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """What `begin` would start."""
    made = []

    class Noted:
        def __init__(self, *arguments):
            made.append(arguments)

    monkeypatch.setattr(ahead, "Helper", Noted)
    monkeypatch.setattr(ahead, "_BEGUN", {})
    monkeypatch.setattr(ahead, "num_cores", lambda: 16)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a GPU")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    return made


def begin(name="sparse", changes=None, size=(84, 84), num_levels=None, num_envs=64):
    return ahead.begin_ahead(
        name,
        changes or {},
        size,
        num_envs=num_envs,
        num_levels=num_levels,
        device=torch.device("cuda"),
    )


def test_the_worlds_of_a_task_share_their_processes(begun):
    assert begin() == begin() == begin(num_envs=8)  # which fills the rows up
    other = begin(size=(36, 48))
    assert other.rules is begin().rules
    assert other.pictures is not begin().pictures
    begin("dense-1", {"idle": True}, num_levels=5)
    assert [arguments[1:] for arguments in begun] == [
        ("rules", "sparse", {}, 64, 32, "cuda"),
        ("pictures", "sparse", {}, 64, 32, "cuda", (84, 84)),
        ("pictures", "sparse", {}, 64, 32, "cuda", (36, 48)),
        ("rules", "dense-1", {"idle": True}, 64, 5, "cuda"),
        ("pictures", "dense-1", {"idle": True}, 64, 5, "cuda", (84, 84)),
    ]


def test_where_there_is_nothing_to_gain_none_is_started(begun, monkeypatch):
    begin()
    begun[0][0].touch()  # the mark of the rules
    monkeypatch.setattr(ahead, "_BEGUN", {})  # as in the next run
    assert begin().rules is None
    assert begin().pictures is not None
    assert begin(num_envs=8).rules is None
    monkeypatch.setattr(ahead, "_BEGUN", {})
    assert begin(num_envs=8).rules is not None  # a run with fewer rows compiles its own
    assert begin("very-sparse").rules is not None
    monkeypatch.setattr(ahead, "num_cores", lambda: 2)
    assert begin("dense-2") == (None, None)
    monkeypatch.setattr(ahead, "num_cores", lambda: 16)
    with torch._inductor.config.patch(fx_graph_cache=False):
        assert begin("dense-2") == (None, None)
