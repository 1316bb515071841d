"""Derivatives where inputs are zero, tied, subnormal or huge, empty, or of no axes.

At zeros and ties differences to one side still tell the truth (`verify/edges.py`). At numbers near
the ends of the range the exact derivative is mpmath's; a slope may overflow only where the exact
one does. Empty inputs and those without axes have a gradient of their shape and dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.backend_registry import compile_graph
from retrograd.errors import RetrogradError
from retrograd.ir import Graph, as_dtype
from retrograd.lazy_import import is_installed, need
from retrograd.verify import edges
from retrograd.verify.certification import multiprecision
from retrograd.verify.certification.certificate import ABSENT, FAILED, NONE, PASSED, Evidence
from retrograd.verify.certification.subject import Subject
from retrograd.verify.rule_checks import RuleError, contract, gradients, placeholders, run

KIND = "edges"
INFO = np.finfo(np.float64)
SMALL = (float(INFO.smallest_subnormal), 1e-310, float(INFO.tiny), 1e-200)
HUGE = (1e200, float(INFO.max))
DIGITS = 700  # that tell a cosine of 1e-200 from 1
AGREEMENT = 1e-9  # relative, of slopes at such numbers
LARGE = 1 << 26  # elements of what is large
LARGE_EPS = float(np.finfo(np.float32).eps)  # what vectors and what is left over may differ by


def zeros_and_ties(op: Any, subject: Subject, i: int, order: int) -> Evidence:
    """Derivatives up to an order, at most 2, where input i has zeros or equals others."""
    count = 0
    wrt = [i]
    for where, arrays in edges.edge_points(subject.arrays, wrt):
        for k in range(1, min(order, 2) + 1):
            try:
                count += edges.check_edges(op, arrays, wrt, k, where)
            except RuleError as error:
                return Evidence(KIND, FAILED, count, None, str(error))
    return Evidence(KIND, PASSED if count else NONE, count, None, "zeros and ties" if count else "")


def empty_and_scalar(op: Any, arrays: Sequence[Any], i: int) -> Evidence:
    """The gradient of inputs of no elements, or of no axes, has their shape and dtype."""
    inputs = placeholders(arrays)
    y = op(*inputs)
    try:
        s = contract([y], np.random.default_rng(0))
        (g,) = run(Graph(inputs, gradients(s, [inputs[i]])), arrays)
    except (RetrogradError, ValueError, ArithmeticError) as error:
        return Evidence(KIND, FAILED, 1, None, f"of shapes {_shapes(arrays)}: {error}")
    if (g.shape, as_dtype(g.dtype)) != (arrays[i].shape, as_dtype(arrays[i].dtype)):
        said = f"of shapes {_shapes(arrays)}: a gradient {g.dtype}{list(g.shape)}"
        return Evidence(KIND, FAILED, 1, None, said)
    return Evidence(KIND, PASSED, 1, None, "empty and 0-d")


def _shapes(arrays: Sequence[Any]) -> str:
    return ", ".join(str(list(a.shape)) for a in arrays)


def large(
    op: Any, arrays: Sequence[Any], i: int, backends: Sequence[str], size: int = LARGE
) -> Evidence:
    """The slopes of an elementwise operation at that many elements are those of a few, repeated."""
    few = [np.ravel(a).astype(np.float32) for a in arrays]
    many = [np.resize(a, size) for a in few]
    results = []
    for backend in backends:
        found = []
        for given in (few, many):
            inputs = placeholders(given)
            (g,) = gradients(multiprecision.total(op(*inputs)), [inputs[i]])
            found.append(np.asarray(compile_graph(Graph(inputs, [g]), backend)(given)[0]))
        close = np.allclose(
            found[1], np.resize(found[0], size), rtol=4 * LARGE_EPS, atol=0, equal_nan=True
        )
        if not close:
            said = f"of {size} elements the slopes on {backend} are not those of {few[0].size}"
            return Evidence(KIND, FAILED, size, None, said)
        results.append(backend)
    return Evidence(KIND, PASSED, size * len(results), None, f"{size} elements")


def extremes(op: Any, meaning: Any) -> Evidence:
    """The slope of an elementary function at subnormal and huge numbers, as far as it is real."""
    if not is_installed("mpmath"):
        return Evidence(KIND, ABSENT, detail=multiprecision.ABSENT_REMEDY)
    mp = need("mpmath", "a certificate in more digits").mp
    points = [sign * x for x in SMALL + HUGE for sign in (1.0, -1.0)]
    x = np.array(points)
    inputs = placeholders([x])
    (g,) = gradients(multiprecision.total(op(*inputs)), inputs)
    (found,) = run(Graph(inputs, [g]), [x])
    count = 0
    with mp.workdps(DIGITS):
        for value, slope in zip(points, found, strict=True):
            exact = _exact_slope(mp, meaning, value)
            if exact is None:
                continue
            count += 1
            if not _same(float(slope), exact):
                said = f"the slope at {value!r} is {float(slope)!r}, not {float(exact)!r}"
                return Evidence(KIND, FAILED, count, None, said)
    return Evidence(KIND, PASSED if count else NONE, count, None, "subnormal and huge numbers")


def _exact_slope(mp: Any, meaning: Any, x: float) -> Any:
    """None where the function has no real value around x."""
    at = mp.mpf(x)
    h = min(abs(at), 1) * mp.mpf(10) ** -15
    try:
        values = [meaning(at + k * h) for k in (1, -1)]
    except (ValueError, TypeError, ZeroDivisionError, OverflowError, NotImplementedError):
        return None
    if not all(isinstance(v, mp.mpf) and mp.isfinite(v) for v in values):
        return None
    return (values[0] - values[1]) / (2 * h)


def _same(found: float, exact: Any) -> bool:
    if abs(exact) > float(INFO.max):
        return bool(np.isinf(found)) and (found > 0) == (exact > 0)
    return abs(found - float(exact)) <= AGREEMENT * abs(float(exact)) + 4 * float(INFO.tiny)
