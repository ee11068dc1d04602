"""The example of SB3 on MiniGrid: what it sees, short runs, and the page of its curves."""

import json
import sys
from pathlib import Path

import gymnasium
import pytest

pytest.importorskip("minigrid")
pytest.importorskip("stable_baselines3")

from examples import minigrid_curves, sb3_minigrid

ENV = "MiniGrid-Empty-5x5-v0"  # episodes have at most 100 steps
pytestmark = pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")


def test_a_cell_is_three_ones():
    env = sb3_minigrid.OneHot(gymnasium.make(ENV))
    seen, _ = env.reset(seed=3)
    assert env.observation_space.contains(seen)
    assert seen.sum() == 7 * 7 * 3
    image = env.unwrapped.gen_obs()["image"]
    objects = seen[: 7 * 7 * 11].reshape(7, 7, 11)
    assert (objects.argmax(-1) == image[..., 0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ppo", *sb3_minigrid.BONUSES])
def test_a_curve(method, tmp_path, monkeypatch):
    monkeypatch.setattr(sb3_minigrid, "ROLLOUTS_PER_POINT", 2)
    args = sb3_minigrid.Args(env=ENV, method=method, steps=4_096, seed=1, out=tmp_path)
    sb3_minigrid.main(args)
    (path,) = tmp_path.glob("*.json")
    assert path.name == f"{ENV}__{method}__s1.json"
    found = json.loads(path.read_text())
    ((steps, task_return),) = found["curve"]
    assert steps == 4_096
    assert 0 < task_return < 1  # without the bonus
    has_memory = method not in ("ppo", "ppo+rnd")
    assert ("memory_fill" in found["curiosity"]) == has_memory


def test_few_lines_are_curiosity():
    source = Path(sb3_minigrid.__file__).read_text()
    assert 5 <= sum(line.endswith("  # curiosity") for line in source.splitlines()) <= 10


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "ppo+x"}, "--method must be ppo, .* got ppo\\+x"),
        ({"env": "MiniGrid-Nowhere-v0"}, "--env MiniGrid-Nowhere-v0: .*doesn't exist"),
    ],
)
def test_bad_options_are_a_sentence(options, sentence, tmp_path):
    with pytest.raises(SystemExit, match=sentence):
        sb3_minigrid.main(sb3_minigrid.Args(**({"env": ENV, "out": tmp_path} | options)))


def draw(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["minigrid_curves.py", *map(str, arguments)])
    minigrid_curves.main()


def test_the_page_has_a_chart_per_environment_and_a_table_of_seeds(
    tmp_path, monkeypatch, capsys
):
    for seed, last in ((0, 0.25), (1, 0.75)):
        curve = [(100, 0.0), (200, last)]
        content = {"env": ENV, "method": "ppo", "curve": curve}
        (tmp_path / f"s{seed}.json").write_text(json.dumps(content))
    draw(monkeypatch, tmp_path, "--out", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().count("<svg") == 1
    assert "| `ppo` | 0.25, 0.75 |" in capsys.readouterr().out


def test_lines_that_hide_each_other_are_named(tmp_path, monkeypatch):
    """A mean below 0.05 at all steps: that of ppo is above it once."""
    for method, values in {
        "ppo": (0.0, 0.1),
        "ppo+rnd": (0.04, 0.0),
        "ppo+etd": (0, 0),
    }.items():
        for seed, factor in ((0, 0), (1, 2)):
            curve = [(100 * (n + 1), factor * value) for n, value in enumerate(values)]
            content = {"env": ENV, "method": method, "curve": curve}
            (tmp_path / f"{method}{seed}.json").write_text(json.dumps(content))
    draw(monkeypatch, tmp_path, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<small>ppo+rnd, ppo+etd: below 0.05 throughout</small>" in page


@pytest.mark.parametrize("content", ["{", '{"env": "x"}', "[]"])
def test_a_file_that_is_no_curve_is_named(content, tmp_path, monkeypatch):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(SystemExit, match=r"bad\.json is no curve"):
        draw(monkeypatch, tmp_path, "--out", tmp_path / "page.html")
    (tmp_path / "bad.json").unlink()
    with pytest.raises(SystemExit, match="must have curves"):
        draw(monkeypatch, tmp_path, "--out", tmp_path / "page.html")
