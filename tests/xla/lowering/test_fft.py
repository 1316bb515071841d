"""Fourier transforms are XLA's."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from tests.xla.lowering.programs import operations, value


@pytest.mark.parametrize("n", [1, 6, 7, 31])
def test_both_directions_on_an_inner_axis(n: int) -> None:
    rng = np.random.default_rng(n)
    z = rng.normal(size=(2, n, 3)) + 1j * rng.normal(size=(2, n, 3))
    assert "fft" in operations(lambda z: rg.fft.fft(z, axis=1), z)
    found = value(lambda z: rg.fft.fft(z, axis=1), z)
    np.testing.assert_allclose(found, np.fft.fft(z, axis=1), atol=1e-12)
    back = value(lambda z: rg.fft.ifft(z, axis=1), z)
    np.testing.assert_allclose(back, np.fft.ifft(z, axis=1), atol=1e-13)
