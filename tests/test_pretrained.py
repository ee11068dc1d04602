"""The shared agents that the package ships."""

from typing import Any

import pytest

import episodic_curiosity as ec
from episodic_curiosity.experiments.card import render
from episodic_curiosity.experiments.sources import fingerprint_at, fingerprint_in
from episodic_curiosity.runs.stored_run import read_run
from episodic_curiosity.support import shared
from episodic_curiosity.support.shared import find_folder, read_card, shipped_names
from tests.clone import ROOT, assert_sources_of, git, skip_without_history

MOST_BYTES = 15_000_000


@pytest.mark.parametrize("name", shipped_names() or [None])
def test_its_card_fits_and_is_complete(name):
    if name is None:
        pytest.skip("no agent is shipped")
    folder = find_folder(f"pretrained:{name}")
    card = read_card(folder)
    assert (card["name"], card["where"]) == (name, f"pretrained:{name}")
    assert card["dtype"] == "bfloat16"
    assert card["commit"] is None or len(card["commit"]) == 40
    assert card["scores"]
    assert all(f"pretrained:{name} " in score["command"] for score in card["scores"])
    assert (folder / "README.md").read_text() == render(card)
    assert {path.name for path in folder.iterdir()} == {
        *card["files"],
        "card.json",
        "README.md",
    }
    if "agent.safetensors" in card["files"]:
        assert ec.load_agent(f"pretrained:{name}").config.num_actions > 1
        assert read_run(folder).task == card["task"]
    if "r_network.safetensors" in card["files"]:
        assert ec.RNetwork.load(f"pretrained:{name}").fitted


def assert_commit_is_true(card: dict[str, Any]) -> None:
    """A card names no commit, or one whose sources are those of the run."""
    if card["commit"] is not None:
        mark = fingerprint_in(card["sources"])
        assert mark is not None
        assert_sources_of(card["commit"], mark)


def test_commits_are_those_of_the_runs_sources():
    skip_without_history()
    for name in shipped_names():
        assert_commit_is_true(read_card(find_folder(f"pretrained:{name}")))
    newest = git(ROOT, "rev-parse", "HEAD")
    sources = f"0.2.0 (sources {fingerprint_at(ROOT, newest)})"
    assert_commit_is_true({"commit": newest, "sources": sources})
    for commit, said in ((newest, "0.2.0 (sources 0123456789ab)"), (40 * "0", sources)):
        with pytest.raises(AssertionError):
            assert_commit_is_true({"commit": commit, "sources": said})


def test_they_are_small():
    files = (path for path in shared.SHIPPED.rglob("*") if path.is_file())
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
