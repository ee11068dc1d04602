"""Tensors as safetensors, byte by byte as the library writes them, and without copies."""

import subprocess
import sys

import pytest
import safetensors.torch
import torch

import episodic_curiosity as ec
from episodic_curiosity.support.tensor_files import DTYPES, bytes_of, pack

TENSORS = {
    **{f"of {name}": torch.arange(6).view(2, 3).to(dtype) for name, dtype in DTYPES.items()},
    "number": torch.tensor(2.5),
    "nothing": torch.zeros(0, 4),
    "ü": torch.ones(3),
}


def packed(tensors, metadata):
    return b"".join(pack(tensors, metadata))


@pytest.mark.parametrize("metadata", [{"one": '{"a": "\\n"}'}, {"one": "1", "long": "x" * 99}])
def test_the_library_reads_what_is_written(metadata):
    content = packed(TENSORS, metadata)
    found = safetensors.torch.load(content)
    assert found.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_the_bytes_are_the_library_s():
    for tensors in (TENSORS, {}):
        metadata = {"episodic-curiosity": '{"a": 1}'}
        assert packed(tensors, metadata) == safetensors.torch.save(tensors, metadata)


def test_any_layout_in_memory_is_written():
    frame = torch.rand(2, 3, 4, 5)
    views = {
        "last": frame.to(memory_format=torch.channels_last),
        "part": frame[:, 1:, ::2],
        "one": torch.tensor(7.0).expand(1),
        "same": frame,
    }
    found = safetensors.torch.load(packed(views, {}))
    for name, view in views.items():
        assert torch.equal(found[name], view)


def test_a_tensor_on_a_cpu_is_not_copied():
    tensor = torch.zeros(3, dtype=torch.uint8)
    content = bytes_of(tensor)
    tensor[1] = 9
    assert content.tolist() == [0, 9, 0]


def test_another_dtype_is_refused_before_anything_is_written():
    with pytest.raises(TypeError, match=r"must be of dtype BOOL, .*, got torch\.complex64"):
        pack({"weight": torch.zeros(2, dtype=torch.complex64)}, {})


def test_loading_without_safetensors(tmp_path, monkeypatch):
    ec.Agent((5,), 2).save(tmp_path)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(ImportError, match="loading needs safetensors: pip install safetensors"):
        ec.load_agent(tmp_path)


SAVES = """
import resource, sys
import episodic_curiosity as ec
from episodic_curiosity.adapters.attached import AttachedBonus

r_network = ec.RNetwork((4,), embedding_size=512)
bonus = ec.EpisodicCuriosity(r_network, num_envs=512, memory_capacity=256)  # 268 MB
bonus.memory.embeddings.fill_(1.0)
attached = AttachedBonus(bonus, 512)
small = ec.EpisodicCuriosity(ec.RNetwork((4,)), num_envs=1)
AttachedBonus(small, 1).save(sys.argv[1] + "/warm")  # imports everything
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
attached.save(sys.argv[1] + "/x")
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KB on Linux")
def test_a_large_memory_is_saved_without_a_copy_of_it(tmp_path):
    command = [sys.executable, "-c", SAVES, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, most = (1024 * int(number) for number in done.stdout.split())
    assert most - before < 60e6  # of 268 MB
