"""Bounds and constraints on trees, in the form in which `scipy.optimize` takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.dispatch import ArrayLike
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.creation import tensor
from retrograd.functions.elementwise import astype
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import float64
from retrograd.lazy_import import need
from retrograd.solvers.flat import flat
from retrograd.transforms.jacobian import dense_hessian, dense_jacobian
from retrograd.transforms.jit.jit import jit

Array = np.ndarray[Any, Any]
KINDS = {"eq": 0.0, "ineq": np.inf}  # and the highest value


class _Pair:
    """A lower and an upper bound, which is a leaf of a tree."""

    def __init__(self, low: Any, high: Any) -> None:
        self.low = -np.inf if low is None else np.asarray(low, np.float64)
        self.high = np.inf if high is None else np.asarray(high, np.float64)


def bounds_of(bounds: Any, x0: Any, what: str) -> Any:
    """SciPy's `Bounds` for the vector of the floating leaves of x0; None for none. See `minimize`
    for what bounds are."""
    optimize = need("scipy.optimize", what)
    if bounds is None or isinstance(bounds, optimize.Bounds):
        return bounds
    arrays = [x if isinstance(x, Tensor) else tensor(x) for x in pytree.flatten(x0)[0]]
    if len(arrays) == 1 and isinstance(bounds, list | tuple) and not _is_pair(bounds):
        pairs = [_paired(b, what) for b in bounds]
        if not all(isinstance(p, _Pair) for p in pairs) or len(pairs) != arrays[0].size:
            raise ShapeError(
                f"{what}: {len(pairs)} bounds for {arrays[0].size} elements; give one pair "
                "(lower, upper) for all, or one for each element"
            )
        return optimize.Bounds([float(p.low) for p in pairs], [float(p.high) for p in pairs])
    try:
        pairs = pytree.spread(_paired(bounds, what), x0)
    except ValueError as error:
        raise OptionError(
            f"{what}: bounds are a pair (lower, upper), or a tree like the start with such pairs: "
            f"{error}"
        ) from None
    low: list[Array] = []
    high: list[Array] = []
    for pair, x in zip(pairs, arrays, strict=True):
        if not x.dtype.is_float:
            continue  # kept as it is
        for found, bound in ((low, pair.low), (high, pair.high)):
            try:
                found.append(np.broadcast_to(bound, x.value().shape).ravel())
            except ValueError:
                raise ShapeError(
                    f"{what}: a bound of the shape {np.shape(bound)} does not broadcast to "
                    f"{x.shape}"
                ) from None
    return optimize.Bounds(np.concatenate(low), np.concatenate(high))


def _is_pair(b: Any) -> bool:
    parts = (list, tuple, dict)
    return isinstance(b, list | tuple) and len(b) == 2 and not any(isinstance(x, parts) for x in b)


def _paired(bounds: Any, what: str) -> Any:
    """Bounds with pairs as leaves."""
    if bounds is None:
        return _Pair(None, None)
    if _is_pair(bounds):
        return _Pair(*bounds)
    if isinstance(bounds, Mapping):
        return {key: _paired(b, what) for key, b in bounds.items()}
    if isinstance(bounds, list | tuple):
        return type(bounds)([_paired(b, what) for b in bounds])
    raise OptionError(f"{what}: bounds are pairs (lower, upper), not {bounds!r:.60}")


class Constrained:
    """A function of a tree as one of a vector to vectors, with exact derivatives, compiled."""

    def __init__(self, f: Callable[[Any], Any], back: Callable[[Tensor], Any], what: str) -> None:
        def values(v: ArrayLike) -> Any:
            return astype(flat(f(back(v)), f"{what}: a constraint")[0], float64)

        def along(v: ArrayLike, weights: ArrayLike) -> Any:
            return dense_hessian(lambda v: (values(v) * weights).sum())(v)

        self._values = jit(values)
        self._jacobian = jit(dense_jacobian(values))
        self._hessian = jit(along)

    def fun(self, v: Array) -> Array:
        return np.array(self._values(np.asarray(v, np.float64)).numpy())

    def jac(self, v: Array) -> Array:
        return np.array(self._jacobian(np.asarray(v, np.float64)).numpy())

    def hess(self, v: Array, weights: Array) -> Array:
        """The Hessian of the sum of the values with weights."""
        given = np.asarray(v, np.float64), np.asarray(weights, np.float64)
        return np.array(self._hessian(*given).numpy())


def constraints_of(
    constraints: Any, back: Callable[[Tensor], Any], method: str, what: str
) -> list[Any]:
    """SciPy's constraints on the vector for those on the tree, with the derivatives that the method
    asks for."""
    optimize = need("scipy.optimize", what)
    one = Mapping, optimize.LinearConstraint, optimize.NonlinearConstraint
    found: list[Any] = []
    for c in [constraints] if isinstance(constraints, one) else constraints:
        if isinstance(c, optimize.LinearConstraint):
            found.append(c)
            continue
        if isinstance(c, optimize.NonlinearConstraint):
            own, low, high = Constrained(c.fun, back, what), c.lb, c.ub
            more: dict[str, Any] = {"keep_feasible": c.keep_feasible}
        elif isinstance(c, Mapping) and c.get("type") in KINDS and callable(c.get("fun")):
            own, low, high = Constrained(c["fun"], back, what), 0, KINDS[c["type"]]
            more = {}
        else:
            raise OptionError(
                f"{what}: a constraint is {{'type': 'eq' or 'ineq', 'fun': a function}}, or "
                f"SciPy's NonlinearConstraint or LinearConstraint, not {c!r:.80}"
            )
        if method == "trust-constr":
            more |= {"jac": own.jac, "hess": own.hess}
        elif method == "SLSQP":
            more = {"jac": own.jac}
        else:
            more = {}
        found.append(optimize.NonlinearConstraint(own.fun, low, high, **more))
    return found
