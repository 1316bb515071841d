"""What special functions share: functions of turns, rests of series, loops."""

import mpmath
import numpy as np

from retrograd.codegen.math import double_precision
from retrograd.codegen.math.double_precision import (
    cotangent_of_turn,
    expm1_rest,
    is_odd,
    log1p_rest,
    loop,
    sine_of_turn,
    special,
)
from retrograd.codegen.math.exponential import exp
from retrograd.codegen.math.term import Term, choose
from retrograd.ir import float32
from tests.codegen.math.edges import assert_ulps, formulas, values_of


def test_sine_and_cotangent_of_turns() -> None:
    """Of large arguments too, which are reduced without error; exactly 0 at whole numbers."""
    x = np.r_[-3.25, 0.1, 0.5, 1e-300, 12345.75, 2.0**40 + 0.125, -0.3, 7 - 2.0**-50]
    sine, cotangent = formulas([sine_of_turn, cotangent_of_turn], x)
    assert_ulps(sine, lambda x: abs(mpmath.sinpi(x)), 2, x)
    # cos is computed of 1/2 - r, which is exact only where r is not tiny
    assert_ulps(cotangent, lambda x: mpmath.cospi(x) / mpmath.sinpi(x), 4, x, height=2.0**-8)
    (sine,) = formulas([sine_of_turn], [0.0, 1.0, -17.0, 2.0**60])
    assert (sine == 0).all()


def test_odd_numbers() -> None:
    def odd(x: Term) -> Term:
        return choose(is_odd(x), x.like(1), 0.0)

    x = np.r_[-3.0, -2, -1, 0, 1, 2, 2.0**52 + 1, 2.0**53, 2.0**60]
    np.testing.assert_array_equal(formulas([odd], x)[0], x % 2)


def test_rests_of_series_where_the_first_term_cancels() -> None:
    x = np.r_[2.0 ** -np.arange(1, 80, 3), -(2.0 ** -np.arange(2, 80, 3)), 0.33, 0.35, 3.0]
    # The polynomials are those of exp and log, which need fewer digits of their rests.
    exponential, logarithm = formulas([expm1_rest, log1p_rest], x)
    assert_ulps(exponential, lambda x: mpmath.expm1(x) - x, 32, x)
    assert_ulps(logarithm, lambda x: mpmath.log1p(x) - x, 32, x)


def test_loops_carry_their_state() -> None:
    """Fibonacci's numbers."""

    def step(a: Term, b: Term) -> tuple[Term, Term]:
        return b, a + b

    def fibonacci(x: Term) -> Term:
        return loop(30, step, x, x)[0]

    np.testing.assert_array_equal(formulas([fibonacci], [1.0, 2.0])[0], [1346269, 2692538])


def test_single_precision_goes_by_way_of_doubles() -> None:
    """So the result is the double's, rounded once more."""
    third = special("a.third", lambda x: x / 3.0 + 1e-9)
    x = np.linspace(1, 2, 50, dtype=np.float32)
    (y,) = values_of([lambda at, a: third(at, *a)], x, dtype=float32)
    np.testing.assert_array_equal(y, (x.astype(float) / 3 + 1e-9).astype(np.float32))


def test_functions_that_are_called_have_the_bits_of_those_written_out() -> None:
    x = np.linspace(-700, 700, 101)
    (called,) = formulas([double_precision.exp], x)
    (written,) = values_of([lambda at, a: exp(at, *a)], x)
    assert called.tobytes() == written.tobytes()
