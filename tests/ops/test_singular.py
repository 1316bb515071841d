"""Derivatives where the mathematics is singular: bad branches, zeros, poles, ties, infinities.

Each test states the exact value and the exact first and second derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrograd.autodiff import pullback
from retrograd.ir import Graph, Node, TensorType, float32, float64, full
from retrograd.ops.elementwise import (
    abs,
    acos,
    atan2,
    cbrt,
    clamp,
    cosh,
    div,
    eq,
    exp,
    hypot,
    log,
    log1p,
    logaddexp,
    max,
    min,
    mod,
    pow,
    reciprocal,
    relu,
    rsqrt,
    sigmoid,
    sin,
    softplus,
    sqrt,
    tanh,
    zdiv,
    zmul,
)
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.reduce import LogSumExp, ReduceMax, ReduceMin, ReduceProd
from retrograd.ops.shape import expand, slice_axis
from retrograd.verify.rules import run
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


# -- absolute value, relu, ties and bounds -------------------------------------------------------
def test_kinks_have_a_subgradient() -> None:
    assert derive(abs, 0.0)[1] == 0
    assert derive(abs, -2.0)[1] == -1
    assert derive(relu, 0.0)[1] == 0
    assert derive(relu, 1e-300)[1] == 1


def test_ties_of_two_share_the_gradient() -> None:
    np.testing.assert_array_equal(derive(max, 2.0, 2.0)[1], [0.5, 0.5])
    np.testing.assert_array_equal(derive(min, 2.0, 2.0)[1], [0.5, 0.5])
    np.testing.assert_array_equal(derive(max, 1.0, 2.0)[1], [0, 1])
    np.testing.assert_array_equal(derive(min, 1.0, 2.0)[1], [1, 0])
    np.testing.assert_array_equal(derive(max, -INF, -INF)[1], [0.5, 0.5])
    assert derive(lambda x: max(x, x), 3.0)[1] == 1
    assert derive(lambda x: max(x, -x), 0.0)[1] == 0


def test_a_nan_is_not_hidden_by_max() -> None:
    for f in (max, min):
        value, gradient, _ = derive(f, NAN, 1.0)
        assert np.isnan(value)
        assert gradient[0] == 1
        assert np.isnan(derive(f, 1.0, NAN)[0])


@pytest.mark.parametrize("kind", [ReduceMax, ReduceMin])
def test_ties_of_many_share_the_gradient(kind: Any) -> None:
    x = [[2.0, 1.0, 2.0, 2.0], [5.0, 5.0, 5.0, 5.0]]
    sign = 1 if kind is ReduceMax else -1
    _, gradient = vector_gradient(lambda v: total(kind((1,))(v)), sign * np.array(x))
    np.testing.assert_allclose(gradient, [[1 / 3, 0, 1 / 3, 1 / 3], [0.25] * 4])
    _, gradient = vector_gradient(lambda v: kind((0, 1))(v), np.full((2, 3), 7.0))
    np.testing.assert_allclose(gradient, np.full((2, 3), 1 / 6))


def test_a_nan_is_not_hidden_by_reduce_max() -> None:
    _, gradient = vector_gradient(lambda v: total(ReduceMax((1,))(v)), [[1.0, NAN], [1.0, 2.0]])
    assert np.isnan(gradient[0]).all()
    np.testing.assert_array_equal(gradient[1], [0, 1])


@pytest.mark.parametrize(
    ("x", "lo", "hi", "value", "gradient"),
    [
        (0.5, 0.0, 1.0, 0.5, [1, 0, 0]),
        (-1.0, 0.0, 1.0, 0.0, [0, 1, 0]),
        (2.0, 0.0, 1.0, 1.0, [0, 0, 1]),
        (0.0, 0.0, 1.0, 0.0, [0, 1, 0]),
        (1.0, 0.0, 1.0, 1.0, [0, 0, 1]),
        (0.5, 1.0, 0.0, 0.0, [0, 0, 1]),
        (-5.0, 1.0, 0.0, 0.0, [0, 0, 1]),
        (5.0, 1.0, 0.0, 0.0, [0, 0, 1]),
        (1.0, 1.0, 1.0, 1.0, [0, 0, 1]),
    ],
)
def test_clamp(x: float, lo: float, hi: float, value: float, gradient: list[float]) -> None:
    """At and beyond its bounds the input gets nothing; the bound in force gets everything."""
    found = derive(clamp, x, lo, hi)
    assert found[0] == value
    np.testing.assert_array_equal(found[1], gradient)


def test_clamp_passes_on_nan() -> None:
    value, gradient, _ = derive(clamp, NAN, 0.0, 1.0)
    assert np.isnan(value)
    np.testing.assert_array_equal(gradient, [1, 0, 0])


def test_mod_counts_the_quotient_it_took() -> None:
    """1 mod 0.1 is 0.0999..., nine times 0.1 taken away, although 1 / 0.1 rounds to 10."""
    value, gradient, _ = derive(mod, 1.0, 0.1)
    assert value == pytest.approx(0.1)
    np.testing.assert_array_equal(gradient, [1, -9])
    np.testing.assert_array_equal(derive(mod, -7.0, 3.0)[1], [1, 3])
    np.testing.assert_array_equal(derive(mod, 7.0, -3.0)[1], [1, 3])


# -- tails ---------------------------------------------------------------------------------------
def test_sigmoid_and_softplus_tails() -> None:
    for x in (-INF, -1000.0, 1000.0, INF):
        value, gradient, hessian = derive(sigmoid, x)
        assert (value, gradient[0], hessian[0, 0]) == (float(x > 0), 0, 0)
        value, gradient, hessian = derive(softplus, x)
        assert (value, gradient[0], hessian[0, 0]) == (x if x > 0 else 0, float(x > 0), 0)
    for x in (-40.0, -700.0):
        _, gradient, hessian = derive(sigmoid, x)
        np.testing.assert_allclose([gradient[0], hessian[0, 0]], math.exp(x), rtol=1e-13)
        _, gradient, _ = derive(sigmoid, -x)
        np.testing.assert_allclose(gradient[0], math.exp(x), rtol=1e-13)


def test_logaddexp_tails() -> None:
    np.testing.assert_array_equal(derive(logaddexp, -INF, 3.0)[1], [0, 1])
    np.testing.assert_array_equal(derive(logaddexp, 3.0, -INF)[1], [1, 0])
    np.testing.assert_array_equal(derive(logaddexp, INF, 3.0)[1], [1, 0])
    np.testing.assert_array_equal(derive(logaddexp, 1e5, -1e5)[1], [1, 0])
    np.testing.assert_array_equal(derive(logaddexp, 1e308, -1e308)[1], [1, 0])
    np.testing.assert_array_equal(derive(logaddexp, 5000.0, 5000.0)[1], [0.5, 0.5])
    np.testing.assert_array_equal(
        derive(logaddexp, 5000.0, 5000.0)[2], [[0.25, -0.25], [-0.25, 0.25]]
    )
    value, gradient, hessian = derive(logaddexp, -INF, -INF)
    assert value == -INF
    np.testing.assert_array_equal(gradient, [0, 0])
    np.testing.assert_array_equal(hessian, np.zeros((2, 2)))


def test_log_probabilities_of_impossible_paths() -> None:
    """log(p) of p = 0 inside a running logaddexp: no NaN comes back."""

    def f(p: Node, q: Node) -> Node:
        return logaddexp(logaddexp(log(p), log(p)), log(q))

    _, gradient, hessian = derive(f, 0.0, 0.5)
    np.testing.assert_array_equal(gradient, [0, 2])
    assert hessian[1, 1] == -4


def logsumexp(x: Node) -> Node:
    return LogSumExp((x.type.rank - 1,))(x)


def log_softmax(x: Node) -> Node:
    return x - expand(logsumexp(x), x.shape, (x.type.rank - 1,))


def test_logsumexp_tails() -> None:
    def f(x: Node) -> Node:
        return total(logsumexp(x))

    rows = [[1000.0, 1000.0], [-1000.0, -1001.0], [-INF, 2.0], [-INF, -INF], [1e308, -1e308]]
    _, gradient = vector_gradient(f, rows)
    w = 1 / (1 + math.exp(-1))
    np.testing.assert_allclose(gradient, [[0.5, 0.5], [w, 1 - w], [0, 1], [0, 0], [1, 0]])
    np.testing.assert_array_equal(vector_hessian(logsumexp, [-INF, -INF]), np.zeros((2, 2)))
    np.testing.assert_allclose(
        vector_hessian(logsumexp, [1e3, 1e3]), [[0.25, -0.25], [-0.25, 0.25]]
    )
    np.testing.assert_array_equal(vector_gradient(logsumexp, [INF, 1.0])[1], [NAN, 0])


def test_log_softmax_tails() -> None:
    """The gradient of -log p[0] is p - (1, 0, 0), also where p[0] underflows."""

    def loss(x: Node) -> Node:
        return -total(log_softmax(x) * full_like(x, [1.0, 0.0, 0.0]))

    value, gradient = vector_gradient(loss, [-2000.0, 0.0, 0.0])
    np.testing.assert_allclose(value, 2000 + math.log(2))
    np.testing.assert_allclose(gradient, [-1, 0.5, 0.5])
    value, gradient = vector_gradient(loss, [2000.0, 0.0, -2000.0])
    np.testing.assert_array_equal(gradient, [0, 0, 0])
    _, gradient = vector_gradient(lambda x: -total(part(log_softmax(x))), [1.0, 2.0, -INF])
    np.testing.assert_allclose(gradient[2], 0)


def full_like(x: Node, values: Any) -> Node:
    return constant(np.asarray(values, x.dtype.dtype))


def part(x: Node) -> Node:
    return slice_axis(x, 0, 0, 1)


# -- products ------------------------------------------------------------------------------------
def prod(x: Node) -> Node:
    return ReduceProd((0,))(x)


@pytest.mark.parametrize(
    "x",
    [[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 2.0], [5.0], [2.0] * 7],
)
def test_derivatives_of_a_product_with_zeros(x: list[float]) -> None:
    """The derivative by x[i] is the product of the others, the second one of the others but two."""
    n = len(x)
    first = [math.prod(x[:i] + x[i + 1 :]) for i in range(n)]
    second = [
        [
            0 if i == j else math.prod(v for k, v in enumerate(x) if k not in (i, j))
            for j in range(n)
        ]
        for i in range(n)
    ]
    value, gradient = vector_gradient(prod, x)
    assert value == math.prod(x)
    np.testing.assert_array_equal(gradient, first)
    np.testing.assert_array_equal(vector_hessian(prod, x), second)


def test_product_that_overflows_or_underflows() -> None:
    _, gradient = vector_gradient(prod, [1e-200, 1e-200, 1e300])
    np.testing.assert_allclose(gradient, [1e100, 1e100, 0], rtol=1e-12)


# -- empty ---------------------------------------------------------------------------------------
def test_reductions_over_nothing() -> None:
    empty = np.zeros((0,))
    for f, value in ((total, 0), (prod, 1), (logsumexp, -INF)):
        found, gradient = vector_gradient(f, empty)
        assert found == value
        assert gradient.shape == (0,)
    _, gradient = vector_gradient(lambda x: total(logsumexp(x)), np.zeros((3, 0)))
    assert gradient.shape == (3, 0)


def test_float32_is_as_sound() -> None:
    value, gradient, hessian = derive(lambda x: where(x > 0, x * log(x), x * x), 0.0, dtype=float32)
    assert (value, gradient[0], hessian[0, 0]) == (0, 0, 2)
    _, gradient, _ = derive(div, 3.0, 1e20, dtype=float32)
    np.testing.assert_allclose(gradient, [1e-20, -3e-40], rtol=1e-4)
