"""The rounding error of one operation by itself, its operands taken as exact.

For each operation a bound, which every backend keeps, and a standard deviation, for roundings that
are independent and spread evenly. With u the unit roundoff:

    a rounded operation         u |y|; nothing where it is exact: Sterbenz's differences of close
                                numbers, products with powers of two, integers that fit
    a function                  a few ulp of |y|, of special functions more
    a sum of n terms            d u sum |x|, with d the longest chain of additions of the library's
                                order of summation (`ops/numerics/summation.py`), at most n - 1
    a contraction of n terms    (d + 1) u sum |a| |b|
    a factorization, a solution the exact result for a matrix A + E with |E| <= 4 n u |A|
                                (Frobenius norms), which is what LAPACK's routines keep in practice

(Higham: "Accuracy and Stability of Numerical Algorithms", 2nd edition, chapters 2 to 4, 9, 10.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.errors import BackendError
from retrograd.ir import Node, Trait, apply
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import ELEMENTWISE, Cast, Elementwise
from retrograd.ops.index import ScatterAdd
from retrograd.ops.linalg.matrix import MatrixOp
from retrograd.ops.numerics.summation import PRODUCTS, SUMS, longest_chain
from retrograd.verify.rounding_error.formats import Array, FloatFormat, format_of, inside


class LocalError(NamedTuple):
    """What an operation adds to the error of its result: a bound and a standard deviation, for
    each element; `backward` is the relative error, in norm, of a matrix among its operands for
    which it would be exact."""

    bound: Array
    std: Array
    backward: float = 0.0


Rule = Callable[[Node, Array, Sequence[Any], FloatFormat], LocalError]
RULES: dict[str, Rule] = {}

ELEMENTARY = 4  # ulp, of a function that has no rule of its own
SPECIAL = 64  # of special functions
BACKWARD = 4.0  # times n u |A|
ROOT3 = math.sqrt(3.0)


def rules(*names: str) -> Callable[[Rule], Rule]:
    """Enters a rule for the ops of these names."""

    def enter(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return enter


def local_error(node: Node, value: Any, given: Sequence[Any]) -> LocalError:
    """The error that a node adds to its result, computed as `value` from `given`.

    Raises `BackendError` for an operation of which no bound is known.
    """
    y = np.asarray(value, np.float64)
    if not node.dtype.is_inexact or _is_exact(node):
        return _none(y)
    xs = [np.asarray(x, np.float64) for x in given]
    rule = rule_of(node)
    with np.errstate(all="ignore"):
        found = rule(node, y, xs, inside(node.dtype))
        if node.dtype.is_half and not isinstance(node.prim, Cast):
            found = _rounded_again(found, y, format_of(node.dtype))
        bound = np.where(np.isfinite(y), found.bound, 0.0)
        std = np.where(np.isfinite(y), found.std, 0.0)
    return LocalError(bound, std, found.backward)


def has_rule(name: str) -> bool:
    """Whether the error of an operation is known."""
    return name in RULES or name in ELEMENTWISE


def rule_of(node: Node) -> Rule:
    """The rule for a node; `BackendError` where there is none."""
    if node.op in RULES:
        return RULES[node.op]
    if isinstance(node.prim, MatrixOp):
        return _factorization
    if isinstance(node.prim, Elementwise):
        return within(ELEMENTARY if Trait.TRANSCENDENTAL in node.prim.traits else SPECIAL)
    raise BackendError(f"no bound is known for the rounding error of {node.describe()}")


def _is_exact(node: Node) -> bool:
    return bool({Trait.UNROUNDED, Trait.DETERMINED, Trait.INPUT, Trait.LEAF} & node.prim.traits)


def _none(y: Array) -> LocalError:
    zero = np.zeros(y.shape)
    return LocalError(zero, zero)


def _uniform(bound: Array) -> LocalError:
    return LocalError(bound, bound / ROOT3)


def _rounded_again(found: LocalError, y: Array, f: FloatFormat) -> LocalError:
    """The result of an operation in float32 as half precision."""
    more = f.u * np.abs(y) + np.where(np.abs(y) < f.tiny, f.subnormal / 2, 0.0)
    std = np.hypot(found.std, more / ROOT3)
    return LocalError(found.bound + more, std, found.backward)


def _underflow(y: Array, f: FloatFormat) -> Array:
    """What is lost where a result is subnormal, or was rounded to zero."""
    return np.where(np.abs(y) < f.tiny, f.subnormal / 2, 0.0)


# -- arithmetic -----------------------------------------------------------------------------------


def _whole(*arrays: Array) -> Array:
    """Where all are integers."""
    found = np.bool_(True)
    for x in arrays:
        found = found & (x == np.rint(x))
    return np.asarray(found)


def _power_of_two(x: Array) -> Array:
    return np.abs(np.frexp(x)[0]) == 0.5


@rules("add", "sub")
def _sum_of_two(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    a, b = xs[0], xs[1] if node.prim is el.add else -xs[1]
    near = (np.abs(a) <= 2 * np.abs(b)) & (np.abs(b) <= 2 * np.abs(a)) & (a * b <= 0)
    exact = near | (a == 0) | (b == 0) | (_whole(a, b) & (np.abs(y) < 2.0**f.digits))
    return _uniform(np.where(exact, 0.0, f.u * np.abs(y)))


@rules("mul", "zmul", "zzmul")
def _product(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    a, b = xs
    scaled = _power_of_two(a) | _power_of_two(b)
    whole = _whole(a, b) & (np.abs(y) < 2.0**f.digits)
    rounded = np.where(scaled | whole, 0.0, f.u * np.abs(y)) + _underflow(y, f)
    return _uniform(np.where((a == 0) | (b == 0), 0.0, rounded))


@rules("div", "zdiv", "reciprocal")
def _quotient(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    exact = _power_of_two(xs[-1])
    rounded = np.where(exact, 0.0, f.u * np.abs(y)) + _underflow(y, f)
    return _uniform(np.where(xs[0] == 0, 0.0, rounded))


@rules("sqrt")
def _root(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    half = np.ldexp(np.frexp(y)[0], f.digits // 2)  # a square of so many digits is not rounded
    exact = (half == np.rint(half)) & (y * y == xs[0])
    return _uniform(np.where(exact, 0.0, f.u * np.abs(y)))


@rules("nextafter")
def _neighbour(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    return _uniform(format_of(node.dtype).ulp(y))


@rules("mod")
def _remainder(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    return _uniform(f.u * (np.abs(y) + np.where(xs[0] * xs[1] < 0, np.abs(xs[1]), 0.0)))


@rules("logaddexp")
def _log_of_two(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    largest = np.maximum(np.abs(xs[0]), np.abs(xs[1]))
    return _uniform(f.u * (ELEMENTARY * (np.abs(y) + np.minimum(largest, 1.0)) + largest))


def within(ulps: float, absolute: bool = False) -> Rule:
    """The rule of an elementwise function with an error of so many ulp of its result, or, of one
    with zeros where terms cancel that are not small, of one besides the result."""

    def rule(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
        bound = 2 * f.u * ulps * (np.abs(y) + absolute) + ulps * _underflow(y, f)
        if Trait.TRANSCENDENTAL in node.prim.traits:  # f(0) is 0 or 1 exactly
            bound = np.where((xs[0] == 0) & ((y == 0) | (y == 1)), 0.0, bound)
        return LocalError(bound, np.minimum(bound, 2 * f.u * np.abs(y)) / ROOT3)

    return rule


rules("rsqrt")(within(2))
rules("sigmoid", "softplus", "sech2", "pow")(within(8))
rules("logit")(within(8, absolute=True))
rules(
    "lgamma", "digamma", "betaln", "j0", "j1", "y0", "y1", "yn", "bessel_j", "spence", "expi",
    "zeta", "entr", "rel_entr", "lpmv", "hyp1f1", "hyp1f1_da", "hyp1f1_db", "hyp2f1", "hyp2f1_da",
    "hyp2f1_dc", "betainc_da", "betainc_daa", "betainc_dab", "betainc_db", "betainc_dbb",
    "gammainc_da", "gammainc_daa", "implicit_gamma", "implicit_beta", "von_mises_slope",
    "implicit_von_mises", "implicit_log_gamma", "implicit_exp",
)(within(SPECIAL, absolute=True))  # fmt: skip


@rules(
    "argmax", "argmin", "cumargmax", "cumargmin", "cummax", "cummin", "draw", "max_pool",
    "max_pool_index", "random_bits", "reduce_all", "reduce_any", "reduce_max", "reduce_min",
    "scatter_max", "scatter_min", "searchsorted", "complex", "real", "imag", "windows",
)  # fmt: skip
def _choice(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    """Elements are chosen, none is rounded."""
    return _none(y)


@rules("cast")
def _conversion(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    """To fewer digits; the others are exact."""
    (x,), narrow = xs, format_of(node.dtype)
    exact = y == x
    bound = np.where(exact, 0.0, narrow.u * np.abs(y) + _underflow(y, narrow))
    return _uniform(bound)


# -- sums -----------------------------------------------------------------------------------------


def gamma(d: Any, f: FloatFormat) -> Array:
    """`d u / (1 - d u)`, what d roundings in a row make at most."""
    e = np.asarray(d, np.float64) * f.u
    return np.where(e < 1, e / np.maximum(1 - e, f.u), np.inf)


def chain_variance(terms: Array, block: int = SUMS.block) -> Array:
    """The sum of the squares of all partial sums of a sum over the last axis, added up in blocks,
    and these in blocks again: times u^2 / 3 the variance of its rounding error."""
    total = np.zeros(terms.shape[:-1])
    if not terms.size:
        return total
    while terms.shape[-1] > 1:
        n = terms.shape[-1]
        short = -n % block if n > block else 0
        padded = np.pad(terms, [(0, 0)] * (terms.ndim - 1) + [(0, short)])
        blocks = padded.reshape(*terms.shape[:-1], -1, min(block, n))
        partial = np.cumsum(blocks, axis=-1)
        moved = np.where(blocks != 0, partial, 0.0)  # adding zero rounds nothing
        total += np.square(moved[..., 1:]).sum(axis=(-2, -1))
        terms = partial[..., -1]
    return total


@rules("reduce_sum")
def _sum(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    (x,), axes = xs, tuple(node.attrs["axes"])
    size = np.abs(x).sum(axis=axes)
    exact = np.all(x == np.rint(x), axis=axes) & (size < 2.0**f.digits)
    bound = gamma(longest_chain(np.count_nonzero(x, axis=axes)), f) * size
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose((*kept, *axes)).reshape(*y.shape, math.prod(x.shape[i] for i in axes))
    std = f.u / ROOT3 * np.sqrt(chain_variance(rows))
    return LocalError(np.where(exact, 0.0, bound), np.where(exact, 0.0, std))


@rules("dot_general", "conv")
def _contraction(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    a, b = xs
    count = node.prim.reference((a != 0).astype(np.float64), (b != 0).astype(np.float64))
    size = node.prim.reference(np.abs(a), np.abs(b))
    squares = node.prim.reference(np.square(a), np.square(b))
    whole = np.all(a == np.rint(a)) and np.all(b == np.rint(b))
    exact = (np.bool_(whole) & (size < 2.0**f.digits)) | (count == 0)
    bound = gamma(longest_chain(count, PRODUCTS.block) + 1, f) * size + count * f.subnormal / 2 * (
        size < f.tiny * 2.0**f.digits
    )
    run = np.minimum(count, PRODUCTS.block)
    std = f.u / ROOT3 * np.sqrt((1 + run / 2) * squares + run / 3 * np.square(y))
    return LocalError(np.where(exact, 0.0, bound), np.where(exact, 0.0, np.minimum(std, bound)))


@rules("cumsum")
def _running_sum(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    (x,) = xs
    size = node.prim.reference(np.abs(x))
    count = node.prim.reference((x != 0).astype(np.float64))
    partial = np.sqrt(node.prim.reference(np.square(y)))
    return LocalError(gamma(np.maximum(count - 1, 0), f) * size, f.u / ROOT3 * partial)


@rules("cumprod")
def _running_product(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    count = _steps(node, y)
    bound = gamma(count, f) * np.abs(y) + _underflow(y, f)
    return LocalError(bound, f.u / ROOT3 * np.sqrt(count) * np.abs(y))


def _steps(node: Node, y: Array) -> Array:
    """How many operations lead to each place along the axis of a scan."""
    axis, n = node.attrs["axis"], y.shape[node.attrs["axis"]]
    count = np.arange(n, dtype=np.float64)
    count = count[::-1] if node.attrs["reverse"] else count
    return np.broadcast_to(np.expand_dims(count, [i for i in range(y.ndim) if i != axis]), y.shape)


@rules("linear_scan")
def _recurrence(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    """`e[t] = |a[t]| e[t-1] + 2 u (|a[t] y[t-1]| + |y[t]|)`: of states in float64 rounded once; it
    is the bound of a plain loop, which other backends run."""
    a, b = xs
    scan = node.prim
    moved = np.abs(y - b)
    added = f.u * (np.abs(y) + moved)
    bound = scan.reference(np.abs(a), added) * (1 + 4 * f.u)
    std = np.sqrt(scan.reference(np.square(a), np.square(added))) / ROOT3
    return LocalError(bound, std)


@rules("reduce_prod")
def _product_of_many(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    n = max(math.prod(xs[0].shape[i] for i in node.attrs["axes"]) - 1, 0)
    bound = gamma(n, f) * np.abs(y) + n * _underflow(y, f)
    return LocalError(bound, f.u / ROOT3 * math.sqrt(n) * np.abs(y))


@rules("logsumexp")
def _log_of_sum(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    """Of a sum of exponentials of differences to the largest: `log s + top`."""
    (x,), axes = xs, tuple(node.attrs["axes"])
    top = x.max(axis=axes, keepdims=True, initial=-np.inf)
    share, far = np.exp(x - top), np.where(np.isfinite(x), np.abs(x - top), 0.0)
    spread = (share * far).sum(axis=axes) / np.maximum(share.sum(axis=axes), 1.0)
    chain = longest_chain(math.prod(x.shape[i] for i in axes)) + 2 * ELEMENTARY + spread
    inner = chain + 2 * ELEMENTARY * np.abs(y - np.squeeze(top, axes))
    return LocalError(f.u * (inner + np.abs(y)), f.u * (np.abs(y) + 2) / ROOT3)


@rules("logcumsumexp")
def _running_log_of_sum(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    """Of as many `logaddexp` in a row as there are elements."""
    n = _steps(node, y) + 1
    largest = np.max(np.abs(np.where(np.isfinite(xs[0]), xs[0], 0.0)), initial=0.0)
    bound = f.u * n * (3 * ELEMENTARY + 2 * np.maximum(np.abs(y), largest))
    return LocalError(bound, np.minimum(bound, f.u * np.sqrt(n) * (np.abs(y) + 2) / ROOT3))


@rules("scatter_add", "fold")
def _scattered(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    ones = [np.abs(x) for x in xs]
    marks = [(x != 0).astype(np.float64) for x in xs]
    if isinstance(node.prim, ScatterAdd):
        ones[1] = marks[1] = xs[1].astype(np.int64)
    size, count = apply(node, ones), apply(node, marks)
    chain = np.maximum(count - 1, 0)
    std = (
        f.u / ROOT3 * np.sqrt(chain / 2) * np.maximum(size / np.sqrt(np.maximum(count, 1)), abs(y))
    )
    bound = gamma(chain, f) * size
    return LocalError(bound, np.minimum(std, bound))


@rules("scatter_mul")
def _scattered_products(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    count = math.prod(xs[1].shape)
    return LocalError(gamma(count, f) * np.abs(y) + _underflow(y, f), f.u * np.abs(y))


@rules("fft")
def _transform(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    raise BackendError(f"complex numbers are taken apart before this: {node.describe()}")


def _factorization(node: Node, y: Array, xs: Sequence[Any], f: FloatFormat) -> LocalError:
    """As exact for a matrix close by; the result is rounded beside that."""
    shapes = [x.shape for x in node.inputs if x.type.rank > 1]
    n = max((int(d) for shape in shapes for d in shape[-2:]), default=1)
    bound = n * f.u * np.abs(y)
    return LocalError(bound, f.u * np.abs(y), BACKWARD * n * f.u)
