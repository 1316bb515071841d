"""Attacks: what is found is in the region and violates the property; what exists is found."""

import numpy as np
import pytest

import retrograd as rg
from tests.verify.networks import minimum, mlp

verify = rg.verify


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_minimum_is_found(seed):
    """Of small networks the attack comes within a hundredth of the exact minimum."""
    f, layers = mlp([4, 8, 8, 2], seed)
    box = verify.Box(np.full(4, -1, np.float32), np.full(4, 1, np.float32))
    least, _ = minimum(layers, box.lower, box.upper, [1.0, -1.0])
    hit = verify.attack(
        f, verify.Property(box, lambda y: y[0] - y[1] > least + 0.01), steps=100, restarts=64
    )
    assert hit.found
    assert hit.counterexample in box
    assert hit.output[0] - hit.output[1] <= least + 0.01
    miss = verify.attack(f, verify.Property(box, lambda y: y[0] - y[1] > least - 0.01))
    assert not miss.found
    assert miss.counterexample is None
    assert 0 < miss.margin < 1


def test_programs_that_are_no_networks():
    with rg.backend("reference"):
        box = verify.Box(np.full(3, -2, np.float32), np.full(3, 2, np.float32))
        prop = verify.Property(box, lambda y: y < 5.99)
        hit = verify.attack(lambda x: (x * rg.sin(x) * 1.1).sum(), prop, steps=30)
        assert hit.found
        assert hit.counterexample.dtype == np.float32
        assert hit.output >= 5.99


def test_balls_and_repetition():
    with rg.backend("reference"):
        x = np.array([1.0, 2.0, 2.0], np.float64)
        prop = verify.robust(x, 0, 0.5, norm=2)

        def f(z):
            return rg.stack([(z * rg.asarray(x)).sum() - 7.6, z[0] * 0])

        a, b = (verify.attack(f, prop, seed=3) for _ in range(2))
        assert a.found
        np.testing.assert_array_equal(a.counterexample, b.counterexample)
        assert np.linalg.norm(a.counterexample - x) <= 0.5
        assert a.output[0] <= a.output[1]


def test_options():
    prop = verify.Property(verify.Box([0.0], [1.0]), lambda y: y > 0)
    for change in ({"steps": 0}, {"restarts": True}, {"step_size": 0}):
        with pytest.raises(rg.RetrogradError, match=next(iter(change))):
            verify.attack(lambda x: x, prop, **change)
