"""Meanings of elementwise operations, in Python's and in mpmath's numbers."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from retrograd.verify.records.elementwise import InMpmath, in_mp, near, wrap


def test_functions_of_mpmath_are_right_to_the_last_bit() -> None:
    mp = pytest.importorskip("mpmath").mp
    assert in_mp("exp")(1.0) == math.e
    assert in_mp(lambda mp, x: mp.sqrt(x))(-4 + 0j) == 2j
    f = InMpmath(lambda mp, x: 1 / x)
    with mp.workdps(50):
        assert abs(f.in_context(mp.mpf(3)) * 3 - 1) < mp.mpf(10) ** -49


@pytest.mark.slow
def test_records_are_there_without_mpmath_and_scipy() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('mpmath', 'scipy', 'sympy')));"
        "import retrograd as rg;"
        "c = rg.verify.rules('cumsum', order=1, backends=['reference']);"
        "assert c.passed, c"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_numbers_keep_away_from_kinks_and_wrap() -> None:
    x = near(np.random.default_rng(0), (1000,), (-1, 1), [0.0])
    assert np.min(np.abs(x)) >= 0.02
    assert wrap(200, np.int8) == -56
