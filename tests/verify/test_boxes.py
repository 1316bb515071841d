"""Proofs of programs that are no networks of ReLUs: boxes that are halved."""

import numpy as np
import pytest

import retrograd as rg

verify = rg.verify
BOX = verify.Box(np.full(2, -1, np.float32), np.full(2, 1, np.float32))


def wave(x):
    return rg.tanh(2 * x[0]) - x[0] * x[1]


def test_halved_until_proved():
    """The maximum in the box is tanh(2) + 1 = 1.964, at (1, -1)."""
    with rg.backend("reference"):
        found = verify.prove(wave, verify.Property(BOX, lambda y: y < 1.97), timeout=20)
        assert found.proved
        assert found.leaves >= 1
        with pytest.raises(rg.RetrogradError, match="no certificate"):
            found.certificate  # noqa: B018
        found = verify.prove(wave, verify.Property(BOX, lambda y: y < 1.96))
        assert found.status == "falsified"
        assert wave(rg.asarray(found.counterexample)).item() >= 1.96
        found = verify.prove(wave, verify.Property(BOX, lambda y: y < 1.9641), timeout=0.2)
        assert found.status in ("unknown", "proved")


def test_of_gradients():
    """The slope of tanh(2 x) is between 0 and 2: a gradient is a program like any other."""
    with rg.backend("reference"):
        slope = rg.grad(lambda x: rg.tanh(2 * x).sum())
        prop = verify.Property(BOX, lambda y: (y > -1e-3) & (y < 2.1))
        assert verify.prove(slope, prop, method="ibp").proved
