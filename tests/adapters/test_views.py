"""Views that do not suit a bonus are refused where curiosity is attached."""

import gymnasium
import numpy as np
import pytest

import episodic_curiosity as ec
from episodic_curiosity.adapters.views import check_view

SPACE = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)


@pytest.mark.parametrize(
    ("view", "error", "message"),
    [
        (None, TypeError, "view must be a function or a FromInfo, got NoneType"),
        ("image", TypeError, "view must be a function or a FromInfo, got str"),
        (np.ndarray.tolist, TypeError, "view must return an array of what curiosity sees, got"),
        (
            lambda seen: seen[:, :2],
            ValueError,
            r"views of shape \(4,\), got \(2,\): give view=",
        ),
    ],
)
def test_a_view_that_does_not_fit(view, error, message):
    with pytest.raises(error, match=message):
        check_view(view, ec.RND((4,), 3), SPACE, 3)
