"""The real ViZDoom: the conformance suite, MyWayHome's sub-tasks, faults, and what is left."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch import Tensor

vizdoom = pytest.importorskip("vizdoom")

from episodic_curiosity.testing.worlds import NUM_ENVS, WorldConformance  # noqa: E402
from episodic_curiosity.worlds.base import World  # noqa: E402
from episodic_curiosity.worlds.registry import make_world  # noqa: E402
from episodic_curiosity.worlds.vizdoom.world import ViZDoomWorld  # noqa: E402
from tests.worlds.processes.children import engines, eventually, have_ended, shared_memory  # noqa: E402
from tests.worlds.vizdoom.my_way_home import FORWARD, SPOTS, Walker, nearest_spot  # noqa: E402

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("task", ["dense", "basic.cfg"], scope="class")
class TestConformance(WorldConformance):
    @pytest.fixture(autouse=True)
    def _task(self, task: str):
        self.task = task

    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        num_workers = 2 if self.task == "dense" else 1  # to start one costs the most
        options = {"episode_steps": 7, "num_workers": num_workers}
        return make_world(f"vizdoom/{self.task}", num_envs=num_envs, seed=seed, **options)


@pytest.fixture
def make():
    made = []

    def make(task: str = "dense", num_envs: int = 3, **options) -> ViZDoomWorld:
        options = {"num_workers": 1} | options
        world = make_world(f"vizdoom/{task}", num_envs=num_envs, seed=1, **options)
        made.append(world)
        return world

    yield make
    for world in made:
        world.close()


def act(world: World, action: int = FORWARD) -> Tensor:
    return torch.full((world.spec.num_envs,), action)


@pytest.mark.parametrize(
    ("task", "spots", "lowest", "highest"),
    [
        ("dense", set(SPOTS), 0.0, 360.0),
        ("sparse", {10}, 0.0, 3.6),
        ("very-sparse", {15}, 176.4, 183.6),
    ],
)
def test_starts_of_200_episodes(make, task, spots, lowest, highest):
    world = make(task, num_envs=8)
    positions, headings = [], []
    for _ in range(25):
        positions.append(world.reset().position)
        headings.append(world.heading())
    position, heading = torch.cat(positions), torch.cat(headings)
    found = [nearest_spot(place) for place in position]
    assert set(found) == spots
    offset = position[:, :2] - torch.tensor([SPOTS[spot] for spot in found])
    assert offset.abs().max() < 0.01
    assert heading.min() >= lowest
    assert heading.max() <= highest
    spread = highest - lowest
    assert heading.max() - heading.min() > 0.9 * spread
    assert len(heading.unique()) > 100


@pytest.mark.parametrize(
    ("task", "spots"), [("dense", set(SPOTS)), ("sparse", {10}), ("very-sparse", {15})]
)
def test_somebody_who_knows_the_way_is_paid_exactly_one(make, task, spots):
    world = make(task, num_envs=8)
    step = world.reset()
    walkers = [Walker(place) for place in step.position]
    starts = [nearest_spot(place) for place in step.position]
    paid, arrived = torch.zeros(8), set()
    while arrived != spots:
        turns = zip(walkers, step.position, world.heading().tolist(), strict=True)
        step = world.step(torch.tensor([walker.act(*place) for walker, *place in turns]))
        assert not step.truncated.any()
        paid += step.reward
        assert (paid[step.terminated] == 1.0).all()
        assert (paid[~step.terminated] == 0.0).all()  # the step that pays is the last one
        paid[step.terminated] = 0.0
        for row in step.terminated.nonzero().squeeze(1).tolist():
            arrived.add(starts[row])
            walkers[row] = Walker(step.position[row])
            starts[row] = nearest_spot(step.position[row])


def test_an_episode_lasts_525_steps_and_pays_nothing_elsewhere(make):
    world = make("sparse", num_envs=2)
    step = world.reset()
    for number in range(1, 526):
        step = world.step(act(world, number % 2))
        assert (step.reward == 0.0).all()
        assert step.truncated.all() == (number == 525)
    assert step.final_view is not None
    assert not torch.equal(step.final_view, step.view)


def test_what_is_seen(make):
    """Grey and small for the policy, as the engine draws it for curiosity."""
    world = make("dense")
    step = world.reset()
    assert world.spec.observation_shape == (1, 84, 84)
    assert world.spec.view_shape == (3, 120, 160)
    assert world.spec.action_names == ("move-forward", "turn-left", "turn-right")
    assert not world.spec.can_restore
    red, green, blue = step.view.float().unbind(1)
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    assert (grey.mean((1, 2)) - step.observation.float().mean((1, 2, 3))).abs().max() < 1.0
    # Neither a bar at the bottom nor a weapon: nothing stays where it is as the player turns.
    views = [world.step(act(world, 1)).view for _ in range(8)]
    moving = torch.stack(views).float().std(0).mean(1)  # (N, 120, 160)
    assert (moving[:, 90:].mean((1, 2)) > 1.0).all()


@pytest.mark.parametrize("view_size", [(84, 84), (60, 80), (120, 160)])
def test_frames_are_resized_as_floats_would_be(make, view_size):
    world = make("dense", view_size=view_size)
    step = world.reset()
    frames = torch.from_numpy(world.workers.board.present["frame"]).float()
    options = {"mode": "bilinear", "antialias": True}
    view = torch.nn.functional.interpolate(frames, view_size, **options)
    assert (step.view - view).abs().max() <= 1.0
    red, green, blue = torch.nn.functional.interpolate(frames, (84, 84), **options).unbind(1)
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    assert (step.observation[:, 0] - grey).abs().max() <= 1.5  # rounded twice


def test_colours_are_in_order(make):
    """The same start with ViZDoom's own class, which interleaves red, green and blue."""
    world = make("dense", num_envs=1)
    world.reset()
    seed = int(world.workers.board.seed[0])  # of the next episode
    view = world.reset().view
    game = vizdoom.DoomGame()
    game.load_config(str(Path(vizdoom.scenarios_path, "my_way_home.cfg")))
    game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
    game.set_screen_format(vizdoom.ScreenFormat.RGB24)
    game.set_window_visible(False)
    game.set_render_weapon(False)
    game.set_seed(seed)
    game.set_doom_config_path(os.devnull)
    game.init()
    try:
        expected = torch.from_numpy(game.get_state().screen_buffer.copy()).permute(2, 0, 1)
    finally:
        game.close()
    assert torch.equal(view[0], expected)


