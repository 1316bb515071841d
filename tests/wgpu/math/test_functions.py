"""Functions of mathematics on the GPU, against long doubles, within the bounds of the CPU's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from retrograd.codegen.math import exponential
from retrograd.errors import BackendError
from retrograd.ir import Graph, float32, full, spec
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import input_node
from retrograd.ops.special import functions, portable
from tests.codegen.math.test_elementary_functions import (
    BINARY,
    LONG,
    UNARY,
    VALUES,
    arguments,
    assert_within,
    needs_long_doubles,
    pairs,
)
from tests.wgpu.gpu import device_with, graph_of, needs_gpu, program, run

pytestmark = needs_gpu
DOUBLES = pytest.mark.parametrize("doubles", [True, False], ids=["doubles", "floats"])
SAMPLE = slice(None, None, 7)


def all_of(names: Any, x: Any) -> dict[str, Any]:
    """Functions of the same arguments, in one program."""
    node = input_node(spec(x.shape, float32))
    graph = Graph([node], [el.ELEMENTWISE[name](node) for name in names])
    return dict(zip(names, program(graph)([x]), strict=True))


@DOUBLES
@needs_long_doubles
@pytest.mark.slow
def test_functions_of_one_argument(doubles: bool) -> None:
    """By float64 where the device has it, and without."""
    x = arguments(float32)
    with device_with(float64=doubles):
        results = all_of(UNARY, x)
    for name, (exact, _, bound) in UNARY.items():
        if exact is not None:
            with np.errstate(all="ignore"):
                # Sums that are rounded once more on the way: see `fma_f32`.
                assert_within(name, results[name], exact(x.astype(LONG)), bound + 0.2, float32, x)


@needs_long_doubles
def test_a_few_functions() -> None:
    x = arguments(float32)[SAMPLE]
    names = ["exp", "log", "sin", "tanh"]
    with device_with(float64=False):
        results = all_of(names, x)
    for name in names:
        exact, _, bound = UNARY[name]
        assert exact is not None
        with np.errstate(all="ignore"):
            assert_within(name, results[name], exact(x.astype(LONG)), bound + 0.2, float32, x)


@DOUBLES
@needs_long_doubles
@pytest.mark.slow
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arguments(name: str, doubles: bool) -> None:
    a, b = pairs(float32)
    exact, bound = BINARY[name]
    with device_with(float64=doubles):
        y = run(el.ELEMENTWISE[name], a, b)
    with np.errstate(all="ignore"):
        assert_within(name, y, exact(a.astype(LONG), b.astype(LONG)), bound + 0.2, float32, a, b)


@DOUBLES
@pytest.mark.slow
def test_special_values(doubles: bool) -> None:
    """Exactly, the signs of zeros included; every function of a NaN is NaN."""
    x = np.array([math.nan, *(v for table in VALUES.values() for v, _ in table)], np.float32)
    with device_with(float64=doubles):
        results = all_of(VALUES, x)
    for name, table in VALUES.items():
        y = results[name]
        assert np.isnan(y[np.isnan(x)]).all(), name
        for value, right in table:
            same = (x == value) & (np.signbit(x) == np.signbit(value))
            np.testing.assert_array_equal(y[same], np.float32(right), err_msg=f"{name}({value})")
            if not math.isnan(right):
                assert (np.signbit(y[same]) == np.signbit(right)).all(), f"{name}({value})"


def test_constant_powers() -> None:
    """Exponents for which there is a shorter way, and others."""
    x = np.array([0.0, 0.5, 3.0, -2.0, np.inf, np.nan], np.float32)
    node = input_node(spec(x.shape, float32))
    exponents = (0.0, 2.0, 3.0, -1.0, 0.5, -0.5, 2.5)
    graph = Graph([node], [el.pow(node, full(e, node.type)) for e in exponents])
    for e, y in zip(exponents, program(graph)([x]), strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(y, x ** np.float32(e), rtol=3e-7, err_msg=str(e))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_powers_of_integers(dtype: Any) -> None:
    """They wrap."""
    a = np.array([0, 1, 2, 3, 7, 10, 3, 5], dtype)
    b = np.array([0, 9, 31, 20, 11, 9, 40, 1], dtype)
    np.testing.assert_array_equal(run(el.pow, a, b), a**b)
    if dtype is np.int32:
        zero = run(el.pow, np.array([2, 1, -1], dtype), np.array([-1, -2, -3], dtype))
        np.testing.assert_array_equal(zero, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["portable_log", "portable_exp", "portable_atan"])
def test_portable_functions_have_the_bits_of_numpy(name: str) -> None:
    """Of float64, which random numbers are made of."""
    r = np.random.default_rng(0)
    x = np.abs(np.concatenate([r.normal(size=3000), np.exp(r.uniform(-80, 80, 3000))]))
    op = el.ELEMENTWISE[name]
    assert op in (portable.portable_log, portable.portable_exp, portable.portable_atan)
    y, right = run(op, x), op.reference(x)
    assert y.tobytes() == right.tobytes()


@pytest.mark.slow
def test_special_functions_are_those_of_the_cpu() -> None:
    r = np.random.default_rng(0)
    x = r.normal(size=500).astype(np.float32) * 3
    for op in (functions.gamma, functions.lgamma, functions.digamma, functions.ndtri):
        y = run(op, x)
        right = op.reference(x.astype(np.float64)).astype(np.float32)
        finite = np.isfinite(right)
        np.testing.assert_array_equal(np.isfinite(y), finite)
        error = np.abs(y[finite].astype(np.float64) - right[finite]) / np.spacing(
            np.abs(right[finite])
        )
        assert error.max() <= 1, op.name


def test_what_needs_doubles_says_so() -> None:
    x = np.ones(3, np.float32)
    with device_with(float64=False), pytest.raises(BackendError, match=r"float64.*lgamma"):
        program(graph_of(functions.lgamma, x))([x])


@needs_long_doubles
def test_a_wrong_digit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd.wgpu.math.functions import function
    from retrograd.wgpu.math.op_builder import defined

    first, *others = exponential._EXP["float32"]
    monkeypatch.setitem(exponential._EXP, "float32", (first * 1.00001, *others))
    for cached in (function, defined):
        cached.cache_clear()
    x = np.linspace(-1, 1, 1001, dtype=np.float32)
    y = run(el.exp, x)
    for cached in (function, defined):
        cached.cache_clear()
    with pytest.raises(AssertionError, match="ulp"):
        assert_within("exp", y, np.exp(x.astype(LONG)), 1.3, float32, x)
