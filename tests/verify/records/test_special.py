"""Meanings of special functions that mpmath does not have."""

from __future__ import annotations

import pytest

from retrograd.verify.records.elementwise import in_mp
from retrograd.verify.records.special import derivative, inverse_of, lower_gamma

pytest.importorskip("mpmath")


def test_derivatives_and_inverses() -> None:
    assert in_mp(derivative("exp", 1))(0.0) == pytest.approx(1.0, rel=1e-15)
    pytest.importorskip("scipy")
    x = in_mp(inverse_of(lower_gamma, "gammaincinv"))(0.7, 0.4)
    assert in_mp(lower_gamma)(0.7, x) == pytest.approx(0.4, rel=1e-14)
