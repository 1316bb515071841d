"""Numbers of dtypes, against the package `onnx` and what ml_dtypes calls them."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.interop.onnx.dtypes import DTYPES, NARROW, dtype_of, name_of, number_of
from tests.interop.onnx.suite import onnx

NUMBERS = {n: name for name, n in onnx.TensorProto.DataType.items() if n}


def test_dtypes_are_those_of_onnx() -> None:
    for number, dtype in DTYPES.items():
        assert dtype.dtype == onnx.helper.tensor_dtype_to_np_dtype(number), number
        assert dtype_of(number, "x") is dtype
        assert number_of(dtype) == number


@pytest.mark.parametrize("number", sorted(NARROW.keys() & NUMBERS.keys()))
def test_what_is_narrow_is_held_exactly(number: int) -> None:
    """Every pattern of its bits, there and back."""
    stored = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
    values = np.arange(256, dtype=np.uint8).view(stored) if number in range(17, 21) else None
    if values is None:
        values = np.arange(-128, 128).astype(np.float32).astype(stored)
    wide = values.astype(dtype_of(number, "x", narrow=True).dtype)
    np.testing.assert_array_equal(wide.astype(np.float64), values.astype(np.float64))
    with pytest.raises(rg.BackendError, match="does not have"):
        dtype_of(number, "x")


def test_each_number_has_the_name_that_onnx_gives_it() -> None:
    for number, name in NUMBERS.items():
        plain = {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower())
        assert name_of(number) == plain
    assert name_of(99) == "number 99"


def test_texts_are_refused_by_name() -> None:
    with pytest.raises(rg.BackendError, match="w is of dtype string, which"):
        dtype_of(8, "w", narrow=True)
