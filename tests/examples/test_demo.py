"""The demo, from its command line to its page, at a size that teaches nobody anything."""

import base64
import dataclasses
import io
import json
import re
import sys
from concurrent.futures import Executor, Future
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from episodic_curiosity.runs.build import make_r_network
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.show.report.figures import thinned
from episodic_curiosity.worlds.registry import make_world
from examples import demo, trained
from examples.beside import middle_level
from examples.walks import COST, PAID, bonus_colours, walk
from tests.show.report.test_page import assert_nothing_from_elsewhere, without_data

pytestmark = pytest.mark.slow

NUM_ENVS, NUM_EPISODES = 3, 7  # nine are played: three of each environment
ALL = ("ppo", "ppo_eco")


def tiny_run(method, steps, seed):
    run = resolve("maze/no-reward", method, "cpu", steps, seed)
    world = dataclasses.replace(
        run.world, num_envs=NUM_ENVS, maze_size=7, rooms=1, episode_steps=30, num_levels=10
    )
    ppo = dataclasses.replace(run.ppo, num_steps=80, num_epochs=1)
    run = dataclasses.replace(run, world=world, ppo=ppo)
    if method == "ppo+eco":
        online = run.r_network.online
        fit = dataclasses.replace(online.fit, iterations=2, batch_size=8)
        online = dataclasses.replace(online, refit_every=660, history=1320, fit=fit)
        r_network = dataclasses.replace(run.r_network, online=online, embedding_size=8)
        run = dataclasses.replace(run, r_network=r_network)
    return run


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The folder of a demo and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, call(folder)


class Here(Executor):
    """Does in this process what a demo does in others, which take seconds to start."""

    def submit(self, function, /, *arguments, **options):
        future = Future()
        future.set_result(function(*arguments, **options))
        return future


def call_here(folder: Path) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "workers", Here)
        return call(folder)


def call(folder: Path) -> str:
    words = f"--method ppo+eco --steps 1000 --seed 5 --seeds 2 --episodes {NUM_EPISODES}"
    words = f"{words} --out {folder}"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(demo, "demo_run", tiny_run)
        patch.setattr(demo, "folders_to_show", list)  # test_shipped.py plays them
        demo.main(words.split())
    return printed.getvalue()


def test_it_prints_and_shows_what_was_measured(shown):
    folder, printed = shown
    content = without_data((folder / "demo.html").read_text())
    means = {
        name: [evaluation(folder / f"{name}__s{seed}")["mean"] for seed in (5, 6)]
        for name in ("ppo", "ppo_eco")
    }
    ratio = np.mean(means["ppo_eco"]) / np.mean(means["ppo"])
    rows = [
        line.split() for line in printed.splitlines() if line.startswith(("5", "6", "mean"))
    ]
    assert [row[0] for row in rows] == ["5", "6", "mean"]
    assert [row[1] for row in rows[:2]] == [f"{mean:.1f}" for mean in means["ppo"]]
    assert rows[2][1:] == [
        f"{np.mean(means['ppo']):.1f}",
        f"{np.mean(means['ppo_eco']):.1f}",
        f"{ratio:.2f}",
    ]
    assert f"<b>{np.mean(means['ppo_eco']):.1f}</b>" in content
    assert f"<b>{ratio:.2f} times</b>" in content
    for name in means:
        for seed in (5, 6):
            short = evaluation(folder / f"{name}__s{seed}")
            assert f"<td>{short['low']:.1f} to {short['high']:.1f}</td>" in content
            assert f"--out {folder / f'{name}__s{seed}'}" in content


def test_its_curves_are_the_recorded_ones(shown):
    folder, _ = shown
    content = (folder / "demo.html").read_text()
    for name in ("ppo__s5", "ppo_eco__s6"):
        recorded = [line for line in read_metrics(folder / name) if "coverage" in line]
        assert recorded
        for line in recorded:
            assert f": {line['coverage']:,.4g} cells at {line['steps']:,} steps<" in content
    assert thinned(read_metrics(folder / "ppo_eco__s5"), "r_network_accuracy")
    # Within an episode, of each episode, and while training: coverage, bonus, accuracy.
    assert content.count("<polyline") == 4 + 4 + 4 + 2 + 2


