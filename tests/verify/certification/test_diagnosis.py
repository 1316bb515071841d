"""What a wrong derivative looks like, in words."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.verify.certification.diagnosis import likely_cause

A = np.array([[1.0, -2.0], [3.5, 0.25]])
Z = A + 1j * A.T


@pytest.mark.parametrize(
    ("found", "expected", "said"),
    [
        (-A, A, "the sign is wrong"),
        (3 * A, A, "it is 3 times what it should be"),
        (0 * A, A, "it is zero"),
        (A.T, A, "transposed by (1, 0)"),
        (A[::-1], A, "the order along axis 0 is reversed"),
        (np.conj(Z), Z, "a conjugate is missing"),
        (Z * np.exp(1j * A), Z, "phases wrong"),
        (np.broadcast_to(A.sum(0), (2, 2)), A, "axis 0 is summed over"),
        (A + 2, A, "a term is missing that is the same"),
        (A * np.nan, A, "it is not finite"),
        (np.roll(np.arange(4.0), 1), np.arange(4.0), "axis 0 is shifted by 1"),
    ],
)
def test_mistakes_are_told_apart(found, expected, said):
    assert said in likely_cause(found, expected)


def test_other_differences_have_no_name():
    assert likely_cause(A + A**3, A) == ""
    assert likely_cause(np.zeros(0), np.zeros(0)) == ""


def test_of_large_arrays_what_is_known_counts():
    known = np.array([True, True, False])
    assert "sign" in likely_cause(np.array([1.0, 2.0, 9.0]), np.array([-1.0, -2.0, 0.0]), known)