def test_other_sizes_and_staggered_clocks(make):
    sizes = {"observation_size": (40, 50), "view_size": (42, 36)}
    world = make(num_envs=6, episode_steps=60, stagger=True, **sizes)
    step = world.reset()
    assert step.observation.shape == (6, 1, 40, 50)
    assert step.view.shape == (6, 3, 42, 36)
    ends = torch.stack([world.step(act(world, 1)).truncated for _ in range(60)])  # (T, N)
    assert (ends.sum(0) == 1).all()
    assert ends.any(1).sum() > 3  # at different times


def test_splits_play_different_episodes(make):
    worlds = [make(num_envs=1, split=split) for split in ("r-network", "train", "test")]
    a, b, c = (world.reset().view for world in worlds)
    assert not torch.equal(a, b)
    assert not torch.equal(b, c)
    assert not torch.equal(a, c)


def test_any_scenario_with_its_own_buttons(make, tmp_path):
    world = make("basic.cfg", num_envs=2)
    assert world.spec.action_names == ("move-left", "move-right", "attack")
    assert world.spec.episode_steps == 75  # 300 tics
    world.reset()
    assert (world.step(act(world, 2)).reward < 0.0).all()  # the price of a shot
    own = tmp_path / "a+b.wad"
    own.write_bytes(Path(vizdoom.scenarios_path, "my_way_home.wad").read_bytes())
    actions = ("idle", "move-forward+turn-left", "move-right")
    world = make(str(own), num_envs=1, episode_steps=5, actions=actions)
    before = world.reset()
    idle = world.step(act(world, 0))
    assert torch.equal(before.position, idle.position)
    heading = world.heading()
    both = world.step(act(world, 1))
    assert not torch.equal(both.position, idle.position)
    assert not torch.equal(world.heading(), heading)


@pytest.mark.parametrize(
    ("task", "options", "match"),
    [
        ("medium", {}, "one of dense, sparse, very-sparse, a .cfg or .wad .*, got 'medium'"),
        ("take_cover.cfg", {}, "sets no time limit: give episode_steps"),
        ("deathmatch.cfg", {}, "binary buttons, .*got 'look-up-down-delta'"),
        ("dense", {"actions": ("jmp",)}, "got 'jmp'"),
        ("dense", {"actions": "attack"}, "a sequence of names, got the one name 'attack'"),
        ("dense", {"actions": ("idle",)}, "has no buttons to press"),
        ("dense", {"episode_steps": 0}, "episode_steps must be"),
        ("dense", {"view_size": 84}, "view_size must be"),
        ("dense", {"split": "all"}, "split must be one of"),
    ],
)
def test_what_is_refused(make, task, options, match):
    with pytest.raises(ValueError, match=match):
        make(task, **options)


def test_files_that_are_not_what_their_names_say(make, tmp_path):
    wad, config = tmp_path / "broken.wad", tmp_path / "broken.cfg"
    wad.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"broken.wad is not a wad: it begins with b'noth'"):
        make(str(wad))
    config.write_text("doom_scenario_path = nowhere.wad\navailable_buttons = { ATTACK }")
    with pytest.raises(ValueError, match=r"broken.cfg: there is no file .*nowhere.wad"):
        make(str(config), num_envs=1, episode_steps=5)


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "vizdoom", None)
    for name in ("world", "scenarios"):
        monkeypatch.delitem(sys.modules, f"episodic_curiosity.worlds.vizdoom.{name}")
    with pytest.raises(ImportError, match=r"pip install 'episodic-curiosity\[vizdoom\]'"):
        make_world("vizdoom/dense", num_envs=1, seed=0)


