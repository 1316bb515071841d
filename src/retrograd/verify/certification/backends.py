"""Values and slopes on each backend: against the reference, and in units in the last place of the
exact ones over the whole range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.backend_registry import compile_graph
from retrograd.ir import Graph, Node
from retrograd.lazy_import import need
from retrograd.verify.certification import multiprecision
from retrograd.verify.certification.certificate import FAILED, NONE, PASSED, Evidence
from retrograd.verify.certification.subject import Subject
from retrograd.verify.rule_checks import Array, gradients, placeholders

KIND = "backends"
AGREEMENT = 1e-10  # of a gradient with that of the reference, relative to its largest element
DIGITS = 400  # that tell what a sigmoid lacks of 1
POINTS = 48  # of the range
MOST_ULPS = 64.0
LARGEST = 60  # the power of two of the largest numbers and, negated, of the smallest


def agreement(subject: Subject, i: int, backends: Sequence[str]) -> Evidence:
    """Value and gradient on each backend against the reference."""
    ends = [*subject.ends, *gradients(subject.scalar(0), [subject.inputs[i]])]
    graph = Graph(subject.inputs, ends)
    expected = subject.run(graph, subject.arrays)
    worst, count = 0.0, 0
    for backend in backends:
        if backend == "reference":
            continue
        found = compile_graph(graph, backend)(list(subject.arrays))
        for k, (y, r) in enumerate(zip(found, expected, strict=True)):
            off = apart(np.asarray(y), np.asarray(r))
            count += np.size(r)
            worst = max(worst, off)
            if not off <= AGREEMENT:
                what = "gradient" if k == len(ends) - 1 else f"output {k}"
                said = f"the {what} on {backend} is {off:.3g} from the reference's"
                return Evidence(KIND, FAILED, count, off, said)
    if not count:
        return Evidence(KIND, NONE, detail="the reference alone")
    return Evidence(KIND, PASSED, count, worst, f"relative, {', '.join(backends)}")


def apart(found: Array, expected: Array) -> float:
    """The largest difference, relative to the larger of 1 and the largest expected element."""
    if found.shape != expected.shape:
        return float("inf")
    with np.errstate(all="ignore"):
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        scale = max(1.0, float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0)))
        off = np.where(same, 0.0, np.abs(found - expected)) / scale
    return float(np.max(np.where(np.isnan(off), np.inf, off), initial=0))


def over_range(
    op: Any, meaning: Any, i: int, columns: Sequence[Array], backends: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """For each backend the largest error of values, and of slopes by input i, at the points, in
    ulps of the exact numbers; points at which the function has no real value are left out."""
    mp = need("mpmath", "a certificate in ulps").mp
    inputs = placeholders(columns)
    y = op(*inputs)
    g = _slope(y, inputs[i])
    graph = Graph(inputs, [y, g])
    with mp.workdps(DIGITS):
        points = zip(*(c.tolist() for c in columns), strict=True)
        exact = [_exact(mp, meaning, i, point) for point in points]
        result = {}
        for backend in backends:
            values, slopes = compile_graph(graph, backend)(list(columns))
            worst = [0.0, 0.0]
            for k, both in enumerate(exact):
                if both is None:
                    continue
                for j, number in enumerate((values[k], slopes[k])):
                    worst[j] = max(worst[j], _ulps(mp, float(number), both[j]))
            result[backend] = (worst[0], worst[1])
    return result


def whole_range(name: str, count: int) -> list[Array]:
    """Numbers of both signs and all magnitudes, a column for each argument."""
    rng = np.random.default_rng(list(name.encode()))
    size = (count, POINTS)
    magnitude = np.exp2(rng.uniform(-LARGEST, LARGEST, size))
    near = rng.uniform(-3, 3, size)
    signs = rng.choice([-1.0, 1.0], size)
    return list(np.where(rng.random(size) < 0.5, near, signs * magnitude))


def _slope(y: Node, x: Node) -> Node:
    (g,) = gradients(multiprecision.total(y), [x])
    return g


def _exact(mp: Any, meaning: Any, i: int, point: Sequence[float]) -> tuple[Any, Any] | None:
    xs = [mp.mpf(v) for v in point]
    h = min(abs(xs[i]), 1) * mp.mpf(10) ** -20
    moved = [[x + s * h if k == i else x for k, x in enumerate(xs)] for s in (1, -1)]
    try:
        value, above, below = (meaning(*at) for at in (xs, *moved))
    except (ValueError, TypeError, ArithmeticError, NotImplementedError):
        return None
    if not all(isinstance(v, mp.mpf) and mp.isfinite(v) for v in (value, above, below)):
        return None
    return value, (above - below) / (2 * h)


def _ulps(mp: Any, found: float, exact: Any) -> float:
    info = np.finfo(np.float64)
    if abs(exact) > float(info.max):
        return 0.0 if np.isinf(found) else float("inf")
    if not np.isfinite(found):
        return float("inf")
    unit = np.spacing(max(abs(float(exact)), float(info.tiny)))
    return float(abs(mp.mpf(found) - exact) / mp.mpf(float(unit)))
