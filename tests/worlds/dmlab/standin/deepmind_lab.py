"""Stands in for DeepMind Lab: its Python API as it behaves, over small mazes of its own.

What a build can do, and which levels are broken, is read anew from the JSON file named by
STANDIN_LAB, where there is one: {"patched": true, "properties": true, "faults": {SEED: HOW},
"lacks": [OBSERVATION, ...], "refuses": {SETTING: WHY}, "layout": TEXT, "old": true}. An old
build takes no temp_folder. There is no fps(), which Lab documents and lacks.
"""

import hashlib
import json
import os
import random
import signal
import tempfile
import time

import numpy as np

LISTABLE, READABLE, WRITABLE = 4, 1, 2
FOLDER = "contributed/dmlab30/"
EXPLORE = ("explore_goal_locations_large", "explore_obstructed_goals_large")
ROOMS = ("rooms_keys_doors_puzzle", "rooms_collect_good_objects_train")
HELD_OUT = ("rooms_collect_good_objects_test",)
OTHERS = ("psychlab_visual_search", "natlab_fixed_large_map")
ENGINE_SETTINGS = ("width", "height", "fps", "mixerSeed", "allowHoldOutLevels", "logLevel")
SIDE = 13  # cells of a maze
CELL, SPEED, TURN = 100.0, 5.12, 0.1056  # units, units per frame, degrees per look and frame
ACTIONS = (
    ("LOOK_LEFT_RIGHT_PIXELS_PER_FRAME", -512, 512),
    ("LOOK_DOWN_UP_PIXELS_PER_FRAME", -512, 512),
    ("STRAFE_LEFT_RIGHT", -1, 1),
    ("MOVE_BACK_FORWARD", -1, 1),
    ("FIRE", 0, 1),
    ("JUMP", 0, 1),
    ("CROUCH", 0, 1),
)
RESPAWN = 3  # frames from a goal to the new place
_runfiles = os.path.dirname(__file__)


def version():
    return "1.0"


def runfiles_path():
    return _runfiles


def set_runfiles_path(path):
    global _runfiles
    _runfiles = path
    return True


def told():
    """What the tests want of this build."""
    file = os.environ.get("STANDIN_LAB")
    if not file or not os.path.exists(file):
        return {}
    with open(file) as opened:
        return json.load(opened)


