"""The values that a run would have had without rounding: by mpmath, or in float64.

mpmath computes each operation of the run in decimal digits as many as asked for, on arrays of its
numbers; what moves elements does so by its NumPy meaning. No rule or kernel of the library takes
part in arithmetic here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import BackendError
from retrograd.ir import Node, Trait, apply, interpret
from retrograd.ops.control import Draw
from retrograd.ops.elementwise import Cast
from retrograd.ops.linalg import LU, Det, Inv, Solve
from retrograd.ops.sort import Sort
from retrograd.verify.rounding_error.formats import Array
from retrograd.verify.rounding_error.straight_line import StraightLine

Numbers = np.ndarray[Any, Any]  # of mpmath's


def in_dtype(run: StraightLine, dtype: Any) -> list[Array]:
    """The outputs of a run, with another floating dtype throughout."""

    def value(node: Node, given: Sequence[Any]) -> Any:
        cast = isinstance(node.prim, Cast) and node.dtype.is_float
        return _as(given[0] if cast else apply(node, given), dtype)

    with np.errstate(all="ignore"):
        return interpret(run.graph, [_as(run.values[x], dtype) for x in run.graph.inputs], value)


def _as(x: Any, dtype: Any) -> Any:
    """Floats in a dtype; what is whole or boolean stays."""
    x = np.asarray(x)
    return x if x.dtype.kind in "biu" else x.astype(dtype)


def difference(value: Any, exact: Any) -> Array:
    """How far floats are off exact values; what is NaN on one side only, infinitely."""
    value, exact = np.asarray(value), np.asarray(exact)
    if exact.dtype != object:
        wide = value.astype(np.float64)
        with np.errstate(all="ignore"):
            off = np.abs(wide - exact)
        alike = (wide == exact) | (np.isnan(wide) & np.isnan(exact))
        return np.where(alike, 0.0, np.where(np.isnan(off), np.inf, off))
    mp = mpmath()

    def off_by(a: Any, b: Any) -> float:
        if mp.isnan(a) or mp.isnan(b):
            return 0.0 if mp.isnan(a) and mp.isnan(b) else float("inf")
        if a == b:
            return 0.0
        return (
            float(abs(mp.fsub(a, b, exact=True)))
            if mp.isfinite(a) and mp.isfinite(b)
            else float("inf")
        )

    return np.asarray(np.frompyfunc(off_by, 2, 1)(numbers(value), exact), np.float64)


def floats(exact: Any) -> Array:
    """Exact values, rounded to float64."""
    return np.asarray(exact).astype(np.float64)


def operations(run: StraightLine) -> int:
    """How many numbers mpmath would have to compute."""
    total = 0
    for node in run.graph.body:
        types = [x.type for x in node.inputs]
        if not node.dtype.is_inexact or Trait.FREE in node.prim.traits:
            continue
        cost = node.prim.flops(node.type, *types)
        each = 20 if Trait.TRANSCENDENTAL in node.prim.traits else 1
        total += each * int(cost)
    return total


def unknown_to_mpmath(run: StraightLine) -> Node | None:
    """The first node that `in_mpmath` has no meaning for."""
    factors: set[Node] = set()  # and what is made of them: not computed, see `lu`
    for node in run.graph.body:
        if not _is_known(node):
            return node
        by_others = isinstance(node.prim, Solve | Inv | Det)
        if isinstance(node.prim, LU) or (not by_others and factors.intersection(node.inputs)):
            factors.add(node)
    return next((y for y in run.graph.outputs if y in factors), None)


def _is_known(node: Node) -> bool:
    if not node.dtype.is_inexact and not any(x.dtype.is_inexact for x in node.inputs):
        return True
    return node.op in MEANINGS or node.op in SCALARS or _moves(node) or _is_given(node)


def in_mpmath(run: StraightLine, digits: int) -> list[Numbers]:
    """The outputs of a run, computed in so many decimal digits, as arrays of mpmath's numbers.

    Raises `BackendError` where mpmath is not installed, or has no such operation.
    """
    mp = mpmath()
    missing = unknown_to_mpmath(run)
    if missing is not None:
        raise BackendError(
            f"mpmath has no meaning for {missing.describe()}; take reference='float64' or None"
        )
    with mp.workdps(digits):
        arrays = [numbers(run.values[x]) for x in run.graph.inputs]
        return interpret(run.graph, arrays, lambda node, xs: _value(node, xs, run))


def mpmath() -> Any:
    """The module, or a `BackendError` that says how to get it."""
    try:
        import mpmath
    except ImportError as error:
        raise BackendError(
            "the exact values are computed by mpmath, which is not installed: "
            "pip install 'retrograd[verify]', or take reference='float64' or None"
        ) from error
    return mpmath


def numbers(x: Any) -> Any:
    """An array of floats as mpmath's numbers, exactly; of others as it is."""
    x = np.asarray(x)
    if x.dtype.kind in "biu":
        return x
    convert = mpmath().mpf
    flat = [convert(float(v)) for v in x.astype(np.float64).reshape(-1)]
    found = np.empty(len(flat), object)
    found[:] = flat
    return found.reshape(x.shape)


