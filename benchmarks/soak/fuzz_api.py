"""Odd arguments to the public API: networks, configs, bonuses, fits, worlds and runs."""

import dataclasses
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import torch

import episodic_curiosity as ec
from benchmarks.soak.judging import Verdicts
from benchmarks.soak.odd import TEXTS, odd_shape, odd_tensor, odd_value
from episodic_curiosity.agent.ppo import PPOConfig
from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.registry import methods
from episodic_curiosity.runs.config import RecordConfig
from episodic_curiosity.worlds.registry import families

FRAME, VECTOR, NUM_ENVS = (3, 16, 16), (5,), 3
PAIRS = ec.PairsConfig(k=2, gamma=2)
FIT = ec.FitConfig(iterations=2, batch_size=4, pairs=PAIRS)
ONLINE = ec.OnlineConfig(refit_every=200, history=400, fit=FIT)
CALLS_PER_BONUS = 25  # odd calls, then a valid one
TASKS = ("maze/sparse", "gym/CartPole-v1", "ant/no-reward", "maze/dense-2+noise")
PRESETS = ("cpu", "gpu", "turbo", "paper")

Draw = random.Random


def fuzz_networks(draw: Draw, verdicts: Verdicts) -> None:
    """RNetwork with one or two odd arguments, and odd tensors for one that could be made."""
    arguments: dict[str, Any] = {
        "view_shape": draw.choice([FRAME, VECTOR]),
        "embedder": draw.choice([None, "small", "tiny", "mlp"]),
        "comparator": draw.choice(["mlp", "dot"]),
        "branches": draw.choice(["shared", "unshared"]),
        "embedding_size": 8,
    }
    for name in draw.sample(sorted(arguments), draw.randrange(1, 3)):
        arguments[name] = odd_value(draw)
    if draw.random() < 0.3:
        arguments["view_shape"] = odd_shape(draw, FRAME)
    made: list[ec.RNetwork] = []
    if verdicts.judge(
        f"RNetwork({arguments!r:.150})", lambda: made.append(ec.RNetwork(**arguments))
    ):
        tensors = [odd_tensor(draw, (2, *made[0].config.view_shape)) for _ in range(2)]
        verdicts.judge("RNetwork.embed", lambda: made[0].embed(tensors[0]))


def fuzz_configs(draw: Draw, verdicts: Verdicts) -> None:
    """A config of the package with one odd field."""
    config = draw.choice(_CONFIGS)
    field = draw.choice(dataclasses.fields(config)).name
    value = odd_value(draw)
    what = f"{type(config).__name__}({field}={value!r:.80})"
    verdicts.judge(what, lambda: dataclasses.replace(config, **{field: value}))


def fuzz_bonuses(draw: Draw, verdicts: Verdicts) -> None:
    """A bonus with an odd argument; then odd calls of a good one, and a valid call."""
    make = draw.choice(_BONUSES)
    shape = draw.choice([FRAME, VECTOR])
    options = {draw.choice(["seed", "num_envs"]): odd_value(draw)}
    verdicts.judge(f"{make.__name__}({options!r:.100})", lambda: make(shape, **options))
    bonus = make(shape)
    seen_shape = (NUM_ENVS, *(bonus.seen_shape or (2,)))
    for _ in range(CALLS_PER_BONUS):
        call, words = _odd_call(draw, bonus, seen_shape)
        verdicts.judge(f"{type(bonus).__name__}.{words}", call)
    verdicts.judge(f"{type(bonus).__name__} after odd calls", lambda: _check_works(bonus))


def fuzz_fits(draw: Draw, verdicts: Verdicts) -> None:
    """Fits and accuracies of odd frames."""
    r_network = ec.RNetwork(VECTOR, embedding_size=4)
    views = torch.rand(60, NUM_ENVS, *VECTOR)
    first = torch.zeros(60, NUM_ENVS, dtype=torch.bool)
    if draw.random() < 0.6:
        views = odd_tensor(draw, tuple(views.shape))
    if draw.random() < 0.6:
        first = odd_tensor(draw, tuple(first.shape))
    seed = draw.choice([0, odd_value(draw)])
    frames: list[Any] = []

    def make() -> None:
        frames.append(ec.Frames(views, first))

    what = f"{_told(views)} {_told(first)}, seed {seed!r:.50}"
    if verdicts.judge(f"Frames of {what}", make):
        verdicts.judge(
            f"fit_r_network of {what}",
            lambda: ec.fit_r_network(r_network, frames[0], FIT, seed=seed, progress=False),
        )
        verdicts.judge(
            f"pair_accuracy of {what}",
            lambda: ec.pair_accuracy(r_network, frames[0], PAIRS, seed=seed),
        )


def fuzz_worlds(draw: Draw, verdicts: Verdicts) -> None:
    """A world with an odd argument, and odd actions for one that could be made."""
    task = draw.choice(TASKS)
    config = families()[task.partition("/")[0]].config
    names = [field.name for field in dataclasses.fields(config) if field.name != "num_envs"]
    options: dict[str, Any] = {"num_envs": 2, "seed": 0}
    if "num_levels" in names:  # 5,000 large ones would take minutes
        options["num_levels"] = 20
    options[draw.choice(["num_envs", "seed", "device", *names])] = odd_value(draw)
    if draw.random() < 0.2:
        task = draw.choice([*TEXTS, task + draw.choice(TEXTS), odd_value(draw)])

    def play() -> None:
        with closing(ec.make_world(task, **options)) as world:
            if world.spec.num_envs < 100:
                world.reset()

    verdicts.judge(f"make_world({task!r:.60}, {options!r:.100})", play)


