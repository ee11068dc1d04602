"""The shipped agents on the demo's page, with agents that are shipped for the test."""

import base64
import io
import re
import sys
import time

import numpy as np
import pytest
import torch
from PIL import Image

from episodic_curiosity.runs.evaluate_folder import evaluate_run
from episodic_curiosity.support import shared
from examples import shipped as module
from examples.shipped import (
    COST,
    EPISODES,
    PAID,
    folders_to_show,
    shipped_sections,
    show,
    shown_table,
    trail_colours,
)
from examples.workers import workers
from tests.experiments.shared_folders import shipped
from tests.show.report.test_page import assert_nothing_from_elsewhere

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    shipped(folder, ("ppo+eco", "ppo"))
    return folder / "pretrained"


@pytest.fixture(autouse=True)
def ships(made, monkeypatch):
    monkeypatch.setattr(shared, "SHIPPED", made)


def test_plain_ppo_comes_first():
    assert [folder.name for folder in folders_to_show()] == ["tiny-ppo", "tiny-ppo-eco"]


def test_agents_of_other_tasks_are_left_out(monkeypatch):
    monkeypatch.setattr(module, "TASK", "maze/sparse")
    assert folders_to_show() == []


def test_what_is_printed_and_shown(made, tmp_path):
    found = [show(folder, tmp_path / "films") for folder in folders_to_show()]
    printed, content = shown_table(found), "".join(shipped_sections(found))
    for name in ("tiny-ppo", "tiny-ppo-eco"):
        found = evaluate_run(made / name, episodes=EPISODES, device="cpu").summary()["coverage"]
        card = shared.read_card(made / name)["scores"][0]["summary"]["coverage"]
        (line,) = (line for line in printed.splitlines() if line.startswith(f"{name} "))
        here = f"{found.mean:.0f} [{found.low:.0f} .. {found.high:.0f}]"
        there = f"{card['mean']:.0f} [{card['low']:.0f} .. {card['high']:.0f}]"
        assert " ".join(line.split()) == f"{name} {here} {there}"
        cells = f"{found.mean:.0f} ({found.low:.0f} to {found.high:.0f}), {EPISODES} episodes"
        assert f"<td>{cells}</td>" in content
    films = re.findall(r"data:image/gif;base64,([^\"]+)", content)
    sizes = [Image.open(io.BytesIO(base64.b64decode(film))).n_frames for film in films]
    assert sizes == [41, 41]  # the steps of an episode
    assert content.index("tiny-ppo<") < content.index("tiny-ppo-eco<")
    assert content.count('<img src="data:image/png') == 1  # the trail of the one with a bonus
    assert "tiny-ppo-eco: its bonus" in content
    assert_nothing_from_elsewhere(content)


def test_without_pillow_there_is_no_film(made, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "episodic_curiosity.show.film.watch", None)
    found = show(made / "tiny-ppo", tmp_path)
    assert (found.film, found.trail) == (None, None)
    assert found.coverage.num_values == EPISODES


def test_the_colour_of_a_step_says_whether_it_was_paid():
    colours = trail_colours(np.array([0.0, 0.5, -0.1]))
    assert colours.tolist() == [list(COST), list(PAID), list(COST)]


def test_nothing_is_shown_where_nothing_is_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "SHIPPED", tmp_path)
    assert folders_to_show() == []
    assert shipped_sections([]) == []


def test_a_worker_has_one_thread():
    with workers() as pool:
        assert pool.submit(torch.get_num_threads).result() == 1


def test_an_error_of_one_worker_ends_the_other():
    def work():
        with workers() as pool:
            pool.submit(time.sleep, 300)
            pool.submit(int, "x").result()

    began = time.monotonic()
    with pytest.raises(ValueError, match="invalid literal"):
        work()
    assert time.monotonic() - began < 60
