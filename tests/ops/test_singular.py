"""Derivatives where the mathematics is singular: bad branches, zeros, poles, ties, infinities.

Each test states the exact value and the exact first and second derivatives.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrograd.autodiff import pullback
from retrograd.ir import Graph, Node, TensorType, as_dtype, float32, float64, full
from retrograd.ops.elementwise import (
    ELEMENTWISE,
    acos,
    atan2,
    cbrt,
    cosh,
    div,
    eq,
    exp,
    hypot,
    log,
    log1p,
    mod,
    pow,
    reciprocal,
    rsqrt,
    sigmoid,
    sin,
    softplus,
    sqrt,
    tanh,
    zdiv,
    zmul,
)
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import run
from tests.ops.derive import (
    const,
    derive,
    derive_forward,
    total,
    vector_gradient,
    vector_hessian,
    where,
)

INF, NAN = math.inf, math.nan


def norm(x: Node) -> Node:
    return sqrt(x * x)


# -- a branch that was not taken contributes nothing -------------------------------------------
BAD_BRANCHES: dict[str, tuple[Callable[[Node], Node], float]] = {
    "sqrt at 0": (sqrt, 0.0),
    "sqrt below 0": (sqrt, -1.0),
    "sqrt of a square": (norm, 0.0),
    "rsqrt": (rsqrt, 0.0),
    "cbrt": (cbrt, 0.0),
    "log at 0": (log, 0.0),
    "log below 0": (log, -1.0),
    "log1p": (log1p, -1.0),
    "1/x": (lambda x: 1 / x, 0.0),
    "reciprocal": (reciprocal, 0.0),
    "x log x": (lambda x: x * log(x), 0.0),
    "x / x": (lambda x: x / x, 0.0),
    "sin x / x": (lambda x: sin(x) / x, 0.0),
    "x sqrt x": (lambda x: x * sqrt(x), 0.0),
    "pow below 0": (lambda x: pow(x, const(0.5, x)), -1.0),
    "pow at 0": (lambda x: pow(x, const(0.5, x)), 0.0),
    "pow with x in both": (lambda x: pow(x, x), -0.5),
    "overflow of exp": (exp, 1000.0),
    "overflow of cosh": (cosh, 1000.0),
    "exp / exp": (lambda x: exp(x) / (1 + exp(x)), 1000.0),
    "exp - exp": (lambda x: exp(x) - exp(x), 1000.0),
    "hypot": (lambda x: hypot(x, x), 0.0),
    "atan2": (lambda x: atan2(x, x), 0.0),
    "acos": (acos, 2.0),
    "acos at 1": (acos, 1.0),
    "log of log": (lambda x: log(log(x)), 0.0),
    "sqrt of sqrt": (lambda x: sqrt(sqrt(x)), 0.0),
    "1 / x / x": (lambda x: 1 / x / x, 0.0),
    "mod": (lambda x: mod(const(1.0, x), x), 0.0),
    "zmul": (lambda x: zmul(x, log(x)), 0.0),
    "zdiv": (lambda x: zdiv(1 + x, x), 0.0),
}


@pytest.mark.parametrize("case", BAD_BRANCHES)
def test_where_with_a_bad_branch(case: str) -> None:
    """`where(good, bad(x), 3 x^2)` has the derivatives of `3 x^2`, exactly, to second order, in
    reverse and in forward mode, whatever `bad` does; a third derivative too."""
    bad, x = BAD_BRANCHES[case]

    def f(v: Node) -> Node:
        return where(eq(v, const(12.5, v)), bad(v), 3 * v * v)

    value, gradient, hessian = derive(f, x)
    assert (value, gradient, hessian) == (3 * x * x, 6 * x, 6)
    assert derive_forward(f, x) == (6 * x, 6)

    def slope(v: Node) -> Node:
        return where(eq(v, const(12.5, v)), const(7.0, v) * bad(v) * v, v * v * v)

    assert derive(slope, x)[1:] == (3 * x * x, 6 * x)


@pytest.mark.parametrize("case", BAD_BRANCHES)
def test_where_inside_another_function(case: str) -> None:
    """The masked value goes on through nonlinear functions, so that second derivatives flow through
    the first derivative's own graph."""
    bad, x = BAD_BRANCHES[case]

    def f(v: Node) -> Node:
        inner = where(eq(v, const(12.5, v)), bad(v) * v, 2 * v)
        return inner * inner * v

    value, gradient, hessian = derive(f, x)
    assert (value, gradient, hessian) == (4 * x**3, 12 * x * x, 24 * x)
    assert derive_forward(f, x) == (12 * x * x, 24 * x)


