"""Integers and booleans: wrapping, division by zero, shifts, conversions; and no gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from retrograd.autodiff import depends, pullback, pushforward
from retrograd.errors import GradientError
from retrograd.ir import DTYPES, DType, Node, TensorType, bool_, float32, float64, full, int32
from retrograd.ops.elementwise import (
    ELEMENTWISE,
    Cast,
    abs,
    add,
    floor_div,
    max,
    mod,
    mul,
    neg,
    pow,
    relu,
    shift_left,
    shift_right,
    sign,
)
from retrograd.ops.index import Gather
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceMax, ReduceMin, ReduceProd, ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.verify.rule_checks import check_result

INTEGERS = [d for d in DTYPES if d.is_integer]
SIGNED = [d for d in INTEGERS if d.kind == "int"]
UNSIGNED = [d for d in INTEGERS if d.kind == "uint"]


def value(op: Any, dtype: DType, *xs: Any) -> Any:
    return check_result(op, [np.array(x, dtype.dtype) for x in xs]).tolist()


def ends(dtype: DType) -> tuple[int, int]:
    info = np.iinfo(dtype.dtype)
    return int(info.min), int(info.max)


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_signed_arithmetic_wraps(dtype: DType) -> None:
    low, high = ends(dtype)
    assert value(add, dtype, high, 1) == low
    assert value(mul, dtype, low, -1) == low
    assert value(neg, dtype, low) == low
    assert value(abs, dtype, low) == low
    assert value(sign, dtype, [low, -1, 0, 1, high]) == [-1, -1, 0, 1, 1]
    assert value(relu, dtype, [low, -1, 0, 1, high]) == [0, 0, 0, 1, high]
    assert value(ReduceSum((0,)), dtype, [high, 1]) == low
    assert value(ReduceProd((0,)), dtype, [low, -1]) == low
    assert value(CumSum(0), dtype, [high, 1]) == [high, low]


@pytest.mark.parametrize("dtype", UNSIGNED, ids=str)
def test_unsigned_arithmetic_wraps(dtype: DType) -> None:
    _, high = ends(dtype)
    assert value(neg, dtype, [0, 1]) == [0, high]
    assert value(abs, dtype, high) == high
    assert value(sign, dtype, [0, 1, high]) == [0, 1, 1]
    assert value(relu, dtype, [0, 1, high]) == [0, 1, high]
    assert value(add, dtype, high, 1) == 0


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_integer_division(dtype: DType) -> None:
    """Toward minus infinity; by zero it is 0 with everything left over; nothing traps."""
    low, high = ends(dtype)
    a = [7, -7, 7, -7, 5, low, low, low, high, 0]
    b = [2, 2, -2, -2, 0, -1, 0, 1, -1, 0]
    q, r = [3, -4, -4, 3, 0, low, 0, low, -high, 0], [1, 1, -1, -1, 5, 0, low, 0, 0, 0]
    assert value(floor_div, dtype, a, b) == q
    assert value(mod, dtype, a, b) == r


@pytest.mark.parametrize("dtype", UNSIGNED, ids=str)
def test_unsigned_division(dtype: DType) -> None:
    _, high = ends(dtype)
    assert value(floor_div, dtype, [7, high, 5, high], [2, high, 0, 1]) == [3, 1, 0, high]
    assert value(mod, dtype, [7, high, 5, high], [2, high, 0, 1]) == [1, 0, 5, 0]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_powers(dtype: DType) -> None:
    assert value(pow, dtype, [2, 3, 0, 0, 5], [3, 2, 0, 4, 1]) == [8, 9, 1, 0, 5]
    if dtype.kind == "int":
        assert value(pow, dtype, [2, 1, -1, 0, -2], [-1, -1, -3, -1, 3]) == [0, 0, 0, 0, -8]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts_beyond_the_width(dtype: DType) -> None:
    bits, (low, high) = 8 * dtype.itemsize, ends(dtype)
    assert value(shift_left, dtype, [1, 1, 3], [bits - 1, bits, 0])[1:] == [0, 3]
    assert value(shift_right, dtype, [high, high, 4], [bits, bits + 1, 2]) == [0, 0, 1]
    if dtype.kind == "int":
        assert value(shift_right, dtype, [low, -1, -8], [bits, 1, 2]) == [-1, -1, -2]
        assert value(shift_left, dtype, [5, -5], [-1, -1]) == [0, 0]
        assert value(shift_right, dtype, [5, -5], [-1, -1]) == [0, -1]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("source", [d for d in DTYPES if d.is_float], ids=str)
def test_float_to_integer(source: DType, dtype: DType) -> None:
    """The fraction is dropped, the range saturates, NaN is 0."""
    low, high = ends(dtype)
    x = np.array([1.9, -1.9, -0.5, math.nan, math.inf, -math.inf, 0.0]).astype(source.dtype)
    expected = [1, builtin_max(low, -1), 0, 0, high, low, 0]
    assert check_result(Cast(dtype), [x]).tolist() == expected


def builtin_max(a: int, b: int) -> int:
    return a if a > b else b


def test_conversions_at_the_ends() -> None:
    def cast(x: Any, source: str, target: DType) -> Any:
        return check_result(Cast(target), [np.array(x, source)]).tolist()

    by_name = {d.name: d for d in DTYPES}
    assert cast([2.0**31, 2.0**31 - 1, -(2.0**31) - 1], "float64", int32) == [
        2**31 - 1,
        2**31 - 1,
        -(2**31),
    ]
    assert cast(2.0**63, "float64", by_name["int64"]) == 2**63 - 1
    assert cast([2.0**64, 2.0**63, -1.0], "float64", by_name["uint64"]) == [2**64 - 1, 2**63, 0]
    assert cast([300, -1], "int32", by_name["uint8"]) == [44, 255]
    assert cast([math.nan, 0.0, -0.0, 0.1, math.inf], "float32", bool_) == [
        True, False, False, True, True,
    ]  # fmt: skip
    assert cast([256, 0], "int32", bool_) == [True, False]
    assert cast([True, False], "bool", float32) == [1, 0]
    assert cast(1e300, "float64", by_name["float16"]) == math.inf
    assert cast(2**24 + 1, "int32", float32) == 2**24


def test_bool_has_a_maximum() -> None:
    assert value(ReduceMax((0,)), bool_, [False, True]) is True
    assert value(ReduceMin((0,)), bool_, [False, True]) is False
    assert value(max, bool_, [False, True], [False, False]) == [False, True]


NEEDED = ("add", "mul", "max", "select", "clamp", "abs", "relu", "pow", "mod")


@pytest.mark.parametrize("name", NEEDED)
def test_integers_get_no_gradient(name: str) -> None:
    op = ELEMENTWISE[name]
    types = [TensorType(int32, (3,))] * (op.arity or 1)
    if name == "select":
        types[0] = TensorType(bool_, (3,))
    inputs = [input_node(t) for t in types]
    y = op(*inputs)
    assert depends([y], inputs) == [False] * len(inputs)
    assert pullback([y], [full(1, y.type)], inputs) == [None] * len(inputs)


def test_no_gradient_through_integers() -> None:
    """float -> int -> float is constant almost everywhere: no gradient, not a wrong one."""
    x = input_node(TensorType(float64, (3,)))
    y = Cast(float64)(Cast(int32)(x))
    assert depends([y], [x]) == [False]
    assert pushforward([y], [x], [full(1, x.type)]) == [None]


def test_an_index_gets_no_gradient() -> None:
    x, i = input_node(TensorType(float64, (3,))), input_node(TensorType(int32, (2,)))
    y = Gather(0)(x, i)
    assert depends([y], [x, i]) == [True, False]


def test_integers_have_no_tangents() -> None:
    i = input_node(TensorType(int32, (3,)))
    t: Node = full(1, i.type)
    with pytest.raises(GradientError, match="have no tangent"):
        pushforward([add(i, i)], [i], [t])
