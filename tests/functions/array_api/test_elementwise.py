"""Every elementwise function and operator of the standard on drawn arguments, against NumPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from tests.functions.array_api.inputs import (
    ALL,
    COMPLEX,
    FLOATING,
    FLOATS,
    INTEGERS,
    MIXED,
    NUMERIC,
    REAL,
    Draw,
    broadcasting,
    compare,
    inputs,
)
from tests.functions.array_api.test_names import SECTIONS
from tests.sampling import examples

BACKENDS = st.sampled_from(["reference", "llvm"])
BITS = ("bool", *INTEGERS)
Dtypes = tuple[str, ...]


def of(table: dict[str, Dtypes]) -> dict[str, Dtypes]:
    return {name: dtypes for names, dtypes in table.items() for name in names.split()}


# Names, and the dtypes that the standard has them take.
UNARY = of(
    {
        "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10": FLOATING,
        "reciprocal sin sinh sqrt tan tanh": FLOATING,
        "abs conj isfinite isinf isnan negative positive real sign square": NUMERIC,
        "ceil floor round trunc": REAL,
        "imag": COMPLEX,
        "signbit": FLOATS,
        "bitwise_invert": BITS,
        "logical_not": ("bool",),
    }
)
BINARY = of(
    {
        "add multiply subtract pow": NUMERIC,
        "equal not_equal": ALL,
        "floor_divide remainder maximum minimum": REAL,
        "greater greater_equal less less_equal": REAL,
        "atan2 copysign hypot logaddexp nextafter": FLOATS,
        "divide": FLOATING,
        "bitwise_and bitwise_or bitwise_xor": BITS,
        "bitwise_left_shift bitwise_right_shift": INTEGERS,
        "logical_and logical_or logical_xor": ("bool",),
    }
)
OPERATORS: dict[str, Any] = {
    "abs": operator.abs, "add": operator.add, "bitwise_and": operator.and_,
    "bitwise_invert": operator.invert, "bitwise_left_shift": operator.lshift,
    "bitwise_or": operator.or_, "bitwise_right_shift": operator.rshift,
    "bitwise_xor": operator.xor, "divide": operator.truediv, "equal": operator.eq,
    "floor_divide": operator.floordiv, "greater": operator.gt, "greater_equal": operator.ge,
    "less": operator.lt, "less_equal": operator.le, "multiply": operator.mul,
    "negative": operator.neg, "not_equal": operator.ne, "positive": operator.pos,
    "pow": operator.pow, "remainder": operator.mod, "subtract": operator.sub,
}  # fmt: skip


def test_every_function_is_tested() -> None:
    assert sorted([*UNARY, *BINARY, "clip"]) == sorted(SECTIONS["elementwise"])


def numpys(name: str, *arrays: Any) -> Any:
    """NumPy's result, in the dtypes of the standard."""
    with np.errstate(all="ignore"):
        y = np.asarray(getattr(np, name)(*arrays))
        if name in ("ceil", "floor", "round", "trunc"):  # integers stay what they are
            y = y.astype(arrays[0].dtype)
        if name in ("floor_divide", "remainder") and y.dtype.kind in "iu":
            # By zero, which the standard leaves open: 0, and the dividend.
            a, b = np.broadcast_arrays(*arrays)
            y = np.where(b == 0, 0 if name == "floor_divide" else a.astype(y.dtype), y)
        if name == "floor_divide" and y.dtype.kind == "f":
            # Of an infinite dividend the standard leaves open which; NumPy has NaN.
            a, b = np.broadcast_arrays(*(x.astype(y.dtype) for x in arrays))
            y = np.where(np.isinf(a) & np.isfinite(b), np.asarray(rg.floor_divide(a, b)), y)
        if name == "sign" and y.dtype.kind == "c":
            (z,) = arrays
            y = np.where(z == 0, 0, z / np.where(z == 0, 1, np.abs(z))).astype(z.dtype)
    return y


@st.composite
def arguments(draw: Draw, name: str) -> list[Any]:
    wild = name not in ("pow", "bitwise_left_shift", "bitwise_right_shift")
    if name in UNARY:
        return [draw(inputs(UNARY[name], wild=wild))]
    pair = draw(st.sampled_from([p for p in MIXED if set(p) <= set(BINARY[name])]))
    xs = [
        draw(inputs([dtype], shape, wild))
        for dtype, shape in zip(pair, draw(broadcasting(2)), strict=True)
    ]
    if name in ("pow", "bitwise_left_shift", "bitwise_right_shift") and pair[1][0] in "iu":
        for x in (xs[1].array, xs[1].base):  # below the least number of bits; no power is negative
            x[...] = np.abs(x) % 7
    return xs


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@examples(30)
@given(data=st.data(), backend=BACKENDS)
@pytest.mark.sample(16)
def test_function(name: str, data: st.DataObject, backend: str) -> None:
    xs = data.draw(arguments(name))
    right = numpys(name, *(x.array for x in xs))
    scale = 4096 if name == "pow" else 64
    with rg.backend(backend):
        compare(getattr(rg, name)(*(x.tensor() for x in xs)), right, xs, scale)
        if name in OPERATORS:
            compare(OPERATORS[name](*(x.tensor() for x in xs)), right, xs, scale)


@pytest.mark.parametrize("name", [n for n in OPERATORS if n in BINARY])
@examples(15)
@given(data=st.data(), backend=BACKENDS)
def test_operators_with_numbers(name: str, data: st.DataObject, backend: str) -> None:
    """A Python number has the dtype of the array, on either side."""
    kinds = FLOATS if name in ("floor_divide", "remainder") else BINARY[name]
    x = data.draw(inputs([d for d in kinds if d != "bool"]))
    number = 2 if x.array.dtype.kind in "iu" else 2.5
    if name in ("pow", "bitwise_left_shift", "bitwise_right_shift"):
        for part in (x.array, x.base):
            part[...] = np.abs(part) % 7
    left = numpys(name, x.array, x.array.dtype.type(number))
    right = numpys(name, x.array.dtype.type(number), x.array)
    with rg.backend(backend):
        compare(OPERATORS[name](x.tensor(), number), left, x, 4096)
        compare(OPERATORS[name](number, x.tensor()), right, x, 4096)


@examples(60)
@given(data=st.data(), backend=BACKENDS)
def test_clip(data: st.DataObject, backend: str) -> None:
    x = data.draw(inputs(REAL, wild=True))
    dtype = x.array.dtype
    ends: list[Any] = []
    for least in (1, 3):
        kind = data.draw(st.sampled_from(["none", "number", "array"]))
        if kind == "none":
            ends.append(None)
        elif kind == "number":
            ends.append(least if dtype.kind in "iu" else least + 0.5)
        else:
            shape = data.draw(broadcasting(1, x.array.shape))[0]
            ends.append(np.full(shape, least, dtype))
    free = all(end is None for end in ends)
    right = x.array if free else np.clip(x.array, *ends)
    with rg.backend(backend):
        given_ends = [rg.asarray(e) if isinstance(e, np.ndarray) else e for e in ends]
        compare(rg.clip(x.tensor(), *given_ends), right, (x, ends))
