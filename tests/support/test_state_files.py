"""Nested states in files: equal when read, refused in a sentence when changed."""

import math

import pytest
import torch

from episodic_curiosity.support.saving import LoadError, save
from episodic_curiosity.support.state_files import FLOAT, TENSOR, read_state, save_state

STATE = {
    "a/b": torch.arange(6).view(2, 3),
    "a": {"b": torch.tensor([1.5, -2.0]), "none": None, "list": [1, "two", True]},
    "infinite": -math.inf,
}


def test_a_state_is_read_as_it_was_saved(tmp_path):
    save_state(tmp_path / "deep", "thing", STATE)
    read = read_state(tmp_path / "deep", "thing")
    assert torch.equal(read.pop("a/b"), STATE["a/b"])
    assert torch.equal(read["a"].pop("b"), STATE["a"]["b"])
    assert read == {"a": {"none": None, "list": [1, "two", True]}, "infinite": -math.inf}


@pytest.mark.parametrize(
    "tree", [{"x": {TENSOR: "/missing"}}, {TENSOR: "/a"}, {"x": {FLOAT: []}}]
)
def test_a_tree_that_is_no_state_is_refused(tmp_path, tree):
    save(tmp_path, "thing", {"/a": torch.ones(2)}, tree)
    with pytest.raises(LoadError, match="does not describe a state"):
        read_state(tmp_path, "thing")


def test_other_kinds_of_values_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"a state holds .*, got set at /x/0"):
        save_state(tmp_path, "thing", {"x": [{1}]})
    with pytest.raises(TypeError, match=r"at most 64 bits, got /x"):  # it could not be read
        save_state(tmp_path, "thing", {"x": 2**64})
    with pytest.raises(TypeError, match=r"got \'\$x\' in it"):
        save_state(tmp_path, "thing", {"$x": 1})
