"""Data from and to NumPy and Python: dtypes, memory, what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.conversion import as_array, promote, returned


def test_asarray_shares_memory_and_says_so():
    a = np.ones(2, np.float32)
    shared, copied = rg.asarray(a), rg.tensor(a)
    later = shared * 2
    a[:] = 5
    assert (shared.tolist(), copied.tolist(), later.tolist()) == ([5, 5], [1, 1], [2, 2])


def test_dtypes_together() -> None:
    """The higher kind wins; within a kind the smallest that holds both. Order does not matter."""
    table = {
        (rg.bool, rg.int8): rg.int8, (rg.int8, rg.uint8): rg.int16,
        (rg.int64, rg.float16): rg.float16,
        (rg.float16, rg.bfloat16): rg.float32, (rg.float32, rg.bfloat16): rg.float32,
        (rg.float32, rg.float64): rg.float64, (rg.float64, rg.complex64): rg.complex128,
        (rg.float32, rg.complex64): rg.complex64, (rg.uint32, rg.int32): rg.int64,
        (rg.uint64, rg.int8): rg.float64,
        (rg.int32, rg.complex64): rg.complex64, (rg.bool, rg.bool): rg.bool,
    }  # fmt: skip
    for (a, b), both in table.items():
        assert promote(a, b) is promote(b, a) is both, (a, b)


def test_python_numbers() -> None:
    for data, dtype in (
        ([1, 2], rg.int64), ([1, 2.5], rg.float32), ([True], rg.bool), (1j, rg.complex64),
        ([], rg.float32), ([np.float64(1), 2], rg.float64), ([1.5, np.int8(2)], rg.float32),
        (np.arange(3, dtype=np.int16), rg.int16), ([[rg.tensor(1.0), 2]], rg.float32),
    ):  # fmt: skip
        assert as_array(data).dtype == dtype.dtype, data
    assert as_array([2**64 - 1, 0], "uint64").tolist() == [2**64 - 1, 0]
    assert as_array(2**70, "float64") == 2.0**70


@pytest.mark.parametrize(("data", "dtype", "error", "words"), [
    ([[1, 2], [3]], None, rg.ShapeError, "ragged"),
    ([1, "a"], None, rg.DTypeError, "no numbers"),
    ([object()], None, rg.DTypeError, "no numbers"),
    (300, "uint8", rg.DTypeError, "300 does not fit into uint8"),
    ([-1, 2], "uint32", rg.DTypeError, "-1 does not fit"),
    (float("nan"), "int32", rg.DTypeError, "does not fit"),
    (2**63, None, rg.DTypeError, "does not fit into int64"),
    (np.ma.masked_array([1, 2], [False, True]), None, rg.DTypeError, "masked"),
])  # fmt: skip
def test_what_does_not_fit(data: Any, dtype: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        as_array(data, dtype)


def test_what_leaves_for_numpy_is_read_only_and_known_when_it_comes_back() -> None:
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    a = x.numpy()
    assert not a.flags.writeable
    assert returned([a[1:]])
    assert not returned(x.detach().numpy())
    with pytest.raises(rg.GradientError, match="silently"):
        rg.grad(lambda x: x.sum() * float(x[0]))(x)
    with pytest.warns(rg.HistoryWarning):
        assert float(x[1]) == 2
