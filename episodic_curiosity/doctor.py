"""What is installed here, and how fast the core runs on it."""

import os
import platform
import time
from importlib import metadata

import torch

from episodic_curiosity import __version__
from episodic_curiosity.curiosity import EpisodicCuriosity
from episodic_curiosity.reachability.network import RNetwork

PACKAGES = (
    "torch",
    "numpy",
    "gymnasium",
    "numba",
    "safetensors",
    "tyro",
    "rich",
    "tensorboard",
    "vizdoom",
    "mujoco",
)
NUM_ENVS = 16


def doctor() -> None:
    """Says what is installed, what it runs on and how fast the bonus is here."""
    print(f"episodic-curiosity {__version__}, Python {platform.python_version()}")
    for package in PACKAGES:
        print(f"  {package:12} {_version(package)}")
    devices = ["cpu"]
    print(f"  cpu          {os.cpu_count()} cores, torch uses {torch.get_num_threads()}")
    for index in range(torch.cuda.device_count()):
        devices.append(f"cuda:{index}")
        memory = torch.cuda.get_device_properties(index).total_memory / 1e9
        print(f"  cuda:{index}       {torch.cuda.get_device_name(index)}, {memory:.0f} GB")
    print(f"The bonus of {NUM_ENVS} environments with 84 x 84 colour frames, memory of 200:")
    for device in devices:
        print(f"  {device:12} {_bonus_per_second(device):,.0f} environment steps/s")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _bonus_per_second(device: str) -> float:
    """Of the fast R-network with full memories, after a warm-up, for about half a second."""
    curiosity = EpisodicCuriosity(RNetwork(view_shape=(3, 84, 84)).to(device), NUM_ENVS)
    curiosity.memory.embeddings.normal_()
    curiosity.memory.added.fill_(curiosity.memory.capacity)
    view = torch.randint(0, 256, (NUM_ENVS, 3, 84, 84), dtype=torch.uint8, device=device)
    first = torch.zeros(NUM_ENVS, dtype=torch.bool, device=device)
    for _ in range(5):
        curiosity.bonus(view, first)
    curiosity.metrics()  # waits for the device
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < 0.5:
        for _ in range(10):
            curiosity.bonus(view, first)
        curiosity.metrics()
        steps += 10 * NUM_ENVS
    return steps / (time.perf_counter() - start)