def test_where_masks_elements_of_a_norm() -> None:
    def f(x: Node) -> Node:
        squares = x * x
        return total(where(squares > 0, sqrt(squares), 0.0))

    value, gradient = vector_gradient(f, [0.0, -3.0, 0.0, 4.0])
    assert value == 7
    np.testing.assert_array_equal(gradient, [0, -1, 0, 1])


def test_a_guarded_norm_of_zeros_has_gradient_zero() -> None:
    def f(x: Node) -> Node:
        s = total(x * x)
        return where(s > 0, sqrt(s), 0.0)

    np.testing.assert_array_equal(vector_gradient(f, [0.0, 0.0])[1], [0, 0])
    np.testing.assert_allclose(vector_gradient(f, [3.0, 4.0])[1], [0.6, 0.8])
    np.testing.assert_array_equal(vector_hessian(f, [0.0, 0.0]), np.zeros((2, 2)))


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, INF, -INF, NAN]
DIFFERENTIABLE = [
    name for name, op in ELEMENTWISE.items() if any(op.derivatives) and "float" in op.kinds
]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.sample(20)
def test_a_zero_cotangent_gives_zeros(name: str) -> None:
    """Wherever the inputs are, at poles, infinities and NaN, to second order."""
    op = ELEMENTWISE[name]
    arity = len(op.derivatives)
    values = SPECIAL if arity < 3 else [0.0, 1.0, INF, NAN]
    grid = [np.array(x) for x in zip(*itertools.product(values, repeat=arity), strict=True)]
    if name == "select":
        grid[0] = grid[0] != 0
    inputs = [input_node(TensorType(as_dtype(x.dtype), x.shape)) for x in grid]
    wrt = [x for x, derivative in zip(inputs, op.derivatives, strict=True) if derivative]
    y = op(*inputs)
    first = pullback([y], [full(0, y.type)], wrt, set(inputs))
    ends = [g for g in first if g is not None]
    assert len(ends) == len(wrt)
    second = pullback(ends, [full(1, g.type) for g in ends], wrt, set(inputs))
    graph = Graph(inputs, [*ends, *(g for g in second if g is not None)])
    for found in run(graph, grid):
        wrong = [[float(x[k]) for x in grid] for k in np.flatnonzero(~(found == 0))]
        assert not wrong, f"the gradient of {name} is not zero at {wrong}"


# -- products that a zero absorbs --------------------------------------------------------------
def test_zero_absorbs_infinity_on_one_side_only() -> None:
    assert derive(zmul, 0.0, INF)[0] == 0
    assert np.isnan(derive(zmul, INF, 0.0)[0])
    assert derive(zdiv, 0.0, 0.0)[0] == 0
    assert derive(zdiv, 0.0, NAN)[0] == 0
    assert derive(zdiv, 1.0, 0.0)[0] == INF


def test_a_zero_that_depends_on_something_keeps_its_derivatives() -> None:
    """A cotangent that is zero at this point, but not around it."""
    _, gradient, hessian = derive(zmul, 0.0, 3.0)
    np.testing.assert_array_equal(gradient, [3, 0])
    np.testing.assert_array_equal(hessian, [[0, 1], [1, 0]])
    _, gradient, hessian = derive(zdiv, 0.0, 2.0)
    np.testing.assert_array_equal(gradient, [0.5, 0])
    np.testing.assert_array_equal(hessian, [[0, -0.25], [-0.25, 0]])


