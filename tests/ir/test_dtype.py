import pickle

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
