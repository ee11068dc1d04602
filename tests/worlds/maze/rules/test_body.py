"""The body against DeepMind Lab's measured numbers and against plain geometry.

Shapes: N bodies, T = 4 frames a step.
"""

import numpy as np
import pytest
import torch
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, DoorStyle, Theme
from episodic_curiosity.worlds.maze.levels.layouts import MazeLayout
from episodic_curiosity.worlds.maze.levels.pool import ROOM_THEME, make_pool, room_pool
from episodic_curiosity.worlds.maze.rules import body
from episodic_curiosity.worlds.maze.rules.body import Ground, Motion

CPU = torch.device("cpu")
FORWARD, BACK, LEFT, RIGHT = (1.0, 0, 0), (-1.0, 0, 0), (0, -1.0, 0), (0, 1.0, 0)
REST = (0.0, 0, 0)


def ground_of(rows: list[str], theme: Theme = Theme()) -> Ground:  # noqa: B008
    """A level from text, north at the top: '*' wall, 'H' and 'I' doors, else floor."""
    kinds = {
        "*": CellKind.WALL,
        "H": CellKind.DOOR_H,
        "I": CellKind.DOOR_I,
        " ": CellKind.CORRIDOR,
    }
    cells = np.array([[kinds[character] for character in row] for row in rows[::-1]], np.uint8)
    return body.make_ground(cells[None], theme, body.SLAB, CPU)


def hall(size: int = 30) -> Ground:
    return ground_of(["*" * size, *["*" + " " * (size - 2) + "*"] * (size - 2), "*" * size])


def walk(
    ground: Ground,
    position: tuple[float, float],
    yaw: float,
    command: tuple[float, float, float],
    steps: int,
    velocity: tuple[float, float] = (0.0, 0.0),
) -> list[Motion]:
    """One body holding one action down."""
    motions = []
    where, speed = torch.tensor([position]).T.contiguous(), torch.tensor([velocity]).T
    heading, level = torch.tensor([yaw]), torch.zeros(1, dtype=torch.int64)
    for _ in range(steps):
        motion = body.move(
            ground, level, where, speed.contiguous(), heading, torch.tensor([command]).T, None
        )
        where, speed, heading = motion.position, motion.velocity, motion.yaw
        motions.append(motion)
    return motions


def frames(motions: list[Motion], start: tuple[float, float]) -> Tensor:
    """How fast it went in each frame: (T * steps, 2) units per second."""
    path = torch.cat([torch.tensor([[start]]), *(m.path.transpose(1, 2) for m in motions)])
    return path[:, 0].double().diff(dim=0) / body.FRAME_SECONDS


class TestSpeed:
    def test_ramp_from_rest_is_the_engines_formula(self):
        speeds = frames(walk(hall(), (1500, 1500), 0.0, FORWARD, 4), (1500, 1500))[:, 0]
        expected, speed = [], 0.0
        for _ in range(16):
            speed = max(speed - 0.096 * max(speed, 100.0), 0.0) if speed else 0.0
            speed += min(51.2, 320.0 - speed)
            expected.append(speed)
            speed = float(round(speed))  # the engine rounds after the move
        assert expected[:4] == pytest.approx([51.2, 92.6, 134.6, 173.24])
        assert speeds.tolist() == pytest.approx(expected, abs=0.02)  # float32 positions

    def test_ramp_is_close_to_what_was_measured(self):
        speeds = frames(walk(hall(), (1500, 1500), 0.0, FORWARD, 3), (1500, 1500))[:10, 0]
        measured = torch.tensor([54, 90, 134, 175, 205, 238, 268, 290, 315, 320.0])
        assert (speeds - measured).abs().max() < 4.0

    @pytest.mark.parametrize(
        ("command", "direction"),
        [(FORWARD, (1, 0)), (BACK, (-1, 0)), (LEFT, (0, 1)), (RIGHT, (0, -1))],
    )
    def test_full_speed_is_20_48_units_a_step_every_way(self, command, direction):
        before, after = walk(hall(), (1500, 1500), 0.0, command, 8)[-2:]
        moved = (after.position - before.position)[:, 0].tolist()
        assert moved == pytest.approx([20.48 * d for d in direction], abs=1e-3)

    def test_coasts_for_21_frames_and_40_units(self):
        motions = walk(hall(), (1500, 1500), 0.0, REST, 8, velocity=(320.0, 0.0))
        moving = int((frames(motions, (1500, 1500))[:, 0] > 0).sum())
        assert 20 <= moving <= 22
        assert motions[-1].position[0].item() - 1500 == pytest.approx(40.0, abs=2.0)
        assert motions[-1].velocity.tolist() == [[0.0], [0.0]]

    def test_velocity_is_whole_numbers(self):
        for motion in walk(hall(), (1500, 1500), 33.0, FORWARD, 5):
            assert torch.equal(motion.velocity, motion.velocity.round())

    def test_turns_by_8_448_degrees_a_step_without_inertia(self):
        first, second = walk(hall(), (1500, 1500), 355.0, (0, 0, 2.112), 2)
        assert first.yaw.item() == pytest.approx(3.448, abs=1e-4)
        assert second.yaw.item() == pytest.approx(11.896, abs=1e-4)
        (right,) = walk(hall(), (1500, 1500), 3.0, (0, 0, -2.112), 1)
        assert right.yaw.item() == pytest.approx(354.552, abs=1e-4)

    def test_walking_while_turning_follows_the_heading_of_each_frame(self):
        (motion,) = walk(hall(), (1500, 1500), 0.0, (1.0, 0, 2.112), 1)
        first = (motion.path[0] - torch.tensor([[1500.0], [1500.0]]))[:, 0] / 0.016
        heading = np.deg2rad(2.112)
        assert first.tolist() == pytest.approx(
            [51.2 * np.cos(heading), 51.2 * np.sin(heading)], abs=0.02
        )