def test_its_heading_says_what_came_out(shown):
    folder, _ = shown
    content = (folder / "demo.html").read_text()
    plain, curious = (
        np.mean([evaluation(folder / f"{name}__s{seed}")["mean"] for seed in (5, 6)])
        for name in ("ppo", "ppo_eco")
    )
    heading = re.search("<h1>(.*?)</h1>", content)[1]
    assert f"a curious agent covers {curious / plain:.1f} times as much floor" in heading
    pairs = [
        zip(
            *(episodes(folder / f"{name}__s{seed}") for name in ("ppo_eco", "ppo")), strict=True
        )
        for seed in (5, 6)
    ]
    better = sum(ours > theirs for pair in pairs for ours, theirs in pair)
    assert f"and more cells in {better} of 18 episodes on the same levels" in content


def test_its_film_shows_the_trained_pair_to_the_end(shown):
    folder, _ = shown
    content = (folder / "demo.html").read_text()
    (data,) = re.findall(r"data:image/webp;base64,([^\"]+)", content)
    with Image.open(io.BytesIO(base64.b64decode(data))) as film:
        assert film.n_frames == 31  # the start and every step
        film.seek(30)
        last = np.asarray(film.convert("RGB")).astype(int)
    walks = {name: walk(folder / f"{name}__s5", NUM_ENVS) for name in ALL}
    level = middle_level(walks["ppo"], walks["ppo_eco"])
    assert f"it is number {level + 1}, where" in content
    for name, spelt, half in (("ppo", "plain PPO", 0), ("ppo_eco", "curious", 1)):
        one = walks[name][level]
        assert f"</i>{spelt}: {one.coverage} cells</span>" in content
        side = np.array_split(last, 2, axis=1)[half]
        bar = side[-4, :, :]
        share = one.coverage / max(walks[n][level].coverage for n in ALL)
        coloured = (np.ptp(bar, axis=1) > 60).mean()  # the rest of the bar is grey
        assert coloured == pytest.approx(share, abs=0.08)


@pytest.mark.parametrize(
    ("plain", "curious", "level"), [((3, 9, 5), (4, 4, 9), 0), ((0, 0, 0, 0), (9, 4, 7, 5), 3)]
)
def test_the_film_is_of_the_level_with_the_median_difference(plain, curious, level):
    pair = [[SimpleNamespace(coverage=cells) for cells in walks] for walks in (plain, curious)]
    assert middle_level(*pair) == level


def test_it_shows_the_first_of_the_measured_episodes(shown):
    folder, _ = shown
    content = without_data((folder / "demo.html").read_text())
    for name, spelt in (("ppo", "plain PPO"), ("ppo_eco", "curious (ppo+eco)")):
        run = folder / f"{name}__s5"
        counted = episodes(run)
        walks = walk(run, NUM_ENVS)
        assert [one.coverage for one in walks] == counted[:NUM_ENVS]
        assert [one.covered[-1] for one in walks] == counted[:NUM_ENVS]
        assert [one.coverage for one in walk(run, 2)] == counted[:2]  # with any number of them
        captions = re.findall(rf"{re.escape(spelt)}: (\d+) cells</figc", content)
        assert [int(caption) for caption in captions] == counted[:NUM_ENVS]


def test_memory_is_filled_on_the_way_from_the_same_start(shown):
    folder, _ = shown
    plain, curious = walk(folder / "ppo__s5", 2), walk(folder / "ppo_eco__s5", 2)
    for one, other in zip(plain, curious, strict=True):
        assert one.places.shape == (31, 2)
        assert (one.places[0] == other.places[0]).all()
        assert len(one.remembered) == 0
        assert (other.remembered[0] == other.places[0]).all()  # the first view is remembered
        assert {tuple(place) for place in other.remembered} <= {tuple(p) for p in other.places}
        assert (one.snapshots[0] == other.snapshots[0]).all()
        assert not one.bonus.any()
        assert other.bonus[1:].any()
        assert np.abs(other.bonus).max() <= 1.0
        assert (np.diff(one.covered) >= 0).all()
        assert len(np.unique(np.trunc(one.places / 30), axis=0)) == one.covered[-1]