class Lab:
    def __init__(
        self,
        level,
        observations,
        config=None,
        renderer="software",
        level_cache=None,
        temp_folder=None,
    ):
        self._status = "closed"
        if temp_folder is not None and told().get("old"):
            raise TypeError("'temp_folder' is an invalid keyword argument for this function")
        for name, value, wanted in (
            ("level", level, str),
            ("observations", observations, list),
            ("config", {} if config is None else config, dict),
        ):
            if not isinstance(value, wanted):
                raise TypeError(f"{name} must be {wanted.__name__}, not {type(value).__name__}")
        if renderer not in ("software", "hardware"):
            raise RuntimeError(f'Failed to set renderer, actual "{renderer}"!')
        self._name = level.removeprefix(FOLDER)
        known = (*EXPLORE, *ROOMS, *HELD_OUT, *OTHERS)
        if not level.startswith(FOLDER) or self._name not in known:
            raise RuntimeError(f"Invalid levelName flag '{level}' - \"not found\"")
        self._settings = {"width": "320", "height": "180", "mixerSeed": "0"}
        self._params = {"overrideEntityLayer": "", "overrideVariationsLayer": ""}
        self._params["episodeLengthSeconds"] = "120" if self._name in EXPLORE else "60"
        self._apply(config or {})
        self._width, self._height = int(self._settings["width"]), int(self._settings["height"])
        if self._width % 4 or self._height % 4:
            raise RuntimeError("Failed to init environment - width and height must be 4 * n")
        self._spec = {
            "RGB_INTERLEAVED": ((self._height, self._width, 3), np.uint8),
            "DEBUG.CAMERA.PLAYER_VIEW_NO_RETICLE": ((3, 0, 0), np.uint8),
            "DEBUG.POS.TRANS": ((3,), np.float64),
            "DEBUG.POS.ROT": ((3,), np.float64),
            "DEBUG.MAZE.LAYOUT": ((), str),
            "MAP_FRAME_NUMBER": ((1,), np.float64),
            "FRAMES_REMAINING_AT_60": ((1,), np.float64),
        }
        for name in told().get("lacks", ()):
            del self._spec[name]
        for name in observations:
            if name not in self._spec:
                raise ValueError(f"Unknown observation '{name}'.")
        self._observations = list(observations)
        self._cache, self._temp_folder = level_cache, temp_folder or tempfile.gettempdir()
        self._status = "uninitialised"

    def _apply(self, config):
        for key, value in config.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError("bad argument type for built-in operation")
            if why := told().get("refuses", {}).get(key):
                raise RuntimeError(f'Failed to init environment - "{why}"')
            if key in ENGINE_SETTINGS:
                self._settings[key] = value
            elif self._name in EXPLORE and (
                key in self._params or (key == "minGoalDistance" and told().get("patched"))
            ):
                self._params[key] = value
            else:
                raise RuntimeError(f"Failed to init environment - \"Invalid setting '{key}'\"")
        if self._name in HELD_OUT and self._settings.get("allowHoldOutLevels") != "true":
            raise RuntimeError('Failed to init environment - "a held-out level"')

    def reset(self, episode=-1, seed=None):
        if seed is not None and not isinstance(seed, int):
            raise ValueError(f"'seed' must be int or None, was '{type(seed).__name__}'.")
        if seed is not None and not -(2**31) <= seed < 2**31:
            raise OverflowError("signed integer is greater than maximum")
        self._fault = told().get("faults", {}).get(str(seed))
        self._random = random.Random(f"{seed} {self._settings['mixerSeed']} {episode}")
        level_seed = self._random.randint(1, 2**31 - 1)
        override = self._params["overrideEntityLayer"]
        self._rows = (override or self._maze(level_seed)).splitlines()
        self._compile()
        self._goal = self._random.choice(self._places("G"))
        self._frames = self._map_frames = 0
        self._pending = 0
        self._lasts = int(self._params["episodeLengthSeconds"]) * 60
        shape = (3, self._height, self._width)
        self._look = np.random.default_rng(level_seed).integers(256, size=shape, dtype=np.uint8)
        self._spawn()
        self._status = "running"
        return True

    def _compile(self):
        if self._fault == "compile":
            self._status = "error"
            raise RuntimeError('Failed to start environment - "q3map2 failed"')
        if self._cache is None:
            return
        text = "".join(self._rows)
        key = f"maps/{hashlib.md5(text.encode()).hexdigest()}"
        file = os.path.join(self._temp_folder, f"map_{os.getpid()}.pk3")
        if not self._cache.fetch(key, file):
            with open(file, "w") as opened:
                opened.write(text)
            self._cache.write(key, file)
        with open(file) as opened:
            assert opened.read() == text
        os.remove(file)

    def _maze(self, level_seed):
        """A tree of corridors with starts and goals at half of its corners."""
        draw = random.Random(f"{level_seed} {self._settings['mixerSeed']}")
        cells = [["*"] * SIDE for _ in range(SIDE)]
        way = [(1, 1)]
        cells[1][1] = "P"
        while way:
            row, column = way[-1]
            steps = [(2, 0), (-2, 0), (0, 2), (0, -2)]
            draw.shuffle(steps)
            for down, right in steps:
                y, x = row + down, column + right
                if 0 < y < SIDE and 0 < x < SIDE and cells[y][x] == "*":
                    cells[y][x] = draw.choice("PG  ")
                    cells[row + down // 2][column + right // 2] = " "
                    way.append((y, x))
                    break
            else:
                way.pop()
        cells[SIDE - 2][SIDE - 2] = "G"
        return "".join("".join(row) + "\n" for row in cells)

    def _places(self, kind):
        return [
            (row, column)
            for row, line in enumerate(self._rows)
            for column, character in enumerate(line)
            if character == kind
        ]

    def _spawn(self):
        """The patch draws among far starts, whichever the goal is: there may be none.

        The levels with doors take the setting, too, and make nothing of it.
        """
        is_patched = self._name == "explore_goal_locations_large"
        far = int(self._params.get("minGoalDistance", 0)) if is_patched else 0
        starts = [
            cell for cell in self._places("P") if self._distances(self._goal)[cell] >= far
        ]
        if not starts:
            self._status = "error"
            raise RuntimeError('Failed to start environment - "bad argument #2 to uniformInt"')
        row, column = self._random.choice(starts)
        self._x, self._y = CELL * (column + 0.5), CELL * (len(self._rows) - 1 - row + 0.5)
        self._yaw = self._random.uniform(-180.0, 180.0)
        self._map_frames = 0

    def _distances(self, goal):
        """Of cells from a goal, by the only way there is in a tree."""
        distances, reached = {goal: 0}, [goal]
        for row, column in reached:
            for cell in (
                (row + 1, column),
                (row - 1, column),
                (row, column + 1),
                (row, column - 1),
            ):
                if cell not in distances and self._rows[cell[0]][cell[1]] != "*":
                    distances[cell] = distances[row, column] + 1
                    reached.append(cell)
        return distances

    def step(self, action, num_steps=1):
        if not isinstance(action, np.ndarray):
            raise TypeError(f"argument 1 must be numpy.ndarray, not {type(action).__name__}")
        if not self.is_running():
            raise RuntimeError("Environment in wrong status to advance.")
        if action.shape != (len(ACTIONS),):
            raise ValueError(f"action must have shape ({len(ACTIONS)})")
        if action.dtype != np.intc:
            raise ValueError("action must have dtype np.intc")
        if self._fault == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._fault == "hang":
            time.sleep(1000)
        reward = 0.0
        for _ in range(num_steps):
            reward += self._advance(*action.tolist())
            if self._frames >= self._lasts:
                self._status = "ended"
                break
        return reward

    def _advance(self, look, _, strafe, move, *__):
        self._frames += 1
        self._map_frames += 1
        if self._pending:
            self._pending -= 1
            if not self._pending and self._name in EXPLORE:
                self._spawn()
            elif not self._pending:
                self._frames = self._lasts
            return 0.0
        self._yaw = (self._yaw - TURN * look + 180.0) % 360.0 - 180.0
        heading = np.radians(self._yaw)
        x = self._x + SPEED * (move * np.cos(heading) + strafe * np.sin(heading))
        y = self._y + SPEED * (move * np.sin(heading) - strafe * np.cos(heading))
        if self._character(x, y) != "*":
            self._x, self._y = x, y
        if self._cell(self._x, self._y) != self._goal:
            return 0.0
        self._pending = RESPAWN
        return 10.0 if self._name in EXPLORE else 50.0

    def _cell(self, x, y):
        return len(self._rows) - 1 - int(y // CELL), int(x // CELL)

    def _character(self, x, y):
        row, column = self._cell(x, y)
        return self._rows[row][column]

    def observations(self):
        if not self.is_running():
            raise RuntimeError("Environment in wrong status for call to observations()")
        return {name: self._observation(name) for name in self._observations}

    def _observation(self, name):
        if name == "DEBUG.MAZE.LAYOUT":
            shown = told().get("layout") or "".join(row + "\n" for row in self._rows)
            return shown if self._name in EXPLORE else ""
        if name == "DEBUG.POS.TRANS":
            return np.array([self._x, self._y, 25.125])
        if name == "DEBUG.POS.ROT":
            return np.array([0.0, self._yaw, 0.0])
        if name == "MAP_FRAME_NUMBER":
            return np.array([float(self._map_frames)])
        if name == "FRAMES_REMAINING_AT_60":
            return np.array([float(self._lasts - self._frames)])
        view = np.roll(self._look, int(self._yaw * self._width / 360.0), axis=2)
        view[0], view[1] = int(self._x / 10) % 256, int(self._y / 10) % 256
        return view if name.startswith("DEBUG") else view.transpose(1, 2, 0).copy()

    def is_running(self):
        return self._status == "running"

    def num_steps(self):
        return self._frames

    def observation_spec(self):
        return [{"name": n, "shape": s, "dtype": d} for n, (s, d) in self._spec.items()]

    def action_spec(self):
        return [{"name": n, "min": low, "max": high} for n, low, high in ACTIONS]

    def events(self):
        return []

    def close(self):
        was_open = self._status != "closed"
        self._status = "closed"
        return was_open

    def __getattr__(self, name):
        """Older builds have no properties."""
        properties = {"read_property": self._read, "write_property": self._write}
        if name not in properties or not told().get("properties"):
            raise AttributeError(f"'Lab' object has no attribute '{name}'")
        return properties[name]

    def _read(self, key):
        kind, _, rest = key.partition(".")
        if kind == "params" and rest in self._params:
            return self._params[rest]
        name, _, seed = rest.partition(".")
        if kind == "func" and seed.isdigit() and self._name in EXPLORE:
            maze = self._maze(int(seed))
            if name == "entityLayer":
                return maze
            if name == "variationsLayer":
                return "".join("." if c != "\n" else c for c in maze)
        raise KeyError(f"'{key}' not found.")

    def _write(self, key, value):
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("write_property() argument must be str")
        kind, _, name = key.partition(".")
        if kind != "params" or name not in self._params:
            raise KeyError(f"'{key}' not found.")
        self._params[name] = value