class TestWalls:
    corridor = ground_of(["*****", "*   *", "*****"])

    @pytest.mark.parametrize(
        ("yaw", "axis", "stop"),
        [(0, 0, 400 - 16.126), (180, 0, 116.126), (90, 1, 200 - 16.126), (270, 1, 116.126)],
    )
    def test_stops_16_126_units_from_the_cell_edge(self, yaw, axis, stop):
        motion = walk(self.corridor, (250, 150), yaw, FORWARD, 20)[-1]
        assert motion.position[axis].item() == pytest.approx(stop, abs=1e-3)
        assert motion.velocity[axis].item() == 0.0

    def test_slides_along_a_wall_with_the_rest_of_its_velocity(self):
        before, after = walk(hall(), (1500, 116.126), 315.0, FORWARD, 12)[-2:]
        assert after.position[1].item() == pytest.approx(116.126, abs=1e-3)
        # Each frame the wall takes y; friction and acceleration then balance along x.
        speed = (after.position[0] - before.position[0]).item() / body.STEP_SECONDS
        x = 0.0
        for _ in range(60):
            x = x * (1 - 0.096) if x > 100 else max(x - 9.6, 0.0)
            x = float(round(x + min(51.2, 320 - x * 0.5**0.5) * 0.5**0.5))
        assert speed == pytest.approx(x, abs=1.0)
        assert speed > 200

    def test_the_room_has_no_slabs(self):
        ground = body.make_ground(room_pool().cells, ROOM_THEME, 0.0, CPU)
        for yaw, axis, stop in (
            (0, 0, 1000.9),
            (180, 0, -552.9),
            (90, 1, 552.9),
            (270, 1, -744.9),
        ):
            motion = walk(ground, (200.0, 0.0), yaw, FORWARD, 60)[-1]
            assert motion.position[axis].item() == pytest.approx(stop, abs=0.05)

    def test_a_convex_corner_has_a_notch_of_one_unit(self):
        # A wall cell in the middle; its north-east corner is at (300, 300).
        block = ground_of(["*****", "*   *", "* * *", "*   *", "*****"])
        # East of the block, too high for the slab on its east side but not for its north one.
        inside = walk(block, (340, 300 + 15.5), 180.0, FORWARD, 6)[-1]
        assert inside.position[0].item() == pytest.approx(300 + 15.126, abs=1e-3)
        beside = walk(block, (340, 300 + 15.0), 180.0, FORWARD, 6)[-1]
        assert beside.position[0].item() == pytest.approx(300 + 16.126, abs=1e-3)
        past = walk(block, (340, 300 + 16.2), 180.0, FORWARD, 6)[-1]
        assert past.position[0].item() < 300

    def test_a_body_against_a_wall_does_not_catch_on_the_next_one(self):
        motion = walk(hall(), (150, 116.126), 0.0, FORWARD, 100)[-1]
        assert motion.position[0].item() > 1900

    def test_no_body_ever_overlaps_a_wall(self):
        """A random crowd in drawn mazes, against every slab of every level."""
        layout = MazeLayout(height=9, width=9, max_rooms=2)
        cells = make_pool(layout, num_levels=8, seed=3, split="train").cells
        ground = body.make_ground(cells, Theme(), body.SLAB, CPU)
        level = torch.arange(64) % 8
        floor = [np.flatnonzero(cells[i] != CellKind.WALL) for i in level]
        random = np.random.default_rng(0)
        start = torch.tensor([random.choice(choices) for choices in floor])
        position = body.centre_of(ground, start)
        velocity, yaw = torch.zeros(2, 64), torch.from_numpy(random.uniform(0, 360, 64)).float()
        commands = torch.tensor(
            [FORWARD, FORWARD, BACK, LEFT, RIGHT, (1, 0, 2.1), (1, 0, -2.1)]
        )
        walls = [slabs(cells[i]) for i in level]
        travelled = 0.0
        held = torch.from_numpy(random.integers(0, len(commands), 64))
        for step in range(120):
            if step % 6 == 0:
                held = torch.from_numpy(random.integers(0, len(commands), 64))
            before = position
            motion = body.move(
                ground, level, position, velocity, yaw, commands[held].T.contiguous(), None
            )
            position, velocity, yaw = motion.position, motion.velocity, motion.yaw
            travelled += (position - before).norm(dim=0).mean().item()
            for row, rectangles in enumerate(walls):
                for x, y in motion.path[:, :, row].tolist():
                    gap = np.abs(rectangles[:, :2] - (x, y)) - rectangles[:, 2:]
                    assert (gap.max(axis=1) >= 15.0 - 1e-3).all(), (row, x, y)
        assert travelled > 500  # they did walk


