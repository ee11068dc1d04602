"""The Numba and the torch renderer draw one picture."""

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters

from episodic_curiosity.worlds.maze.render import render_torch, walk_torch
from episodic_curiosity.worlds.maze.render import renderer as render
from episodic_curiosity.worlds.maze.render.level_map import make_level_map
from episodic_curiosity.worlds.maze.render.render_compiled import (
    CompiledRenderer,
    compiled_passes,
)
from episodic_curiosity.worlds.maze.render.renderer import Renderer
from episodic_curiosity.worlds.maze.render.scene import Scene
from episodic_curiosity.worlds.maze.render.textures import textures
from tests.worlds.maze.render.scenes import KINDS, Scenes, random_scenes

pytestmark = pytest.mark.slow


def draw_with_torch(scenes: Scenes, height: int, width: int) -> Tensor:
    return render_torch.render(
        scenes.theme,
        make_level_map(scenes.theme, scenes.pool, "cpu"),
        textures(),
        walk_torch.make_camera(height, width, "cpu"),
        scenes.scene,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_200_random_scenes_agree(kind: str) -> None:
    pytest.importorskip("numba")
    scenes = random_scenes(kind, 200, seed=3)
    height, width = 42, 56
    by_numba = Renderer(scenes.theme, scenes.pool, height, width, "cpu").draw(scenes.scene)
    by_torch = draw_with_torch(scenes, height, width)
    differs = (by_numba.int() - by_torch.int()).abs().amax(1) > 2  # (200, h, w)
    assert differs.float().mean() < 0.005
    # None of the rest is systematic: no frame and no pixel collects them.
    assert differs.float().mean((1, 2)).max() < 0.02
    assert differs.float().mean(0).max() < 0.05


def test_without_billboards_and_shots() -> None:
    pytest.importorskip("numba")
    scenes = random_scenes("doors", 8)
    names = ("sprite", "sprite_position", "mark_position", "mark_side", "mark_age")
    bare = {name: getattr(scenes.scene, name)[:, :0] for name in names}
    scenes = scenes._replace(scene=scenes.scene._replace(**bare))
    by_numba = Renderer(scenes.theme, scenes.pool, 31, 43, "cpu").draw(scenes.scene)
    assert torch.equal(by_numba, draw_with_torch(scenes, 31, 43))


@pytest.mark.parametrize("kind", ["sparse", "doors", "dense-1"])
def test_what_a_gpu_compiles_draws_the_same_and_compiles_once(kind: str) -> None:
    # The tracer runs as on a GPU: one graph, no synchronisation; only the kernels are eager.
    seen = {}
    for num_levels in (12, 15, 13):
        scenes = random_scenes(kind, 3, num_levels=num_levels)
        level_map = make_level_map(scenes.theme, scenes.pool, "cpu")
        passes = compiled_passes(
            scenes.theme, level_map.has_slabs, (8, 9), backend="eager", num_frames=3
        )
        camera = walk_torch.make_camera(8, 9, "cpu")
        drawn = render_torch.render(
            scenes.theme, level_map, textures(), camera, scenes.scene, passes=passes
        )
        assert torch.equal(drawn, draw_with_torch(scenes, 8, 9))
        seen[num_levels] = counters["stats"]["unique_graphs"]
    assert seen[12] == seen[15] == seen[13]


def test_any_number_of_frames_is_drawn_with_what_is_compiled() -> None:
    scenes = random_scenes("sparse", 40)
    level_map = make_level_map(scenes.theme, scenes.pool, "cpu")
    camera = walk_torch.make_camera(8, 9, "cpu")
    inputs = (scenes.theme, level_map, textures(), camera, (8, 9))
    waits: list[int] = []

    def drawn(num_frames: int, counts: list[int]) -> int:
        """How many graphs it took a renderer of so many frames to draw others as well."""
        renderer = CompiledRenderer(
            *inputs,
            num_frames=num_frames,
            before_fill=lambda: waits.append(num_frames),
            backend="eager",
        )
        before = counters["stats"]["unique_graphs"]
        for count in counts:
            scene = Scene(*(field[:count] for field in scenes.scene))
            frames = renderer.draw(scene)
            assert torch.equal(frames, draw_with_torch(scenes._replace(scene=scene), 8, 9))
            assert frames.untyped_storage().nbytes() == frames.numel()
        num_graphs: int = counters["stats"]["unique_graphs"] - before
        return num_graphs

    each = drawn(3, [3])
    assert each >= 4
    assert waits == [3]
    assert drawn(3, [1, 2, 4, 7, 40]) == 0  # filled up, and in pieces
    assert drawn(12, [12, 11, 3]) == 0  # 4 pieces a step are few enough ...
    assert drawn(40, [40, 1, 0]) == each  # ... and 14 are not
    assert waits.count(40) == 2  # one draw each: the few that ended cost no compilation


def test_without_numba_the_torch_renderer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "find_spec", lambda _: None)
    scenes = random_scenes("sparse", 3)
    with pytest.warns(UserWarning, match="Numba is missing"):
        renderer = Renderer(scenes.theme, scenes.pool, 24, 32, "cpu")
    pictures = renderer.draw(scenes.scene)
    assert torch.equal(pictures, draw_with_torch(scenes, 24, 32))
    rows = torch.tensor([2, 0])
    assert torch.equal(renderer.draw(scenes.scene, rows), pictures[rows])