def test_names_left_by_killed_engines_are_removed(make):
    """An engine killed while it starts leaves its names: nobody can take them away then."""
    old, new = (Path(f"/dev/shm/ViZDoomTest{os.getpid()}{age}") for age in ("old", "new"))
    try:
        for file in (old, new):
            file.touch()
        os.utime(old, times=(0, 0))
        make("sparse", num_envs=1)
        assert (old.exists(), new.exists()) == (False, True)  # one may still be starting
    finally:
        for file in (old, new):
            file.unlink(missing_ok=True)


class TestFaults:
    """What is done to engines and workers while a world is stepped."""

    @pytest.fixture
    def world(self, make):
        world = make(num_envs=5, num_workers=2, timeout=3.0)
        world.reset()
        for _ in range(3):
            world.step(act(world, 1))
        assert len(engines(world.workers.pids)) == 5
        return world

    def goes_on(self, world: ViZDoomWorld) -> None:
        step = world.step(act(world))
        assert not step.first.any()
        assert len(world.workers.pids) == 2
        assert len(engines(world.workers.pids)) == 5

    def test_an_engine_is_killed(self, world, caplog):
        os.kill(engines(world.workers.pids)[3], signal.SIGKILL)
        step = world.step(act(world))
        assert int(step.truncated.sum()) == 1
        assert not step.terminated.any()
        assert step.final_view is not None
        assert step.final_view[step.truncated].float().std() > 1.0
        assert world.workers.num_faults == 1
        assert "ViZDoomErrorException" in caplog.text
        self.goes_on(world)

    def test_an_engine_is_killed_before_a_reset(self, world):
        os.kill(engines(world.workers.pids)[0], signal.SIGKILL)
        assert world.reset().first.all()
        self.goes_on(world)

    def test_an_engine_freezes(self, world, caplog):
        frozen = engines(world.workers.pids)[0]
        os.kill(frozen, signal.SIGSTOP)
        step = world.step(act(world))
        assert step.truncated.tolist() == [True, True, False, False, False]
        assert "no answer in time" in caplog.text
        assert eventually(lambda: not Path(f"/proc/{frozen}").exists())
        self.goes_on(world)

    def test_a_worker_is_killed(self, world, caplog):
        group = world.workers.pids[1]
        os.kill(group, signal.SIGKILL)
        step = world.step(act(world))
        assert step.truncated.tolist() == [False, False, True, True, True]
        assert "the worker of environments 2 to 4: died" in caplog.text
        assert have_ended([group])
        self.goes_on(world)

    def test_an_engine_is_killed_in_mid_step(self, world):
        world.begin_step(act(world))
        os.kill(engines(world.workers.pids)[3], signal.SIGKILL)
        step = world.end_step()
        if not step.truncated.any():  # it had taken its action by then
            step = world.step(act(world))
        assert int(step.truncated.sum()) == 1
        self.goes_on(world)

    def test_a_reset_in_mid_step(self, world):
        world.begin_step(act(world))
        assert world.reset().first.all()
        self.goes_on(world)

    def test_closing_in_mid_step(self, world):
        groups = world.workers.pids
        world.begin_step(act(world))
        os.kill(engines(groups)[0], signal.SIGSTOP)
        world.close()
        assert have_ended(groups)


PARENT = """
    import json, torch
    from episodic_curiosity.worlds.registry import make_world

    world = make_world("vizdoom/dense", num_envs=3, seed=0, num_workers=2)
    world.reset()
    print(json.dumps(world.workers.pids), flush=True)
    while True:
        world.step(torch.randint(3, (3,)))
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_parent_that_ends(by, tmp_path):
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    before = shared_memory()
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT)],
        cwd=here,
        env=os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with parent:
        assert parent.stdout is not None
        groups = json.loads(parent.stdout.readline())
        os.killpg(parent.pid, by)  # as a terminal does it
        parent.wait(30)
    assert have_ended(groups)
    assert eventually(lambda: not list(temporary.iterdir()))
    assert not list(here.iterdir())
    assert eventually(lambda: shared_memory() <= before)


def test_what_is_being_written_is_not_read(make):
    world = make()
    world.reset()
    world.begin_step(act(world))
    for read in (world.heading, world.picture, lambda: world.finish(torch.zeros(3).bool())):
        with pytest.raises(RuntimeError, match="call end_step"):
            read()
    world.end_step()
    assert world.heading().shape == (3,)
    assert world.picture().shape[2] == 3
