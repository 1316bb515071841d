"""Half precision is computed in float32 and rounded once."""

import ml_dtypes
import numpy as np
import pytest

from retrograd.ops.numerics.half import in_float32, is_half


def test_what_is_of_half_precision():
    for dtype, expected in (("float16", True), (ml_dtypes.bfloat16, True), ("int16", False),
                            ("uint16", False), ("float32", False), ("bool", False)):  # fmt: skip
        assert is_half(np.zeros(1, dtype)) is expected


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_rounded_once(dtype):
    """`(1 + e) - 1` of an e that is below half a unit: in two roundings it would be lost."""
    e = np.array([2.0**-13], dtype)
    one = np.ones(1, dtype)

    def moved(x, one):
        assert x.dtype == np.float32
        return (one + x) - one

    assert in_float32(moved, [e, one]) == e
    assert in_float32(moved, [e, one]).dtype == dtype
    assert in_float32(lambda i, x: x[i], [np.array([0]), e]).tolist() == e.tolist()
    assert in_float32(lambda x: x > 0, [e]).tolist() == [True]  # results of other dtypes stay


def test_other_dtypes_are_left_alone():
    x = np.ones(2)
    assert in_float32(lambda x: x, [x]) is x
