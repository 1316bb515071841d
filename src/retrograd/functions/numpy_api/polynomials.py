"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import ArgumentError, ShapeError
from retrograd.functions import elementwise as f
from retrograd.functions import reductions
from retrograd.functions.broadcasting import alike, as_node, integer, promote_to_float
from retrograd.functions.creation import asarray
from retrograd.functions.linalg.decompositions import eigvals
from retrograd.functions.linalg.linear_systems import lstsq
from retrograd.functions.linalg.tensor_equations import vander as ascending
from retrograd.functions.manipulation import concat, flip
from retrograd.functions.numpy_api.calculus import convolve
from retrograd.functions.searching import flat
from retrograd.ir import Dim, Node, full
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import constant
from retrograd.ops.shape import Concat, pad, reshape, slice_axis
from retrograd.tensor_type import Tensor


def _coefficients(p: Any, what: str) -> Any:
    node = as_node(p)
    node = reshape(node, (1,)) if node.type.rank == 0 else node
    if node.type.rank != 1 or isinstance(node.shape[0], Dim):
        raise ShapeError(
            f"{what} takes a vector of coefficients, whose size is not symbolic, not {node.type}"
        )
    return node


@op_function
def polyval(p: ArrayLike, x: ArrayLike) -> Any:
    """The polynomial `p[0] x**(n-1) + ... + p[n-1]` at x, by Horner's rule.

    The shape of x; the dtypes are promoted. `ShapeError` for a p that is no vector.

    >>> import retrograd as rg
    >>> rg.polyval([3, 0, 1], 5).item()
    76
    """
    c, x = alike(_coefficients(p, "polyval"), x)
    y = full(0, x.type)
    for i in range(c.shape[0]):
        y = as_node(f.add(f.multiply(y, x), reshape(slice_axis(c, 0, i, i + 1), ())))
    return y


def _both(what: str, a1: Any, a2: Any) -> tuple[Node, Node]:
    a, b = alike(_coefficients(a1, what), _coefficients(a2, what))
    n = max(a.shape[0], b.shape[0])
    a, b = (pad(c, (n - c.shape[0],), (0,)) for c in (a, b))
    return a, b


@op_function
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Any:
    """The coefficients of the sum of two polynomials.

    `[n]` and `[m]` give `[max(n, m)]`. `ShapeError` for what is no vector.

    >>> import retrograd as rg
    >>> rg.polyadd([1, 2], [9, 5, 4]).tolist()
    [9, 6, 6]
    """
    a, b = _both("polyadd", a1, a2)
    return f.add(a, b)


@op_function
def polysub(a1: ArrayLike, a2: ArrayLike) -> Any:
    """The coefficients of the difference of two polynomials.

    `[n]` and `[m]` give `[max(n, m)]`. `ShapeError` for what is no vector.

    >>> import retrograd as rg
    >>> rg.polysub([2, 10, -2], [3, 10, -4]).tolist()
    [-1, 0, 2]
    """
    a, b = _both("polysub", a1, a2)
    return f.subtract(a, b)


@op_function
def polymul(a1: ArrayLike, a2: ArrayLike) -> Any:
    """The coefficients of the product of two polynomials.

    `[n]` and `[m]` give `[n + m - 1]`. `ShapeError` for what is no vector.

    >>> import retrograd as rg
    >>> rg.polymul([1, 2], [1, -2]).tolist()
    [1, 0, -4]
    """
    return convolve(_coefficients(a1, "polymul"), _coefficients(a2, "polymul"))


def polydiv(u: ArrayLike, v: ArrayLike) -> tuple[Tensor, Tensor]:
    """The coefficients of quotient and remainder: `u = quotient v + remainder`. The remainder has
    as many coefficients as u had left, leading zeros included.

    `[n]` and `[m]` give `[n - m + 1]` and `[m - 1]`. `ShapeError` for what is no vector.

    >>> import retrograd as rg
    >>> [y.tolist() for y in rg.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])]
    [[1.5, 1.75], [0.25]]
    """
    quotient, remainder = _polydiv(u, v)
    return quotient, remainder