def _value(node: Node, xs: Sequence[Any], run: StraightLine) -> Any:
    if _is_given(node):
        return numbers(run.values[node])
    if not any(x.dtype == object for x in xs):
        value = np.asarray(apply(node, xs))
        return numbers(value) if node.dtype.is_float else value
    if isinstance(node.prim, Sort):
        found = _sorted(node, *xs)
    elif node.op in MEANINGS:
        found = MEANINGS[node.op](node, *xs)
    elif node.op in SCALARS:
        found = _each(SCALARS[node.op](mpmath()), *xs)
    else:
        found = _moved(node, xs)
    found = np.asarray(found, object if node.dtype.is_inexact else None)
    if not node.dtype.is_inexact and found.dtype == object:
        found = found.astype(node.dtype.dtype)
    return found


FIRST = 2.0**45  # numbers of elements begin here: no value that an op fills in is one of them


def _moved(node: Node, xs: Sequence[Any]) -> Any:
    """What an op makes of its operands that moves elements: its NumPy meaning, of the numbers of
    elements."""
    pool: list[Any] = []
    given = []
    for x in xs:
        if x.dtype != object:
            given.append(x)
            continue
        given.append(FIRST + np.arange(len(pool), len(pool) + x.size, dtype=float).reshape(x.shape))
        pool += list(x.reshape(-1))
    at = np.asarray(apply(node, given), np.float64)
    make = mpmath().mpf
    flat = [pool[int(k - FIRST)] if k >= FIRST else make(float(k)) for k in at.reshape(-1)]
    found = np.empty(len(flat), object)
    found[:] = flat
    return found.reshape(at.shape)


def _each(f: Callable[..., Any], *xs: Any) -> Any:
    found = np.frompyfunc(f, len(xs), 1)(*xs)
    return np.asarray(found, object)


def _is_given(node: Node) -> bool:
    """Whether a value is what it was in the run: it is drawn, or has no operands."""
    return not node.inputs or isinstance(node.prim, Draw)


def _moves(node: Node) -> bool:
    """Whether an op moves elements only, so that its meaning in NumPy serves for any."""
    return Trait.DETERMINED in node.prim.traits


# -- scalars --------------------------------------------------------------------------------------

Scalar = Callable[[Any], Callable[..., Any]]


def _guarded(f: Callable[..., Any], mp: Any) -> Callable[..., Any]:
    """Poles are infinite, and what is no real number is NaN, as for floats."""

    def g(*xs: Any) -> Any:
        if any(mp.isnan(x) for x in xs):
            return mp.nan
        try:
            y = f(*xs)
        except (ZeroDivisionError, ValueError, OverflowError):
            return mp.nan
        return mp.nan if isinstance(y, mp.mpc) and y.imag != 0 else mp.mpf(y.real)

    return g


def _named(name: str) -> Scalar:
    return lambda mp: _guarded(getattr(mp, name), mp)


def _divided(mp: Any) -> Callable[..., Any]:
    def divide(a: Any, b: Any) -> Any:
        if b == 0:
            return mp.nan if a == 0 or mp.isnan(a) else mp.sign(a) * mp.inf
        return a / b

    return divide


def _logarithm(base: Any = None) -> Scalar:
    def made(mp: Any) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            return -mp.inf if x == 0 else mp.log(x) if base is None else mp.log(x, base)

        return _guarded(f, mp)

    return made


def _written(f: Callable[..., Any]) -> Scalar:
    """A function of mpmath and the operands."""
    return lambda mp: _guarded(lambda *xs: f(mp, *xs), mp)


