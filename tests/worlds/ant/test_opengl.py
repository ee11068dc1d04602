"""The views against MuJoCo's own renderer, where there is OpenGL."""

import numpy as np
import pytest
import torch

from episodic_curiosity.worlds.ant.opengl import OpenGLCamera
from episodic_curiosity.worlds.ant.scene import Scene
from episodic_curiosity.worlds.ant.view import HeadCamera
from episodic_curiosity.worlds.registry import make_world

pytestmark = pytest.mark.slow

pytest.importorskip("mujoco.batch")

NUM_POSES = 32
SIZE = (120, 160)


@pytest.fixture(scope="module")
def camera():
    try:
        camera = OpenGLCamera(SIZE, for_people=False)
    except RuntimeError as missing:
        pytest.skip(str(missing))
    yield camera
    camera.close()
    camera.close()


def random_play(steps: int) -> torch.Tensor:
    """Poses (32, 15) of ants somewhere in their episodes."""
    world = make_world("ant/no-reward", num_envs=NUM_POSES, seed=0, view_size=None)
    world.reset()
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        world.step(2 * torch.rand(NUM_POSES, 8, generator=generator) - 1)
    return world._ants.positions.clone()


def test_views_are_what_opengl_draws_apart_from_the_legs(camera: OpenGLCamera):
    # All on one floor and near to each other: laying out another one takes a while.
    poses = random_play(40)
    poses[:, :2] = poses[:, :2] % 60 - 30
    floor = -123456
    theirs = np.stack([camera.draw(pose, floor, with_ant=False) for pose in poses])
    scene = Scene(
        poses[:, :3].float(),
        poses[:, 3:7].float(),
        torch.full((NUM_POSES,), floor, dtype=torch.int32),
    )
    ours = HeadCamera(SIZE, torch.device("cpu")).draw(scene)
    difference = np.abs(ours.permute(0, 2, 3, 1).numpy().astype(int) - theirs)
    print(f"mean absolute difference {difference.mean():.2f} of 255 over {NUM_POSES} poses")
    assert theirs.std() > 40
    assert difference.mean() <= 2.5
    assert difference.mean((1, 2, 3)).max() <= 6


def test_the_patch_of_tiles_follows_the_ant(camera: OpenGLCamera):
    pose = random_play(1)[0]
    pose[:2] = 0
    pose[3:7] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    ours = HeadCamera(SIZE, torch.device("cpu"))
    floor = torch.tensor([9], dtype=torch.int32)
    for x, y in ((0.0, 0.0), (150.0, -90.0)):
        pose[0], pose[1] = x, y
        theirs = camera.draw(pose, 9, with_ant=False)
        scene = Scene(pose[None, :3].float(), pose[None, 3:7].float(), floor)
        view = ours.draw(scene)[0].permute(1, 2, 0).numpy()
        assert np.abs(view.astype(int) - theirs).mean() <= 2.5


@pytest.mark.usefixtures("camera")  # skips where there is no OpenGL
def test_pictures_for_people_show_the_ant():
    world = make_world("ant/no-reward", num_envs=2, seed=0, view_size=SIZE, floor_period=3)
    view = world.reset().view[1].permute(1, 2, 0).numpy()
    third = world.picture(1, size=(90, 120))
    assert third.shape == (90, 120, 3)
    first = world.picture(1, person="first", size=SIZE)
    assert not np.array_equal(third, world.picture(0, size=(90, 120)))
    # The same floor under the same head, but for legs, shadows and smooth edges.
    assert np.median(np.abs(first.astype(int) - view)) <= 3
    with pytest.raises(ValueError, match="person must be one of first, third"):
        world.picture(person="second")
    world.close()
    world.close()
