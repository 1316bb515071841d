"""Properties: for which inputs a program is to be safe, and what its outputs are then.

    Property(Box(low, high), lambda y: y[3] > y)          the fourth output is the largest
    Property(box, lambda y: (y[0] <= 2) & ((y[1] > y[0]) | (y[2] > y[0])))

The function is called with the outputs as linear expressions; a comparison of arrays means all of
its elements, `.any()` some of them; `&`, `|` and `~` combine. What is proved is that the unsafe
set, the rest, is out of reach; it is a union of cases, in each of which some linear constraints
hold (disjunctive normal form).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from retrograd.errors import ArgumentError, OptionError, ShapeError
from retrograd.tuning import TUNING
from retrograd.verify.bound_propagation.box import Box, ball

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Constraint:
    """`coefficients . y + constant <= 0`, or `< 0` where it is strict."""

    coefficients: Array
    constant: float
    strict: bool

    def holds(self, y: Array) -> bool:
        """Exactly, for the numbers that y has."""
        total = Fraction(self.constant)
        for a, v in zip(self.coefficients, y, strict=True):
            if a:
                if not math.isfinite(v):
                    return False
                total += Fraction(float(a)) * Fraction(float(v))
        return total < 0 or (total == 0 and not self.strict)


@dataclass(frozen=True, eq=False)
class UnsafeCase:
    """A part of the unsafe set: inputs in a region, outputs with which all constraints hold."""

    region: int
    constraints: tuple[Constraint, ...]


class Linear:
    """Linear functions of the outputs: `coefficients @ y + constant`, an array of them."""

    __array_ufunc__ = None  # so that an array on the left leaves it to the methods here

    def __init__(self, coefficients: Array, constant: Array) -> None:
        self.coefficients = coefficients
        self.constant = constant

    @property
    def shape(self) -> tuple[int, ...]:
        return self.constant.shape

    def __len__(self) -> int:
        return len(self.constant)

    def __getitem__(self, index: Any) -> Linear:
        try:
            where = np.arange(self.constant.size).reshape(self.shape)[index]
        except IndexError as error:
            raise ShapeError(
                f"outputs of shape {self.shape} indexed by {index!r}: {error}"
            ) from None
        flat = self.coefficients.reshape(self.constant.size, -1)
        return Linear(flat[where], self.constant.ravel()[where])

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def ravel(self) -> Linear:
        """The same in one axis."""
        return Linear(self.coefficients.reshape(self.constant.size, -1), self.constant.ravel())

    def sum(self) -> Linear:
        """The sum of all elements."""
        flat = self.ravel()
        return Linear(flat.coefficients.sum(0), np.asarray(flat.constant.sum()))

    def _with(self, other: Any, sign: float) -> Linear:
        if isinstance(other, Linear):
            return Linear(
                self._rows(self.coefficients, other) + sign * self._rows(other.coefficients, self),
                self.constant + sign * other.constant,
            )
        number = _constant(other)
        total = self.constant + sign * number
        shape = (*total.shape, self.coefficients.shape[-1])
        return Linear(np.broadcast_to(self._wide(total.ndim), shape), total)

    def _rows(self, coefficients: Array, other: Linear) -> Array:
        rank = max(self.constant.ndim, other.constant.ndim)
        missing = (1,) * (rank + 1 - coefficients.ndim)
        return coefficients.reshape(*missing, *coefficients.shape)

    def _wide(self, rank: int) -> Array:
        return self.coefficients.reshape(
            *(1,) * (rank + 1 - self.coefficients.ndim), *self.coefficients.shape
        )

    def __add__(self, other: Any) -> Linear:
        return self._with(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Linear:
        return self._with(other, -1.0)

    def __rsub__(self, other: Any) -> Linear:
        return (-self)._with(other, 1.0)

    def __neg__(self) -> Linear:
        return Linear(-self.coefficients, -self.constant)

    def __mul__(self, other: Any) -> Linear:
        if isinstance(other, Linear):
            raise ArgumentError(
                "a property multiplies an output by an output: it takes linear functions of "
                "outputs; let the program compute the product, and state the property of that"
            )
        by = _constant(other)
        total = self.constant * by
        return Linear(self._wide(total.ndim) * np.asarray(by)[..., None], total)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Linear:
        return self * (1.0 / _constant(other))

    def __gt__(self, other: Any) -> Claim:
        return _compared(self - other, strict=True)

    def __ge__(self, other: Any) -> Claim:
        return _compared(self - other, strict=False)

    def __lt__(self, other: Any) -> Claim:
        return _compared(other - self, strict=True)

    def __le__(self, other: Any) -> Claim:
        return _compared(other - self, strict=False)

    def __eq__(self, other: object) -> Claim:  # type: ignore[override]
        return (self <= other) & (self >= other)

    __hash__ = None  # type: ignore[assignment]

    def __abs__(self) -> Linear:
        raise ArgumentError("abs of an output: state both sides, (y[0] < 1) & (y[0] > -1)")

    def __bool__(self) -> bool:
        raise ArgumentError("an output has no truth value: compare it, and combine with &, | and ~")

    def __repr__(self) -> str:
        return f"Linear{self.shape}"


def _constant(x: Any) -> Array:
    try:
        found = np.asarray(x.numpy() if hasattr(x, "numpy") else x, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"a property combines outputs with numbers, not with {x!r:.60}"
        ) from None
    if not np.isfinite(found).all():
        raise OptionError(f"a property with the number {x!r:.60}: numbers are finite")
    return found


def _compared(difference: Linear, strict: bool) -> Claim:
    """`difference > 0` (or >= 0) for each element; what is compared with itself is left out."""
    flat = difference.ravel()
    rows = zip(flat.coefficients, flat.constant, strict=True)
    found = [Claim("atom", atom=(a, float(c), strict)) for a, c in rows if a.any() or c != 0]
    return Claim("and", tuple(found))


class Claim:
    """A combination of comparisons with `&`, `|` and `~`."""

    def __init__(
        self, kind: str, parts: Sequence[Claim] = (), atom: tuple[Array, float, bool] | None = None
    ) -> None:
        self.kind = kind
        self.parts = tuple(parts)
        self.atom = atom

    def __and__(self, other: Claim) -> Claim:
        return Claim("and", (self, _claim(other)))

    def __or__(self, other: Claim) -> Claim:
        return Claim("or", (self, _claim(other)))

    def __invert__(self) -> Claim:
        if self.atom is not None:
            a, c, strict = self.atom
            return Claim("atom", atom=(-a, -c, not strict))
        return Claim("or" if self.kind == "and" else "and", [~p for p in self.parts])

    def all(self) -> Claim:
        """That every element is so, which a comparison means anyway."""
        return self

    def any(self) -> Claim:
        """That some element of a comparison is so."""
        return Claim("or", self.parts) if self.kind == "and" else self

    def __bool__(self) -> bool:
        raise ArgumentError(
            "a comparison of outputs has no truth value while a property is stated: write & for "
            "and, | for or, ~ for not, and two comparisons for a < y < b"
        )

    def unsafe(self) -> list[tuple[Constraint, ...]]:
        """Where it does not hold: sets of constraints, of each of which all hold."""
        return _normal(~self)


def _claim(x: Any) -> Claim:
    if not isinstance(x, Claim):
        raise ArgumentError(
            f"a comparison of outputs combined with {x!r:.60}: both are comparisons"
        )
    return x


def _normal(claim: Claim) -> list[tuple[Constraint, ...]]:
    """The disjunctive normal form."""
    if claim.atom is not None:
        a, c, strict = claim.atom  # a y + c > 0 as -a y - c < 0
        return [(Constraint(-a, -c, strict),)]
    parts = [_normal(p) for p in claim.parts]
    if claim.kind == "or":
        return [case for part in parts for case in part]
    if math.prod(map(len, parts)) > TUNING.property_cases:
        raise OptionError(
            f"the property has more than {TUNING.property_cases} cases once it is multiplied out; "
            "state it as several properties"
        )
    return [tuple(c for case in chosen for c in case) for chosen in product(*parts)]


class Property:
    """What is to be proved: for all inputs in a region the outputs are as a claim says.

    `region` is a `Box`, or a tuple of the arguments of the program, each a box, or an array that is
    taken as it is. `claim(y)` gets the outputs as linear expressions of the shape that they have (a
    tuple of them where there are several), and gives comparisons combined with `&`, `|`, `~`. A
    comparison of arrays means all elements; an element compared with itself is left out, so that
    `y[3] > y` says that the fourth is the largest.

    >>> import retrograd as rg
    >>> box = rg.verify.Box([-1.0, -1.0], [1.0, 1.0])
    >>> small = rg.verify.Property(box, lambda y: (y > -3) & (y < 3))
    >>> rg.verify.prove(lambda x: rg.relu(x) - x, small).status
    'proved'
    """

    def __init__(
        self, region: Any, claim: Callable[..., Claim], *, ball: tuple[Array, float] | None = None
    ) -> None:
        if not callable(claim):
            raise ArgumentError(
                f"the claim of a property is a function of the outputs, lambda y: y[0] > y[1], not "
                f"{claim!r:.60}"
            )
        arguments = (
            region if isinstance(region, tuple) and not hasattr(region, "_fields") else (region,)
        )
        self.regions: list[tuple[Any, ...]] = [arguments]
        self.claim = claim
        self.ball = ball  # centre and radius, where the region is that of the 2-norm

    def cases(self, shapes: Sequence[tuple[int, ...]]) -> list[UnsafeCase]:
        """The unsafe set, for outputs of these shapes."""
        made = self.claim(*outputs(shapes))
        if not isinstance(made, Claim):
            raise ArgumentError(
                f"the claim of a property gives a comparison of outputs, not {made!r:.60}"
            )
        return [UnsafeCase(0, constraints) for constraints in made.unsafe()]


def outputs(shapes: Sequence[tuple[int, ...]]) -> list[Linear]:
    """The outputs of a program, one after the other."""
    sizes = [math.prod(s) for s in shapes]
    unit, start, found = np.eye(sum(sizes)), 0, []
    for shape, size in zip(shapes, sizes, strict=True):
        rows = unit[start : start + size].reshape(*shape, len(unit))
        found.append(Linear(rows, np.zeros(shape)))
        start += size
    return found


def robust(
    x: Any, label: int, eps: float, norm: float = math.inf, clip: tuple[Any, Any] | None = None
) -> Property:
    """That no input within `eps` of x is given another class than `label`.

    `norm` is `inf` (each element changes by at most eps) or 2; `clip=(0, 1)` keeps to the values
    that inputs have. The largest output names the class; a tie counts as another.

    >>> import retrograd as rg
    >>> prop = rg.verify.robust([1.0, 0.0], label=0, eps=0.25)
    >>> rg.verify.prove(lambda x: x * 2, prop).status
    'proved'
    """
    if norm not in (2, math.inf):
        raise OptionError(f"robust in the norm {norm!r}: it is inf or 2")
    box = ball(x, eps, clip=clip)
    at = _label(label)

    def claim(*y: Linear) -> Claim:
        scores = y[0].ravel()
        if len(y) != 1 or not 0 <= at < len(scores):
            raise OptionError(
                f"robust with label={label}: the program gives {len(scores)} scores in {len(y)} "
                "outputs; the label is the position of one of them"
            )
        return scores[at] > scores

    centre = np.asarray(x.numpy() if hasattr(x, "numpy") else x, np.float64)
    return Property(box, claim, ball=(centre, float(eps)) if norm == 2 else None)


def _label(label: Any) -> int:
    try:
        return int(label.item() if hasattr(label, "item") else label.__index__())
    except (AttributeError, TypeError, ValueError):
        raise ArgumentError(
            f"robust with label={label!r:.60}: it is the position of a score"
        ) from None


__all__ = ["Box", "Claim", "Constraint", "Linear", "Property", "UnsafeCase", "outputs", "robust"]
