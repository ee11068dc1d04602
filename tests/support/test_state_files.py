"""Nested states in files: equal when read, refused in a sentence when changed."""

import json
import math

import pytest
import torch

from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.state_files import TENSOR, _fingerprint, read_state, save_state

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
    ("tree", "message"),
    [
        ({"x": {TENSOR: "/missing"}}, "does not describe a state"),
        ({TENSOR: "/a~1b"}, "does not describe a state"),
        ([], "is not as it was written"),
    ],
)
def test_a_changed_state_is_refused(tmp_path, tree, message):
    save_state(tmp_path, "thing", STATE)
    path = tmp_path / "thing.json"
    header = json.loads(path.read_text())
    header["config"] = {"state": tree, "sha256": _fingerprint(tree)}
    path.write_text(json.dumps(header))
    with pytest.raises(LoadError, match=message):
        read_state(tmp_path, "thing")


def test_other_kinds_of_values_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"a state holds .*, got set at /x/0"):
        save_state(tmp_path, "thing", {"x": [{1}]})
    with pytest.raises(TypeError, match=r"got \'\$x\' in it"):
        save_state(tmp_path, "thing", {"$x": 1})
