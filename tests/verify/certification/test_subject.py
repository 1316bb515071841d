"""A function at a sample: derivatives of each order, in whatever precision."""

from __future__ import annotations

import numpy as np

from retrograd.ir import Graph, float64
from retrograd.ops.elementwise import Cast, mul, sin
from retrograd.ops.identity import StopGradient
from retrograd.verify.certification.subject import Subject, of_op
from retrograd.verify.rule_checks import placeholders

X = np.array([0.3, 1.7])


def test_derivatives_of_each_order():
    subject = of_op(mul, [X, X + 1], [0, 1], placeholders([X, X + 1]))
    first, second = subject.gradient(1)
    weights = first / (X + 1)
    np.testing.assert_allclose(second, weights * X)
    assert all(np.all(g == 0) for g in subject.gradient(3))


def test_evaluation_keeps_the_precision_it_is_given():
    inputs = placeholders([X])
    y = Cast(float64)(sin(inputs[0]))
    subject = Subject("f", inputs, [y], [X], [0])
    (found,) = subject.run(Graph(inputs, [y]), [X.astype(np.longdouble)])
    assert found.dtype == np.longdouble
    (found,) = subject.run(Graph(inputs, [y]), [X + 1e-30j])
    assert found.dtype == np.complex128


def test_what_the_function_holds_fixed_stays():
    (x,) = inputs = placeholders([X])
    subject = Subject("f", inputs, [mul(x, StopGradient()(x))], [X], [0])
    (found,) = subject.run(Graph(inputs, subject.outputs), [X + 1])
    np.testing.assert_array_equal(found, (X + 1) * X)
