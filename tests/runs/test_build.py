"""Methods: which bonus each one adds, and where its R-network comes from."""

from dataclasses import replace

import pytest
import torch

from episodic_curiosity import RNetwork
from episodic_curiosity.bonus.constant import ConstantBonus
from episodic_curiosity.bonus.episodic import EpisodicBonus
from episodic_curiosity.bonus.icm import ICM
from episodic_curiosity.bonus.nothing import NoBonus
from episodic_curiosity.bonus.oracle import GridOracle
from episodic_curiosity.reachability.frame_file import FrameFile
from episodic_curiosity.reachability.replay import SnapshotReplay
from episodic_curiosity.runs.build import load_bonus, make_bonus, make_r_network, save_bonus
from episodic_curiosity.support.machine import find_device
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.worlds.registry import make_world
from tests.runs.tiny_runs import CHECKPOINT_EVERY, NUM_ENVS, NUM_STEPS, tiny_run

BONUSES = {
    "ppo": NoBonus,
    "ppo+1": ConstantBonus,
    "ppo+icm": ICM,
    "ppo+oracle": GridOracle,
    "ppo+ec": EpisodicBonus,
    "ppo+eco": EpisodicBonus,
}


def world_of(run):
    return make_world(run.task, num_envs=NUM_ENVS, seed=run.seed, **run.world.options("train"))


def test_the_device_is_found():
    assert find_device(tiny_run().device) == torch.device("cpu")
    automatic = find_device("auto")
    assert automatic.type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("method", BONUSES)
def test_each_method_has_its_bonus(method, tmp_path):
    run = tiny_run(method)
    bonus = make_bonus(run, world_of(run), tmp_path)
    assert type(bonus) is BONUSES[method]
    assert bonus.num_envs == NUM_ENVS
    assert bonus.needs_views == (method == "ppo+eco")  # refitted to what the run sees
    assert not any(tmp_path.iterdir())


def test_the_memory_is_as_the_run_wants_it(tmp_path):
    run = tiny_run("ppo+ec")
    run = replace(run, bonus=replace(run.bonus, memory_capacity=7, replacement="fifo"))
    memory = make_bonus(run, world_of(run), tmp_path).memory
    assert memory.embeddings.shape[:2] == (NUM_ENVS, 7)
    assert memory.replacement == "fifo"


@pytest.mark.parametrize(("num_steps", "kept"), [(96, 96), (2048, 1024)])
def test_ec_rnd_keeps_a_rollout_of_up_to_1024_steps(tmp_path, num_steps, kept):
    run = tiny_run("ppo+ec-rnd")
    run = replace(run, ppo=replace(run.ppo, num_steps=num_steps))
    bonus = make_bonus(run, world_of(run), tmp_path)
    assert bonus.recent.fresh.shape == (kept, NUM_ENVS)


def test_snapshots_stay_in_memory_where_the_world_can_redraw(tmp_path):
    run = tiny_run("ppo+eco")
    world = world_of(run)
    bonus = make_bonus(run, world, tmp_path)
    replay = bonus.fitting.replay
    assert bonus.recorded is None
    assert isinstance(replay, SnapshotReplay)
    num_steps = run.r_network.online.history // NUM_ENVS
    size = num_steps * NUM_ENVS * (world.spec.snapshot_bytes + 1)
    assert (replay.memory_bytes, replay.disk_bytes) == (size, 0)


def test_frames_go_into_a_file_where_the_world_cannot_redraw(tmp_path):
    run = tiny_run("ppo+eco", "gym/CartPole-v1")
    replay = make_bonus(run, world_of(run), tmp_path).fitting.replay
    assert isinstance(replay, FrameFile)
    assert replay.path == tmp_path / "replay.bin"
    assert replay.spare == 2 * CHECKPOINT_EVERY * NUM_STEPS
    num_steps = run.r_network.online.history // NUM_ENVS
    assert replay.disk_bytes == (num_steps + replay.spare) * NUM_ENVS * 4 * 4


