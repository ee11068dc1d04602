"""Pairs: what the paper allows and nothing else."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from episodic_curiosity.reachability.pairs import Pairs, PairsConfig, draw_pairs, find_episodes
from episodic_curiosity.reachability.recorded import RecordedSteps

SAMPLERS = ("offline", "online", "uniform")


def draw(first, seed=0, **config) -> Pairs:
    generator = torch.Generator().manual_seed(seed)
    return draw_pairs(torch.as_tensor(first), PairsConfig(**config), generator)


def one_episode(num_steps: int, num_envs: int = 1) -> torch.Tensor:
    return torch.zeros(num_steps, num_envs, dtype=torch.bool)


def test_episodes_by_hand():
    first = torch.tensor([[0, 0], [0, 1], [1, 0], [0, 1]], dtype=torch.bool)
    episodes = find_episodes(first)
    assert episodes.env.tolist() == [0, 0, 1, 1, 1]
    assert episodes.start.tolist() == [0, 2, 0, 1, 3]
    assert episodes.length.tolist() == [2, 2, 1, 2, 1]


@settings(max_examples=150, deadline=None)
@given(
    sampler=st.sampled_from(SAMPLERS),
    k=st.integers(1, 6),
    gamma=st.integers(1, 5),
    num_steps=st.integers(1, 80),
    num_envs=st.integers(1, 4),
    ends=st.floats(0, 0.3),
    seed=st.integers(0, 2**31),
)
def test_no_pair_crosses_a_border_and_none_lies_in_the_gap(
    sampler, k, gamma, num_steps, num_envs, ends, seed
):
    first = (
        torch.rand(num_steps, num_envs, generator=torch.Generator().manual_seed(seed)) < ends
    )
    pairs = draw(first, seed, sampler=sampler, k=k, gamma=gamma)
    episode = first.cumsum(dim=0)
    for time in (pairs.first, pairs.second):
        assert ((time >= 0) & (time < num_steps)).all()
    assert torch.equal(pairs.first_env, pairs.second_env)
    env = pairs.first_env
    assert torch.equal(episode[pairs.first, env], episode[pairs.second, env])
    apart = (pairs.first - pairs.second).abs()
    assert ((apart >= 1) & (apart <= k))[pairs.reachable].all()
    assert (apart > gamma * k)[~pairs.reachable].all()


@settings(max_examples=100, deadline=None)
@given(
    sampler=st.sampled_from(SAMPLERS),
    num_steps=st.integers(1, 60),
    num_envs=st.integers(1, 4),
    ends=st.floats(0, 0.3),
    seed=st.integers(0, 2**31),
)
def test_far_pairs_of_other_episodes_are_never_of_one(sampler, num_steps, num_envs, ends, seed):
    first = (
        torch.rand(num_steps, num_envs, generator=torch.Generator().manual_seed(seed)) < ends
    )
    pairs = draw(first, seed, sampler=sampler, k=3, far_from="other_episodes")
    for time, env in ((pairs.first, pairs.first_env), (pairs.second, pairs.second_env)):
        assert ((time >= 0) & (time < num_steps) & (env >= 0) & (env < num_envs)).all()
    episode = first.cumsum(dim=0) + 1_000 * torch.arange(num_envs)
    same = episode[pairs.first, pairs.first_env] == episode[pairs.second, pairs.second_env]
    assert torch.equal(same, pairs.reachable)
    apart = (pairs.first - pairs.second).abs()[pairs.reachable]
    assert ((apart >= 1) & (apart <= 3)).all()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_partners_from_other_episodes_are_uniform_over_their_steps(sampler):
    """To environment 0's second episode: 20 steps of its first, and all 60 of environment 1."""
    first = torch.zeros(60, 2, dtype=torch.bool)
    first[20, 0] = True
    counts = torch.zeros(2, 60)
    for seed in range(600):
        pairs = draw(first, seed, sampler=sampler, far_from="other_episodes")
        chosen = ~pairs.reachable & (pairs.first_env == 0) & (pairs.first >= 20)
        counts.index_put_(
            (pairs.second_env[chosen], pairs.second[chosen]), torch.ones(()), accumulate=True
        )
    expected = counts.sum() / 80
    assert (counts[0, 20:] == 0).all()
    others = torch.cat([counts[0, :20], counts[1]])
    assert expected > 20
    assert (others - expected).abs().max() < 5 * expected.sqrt()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_what_was_never_recorded_is_in_no_pair(sampler):
    """Environments that hold 100, 20 and no steps: the empty ones are frames of zeros."""
    steps = RecordedSteps(100, 3, (1,), torch.float32, torch.device("cpu"))
    for time in range(100):
        stepped = torch.tensor([True, time < 20, False])
        steps.add(torch.ones(3, 1), torch.tensor([time % 25 == 0, time == 0, False]), stepped)
    experience = steps.newest()
    for seed in range(20):
        pairs = draw(experience.first, seed, sampler=sampler, k=2, far_from="other_episodes")
        assert (~pairs.reachable).sum() > 5
        for time, env in ((pairs.first, pairs.first_env), (pairs.second, pairs.second_env)):
            assert (experience.views(time, env) == 1).all()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_episodes_too_short_for_a_distance_have_far_pairs_with_others(sampler):
    pairs = draw(one_episode(26, 50), sampler=sampler, far_from="other_episodes")
    assert pairs.reachable.float().mean() == pytest.approx(0.5, abs=0.1)
    alone = draw(one_episode(26), sampler=sampler, far_from="other_episodes")
    assert alone.reachable.all()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_same_seed_draws_the_same_pairs(sampler):
    first = torch.rand(500, 3, generator=torch.Generator().manual_seed(1)) < 0.005
    one, same, other = (draw(first, seed, sampler=sampler) for seed in (4, 4, 5))
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert one.first.shape != other.first.shape or not torch.equal(one.first, other.first)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_half_are_reachable_and_there_is_one_for_about_every_four_steps(sampler):
    pairs = draw(one_episode(20_000, 2), sampler=sampler)
    assert pairs.reachable.float().mean() == pytest.approx(0.5, abs=0.02)
    assert len(pairs.reachable) == pytest.approx(40_000 / 4, rel=0.02)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_distance_and_both_orders_are_drawn(sampler):
    pairs = draw(one_episode(20_000), sampler=sampler)
    apart = (pairs.second - pairs.first)[pairs.reachable]
    shares = [(apart == d).float().mean().item() for d in (-5, -3, -1, 1, 3, 5)]
    assert shares == pytest.approx([0.1] * 6, abs=0.02)
    assert ((pairs.second - pairs.first)[~pairs.reachable] > 0).float().mean() == pytest.approx(
        0.5, abs=0.05
    )