SCALARS: dict[str, Scalar] = {}
SCALARS.update({
    **{name: _named(name) for name in (
        "acosh", "asinh", "atanh", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "exp",
        "expm1", "log1p", "erf", "erfc", "hypot", "asin", "acos", "atan", "gamma",
    )},
    "add": lambda mp: lambda a, b: a + b,
    "sub": lambda mp: lambda a, b: a - b,
    "mul": lambda mp: lambda a, b: a * b,
    "zmul": lambda mp: lambda a, b: a if a == 0 else a * b,
    "zzmul": lambda mp: lambda a, b: mp.mpf(0) if a == 0 or b == 0 else a * b,
    "div": _divided,
    "zdiv": lambda mp: lambda a, b: a if a == 0 else _divided(mp)(a, b),
    "neg": lambda mp: lambda a: -a,
    "abs": lambda mp: abs,
    "reciprocal": lambda mp: lambda a: _divided(mp)(mp.mpf(1), a),
    "rsqrt": _written(lambda mp, x: mp.inf if x == 0 else 1 / mp.sqrt(x)),
    "cbrt": _written(lambda mp, x: mp.sign(x) * mp.cbrt(abs(x))),
    "exp2": _written(lambda mp, x: mp.mpf(2) ** x),
    "log": _logarithm(),
    "log2": _logarithm(2),
    "log10": _logarithm(10),
    "pow": _written(lambda mp, a, b: mp.power(a, b)),
    "atan2": _written(lambda mp, a, b: mp.atan2(a, b)),
    "sech2": _written(lambda mp, x: mp.sech(x) ** 2),
    "sigmoid": _written(lambda mp, x: 1 / (1 + mp.exp(-x))),
    "softplus": _written(lambda mp, x: mp.log1p(mp.exp(x))),
    "logaddexp": _written(lambda mp, a, b: mp.log(mp.exp(a) + mp.exp(b))),
    "relu": lambda mp: lambda x: x if not x <= 0 else mp.mpf(0),
    "sign": lambda mp: lambda x: mp.sign(x),
    "copysign": lambda mp: lambda a, b: abs(a) if b >= 0 else -abs(a),
    "floor": lambda mp: lambda x: x if not mp.isfinite(x) else mp.floor(x),
    "ceil": lambda mp: lambda x: x if not mp.isfinite(x) else mp.ceil(x),
    "trunc": lambda mp: lambda x: x if not mp.isfinite(x) else mp.sign(x) * mp.floor(abs(x)),
    "round": lambda mp: lambda x: x if not mp.isfinite(x) else mp.nint(x),
    "mod": _written(lambda mp, a, b: a - b * mp.floor(a / b)),
    "max": lambda mp: lambda a, b: a if a >= b or mp.isnan(a) else b,
    "min": lambda mp: lambda a, b: a if a <= b or mp.isnan(a) else b,
    "nextafter": lambda mp: lambda a, b: a,
    "isnan": lambda mp: lambda x: bool(mp.isnan(x)),
    "isinf": lambda mp: lambda x: bool(mp.isinf(x)),
    "isfinite": lambda mp: lambda x: bool(mp.isfinite(x)),
    "signbit": lambda mp: lambda x: bool(x < 0),
    "lgamma": _written(lambda mp, x: mp.log(abs(mp.gamma(x)))),
    "digamma": _written(lambda mp, x: mp.digamma(x)),
    "xlogy": _written(lambda mp, a, b: mp.mpf(0) if a == 0 else a * mp.log(b)),
    "xlog1py": _written(lambda mp, a, b: mp.mpf(0) if a == 0 else a * mp.log1p(b)),
    "logit": _written(lambda mp, x: mp.log(x / (1 - x))),
    "ndtr": _written(lambda mp, x: mp.ncdf(x)),
    "erfinv": _written(lambda mp, x: mp.erfinv(x)),
    "clamp": lambda mp: lambda x, lo, hi: min(max(x, lo), hi),
})  # fmt: skip


# -- arrays ---------------------------------------------------------------------------------------


