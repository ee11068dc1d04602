"""Gymnasium's `AutoresetMode`; versions of Gymnasium without it are refused in a sentence."""

import gymnasium

try:
    from gymnasium.vector import AutoresetMode
except ImportError:
    raise ImportError(
        f"gymnasium must be of version 1.1 or newer, got {gymnasium.__version__}: "
        f"pip install --upgrade gymnasium",
        name="gymnasium",
    ) from None

__all__ = ["AutoresetMode"]
