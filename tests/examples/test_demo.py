"""The demo, from its command line to its page, at a size that teaches nobody anything."""

import dataclasses
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.show.report.figures import thinned
from examples import demo
from examples.walks import walk
from tests.show.report.test_page import assert_nothing_from_elsewhere, without_data

pytestmark = pytest.mark.slow

NUM_ENVS, NUM_EPISODES = 3, 7  # nine are played: three of each environment


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


def call(folder: Path) -> str:
    words = f"--method ppo+eco --steps 1000 --seed 5 --seeds 2 --episodes {NUM_EPISODES}"
    words = f"{words} --out {folder}"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(demo, "small_run", tiny_run)
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
    assert content.count("<polyline") == 4 + 2 + 2  # coverage, bonus, accuracy


def test_it_shows_the_first_of_the_measured_episodes(shown):
    folder, _ = shown
    content = without_data((folder / "demo.html").read_text())
    for name, spelt in (("ppo", "plain PPO"), ("ppo_eco", "curious (ppo+eco)")):
        run = folder / f"{name}__s5"
        counted = json.loads((run / "evaluation.json").read_text())["episodes"]["coverage"]
        walks = walk(run, NUM_ENVS)
        assert [one.coverage for one in walks] == counted[:NUM_ENVS]
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
        assert (one.picture() == other.picture()).all()


def test_its_page_needs_nothing_from_elsewhere(shown):
    folder, _ = shown
    content = (folder / "demo.html").read_text()
    assert_nothing_from_elsewhere(content)
    assert content.count("<img ") == 3 * NUM_ENVS  # two ways and a memory for each level


def test_a_second_call_trains_nothing_and_another_run_is_refused(shown):
    folder, printed = shown
    weights = folder / "ppo_eco__s5" / "agent.safetensors"
    before = weights.stat().st_mtime_ns
    assert call(folder).splitlines()[-6:-2] == printed.splitlines()[-6:-2]
    assert weights.stat().st_mtime_ns == before
    with pytest.raises(SystemExit, match=r"demo: .* holds a run with another config"):
        demo.main(["--steps", "4_000", "--seed", "5", "--out", str(folder)])


def test_bad_options_are_told(capsys):
    with pytest.raises(SystemExit):
        demo.main(["--seeds", "0"])
    assert "--seeds must be at least 1, got 0" in capsys.readouterr().err


def evaluation(folder: Path) -> dict[str, float]:
    return json.loads((folder / "evaluation.json").read_text())["summary"]["coverage"]
