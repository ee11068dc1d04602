"""What other processes compile; what only a GPU can show of it is in test_gpu."""

import logging

import numpy as np
import pytest
import torch
import torch._inductor.config

from episodic_curiosity.worlds.maze import ahead, ahead_work
from episodic_curiosity.worlds.maze.render import render_torch, walk_torch
from episodic_curiosity.worlds.maze.render.level_map import make_level_map
from episodic_curiosity.worlds.maze.render.render_compiled import compiled_passes
from episodic_curiosity.worlds.maze.render.textures import textures
from episodic_curiosity.worlds.maze.rules.advance import compile_advance
from episodic_curiosity.worlds.maze.rules.rules import Rules
from episodic_curiosity.worlds.registry import make_world

pytestmark = pytest.mark.slow


class Seen:
    """A compiler that only writes down what it is given."""

    def __init__(self):
        self.graphs = []

    def __call__(self, module, _inputs):
        nodes = module.graph.find_nodes(op="placeholder")
        values = {node.name: node.meta["example_value"] for node in nodes}
        tensors = {n: value for n, value in values.items() if isinstance(value, torch.Tensor)}
        lengths = [value.shape[0] for value in tensors.values() if value.dim()]
        self.num_fixed = sum(type(length) is int and length == 6 for length in lengths)
        strides = {name: str(value.stride()) for name, value in tensors.items()}
        self.graphs.append((module.code, strides))
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
    ahead_work.compile_rules(task, changes, 6, 8, "cpu", backend=few)
    world = make_world(f"maze/{task}", num_envs=6, seed=3, num_levels=50, **changes)
    world.reset()
    rules = Rules(world._task, world._levels, always=True)
    actions = world._checked(torch.arange(6))
    compile_advance(rules, 6, backend=many)(world._state, actions)
    assert len(many.graphs) == 1
    assert few.graphs == many.graphs
    assert many.num_fixed > 20  # the rows of a state: what is fixed is compiled sooner


@pytest.mark.parametrize("task", ["sparse-doors", "dense-1"])
def test_pictures_of_a_few_levels_are_compiled_as_those_of_many(task):
    size, few, many = (12, 16), Seen(), Seen()
    with torch.no_grad():
        ahead_work.compile_pictures(task, {}, 6, 8, "cpu", size, backend=few)
    world = make_world(f"maze/{task}", num_envs=6, seed=3, num_levels=50)
    world.reset()
    theme = world._task.theme
    level_map = make_level_map(theme, world._pool, "cpu")
    shape = (*level_map.code.shape[1:], *size)
    passes = compiled_passes(theme, level_map.has_slabs, shape, many, num_frames=6)
    camera = walk_torch.make_camera(*size, torch.device("cpu"))
    render_torch.render(theme, level_map, textures(), camera, world.scene(), passes=passes)
    assert len(many.graphs) > len(few.graphs) == 1  # all of its passes, and the last of them
    assert few.graphs == many.graphs[-1:]
    assert many.num_fixed > 20


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
    assert "KeyError: 'nowhere'" in said


def test_nobody_waits_for_ever(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(ahead, "PATIENCE", 0.01)
    with caplog.at_level(logging.WARNING):
        ahead.Helper(tmp_path / "mark", "rules", "sparse", {}, 4, 8, "cpu", "eager").wait()
    assert "was stopped after 0.01 s, saying 'nothing'" in caplog.text


def test_what_cannot_be_started_is_said(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(ahead.sys, "executable", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert ahead._start(tmp_path / "mark", "rules", "sparse") is None
    assert "rules ahead could not be started" in caplog.text


def test_the_other_process_imports_from_where_this_one_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ahead.sys, "path", ["", "/somewhere", tmp_path])
    assert ahead._import_path() == [str(tmp_path), "/somewhere"]


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """What `begin_ahead` would start."""
    made = []

    class Noted:
        def __init__(self, *arguments):
            made.append(arguments)
            self.is_at_work = True

    monkeypatch.setattr(ahead, "Helper", Noted)
    monkeypatch.setattr(ahead, "_BEGUN", {})
    monkeypatch.setattr(ahead, "num_cores", lambda: 160)
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


def test_worlds_share_what_they_have_in_common(begun):
    first = begin()
    assert first == begin() == begin(num_envs=8)  # which fills the rows up
    assert begin(num_envs=65) == (None, None)  # which has to compile its own
    smaller = begin(size=(36, 48))
    assert smaller.rules is first.rules
    assert smaller.pictures is not first.pictures
    doors = begin("sparse-doors", {"idle": True})
    assert doors.rules is not first.rules
    assert doors.pictures is first.pictures
    begin("dense-1", num_levels=5)
    assert [arguments[1:] for arguments in begun] == [
        ("rules", "sparse", {}, 64, 32, "cuda"),
        ("pictures", "sparse", {}, 64, 32, "cuda", (84, 84)),
        ("pictures", "sparse", {}, 64, 32, "cuda", (36, 48)),
        ("rules", "sparse-doors", {"idle": True}, 64, 32, "cuda"),
        ("rules", "dense-1", {}, 64, 5, "cuda"),
        ("pictures", "dense-1", {}, 64, 5, "cuda", (84, 84)),
    ]


def test_one_level_is_compiled_otherwise_than_many(begun):
    assert begin().rules is begin(num_levels=2).rules is not begin(num_levels=1).rules
    assert len({arguments[0] for arguments in begun}) == 4  # marks


def test_what_has_left_its_mark_is_not_started_again(begun, monkeypatch):
    begin()
    begun[0][0].touch()  # the mark of the rules
    monkeypatch.setattr(ahead, "_BEGUN", {})  # as in the next run
    assert begin().rules is None
    assert begin().pictures is not None
    assert begin(num_envs=8).rules is None
    monkeypatch.setattr(ahead, "_BEGUN", {})
    assert begin(num_envs=8).rules is not None  # a run with fewer rows compiles its own


@pytest.mark.parametrize(("cores", "num_begun"), [(2, 0), (4, 1), (8, 2), (16, 4)])
def test_no_more_are_at_work_than_there_are_cores_for(begun, monkeypatch, cores, num_begun):
    monkeypatch.setattr(ahead, "num_cores", lambda: cores)
    for name in ("sparse", "dense-1", "dense-2"):
        begin(name)
    assert len(begun) == num_begun
    for _, helper in ahead._BEGUN.values():
        if helper is not None:
            helper.is_at_work = False
    begin("no-reward")
    assert len(begun) == num_begun + (cores > 2)  # whose pictures are there already


def test_what_would_not_be_found_is_not_compiled(begun, monkeypatch):
    with torch._inductor.config.patch(fx_graph_cache=False):
        assert begin() == (None, None)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
        assert begin() == (None, None)
    assert begin(changes={"maze_size": np.int64(9)}) == (None, None)  # what is no literal
    assert not begun
    assert begin() != (None, None)
