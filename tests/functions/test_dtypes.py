"""Dtype functions of the array API, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
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


# -- the default dtype -----------------------------------------------------------------------------
@pytest.fixture
def in_double_precision() -> Iterator[None]:
    rg.set_default_dtype(rg.float64)
    yield
    rg.set_default_dtype(rg.float32)


def _made() -> list[rg.Tensor]:
    """What depends on the default dtype, eagerly and compiled."""
    n, x32 = rg.arange(1, 4), rg.ones(3, dtype=rg.float32)
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    assert w.grad is not None
    assert ((x32 * 0.5).dtype, (x32 * rg.sin(0.5)).dtype) == (rg.float32, rg.float32)
    assert rg.asarray(np.ones(2, np.float32)).dtype is rg.float32
    return [
        rg.zeros(2), rg.eye(2), rg.full((2,), 0.5), rg.tensor([[0.1]]), rg.linspace(0, 1, 3),
        rg.arange(0.0, 1.0, 0.5), n / 2, n * 2.5, rg.sqrt(n), rg.mean(n), rg.add(1.0, 2.0),
        rg.where(n > 1, 1.5, 0.0), rg.fft.fftfreq(4), HALVED(n), rg.vmap(lambda i: i * 0.1)(n),
        rg.random.Generator(0).normal((2,)), rg.nn.Linear(2, 2).weight, w.grad,
        rg.abs(rg.asarray(3j)), rg.zeros(2, dtype=float), rg.abs(rg.zeros(2, dtype=complex)),
    ]  # fmt: skip


HALVED = rg.jit(lambda i: i * 0.5)


def test_the_default_dtype_is_that_of_python_floats_wherever_they_stand() -> None:
    assert rg.get_default_dtype() is rg.float32
    for _ in range(2):
        assert {x.dtype for x in _made()} == {rg.float32}
    rg.set_default_dtype("float64")
    try:
        info = rg.__array_namespace_info__().default_dtypes()
        assert (info["real floating"], info["complex floating"]) == (rg.float64, rg.complex128)
        for _ in range(2):
            assert {x.dtype for x in _made()} == {rg.float64}
    finally:
        rg.set_default_dtype(rg.float32)
    assert {x.dtype for x in _made()} == {rg.float32}


@pytest.mark.usefixtures("in_double_precision")
def test_double_precision_is_used_and_not_only_shown() -> None:
    third = (rg.asarray(1) / 3).item()
    assert third == 1 / 3
    assert rg.sin(0.5).item() == pytest.approx(np.sin(0.5), rel=1e-15)
    assert rg.result_type(rg.int64, 1.0) is rg.float64
    assert (rg.asarray([1.0 + 2j]) * 1j).dtype is rg.complex128


def test_what_was_recorded_before_a_change_keeps_its_gradient() -> None:
    x = rg.tensor([2.0], requires_grad=True)
    y = (x**3).sum()
    rg.set_default_dtype(rg.float64)
    try:
        y.backward()
        assert x.grad is not None
        assert (x.grad.tolist(), x.grad.dtype) == ([12.0], rg.float32)
    finally:
        rg.set_default_dtype(rg.float32)


def test_a_default_that_cannot_be_and_a_change_inside_of_a_trace_are_refused() -> None:
    for wrong in (rg.int64, rg.float16, rg.complex64):
        with pytest.raises(rg.DTypeError, match="float32 or float64"):
            rg.set_default_dtype(wrong)

    def change(x: rg.Tensor) -> rg.Tensor:
        rg.set_default_dtype(rg.float64)
        return x

    with pytest.raises(rg.TraceError, match="call it before"):
        rg.jit(change)(rg.ones(2))
    assert rg.get_default_dtype() is rg.float32


def test_capabilities_are_those_of_where_they_are_asked_for() -> None:
    seen = []
    info = rg.__array_namespace_info__()

    def identity(x: rg.Tensor) -> rg.Tensor:
        seen.append(info.capabilities())
        return x

    rg.jit(identity)(rg.ones(1))
    assert (info.capabilities()["boolean indexing"], seen[0]["boolean indexing"]) == (True, False)


def test_operations_that_run_at_once_follow_the_default() -> None:
    def halves() -> set[Any]:
        found = set()
        for _ in range(3):
            n = rg.arange(1, 4)
            found |= {(n / 2).dtype, rg.sqrt(n).dtype, rg.mean(n).dtype}
            (n / 2).numpy()
        return found

    assert halves() == {rg.float32}
    rg.set_default_dtype(rg.float64)
    try:
        assert halves() == {rg.float64}
    finally:
        rg.set_default_dtype(rg.float32)
    assert halves() == {rg.float32}
