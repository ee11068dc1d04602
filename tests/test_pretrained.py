"""The shared agents that the package ships."""

import pytest

import episodic_curiosity as ec
from episodic_curiosity.experiments.card import render
from episodic_curiosity.support import shared
from episodic_curiosity.support.shared import find_folder, read_card, shipped_names

MOST_BYTES = 15_000_000


@pytest.mark.parametrize("name", shipped_names() or [None])
def test_its_card_fits_and_is_complete(name):
    if name is None:
        pytest.skip("no agent is shipped")
    folder = find_folder(f"pretrained:{name}")
    card = read_card(folder)
    assert (card["name"], card["where"]) == (name, f"pretrained:{name}")
    assert card["dtype"] == "bfloat16"
    assert card["commit"], "its sources are those of a commit"
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
    if "r_network.safetensors" in card["files"]:
        assert ec.RNetwork.load(f"pretrained:{name}").fitted


def test_they_are_small():
    files = (path for path in shared.SHIPPED.rglob("*") if path.is_file())
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
