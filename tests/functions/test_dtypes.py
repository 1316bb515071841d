"""Dtype functions of the array API, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import DTYPES

NUMPY = [d for d in DTYPES if d.name != "bfloat16"]


@pytest.mark.parametrize("dtype", NUMPY, ids=str)
def test_limits(dtype):
    info: Any
    known: Any
    if dtype.is_float:
        info, known = rg.finfo(dtype), np.finfo(dtype.dtype)
        assert info.eps == known.eps
        assert info.smallest_normal == known.smallest_normal
        assert isinstance(info.eps, float)
    elif dtype.is_integer:
        info, known = rg.iinfo(rg.zeros(2, dtype=dtype)), np.iinfo(dtype.dtype)
    else:
        for f in (rg.iinfo,) if dtype.is_complex else (rg.finfo, rg.iinfo):
            with pytest.raises(rg.DTypeError):
                f(dtype)
        return
    assert (info.bits, info.max, info.min) == (known.bits, known.max, known.min)
    assert info.dtype is dtype


def test_limits_of_complex_dtypes_are_those_of_their_parts():
    assert rg.finfo(rg.complex64) == rg.finfo(rg.float32)
    assert rg.finfo(rg.ones(2, dtype=rg.complex128)) == rg.finfo(rg.float64)


def test_limits_of_bfloat16():
    assert rg.finfo(rg.bfloat16).eps == 2.0**-7
    with pytest.raises(rg.DTypeError):
        rg.finfo(rg.int8)
    with pytest.raises(rg.DTypeError):
        rg.iinfo(rg.float32)


def test_promotion_within_kinds_is_numpys():
    for a in NUMPY:
        for b in NUMPY:
            joined = np.result_type(a.dtype, b.dtype)
            alike = a.is_inexact is b.is_inexact and (a.name == "bool") is (b.name == "bool")
            if alike:
                assert rg.result_type(a, b) is rg.result_type(b, a)
                assert rg.result_type(a, b) == joined
                assert rg.can_cast(a, b) == np.can_cast(a.dtype, b.dtype)
    assert rg.result_type(rg.float16, rg.bfloat16) is rg.float32
    assert not rg.can_cast(rg.int64, rg.uint64)
    assert not rg.can_cast(rg.float64, rg.int64)


def test_kinds():
    assert rg.isdtype(rg.int8, "signed integer")
    assert rg.isdtype(rg.uint8, ("bool", "integral"))
    assert rg.isdtype(rg.bfloat16, "real floating")
    assert not rg.isdtype(rg.bool, "numeric")
    assert rg.isdtype(rg.bool, rg.bool)
    with pytest.raises(ValueError, match="kind"):
        rg.isdtype(rg.bool, "whole")


def test_the_namespace_tells_of_itself():
    info = rg.ones(1).__array_namespace__().__array_namespace_info__()
    assert info.capabilities()["data-dependent shapes"]
    assert info.default_device() == rg.ones(1).device == "cpu"
    assert info.default_dtypes()["real floating"] is rg.ones(1).dtype
    assert info.default_dtypes()["integral"] is rg.asarray([1]).dtype
    assert info.devices() == ["cpu"]
    assert info.dtypes(kind="bool") == {"bool": rg.bool}
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"}
    assert set(info.dtypes()) == {d.name for d in DTYPES} - {"float16", "bfloat16"}
    with pytest.raises(rg.OptionError):
        info.dtypes(device="gpu")
    assert rg.__array_api_version__ == "2024.12"
    x = rg.ones(1)
    assert x.to_device("cpu") is x
    with pytest.raises(rg.OptionError):
        x.to_device("gpu")
    with pytest.raises(rg.OptionError):
        rg.astype(x, rg.int8, device="gpu")
    a = np.ones(3)
    b = rg.from_dlpack(a, copy=True)
    a[0] = 5
    assert b.tolist() == [1, 1, 1]


def test_versions_of_the_standard():
    x = rg.ones(1)
    version: Any
    for version in (None, "2021.12", "2022.12", "2023.12", rg.__array_api_version__):
        assert x.__array_namespace__(api_version=version) is rg
    for version in ("2020.12", "2099.12", "", 2024):
        with pytest.raises(ValueError, match="unknown here; there are 2021"):
            x.__array_namespace__(api_version=version)


def test_functions_of_several_results_return_tuples():
    x = rg.ones((2, 3))
    for result in (rg.meshgrid(x[0], x[1]), rg.meshgrid(x[0], indexing="ij"), rg.nonzero(x),
                   rg.broadcast_arrays(x, x), rg.unstack(x), rg.meshgrid()):  # fmt: skip
        assert isinstance(result, tuple)
    assert isinstance(rg.jit(lambda x: rg.meshgrid(x[0], x[1]))(x), tuple)


def test_numbers_take_the_dtype_of_arrays():
    assert rg.result_type(rg.ones(2, dtype=rg.int8), 1) is rg.int8
    assert rg.result_type(rg.float16, 1.5, 2) is rg.float16
    assert rg.result_type(np.ones(2, np.float64), rg.float32) is rg.float64
    assert rg.result_type(1, 2.0) is rg.float32
    assert rg.result_type(True) is rg.bool
    with pytest.raises(rg.DTypeError):
        rg.result_type()
