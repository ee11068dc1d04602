"""Light, sizes and effects: the numbers both renderers share. Units and engine seconds."""

SIDE_SHADE = 0.86  # walls that face east or west are darker
SHADE_PER_UNIT, SHADE_MIN = 0.00012, 0.75  # things grow a little darker with depth

DECAL_UNITS = 32.0
SLAB_LOW, SLAB_HIGH = 0.49, 0.51  # where a slab begins and ends across its cell
SLAB_OPEN_EDGE = 0.93  # of a cell: where an open slab's last bit begins
FENCE_WIDTH, FENCE_HEIGHT = 98.0, 100.0
MAX_LAYERS = (
    3  # a column shows the nearest billboards and fences; more matter once in 100 frames
)

FLASH_LIFE = 0.6
FLASH_COLOUR = (0.0, 0.58 * 255, 255.0)
FLASH_RADIUS, FLASH_GROWTH = 6.0, 110.0  # at first, and per second
FLASH_WIDTH = 5.0  # of the ring
FLASH_HAZE = 0.4  # brightness within the ring
MARK_LIFE = 10.0
MARK_RADIUS = 8.0

SPAWN_LIFE = 0.5
SPAWN_RING, SPAWN_GROWTH = 0.56, 0.4  # tangent of the ring's elevation at first, and per second
SPAWN_EDGE = 0.06  # tangent over which the ring brightens
SPAWN_ABOVE, SPAWN_BELOW = (255.0, 245.0, 255.0), (255.0, 205.0, 90.0)
CEILING = 168 | 208 << 8 | 236 << 16  # a flat light blue, as a texel
