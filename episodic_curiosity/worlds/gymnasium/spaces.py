"""Gymnasium spaces as tensors: frames (C, H, W), others one vector; actions indexed or scaled.

Shapes: N environments, C channels, F features, A entries of an action.
"""

from math import prod
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import Space, spaces
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from episodic_curiosity.support.checks import check_size, check_type

Array = NDArray[Any]
IMAGE = "image"  # the usual name of a frame in a dictionary of observations
MOST_JOINT_ACTIONS = 1024  # limit on the combinations of a MultiDiscrete action


class Observations:
    """Converts the environments' observations to tensors on the device.

    A Box of 3 axes and bytes of 2 to 4 axes are frames; other boxes are flattened, and so is
    every space that Gymnasium can flatten (Discrete becomes one-hot). Bytes stay bytes,
    everything else becomes float32. `grey` frames have one channel instead of three. Bytes up
    to `largest_byte` are scaled to 255, because networks divide bytes by 255.
    """

    def __init__(
        self,
        task: str,
        space: Space[Any],
        num_envs: int,
        device: torch.device,
        observation_size: tuple[int, int] | None,
        view_size: tuple[int, int] | None,
        grey: bool = False,
        largest_byte: int = 255,
    ) -> None:
        self._space, self._batch_space = space, batch_space(space, num_envs)
        self._device = device
        is_box = isinstance(space, spaces.Box)
        raw_shape = space.shape if is_box else _flat_shape(task, space)
        assert raw_shape is not None
        is_byte = is_box and space.dtype == np.uint8
        self._is_frame = is_frame(space)
        self._is_grey = grey
        self._scaled: Tensor | None = None  # (256,) uint8, each byte's new value
        if is_byte and largest_byte < 255:
            bytes_ = torch.arange(256.0, device=device).clamp(max=largest_byte)
            self._scaled = (bytes_ * 255 / largest_byte).round().to(torch.uint8)
        self.dtype = torch.uint8 if is_byte else torch.float32
        self._sizes = [
            None if size is None else check_size(name, size)
            for name, size in (("observation_size", observation_size), ("view_size", view_size))
        ]
        if (any(self._sizes) or grey) and not self._is_frame:
            given = "sizes" if any(self._sizes) else "grey"
            raise ValueError(f"{task} observes no frames, so {given} cannot be set")
        observation, view = self.to_device(np.zeros((1, *raw_shape)))
        self.shape, self.view_shape = tuple(observation.shape[1:]), tuple(view.shape[1:])

    def batch(self, observations: Any) -> Array:
        """(N, ...), from the observations of a vector environment."""
        if isinstance(self._space, spaces.Box):
            return np.asarray(observations)
        return np.stack([self.one(row) for row in iterate(self._batch_space, observations)])

    def one(self, observation: Any) -> Array:
        """One row of a batch, from the observation of a single environment."""
        if isinstance(self._space, spaces.Box):
            return np.asarray(observation)
        flat: Array = spaces.flatten(self._space, observation)  # type: ignore[assignment]
        return flat

    def to_device(self, batch: Array) -> tuple[Tensor, Tensor]:
        """Observations and views, (N, C, H, W) or (N, F); one tensor if they are equal."""
        # A copy, because some environments reuse the same array at every step.
        raw = torch.from_numpy(np.array(batch, order="C")).to(self._device, self.dtype)
        if self._scaled is not None:
            raw = self._scaled[raw.int()]
        if not self._is_frame:
            vectors = raw.reshape(len(raw), -1)
            return vectors, vectors
        frames = _channels_first(raw)
        if self._is_grey:
            frames = _grey(frames)
        size, view_size = self._sizes
        observation = _resize(frames, size)
        return observation, observation if view_size is None else _resize(frames, view_size)


