"""Finite differences with a bound of their error: extrapolated, in extended precision where the
platform has it.

`D(h) = (f(x + h t) - f(x - h t)) / 2h` has an error in even powers of h, which Richardson's
extrapolation takes away one after the other while h shrinks, until rounding grows (Ridders,
Advances in Engineering Software 4, 1982). The difference between neighbours of the table that agree
best bounds the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.ir import Graph, Node
from retrograd.verify.certification.certificate import FAILED, OPEN, PASSED, Evidence
from retrograd.verify.certification.diagnosis import likely_cause
from retrograd.verify.certification.subject import Subject
from retrograd.verify.rule_checks import Array, inner

FIRST_STEP = 2.0**-5  # along directions whose elements are about 1
SHRINK = 1.5  # of the step from row to row
ROWS = 14
AGREEMENT = 1e-9  # of a derivative with differences, relative to what is added up for it
SEED = 5
SHORT = 1e-4  # steps that rounding to float32 shows in
UNEVEN = 1e-12  # more is not the rounding of float64
NOISY = 1e-2  # what is settled where values have the digits of float32
SETTLED = 1e-6  # quotients whose error may be more tell nothing
WRONG = 1e-8  # of an element, relative to the larger of 1 and the largest
ELEMENTS = 256  # that are looked at one by one to say what differs


class Estimate(NamedTuple):
    """A derivative, and a bound of its error; infinite where nothing settled."""

    value: float
    error: float


def ridders(f: Callable[[Any], Any], step: float, centred: bool = True) -> Estimate:
    """The derivative at 0 of a function of one number, which may be refused or not finite where
    the step is too large."""
    best = Estimate(np.nan, np.inf)
    above: list[Any] = []
    zero = None if centred else f(0 * step)
    power = 2 if centred else 1
    for _ in range(ROWS):
        h = step
        step = step / SHRINK
        high = f(h)
        d = (high - f(-h)) / (2 * h) if zero is None else (high - zero) / h
        if not np.isfinite(d):
            above = []
            continue
        row = [d]
        for k, before in enumerate(above, 1):
            factor = SHRINK ** (power * k)
            new = (factor * row[-1] - before) / (factor - 1)
            error = max(abs(new - row[-1]), abs(new - before))
            if error <= best.error:
                best = Estimate(float(new), float(error))
            row.append(new)
        is_settled = best.error <= AGREEMENT * max(1.0, abs(best.value))
        if is_settled and len(row) > 2 and abs(row[-1] - above[-1]) > 2 * best.error:
            break  # rounding grows
        above = row
    return best


def noise(f: Callable[[Any], Any], dtype: Any) -> float:
    """How far values are off by their rounding, where that is much more than the dtype's: a loop
    whose body computes in float32, say. Fourth differences over a short way, of which a smooth
    function has none to speak of."""
    values = np.array([f(dtype(k * SHORT)) for k in range(9)])
    bends = np.abs(np.diff(values, 4))
    if not np.all(np.isfinite(bends)):
        return 0.0
    typical = float(np.median(bends))  # at a kink a few of them are large, at rounding all are
    return typical if typical > UNEVEN * max(1.0, float(np.max(np.abs(values)))) else 0.0


def has_narrow_bodies(graph: Graph) -> bool:
    """Whether a loop or a branch computes in fewer digits than float64, whatever it is given."""
    bodies = [v for x in graph.body for v in x.prim.attrs.values() if isinstance(v, Graph)]
    inner = [x.dtype for body in bodies for x in (*body.inputs, *body.outputs)]
    return any(d.is_inexact and d.real.itemsize < 8 for d in inner)


def precision(subject: Subject, graph: Graph) -> type[Any]:
    """The widest float that the graph can be evaluated in, as far as its value shows."""
    wide = np.longdouble
    if np.finfo(wide).eps >= np.finfo(np.float64).eps:
        return np.float64
    try:
        (found,) = subject.run(graph, widened(subject.arrays, wide))
    except (TypeError, ValueError, np.linalg.LinAlgError, KeyError, AttributeError):
        return np.float64
    (expected,) = subject.run(graph, subject.arrays)
    same = np.allclose(float(found), float(expected), rtol=1e-9, atol=1e-9, equal_nan=True)
    return wide if same and np.asarray(found).dtype == wide else np.float64


def widened(arrays: Sequence[Array], wide: Any) -> list[Array]:
    """Floats in a wider dtype, complex numbers in that of twice its size."""
    kind = {"f": wide, "c": np.result_type(wide, np.complex64)}
    return [a.astype(kind[a.dtype.kind]) if a.dtype.kind in kind else a for a in arrays]


class Directional:
    """A real scalar of the subject's inputs, along directions."""

    def __init__(self, subject: Subject, s: Node) -> None:
        self.subject = subject
        self.graph = Graph(subject.inputs, [s])
        self.dtype = precision(subject, self.graph)
        self.arrays = widened(subject.arrays, self.dtype)
        self._lost: dict[int, float] = {}
        self.settled = SETTLED  # errors up to this, relative, leave something to compare with

    def at(self, i: int, t: Array) -> Callable[[Any], Any]:
        """The scalar at `x_i + h t` as a function of h."""
        x = self.arrays[i]

        def f(h: Any) -> Any:
            moved = x + self.dtype(h) * t
            try:
                (y,) = self.subject.run(
                    self.graph, [moved if k == i else a for k, a in enumerate(self.arrays)]
                )
            except np.linalg.LinAlgError:
                return self.dtype(np.nan)
            return np.real(y)[()]

        return f

    def slope(self, i: int, t: Array) -> Estimate:
        """The derivative along t; what evaluation in fewer digits loses is part of its error."""
        found = ridders(self.at(i, t), FIRST_STEP)
        return Estimate(found.value, found.error + self.lost(i))

    def lost(self, i: int) -> float:
        """What rounding of values may do to quotients, measured along a direction of all elements:
        along a single one they may not move at all."""
        if i not in self._lost:
            (t,) = directions(self.arrays[i], np.random.default_rng(SEED), 1)
            f = self.at(i, t)
            found = noise(f, self.dtype)
            if has_narrow_bodies(self.graph):
                found = max(found, 64 * float(np.finfo(np.float32).eps) * max(1.0, abs(f(0.0))))
            self._lost[i] = float(found) / FIRST_STEP
            self.settled = NOISY if any(self._lost.values()) else SETTLED
        return self._lost[i]

    def sides(self, i: int, t: Array) -> tuple[Estimate, Estimate]:
        """The derivatives to both sides, of which a kink has two."""
        f = self.at(i, t)
        right = ridders(f, FIRST_STEP, centred=False)
        left = ridders(lambda h: f(-h), FIRST_STEP, centred=False)
        lost = self.lost(i)
        return Estimate(-left.value, left.error + lost), Estimate(right.value, right.error + lost)


