"""What the head camera sees: where things are, and that all back ends see the same."""

import math

import pytest
import torch
from torch import Tensor

from episodic_curiosity.support.compiling import compile_varying
from episodic_curiosity.worlds.ant import view, view_torch
from episodic_curiosity.worlds.ant.scene import Scene, camera_axes, tile_texture
from episodic_curiosity.worlds.ant.textures import NUM_TEXTURES, SKY, make_texels, textures
from episodic_curiosity.worlds.ant.view import HeadCamera

CPU = torch.device("cpu")
PITCH = math.radians(32.1)  # of the camera, downwards


def scenes(count: int, seed: int = 0, tilt: float = 0.2) -> Scene:
    generator = torch.Generator().manual_seed(seed)
    position = 200 * torch.rand(count, 3, generator=generator) - 100
    position[:, 2] = 0.2 + 0.8 * torch.rand(count, generator=generator)
    turn = tilt * torch.randn(count, 4, generator=generator)
    turn[:, 0] = 1
    floor = torch.randint(-(2**31), 2**31, (count,), generator=generator).to(torch.int32)
    return Scene(position, turn, floor)


def level(x: float, y: float, height: float, yaw: float = 0.0, floor: int = 3) -> Scene:
    turn = torch.tensor([[math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)]])
    return Scene(torch.tensor([[x, y, height]]), turn, torch.tensor([floor], dtype=torch.int32))


def draw(scene: Scene, height: int = 61, width: int = 81) -> Tensor:
    return HeadCamera((height, width), CPU).draw(scene)


def colour_at(x: float, y: float, floor: int) -> Tensor:
    """The painted colour of a place, (3,)."""
    column, row = math.floor(x / 4), math.floor(-y / 4)
    seed = torch.tensor(floor, dtype=torch.int32)
    number = int(tile_texture(seed, torch.tensor(column).int(), torch.tensor(row).int()))
    across, down = x / 4 - column, -y / 4 - row
    return torch.from_numpy(
        textures()[number, int(128 * down), int(128 * across)].astype("float32")
    )


def test_the_camera_looks_ahead_and_down():
    right, up, ahead = camera_axes(torch.tensor([[1.0, 0.0, 0.0, 0.0]]))[0]
    cos, sin = math.cos(PITCH), math.sin(PITCH)
    torch.testing.assert_close(ahead, torch.tensor([cos, 0.0, -sin]), atol=1e-3, rtol=0)
    torch.testing.assert_close(right, torch.tensor([0.0, -1.0, 0.0]), atol=1e-3, rtol=0)
    torch.testing.assert_close(up, torch.tensor([sin, 0.0, cos]), atol=1e-3, rtol=0)
    doubled = camera_axes(torch.tensor([[2.0, 0.6, -0.4, 1.0], [1.0, 0.3, -0.2, 0.5]]))
    torch.testing.assert_close(doubled[0], doubled[1])


@pytest.mark.parametrize("yaw", [0.0, 1.2, -2.5])
def test_the_middle_pixel_shows_the_floor_where_the_camera_looks(yaw: float):
    generator = torch.Generator().manual_seed(2)
    close = 0
    for x, y in (120 * torch.rand(40, 2, generator=generator) - 60).tolist():
        distance = 0.6 / math.tan(PITCH)
        ahead = (x + distance * math.cos(yaw), y + distance * math.sin(yaw))
        seen = draw(level(x, y, 0.6, yaw))[0, :, 30, 40].float()
        close += int((seen - colour_at(*ahead, floor=3)).abs().max() < 40)
    assert close >= 36  # the others look at the edge between two colours


def test_a_level_ant_sees_floor_only_and_a_raised_one_sky():
    pixels = make_texels()[SKY:]
    sky = {int(texel) & 255 for texel in pixels}
    assert len(sky) > 200

    def is_grey(frame: Tensor) -> Tensor:
        return (frame.amax(0).int() - frame.amin(0).int()) == 0

    assert is_grey(draw(level(1.0, 2.0, 0.6))[0]).float().mean() < 0.02
    back = 0.9  # radians, head up
    raised = level(1.0, 2.0, 0.6)._replace(
        turn=torch.tensor([[math.cos(back / 2), 0.0, -math.sin(back / 2), 0.0]])
    )
    frame = draw(raised)[0]
    assert is_grey(frame)[:30].all()
    brightness = frame[0, :30].float().mean(1)
    assert (brightness.diff() <= 0).all()  # brighter upwards


