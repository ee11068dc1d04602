"""Rules compiled in a second process; what only a GPU can show of it is in test_gpu."""

import logging

import pytest
import torch
import torch._inductor.config

from episodic_curiosity.worlds.maze import ahead
from episodic_curiosity.worlds.maze.advance import compile_advance
from episodic_curiosity.worlds.maze.rules import Rules
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
    compile_advance(rules, backend=many)(world._state, actions)
    assert len(many.graphs) == 1
    assert few.graphs == many.graphs


def test_the_second_process_leaves_a_mark(tmp_path, caplog):
    mark = tmp_path / "mark"
    helper = ahead.Helper(mark, "sparse", {"maze_size": (9, 9)}, 4, 8, "cpu", "eager")
    helper.wait()
    assert mark.exists()
    helper.wait()
    assert not caplog.records


def test_what_goes_wrong_there_is_said_and_goes_no_further(tmp_path, caplog):
    mark = tmp_path / "mark"
    with caplog.at_level(logging.WARNING):
        ahead.Helper(mark, "nowhere", {}, 4, 8, "cpu", "eager").wait()
    assert not mark.exists()
    (said,) = caplog.messages
    assert "ended with status 1" in said
    assert "there is no maze task 'nowhere'" in said


def test_nobody_waits_for_ever(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(ahead, "PATIENCE", 0.01)
    with caplog.at_level(logging.WARNING):
        ahead.Helper(tmp_path / "mark", "sparse", {}, 4, 8, "cpu", "eager").wait()
    assert "ended with status -9, saying 'nothing'" in caplog.text


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """What `begin` would start."""
    made = []

    def helper(*arguments):
        made.append(arguments)
        return arguments

    monkeypatch.setattr(ahead, "Helper", helper)
    monkeypatch.setattr(ahead, "_HELPERS", {})
    monkeypatch.setattr(ahead, "num_cores", lambda: 16)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a GPU")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    return made


def begin(name="sparse", changes=None, num_levels=None):
    return ahead.begin(
        name, changes or {}, num_envs=64, num_levels=num_levels, device=torch.device("cuda")
    )


def test_the_worlds_of_a_task_share_one_process(begun):
    assert begin() is begin() is not None
    assert begin(changes={"idle": True}) is not begin()
    begin("dense-1", num_levels=5)
    assert [arguments[1:] for arguments in begun] == [
        ("sparse", {}, 64, 32, "cuda"),
        ("sparse", {"idle": True}, 64, 32, "cuda"),
        ("dense-1", {}, 64, 5, "cuda"),
    ]


def test_where_there_is_nothing_to_gain_none_is_started(begun, monkeypatch):
    assert begin() is not None
    begun[0][0].touch()  # the mark
    monkeypatch.setattr(ahead, "_HELPERS", {})  # as in the next run
    assert begin() is None
    assert begin("very-sparse") is not None
    monkeypatch.setattr(ahead, "num_cores", lambda: 2)
    assert begin("dense-2") is None
    monkeypatch.setattr(ahead, "num_cores", lambda: 16)
    with torch._inductor.config.patch(fx_graph_cache=False):
        assert begin("dense-2") is None