def directions(x: Array, rng: np.random.Generator, count: int) -> list[Array]:
    """Random directions, of which no element is near zero."""

    def one() -> Array:
        return rng.uniform(0.5, 1.5, x.shape) * rng.choice([-1.0, 1.0], x.shape)

    return [one() + 1j * one() if x.dtype.kind == "c" else one() for _ in range(count)]


def evidence(
    subject: Subject, i: int, order: int, kind: str, agreement: float = AGREEMENT
) -> Evidence:
    """The rules' derivative of that order by input i, against differences of one order less."""
    found = subject.gradient(order)[list(subject.wrt).index(i)]
    scalar = Directional(subject, subject.scalar(order - 1))
    rng = np.random.default_rng(order)
    worst, count = 0.0, 0
    name = scalar.dtype.__name__
    for t in directions(subject.arrays[i], rng, 2 if order == 1 else 1):
        ours, slope = float(inner(found, t)), scalar.slope(i, t)
        scale = max(1.0, abs(slope.value), float(np.sum(np.abs(found * t)) if found.size else 0.0))
        off = abs(ours - slope.value)
        settled = slope.error <= scalar.settled * scale
        if not settled or not off <= agreement * scale + 10 * slope.error:
            return _by_element(scalar, i, found, Evidence(kind, OPEN, count, None, ""), order)
        count += 1
        worst = max(worst, off / scale)
    return Evidence(kind, PASSED, count, worst, f"relative, {name}")


