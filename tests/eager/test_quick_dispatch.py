"""Operations that were recorded before are looked up: operands and numbers are told apart."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg


# -- what is told apart ---------------------------------------------------------------------------
def test_the_same_operations_on_other_operands():
    x, y = rg.tensor(2.0), rg.tensor(3.0)
    for a, b in [(x, y), (x, x), (y, y), (y, x), (x, y)]:
        c = a * b
        assert (c + a * a).item() == a.item() * b.item() + a.item() ** 2


@pytest.mark.parametrize(
    "value", [0.3, 0.7, 1, 1.0, 2, 0, 0.0, -0.0, 0.5, 3, True, float("inf"), float("nan"), 1e300]
)
def test_numbers_of_every_kind(value):
    x = rg.tensor([1.5, -2.0])
    with np.errstate(all="ignore"):
        right = np.float32(value)
        for _ in range(2):
            np.testing.assert_array_equal((x * value).numpy(), x.numpy() * right)
            np.testing.assert_array_equal((value - x).numpy(), right - x.numpy())
            signs = np.signbit((x * value).numpy())
            if value == value:
                np.testing.assert_array_equal(signs, np.signbit(x.numpy() * right))


def test_integers_keep_their_kind():
    i = rg.tensor([1, 2])
    assert [(i + n).dtype for n in (1, 1.0, True, 1)] == [rg.int64, rg.float32, rg.int64, rg.int64]
    with pytest.raises(rg.DTypeError, match="does not fit"):
        rg.tensor([1], dtype="int8") + 1000
