"""Views: the part of another library's observations that curiosity sees.

A view is a function from a batch of observations to (N, ...) bytes or floats. It may be called
with fewer rows: each depends on its own observation alone. Shapes: N environments.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray

from episodic_curiosity.bonus.base import Bonus

Array = NDArray[Any]
View = Callable[[Any], Any]


@dataclass(frozen=True)
class FromInfo:
    """Curiosity sees `info[key]`, such as the position for a GridOracle."""

    key: str  # of a Gymnasium info


def same(observation: Any) -> Any:
    """Curiosity sees what the policy sees."""
    return observation


def channels_first(frames: Any) -> Any:
    """Returns frames with their channels first.

    Args:
        frames: (N, height, width, channels), an array or a tensor.
    """
    if isinstance(frames, np.ndarray):
        return np.moveaxis(frames, -1, 1)
    return frames.movedim(-1, 1)


def check_view(view: View | FromInfo, bonus: Bonus, space: Space[Any], num_envs: int) -> None:
    """Raises unless the view of this space of single observations suits the bonus."""
    if isinstance(view, FromInfo):
        return  # an info has no space
    if not callable(view):
        raise TypeError(f"view must be a function or a FromInfo, got {type(view).__name__}")
    empty = create_empty_array(space, n=num_envs, fn=np.zeros)
    check_seen(view(empty), bonus)


def check_seen(seen: Any, bonus: Bonus) -> None:
    """Raises unless the bonus was made for what is seen by N environments."""
    if bonus.seen_shape is None:
        return
    if not hasattr(seen, "shape"):
        raise TypeError(
            f"view must return an array of what curiosity sees, got {type(seen).__name__}: "
            f"give view=, such as lambda observation: observation['image']"
        )
    if tuple(seen.shape[1:]) != bonus.seen_shape:
        raise ValueError(
            f"the bonus was made for views of shape {bonus.seen_shape}, got "
            f"{tuple(seen.shape[1:])}: give view=, such as channels_first"
        )


def stacked(space: Space[Any], observations: Sequence[Any]) -> Any:
    """A batch of single observations, which may be dicts."""
    empty: Any = create_empty_array(space, n=len(observations), fn=np.zeros)
    return concatenate(space, observations, empty)


def with_rows(seen: Array, rows: Array, others: Array) -> Array:
    """A copy of (N, ...) what is seen with other content where the (N,) mask is true."""
    seen = np.array(seen)
    seen[rows] = others
    return seen