@op_function_of_several
def _polydiv(u: ArrayLike, v: ArrayLike, /) -> tuple[Node, Node]:
    a, b = alike(_coefficients(u, "polydiv"), _coefficients(v, "polydiv"), floating=True)
    n, m = a.shape[0], b.shape[0]
    if n < m:
        return full(0, a.type.with_shape((1,))), a
    found = []
    for k in range(n - m + 1):
        factor = slice_axis(a, 0, k, k + 1) / slice_axis(b, 0, 0, 1)
        found.append(factor)
        multiple = as_node(f.multiply(factor, b))
        a = as_node(f.subtract(a, pad(multiple, (k,), (n - m - k,))))
    rest = slice_axis(a, 0, n - m + 1, n) if m > 1 else full(0, a.type.with_shape((1,)))
    return Concat(0)(*found), rest


@op_function
def polyder(p: ArrayLike, m: int = 1) -> Any:
    """The coefficients of the m-th derivative of a polynomial.

    `[n]` to `[n - m]`. `ShapeError` for what is no vector, and a negative m.

    >>> import retrograd as rg
    >>> rg.polyder([1, 1, 1, 1]).tolist()
    [3, 2, 1]
    """
    c = _coefficients(p, "polyder")
    times = integer(m, "polyder: the order")
    if times < 0:
        raise ShapeError(f"polyder: the order is not negative, not {m}")
    for _ in range(times):
        n = c.shape[0]
        if n == 0:
            break
        powers = constant(np.arange(n - 1, 0, -1))
        c = f.multiply(slice_axis(c, 0, 0, n - 1), powers)
    return c


@op_function
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Any:
    """The coefficients of the m-th integral of a polynomial; k are the constants of integration,
    one for each time or one for all, 0 by default.

    `[n]` to `[n + m]`; integers are taken as float32. `ShapeError` for what is no vector, a
    negative m, and another number of constants.

    >>> import retrograd as rg
    >>> rg.polyint([3.0, 2.0, 1.0]).tolist()
    [1.0, 1.0, 1.0, 0.0]
    """
    c: Any = promote_to_float(_coefficients(p, "polyint"))
    times = integer(m, "polyint: the order")
    if times < 0:
        raise ShapeError(f"polyint: the order is not negative, not {m}")
    ends = flat(as_node(0 if k is None else k, c.dtype))
    if ends.shape[0] not in (1, times):
        raise ShapeError(f"polyint, {times} times: {times} constants, or one, not {ends.shape[0]}")
    for i in range(times):
        n = c.shape[0]
        j = 0 if ends.shape[0] == 1 else i
        end = slice_axis(ends, 0, j, j + 1)
        c, end = alike(f.divide(c, constant(np.arange(n, 0, -1))), end)
        c = Concat(0)(c, end)
    return c


def poly(seq_of_zeros: ArrayLike) -> Tensor:
    """The coefficients of the polynomial with these zeros and the leading coefficient 1; of a
    square matrix, those of its characteristic polynomial.

    `[n]` or `[n, n]` to `[n + 1]`; integers are taken as float32. `ShapeError` for other shapes.

    >>> import retrograd as rg
    >>> rg.poly([1.0, -1.0]).tolist()
    [1.0, 0.0, -1.0]
    """
    x: Any = asarray(seq_of_zeros)
    if x.ndim == 2:
        zeros = eigvals(x)
        found = _poly(zeros)
        return found if x.dtype.is_complex else found.real
    return _poly(x)


@op_function
def _poly(x: ArrayLike, /) -> Any:
    zeros = promote_to_float(_coefficients(x, "poly"))
    c = full(1, zeros.type.with_shape((1,)))
    for i in range(zeros.shape[0]):
        zero = slice_axis(zeros, 0, i, i + 1)
        c = pad(c, (0,), (1,)) - pad(as_node(f.multiply(c, zero)), (1,), (0,))
    return c


