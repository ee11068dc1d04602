"""Runs of every method that take a second or two."""

from dataclasses import replace

from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.runs.config import RecordConfig, RNetworkOptions, Run
from episodic_curiosity.runs.presets import resolve

METHODS = ("ppo", "ppo+1", "ppo+icm", "ppo+oracle", "ppo+ec", "ppo+eco")
NUM_ENVS = 4
NUM_STEPS = 10  # of a rollout, and so 40 of all environments together
PLAY_STEPS = 200  # of random play
CHECKPOINT_EVERY = 3


def tiny_run(
    method: str = "ppo", task: str = "maze/sparse", *, num_updates: int = 10, seed: int = 0
) -> Run:
    """Four environments; in mazes of 9 x 9 cells the clock cuts episodes off after 40 steps."""
    steps = NUM_ENVS * NUM_STEPS * num_updates + PLAY_STEPS * (
        method in ("ppo+ec", "ppo+ec-rnd")
    )
    run = resolve(task, method, "cpu", steps, seed)
    world = replace(run.world, num_envs=NUM_ENVS)
    if task.startswith("maze/"):
        world = replace(
            world,
            observation_size=(36, 36),
            episode_steps=40,
            maze_size=9,
            rooms=2,
            num_levels=5,
        )
    return replace(
        run,
        device="cpu",
        world=world,
        ppo=replace(run.ppo, num_steps=NUM_STEPS, num_minibatches=2, num_epochs=2),
        r_network=None if run.r_network is None else _tiny(run.r_network),
        record=RecordConfig(checkpoint_every=CHECKPOINT_EVERY),
    )


def _tiny(options: RNetworkOptions) -> RNetworkOptions:
    """Near is 2 steps, far is 4: so little experience has pairs; ECO refits every 4 updates."""
    options = replace(options, embedding_size=32)
    if options.online is not None:
        pairs = PairsConfig(k=2, gamma=2, sampler="online")
        fit = replace(options.online.fit, iterations=6, batch_size=16, pairs=pairs)
        online = replace(options.online, refit_every=160, history=200, fit=fit)
        return replace(options, online=online)
    assert options.random_play is not None
    fit = replace(
        options.random_play.fit, iterations=6, batch_size=16, pairs=PairsConfig(k=2, gamma=2)
    )
    play = replace(options.random_play, steps=PLAY_STEPS, fit=fit)
    return replace(options, random_play=play)