def fuzz_runs(draw: Draw, verdicts: Verdicts) -> None:
    """The run of a task, method and preset, one of them odd."""
    arguments: list[Any] = [
        draw.choice(TASKS), draw.choice(list(methods())), draw.choice(PRESETS), 100_000, 0
    ]  # fmt: skip
    arguments[draw.randrange(5)] = odd_value(draw)
    verdicts.judge(f"resolve({arguments!r:.150})", lambda: ec.resolve(*arguments).to_dict())


TARGETS: dict[str, Callable[[Draw, Verdicts], None]] = {
    "networks": fuzz_networks,
    "configs": fuzz_configs,
    "bonuses": fuzz_bonuses,
    "fits": fuzz_fits,
    "worlds": fuzz_worlds,
    "runs": fuzz_runs,
}


def _odd_call(
    draw: Draw, bonus: Bonus, shape: tuple[int, ...]
) -> tuple[Callable[[], object], str]:
    """A call of a training loop with odd tensors, or arrays, or anything."""

    def odd(shape: tuple[int, ...]) -> Any:
        if draw.random() < 0.15:
            return odd_value(draw)
        tensor = odd_tensor(draw, shape)
        is_plain = tensor.device.type == "cpu" and tensor.layout == torch.strided
        if draw.random() < 0.2 and is_plain and tensor.dtype != torch.bfloat16:
            return tensor.detach().numpy()
        return tensor

    seen = odd(shape) if draw.random() < 0.7 else _valid(shape)
    action = draw.choice([None, odd((NUM_ENVS,)), torch.zeros(NUM_ENVS, dtype=torch.int64)])
    mask = draw.choice([None, odd((NUM_ENVS,)), torch.ones(NUM_ENVS, dtype=torch.bool)])
    words = f"({_told(seen)}, {_told(action)}, {_told(mask)})"
    match draw.choice(["begin", "bonus", "same", "learn", "state"]):
        case "begin":
            return lambda: bonus.begin(seen, where=mask), f"begin{words}"
        case "bonus":
            return lambda: bonus.bonus(seen, action=action, where=mask), f"bonus{words}"
        case "same":
            call = lambda: bonus.bonus_same_step(seen, mask, action=action)  # noqa: E731
            return call, f"bonus_same_step{words}"
        case "state":
            state = bonus.state_dict()
            name = draw.choice(sorted(state))
            state[name] = odd_value(draw)
            return lambda: bonus.load_state_dict(state), f"load_state_dict({name})"
    return (bonus.learn if bonus.learns else dict), "learn()"


def _check_works(bonus: Bonus) -> None:
    """Raises unless the bonus still pays finite numbers."""
    seen = _valid((NUM_ENVS, *(bonus.seen_shape or (2,))))
    bonus.begin(seen)
    paid = bonus.bonus(seen, action=torch.zeros(NUM_ENVS, dtype=torch.int64))
    if paid.shape != (NUM_ENVS,) or not paid.isfinite().all():
        raise AssertionError(f"paid {paid}")
    if bonus.learns:
        bonus.learn()


def _valid(shape: tuple[int, ...]) -> torch.Tensor:
    if len(shape) == 4:
        return torch.full(shape, 7, dtype=torch.uint8)
    return torch.full(shape, 0.25)


def _told(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {value.layout} {value.device}"
    return f"{value!r:.60}"


def _makers() -> Iterator[Callable[..., Bonus]]:
    def named(name: str, make: Callable[..., Bonus]) -> Callable[..., Bonus]:
        make.__name__ = name
        return make

    def network(shape: tuple[int, ...]) -> ec.RNetwork:
        r_network = ec.RNetwork(shape, embedding_size=8)
        r_network.fitted.fill_(True)
        return r_network

    def bound(kind: Any) -> Callable[..., Bonus]:
        def make(shape: tuple[int, ...], num_envs: Any = NUM_ENVS, seed: Any = 0) -> Bonus:
            return kind(shape, num_envs, num_steps=8, seed=seed)

        return make

    for kind in (ec.RND, ec.NovelD, ec.ETD):
        yield named(kind.__name__, bound(kind))
    for kind in (ec.NGU, ec.E3B, ec.ICM):
        yield named(
            kind.__name__,
            lambda shape, num_envs=NUM_ENVS, seed=0, kind=kind: kind(
                shape,
                num_envs,
                num_actions=4,
                observation_dtype=torch.uint8 if len(shape) == 3 else torch.float32,
                num_steps=8,
                seed=seed,
            ),
        )
    yield named(
        "EpisodicCuriosity",
        lambda shape, num_envs=NUM_ENVS, seed=0: ec.EpisodicCuriosity(
            network(shape), num_envs, memory_capacity=9, seed=seed
        ),
    )
    yield named(
        "EpisodicCuriosity online",
        lambda shape, num_envs=NUM_ENVS, seed=0: ec.EpisodicCuriosity(
            network(shape), num_envs, memory_capacity=9, online=ONLINE, seed=seed
        ),
    )
    yield named(
        "ECRND",
        lambda shape, num_envs=NUM_ENVS, seed=0: ec.ECRND(
            network(shape), num_envs, num_steps=8, seed=seed
        ),
    )
    yield named(
        "GridOracle",
        lambda _, num_envs=NUM_ENVS, seed=0: ec.GridOracle(num_envs, 40, 1.0),  # noqa: ARG005
    )
    yield named(
        "ConstantBonus",
        lambda _, num_envs=NUM_ENVS, seed=0: ec.ConstantBonus(num_envs),  # noqa: ARG005
    )


def _configs() -> Iterator[Any]:
    yield from (PAIRS, FIT, ONLINE, PPOConfig(), RecordConfig())
    yield from (method.config() for method in methods().values() if method.config)
    yield from (family.config(num_envs=2) for family in families().values())


_BONUSES = list(_makers())
_CONFIGS = [config for config in _configs() if dataclasses.fields(config)]
