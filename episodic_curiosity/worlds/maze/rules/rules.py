"""One step of N mazes: bodies move, items are taken, shots are fired.

Shapes: N environments, L levels, A actions, B items, F fire marks, T frames per step. All
functions map one MazeState to the next, with fixed shapes. Random numbers are hashes of
(environment, episode, spawn, purpose), so environments are independent of each other.
"""

from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.support.randomness import (
    bits_below,
    bits_to_unit,
    mix,
    more_bits,
    random_bits,
)
from episodic_curiosity.worlds.lab.elements import NO_DOOR, Sprite
from episodic_curiosity.worlds.maze.render.scene import (
    NUM_FLOOR_LOOKS,
    NUM_MARKS,
    NUM_WALL_LOOKS,
)
from episodic_curiosity.worlds.maze.rules import body, objects
from episodic_curiosity.worlds.maze.rules.levels import Levels
from episodic_curiosity.worlds.maze.rules.shots import FAR, Doors, first_hit
from episodic_curiosity.worlds.maze.rules.state import NEVER, NO_KEY, MazeState, choose
from episodic_curiosity.worlds.maze.tasks import COMMANDS, MazeTask

# Plain ints: under torch.compile, a tensor never equals a member of an enum.
NONE, GOAL, LOLLY = int(Sprite.NONE), int(Sprite.GOAL), int(Sprite.LOLLY)
KEY_RED, KEY_BLACK = int(Sprite.KEY_RED), int(Sprite.KEY_BLACK)

# A body touches an item from 50 units west to 44 east and 36 north or south of it.
TOUCH_CENTRE, TOUCH_HALF = (-3.0, 0.0), (47.0, 36.0)
WORTH: dict[int, float] = {
    GOAL: 10.0,
    LOLLY: 50.0,
    **dict.fromkeys(range(KEY_RED, KEY_BLACK + 1), 1.0),
    **dict.fromkeys(objects.GOOD, 1.0),
    **dict.fromkeys(objects.BAD, -1.0),
}
DOOR_WORTH = 1.0
NUM_PICK_UPS = 10  # objects to take until the episode of dense-2 ends ...
ENDING_STEPS = 3  # ... 0.2 s later; also after the lolly of dense-1
DOOR_STEPS = 5  # until a door is open: 0.05 s, then 92 units at 400 units/s
AMMO = 100
RELOAD, STEP_TIME, FRAME_TIME = 100, 64, 16  # milliseconds


class Purpose(IntEnum):
    """The purpose of a random number."""

    LEVEL = 0
    WALL_LOOK = 1
    FLOOR_LOOK = 2
    GOAL = 3
    SPAWN = 4
    YAW = 5
    OBJECTS = 6
    PHASE = 7


class TaskSignals(NamedTuple):
    """The results of a step, (N,) each."""

    reward: Tensor
    terminated: Tensor
    truncated: Tensor


