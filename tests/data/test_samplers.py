"""Samplers: what they draw, how often, and that it is reproducible."""

import collections
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

import retrograd as rg
from retrograd.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    LengthGroupedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    random_split,
)
from retrograd.data.samplers import draws_order
from retrograd.errors import ArgumentError, OptionError


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomSampler(range(50)),
        lambda: RandomSampler(range(50), replacement=True),
        lambda: RandomSampler(range(50), num_samples=20),
        lambda: SubsetRandomSampler(range(0, 100, 2)),
        lambda: WeightedRandomSampler(np.arange(1, 51), 50),
        lambda: WeightedRandomSampler(np.arange(1, 51), 50, replacement=False),
        lambda: LengthGroupedSampler(np.arange(50) % 7, 4, pool=3),
    ],
)
def test_every_pass_has_another_order_and_all_are_reproducible(make):
    a, b = make(), make()
    first, second = list(a), list(a)
    assert first != second
    assert [list(b), list(b)] == [first, second]
    assert len(first) == len(a)
    assert all(type(i) is int for i in first)
    assert draws_order(a)
    seeded = np.asarray(make().order(0, 7)).tolist()
    assert seeded != first == np.asarray(make().order(0)).tolist()
    assert np.asarray(make().order(1)).tolist() == second


def test_a_seed_of_ones_own_is_kept():
    s = RandomSampler(range(50), seed=3)
    assert s.order(0, 1).tolist() == s.order(0, 2).tolist()
    assert list(s) == RandomSampler(range(50)).order(0, 3).tolist()


def test_generators_give_a_seed():
    make = lambda: RandomSampler(range(50), generator=rg.random.Generator(2))
    assert list(make()) == list(make()) != list(RandomSampler(range(50)))
    for sampler in (
        SubsetRandomSampler(range(9), generator=rg.random.Generator(2)),
        WeightedRandomSampler(np.ones(9), 9, generator=rg.random.Generator(2)),
    ):
        assert sampler.seed == make().seed
    loader = DataLoader(range(50), 50, shuffle=True, generator=rg.random.Generator(2))
    assert next(iter(loader)).tolist() == list(make())
    parts = [random_split(range(9), [5, 4], generator=rg.random.Generator(2)) for _ in range(2)]
    assert [list(p) for p in parts[0]] == [list(p) for p in parts[1]]


def test_samples_of_a_permutation():
    assert sorted(RandomSampler(range(50))) == list(range(50))
    assert len({*RandomSampler(range(50), num_samples=20)}) == 20
    counted = collections.Counter(RandomSampler(range(5), num_samples=12))
    assert {*counted.values()} == {2, 3}
    assert list(SequentialSampler(range(4))) == [0, 1, 2, 3]
    assert sorted(SubsetRandomSampler([7, 7, 1])) == [1, 7, 7]


def test_frequencies():
    drawn = RandomSampler(range(10), replacement=True, num_samples=20_000).order(0)
    assert stats.chisquare(np.bincount(drawn, minlength=10)).pvalue > 1e-3
    weights = np.array([1.0, 0.0, 2.0, 5.0, 0.0])
    drawn = WeightedRandomSampler(weights, 20_000).order(0)
    counts = np.bincount(drawn, minlength=5)
    assert counts[[1, 4]].tolist() == [0, 0]
    assert stats.chisquare(counts[[0, 2, 3]], 20_000 * weights[[0, 2, 3]] / 8).pvalue > 1e-3


def test_weights_without_replacement_as_one_after_the_other():
    """P(a then b) = w_a / W * w_b / (W - w_a)."""
    w = np.array([1.0, 2.0, 3.0, 0.0])
    sampler = WeightedRandomSampler(w, 2, replacement=False)
    pairs = collections.Counter(tuple(sampler.order(e).tolist()) for e in range(3000))
    found, expected = [], []
    for a in range(3):
        for b in range(3):
            if a != b:
                found.append(pairs.pop((a, b)))
                expected.append(3000 * w[a] / 6 * w[b] / (6 - w[a]))
    assert not pairs
    assert stats.chisquare(found, expected).pvalue > 1e-3


