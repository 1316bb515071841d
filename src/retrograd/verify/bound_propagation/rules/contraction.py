"""Contractions: products with sums over many terms, and other linear maps.

A sum has the error `d eps` times the sum of the magnitudes of its terms, where each goes through d
additions at most, and in exact arithmetic none: both are enclosed. Centre and radius are used
(Rump: "Fast and parallel interval arithmetic", BIT 39, 1999): where one operand is known that is
exact, of two that are not at most 1.5 times as wide as need be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.eager.modes import current_backend
from retrograd.ir import DType, Node
from retrograd.ops.conv import Conv, framed
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.numerics.summation import PRODUCTS, SUMS, SummationOrder, longest_chain
from retrograd.ops.windows import windows_of
from retrograd.verify.bound_propagation.interval import (
    EPS,
    INF,
    Interval,
    Rectangle,
    accumulator,
    either,
    rounded,
)
from retrograd.verify.bound_propagation.propagation import rule
from retrograd.verify.bound_propagation.rules.arithmetic import whole

Bilinear = Callable[[Any, Any], Any]
LEAST_TERMS = 16  # of a sum, for which norms take less time than a product
ORDERED = ("reference", "llvm", "cuda")  # backends that add up as `ops/numerics/summation.py` says


def additions(terms: int, loops: int, order: SummationOrder = SUMS) -> int:
    """How many additions a term of a sum over some axes goes through at most: on backends that keep
    to the order of the library, no more than its chains are long."""
    if current_backend() not in ORDERED:
        return max(terms - 1, 0)
    return math.ceil(longest_chain(terms, order.block, loops))


def summed(
    low: Any, high: Any, size: Any, terms: int, dtype: DType, nan: Any = False, rounds: int = 1,
    added: int | None = None,
) -> Interval:  # fmt: skip
    """Sums of so many terms between two numbers, for the sum of their largest magnitudes. With
    `rounds` for those of each term before it is added, and `added` for how many additions each goes
    through, where that is known."""
    if not dtype.is_inexact:
        # Integers that float64 added up without error, or with that of its own.
        by = np.where(size >= 2.0**53, (terms + 2) * EPS * size, 0.0)
        return whole(low - by, high + by, dtype)
    kind = accumulator(dtype)
    with np.errstate(all="ignore"):
        count = (max(terms - 1, 0) if added is None else added) + rounds
        ours = 2 * (terms + 2) * EPS * size + (terms + 1) * 5e-324
        theirs = count * kind.eps * (1 + count * kind.eps) * size + 2 * terms * kind.tiny
        if terms <= 1 and rounds == 0:
            theirs = np.zeros_like(size)
        by = np.where(size == 0, 0.0, ours + theirs)
        fits = size * (1 + count * kind.eps) < kind.most
        low, high = low - by, high + by
    if not fits.all():  # partial sums may overflow
        low, high = np.where(fits, low, -INF), np.where(fits, high, INF)
        nan = either(nan, ~fits)
    return rounded(low, high, dtype, nan)


def at_least_zero(x: Interval, positive: Any, negative: Any) -> Interval:
    """A sum of terms that are all not negative, or not positive, is that in any order."""
    if not (np.any(positive) or np.any(negative)):
        return x
    return Interval(
        np.where(positive, np.maximum(x.lower, 0.0), x.lower),
        np.where(negative, np.minimum(x.upper, 0.0), x.upper),
        x.nan,
    )


def bilinear(
    f: Bilinear, a: Interval, b: Interval, terms: int, dtype: DType, loops: int
) -> Interval:
    """A sum of products, of which `f` is the meaning, over so many axes."""
    if not (a.is_finite and b.is_finite):
        return _with_infinities(f, a, b, terms, dtype, loops)
    with np.errstate(all="ignore"):
        size = f.magnitudes(a, b, terms) if isinstance(f, MatrixProduct) else f(a.size, b.size)
        if b.upper is b.lower or (b.lower == b.upper).all():
            low, high = _of_known(f, a, b, terms, dtype)
        elif a.upper is a.lower or (a.lower == a.upper).all():
            low, high = _of_known(lambda x, y: f(y, x), b, a, terms, dtype)
        else:
            low, high = _by_centre(f, a, b, terms, size)
    added = additions(terms, loops, PRODUCTS)
    found = summed(low, high, size, terms, dtype, added=added)
    positive = dtype.is_inexact and (a.lower >= 0).all() and (b.lower >= 0).all()
    return at_least_zero(found, positive, False)


def _of_known(f: Bilinear, x: Interval, w: Interval, terms: int, dtype: DType) -> tuple[Any, Any]:
    """Sums of products with known numbers: exact but for rounding, that of integers not even that.

    Two products, of the middles and of the radii, take half as long as four of parts by sign."""
    if x.upper is x.lower:
        y = f(x.lower, w.lower)
        return y, y
    if not dtype.is_inexact:
        plus, minus = np.maximum(w.lower, 0), np.minimum(w.lower, 0)
        low = f(x.lower, plus) + f(x.upper, minus)
        return low, f(x.upper, plus) + f(x.lower, minus)
    middle, radius = _centred(x)
    y = f(middle, w.lower)
    reach = f(radius, w.size) * (1 + (4 * terms + 8) * EPS)
    return y - reach, y + reach


def _centred(x: Interval) -> tuple[Any, Any]:
    """The middle of what is finite, which may be rounded, and how far the ends are from it."""
    middle = x.lower / 2 + x.upper / 2
    return middle, np.maximum(x.upper - middle, middle - x.lower) * (1 + 2 * EPS)


def _by_centre(f: Bilinear, a: Interval, b: Interval, terms: int, size: Any) -> tuple[Any, Any]:
    (ca, ra), (cb, rb) = _centred(a), _centred(b)
    middle = f(ca, cb)
    radius = f(np.abs(ca), rb) + f(ra, np.abs(cb) + rb)
    radius = radius * (1 + (4 * terms + 8) * EPS)
    low, high = middle - radius, middle + radius
    if (a.lower >= 0).all() and (b.lower >= 0).all():
        low, high = np.maximum(low, f(a.lower, b.lower)), np.minimum(high, size)
    return low, high


def _with_infinities(
    f: Bilinear, a: Interval, b: Interval, terms: int, dtype: DType, loops: int
) -> Interval:
    """Where an infinite or NaN element takes part nothing is known."""

    def apart(x: Interval) -> tuple[Interval, Any]:
        wild = ~np.isfinite(x.lower) | ~np.isfinite(x.upper) | np.asarray(x.nan)
        tame = Interval(np.where(wild, 0.0, x.lower), np.where(wild, 0.0, x.upper))
        return tame, wild.astype(np.float64)

    (ta, wa), (tb, wb) = apart(a), apart(b)
    found = bilinear(f, ta, tb, terms, dtype, loops)
    touched = (f(wa, np.ones(b.shape)) > 0) | (f(np.ones(a.shape), wb) > 0)
    return Interval(
        np.where(touched, -INF, found.lower),
        np.where(touched, INF, found.upper),
        either(found.nan, touched),
    )


def on_products(f: Bilinear, a: Any, b: Any, terms: int, dtype: DType, loops: int) -> Any:
    """The same of complex numbers, by parts."""
    if not isinstance(a, Rectangle):
        return bilinear(f, a, b, terms, dtype, loops)
    rr, ii = (bilinear(f, a[i], b[i], 2 * terms, dtype, 2 * loops) for i in range(2))
    ri, ir = (bilinear(f, a[i], b[1 - i], 2 * terms, dtype, 2 * loops) for i in range(2))
    return Rectangle(_joined(rr, ii, dtype, -1), _joined(ri, ir, dtype, 1))


def _joined(a: Interval, b: Interval, dtype: DType, sign: int) -> Interval:
    """A sum or a difference of two such sums, that may be one sum of all."""
    low, high = (a.lower + b.lower, a.upper + b.upper) if sign > 0 else (
        a.lower - b.upper, a.upper - b.lower
    )  # fmt: skip
    return summed(low, high, a.size + b.size, 2, dtype, either(a.nan, b.nan))


@rule(DotGeneral)
def dot_general(node: Node, a: Any, b: Any) -> Any:
    prim: Any = node.prim
    terms = math.prod(int(node.inputs[0].shape[i]) for i in prim.a_contract)
    return on_products(in_any_order(prim), a, b, terms, node.dtype, len(prim.a_contract))


@rule(Conv)
def conv(node: Node, x: Any, w: Any) -> Any:
    prim: Any = node.prim
    terms = math.prod(map(int, node.inputs[1].shape[1:]))
    return on_products(in_any_order(prim), x, w, terms, node.dtype, 1 + prim.rank)


def in_any_order(prim: Any) -> Bilinear:
    """The meaning of a contraction by one matrix product where it is one: several times as fast as
    the reference, which adds up in the order that the bits of a program are defined by."""
    if isinstance(prim, DotGeneral) and not prim.a_batch:
        return MatrixProduct(prim.a_contract, prim.b_contract)
    if isinstance(prim, Conv) and prim.groups == 1:
        return lambda x, w: _convolved(prim, x, w)
    return prim.reference


@dataclass(frozen=True)
class MatrixProduct:
    """A sum of products over axes of two arrays, as one matrix product."""

    a_axes: tuple[int, ...]
    b_axes: tuple[int, ...]

    def __call__(self, a: Any, b: Any) -> Any:
        return np.tensordot(a, b, (self.a_axes, self.b_axes))

    def magnitudes(self, a: Interval, b: Interval, terms: int) -> Any:
        """What the sums of magnitudes are not above, and are where that is 0. By Cauchy and Schwarz
        without a product of matrices, which costs a third of the time of intervals: at most 1.6
        times as much for numbers of random sizes, in a term that roundings alone depend on."""
        if terms < LEAST_TERMS or b.has_zeros:
            return self(a.size, b.size)
        wide = 1 + (terms + 16) * EPS  # each norm is off by less than a quarter of that
        return np.multiply.outer(a.norms(self.a_axes) * wide, b.norms(self.b_axes) * wide)


def _convolved(prim: Conv, x: Any, w: Any) -> Any:
    full = framed(x, prim.low, prim.high, prim.x_dilation)
    windows = windows_of(full, w.shape[2:], prim.strides, prim.w_dilation)
    axes = range(2 + prim.rank, 2 + 2 * prim.rank)
    y = np.tensordot(windows, w, ((1, *axes), (1, *range(2, 2 + prim.rank))))
    return np.moveaxis(y, -1, 1)