def test_its_page_needs_nothing_from_elsewhere(shown):
    folder, _ = shown
    content = (folder / "demo.html").read_text()
    assert_nothing_from_elsewhere(content)
    assert content.count("<img ") == 3 * NUM_ENVS + 1  # two paths and a memory each, the film
    assert "<script" not in content


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_page_without_any_request(shown, browser, scheme):
    folder, _ = shown
    tab = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto((folder / "demo.html").as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    pictures = tab.evaluate("[...document.images].map(i => [i.naturalWidth, i.width])")
    assert len(pictures) == 3 * NUM_ENVS + 1
    assert all(natural > 0 and 100 < width <= 362 for natural, width in pictures)
    assert [url for url in asked if not url.startswith("data:")] == [
        (folder / "demo.html").as_uri()
    ]
    tab.close()


def test_without_pillow_there_is_no_film(shown, monkeypatch):
    folder, _ = shown
    monkeypatch.setitem(sys.modules, "examples.pair_film", None)
    call_here(folder)
    content = (folder / "demo.html").read_text()
    assert "image/webp" not in content
    assert content.count("<img ") == 3 * NUM_ENVS


def test_a_path_is_blue_where_it_costs_and_pink_where_it_pays():
    share = np.repeat([-1.0, 1.0], 40)
    colours = bonus_colours(share)
    assert colours[:30].tolist() == [list(COST)] * 30
    assert colours[50:].tolist() == [list(PAID)] * 30
    # Of the fifteen steps around it eight pay: their mean is 1/15 of the largest bonus, and
    # half of that has the full colour.
    middle = np.array(COST) + (np.array(PAID) - COST) * (1 + 2 / 15) / 2
    assert colours[40] == pytest.approx(middle)
    assert bonus_colours(np.array([0.0, 0.0, 0.0])).shape == (3, 3)


def test_a_second_call_trains_nothing_and_another_run_is_refused(shown):
    folder, printed = shown
    run = folder / "ppo_eco__s5"
    timing, weights = run / "timing.jsonl", run / "agent.safetensors"
    before = timing.read_bytes(), weights.read_bytes()
    assert call_here(folder).splitlines()[-6:-2] == printed.splitlines()[-6:-2]
    assert (timing.read_bytes(), weights.read_bytes()) == before
    with pytest.raises(SystemExit, match=r"demo: .* holds a run with another config"):
        demo.main(["--steps", "4_000", "--seed", "5", "--out", str(folder)])


def test_bad_options_are_told(capsys):
    with pytest.raises(SystemExit):
        demo.main(["--seeds", "0"])
    assert "--seeds must be at least 1, got 0" in capsys.readouterr().err


def episodes(folder: Path) -> list[int]:
    return json.loads((folder / "evaluation.json").read_text())["episodes"]["coverage"]


def evaluation(folder: Path) -> dict[str, float]:
    return json.loads((folder / "evaluation.json").read_text())["summary"]["coverage"]


def test_the_curious_agent_has_the_r_network_that_is_shipped():
    run = demo.demo_run("ppo+ec", demo.STEPS, 0)
    world = make_world(run.task, num_envs=1, seed=0, **run.world.options("train"))
    assert make_r_network(run, world).held_out_accuracy > 0.88
    assert run.random_play_steps == 0
    assert demo.demo_run("ppo+eco", demo.STEPS, 0).r_network.source is None
    assert demo.demo_run("ppo", demo.STEPS, 0).r_network is None


def test_both_agents_have_the_same_world_and_optimiser_but_for_their_learning_rates():
    plain, curious = (demo.demo_run(method, demo.STEPS, 0) for method in ("ppo", "ppo+ec"))
    assert plain.world == curious.world
    assert plain.world.actions is None  # the paper's nine
    assert plain.num_updates == curious.num_updates
    rate = curious.ppo.learning_rate
    assert dataclasses.replace(plain.ppo, learning_rate=rate) == curious.ppo
    assert curious.bonus.replacement == "fifo"


def test_a_machine_with_a_gpu_trains_and_plays_on_its_cpu(monkeypatch):
    asked = {}
    monkeypatch.setattr(trained, "train", lambda *_, **__: None)
    monkeypatch.setattr(trained, "walk", lambda *_: [])
    monkeypatch.setattr(trained, "evaluate_run", lambda _, **options: asked.update(options))
    run = demo.demo_run("ppo+ec", demo.STEPS, 0)
    trained.train_and_evaluate(run, Path("runs/x"), 5)
    assert (run.device, asked["device"]) == ("cpu", "cpu")