def roots(p: ArrayLike) -> Tensor:
    """The zeros of a polynomial, as the eigenvalues of its companion matrix: complex. Leading and
    trailing zeros of p are found by their values: `TraceError` in a traced function.

    `[n]` to `[n - 1]`, less leading zeros. The gradient is exact where the zeros are distinct.
    `ShapeError` for what is no vector.

    >>> import retrograd as rg
    >>> rg.sort(rg.roots([1.0, 0.0, -1.0]).real).tolist()
    [-1.0, 1.0]
    """
    c: Any = asarray(p)
    if c.ndim != 1:
        raise ShapeError(f"roots takes a vector of coefficients, not the shape {c.shape}")
    some = np.flatnonzero(c.value())
    if len(some) == 0:
        return c[:0]
    last = c.shape[0] - int(some[-1]) - 1
    c = c[int(some[0]) : int(some[-1]) + 1]
    found = eigvals(_companion(c)) if c.shape[0] > 1 else c[:0]
    if not last:
        return found
    return concat([found, asarray(np.zeros(last, found.dtype.dtype))])


@op_function
def _companion(c: ArrayLike, /) -> Any:
    c = promote_to_float(c)
    n = c.shape[0] - 1
    top = as_node(f.negative(f.divide(slice_axis(c, 0, 1, n + 1), slice_axis(c, 0, 0, 1))))
    below = el.cast(constant(np.eye(n)[: n - 1]), c.dtype)
    return Concat(0)(reshape(top, (1, n)), below)


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool = False,
) -> Any:
    """The coefficients of the polynomial of degree `deg` through points with the least sum of
    squared (and weighted, by `w**2`) deviations.

    Vectors x and y `[n]`, or y `[n, k]`, give `[deg + 1]`, or `[deg + 1, k]`; with gradients in x,
    y and w. `ShapeError` for sizes that do not fit, `ArgumentError` for `full` and `cov`, which are
    what `rg.linalg.lstsq` of `rg.vander(x, deg + 1)` tells.

    >>> import retrograd as rg
    >>> [round(c, 3) for c in rg.polyfit(rg.tensor([0.0, 1.0, 2.0]), [1.0, 3.0, 5.0], 1).tolist()]
    [2.0, 1.0]
    """
    if full or cov:
        raise ArgumentError("polyfit gives the coefficients alone; for residuals and covariances "
                            "see rg.linalg.lstsq(rg.vander(x, deg + 1), y)")  # fmt: skip
    matrix, right, scale, eps = _fitted(x, y, w, deg)
    limit = rcond if rcond is not None else eps
    found = lstsq(matrix, right, rtol=limit).solution
    return _unscaled(found, scale)


@op_function
def _fitted(x: ArrayLike, y: ArrayLike, w: ArrayLike | None, deg: Any, /) -> Any:
    x, y = alike(x, y, floating=True)
    order = integer(deg, "polyfit: the degree")
    if x.type.rank != 1 or y.type.rank not in (1, 2) or x.shape[0] != y.shape[0] or order < 0:
        raise ShapeError(f"polyfit of degree {deg} of {x.type} and {y.type}: a vector [n], and [n] "
                         "or [n, k]")  # fmt: skip
    matrix = flip(ascending(x, N=order + 1), 1)
    if w is not None:
        weight = el.cast(promote_to_float(w), x.dtype)
        if weight.shape != x.shape:
            raise ShapeError(f"polyfit of {x.type} with weights {weight.type}")
        column = reshape(weight, (x.shape[0], 1))
        matrix = f.multiply(matrix, column)
        y = f.multiply(y, weight if y.type.rank == 1 else column)
    scale = f.sqrt(reductions.sum(f.square(f.abs(matrix)), axis=0))
    n = x.shape[0]
    eps = None if isinstance(n, Dim) else float(np.finfo(x.dtype.dtype).eps) * n
    return f.divide(matrix, scale), y, scale, eps


@op_function
def _unscaled(c: ArrayLike, scale: ArrayLike, /) -> Any:
    c, scale = as_node(c), as_node(scale)
    return f.divide(c, scale if c.type.rank == 1 else reshape(scale, (scale.shape[0], 1)))
