"""Files people send each other: whole ones load, everything else is refused in a sentence."""

import os
import pickle
import subprocess
import sys

import pytest
import safetensors.torch
import torch

import episodic_curiosity as ec
from tests.support.headers import read_header, write_header

NETWORKS = {
    "r_network": lambda: ec.RNetwork((3, 16, 16), comparator="mlp", branches="shared"),
    "agent": lambda: ec.Agent((5,), 2, continuous=True),
}


@pytest.fixture
def folder(tmp_path):
    for make in NETWORKS.values():
        make().save(tmp_path)
    return tmp_path


def edit(path, **changes):
    write_header(path, read_header(path) | changes)


@pytest.mark.parametrize("kind", NETWORKS)
def test_what_was_saved_is_loaded(kind, tmp_path):
    saved = NETWORKS[kind]()
    saved.save(tmp_path / "deep" / "folder")
    loaded = type(saved).load(tmp_path / "deep" / "folder")
    assert loaded.config == saved.config
    for name, tensor in saved.state_dict().items():
        torch.testing.assert_close(
            loaded.state_dict()[name], tensor, rtol=0, atol=0, equal_nan=True
        )
    assert {path.name for path in (tmp_path / "deep" / "folder").iterdir()} == {
        f"{kind}.safetensors"
    }


def test_a_loaded_network_judges_as_the_saved_one_did(tmp_path):
    saved = ec.RNetwork((3, 16, 16))
    saved.fitted.fill_(True)
    saved.save(tmp_path)
    loaded = ec.RNetwork.load(tmp_path)
    frames = torch.rand(2, 5, 3, 16, 16)
    assert loaded.fitted
    assert not loaded.training
    assert torch.equal(loaded.reachable(*frames), saved.reachable(*frames))


def test_a_truncated_file(folder):
    path = folder / "r_network.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ec.LoadError, match=r"r_network\.safetensors is truncated or no safe"):
        ec.RNetwork.load(folder)


def test_a_pickle_is_never_opened(folder):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was opened",))

    (folder / "agent.safetensors").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ec.LoadError, match="truncated or no safetensors file"):
        ec.load_agent(folder)


def test_a_flipped_bit(folder):
    path = folder / "agent.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ec.LoadError, match="fingerprints differ"):
        ec.load_agent(folder)


def test_weights_of_another_shape(folder):
    path = folder / "r_network.safetensors"
    edit(path, config=read_header(path)["config"] | {"embedding_size": 8})
    with pytest.raises(
        ec.LoadError, match=r"holds .* as torch.float32 .* wanted torch.float32"
    ):
        ec.RNetwork.load(folder)


def test_weights_of_another_architecture(folder):
    path = folder / "r_network.safetensors"
    config = read_header(path)["config"]
    edit(path, config=config | {"comparator": "dot"})
    with pytest.raises(ec.LoadError, match=r"unexpected tensors, first comparator\."):
        ec.RNetwork.load(folder)
    edit(path, config=config | {"branches": "unshared"})
    with pytest.raises(
        ec.LoadError, match=r"lacks .* of the wanted tensors, first branches\.1"
    ):
        ec.RNetwork.load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"version": 3, "code": "9.8.7"},
            rf"by episodic-curiosity 9.8.7 in format 3; this is {ec.__version__}, which reads "
            r"format 2",
        ),
        ({"format": "other"}, "was not written by episodic-curiosity"),
        ({"kind": "agent"}, "describes 'agent', wanted 'r_network'"),
        ({"config": {"view_shape": [3, 16, 16], "colour": 1}}, "describes no r_network"),
        ({"config": {"view_shape": [3, 0, 16]}}, "view_shape's sizes must be"),
        ({"version": True}, "in format True; this is .*, which reads format 2"),
        ({"config": {"view_shape": [10**9, 10**6, 10**6]}}, "describes no r_network"),
        ({"config": None}, "lacks its config"),
        ({"sha256": None}, "fingerprints differ"),
        ({"code": "0.2.0-forged"}, "fingerprints differ"),
    ],
)
def test_a_description_that_does_not_fit(folder, changes, message):
    edit(folder / "r_network.safetensors", **changes)
    with pytest.raises(ec.LoadError, match=message):
        ec.RNetwork.load(folder)


def test_weights_of_another_program_and_no_file(folder):
    weights = {"weight": torch.ones(3)}
    safetensors.torch.save_file(weights, folder / "r_network.safetensors")
    with pytest.raises(ec.LoadError, match=r"lacks its config: a release before 0\.2\.0"):
        ec.RNetwork.load(folder)
    with pytest.raises(ec.LoadError, match=r"there is no folder .*nowhere"):
        ec.load_agent(folder / "nowhere")


def test_every_refusal_is_one_sentence(folder):
    (folder / "r_network.safetensors").write_bytes(b"not a safetensors file")
    with pytest.raises(ec.LoadError) as refusal:
        ec.RNetwork.load(folder)
    assert "\n" not in str(refusal.value)


def test_an_interrupted_save_leaves_the_old_files(folder, monkeypatch):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fails(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OSError, match="the disk is full"):
        NETWORKS["agent"]().save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_save_killed_after_any_replacement_leaves_something_to_load(folder, monkeypatch):
    replace = os.replace

    def killed(*paths):
        replace(*paths)
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        ec.Agent((5,), 7).save(folder)
    assert ec.load_agent(folder).config.num_actions == 7


@pytest.mark.parametrize(
    "header", ["[" * 900 + "]" * 900, '{"config": 1' + "0" * 400 + "}", "[" * 99_999, "7"]
)
def test_a_header_that_json_stumbles_over(folder, header):
    metadata = {"episodic-curiosity": header}
    safetensors.torch.save_file({}, folder / "agent.safetensors", metadata)
    with pytest.raises(ec.LoadError) as refusal:
        ec.load_agent(folder)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300


WRITER = """
import sys
import episodic_curiosity as ec
agents = [ec.Agent((5,), num_actions=number) for number in (2, 7)]
while True:
    for agent in agents:
        agent.save(sys.argv[1])
"""


@pytest.mark.slow
def test_a_reader_beside_a_writer_is_never_refused(tmp_path):
    """Two architectures in turn: weights of one with the config of the other would not fit."""
    ec.Agent((5,), num_actions=2).save(tmp_path)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)])
    try:
        found = {ec.load_agent(tmp_path).config.num_actions for _ in range(1000)}
        while len(found) < 2:  # the writer takes seconds to start
            assert writer.poll() is None
            found |= {ec.load_agent(tmp_path).config.num_actions for _ in range(1000)}
    finally:
        writer.kill()  # in the middle of a save
        writer.wait()
    assert found == {2, 7}
    assert ec.load_agent(tmp_path).config.num_actions in found
