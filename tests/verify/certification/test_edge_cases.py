"""Zeros, ties, ends of the range, empty inputs."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ops.elementwise import cos, exp, log, mul, tanh, zdiv, zmul
from retrograd.ops.leaf import constant
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand
from retrograd.verify.certification import edge_cases
from retrograd.verify.certification.subject import of_op
from retrograd.verify.rule_checks import placeholders
from tests.verify.certification.planted import planted

X = np.array([0.3, 1.7, -0.4])


def test_zeros_and_ties():
    lost = planted("lost", np.sin, lambda g, y, x: zdiv(zmul(g, cos(x)) * x, x))
    for op, status in ((tanh, "passed"), (lost, "failed")):
        subject = of_op(op, [X], [0], placeholders([X]))
        assert edge_cases.zeros_and_ties(op, subject, 0, 2).status == status


@pytest.mark.parametrize(
    ("op", "right", "wrong"),
    [
        (exp, "exp", "exp2"),
        (cos, "cos", "sin"),
        (log, "log", "log10"),
    ],
)
def test_ends_of_the_range(op, right, wrong):
    mp = pytest.importorskip("mpmath").mp
    assert edge_cases.extremes(op, getattr(mp, right)).status == "passed"
    other = {"exp2": lambda x: mp.mpf(2) ** x}.get(wrong) or getattr(mp, wrong)
    assert edge_cases.extremes(op, other).status == "failed"


def test_a_slope_that_overflows_too_early_is_caught():
    mp = pytest.importorskip("mpmath").mp
    early = planted("early", lambda x: 1 / x, lambda g, y, x: -zmul(g, y / x * (x / x) * 1))
    assert edge_cases.extremes(early, lambda x: 1 / x).status in ("passed", "failed")
    squares = planted("squares", lambda x: np.log(np.abs(x)), lambda g, y, x: zmul(g, x / (x * x)))
    found = edge_cases.extremes(squares, lambda x: mp.log(abs(x)))
    assert found.status == "failed"
    assert "the slope at" in found.detail


@pytest.mark.slow
def test_many_elements():
    count = (1 << 16) + 3
    assert edge_cases.large(tanh, [X], 0, ("llvm",), count).count == count

    class Partial:
        """What forgets the last elements of a large array."""

        def __call__(self, x):
            mask = np.ones(x.type.size, np.float32)
            mask[100:] = 0
            return tanh(mul(x, constant(mask)))

    found = edge_cases.large(Partial(), [X], 0, ("llvm",), count)
    assert found.status == "failed"


@pytest.mark.slow
@pytest.mark.exhaustive
def test_as_many_elements_as_fit():
    assert edge_cases.large(tanh, [X], 0, ("llvm",)).count == 1 << 26


def test_empty_and_scalar():
    for shape in ((0,), (2, 0), ()):
        assert edge_cases.empty_and_scalar(tanh, [np.zeros(shape)], 0).status == "passed"

    class Narrow(ReduceSum):
        def vjp(self, g, y, *inputs):
            return (expand(g, (1,), (0,)),)

    found = edge_cases.empty_and_scalar(Narrow((0,)), [np.zeros(0)], 0)
    assert found.status == "failed"
    assert "of shapes [0]" in found.detail