def test_lengths_of_a_batch_are_similar():
    lengths = np.random.default_rng(0).integers(1, 1000, 640)
    order = np.array(list(LengthGroupedSampler(lengths, batch_size=8, pool=20)))
    assert sorted(order) == list(range(640))
    spread = np.ptp(lengths[order].reshape(-1, 8), axis=1).mean()
    assert spread < 60 < np.ptp(lengths.reshape(-1, 8), axis=1).mean()
    means = lengths[order].reshape(-1, 8).mean(1)
    assert (np.diff(means) < 0).any()
    assert (np.diff(means) > 0).any()
    assert sorted(LengthGroupedSampler([3, 1, 2], 2)) == [0, 1, 2]


def test_batches():
    assert list(BatchSampler(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert [len(BatchSampler(range(n), 2, d)) for n in (4, 5) for d in (False, True)] == [
        2,
        2,
        3,
        2,
    ]
    assert list(BatchSampler((i for i in "ab"), 3)) == [["a", "b"]]


def test_samplers_of_ones_own():
    class Backwards(Sampler):
        def __iter__(self):
            return iter([2, 1, 0])

    assert list(Backwards()) == [2, 1, 0]
    assert not draws_order(Backwards())
    with pytest.raises(NotImplementedError, match="neither __iter__ nor draw"):
        list(Sampler())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeightedRandomSampler([1.0, -1.0], 1), "number 1 is -1.0"),
        (lambda: WeightedRandomSampler([1.0, float("nan")], 1), "number 1 is nan"),
        (lambda: WeightedRandomSampler([0.0, 0.0], 1), "all weights are 0"),
        (lambda: WeightedRandomSampler([[1.0]], 1), r"not of shape \(1, 1\)"),
        (lambda: WeightedRandomSampler([1.0, 0.0], 2, False), "only 1 weights are positive"),
        (lambda: RandomSampler(range(3), num_samples=0), "a positive integer, not 0"),
        (
            lambda: RandomSampler(range(3), num_samples=cast("Any", 1.5)),
            "a positive integer, not 1.5",
        ),
        (lambda: list(RandomSampler([])), "the dataset is empty"),
        (lambda: BatchSampler(range(3), True), "a positive integer, not True"),
        (lambda: LengthGroupedSampler(cast("Any", [[1]]), 2), "lengths are a vector"),
        (lambda: RandomSampler(range(3), seed=-1), "a seed is"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(rg.RetrogradError, match=message):
        make()


@pytest.mark.parametrize(("n", "parts"), [(10, 3), (9, 3), (2, 5), (7, 1), (10, 4)])
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_distributed_sampler_gives_each_process_as_many(n, parts, drop_last):
    samplers = [
        DistributedSampler(range(n), parts, i, shuffle=False, drop_last=drop_last)
        for i in range(parts)
    ]
    found = [list(s) for s in samplers]
    size = n // parts if drop_last else -(-n // parts)
    whole = [i % n for i in range(size * parts)]
    assert found == [whole[i::parts] for i in range(parts)]
    assert {len(s) for s in samplers} == {size}
    assert samplers[0].total_size == size * parts


@pytest.mark.torch
@pytest.mark.parametrize(("n", "parts"), [(10, 3), (9, 3), (2, 5), (10, 4), (11, 4)])
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_distributed_sampler_is_that_of_pytorch(n, parts, drop_last):
    torch = pytest.importorskip("torch")
    for rank in range(parts):
        given = (parts, rank, False, 0, drop_last)
        mine = DistributedSampler(range(n), *given)
        theirs = torch.utils.data.DistributedSampler(range(n), *given)
        assert (list(mine), len(mine)) == (list(theirs), len(theirs))


def test_epochs_of_a_distributed_sampler():
    def samplers():
        return [DistributedSampler(range(12), 2, i, seed=5) for i in range(2)]

    a, b = samplers()
    orders = []
    for epoch in (0, 1, 1):
        for s in (a, b):
            s.set_epoch(epoch)
        first, second = list(a), list(b)
        assert sorted(first + second) == list(range(12))
        orders.append(first)
    assert orders[0] != orders[1] == orders[2]
    c = samplers()[0]
    loader = DataLoader(range(12), batch_size=6, sampler=c)
    assert [next(iter(loader)).tolist() for _ in range(2)] == orders[:2]
    c.set_epoch(0)
    assert next(iter(loader)).tolist() == orders[0]
    assert list(DistributedSampler([], 2, 0)) == []


def test_a_distributed_sampler_without_its_place():
    with pytest.raises(ArgumentError, match="num_replicas"):
        DistributedSampler(range(4))
    with pytest.raises(OptionError, match="rank is from 0 to 1, not 2"):
        DistributedSampler(range(4), 2, 2)
