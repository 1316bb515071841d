"""Derivatives of elementwise functions in mpmath's numbers, by differences with a bound.

The function is its independent meaning, evaluated with 60 digits. Central differences with a step
of 1e-15 and of half of it err by its square, so that 24 digits are left of a first derivative;
extrapolation gives the number, the difference of the two a bound. A mixed derivative is a
difference of differences.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.ir import Graph
from retrograd.lazy_import import is_installed, need
from retrograd.ops.reduce import ReduceSum
from retrograd.verify.certification.certificate import (
    ABSENT,
    FAILED,
    NONE,
    OPEN,
    PASSED,
    Evidence,
)
from retrograd.verify.certification.diagnosis import likely_cause
from retrograd.verify.certification.subject import Subject
from retrograd.verify.rule_checks import Array, gradients

DIGITS = 60
STEPS = {1: 15, 2: 12, 3: 9}  # the step is 10 to minus this, by order
POINTS = 4
AGREEMENT = 1e-10  # relative, and to the size of the point's derivative of the first order
ABSENT_REMEDY = "needs mpmath: pip install 'retrograd[verify]'"


class Exact(NamedTuple):
    """A derivative with a bound, both numbers of mpmath's."""

    value: Any
    error: Any


def difference(mp: Any, f: Callable[..., Any], xs: Sequence[Any], by: Sequence[int]) -> Exact:
    """The derivative of f by the arguments whose numbers are in `by`, one after the other."""
    h = mp.mpf(10) ** -STEPS[len(by)]
    coarse, fine = _central(f, xs, by, h), _central(f, xs, by, h / 2)
    return Exact((4 * fine - coarse) / 3, abs(fine - coarse))


def _central(f: Callable[..., Any], xs: Sequence[Any], by: Sequence[int], h: Any) -> Any:
    total = 0
    for signs in itertools.product((1, -1), repeat=len(by)):
        at = list(xs)
        for k, sign in zip(by, signs, strict=True):
            at[k] = at[k] + sign * h
        total = total + int(np.prod(signs)) * f(*at)
    return total / (2 * h) ** len(by)


def slopes(subject: Subject, by: Sequence[int]) -> Array:
    """The rules' derivative, element by element: that of the sum of elements, again and again."""
    y = subject.outputs[0]
    node = y
    for k in by:
        (node,) = gradients(total(node), [subject.inputs[k]])
    return np.asarray(subject.run(Graph(subject.inputs, [node]), subject.arrays)[0])


def total(x: Any) -> Any:
    """The sum of all elements."""
    return ReduceSum(tuple(range(x.type.rank)))(x)


def evidence(subject: Subject, i: int, order: int, kind: str) -> Evidence | None:
    """The rule's derivative of that order by input i, pure and mixed with the other inputs, against
    the exact one; None where the meaning is not one of mpmath's numbers."""
    if not subject.elementwise or subject.meaning is None:
        return None
    if not is_installed("mpmath"):
        return Evidence(kind, ABSENT, detail=ABSENT_REMEDY)
    mp = need("mpmath", "a certificate in more digits").mp
    worst, count, bound = 0.0, 0, 0.0
    with mp.workdps(DIGITS):
        if not _takes_mpmath(mp, subject):
            return None
        for by in _orders(subject, i, order):
            found = slopes(subject, by)
            for at in list(np.ndindex(found.shape))[:POINTS]:
                xs = [mp.mpf(float(a[at])) for a in subject.arrays]
                exact = difference(mp, subject.meaning, xs, by)
                value, scale = float(mp.re(exact.value)), max(1.0, abs(float(mp.re(exact.value))))
                if not float(exact.error) <= AGREEMENT * scale:
                    return Evidence(kind, OPEN, count, None, f"a kink at {_shown(xs)}")
                off = abs(float(found[at]) - value) / scale
                worst, bound, count = max(worst, off), max(bound, float(exact.error)), count + 1
                if not off <= AGREEMENT:
                    return Evidence(
                        kind, FAILED, count, off,
                        f"the derivative by {_names(subject, by)} at {_shown(xs)} is "
                        f"{float(found[at]):.15g}, not {value:.15g}"
                        f"{_cause(mp, subject, found, by)}",
                    )  # fmt: skip
    if not count:
        return Evidence(kind, NONE, detail="the sample is empty")
    return Evidence(kind, PASSED, count, worst, f"relative, mpmath, differences within {bound:.0e}")


def _takes_mpmath(mp: Any, subject: Subject) -> bool:
    """Whether the meaning is a function of mpmath's numbers: it gives one that moves, or is a whole
    number, and does not leave the digits of floats."""
    if any(a.dtype.kind not in "f" or not a.size for a in subject.arrays):
        return False
    point = [mp.mpf(float(a.flat[0])) for a in subject.arrays]
    try:
        y = subject.meaning(*point)
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        return False
    return isinstance(y, mp.mpf | mp.mpc | int)


def _orders(subject: Subject, i: int, order: int) -> list[tuple[int, ...]]:
    """Input i, and with it whatever inputs there are."""
    others = itertools.combinations_with_replacement(subject.wrt, order - 1)
    return [(i, *rest) for rest in others]


def _cause(mp: Any, subject: Subject, found: Array, by: Sequence[int]) -> str:
    places = list(np.ndindex(found.shape))[: 4 * POINTS]
    exact = [
        float(
            mp.re(
                difference(
                    mp, subject.meaning, [mp.mpf(float(a[p])) for a in subject.arrays], by
                ).value
            )
        )
        for p in places
    ]
    return likely_cause(np.array([found[p] for p in places]), np.array(exact))


def _names(subject: Subject, by: Sequence[int]) -> str:
    return ", ".join(subject.arguments[k] for k in by)


def _shown(xs: Sequence[Any]) -> str:
    return ", ".join(f"{float(x):.17g}" for x in xs)
