import pickle
import warnings

import ml_dtypes
import numpy as np
import pytest

from retrograd.errors import DTypeError
from retrograd.ir import BY_CODE, DTYPES, as_dtype, bfloat16, bool_, float32, float64, int64


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_object_for_each_data_type(dtype):
    for spelled in (dtype, dtype.dtype, dtype.dtype.type, dtype.name):
        assert as_dtype(spelled) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert BY_CODE[dtype.code] is dtype
    assert np.zeros(2, dtype).dtype == dtype.dtype
    assert dtype == dtype.dtype
    assert hash(dtype) == hash(dtype.dtype)


def test_python_types_have_a_dtype():
    assert as_dtype(float) is float32
    assert as_dtype(int) is int64
    assert as_dtype(bool) is bool_


def test_comparison_with_what_numpy_understands():
    assert float32 == np.float32
    assert float32 == "float32"
    assert float32 != float64
    assert float32 != "no dtype"
    assert bfloat16 == ml_dtypes.bfloat16


def test_other_byte_order_is_the_same_dtype():
    assert as_dtype(np.dtype(">f4")) is float32


@pytest.mark.parametrize("value", [object, "complex256x", "float128x", np.dtype("M8[s]"), "U3"])
def test_refused_by_name_of_what_is_known(value):
    with pytest.raises(DTypeError, match="it knows bool, int8"):
        as_dtype(value)


class Awkward:
    """What has attributes that fail, and no truth."""

    @property
    def dtype(self):
        raise RuntimeError

    def __bool__(self):
        raise RuntimeError


ANYTHING = [
    {"kind": "x"}, [], [{"kind": "x"}], (), "a::b", "", "\0", "a", ">f4", b"f4", None, 3, 1.5,
    object(), type, dict, Awkward, Awkward(), np.floating, np.dtype(">f4"), np.dtype([("a", "f4")]),
    np.ones(3), np.array("f4"), np.float32(1), NotImplemented, ..., slice(1), {1}, lambda: 0,
]  # fmt: skip


@pytest.mark.parametrize("other", ANYTHING, ids=lambda x: type(x).__name__)
def test_a_dtype_can_be_compared_with_anything(other):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in DTYPES:
            assert (dtype == other) is False
            assert (dtype != other) is True
            assert dtype not in [other]
            assert dtype not in [[other]]


def test_equality_is_that_of_numpy_and_hashes_agree():
    for dtype in DTYPES:
        same = [dtype.dtype, dtype.dtype.type, dtype.name]
        if dtype.dtype.isbuiltin == 1:
            same += [dtype.dtype.str, dtype.dtype.char]
        for other in same:
            assert [d for d in DTYPES if d == other] == [dtype]
        assert dtype.dtype == dtype
        assert {dtype: 1}[dtype.dtype] == {dtype.dtype: 1}[dtype] == 1
    for python in (bool, int, float, complex):
        assert [d for d in DTYPES if d == python] == [np.dtype(python)]


@pytest.mark.parametrize(
    "value", [{"kind": "x"}, [], "a::b", "x", None, 3, object(), object, [("a", 3)], "<,"],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_dtype_is_refused_by_our_error(value):
    with pytest.raises(DTypeError, match="not a dtype"):
        as_dtype(value)
