"""Matrices that tests of factorisations share."""

from __future__ import annotations

import numpy as np


def general(m, n, dtype):
    r = np.random.default_rng(m + n)
    x = r.standard_normal((m, n))
    return x + 1j * r.standard_normal((m, n)) if dtype == "complex128" else x