def test_the_seed_decides_about_an_r_network_and_nothing_else_does():
    worlds = {seed: world_of(tiny_run("ppo+ec", seed=seed)) for seed in (0, 1)}
    networks = []
    for seed in (0, 0, 1):
        torch.rand(3)
        state = torch.random.get_rng_state()
        networks.append(make_r_network(tiny_run("ppo+ec", seed=seed), worlds[seed]))
        assert torch.equal(torch.random.get_rng_state(), state)
    flat = [torch.cat([p.flatten() for p in network.parameters()]) for network in networks]
    assert torch.equal(flat[0], flat[1])
    assert not torch.equal(flat[0], flat[2])


def test_an_r_network_for_other_views_is_refused(tmp_path):
    RNetwork((3, 40, 40)).save(tmp_path)
    run = tiny_run("ppo+ec")
    run = replace(run, r_network=replace(run.r_network, source=tmp_path))
    with pytest.raises(ValueError, match=r"views of shape \(3, 40, 40\), but maze/sparse has"):
        make_r_network(run, world_of(run))


def test_an_r_network_that_was_never_fitted_is_refused(tmp_path):
    RNetwork((3, 36, 36)).save(tmp_path)
    run = tiny_run("ppo+ec")
    run = replace(run, r_network=replace(run.r_network, source=tmp_path))
    with pytest.raises(ValueError, match="is not fitted"):
        make_r_network(run, world_of(run))


LEARNT = {  # a tensor that each hands on
    "ppo+icm": "model",
    "ppo+rnd": "deviation.divisor",
    "ppo+ngu": "lifelong",
    "ppo+e3b": "inverse",
    "ppo+noveld": "distillation",
    "ppo+etd": "model",
    "ppo+ec-rnd": "lifelong",
}


def parts_of(bonus, name):
    return {key: part for key, part in bonus.state_dict().items() if key.startswith(name)}


@pytest.mark.parametrize("method", LEARNT)
def test_what_a_bonus_has_learnt_is_loaded(method, tmp_path):
    """Into a film's bonus, of another number of environments."""
    run = tiny_run(method)
    trained = make_bonus(run, world_of(run), tmp_path)
    state = {
        name: torch.rand_like(part) if getattr(part, "dtype", None) == torch.float32 else part
        for name, part in trained.state_dict().items()
    }
    trained.load_state_dict(state)
    save_bonus(trained, tmp_path)
    if run.r_network is not None:
        trained.r_network.save(tmp_path)
    options = run.world.options("train")
    world = make_world(run.task, num_envs=3, seed=run.seed, **options)
    loaded = load_bonus(run, world, tmp_path)
    learnt = parts_of(trained, LEARNT[method])
    assert learnt
    for name, part in parts_of(loaded, LEARNT[method]).items():
        assert torch.equal(part, learnt[name]), name


@pytest.mark.parametrize("method", ["ppo", "ppo+ec", "ppo+oracle"])
def test_a_bonus_that_has_learnt_nothing_of_its_own_has_no_file(method, tmp_path):
    run = tiny_run(method)
    save_bonus(make_bonus(run, world_of(run), tmp_path), tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_bonus_of_another_size_is_refused_before_it_is_made(tmp_path):
    run = tiny_run("ppo+etd")
    with pytest.raises(LoadError, match=r"bonus\.safetensors cannot be read"):
        load_bonus(run, world_of(run), tmp_path)
    save_bonus(make_bonus(run, world_of(run), tmp_path), tmp_path)
    run = replace(run, bonus=replace(run.bonus, embedding_size=10**9))  # terabytes
    with pytest.raises(LoadError, match=r"bonus\.safetensors holds model.* as torch.float32"):
        load_bonus(run, world_of(run), tmp_path)


def test_a_method_without_an_r_network():
    run = tiny_run("ppo")
    with pytest.raises(ValueError, match="ppo has no R-network"):
        make_r_network(run, world_of(run))
