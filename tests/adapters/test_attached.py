"""A bonus at another library's environments: what is refused, and that it changes nothing."""

import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.adapters.attached import AttachedBonus
from episodic_curiosity.testing.calls import assert_equal

NOWHERE = torch.zeros(2, dtype=torch.bool)


@pytest.mark.parametrize(
    ("begun", "message"),
    [
        (None, "the state lacks 1 of the wanted tensors, first begun"),
        (torch.zeros(3, dtype=torch.bool), r"holds begun as torch\.bool \(3,\), wanted torch"),
        (torch.zeros(1, dtype=torch.bool), r"holds begun as torch\.bool \(1,\), wanted torch"),
        (torch.zeros(2), r"holds begun as torch\.float32 \(2,\), wanted torch\.bool \(2,\)"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(begun, message):
    attached = AttachedBonus(ec.RND((4,), 2), 2)
    before = attached.state_dict()
    state = before | {"bonus.opened": ~NOWHERE} | {"begun": begun}
    if begun is None:
        del state["begun"]
    with pytest.raises(ValueError, match=message):
        attached.load_state_dict(state)
    assert_equal(attached.state_dict(), before)


def test_masks_are_not_broadcast():
    attached, seen = AttachedBonus(ec.RND((4,), 2), 2), torch.zeros(2, 4)
    for mask in (torch.tensor([True]), torch.ones(3, dtype=torch.bool)):
        with pytest.raises(ValueError, match=r"where must have shape \(2,\), got"):
            attached.begin(seen, where=mask)
        with pytest.raises(ValueError, match=r"where must have shape \(2,\), got"):
            attached.pay(seen, where=mask)
    with pytest.raises(TypeError, match=r"where must be of dtype bool, got torch\.float32"):
        attached.begin(seen, where=torch.ones(2))
    assert_equal(attached.state_dict(), AttachedBonus(ec.RND((4,), 2), 2).state_dict())


def test_a_module_around_it_makes_no_copy_that_is_thrown_away(monkeypatch):
    module = torch.nn.ModuleDict({"curiosity": AttachedBonus(ec.RND((4,), 2), 2)})

    def refuse(_):
        raise AssertionError("copied")

    for place in ("adapters.attached", "bonus.resumable"):
        monkeypatch.setattr(f"episodic_curiosity.{place}.copied", refuse)
    assert "curiosity.bonus.opened" in module.state_dict()
