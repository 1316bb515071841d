"""Formats against what NumPy and ml_dtypes say of them."""

import ml_dtypes
import numpy as np
import pytest

from retrograd.ir import DTYPES
from retrograd.verify.rounding_error.formats import FORMATS, format_of, inside

FLOATS = [d for d in DTYPES if d.is_float]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_numbers_of_a_format(dtype):
    f, info = format_of(dtype), ml_dtypes.finfo(dtype.dtype)
    assert f.u == float(info.eps) / 2
    assert f.tiny == float(info.smallest_normal)
    assert f.subnormal == float(info.smallest_subnormal)
    assert f.largest == float(info.max)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_ulp_is_the_spacing(name):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(200) * 10.0 ** rng.integers(-6, 4, 200)).astype(name)
    x = np.concatenate([x, np.array([0.0, 1.0, -2.0, 1e-7], name)])
    assert FORMATS[name].ulp(x).tolist() == np.abs(np.spacing(np.abs(x))).astype(float).tolist()


def test_half_precision_is_computed_in_float32():
    half = next(d for d in FLOATS if d.name == "bfloat16")
    assert inside(half) == FORMATS["float32"]
    assert format_of(half).digits == 8