class Rules:
    """One task on one pool of levels."""

    def __init__(self, task: MazeTask, levels: Levels, *, always: bool) -> None:
        """`always` handles rare events in every step; a test would synchronise with the GPU."""
        self.task, self.levels, self.always = task, levels, always
        device = levels.cells.device
        commands = [COMMANDS[name] for name in task.action_names]
        self.commands = torch.tensor(
            [[c.forward, c.right, c.turn] for c in commands], device=device
        ).T.contiguous()  # (3, A)
        self.fires = torch.tensor([c.fire for c in commands], device=device)
        self.can_fire = any(c.fire for c in commands)
        self.configurations = objects.configurations(device)
        self.mixed_purposes = mix(torch.arange(len(Purpose), device=device))
        self.worth = torch.tensor([WORTH.get(sprite, 0.0) for sprite in Sprite], device=device)
        self.body_corners = torch.cartesian_prod(  # (2, 4, 1)
            *2 * [torch.tensor([-body.HALF_WIDTH, body.HALF_WIDTH], device=device)]
        ).T[..., None]
        self.touch_centre = torch.tensor(TOUCH_CENTRE, device=device)[:, None, None]
        self.touch_half = torch.tensor(TOUCH_HALF, device=device)[:, None, None]

    @property
    def num_sprites(self) -> int:
        """B, the maximum number of items."""
        in_task = {
            "goal": 1,
            "keys": self.levels.item_sprite.shape[1],
            "objects": 2 * objects.NUM_EACH,
        }
        return in_task[self.task.rule]

    def happens(self, where: Tensor) -> bool:
        """Returns whether a rare event must be handled in this step."""
        return self.always or bool(where.any())

    def turn(
        self, state: MazeState, command: Tensor, fire: Tensor
    ) -> tuple[TaskSignals, MazeState, MazeState]:
        """Returns the results of one step, the state after it and the state to continue from.

        The states differ in rows whose episode ended; if none did, they are the same object.
        """
        last, outcome = self.play(state, command, fire)
        ended = outcome.terminated | outcome.truncated
        if not self.happens(ended):
            return outcome, last, last
        return outcome, last, choose(ended, self.new_episode(last), last)

    def new_episode(self, state: MazeState) -> MazeState:
        """Returns the first state of the next episode, for every row."""
        zero = torch.zeros_like(state.clock)
        never = torch.full_like(state.clock, NEVER)
        episode = state.episode + 1
        own_bits = random_bits(state.key, episode)
        draws = self._draws(own_bits)
        level = bits_below(self.levels.cells.shape[0], draws[:, Purpose.LEVEL])
        wall_look = bits_below(NUM_WALL_LOOKS, draws[:, Purpose.WALL_LOOK]).to(torch.uint8)
        floor_look = bits_below(NUM_FLOOR_LOOKS, draws[:, Purpose.FLOOR_LOOK]).to(torch.uint8)
        goal, position = zero, state.position
        if self.task.rule == "goal":
            goal = bits_below(self.levels.num_goals[level], draws[:, Purpose.GOAL])
            cell = self.levels.goals[level, goal]
            sprite = torch.full_like(state.sprite, GOAL)
            sprite_position = body.centre_of(self.levels.ground, cell).T[:, None]
        elif self.task.rule == "keys":
            sprite = self.levels.item_sprite[level]
            sprite_position = self.levels.item_position[level]
        else:
            things = objects.scatter(draws[:, Purpose.OBJECTS], self.configurations)
            sprite, sprite_position, position = things.sprite, things.place, things.start
            wall_look, floor_look = things.wall_look, things.floor_look
        state = state._replace(
            episode=episode,
            spawns=zero,
            clock=zero,
            ends_at=never,
            level=level,
            goal=goal,
            wall_look=wall_look,
            floor_look=floor_look,
            open_doors=zero,
            position=position,
            sprite=sprite,
            sprite_position=sprite_position,
            held_key=torch.full_like(zero, NO_KEY),
            opening=zero,
            opens_at=never,
            reload=zero,
            shots=zero,
            mark_position=torch.zeros_like(state.mark_position),
            mark_side=torch.zeros_like(state.mark_side),
            mark_time=torch.full_like(state.mark_time, -torch.inf),
        )
        return self._spawn(state, own_bits)

    def _draws(self, bits: Tensor) -> Tensor:
        """random_bits(bits, purpose) of (N,) bits and each Purpose, (N, len(Purpose)).

        One batched hash, although most draws are unused: a hash is a dozen operations, and one
        per purpose would compile longer. Purposes are mixed in advance for the same reason.
        """
        return mix(random_bits(bits)[:, None] ^ self.mixed_purposes)

    def play(
        self, state: MazeState, command: Tensor, fire: Tensor
    ) -> tuple[MazeState, TaskSignals]:
        """Plays one step, before resets; command (3, N) as in body.move, fire (N,) bool."""
        task, ground = self.task, self.levels.ground
        position = state.position.T.contiguous()
        obstacle = None
        if task.has_doors:
            cells, doors = self.levels.cells, self.levels.doors
            obstacle = body.door_obstacle(
                ground, state.level, position, cells, doors, state.open_doors
            )
        motion = body.move(
            ground,
            state.level,
            position,
            state.velocity.T.contiguous(),
            state.yaw,
            command,
            obstacle,
        )
        state = state._replace(
            clock=state.clock + 1,
            position=motion.position.T.contiguous(),
            velocity=motion.velocity.T.contiguous(),
            yaw=motion.yaw,
        )
        if self.can_fire:
            state = self._shoot(state, fire)
        touched = self._touched(motion.path, state)
        if task.rule == "goal":
            reward = touched[:, 0] * (WORTH[GOAL] * task.reward_scale)
            if self.happens(touched):
                own_bits = random_bits(state.key, state.episode)
                state = choose(touched[:, 0], self._spawn(state, own_bits), state)
        else:
            state, reward = self._take(state, touched)
            if task.rule == "keys":
                state, opened = self._use_key(state)
                reward = reward + opened * DOOR_WORTH
            reward = reward * task.reward_scale
        terminated = state.clock >= state.ends_at
        truncated = (state.clock >= task.episode_steps) & ~terminated
        return state, TaskSignals(reward, terminated, truncated)

    def _touched(self, path: Tensor, state: MazeState) -> Tensor:
        """True for each item that the body's path (T, 2, N) touched: (N, B) bool."""
        things = state.sprite_position.permute(2, 0, 1)  # (2, N, B)
        offset = path[..., None] - (things + self.touch_centre)  # (T, 2, N, B)
        near = (offset.abs() <= self.touch_half).all(1).any(0)
        return near & (state.sprite != NONE)

    def _spawn(self, state: MazeState, own_bits: Tensor) -> MazeState:
        """Respawns every body; the level, its goal and the fire marks stay.

        `own_bits` (N,) are the episode's random bits.
        """
        draws = self._draws(more_bits(own_bits, state.spawns))
        position, open_doors = state.position, state.open_doors
        if self.task.rule != "objects":  # there, `scatter` has placed the body
            cell, open_doors = self._spawn_cell(state, draws[:, Purpose.SPAWN])
            position = body.centre_of(self.levels.ground, cell).T.contiguous()
        return state._replace(
            spawns=state.spawns + 1,
            spawned_at=state.clock,
            position=position,
            velocity=torch.zeros_like(position),
            yaw=bits_to_unit(draws[:, Purpose.YAW]) * 360.0,
            open_doors=open_doors,
            ammo=torch.full_like(state.ammo, AMMO),
        )

    def _spawn_cell(self, state: MazeState, bits: Tensor) -> tuple[Tensor, Tensor]:
        """Draws start cells (N,) from random bits (N,); also returns the open doors, (N,)."""
        levels, level = self.levels, state.level
        if levels.starts.shape[1]:
            start = bits_below(levels.starts.shape[1], bits)
            return levels.starts[level, start], levels.start_doors[level, start]
        spawns = levels.spawns[level]  # (N, S)
        fits = spawns >= 0
        if self.task.rule == "goal":
            fits = levels.far_enough[level, state.goal]
        choice = bits_below(fits.sum(1), bits)
        index = (fits.cumsum(1) <= choice[:, None]).sum(1, keepdim=True)
        return spawns.gather(1, index).squeeze(1), state.open_doors

    def _take(self, state: MazeState, touched: Tensor) -> tuple[MazeState, Tensor]:
        """Removes and rewards touched items; the last ends the episode ENDING_STEPS later."""
        touched = touched & (state.ends_at == NEVER)[:, None]
        reward = (self.worth[state.sprite.long()] * touched).sum(1)
        sprite = state.sprite.masked_fill(touched, NONE)
        held_key = state.held_key
        if self.task.rule == "keys":
            done = (touched & (state.sprite == LOLLY)).any(1)
            key = touched & (state.sprite >= KEY_RED) & (state.sprite <= KEY_BLACK)
            colour = (state.sprite * key).amax(1).long() - KEY_RED
            held_key = torch.where(colour >= 0, colour, held_key)
        else:
            done = ((sprite == NONE).sum(1) >= NUM_PICK_UPS) & (state.ends_at == NEVER)
        ends_at = torch.where(done, state.clock + ENDING_STEPS, state.ends_at)
        return state._replace(sprite=sprite, held_key=held_key, ends_at=ends_at), reward

    def _use_key(self, state: MazeState) -> tuple[MazeState, Tensor]:
        """Opens a door for good if a body that touches its cell holds a key of its colour."""
        corners = state.position.T[:, None] + self.body_corners  # (2, 4, N)
        cells = body.cell_at(self.levels.ground, corners.flatten(1)).view(4, -1)
        # Doors are two cells apart, so a body touches one at most; NO_DOOR is the largest.
        door = self.levels.doors[state.level, cells].amin(0).long()
        bit = torch.ones_like(door) << door.clamp(max=62)
        colours = self.levels.door_colours[state.level]
        colour = colours.gather(1, door.clamp(max=colours.shape[1] - 1)[:, None]).squeeze(1)
        moving = (state.opens_at < NEVER) & (state.opening == door)
        shut = (door != NO_DOOR) & (state.open_doors & bit == 0) & ~moving
        used = shut & (colour == state.held_key)
        # Using a second key before the first door is fully open completes that door.
        settled = (state.opens_at <= state.clock) | (used & (state.opens_at < NEVER))
        open_doors = state.open_doors | settled * (torch.ones_like(door) << state.opening)
        opens_at = state.opens_at.masked_fill(settled, NEVER)
        state = state._replace(
            held_key=state.held_key.masked_fill(used, NO_KEY),
            open_doors=open_doors,
            opening=torch.where(used, door, state.opening),
            opens_at=torch.where(used, state.clock + DOOR_STEPS, opens_at),
        )
        return state, used

    def _shoot(self, state: MazeState, fire: Tensor) -> MazeState:
        """Fires if the weapon is ready within the step; new marks replace the oldest.

        Time by which the weapon was ready early carries over, so that a held trigger fires
        every 100 ms on average, although frames last 16 ms.
        """
        shot = fire & (state.reload <= STEP_TIME - FRAME_TIME) & (state.ammo > 0)
        reload = (state.reload + RELOAD * shot - STEP_TIME).clamp(min=4 - FRAME_TIME)
        if not self.happens(shot):
            return state._replace(reload=reload)
        cells, doors = self.levels.cells, None
        if self.task.has_doors:
            doors = Doors(self.levels.doors, state.open_doors, self.task.theme.door_style)
        hit = first_hit(
            self.levels.ground, state.level, cells, doors, state.position.T, state.yaw
        )
        frame = (
            state.reload.clamp(min=0) + FRAME_TIME - 1
        ) // FRAME_TIME  # of the shot, 0 .. 3
        time = (state.clock - 1) * body.STEP_SECONDS + frame * body.FRAME_SECONDS
        slots = torch.arange(NUM_MARKS, device=shot.device)
        here = slots == (state.shots % NUM_MARKS)[:, None]
        here = here & (shot & (hit.distance < FAR))[:, None]  # (N, F)
        return state._replace(
            reload=reload,
            ammo=state.ammo - shot.long(),
            shots=state.shots + shot.long(),
            mark_position=torch.where(
                here[..., None], hit.position[:, None], state.mark_position
            ),
            mark_side=torch.where(here, hit.side[:, None], state.mark_side),
            mark_time=torch.where(here, time.float()[:, None], state.mark_time),
        )