class Actions:
    """Converts actions, indices or entries in [-1, 1], to those of the environments.

    An index enumerates the combinations of a MultiDiscrete; entries scale to a Box's bounds.
    """

    def __init__(self, task: str, space: Space[Any]) -> None:
        self._space = space
        self.num_actions = 0
        self.shape: tuple[int, ...] = ()
        if isinstance(space, spaces.Discrete):
            self.num_actions = int(space.n)
        elif isinstance(space, spaces.MultiDiscrete):
            self.num_actions = prod(space.nvec.ravel().tolist())
            if self.num_actions > MOST_JOINT_ACTIONS:
                raise ValueError(
                    f"{task} has {self.num_actions} combinations of actions, "
                    f"at most {MOST_JOINT_ACTIONS} are supported"
                )
        elif isinstance(space, spaces.Box) and space.dtype.kind == "f":
            if not space.is_bounded():
                raise ValueError(f"{task} must have bounded actions, to scale [-1, 1] to")
            self.shape = (prod(space.shape),)
        else:
            raise ValueError(
                f"{task} takes {space} actions; supported are "
                f"Discrete, MultiDiscrete and Box of floats"
            )

    def to_host(self, actions: Tensor, num_envs: int) -> Array:
        """(N, ...) actions of the environments, from (N,) indices or (N, A) entries."""
        if not isinstance(actions, Tensor):
            raise ValueError(f"actions must be a tensor, got {type(actions).__name__}")
        dtypes = (torch.int64, torch.int32) if self.num_actions else (torch.float32,)
        wanted = (num_envs, *self.shape)
        if actions.shape != wanted or actions.dtype not in dtypes:
            raise ValueError(
                f"actions must be {' or '.join(map(str, dtypes))} of shape {wanted}, "
                f"got {actions.dtype} of shape {tuple(actions.shape)}"
            )
        chosen = actions.cpu().numpy()
        low, high = (0, self.num_actions - 1) if self.num_actions else (-1, 1)
        outside = ~((chosen >= low) & (chosen <= high))  # NaN is outside, too
        if outside.any():
            raise ValueError(f"action {chosen[outside][0]} is not within {low} .. {high}")
        return self._scaled(chosen) if self.shape else self._named(chosen)

    def _named(self, numbers: Array) -> Array:
        space = self._space
        if isinstance(space, spaces.Discrete):
            return np.asarray(numbers + space.start, space.dtype)
        assert isinstance(space, spaces.MultiDiscrete)
        entries = np.stack(np.unravel_index(numbers, space.nvec.ravel()), axis=1)  # (N, A)
        return np.asarray(entries.reshape(-1, *space.shape) + space.start, space.dtype)

    def _scaled(self, entries: Array) -> Array:
        space = self._space
        assert isinstance(space, spaces.Box)
        share = (entries.reshape(-1, *space.shape) + 1.0) / 2.0
        scaled = space.low + share * (space.high - space.low)
        # Rounding may have moved an entry past its bound.
        return np.asarray(np.clip(scaled, space.low, space.high), space.dtype)


def _flat_shape(task: str, space: Space[Any]) -> tuple[int, ...]:
    flat = flat_space(space)
    if flat is None:
        choice = (
            f"; set key to one of {', '.join(space)}" if isinstance(space, spaces.Dict) else ""
        )
        raise ValueError(
            f"{task} observes {space}, which Gymnasium cannot flatten to a vector{choice}"
        )
    return flat.shape


def _channels_first(frames: Tensor) -> Tensor:
    """(N, C, H, W), from grey, colour or stacked frames.

    Of three axes, the shorter of the first and the last is the channel axis.
    """
    if frames.dim() == 3:  # (N, H, W)
        return frames[:, None]
    if frames.dim() == 5:  # (N, stack, H, W, C)
        return frames.movedim(4, 2).flatten(1, 2)
    if frames.shape[1] < frames.shape[3]:  # (N, C, H, W)
        return frames
    return frames.movedim(3, 1).contiguous()


def _grey(frames: Tensor) -> Tensor:
    """The luma of coloured frames (ITU-R BT.601), (N, C / 3, H, W); others as they are."""
    if frames.shape[1] % 3:
        return frames
    weights = torch.tensor([0.299, 0.587, 0.114], device=frames.device)
    colours = frames.unflatten(1, (-1, 3)).float()  # (N, stack, 3, H, W)
    luma = torch.einsum("nschw,c->nshw", colours, weights)
    return luma if frames.is_floating_point() else luma.round_().to(frames.dtype)


def _resize(frames: Tensor, size: tuple[int, int] | None) -> Tensor:
    if size is None or size == tuple(frames.shape[2:]):
        return frames
    resized = functional.interpolate(frames.float(), size=size, mode="area")
    return resized if frames.is_floating_point() else resized.round().to(frames.dtype)


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
