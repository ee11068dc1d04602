"""The body: N copies of MuJoCo's standard ant, stepped on several threads.

The same ant as Ant-v2 to Ant-v5 of Gym and Gymnasium. Shapes: N ants, S numbers in a state.
"""

import importlib
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.support.machine import check_memory, num_cores
from episodic_curiosity.worlds.ant.scene import CAMERA_TURN, FIELD_OF_VIEW

NUM_POSITIONS, NUM_VELOCITIES, NUM_MOTORS = 15, 14, 8
STATE_BYTES = 1200  # of one ant, S float64
SUBSTEPS = 5  # per step, 0.01 s each
# Each leg points to one of four corners; motor numbers start with the last leg.
LEGS = ((1, 1), (-1, 1), (-1, -1), (1, -1))
MOTOR_ORDER = (3, 0, 1, 2)


def describe_ant(floor: str = 'size="200 200 1"', more: str = "") -> str:
    """The ant as MuJoCo XML; `floor` attributes and `more` elements change its appearance."""
    legs = "".join(_leg(number, *corner) for number, corner in enumerate(LEGS))
    motors = "".join(
        f'<motor joint="{joint}_{leg}" gear="150" ctrllimited="true" ctrlrange="-1 1"/>'
        for leg in MOTOR_ORDER
        for joint in ("hip", "ankle")
    )
    camera = " ".join(map(str, CAMERA_TURN))
    return f"""
    <mujoco model="ant">
      <compiler angle="degree" inertiafromgeom="true"/>
      <option integrator="RK4" timestep="0.01"/>
      <default>
        <joint armature="1" damping="1" limited="true"/>
        <geom conaffinity="0" condim="3" density="5" friction="1 0.5 0.5" margin="0.01"
              rgba="0.8 0.6 0.4 1" group="1"/>
      </default>
      {more}
      <worldbody>
        <geom name="floor" type="plane" conaffinity="1" group="0" {floor}/>
        <body name="torso" pos="0 0 0.75">
          <joint type="free" limited="false" armature="0" damping="0" margin="0.01"/>
          <geom type="sphere" size="0.25"/>
          <camera name="head" quat="{camera}" fovy="{FIELD_OF_VIEW}"/>
          {legs}
        </body>
      </worldbody>
      <actuator>{motors}</actuator>
    </mujoco>"""


def _leg(number: int, x: int, y: int) -> str:
    """Three capsules in a row towards a corner, joined by a hip and then an ankle."""
    bone = f'<geom type="capsule" size="0.08" fromto="0 0 0 {0.2 * x} {0.2 * y} 0"/>'
    foot = f'<geom type="capsule" size="0.08" fromto="0 0 0 {0.4 * x} {0.4 * y} 0"/>'
    bend = "30 70" if x > 0 else "-70 -30"
    joint = f'<body pos="{0.2 * x} {0.2 * y} 0">'
    return f"""
    <body>
      {bone}
      {joint}
        <joint name="hip_{number}" type="hinge" axis="0 0 1" range="-30 30"/>
        {bone}
        {joint}
          <joint name="ankle_{number}" type="hinge" axis="{-x * y} 1 0" range="{bend}"/>
          {foot}
        </body>
      </body>
    </body>"""


def import_mujoco() -> Any:
    """Imports MuJoCo; raises ImportError with instructions if it is missing or too old."""
    try:
        importlib.import_module("mujoco.batch")
    except ImportError as missing:
        raise ImportError(
            "tasks named ant/... need MuJoCo 3.17 or newer: "
            "pip install 'episodic-curiosity[mujoco]'"
        ) from missing
    return importlib.import_module("mujoco")


def _num_threads() -> int:
    """Torch's number of threads, at most 3/4 of many cores: the slowest sets the pace."""
    return min(torch.get_num_threads(), max(4, num_cores() * 3 // 4))


class Ants:
    """N ants stepped as one batch; results depend neither on N nor on the number of threads."""

    def __init__(self, num_ants: int) -> None:
        mujoco = import_mujoco()
        what = f"a world of {num_ants} ants"
        check_memory(what, STATE_BYTES * num_ants, torch.device("cpu"), "lower `num_envs`")
        model = mujoco.MjModel.from_xml_string(describe_ant())
        # Islands of bodies that touch cost time, and one ant is one of them at most.
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND
        self._batch = mujoco.batch.Batch(model, num_ants, nthread=_num_threads())
        # Views of MuJoCo's arrays, not copies: writing to them moves the ants.
        self.state = torch.from_numpy(self._batch.state)  # (N, S) float64, all of the below
        self.positions = torch.from_numpy(self._batch.bind("qpos"))  # (N, 15)
        self.velocities = torch.from_numpy(self._batch.bind("qvel"))  # (N, 14)
        self._motors = torch.from_numpy(self._batch.bind("ctrl"))  # (N, 8)
        self._rest = self.state[0].clone()
        self._unstable = [
            int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}"))
            for what in ("QPOS", "QVEL", "QACC")
        ]

    def place(self, rows: Tensor, positions: Tensor, velocities: Tensor) -> None:
        """Resets the ants listed in `rows` to these positions and velocities."""
        self.state[rows] = self._rest
        self.positions[rows] = positions
        self.velocities[rows] = velocities

    def step(self, actions: Tensor) -> Tensor:
        """Simulates 0.05 s with (N, 8) float32 actions, which the motors clip to [-1, 1].

        Returns (N,) bool: ants whose simulation was unstable; these keep their previous state.
        """
        before, num_unstable = self.state.clone(), self._num_unstable()
        self._motors.copy_(actions)
        self._batch.step(nstep=SUBSTEPS)
        lost = self._num_unstable() > num_unstable
        self.state[lost] = before[lost]
        return lost

    def _num_unstable(self) -> Tensor:
        """(N,) how often MuJoCo's simulation has been unstable and was reset."""
        return torch.from_numpy(self._batch.warning[:, self._unstable, 1].sum(1))
