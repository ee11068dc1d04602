"""`curiosity doctor`: installed versions, devices and the speed of the bonus."""

import importlib.util
import os
import platform
import time
from importlib import metadata

import torch

from episodic_curiosity.bonus.curiosity import EpisodicCuriosity
from episodic_curiosity.cli.lists import read_nothing
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.support.version import __version__
from episodic_curiosity.worlds.dmlab.build import examine_build

# Optional packages, and what pip installs them by, in a clone of the project.
EXTRAS = {
    "vizdoom": ".[vizdoom]",
    "mujoco": ".[mujoco]",
    "ray": ".[ray]",
    "pillow": ".[film]",
    "imageio-ffmpeg": ".[film]",
    "stable-baselines3": ".[sb3]",
    "torchrl": ".[torchrl]",
    "minigrid": ".[minigrid]",
    "ale-py": ".[atari]",
    "huggingface-hub": ".[hub]",
}
PACKAGES = (
    "torch",
    "numpy",
    "gymnasium",
    "numba",
    "safetensors",
    "tyro",
    "rich",
    "tensorboard",
)
NUM_ENVS = 16
LAB_STEPS = 200  # timed in DeepMind Lab, if it is installed


def doctor(arguments: list[str]) -> None:
    """Prints versions, devices and the speed of the bonus on them."""
    read_nothing(doctor, arguments)
    print(f"episodic-curiosity {__version__}, Python {platform.python_version()}")
    for package in (*PACKAGES, *EXTRAS):
        print(f"  {package:17} {_version(package)}")
    print(f"  {'deepmind_lab':17} {_lab()}")
    devices = ["cpu"]
    print(f"  {'cpu':17} {os.cpu_count()} cores, torch uses {torch.get_num_threads()}")
    for index in range(torch.cuda.device_count()):
        devices.append(f"cuda:{index}")
        memory = torch.cuda.get_device_properties(index).total_memory / 1e9
        print(f"  {devices[-1]:17} {torch.cuda.get_device_name(index)}, {memory:.0f} GB")
    print(f"The bonus of {NUM_ENVS} environments with 84 x 84 colour frames, memory of 200:")
    for device in devices:
        print(f"  {device:17} {_bonus_per_second(device):,.0f} environment steps/s")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return f"not installed: pip install '{EXTRAS.get(package, '.')}'"


def _lab() -> str:
    """Version, capabilities and speed of the installed DeepMind Lab."""
    if importlib.util.find_spec("deepmind_lab") is None:
        return "not installed: docs/dmlab.md; maze/... runs the same tasks without it"
    try:
        build = examine_build(LAB_STEPS)
    except (ImportError, OSError) as error:
        return str(error)
    start = "very-sparse needs --world.redraw-starts"
    if build.is_patched:
        start = "with the authors' minGoalDistance"
    elif not build.overrides_layouts:
        start = "very-sparse cannot be played"
    return (
        f"{build.version} in {build.folder}, {start}; an episode begins in "
        f"{build.seconds_to_begin:.1f} s, one environment takes "
        f"{build.steps_per_second:,.0f} steps/s at 160 x 120"
    )


def _bonus_per_second(device: str) -> float:
    """Steps/s of the bonus with the fast R-network and full memories, over half a second."""
    curiosity = EpisodicCuriosity(RNetwork(view_shape=(3, 84, 84)).to(device), NUM_ENVS)
    curiosity.memory.embeddings.normal_()
    curiosity.memory.added.fill_(curiosity.memory.capacity)
    view = torch.randint(0, 256, (NUM_ENVS, 3, 84, 84), dtype=torch.uint8, device=device)
    for _ in range(5):
        curiosity.bonus(view)
    curiosity.statistics()  # synchronises with the GPU
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < 0.5:
        for _ in range(10):
            curiosity.bonus(view)
        curiosity.statistics()
        steps += 10 * NUM_ENVS
    return steps / (time.perf_counter() - start)