@pytest.mark.parametrize(("sampler", "move"), [("offline", 2.0), ("online", 4.0)])
def test_the_walks_differ_in_how_they_move_on(sampler, move):
    """At k = 1 the offline walk moves by 2 steps, the online one by 4 on average."""
    pairs = draw(one_episode(40_000), sampler=sampler, k=1)
    assert len(pairs.reachable) == pytest.approx(40_000 / move, rel=0.02)


def test_the_online_walk_yields_as_many_pairs_whatever_k():
    counts = [
        len(draw(one_episode(40_000), sampler="online", k=k).reachable) for k in (1, 5, 10)
    ]
    assert counts == pytest.approx([10_000] * 3, rel=0.02)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_far_partners_are_uniform(sampler):
    """From step 24 of 60 at a margin of 5, the far steps are 0..18 and 30..59, alike."""
    counts = torch.zeros(60)
    for seed in range(40):
        pairs = draw(one_episode(60, 200), seed, sampler=sampler, k=1, gamma=5)
        chosen = ~pairs.reachable & (pairs.first == 24)
        counts += pairs.second[chosen].bincount(minlength=60)
    expected = counts.sum() / 49
    assert (counts[19:30] == 0).all()
    others = torch.cat([counts[:19], counts[30:]])
    assert expected > 20
    assert (others - expected).abs().max() < 5 * expected.sqrt()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_first_and_the_last_step_are_used(sampler):
    pairs = draw(one_episode(40, 500), sampler=sampler, k=2, gamma=2)
    for kind in (pairs.reachable, ~pairs.reachable):
        times = torch.cat([pairs.first[kind], pairs.second[kind]])
        assert times.min() == 0
        assert times.max() == 39


def test_one_long_episode_among_many_short_ones_costs_no_more_than_it_is_worth():
    """A table as wide as the longest would hold 1,000,000 moves here, for 12,000 steps."""
    first = torch.zeros(2_000, 6, dtype=torch.bool)
    first[::10, 1:] = True
    tables = []

    def watched(*arguments, **keywords):
        tables.append(torch.Size(arguments[2]).numel())
        return randint(*arguments, **keywords)

    randint = torch.randint
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "randint", watched)
        assert len(draw(first).reachable) > 0
    assert sum(tables) < 2 * first.numel()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_short_episode_has_no_far_pair(sampler):
    pairs = draw(one_episode(26), sampler=sampler)
    assert len(pairs.reachable) > 0
    assert pairs.reachable.all()
    assert len(draw(one_episode(1), sampler=sampler).reachable) == 0


@pytest.mark.parametrize(
    ("first", "config", "message"),
    [
        (torch.zeros(5, dtype=torch.bool), {}, r"first must be .* got \(5,\) of torch.bool"),
        (torch.zeros(5, 2), {}, r"first must be .* got \(5, 2\) of torch.float32"),
        (torch.zeros(0, 2, dtype=torch.bool), {}, r"not empty, got \(0, 2\)"),
        (one_episode(9), {"k": 0}, "k must be an integer of at least 1, got 0"),
        (one_episode(9), {"gamma": 0}, "gamma must be an integer of at least 1, got 0"),
        (one_episode(9), {"sampler": "best"}, "sampler must be one of offline, .*, got 'best'"),
        (one_episode(9), {"far_from": "afar"}, "far_from must be .*_episodes, got 'afar'"),
    ],
)
def test_bad_input(first, config, message):
    with pytest.raises(ValueError, match=message):
        draw(first, **config)
