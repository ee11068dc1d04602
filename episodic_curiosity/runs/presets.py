"""Presets: batch sizes, frame sizes and the R-network for a kind of machine.

The hyper-parameters of tasks and methods are in settings.py. A preset sets the rest, so that
the same experiment runs as published, on one GPU or on a laptop.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from episodic_curiosity.bonus.method import Method
from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.online import OnlineConfig
from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.runs.config import RandomPlayConfig, RecordConfig, RNetworkOptions, Run
from episodic_curiosity.runs.settings import find_budget, find_settings
from episodic_curiosity.support.checks import check_at_least, check_choice
from episodic_curiosity.worlds.base import WorldConfig
from episodic_curiosity.worlds.registry import find_family, frames_of

ONLINE_PAIRS = PairsConfig(sampler="online")


class Batch(NamedTuple):
    """A rollout, its minibatches, and how PPO learns from them."""

    num_envs: int
    num_steps: int  # per environment
    minibatch_size: int
    learning_rate_factor: float = 1.0  # relative to the paper's
    # As in the release: values clipped, time-outs as ends, 9% of the rate left at the end,
    # separate networks for policy and values of vectors.
    as_published: bool = True


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Sizes of a run; frames are height x width."""

    line: str
    steps: int  # default length of a run
    batch: Batch
    batch_on_the_host: Batch | None = None  # for CPU-simulated worlds; None: `batch`
    observation_size: tuple[int, int]
    view_size: tuple[int, int] | None = None  # None: curiosity uses the policy's observation
    stagger: bool = True
    architecture: str  # of the R-network
    play_share: int = 8  # 1 / the share of random play; the paper has 2.5M of 20M steps
    fit: FitConfig | None = None  # on random play; None: as published
    online: OnlineConfig
    record: RecordConfig = field(default_factory=RecordConfig)


# As many pairs as in the paper. Adam's learning rate is scaled with the square root of the
# batch size; the paper's are 1e-4 and 64.
FIT_ON_GPU = FitConfig(iterations=3_000, batch_size=4096, learning_rate=8e-4)


def _online(steps: int, **fit: Any) -> OnlineConfig:
    """Refits to the newest steps, whenever there are that many new ones."""
    return OnlineConfig(
        refit_every=steps, history=steps, fit=FitConfig(**fit, pairs=ONLINE_PAIRS)
    )


