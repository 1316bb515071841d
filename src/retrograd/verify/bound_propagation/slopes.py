"""What bounds of derivatives say: Lipschitz constants, directions, sensitivities.

The gradient of a program is a program, so its bounds are those of any other; these functions only
put them together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.errors import ArgumentError, DTypeError, OptionError
from retrograd.transforms.jacobian import jacrev
from retrograd.verify.bound_propagation.bounds import Bounds, bounds
from retrograd.verify.bound_propagation.box import Box

Array = np.ndarray[Any, Any]


class Direction(Enum):
    """How a result moves with an input, all over a region."""

    INCREASING = "increasing"  # it never falls
    DECREASING = "decreasing"  # it never grows
    CONSTANT = "constant"
    UNKNOWN = "unknown"  # there is no proof of one of these

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__


def sensitivity(f: Any, /, *regions: Any, **options: Any) -> Bounds:
    """Bounds of the derivatives of each element of the result by each element of the first
    argument, over a region.

    The first region is a `Box` of floats, the result of f an array. The bounds have the axes of the
    result, then those of the input; options are those of `bounds`. Where f has a kink in the region
    the slopes to both sides are inside.

    >>> import retrograd as rg
    >>> rg.verify.sensitivity(lambda x: (x * x).sum(), rg.verify.Box([1.0, -1.0], [2.0, 1.0]))
    Bounds(lower=array([ 2., -2.]), upper=array([4., 2.]))
    """
    if not callable(f):
        raise ArgumentError(f"the slopes of {f!r:.60}, a {type(f).__name__}: give a function")
    if not regions or not isinstance(regions[0], Box):
        given = type(regions[0]).__name__ if regions else "nothing"
        raise ArgumentError(
            f"slopes are those by a first argument in a Box, not {given}; put the argument first: "
            "lambda x: f(model, x)"
        )
    if regions[0].dtype.kind in "iub":
        raise DTypeError(f"a Box of {regions[0].dtype} has no slopes; make it of floats")
    found: Bounds = bounds(jacrev(f), *regions, **options)
    if not isinstance(found.lower, np.ndarray):
        leaves = len(pytree.flatten(found.lower)[0])
        raise ArgumentError(
            f"slopes are those of one array, and f returns {leaves}; choose one of them"
        )
    return found


def _matrix(f: Any, regions: Sequence[Any], options: dict[str, Any]) -> Array:
    """The largest magnitudes of slopes, a row for each element of the result."""
    low, high = sensitivity(f, *regions, **options)
    size = math.prod(regions[0].shape)
    most = np.maximum(np.abs(low), np.abs(high))
    return np.asarray(most.reshape(-1, size) if size else np.zeros((1, 0)))


def lipschitz(f: Any, /, *regions: Any, ord: float = math.inf, **options: Any) -> float:
    """A number L with `|f(x) - f(y)| <= L |x - y|` for all x and y in the first region, in exact
    arithmetic.

    In the norm of largest elements (`ord=inf`) it is the largest sum of magnitudes of a row of the
    Jacobian, in the sum of elements (`ord=1`) of a column, in the Euclidean one (`ord=2`) the
    smallest of the Frobenius norm and of the root of the product of these two. Infinite where there
    is no bound. Other regions are what else f is given; options are those of `bounds`.

    >>> import retrograd as rg
    >>> constant = rg.verify.lipschitz(lambda x: 3 * x, rg.verify.Box([-1.0, -1.0], [1.0, 1.0]))
    >>> round(constant, 6)
    3.0
    """
    if ord not in (1, 2, math.inf):
        raise OptionError(f"lipschitz with ord={ord!r}: the norms are 1, 2 and inf")
    most = _matrix(f, regions, options)
    more = 1 + 4 * (most.size + 2) * 2.0**-52  # of sums that are rounded here
    rows, columns = (float(most.sum(axis=a).max(initial=0.0)) * more for a in (1, 0))
    if ord == 1:
        return columns
    if ord == math.inf:
        return rows
    with np.errstate(over="ignore"):
        both = math.sqrt(float((most**2).sum())), math.sqrt(rows) * math.sqrt(columns)
    return float(np.nextafter(min(both) * more, math.inf))


def monotone(f: Any, /, *regions: Any, **options: Any) -> Array:
    """For each element of the result and of the first argument the `Direction` in which one moves
    the other, over a region: `increasing` and `decreasing` are proved, in exact arithmetic.

    An array of objects with the axes of the result, then those of the input.

    >>> import retrograd as rg
    >>> box = rg.verify.Box([0.5, -1.0], [2.0, 1.0])
    >>> rg.verify.monotone(lambda x: (x * x).sum(), box).tolist()
    [increasing, unknown]
    """
    low, high = sensitivity(f, *regions, **options)
    found = np.full(low.shape, Direction.UNKNOWN, dtype=object)
    found[low >= 0] = Direction.INCREASING
    found[high <= 0] = Direction.DECREASING
    found[(low == 0) & (high == 0)] = Direction.CONSTANT
    return found
