"""The complex step: `Im f(x + i h t) / h` for an h so small that no digit is lost, as nothing is
subtracted (Squire and Trapp, SIAM Review 40, 1998). It holds where f is analytic, which is found by
evaluation: the derivative along `i t` has to be i times that along t."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.errors import RetrogradError
from retrograd.ir import Graph
from retrograd.lazy_import import is_installed, need
from retrograd.verify.certification import multiprecision
from retrograd.verify.certification.certificate import FAILED, NONE, PASSED, Evidence
from retrograd.verify.certification.differences import directions
from retrograd.verify.certification.subject import Subject
from retrograd.verify.rule_checks import Array, inner

STEP = 1e-30
AGREEMENT = 1e-10  # relative to what is added up
ANALYTIC = 1e-5
KIND = "complex step"
REFUSED = (
    TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RuntimeError,
    np.linalg.LinAlgError, RetrogradError,
)  # fmt: skip


def evidence(subject: Subject, i: int) -> Evidence:
    """The first derivative by input i."""
    if subject.arrays[i].dtype.kind != "f":
        return Evidence(KIND, NONE, detail="the input is complex")
    if subject.elementwise and is_installed("mpmath"):
        exact = _in_mpmath(subject, i)
        if exact is not None:
            return exact
    graph = Graph(subject.inputs, [subject.scalar(0)])

    def scalar(change: Array) -> Any:
        arrays = [a + change if k == i else a for k, a in enumerate(subject.arrays)]
        return np.asarray(subject.run(graph, arrays)[0])

    (t,) = directions(subject.arrays[i], np.random.default_rng(2), 1)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what drops an imaginary part: that is found out
        try:
            refusal = _not_analytic(scalar, t)
        except REFUSED as error:
            refusal = f"its meaning does not take complex numbers ({type(error).__name__})"
        if refusal:
            return Evidence(KIND, NONE, detail=refusal)
        slope = float(np.imag(scalar(1j * STEP * t))) / STEP
    found = subject.gradient(1)[list(subject.wrt).index(i)]
    scale = max(1.0, float(np.sum(np.abs(found * t))))
    off = abs(float(inner(found, t)) - slope) / scale
    if off <= AGREEMENT:
        return Evidence(KIND, PASSED, 1, off, "relative")
    said = (
        f"the derivative along a random direction by {subject.arguments[i]} is "
        f"{float(inner(found, t)):.12g}, that by the complex step {slope:.12g}"
    )
    return Evidence(KIND, FAILED, 1, off, said)


def _in_mpmath(subject: Subject, i: int) -> Evidence | None:
    """The same of an elementwise meaning in mpmath's numbers, element by element; None where it is
    no function of these, or is not analytic."""
    mp = need("mpmath", "a complex step in more digits").mp
    found = multiprecision.slopes(subject, [i])
    worst, count = 0.0, 0
    with mp.workdps(multiprecision.DIGITS), contextlib.suppress(*REFUSED):
        h, t = mp.mpf(10) ** -20, mp.mpf(10) ** -8
        for at in list(np.ndindex(found.shape))[: multiprecision.POINTS]:
            xs = [mp.mpf(float(a[at])) for a in subject.arrays]

            def f(change: Any, xs: Any = xs) -> Any:
                moved = [x + change if k == i else x for k, x in enumerate(xs)]
                return mp.mpc(subject.meaning(*moved))

            along = (f(1j * t + h) - f(1j * t - h)) / (2 * h)
            across = (f(1j * t + 1j * h) - f(1j * t - 1j * h)) / (2 * h)
            slope = float(f(1j * h).imag / h)
            if not abs(across - 1j * along) <= ANALYTIC * max(1, abs(along)):
                return None
            off = abs(float(found[at]) - slope) / max(1.0, abs(slope))
            worst, count = max(worst, off), count + 1
            if not off <= AGREEMENT:
                where = ", ".join(f"{float(x):.17g}" for x in xs)
                said = f"the slope at {where} is {float(found[at]):.15g}, not {slope:.15g}"
                return Evidence(KIND, FAILED, count, off, said)
        return Evidence(KIND, PASSED, count, worst, "relative, mpmath") if count else None
    return None


def _not_analytic(scalar: Callable[[Array], Any], t: Array) -> str:
    """Why the step says nothing, if so. By differences in the plane, which know nothing of it."""
    h = 1e-4
    centre = 1e-3j * t  # off the line, where what looks at the sign of an imaginary part shows
    along, across = (
        (scalar(centre + h * d * t) - scalar(centre - h * d * t)) / (2 * h) for d in (1.0, 1.0j)
    )
    if not (np.iscomplexobj(along) and np.all(np.isfinite([along, across]))):
        return "its meaning does not take complex numbers"
    if abs(across - 1j * along) > ANALYTIC * max(1.0, abs(along)):
        return "it is not analytic"
    return ""
