"""Renders the ant with MuJoCo's OpenGL renderer, for display and to check view.py.

Slow, and needs EGL or OSMesa (chosen by `MUJOCO_GL`). Shapes: h x w pixels.
"""

import importlib
import os
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from episodic_curiosity.worlds.ant.body import describe_ant, import_mujoco
from episodic_curiosity.worlds.ant.scene import FLOOR_TILES, TILE, tile_texture
from episodic_curiosity.worlds.ant.textures import SIZE, textures
from episodic_curiosity.worlds.base import Picture

# Only the tiles around the ant are laid out, again whenever it comes near their edge. Tiles
# beyond are less than a pixel high; a plane just below shows their mean colour.
PATCH = 32  # tiles
MARGIN = 8  # tiles
# Light from above keeps the colours of the floor's textures. MuJoCo derives the near plane from
# the extent of the model; it must not clip the floor.
LOOKS = """
<statistic extent="1"/>
<visual>
  <headlight active="0"/>
  <map znear="0.02" zfar="600" shadowclip="2"/>
  <global offwidth="{width}" offheight="{height}"/>
  <quality offsamples="{samples}" shadowsize="4096"/>
</visual>
<asset>
  <texture type="skybox" builtin="gradient" rgb1="1 1 1" rgb2="0 0 0" width="512"
           height="512"/>
  <texture name="tiles" type="2d" builtin="flat" width="{texels}" height="{texels}"/>
  <material name="tiles" texture="tiles" specular="0"/>
  <material name="dull" specular="0"/>
</asset>
<worldbody>
  <light name="sun" directional="true" pos="0 0 3" dir="0 0 -1" diffuse="0.5 0.5 0.5"
         specular="0 0 0"/>
  <light directional="true" castshadow="false" ambient="0.5 0.5 0.5" diffuse="0 0 0"
         specular="0 0 0"/>
  <geom type="plane" size="{half} {half} 1" pos="0 0 -0.05" material="dull"
        rgba="{far} 1" group="0"/>
</worldbody>
"""


class OpenGLCamera:
    """Renders one ant; `for_people` adds shadows and antialiasing, which view.py lacks."""

    def __init__(
        self, size: tuple[int, int], *, for_people: bool = True, floor_period: int | None = None
    ) -> None:
        self._mujoco = import_mujoco()
        self._floor_period = floor_period
        height, width = size
        looks = LOOKS.format(
            width=width,
            height=height,
            samples=4 if for_people else 0,
            texels=PATCH * SIZE,
            far=" ".join(f"{part:.3f}" for part in textures().mean((0, 1, 2)) / 255),
            half=FLOOR_TILES * TILE / 2,
        )
        # MuJoCo ignores later changes of a position that was 0 at first.
        half = PATCH * TILE / 2
        floor = f'material="tiles" rgba="1 1 1 1" size="{half} {half} 1" pos="1 1 0"'
        self._model = self._mujoco.MjModel.from_xml_string(describe_ant(floor, looks))
        self._data = self._mujoco.MjData(self._model)
        self._context = _make_context(width, height)
        self._context.make_current()
        scale = self._mujoco.mjtFontScale.mjFONTSCALE_100
        self._renderer = self._mujoco.MjrContext(self._model, scale)
        self._scene = self._mujoco.MjvScene(self._model, maxgeom=100)
        self._scene.flags[self._mujoco.mjtRndFlag.mjRND_SHADOW] = for_people
        self._scene.flags[self._mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self._area = self._mujoco.MjrRect(0, 0, width, height)
        self._laid_out: tuple[int, int, int] | None = None  # floor, first column, first row

    def draw(
        self,
        positions: Tensor,
        floor: int,
        *,
        person: Literal["first", "third"] = "first",
        with_ant: bool = True,
    ) -> Picture:
        """Renders an ant at `positions` (15,), (h, w, 3), from its head or from behind."""
        self._context.make_current()
        self._lay_out(floor, float(positions[0]), float(positions[1]))
        self._model.light("sun").pos[:2] = positions[:2]  # shadows have a short range
        self._data.qpos[:] = positions.numpy()
        self._mujoco.mj_forward(self._model, self._data)
        camera, option = self._mujoco.MjvCamera(), self._mujoco.MjvOption()
        option.geomgroup[1] = with_ant
        if person == "first":
            camera.type = self._mujoco.mjtCamera.mjCAMERA_FIXED
            camera.fixedcamid = self._model.camera("head").id
        else:
            camera.lookat[:] = (positions[0], positions[1], 0.4)
            camera.distance, camera.azimuth, camera.elevation = 3.6, 30.0, -25.0
        self._mujoco.mjv_updateScene(
            self._model,
            self._data,
            option,
            None,
            camera,
            self._mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        self._mujoco.mjr_setBuffer(self._mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._renderer)
        self._mujoco.mjr_render(self._area, self._scene, self._renderer)
        picture = np.empty((self._area.height, self._area.width, 3), np.uint8)
        self._mujoco.mjr_readPixels(picture, None, self._area, self._renderer)
        return picture[::-1].copy()

    def close(self) -> None:
        """Frees the OpenGL context; safe to call again."""
        self._renderer.free()
        self._context.free()

    def _lay_out(self, floor: int, x: float, y: float) -> None:
        """Lays out the tiles around (x, y), unless they are already."""
        column, row = int(x // TILE), int(-y // TILE)
        if self._laid_out is not None and self._laid_out[0] == floor:
            inside = [
                MARGIN <= place - first < PATCH - MARGIN
                for place, first in zip((column, row), self._laid_out[1:], strict=True)
            ]
            if all(inside):
                return
        column, row = column - PATCH // 2, row - PATCH // 2
        self._laid_out = (floor, column, row)
        tiles = patch_of(floor, column, row, self._floor_period)
        texture = self._model.texture("tiles").id
        start = self._model.tex_adr[texture]
        self._model.tex_data[start : start + tiles.size] = tiles.ravel()
        self._mujoco.mjr_uploadTexture(self._model, self._renderer, texture)
        centre = ((column + PATCH / 2) * TILE, -(row + PATCH / 2) * TILE, 0)
        self._model.geom("floor").pos[:] = centre


def patch_of(floor: int, column: int, row: int, period: int | None = None) -> Picture:
    """The tiles starting at (column, row), (PATCH * SIZE, PATCH * SIZE, 3), +y at the top."""
    walk = torch.arange(PATCH, dtype=torch.int32)
    seed = torch.tensor(floor, dtype=torch.int32)
    # (rows, columns)
    numbers = tile_texture(seed, column + walk, row + walk[:, None], period)
    tiles: Picture = textures()[numbers.numpy()]  # (rows, columns, S, S, 3)
    return tiles.swapaxes(1, 2).reshape(PATCH * SIZE, PATCH * SIZE, 3)


def _make_context(width: int, height: int) -> Any:
    kind = os.environ.get("MUJOCO_GL") or "egl"
    try:
        return importlib.import_module(f"mujoco.{kind}").GLContext(width, height)
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        raise RuntimeError(
            f"OpenGL with {kind} cannot be used here ({error}): install libegl1 or libosmesa6, "
            "and set MUJOCO_GL to egl or osmesa"
        ) from None
