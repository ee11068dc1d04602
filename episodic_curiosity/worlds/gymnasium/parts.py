"""Dictionaries of observations: the part that is learnt from."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import Space, spaces

from episodic_curiosity.support.checks import check_type

IMAGE = "image"  # the usual name of a frame


class OnePart(gymnasium.ObservationWrapper[Any, Any, Any]):
    """An environment that observes one part of its dictionary."""

    def __init__(self, env: gymnasium.Env[Any, Any], key: str) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Dict)
        self.observation_space = env.observation_space[key]
        self._key = key

    def observation(self, observation: Any) -> Any:
        return observation[self._key]


def pick_part(env: gymnasium.Env[Any, Any], key: str | None) -> gymnasium.Env[Any, Any]:
    """The environment with one part of its observations, of this key or the usual one."""
    if key is not None:
        check_type("key", key, str)
    space = env.observation_space
    if not isinstance(space, spaces.Dict):
        if key is not None:
            raise ValueError(
                f"key is for dictionaries of observations, got {key!r} for {space}"
            )
        return env
    if key is not None and key not in space.spaces:
        raise ValueError(f"key must be one of {', '.join(space.spaces)}, got {key!r}")
    key = key or usual_part(space)
    return env if key is None else OnePart(env, key)


def usual_part(space: spaces.Dict) -> str | None:
    """The key "image", or that of the only frame; None: all parts, as one vector.

    If Gymnasium cannot flatten some part, it is the key of the only Box.
    """
    boxes = [key for key, part in space.spaces.items() if isinstance(part, spaces.Box)]
    frames = [key for key in boxes if is_frame(space[key])]
    if IMAGE in boxes:
        return IMAGE
    usual = boxes if flat_space(space) is None else frames
    return usual[0] if len(usual) == 1 else None


def is_frame(space: Space[Any]) -> bool:
    """True for boxes of 3 axes, and for bytes of 2 to 4 axes."""
    if not isinstance(space, spaces.Box):
        return False
    num_axes = len(space.shape)
    return num_axes == 3 or (space.dtype == np.uint8 and num_axes in (2, 4))


def flat_space(space: Space[Any]) -> spaces.Box | None:
    """The space of vectors that Gymnasium flattens this one to; None if it cannot."""
    try:
        flat = spaces.flatten_space(space)
    except NotImplementedError:
        return None
    return flat if isinstance(flat, spaces.Box) else None