# The published 3,072 steps per update, with an eighth of the steps one after another.
PUBLISHED = Batch(96, 32, 12 * 256 // 4)

PRESETS = {
    "paper": Preset(
        line="the published setting: 12 environments, ResNet-18 on frames of 160 x 120",
        steps=20_000_000,  # section 4.2
        batch=Batch(12, 256, 12 * 256 // 4),
        observation_size=(84, 84),
        view_size=(120, 160),
        stagger=False,
        architecture="paper",
        # The interval is of section S2, the history of the release.
        online=_online(720_000, iterations=None, epochs=10, batch_size=64),
        record=RecordConfig(checkpoint_every=100),
    ),
    "gpu": Preset(
        line="one GPU: the published optimisation with 96 environments, a small embedder",
        steps=20_000_000,
        batch=PUBLISHED,
        observation_size=(84, 84),
        architecture="small",
        fit=FIT_ON_GPU,
        online=_online(
            720_000, iterations=None, epochs=10, batch_size=1024, learning_rate=4e-4
        ),
        record=RecordConfig(metrics_every=10, checkpoint_every=250),
    ),
    "turbo": Preset(
        line="one GPU, fastest: 1024 environments, large minibatches, four times the rate",
        steps=20_000_000,
        # Four times the rate for a fifth as many minibatches, each five times as large.
        batch=Batch(1024, 32, 4096, learning_rate_factor=4.0, as_published=False),
        batch_on_the_host=PUBLISHED,
        observation_size=(84, 84),
        architecture="small",
        fit=FIT_ON_GPU,
        online=_online(720_000, iterations=600, batch_size=1024, learning_rate=4e-4),
        record=RecordConfig(checkpoint_every=200),
    ),
    "cpu": Preset(
        line="a laptop: 16 environments, the fast R-network on frames of 42 x 42",
        steps=200_000,
        # Twice the rate because there are only 1% of the paper's steps.
        batch=Batch(16, 64, 512, learning_rate_factor=2.0, as_published=False),
        observation_size=(42, 42),
        architecture="fast",
        play_share=5,
        fit=FitConfig(iterations=4_000, batch_size=128, learning_rate=5e-4),
        online=_online(50_000, iterations=1_000, batch_size=128, learning_rate=5e-4),
        record=RecordConfig(checkpoint_every=20),
    ),
}


def resolve(task: str, method: str, preset: str, steps: int, seed: int) -> Run:
    """Returns the config of a run; raises for an unknown name, listing the choices.

    Args:
        task: as `curiosity tasks` lists them.
        method: as `curiosity methods` lists them.
        preset: "paper", "gpu", "turbo" or "cpu".
        steps: of all environments together.
        seed: of everything random.
    """
    settings = find_settings(task, method)
    check_choice("preset", preset, PRESETS)
    check_at_least("steps", steps, 1)
    sizes = PRESETS[preset]
    record = find_method(method)
    batch = _batch(task, sizes)
    world = _world(task, sizes, batch.num_envs, needs_view=record.bonus.sees == "view")
    ppo = dataclasses.replace(
        settings.ppo,
        num_steps=batch.num_steps,
        num_minibatches=batch.num_envs * batch.num_steps // batch.minibatch_size,
        learning_rate=settings.ppo.learning_rate * batch.learning_rate_factor,
        decay_horizon=1.1 if batch.as_published else 1.0,
        clip_values=batch.as_published,
        timeouts_are_ends=batch.as_published,
        separate_networks=batch.as_published and not _sees_frames(task),
    )
    return Run(
        task=task,
        method=method,
        preset=preset,
        steps=steps,
        seed=seed,
        world=world,
        ppo=ppo,
        bonus=settings.bonus,
        r_network=_r_network(task, record, sizes, steps) if record.r_network else None,
        record=sizes.record,
    )


def _sees_frames(task: str) -> bool:
    """True if the policy's observations are frames; other worlds may have vectors."""
    return frames_of(task) in ("shared", "separate")


def _batch(task: str, sizes: Preset) -> Batch:
    is_hosted = find_family(task).simulated_on == "host"
    return (sizes.batch_on_the_host if is_hosted else None) or sizes.batch


def _world(task: str, sizes: Preset, num_envs: int, *, needs_view: bool) -> WorldConfig:
    family = find_family(task)
    size, view_size = sizes.observation_size, sizes.view_size
    observation_size, view_size = {
        "fixed": (None, None),
        "shared": (size, view_size),
        "separate": (size, view_size or size),
        # Ants are three times as fast without views.
        "views": (None, (view_size or size) if needs_view else None),
    }[frames_of(task)]
    options: dict[str, Any] = {"observation_size": observation_size, "view_size": view_size}
    if hasattr(family.config, "stagger"):
        options["stagger"] = sizes.stagger
    return family.config(num_envs=num_envs, **options)


def _r_network(task: str, method: Method, sizes: Preset, steps: int) -> RNetworkOptions:
    if method.r_network == "online":
        options = RNetworkOptions(online=sizes.online)
    else:
        budget = find_budget(task)
        play = RandomPlayConfig(
            steps=budget.steps, fit=FitConfig(iterations=budget.iterations, batch_size=64)
        )
        if sizes.fit is not None:
            share = max(1, steps // sizes.play_share)
            play = RandomPlayConfig(steps=min(budget.steps, share), fit=sizes.fit)
        options = RNetworkOptions(random_play=play)
    return options.with_architecture(sizes.architecture)
