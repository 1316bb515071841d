"""Runs with random last bits, against first-order standard deviations and themselves."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify.rounding_error.first_order import first_order
from retrograd.verify.rounding_error.stochastic import beyond_overflow, moved, sampled
from tests.verify.rounding_error.test_first_order import network, prepared


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_spread_is_that_of_first_order(dtype):
    rng = np.random.default_rng(1)
    x, w = (rg.tensor(rng.standard_normal(s)).astype(dtype).numpy() for s in ((4, 3), (3, 4)))
    run, local = prepared(network, x, w)
    (y,) = run.graph.outputs
    found = first_order(run, local, y, range(4))
    spread = sampled(run, local, 150, 0)[y]
    assert (np.abs(np.log2(spread.std / found.std)) < 0.6).all()


@pytest.mark.slow
def test_moved_has_the_standard_deviation_that_is_asked_for():
    run, _ = prepared(lambda x: x * 1.1, np.full(40_000, 1.3, np.float32))
    (node,) = run.graph.outputs
    value, ulp = run.values[node], 2.0**-23
    for share in (0.0, 0.2, 1 / np.sqrt(12), 3.0):
        y = moved(node, value, np.full(value.shape, share * ulp), np.random.default_rng(0))
        assert y.dtype == np.float32
        expected = np.sqrt(share**2 + (1 / 12 if share > 1 else 0))
        assert np.std((y.astype(float) - value) / ulp) == pytest.approx(expected, rel=0.03)


def test_the_same_seed_gives_the_same_samples():
    run, local = prepared(lambda x: rg.sin(x) * x, np.linspace(0, 1, 5))
    (y,) = run.graph.outputs
    one, two, other = (sampled(run, local, 5, s)[y].std for s in (0, 0, 1))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_what_is_exact_does_not_move():
    run, local = prepared(lambda x: rg.relu(x * 2.0) - 4.0, np.array([1.0, 3.0, -1.0]))
    assert not any(s.std.any() for s in sampled(run, local, 5, 0).values())


@pytest.mark.slow
def test_comparisons_that_rounding_decides():
    run, local = prepared(lambda x: rg.where(x * 0.1 > 0.3, 1.0, 0.0), np.array([3.0, 5.0]))
    spread = sampled(run, local, 40, 0)
    node = next(n for n in run.graph.body if n.op == "gt")
    assert 0 < spread[node].changed[0] < 1
    assert spread[node].changed[1] == 0


def test_overflow_is_cut_off_at_the_largest_number():
    run, _ = prepared(lambda x: 1 / rg.sqrt(1 + x * x), np.array([1e30, 1.0], np.float32))
    found = beyond_overflow(run)
    assert found is not None
    (y,) = found
    assert y[0] == pytest.approx(5.4e-20, rel=0.01)
    assert y[1] == run.values[run.graph.outputs[0]][1]
    run, _ = prepared(lambda x: x * x, np.float32(3.0))
    assert beyond_overflow(run) is None


def test_no_samples():
    run, local = prepared(lambda x: rg.exp(x), np.float32(3.0))
    assert sampled(run, local, 0, 0)[run.graph.outputs[0]].std == 0