def test_third_derivative_where_the_cotangent_vanishes() -> None:
    """h(x) = (exp(x) - exp(a))^2 has h'''(a) = 6 exp(2 a), though h'(a) = 0."""
    a = 0.7
    value = float(derive(exp, a)[0])

    def h(x: Node) -> Node:
        d = exp(x) - const(value, x)
        return d * d

    x = input_node(TensorType(float64, ()))
    y: Node | None = h(x)
    for _ in range(3):
        assert y is not None
        (y,) = pullback([y], [full(1, x.type)], [x])
    assert y is not None
    (third,) = run(Graph([x], [y]), [np.array(a)])
    np.testing.assert_allclose(third, 6 * math.exp(2 * a), rtol=1e-14)


@pytest.mark.parametrize("f", [exp, sin, tanh, sigmoid, softplus, cosh], ids=lambda f: f.name)
def test_second_derivative_where_the_cotangent_vanishes(f: Any) -> None:
    """h(x) = (f(x) - f(a))^2 has h'(a) = 0 and h''(a) = 2 f'(a)^2."""
    a = 0.7
    value, slope, _ = derive(f, a)

    def h(x: Node) -> Node:
        d = f(x) - const(float(value), x)
        return d * d

    _, gradient, hessian = derive(h, a)
    assert gradient == 0
    np.testing.assert_allclose(hessian, 2 * slope[0] ** 2, rtol=1e-14)
    np.testing.assert_allclose(derive_forward(h, a)[1], 2 * slope[0] ** 2, rtol=1e-14)


# -- roots and powers at zero --------------------------------------------------------------------
def test_roots_at_zero() -> None:
    assert derive(sqrt, 0.0)[:2] == (0, INF)
    assert derive(cbrt, 0.0)[:2] == (0, INF)
    assert derive(cbrt, -0.0)[:2] == (0, INF)
    assert derive(rsqrt, 0.0)[:2] == (INF, -INF)
    assert derive(cbrt, -8.0)[:2] == (-2, pytest.approx(1 / 12))
    assert np.isnan(derive(sqrt, -1.0)[1])


@pytest.mark.parametrize("x", [0.0, -1.5, 2.0])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_integer_powers_are_polynomials(x: float, n: int) -> None:
    """d/dx x^n = n x^(n-1) and d2/dx2 x^n = n (n-1) x^(n-2), at zero and below zero as well."""

    def f(v: Node) -> Node:
        return pow(v, const(float(n), v))

    first = n * x ** (n - 1) if n else 0
    second = n * (n - 1) * x ** (n - 2) if n > 1 else 0
    value, gradient, hessian = derive(f, x)
    assert value == x**n
    np.testing.assert_allclose(gradient, [first], rtol=1e-15)
    np.testing.assert_allclose(hessian, [[second]], rtol=1e-15)
    np.testing.assert_allclose(derive_forward(f, x)[1], [[second]], rtol=1e-15)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_powers_inside_a_function_at_zero(n: int) -> None:
    """h(x) = exp(x^n): h'' = (n (n-1) x^(n-2) + n^2 x^(2n-2)) h, finite at 0."""

    def f(v: Node) -> Node:
        return exp(pow(v, const(float(n), v)))

    _, gradient, hessian = derive(f, 0.0)
    assert gradient == {0: 0, 1: 1, 2: 0, 3: 0}[n]
    assert hessian == {0: 0, 1: 1, 2: 2, 3: 0}[n]


@pytest.mark.parametrize(("a", "b"), [(2.0, 0.0), (0.5, 1.0), (3.0, -1.0), (1.0, 2.0), (1.0, 0.0)])
def test_power_in_both_arguments(a: float, b: float) -> None:
    """Gradient (b a^(b-1), a^b log a); the mixed derivative a^(b-1) (1 + b log a), both ways."""
    value, gradient, hessian = derive(pow, a, b)
    la, mixed = math.log(a), a ** (b - 1) * (1 + b * math.log(a))
    expected = [[b * (b - 1) * a ** (b - 2), mixed], [mixed, a**b * la * la]]
    assert value == a**b
    np.testing.assert_allclose(gradient, [b * a ** (b - 1), a**b * la], atol=1e-15)
    np.testing.assert_allclose(hessian, expected, atol=1e-15)
    np.testing.assert_allclose(derive_forward(pow, a, b)[1], expected, atol=1e-15)


