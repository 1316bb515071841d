"""The stages of a fast Fourier transform."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from retrograd.passes.lowering.fft_stages import radices, roots_of_unity, smooth_size, stages, table


def test_radices_multiply_to_the_size_and_large_primes_have_none():
    for n in range(2, 2000):
        found = radices(n)
        assert math.prod(found) == n or not found
        rest = max(p for p in range(2, n + 1) if n % p == 0 and all(p % q for q in range(2, p)))
        assert bool(found) == (rest <= 31)


@pytest.mark.parametrize("n", [8, 12, 45, 49, 96, 250])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_stages_one_after_the_other_are_the_transform(n, sign):
    x = np.random.default_rng(n).normal(size=n) + 0j
    y, roots = x, table(n, sign)
    for stage in stages(n):
        r, s, m = stage.radix, stage.before, stage.behind
        small = np.exp(2j * np.pi * sign * np.outer(np.arange(r), np.arange(r)) / r)
        z = np.einsum("kj,jps->kps", small, y.reshape(r, m, s))
        if stage.roots:
            part = roots[stage.start :][: 2 * stage.roots].reshape(2, r - 1, m)
            z[1:] *= (part[0] + 1j * part[1])[:, :, None]
        y = z.transpose(1, 0, 2).reshape(n)
    right = np.fft.fft(x) if sign < 0 else np.fft.ifft(x, norm="forward")
    np.testing.assert_allclose(y, right, atol=1e-13 * n)


def test_sizes_for_convolutions_are_smooth_and_near():
    for least in range(100, 5000, 37):
        n = smooth_size(least)
        assert least <= n <= 1.34 * least
        assert n % 16 == 0
        assert radices(n)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_turns_are_rounded_once_and_exact_at_quarters(sign: float) -> None:
    """So that the transform of ones is exactly zero where that is a sum of quarters."""
    for n in (4, 12, 97):
        exact = [complex(mpmath.expjpi(2 * sign * mpmath.mpf(k) / n)) for k in range(n)]
        apart = roots_of_unity(np.arange(n) / n, sign) - exact
        assert max(abs(apart.real).max(), abs(apart.imag).max()) < 2.0**-52
    assert roots_of_unity(np.arange(4) / 4, sign).tolist() == [1, sign * 1j, -1, -sign * 1j]
