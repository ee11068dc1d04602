"""What must be seen, worked out by hand on small levels."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, DoorStyle, Sprite, Theme
from episodic_curiosity.worlds.maze.levels.stored import LevelPool, plain_levels
from episodic_curiosity.worlds.maze.render import effects, render_torch, textures, walk_torch
from episodic_curiosity.worlds.maze.render.level_map import make_level_map
from episodic_curiosity.worlds.maze.render.renderer import Renderer
from episodic_curiosity.worlds.maze.render.scene import NUM_MARKS, Scene, Side
from tests.worlds.maze.render.scenes import KINDS, random_scenes

SYMBOLS = {" ": CellKind.CORRIDOR, ".": CellKind.ROOM, "*": CellKind.WALL, "o": CellKind.VOID}
SYMBOLS |= {"H": CellKind.DOOR_H, "I": CellKind.DOOR_I}
# Nine cells of corridor from west to east; the walker stands at (150, 150).
HALL = """
***********
*         *
***********
"""


def pool_of(text: str, decal: tuple[int, int, int, int] | None = None) -> LevelPool:
    """A pool of one level, its north at the top; decal is (x, y, side, picture)."""
    rows = [[SYMBOLS[symbol] for symbol in line] for line in text.strip("\n").split("\n")]
    cells = np.array(rows[::-1], np.uint8)[None]
    is_door = cells >= CellKind.DOOR_H
    doors = np.full_like(cells, NO_DOOR)
    doors[is_door] = np.arange(is_door.sum())
    decals = np.zeros((*cells.shape, 4), np.uint8)
    if decal is not None:
        x, y, side, picture = decal
        decals[0, y, x, side] = picture
    nowhere = np.array([[-1]])
    return plain_levels(
        cells,
        spawns=nowhere,
        goals=nowhere,
        distance=np.zeros((1, 1, 1), np.uint8),
        doors=doors,
        door_colours=np.arange(max(1, is_door.sum()), dtype=np.uint8)[None],
        decals=decals,
    )


def scene(x: float = 150.0, y: float = 150.0, yaw: float = 0.0, **changes: Tensor) -> Scene:
    one = Scene(
        level=torch.zeros(1, dtype=torch.int64),
        position=torch.tensor([[x, y]]),
        yaw=torch.tensor([yaw]),
        wall_look=torch.tensor([8], dtype=torch.uint8),
        floor_look=torch.tensor([4], dtype=torch.uint8),
        open_doors=torch.zeros(1, dtype=torch.int64),
        sprite=torch.zeros(1, 1, dtype=torch.uint8),
        sprite_position=torch.zeros(1, 1, 2),
        time=torch.zeros(1),
        mark_position=torch.zeros(1, NUM_MARKS, 2),
        mark_side=torch.zeros(1, NUM_MARKS, dtype=torch.uint8),
        mark_age=torch.full((1, NUM_MARKS), torch.inf),
        spawn_age=torch.full((1,), 100.0),
    )
    return one._replace(**changes)


def look(
    pool: LevelPool, scene: Scene, size: tuple[int, int] = (120, 160), **theme: object
) -> Tensor:
    """(h, w, 3) int64, top row first."""
    renderer = Renderer(Theme(**theme), pool, *size, "cpu")  # type: ignore[arg-type]
    return renderer.draw(scene)[0].permute(1, 2, 0).long()


def is_sky(picture: Tensor) -> Tensor:
    """Of the colours in these tests only the sky's and its towers' blue exceeds the rest."""
    return (picture[..., 2] > picture[..., 0] + 15) & (picture[..., 2] > picture[..., 1] + 10)


@pytest.mark.parametrize("distance", [150.0, 250.0, 850.0])
def test_a_wall_ahead_spans_the_rows_its_distance_says(distance: float) -> None:
    picture = look(pool_of(HALL), scene(x=1000 - distance))
    column = picture[:, 80]
    half = 50 / distance / 0.75 * 60  # rows between the horizon and the wall's edge
    green = (column[:, 1] > column[:, 0]) & (column[:, 1] > column[:, 2])
    rows = green.nonzero().squeeze(1)
    assert abs(int(rows.min()) - (60 - half)) <= 1
    assert abs(int(rows.max()) + 1 - (60 + half)) <= 1
    if half > 20:
        skirting = column[int(60 + 0.85 * half)]  # at about 7 of the wall's 100 units
        assert skirting[2] > skirting[1] > skirting[0] + 50
    assert is_sky(column[: int(60 - half)]).all()
    below = column[math.ceil(60 + half) + 1 :]
    assert (below[:, 0] > below[:, 2] + 40).all()  # the orange floor


def test_yaw_zero_looks_east_and_turns_to_the_left() -> None:
    level = pool_of(HALL, decal=(9, 1, Side.EAST, 3))

    def columns_of_decal(yaw: float) -> Tensor:
        view = scene(x=900.0, yaw=yaw)
        return (look(level, view) != look(pool_of(HALL), view)).any(-1).nonzero()[:, 1].float()

    assert abs(columns_of_decal(0.0).mean() - 79.5) < 1
    assert len(columns_of_decal(180.0)) == 0
    # Turned 20 degrees to the left, what was ahead is to the right.
    assert abs(columns_of_decal(20.0).mean() - (80 + 80 * math.tan(math.radians(20)))) < 3


def test_decals_are_32_units_wide_at_eye_height() -> None:
    with_decal = look(pool_of(HALL, decal=(9, 1, Side.EAST, 1)), scene(x=900.0), (120, 160))
    without = look(pool_of(HALL), scene(x=900.0), (120, 160))
    rows, columns = (with_decal != without).any(-1).nonzero().T
    # 100 units away a picture 160 wide shows 200 units: 0.8 pixels a unit, both ways.
    assert abs(int(columns.max() - columns.min()) + 1 - 25.6) <= 2
    assert abs(int(rows.max() - rows.min()) + 1 - 25.6) <= 2
    assert abs(float(rows.float().mean()) - 59.5) < 1.5


def test_rooms_and_corridors_have_looks_of_their_own() -> None:
    level = pool_of("*****\n*   *\n*...*\n*****")
    north = look(level, scene(x=250.0, y=250.0, yaw=90.0))  # both rows of cells are one room
    south = look(level, scene(x=250.0, y=250.0, yaw=270.0))
    assert north[60, 80, 1] > north[60, 80, 2]  # green panels
    assert south[60, 80, 2] > south[60, 80, 0] + 20  # blue bricks
    assert north[119, 80, 0] > north[119, 80, 2]  # orange hexagons
    other = look(level, scene(x=250.0, y=250.0, yaw=270.0, wall_look=torch.tensor([12]).byte()))
    assert (other[60] != south[60]).any()
    assert torch.equal(other[119], south[119])


class TestSprites:
    def at(self, x: float, y: float, sprite: Sprite = Sprite.GOAL, **changes: Tensor) -> Scene:
        return scene(
            sprite=torch.tensor([[sprite]], dtype=torch.uint8),
            sprite_position=torch.tensor([[[x, y]]]),
            **changes,
        )

    def where(self, level: LevelPool, scene: Scene) -> tuple[Tensor, Tensor]:
        nothing = scene._replace(sprite=torch.zeros_like(scene.sprite))
        rows, columns = (look(level, scene) != look(level, nothing)).any(-1).nonzero().T
        return rows, columns

    def test_straight_ahead_is_the_middle_column_and_has_its_size(self) -> None:
        rows, columns = self.where(pool_of(HALL), self.at(250.0, 150.0))
        assert abs(float(columns.float().mean()) - 79.5) < 1
        # 100 units away: 0.8 pixels a unit; the lobes are 25 x 32.5 u, 19 u above the floor.
        assert abs(int(columns.max() - columns.min()) + 1 - 20) <= 2
        assert abs(int(rows.max() - rows.min()) + 1 - 26) <= 2
        assert abs(int(rows.max()) + 1 - (60 + 0.8 * (50 - 19))) <= 1.5

    def test_it_bobs_and_spins(self) -> None:
        still, _ = self.where(pool_of(HALL), self.at(250.0, 150.0))
        quarter = torch.tensor([textures.BOB_PERIOD / 4])
        raised, _ = self.where(pool_of(HALL), self.at(250.0, 150.0, time=quarter))
        assert abs(int(still.max() - raised.max()) - 0.8 * 4) <= 1
        edge_on = torch.tensor([textures.SPIN_PERIOD / 4])
        _, columns = self.where(pool_of(HALL), self.at(250.0, 150.0, time=edge_on))
        assert abs(int(columns.max() - columns.min()) + 1 - 20 * 0.7) <= 2

    def test_it_is_hidden_behind_a_wall_and_behind_the_viewer(self) -> None:
        blocked = pool_of("*******\n*  *  *\n*******")
        assert len(self.where(blocked, self.at(450.0, 150.0))[0]) == 0
        assert len(self.where(pool_of(HALL), self.at(120.0, 150.0))[0]) == 0
        assert len(self.where(pool_of(HALL), self.at(450.0, 150.0))[0]) > 0

    def test_the_nearer_hides_the_farther_in_any_order(self) -> None:
        near, far = (200.0, 150.0), (290.0, 150.0)
        sprites = torch.tensor([[Sprite.CAN, Sprite.BALLOON]], dtype=torch.uint8)
        pictures = [
            look(pool_of(HALL), scene(sprite=kinds, sprite_position=torch.tensor([places])))
            for kinds, places in ((sprites, [near, far]), (sprites.flip(1), [far, near]))
        ]
        assert torch.equal(pictures[0], pictures[1])
        alone = look(pool_of(HALL), self.at(*near, sprite=Sprite.CAN))
        rows, columns = self.where(pool_of(HALL), self.at(*near, sprite=Sprite.CAN))
        assert torch.equal(pictures[0][rows, columns], alone[rows, columns])


class TestDoors:
    level = pool_of("*******\n*  I  *\n*******")

    def test_a_shut_slab_hides_what_an_open_one_shows(self) -> None:
        goal = TestSprites().at(500.0, 150.0, sprite=Sprite.BALLOON)
        shut = look(self.level, goal)
        opened = look(self.level, goal._replace(open_doors=torch.tensor([1])))
        # The slab stands 199 units ahead of x = 150, dark and grey.
        half = 50 / 199 / 0.75 * 60
        middle = shut[int(60 - half) + 2 : int(60 + half) - 1, 80]
        assert (middle < 100).all()
        assert ((middle.amax(1) - middle.amin(1)) < 20).all()
        assert (opened[60, 80] > 100).any()  # the balloon

    def test_an_open_slab_leaves_an_edge_of_six_units_on_its_far_side(self) -> None:
        bare = pool_of("*******\n*     *\n*******")
        opened = look(self.level, scene(open_doors=torch.tensor([1])))
        columns = (opened != look(bare, scene())).any(-1).nonzero()[:, 1]
        # An east/west passage: the slab slid north, to the left of one who looks east.
        left = 80 - 80 * 50 / 199
        assert abs(int(columns.min()) - left) <= 1.5
        assert abs(int(columns.max()) - (80 - 80 * 44 / 199)) <= 1.5

    def test_fences_are_coloured_and_see_through(self) -> None:
        goal = TestSprites().at(500.0, 150.0, sprite=Sprite.LOLLY)
        theme = {"door_style": DoorStyle.FENCE}
        red = look(self.level, goal, **theme)
        gone = look(self.level, goal._replace(open_doors=torch.tensor([1])), **theme)
        fence = (red != gone).any(-1)
        assert 0.02 < fence.float().mean() < 0.1  # of 0.13 within its frame
        assert (red[fence][:, 0] > 2 * red[fence][:, 1]).all()
        orange = torch.tensor([252, 132, 24])
        seen = ((red - orange).abs() < 60).all(-1)[30:90, 60:100]
        assert seen.any()

    @pytest.mark.parametrize(
        ("x", "y", "yaw", "solid"), [(150.0, 450.0, 0.0, False), (330.0, 330.0, 75.0, True)]
    )
    def test_a_fence_looks_solid_from_aside(
        self, x: float, y: float, yaw: float, solid: bool
    ) -> None:
        """Gaps of 19 units between posts 8 units deep: nothing is seen beyond 67 degrees."""
        level = pool_of("ooooo\no  Io\no   o\no   o\no   o\nooooo")  # at x 350, y 400 to 500
        eye_height = look(level, scene(x, y, yaw), door_style=DoorStyle.FENCE)[60]
        (columns,) = (eye_height == torch.tensor([236, 0, 0])).all(-1).nonzero(as_tuple=True)
        width = int(columns.max() - columns.min()) + 1
        assert width > 15
        assert (len(columns) == width) == solid

    def test_seven_units_of_an_open_fence_stay_in_the_doorway(self) -> None:
        opened = scene(open_doors=torch.tensor([1]))
        picture = look(self.level, opened, door_style=DoorStyle.FENCE)
        post = (picture == torch.tensor([236, 0, 0])).all(-1)
        columns = post.any(0).nonzero()
        # From y 193 to 200 at x 346 to 354, seen from (150, 150) to the east.
        assert abs(int(columns.min()) - (80 - 80 * 50 / 196)) <= 1.5
        assert abs(int(columns.max()) - (80 - 80 * 43 / 204)) <= 1.5


def test_void_shows_only_sky() -> None:
    islands = pool_of("ooooooo\no  o  o\nooooooo")
    picture = look(islands, scene())
    assert is_sky(picture[:59]).all()
    # The void cell begins 150 units ahead and ends at 250, where the next island begins.
    floor = ~is_sky(picture[:, 80])
    first, last, far = (60 + 50 / d / 0.75 * 60 for d in (150, 250, 450))
    assert floor[math.ceil(first) + 1 :].all()
    assert not floor[math.ceil(last) + 1 : int(first) - 1].any()
    assert floor[math.ceil(far) + 1 : int(last) - 1].all()


def test_a_ceiling_replaces_the_sky() -> None:
    picture = look(pool_of(HALL), scene(), ceiling=True, wall_height=176.0)
    assert picture[0, 80].tolist() == [168, 208, 236]
    turned = look(pool_of(HALL), scene(yaw=3.0), ceiling=True, wall_height=176.0)
    assert turned[0, 80].tolist() == [168, 208, 236]


class TestShots:
    def shot(self, *ages: float) -> Scene:
        """Hits the east wall of the hall, seen from 100 units away."""
        age = torch.full((1, NUM_MARKS), torch.inf)
        age[0, : len(ages)] = torch.tensor(ages)
        place = torch.tensor([1000.0, 150.0]).repeat(1, NUM_MARKS, 1)
        side = torch.full((1, NUM_MARKS), Side.WEST, dtype=torch.uint8)
        return scene(x=900.0, mark_age=age, mark_position=place, mark_side=side)

    def change(self, *ages: float) -> Tensor:
        return look(pool_of(HALL), self.shot(*ages)) - look(pool_of(HALL), self.shot())

    def test_a_flash_adds_blue_light_in_a_growing_ring(self) -> None:
        radii = []
        for age in (0.1, 0.2, 0.3):
            change = self.change(age)
            assert (change[..., 0] == 0).all()  # no red: an additive (0, .58, 1)
            assert (change >= 0).all()
            columns = change[60].any(-1).nonzero()
            radii.append(float(columns.max() - columns.min()) / 2)
            expected = effects.FLASH_RADIUS + effects.FLASH_GROWTH * age + effects.FLASH_WIDTH
            assert abs(radii[-1] - 0.8 * expected) <= 2.5
        assert radii == sorted(radii)

    def test_flashes_add_up(self) -> None:
        one, two = self.change(0.3), self.change(0.3, 0.3)
        assert two[..., 1].sum() > 1.5 * one[..., 1].sum()

    def test_a_mark_of_radius_eight_fades_within_ten_seconds(self) -> None:
        young, old, gone = self.change(0.7), self.change(8.0), self.change(10.0)
        rows, columns = young.any(-1).nonzero().T
        assert int(columns.max() - columns.min()) + 1 <= 0.8 * 16 + 1
        assert int(rows.max() - rows.min()) + 1 <= 0.8 * 16 + 1
        assert 0 < old.sum() < 0.5 * young.sum()
        assert (gone == 0).all()

    def test_of_marks_that_overlap_the_newest_is_drawn_by_torch_as_by_numba(self) -> None:
        pytest.importorskip("numba")
        shots = self.shot(3.0, 9.0, 1.0, 11.0)
        beside = torch.tensor([-5.0, 0.0, 4.0, 8.0])
        shots.mark_position[0, :4, 1].copy_(150.0 + beside)
        theme, level = Theme(), pool_of(HALL)
        camera = walk_torch.make_camera(120, 160, "cpu")
        level_map = make_level_map(theme, level, "cpu")
        by_torch = render_torch.render(theme, level_map, textures.textures(), camera, shots)
        by_numba = look(level, shots)
        assert ((by_numba - look(level, self.shot())).amax(-1) > 20).sum() > 50
        assert (by_torch[0].permute(1, 2, 0).long() - by_numba).abs().max() <= 2

    @pytest.mark.parametrize("side", [Side.EAST, Side.NORTH, Side.SOUTH])
    def test_a_mark_shows_on_the_face_it_is_on_alone(self, side: Side) -> None:
        elsewhere = self.shot(5.0)._replace(
            mark_side=torch.full((1, NUM_MARKS), side, dtype=torch.uint8)
        )
        assert torch.equal(look(pool_of(HALL), elsewhere), look(pool_of(HALL), self.shot()))


def test_a_ring_surrounds_the_newly_spawned_for_half_a_second() -> None:
    later = look(pool_of(HALL), scene())
    for age, shown in ((0.0, True), (0.2, True), (0.5, False)):
        change = look(pool_of(HALL), scene(spawn_age=torch.tensor([age]))) - later
        assert (change >= 0).all()
        assert (change[0].sum() > 0) == shown
        assert (change[-1].sum() > 0) == shown
        assert (change[40:80] == 0).all()


@pytest.mark.parametrize("size", [(84, 84), (120, 160), (32, 32), (61, 37), (1, 1)])
def test_every_size_shows_the_same_view(size: tuple[int, int]) -> None:
    height, width = size
    theme, level, frames = random_scenes("doors", 3, seed=5)
    pictures = Renderer(theme, level, height, width, "cpu").draw(frames)
    assert pictures.shape == (3, 3, height, width)
    assert pictures.dtype == torch.uint8
    if min(size) > 30:
        # Averaged to 4 x 4 patches, all sizes agree.
        patches = [
            torch.nn.functional.adaptive_avg_pool2d(picture.float(), 4)
            for picture in (pictures, Renderer(theme, level, 96, 96, "cpu").draw(frames))
        ]
        assert (patches[0] - patches[1]).abs().mean() < 6


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_alone_equals_it_inside_a_batch(kind: str) -> None:
    theme, level, frames = random_scenes(kind, 7)
    renderer = Renderer(theme, level, 40, 56, "cpu")
    batch = renderer.draw(frames)
    assert torch.equal(batch, renderer.draw(frames))
    for n in (0, 4):
        alone = renderer.draw(Scene(*(field[n : n + 1] for field in frames)))
        assert torch.equal(alone[0], batch[n])
    rows = torch.tensor([5, 2])
    assert torch.equal(renderer.draw(frames, rows), batch[rows])


def test_bad_requests_are_named() -> None:
    theme, level, _ = random_scenes("sparse", 2)
    with pytest.raises(ValueError, match="0 x 84"):
        Renderer(theme, level, 0, 84, "cpu")


def test_the_textures_are_distinct_and_the_same_every_time() -> None:
    texels = textures.textures().texels.numpy()
    tiles = texels[: textures.SKY].reshape(textures.NUM_TILES, -1)
    assert len(np.unique(tiles[textures.WALLS : textures.SPRITES], axis=0)) == 120
    textures.textures.cache_clear()
    assert np.array_equal(textures.textures().texels.numpy(), texels)
