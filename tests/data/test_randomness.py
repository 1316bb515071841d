"""Random numbers of data: of seed, epoch and index, and of nothing else."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.data.randomness import (
    CURRENT,
    ORDER,
    SAMPLE,
    SampleContext,
    checked_seed,
    generator,
    given_seed,
    sample_generator,
)


def test_numbers_are_a_function_of_seed_purpose_epoch_and_index():
    drawn = {
        key: generator(*key).random(4).tolist()
        for key in [(s, p, e, i) for s in (0, 2**70) for p in (ORDER, SAMPLE)
                    for e in (0, 1) for i in (0, 1, 2**40)]
    }  # fmt: skip
    assert len({*map(tuple, drawn.values())}) == len(drawn)
    assert all(generator(*key).random(4).tolist() == found for key, found in drawn.items())


def test_written_out():
    """The counters and keys of Philox, by hand."""
    key = np.random.SeedSequence(5, spawn_key=(SAMPLE,)).generate_state(2, np.uint64)
    bits = np.random.Philox(key=key, counter=[0, 0, 7, 3]).random_raw(3)
    assert generator(5, SAMPLE, 3, 7).bit_generator.random_raw(3).tolist() == bits.tolist()


def test_a_sample_draws_from_one_stream_and_the_next_from_another():
    context = SampleContext(1, 2)
    token = CURRENT.set(context)
    try:
        context.index = 5
        both = [sample_generator().random(), sample_generator().random()]
        context.index = 6
        other = sample_generator().random()
        context.index = 5
        assert [sample_generator().random(), sample_generator().random()] == both
    finally:
        CURRENT.reset(token)
    assert len({*both, other}) == 3


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "a"])
def test_seeds_that_are_none(seed):
    with pytest.raises(rg.OptionError, match="a seed is a non-negative integer"):
        checked_seed(seed, "loader")
    assert checked_seed(np.int64(3), "loader") == 3


def test_seeds_drawn_from_generators():
    assert given_seed(3, None, "loader") == 3
    assert given_seed(None, None, "loader") is None
    for make in (rg.random.Generator, np.random.default_rng):
        source = make(5)
        first, second = given_seed(0, source, "loader"), given_seed(0, source, "loader")
        assert first != second
        assert given_seed(0, make(5), "loader") == first
    with pytest.raises(rg.OptionError, match=r"generator is an rg.random.Generator, not int"):
        given_seed(0, 3, "loader")


@pytest.mark.torch
def test_seeds_of_generators_of_pytorch():
    import torch

    assert given_seed(0, torch.Generator().manual_seed(7), "loader") == 7