def _compare(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda node, a, b: np.frompyfunc(lambda x, y: bool(f(x, y)), 2, 1)(a, b)


def _cast(node: Node, x: Any) -> Any:
    if node.dtype.is_inexact:
        return x if x.dtype == object else numbers(x.astype(np.float64))
    if node.dtype.name == "bool":
        return x != 0
    ends, is_nan = np.iinfo(node.dtype.dtype), mpmath().isnan

    def whole(v: Any) -> int:
        if is_nan(v):
            return 0
        return int(min(max(v, int(ends.min)), int(ends.max)))

    return np.frompyfunc(whole, 1, 1)(x)


def _extreme(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, x: f(x, axis=tuple(node.attrs["axes"]))


def _total(node: Node, x: Any) -> Any:
    return np.sum(x, axis=tuple(node.attrs["axes"])) + mpmath().mpf(0)


def _many(node: Node, x: Any) -> Any:
    return np.prod(x, axis=tuple(node.attrs["axes"])) * mpmath().mpf(1)


def _log_of_sum(node: Node, x: Any) -> Any:
    mp = mpmath()
    return _each(_logarithm()(mp), _total(node, _each(mp.exp, x)))


def _running(f: Callable[..., Any]) -> Callable[..., Any]:
    def value(node: Node, x: Any) -> Any:
        axis = node.attrs["axis"]
        flip = (slice(None),) * axis + (slice(None, None, -1 if node.attrs["reverse"] else 1),)
        return f(x[flip], axis=axis)[flip]

    return value


def _recurrence(node: Node, a: Any, b: Any) -> Any:
    axis, reverse = node.attrs["axis"], node.attrs["reverse"]
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    y: Any = np.empty_like(b)
    state = None
    for t in range(len(b))[:: -1 if reverse else 1]:
        state = y[t] = b[t] if state is None else a[t] * state + b[t]
    return np.moveaxis(y, 0, axis)


def _scatter_add(node: Node, x: Any, index: Any, updates: Any) -> Any:
    """By the places that the NumPy meaning puts numbers of updates to."""
    zero, y = np.zeros(x.shape), np.array(x, object)
    for k in range(updates.size):
        one = np.zeros(updates.size)
        one[k] = 1.0
        where = node.prim.reference(zero, index, one.reshape(updates.shape)) != 0
        y[where] = y[where] + updates.reshape(-1)[k]
    return y


def _matrices(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of mpmath and matrices, for stacks of them."""

    def value(node: Node, *xs: Any) -> Any:
        mp = mpmath()
        batch, shape = xs[0].shape[:-2], node.shape
        y = np.empty(shape, object)
        for i in np.ndindex(batch):
            given = [mp.matrix(x[i].tolist()) if x.ndim > len(batch) else x[i] for x in xs]
            found = f(mp, node, *given)
            if isinstance(found, mp.matrix):
                found = np.array(found.tolist(), object).reshape(shape[len(batch) :])
            y[i] = found
        return y

    return value


def _solve(mp: Any, node: Node, a: Any, f: Any, b: Any) -> Any:
    return mp.inverse(a.T if node.attrs["transpose"] else a) * b


def _triangular(mp: Any, node: Node, a: Any, b: Any) -> Any:
    """By the half that is read, of which the diagonal may count as ones."""
    n, cut = a.rows, mp.matrix(a.rows, a.rows)
    for i in range(n):
        for j in range(i, n):
            at = (i, j) if node.attrs["upper"] else (j, i)
            cut[at] = a[at]
        if node.attrs["unit"]:
            cut[i, i] = mp.mpf(1)
    return mp.inverse(cut.T if node.attrs["transpose"] else cut) * b


def _cholesky(mp: Any, node: Node, a: Any) -> Any:
    y = mp.cholesky((a + a.T) / 2)
    return y.T if node.attrs["upper"] else y


def _sorted(node: Node, x: Any) -> Any:
    """The elements in order, or the places that these come from."""
    axis = node.attrs["axis"]
    order = np.argsort(-x if node.attrs["descending"] else x, axis=axis, kind="stable")
    return np.take_along_axis(x, order, axis) if node.dtype.is_inexact else order


def _select(node: Node, c: Any, a: Any, b: Any) -> Any:
    return np.where(c.astype(bool), a, b)


MEANINGS: dict[str, Callable[..., Any]] = {}
MEANINGS.update({
    "select": _select,
    "cast": _cast,
    "eq": _compare(lambda a, b: a == b),
    "ne": _compare(lambda a, b: a != b),
    "lt": _compare(lambda a, b: a < b),
    "le": _compare(lambda a, b: a <= b),
    "gt": _compare(lambda a, b: a > b),
    "ge": _compare(lambda a, b: a >= b),
    "reduce_sum": _total,
    "reduce_prod": _many,
    "reduce_max": _extreme(np.max),
    "reduce_min": _extreme(np.min),
    "logsumexp": _log_of_sum,
    "dot_general": lambda node, a, b: node.prim.reference(a, b),
    "conv": lambda node, a, b: node.prim.reference(a, b),
    "cumsum": _running(np.cumsum),
    "cumprod": _running(np.cumprod),
    "linear_scan": _recurrence,
    "scatter_add": _scatter_add,
    "solve": _matrices(_solve),
    "triangular_solve": _matrices(_triangular),
    "lu": lambda node, a: np.zeros(node.shape, object),  # read by what solves again, exactly
    "inv": _matrices(lambda mp, node, a, f: mp.inverse(a)),
    "cholesky": _matrices(_cholesky),
    "det": _matrices(lambda mp, node, a, _: mp.det(a)),
    "logabsdet": _matrices(lambda mp, node, a, _: mp.log(abs(mp.det(a)))),
})  # fmt: skip