def test_every_size_has_the_same_field_of_view():
    scene = scenes(3)
    large, small = draw(scene, 240, 320), draw(scene, 60, 60)
    shrunk = torch.nn.functional.adaptive_avg_pool2d(large.float(), (60, 60))
    assert (shrunk - small.float()).abs().mean() < 12


def test_the_floor_ends():
    assert draw(level(199.9, 0.0, 0.6))[0].float().std(0).max() == 0  # sky is grey
    assert draw(level(150.0, 0.0, 0.6))[0].float().std(0).max() > 0


def test_tiles_are_random_and_of_all_kinds():
    walk = torch.arange(-50, 50, dtype=torch.int32)
    floors = torch.tensor([1, 2, 3, -7], dtype=torch.int32)[:, None, None]
    tiles = tile_texture(floors, walk, walk[:, None])  # (4, 100, 100)
    counts = torch.bincount(tiles.flatten().long(), minlength=NUM_TEXTURES)
    expected = 40_000 / NUM_TEXTURES
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert len(counts) == NUM_TEXTURES
    assert 130 < chi_square < 260  # 189 degrees of freedom, spread 19
    same = 1 / NUM_TEXTURES
    neighbours = [
        tiles[:, 1:] == tiles[:, :-1],
        tiles[:, :, 1:] == tiles[:, :, :-1],
        tiles[1:] == tiles[:-1],
    ]
    for pair in neighbours:
        assert abs(pair.double().mean() - same) < 0.002


def test_a_floor_with_a_period_repeats():
    """Every 3 tiles of 4 units: 12 units further, forwards or backwards, is the same place."""
    walk = torch.arange(-6, 6, dtype=torch.int32)
    floor = torch.tensor(5, dtype=torch.int32)
    tiles = tile_texture(floor, walk, walk[:, None], period=3)
    once = tile_texture(floor, walk[6:9], walk[6:9, None])
    assert torch.equal(tiles, once.repeat(4, 4))
    assert len(once.unique()) > 3
    here, there = level(-1.0, 2.5, 0.6), level(-1.0 + 24.0, 2.5 - 12.0, 0.6)
    assert not torch.equal(draw(here), draw(there))
    here, there = (scene._replace(floor_period=3) for scene in (here, there))
    difference = (draw(here).int() - draw(there).int()).abs()
    assert (difference > 2).double().mean() < 0.01  # rounding, at edges between colours


@pytest.mark.parametrize("period", [None, 1, 3, 20])
def test_numba_and_torch_draw_one_picture(period: int | None):
    numba = pytest.importorskip("episodic_curiosity.worlds.ant.view_numba")
    scene = scenes(60, tilt=0.5)._replace(floor_period=period)
    lens = view_torch.make_lens(42, 56, CPU)
    by_numba = numba.render(lens, make_texels(), scene)
    by_torch = view_torch.render(lens, make_texels(), scene)
    differs = (by_numba.int() - by_torch.int()).abs() > 1
    assert differs.double().mean() < 1e-4


def test_what_a_gpu_compiles_draws_the_same_and_once_for_any_number():
    # The tracer runs as on a GPU: one graph, no synchronisation; only the kernels are eager.
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    compiled = compile_varying(view_torch.render, backend=backend, fixed=(view_torch.Lens,))
    fixed = (view_torch.make_lens(8, 9, CPU), make_texels())
    for count in (3, 7, 256):
        scene = scenes(count)
        assert torch.equal(compiled(*fixed, scene), view_torch.render(*fixed, scene))
    assert len(graphs) == 1


def test_without_numba_torch_draws(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(view, "find_spec", lambda _: None)
    with pytest.warns(UserWarning, match="Numba is missing"):
        camera = HeadCamera((24, 32), CPU)
    scene = scenes(5)
    lens = view_torch.make_lens(24, 32, CPU)
    assert torch.equal(camera.draw(scene), view_torch.render(lens, make_texels(), scene))


def test_snapshots_of_nonsense_stay_within_the_table():
    scene = scenes(4)
    nonsense = scene._replace(
        position=torch.tensor([[math.nan] * 3, [1e30] * 3, [-math.inf] * 3, [0.0, 0.0, -5.0]]),
        turn=torch.tensor([[0.0] * 4, [math.nan] * 4, [1e30] * 4, [1.0, 0.0, 0.0, 0.0]]),
    )
    assert draw(nonsense).shape == (4, 3, 61, 81)
    lens = view_torch.make_lens(8, 9, CPU)
    assert view_torch.render(lens, make_texels(), nonsense).shape == (4, 3, 8, 9)