def slabs(cells: np.ndarray) -> np.ndarray:
    """Centres and half widths (R, 4) of a level's walls and of the slabs on their faces."""
    rectangles = []
    for y, x in np.argwhere(cells == CellKind.WALL):
        rectangles.append((100 * x + 50, 100 * y + 50, 50, 50))
        for side_x, side_y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            neighbour = y + side_y, x + side_x
            inside = all(0 <= n < size for n, size in zip(neighbour, cells.shape, strict=True))
            if inside and cells[neighbour] != CellKind.WALL:
                centre = 100 * x + 50 + 50.5 * side_x, 100 * y + 50 + 50.5 * side_y
                half = (0.5, 50) if side_x else (50, 0.5)
                rectangles.append((*centre, *half))
    return np.array(rectangles, float)


class TestDoors:
    rows = ("***", "* *", "*H*", "* *", "***")  # the door's cell is x 100..200, y 200..300

    def through(
        self, x: float, is_open: bool, style: DoorStyle = DoorStyle.SLAB, start_y: float = 130.0
    ) -> Motion:
        """Walks a body north along x."""
        theme = Theme(door_style=style)
        ground = ground_of(list(self.rows), theme)
        cells = torch.tensor([[2, 2, 2, 2, 0, 2, 2, 4, 2, 2, 0, 2, 2, 2, 2]], dtype=torch.uint8)
        doors = torch.where(cells == CellKind.DOOR_H, 0, NO_DOOR).to(torch.uint8)
        position, velocity = torch.tensor([[x], [start_y]]), torch.zeros(2, 1)
        level = torch.zeros(1, dtype=torch.int64)
        for _ in range(30):
            obstacle = body.door_obstacle(
                ground, level, position, cells, doors, torch.tensor([int(is_open)])
            )
            motion = body.move(
                ground,
                level,
                position,
                velocity,
                torch.tensor([90.0]),
                torch.tensor([FORWARD]).T.contiguous(),
                obstacle,
            )
            position, velocity = motion.position, motion.velocity
        return motion

    @pytest.mark.parametrize("x", [117.0, 150.0, 183.0])
    def test_a_shut_door_stops_a_body_before_its_slab(self, x):
        assert self.through(x, False).position[1].item() == pytest.approx(
            250 - 16.126, abs=1e-3
        )

    def test_an_open_door_lets_it_pass(self):
        assert self.through(150.0, True).position[1].item() > 350

    def test_six_units_of_an_open_slab_remain_in_the_way(self):
        stopped = self.through(179.0, True)
        assert stopped.position[1].item() == pytest.approx(250 - 16.126, abs=1e-3)
        assert self.through(177.8, True).position[1].item() > 350  # 193 - 15.126 = 177.874

    def test_a_fence_is_eight_units_deep_and_opens_like_a_slab(self):
        for x, is_open in ((150.0, False), (183.0, False), (179.0, True)):
            stopped = self.through(x, is_open, DoorStyle.FENCE)
            assert stopped.position[1].item() == pytest.approx(250 - 19.126, abs=1e-3)
        assert self.through(177.8, True, DoorStyle.FENCE).position[1].item() > 350


def test_one_body_alone_moves_as_it_does_in_a_crowd():
    ground = hall()
    position = torch.rand(2, 7, generator=torch.Generator().manual_seed(0)) * 2000 + 200
    yaw, velocity = torch.arange(7) * 50.0, torch.ones(2, 7) * 100
    command = torch.tensor([FORWARD, BACK, LEFT, RIGHT, REST, FORWARD, BACK]).T.contiguous()
    level = torch.zeros(7, dtype=torch.int64)
    crowd = body.move(ground, level, position, velocity, yaw, command, None)
    for i in range(7):
        one = [part[..., i : i + 1].contiguous() for part in (position, velocity, yaw, command)]
        alone = body.move(ground, level[:1], *one, None)
        assert torch.equal(alone.path[..., 0], crowd.path[..., i])
