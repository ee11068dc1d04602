"""Light, sizes and effects: constants of both renderers, in units and engine seconds."""

SIDE_SHADE = 0.86  # brightness of walls that face east or west
SHADE_PER_UNIT, SHADE_MIN = 0.00012, 0.75  # brightness falls with depth

DECAL_UNITS = 32.0
SLAB_LOW, SLAB_HIGH = 0.49, 0.51  # extent of a slab across its cell
SLAB_OPEN_EDGE = 0.93  # where the visible end of an open slab begins in its cell
FENCE_WIDTH, FENCE_HEIGHT, FENCE_HALF_DEPTH = 98.0, 100.0, 4.0
FENCE_OPEN_WIDTH = 7.0  # the part of an open fence that stays in its doorway
FENCE_OPEN_SHIFT = 46.5  # distance of its centre from the middle of the doorway
FENCE_POSTS = 4
FENCE_FIRST_POST, FENCE_POST_GAP = -0.44, 0.88 / 3  # centres of the posts, in widths
FENCE_HALF_POST = 0.05
FENCE_POST_EDGE = 0.04  # a ray that grazes a post shows it here, safely within its texels
MAX_LAYERS = 3  # nearest billboards and fences per column; more would matter in 1% of frames

FLASH_LIFE = 0.6
FLASH_COLOUR = (0.0, 0.58 * 255, 255.0)
FLASH_RADIUS, FLASH_GROWTH = 6.0, 110.0  # initial, and per second
FLASH_WIDTH = 5.0  # of the ring
FLASH_HAZE = 0.4  # brightness within the ring
MARK_LIFE = 10.0
MARK_RADIUS = 8.0

SPAWN_LIFE = 0.5
SPAWN_RING, SPAWN_GROWTH = 0.56, 0.4  # tangent of elevation: initial, and per second
SPAWN_EDGE = 0.06  # tangent over which the ring fades in
SPAWN_ABOVE, SPAWN_BELOW = (255.0, 245.0, 255.0), (255.0, 205.0, 90.0)
CEILING = 168 | 208 << 8 | 236 << 16  # light blue, as a texel
