import pytest

from episodic_curiosity.worlds.dmlab.world import DMLabWorld
from episodic_curiosity.worlds.registry import make_world
from tests.worlds.dmlab.builds import Builds, install


@pytest.fixture
def build(monkeypatch, tmp_path) -> Builds:
    """The stand-in for DeepMind Lab, neither patched nor with properties unless told so."""
    return install(monkeypatch, tmp_path)


@pytest.fixture
def make(build):  # noqa: ARG001
    made = []

    def make(task: str = "sparse", num_envs: int = 2, **options) -> DMLabWorld:
        world = make_world(f"dmlab/{task}", num_envs=num_envs, seed=1, **options)
        made.append(world)
        return world

    yield make
    for world in made:
        world.close()
