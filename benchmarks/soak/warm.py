"""What every run would import or load anew, once before all of them.

No threads are started: a fork would lose them.
"""

import contextlib
import importlib
import os

import torch
from numba.core.registry import cpu_target

from episodic_curiosity.worlds.maze.render.textures import textures

IMPORTS = (
    "mujoco",
    "numba.np.ufunc.parallel",
    "torch._dynamo",
    "torch.utils.tensorboard",
    "tests.experiments.small_table",
    "episodic_curiosity.worlds.ant.view_numba",
    "episodic_curiosity.worlds.ant.world",
    "episodic_curiosity.worlds.gymnasium.world",
    "episodic_curiosity.worlds.maze.render.render_numba",
    "episodic_curiosity.worlds.maze.world",
    "episodic_curiosity.worlds.vizdoom.world",
)

for name in IMPORTS:
    with contextlib.suppress(ImportError):  # of an extra
        importlib.import_module(name)
cpu_target.target_context.refresh()
textures()
torch.set_num_threads(1)
assert len(os.listdir("/proc/self/task")) == 1
