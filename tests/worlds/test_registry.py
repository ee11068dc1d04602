"""Families and tasks by name; entry points of other packages are in tests/test_outside.py."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from episodic_curiosity.support.importing import import_object
from episodic_curiosity.worlds import registry
from episodic_curiosity.worlds.base import World, WorldConfig
from episodic_curiosity.worlds.family import Family, OpenTasks, split_task
from episodic_curiosity.worlds.maze.tasks import TASKS as MAZE_TASKS
from episodic_curiosity.worlds.registry import (
    BUILT_IN,
    families,
    find_family,
    known_tasks,
    make_world,
    read_task,
    register_family,
    split_tasks,
)


class Options(WorldConfig):
    """No options of its own."""


def record(**changes) -> Family:
    usual = {
        "name": "mine",
        "tasks": {"own": "a task"},
        "config": Options,
        "make": "tests.worlds.test_registry:Told",
        "simulated_on": "host",
    }
    return Family(**usual | changes)


class Told:
    """What a world was made with."""

    def __init__(self, task: str, **options) -> None:
        self.task, self.options = task, options


@pytest.fixture(autouse=True)
def _forgets(monkeypatch):
    monkeypatch.setattr(registry, "_FAMILIES", dict(registry._FAMILIES))


def test_the_tasks_announced_are_those_that_can_be_played():
    assert set(find_family("maze/sparse").tasks) == set(MAZE_TASKS)
    assert [split_task(task) for task in ("maze/a/b+c", "maze", "")] == [
        ("maze", "a/b+c"),
        ("maze", ""),
        ("", ""),
    ]
    assert set(known_tasks()) == {
        f"{family.name}/{task}" for family in BUILT_IN for task in family.tasks
    }


@pytest.mark.parametrize("family", BUILT_IN, ids=lambda family: family.name)
def test_the_strings_of_a_record_are_there(family):
    if family.name in ("vizdoom", "ant"):
        pytest.importorskip({"vizdoom": "vizdoom", "ant": "mujoco.batch"}[family.name])
    assert callable(import_object(family.make))
    assert callable(import_object(family.scenery))


@pytest.mark.parametrize(
    ("task", "parts"),
    [
        ("maze/sparse", ("maze", "sparse", "")),
        ("maze/dense-2+image-action-30", ("maze", "dense-2", "image-action-30")),
        ("ant/no-reward+noise", ("ant", "no-reward", "noise")),
        ("gym/a:B-v0", ("gym", "a:B-v0", "")),
        ("vizdoom/a+b.wad", ("vizdoom", "a+b.wad", "")),
        ("dmlab/contributed/x+noise", ("dmlab", "contributed/x", "noise")),
    ],
)
def test_a_task_is_read(task, parts):
    family, *rest = read_task(task)
    assert (family.name, *rest) == parts


@pytest.mark.parametrize(
    "task", ["maze/sprase", "sparse", "gym/", "dmlab/", "gym", "mars/a", ""]
)
def test_a_task_that_is_not_there_lists_the_choices(task):
    for find in (read_task, lambda task: make_world(task, num_envs=1, seed=0)):
        with pytest.raises(ValueError, match=r"there is no task .* maze/sparse, .* gym/\.\.\."):
            find(task)


def test_a_television_that_cannot_be_there():
    with pytest.raises(ValueError, match="cannot show ''"):
        read_task("maze/sparse+")
    with pytest.raises(ValueError, match=r"noise-action needs .* which gym/\.\.\. lacks"):
        read_task("gym/CartPole-v1+noise-action")
    with pytest.raises(ValueError, match="maze/sparse has no television"):
        make_world("maze/sparse", num_envs=1, seed=0, pictures="folder")


def test_sets_of_tasks():
    tasks = split_tasks("dmlab-30,maze/sparse")
    assert len(tasks) == 31
    assert tasks[3] == "dmlab/rooms_watermaze"
    assert tasks[-1] == "maze/sparse"
    with pytest.raises(ValueError, match="there is no task 'dmlab-31'"):
        split_tasks("maze/sparse,dmlab-31")


def test_a_registered_family_is_like_a_built_in_one():
    family = record(open_tasks=OpenTasks("<n>", "any number"))
    register_family(family)
    register_family(family)  # no clash with itself
    assert families()["mine"] is find_family("mine/own") is family
    assert known_tasks()["mine/own"] == "a task"
    world: World = make_world("mine/7+1", num_envs=2, seed=3, split="test", colour="red")
    assert world.task == "7+1"
    assert world.options.pop("device").type == "cpu"
    assert world.options == {"num_envs": 2, "seed": 3, "split": "test", "colour": "red"}


def test_a_name_that_is_taken():
    with pytest.raises(ValueError, match="already a family 'maze': choose another name"):
        register_family(record(name="maze"))
    register_family(record())
    with pytest.raises(ValueError, match="already a family 'mine'"):
        register_family(record())
    with pytest.raises(TypeError, match="family must be a Family, got str"):
        register_family("mine")


@dataclass(frozen=True, kw_only=True)
class Incomplete(WorldConfig):
    """With an option that a preset would not set."""

    colour: str


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "Mine"}, "name must be lower-case letters, .* got 'Mine'"),
        ({"name": "a/b"}, "name must be lower-case"),
        ({"name": 7}, "name must be lower-case letters, .* got 7"),
        ({"tasks": {}}, "the family mine needs tasks or open_tasks"),
        ({"tasks": {"own": ""}}, "mine/own needs one line about it, got ''"),
        ({"tasks": {"own": "a\nb"}}, "mine/own needs one line about it"),
        ({"tasks": {"own": None}}, "mine/own needs one line about it, got None"),
        ({"config": dict}, "config of the family mine must be a subclass of WorldConfig"),
        ({"config": "Options"}, "must be a subclass of WorldConfig, got 'Options'"),
        ({"config": Incomplete}, "Incomplete.colour must have a default value"),
        ({"make": "a.b.World"}, 'make of the family mine must be "module:name", got'),
        ({"make": Told}, 'must be "module:name", got <class'),
        ({"scenery": "films"}, 'scenery of the family mine must be "module:name", got'),
        ({"simulated_on": "gpu"}, "simulated_on of the family mine must be one of device"),
        ({"frames": "big"}, "frames of the family mine must be one of fixed, shared,"),
        ({"television": True}, "television of the family mine must be one of none,"),
    ],
)
def test_an_incomplete_record_is_refused_in_one_sentence(changes, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        record(**changes)
    assert "\n" not in str(caught.value).replace("\\n", "")


def test_a_class_that_is_not_in_its_module():
    register_family(record(make="tests.worlds.test_registry:Absent"))
    with pytest.raises(ImportError, match=r"tests.worlds.test_registry has no Absent"):
        make_world("mine/own", num_envs=1, seed=0)


def test_records_import_none_of_their_worlds_dependencies():
    program = (
        "import sys, episodic_curiosity; from episodic_curiosity.worlds import registry; "
        "registry.families(); "
        "print({'mujoco', 'numba', 'vizdoom', 'PIL', 'deepmind_lab'} & sys.modules.keys())"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (said.stdout, said.stderr) == ("set()\n", "")