def _by_element(
    scalar: Directional, i: int, found: Array, so_far: Evidence, order: int
) -> Evidence:
    """Where the derivative along a direction differs, or does not settle: the elements of the
    gradient one by one. At a kink each has to be between the slopes on both sides."""
    expected, errors = elements(scalar, i)
    known = np.isfinite(errors)
    size = max(1.0, float(np.max(np.abs(expected[known]), initial=0)))
    wrong = known & ~(np.abs(found - expected) <= WRONG * size + 10 * errors)
    kinks, open_ = [], ""
    unsettled = np.isinf(errors) | (errors > scalar.settled * size)
    for at in map(tuple, np.argwhere(wrong | unsettled)):
        kink = _kink(scalar, i, at)
        if kink is None:
            open_ = open_ or ("" if wrong[at] else "the quotients do not settle")
            continue
        low, high = kink
        room = SETTLED * max(1.0, abs(low), abs(high))
        place = f"a kink at {_place(at)}: slopes {low:.6g} and {high:.6g} on its sides"
        wrong[at] = not low - room <= found[at] <= high + room
        kinks.append(f"{place}; the rule gives {found[at]:.6g}")
    count = so_far.count + int(known.sum())
    worst = float(np.max(np.abs(np.where(wrong, found - expected, 0)), initial=0))
    if wrong.any():
        said = _difference(scalar.subject.arguments[i], order, found, expected, known, wrong)
        return Evidence(so_far.kind, FAILED, count, worst, "; ".join([said, *kinks[:1]]))
    if open_ or not kinks:
        said = open_ or "along a direction it differs, element by element it does not"
        return Evidence(so_far.kind, OPEN, count, None, said)
    return Evidence(so_far.kind, PASSED, count, None, kinks[0])


def _kink(scalar: Directional, i: int, at: tuple[int, ...]) -> tuple[float, float] | None:
    """The slopes on both sides of an element, the lower first, where they differ."""
    if scalar.subject.arrays[i].dtype.kind != "f":
        return None
    unit = np.zeros(scalar.subject.arrays[i].shape)
    unit[at] = 1.0
    left, right = scalar.sides(i, unit)
    room = scalar.settled * max(1.0, abs(left.value), abs(right.value))
    apart = abs(left.value - right.value) - 10 * (left.error + right.error)
    if not (left.error <= room and right.error <= room) or apart <= room:
        return None
    low, high = sorted((left.value, right.value))
    return low, high


def _place(at: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, at))}]" if at else "the input"


def _difference(
    argument: str, order: int, found: Array, expected: Array, known: Array, wrong: Array
) -> str:
    """What differs: the element that is worst, both numbers, and what may be the cause."""
    apart = np.abs(np.where(wrong, found - expected, 0))
    apart = np.where(np.isnan(apart), np.inf, apart)
    at = tuple(int(k) for k in np.unravel_index(int(np.argmax(apart)), apart.shape))
    return (
        f"the order {order} derivative by {argument} differs from finite differences in "
        f"{int(wrong.sum())} of {int(known.sum())} elements; at {_place(at)} it is "
        f"{found[at]:.12g}, not {expected[at]:.12g}, {apart[at]:.3g} off"
        f"{likely_cause(found, expected, known)}"
    )


def elements(scalar: Directional, i: int) -> tuple[Array, Array]:
    """The gradient by differences, and bounds of its errors: NaN beyond the first ones of many,
    which are not looked at."""
    x = scalar.subject.arrays[i]
    complex_ = x.dtype.kind == "c"
    expected: Any = np.zeros(x.shape, np.complex128 if complex_ else np.float64)
    errors = np.full(x.shape, np.nan)
    for at in list(np.ndindex(x.shape))[:ELEMENTS]:
        unit = np.zeros(x.shape)
        unit[at] = 1.0
        expected[at], errors[at] = scalar.slope(i, unit)
        if complex_:
            imaginary = scalar.slope(i, 1j * unit)
            expected[at] += 1j * imaginary.value
            errors[at] += imaginary.error
    return expected, errors