def test_powers_of_zero() -> None:
    """0^b is 1 at b = 0 and 0 beyond: counted as constant in b. Below it is a pole."""
    assert derive(pow, 0.0, 0.0)[0] == 1
    np.testing.assert_array_equal(derive(pow, 0.0, 0.0)[1], [0, 0])
    np.testing.assert_array_equal(derive(pow, 0.0, 1.0)[1], [1, 0])
    np.testing.assert_array_equal(derive(pow, 0.0, 2.0)[1], [0, 0])
    np.testing.assert_array_equal(derive(pow, 0.0, 0.5)[1], [INF, 0])
    np.testing.assert_array_equal(derive(pow, 0.0, -1.0)[1], [-INF, -INF])
    np.testing.assert_array_equal(derive(pow, 0.0, 2.0)[2], [[2, 0], [0, 0]])


def test_powers_of_infinity_that_vanish() -> None:
    """Nothing is left of `inf^b` for b below 0, in either argument: `a^b log(a)` tends to 0."""
    value, gradient, _ = derive(pow, INF, -1.0)
    assert value == 0
    np.testing.assert_array_equal(gradient, [0, 0])


def test_power_of_a_negative_base_has_no_derivative_by_the_exponent() -> None:
    value, gradient, _ = derive(pow, -2.0, 3.0)
    assert value == -8
    assert gradient[0] == 12
    assert np.isnan(gradient[1])


# -- hypot and atan2 -----------------------------------------------------------------------------
def test_hypot_at_the_origin_has_gradient_zero() -> None:
    value, gradient, _ = derive(hypot, 0.0, 0.0)
    assert value == 0
    np.testing.assert_array_equal(gradient, [0, 0])


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_hypot_and_atan2_do_not_overflow(scale: float) -> None:
    value, gradient, _ = derive(hypot, 3 * scale, -4 * scale)
    np.testing.assert_allclose(value, 5 * scale, rtol=1e-15)
    np.testing.assert_allclose(gradient, [0.6, -0.8], rtol=1e-15)
    value, gradient, _ = derive(atan2, 3 * scale, -4 * scale)
    np.testing.assert_allclose(value, math.atan2(3, -4), rtol=1e-15)
    np.testing.assert_allclose(gradient, [-4 / 25 / scale, -3 / 25 / scale], rtol=1e-14)


def test_hypot_on_an_axis() -> None:
    """Second derivative 1/|a| across the axis."""
    np.testing.assert_array_equal(derive(hypot, 2.0, 0.0)[2], [[0, 0], [0, 0.5]])
    np.testing.assert_array_equal(derive(atan2, 0.0, 2.0)[1], [0.5, 0])
    np.testing.assert_array_equal(derive(atan2, 0.0, 2.0)[2], [[0, -0.25], [-0.25, 0]])
    np.testing.assert_array_equal(derive(atan2, 0.0, 0.0)[1], [0, 0])


# -- division ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("a", "b"), [(3.0, 1e200), (1e-200, 1e-200), (1e300, 1e300), (2.0, -1e160)]
)
def test_division_does_not_square_its_denominator(a: float, b: float) -> None:
    _, gradient, _ = derive(div, a, b)
    np.testing.assert_allclose(gradient, [1 / b, -a / b / b], rtol=1e-15)


def test_quotient_of_equal_numbers() -> None:
    assert derive(lambda x: x / x, 1e-150) == (1, 0, 0)


def test_float32_is_as_sound() -> None:
    value, gradient, hessian = derive(lambda x: where(x > 0, x * log(x), x * x), 0.0, dtype=float32)
    assert (value, gradient[0], hessian[0, 0]) == (0, 0, 2)
    _, gradient, _ = derive(div, 3.0, 1e20, dtype=float32)
    np.testing.assert_allclose(gradient, [1e-20, -3e-40], rtol=1e-4)
