"""The discrete Fourier transform: a routine for its stages, or products of small matrices.

The routine (`codegen/libcalls/fourier.py`) has sizes whose prime factors are small. Other sizes are
a product with one matrix, or a convolution, of a size that has small factors (L. I. Bluestein,
1970). Devices, which do not have the routine, take products of small matrices: of `n = p q`, with
`j = q j1 + j2` and `k = k1 + p k2`,

    y[k] = sum_j2 w_q^(j2 k2) ( w_n^(j2 k1) sum_j1 w_p^(j1 k1) x[j] ),

a product with a p x p matrix, a multiplication by `w_n^(j2 k1)`, and a transform of q elements
(J. W. Cooley, J. W. Tukey, 1965).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from retrograd.ir import Dim, DType, Node, full, product
from retrograd.memory_limit import check_new
from retrograd.ops.leaf import constant
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import Concat, expand, pad, permute, reshape, slice_axis
from retrograd.passes.lowering.complex_linalg import NumpyFft, PairedFft
from retrograd.passes.lowering.complex_math import Pair, joined, mul, parts_of
from retrograd.passes.lowering.fft_stages import radices, roots_of_unity, smooth_size, table
from retrograd.passes.lowering.libcall import LibCall, in_memory
from retrograd.passes.lowering.rules import lowers
from retrograd.passes.rewrite import RuleSet

STRAIGHT = 16  # elements up to which a transform is a product on every engine
VECTOR = 64  # bytes that a row of columns takes at most
RADIX = 32  # the largest factor that is looked for
DIRECT = 96  # a transform of at most so many elements is one product


def transformed(x: Node, prim: PairedFft) -> Node:
    """A transform in operations on pairs: one whose stages a routine has, or others."""
    n, axis = x.shape[prim.axis], prim.axis
    if isinstance(n, Dim):
        return NumpyFft(axis, prim.inverse, prim.of_real)(x)
    check_new((n,), 16, "a Fourier transform")
    if n > STRAIGHT and radices(n):
        return prim(x)
    # Along the last axis.
    rank = x.type.rank if prim.of_real else x.type.rank - 1
    there = (*(i for i in range(rank) if i != axis), axis)
    back = tuple(sorted(range(rank), key=there.__getitem__))
    ends = () if prim.of_real else (rank,)
    x, prim = permute(x, (*there, *ends)), replace(prim, axis=rank - 1)
    y = _by_product(x, prim) if n <= DIRECT else _by_chirp(x, prim)
    return permute(y, (*back, rank))


@lowers(PairedFft)
def by_stages(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """A call of the routine for each item of the axes before."""
    (x,), prim = inputs, node.prim
    assert isinstance(prim, PairedFft)
    axis, rank = prim.axis, node.type.rank - 1
    if isinstance(product(x.shape[axis + 1 : rank]), int):
        return _call(x, prim, node)
    there = (*(i for i in range(rank) if i != axis), axis)
    back = tuple(sorted(range(rank), key=there.__getitem__))
    ends = () if prim.of_real else (rank,)
    y = _call(permute(x, (*there, *ends)), replace(prim, axis=rank - 1), node)
    return permute(y, (*back, rank))


def _sign(prim: PairedFft) -> float:
    return 1.0 if prim.inverse else -1.0


def _by_product(x: Node, prim: PairedFft) -> Node:
    """A product with one real matrix, of numbers as they lie in memory."""
    axis = prim.axis
    n, lead = x.shape[axis], x.shape[:axis]
    assert isinstance(n, int)
    roots = roots_of_unity(np.outer(np.arange(n), np.arange(n)) % n / n, _sign(prim))
    c, s = roots.real, roots.imag
    matrix = np.stack([np.stack([c, s], -1), np.stack([-s, c], -1)], 1)  # [j, part, k, part]
    matrix = matrix[:, :1, : prim.kept] if prim.of_real else matrix[:, :, : prim.kept]
    rows = math.prod(matrix.shape[:2])
    flat = constant(matrix.reshape(rows, -1).astype(x.dtype.dtype))
    y = DotGeneral((axis,), (0,))(reshape(x, (*lead, rows)), flat)
    return reshape(y, (*lead, matrix.shape[2], 2))


def _call(x: Node, prim: PairedFft, target: Node) -> Node:
    y, n = prim.infer(x.type), x.shape[prim.axis]
    columns = product(y.shape[prim.axis + 1 : -1])
    assert isinstance(n, int)
    assert isinstance(columns, int)
    if not columns:
        return full(0, y)  # of no elements
    roots = constant(table(n, _sign(prim)).astype(x.dtype.dtype))
    held = 4 * n * x.dtype.itemsize // 8 if columns == 1 else 4 * n * VECTOR // 8
    call = LibCall(
        "fft",
        y,
        [n, columns, int(prim.inverse), int(prim.of_real), n if prim.kept is None else prim.kept],
        target,
        batch=prim.axis,
        initialises_output=False,
        work=held if len(radices(n)) > 1 else 0,
        cost=n * columns * n.bit_length(),
        shared=1,
    )
    return call(in_memory(x), roots)


def _by_chirp(x: Node, prim: PairedFft) -> Node:
    """`j k = (j^2 + k^2 - (k - j)^2) / 2` makes the transform a convolution with a chirp."""
    axis = prim.axis
    n = x.shape[axis]
    assert isinstance(n, int)
    m = smooth_size(2 * n - 1)
    chirp, spectrum = _chirp(n, m, _sign(prim))
    z = (x, full(0, x.type)) if prim.of_real else parts_of(x)
    around, lead = _constants(chirp, z[0]), (0,) * axis
    start = pad(joined(mul(z, around)), (*lead, 0, 0), (*lead, m - n, 0))
    y = parts_of(PairedFft(axis, False)(start))
    there = joined(mul(y, _constants(spectrum, y[0])))
    kept = n if prim.kept is None else prim.kept
    y = parts_of(PairedFft(axis, True, kept=kept)(there))
    return joined(mul(y, _constants(chirp[:kept], y[0])))


def _chirp(n: int, m: int, sign: float) -> tuple[np.ndarray, np.ndarray]:
    """The chirp, and the transform of what it is convolved with."""
    squares = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
    chirp = roots_of_unity(squares / (2 * n), sign)
    kernel = np.zeros(m, np.complex128)
    kernel[:n] = chirp.conj()
    kernel[m - n + 1 :] = chirp.conj()[1:][::-1]
    return chirp, np.fft.fft(kernel) / m


def by_products(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """The transform in operations that every engine has."""
    (x,), prim = inputs, node.prim
    assert isinstance(prim, PairedFft)
    y = fourier((x, full(0, x.type)) if prim.of_real else parts_of(x), prim.axis, prim.inverse)
    if prim.kept is not None:
        y = slice_axis(y[0], prim.axis, 0, prim.kept), slice_axis(y[1], prim.axis, 0, prim.kept)
    return joined(y)


# For devices, which do not have the routine.
PRODUCTS = RuleSet.lowering("fft", {PairedFft.name: by_products})


def fourier(z: Pair, axis: int, inverse: bool) -> Pair:
    """The transform along an axis."""
    rank = z[0].type.rank
    there = (*(i for i in range(rank) if i != axis), axis)
    back = tuple(sorted(range(rank), key=there.__getitem__))
    moved = permute(z[0], there), permute(z[1], there)
    x, y = _along_last(moved, 1.0 if inverse else -1.0)
    return permute(x, back), permute(y, back)


def _along_last(z: Pair, sign: float) -> Pair:
    n = z[0].shape[-1]
    assert isinstance(n, int)
    check_new((n,), 16, "a Fourier transform")
    p = _factor(n)
    if p == n:
        return _direct(z, sign)
    if p == 1:
        return _by_convolution(z, sign)
    q, lead = n // p, z[0].shape[:-1]
    split = reshape(z[0], (*lead, p, q)), reshape(z[1], (*lead, p, q))
    x, y = _product(split, -2, sign)  # (..., q, p): over j1, for each j2 and k1
    turns = np.outer(np.arange(q), np.arange(p)) / n
    x, y = mul((x, y), _circle(turns, sign, x))
    swapped = (*range(len(lead)), len(lead) + 1, len(lead))
    x, y = _along_last((permute(x, swapped), permute(y, swapped)), sign)
    return reshape(permute(x, swapped), (*lead, n)), reshape(permute(y, swapped), (*lead, n))


def _factor(n: int) -> int:
    """The size of the matrix to begin with: n itself, a factor, or 1 where n has a prime factor
    that is too large."""
    if n <= DIRECT:
        return n
    rest = n
    for prime in range(2, RADIX + 1):
        while rest % prime == 0:
            rest //= prime
    if rest > 1:
        return 1
    return max(p for p in range(2, RADIX + 1) if n % p == 0)


def _direct(z: Pair, sign: float) -> Pair:
    return _product(z, -1, sign)


def _product(z: Pair, axis: int, sign: float) -> Pair:
    """The transform along an axis as a product with one real matrix; what comes out is last."""
    x, y = z
    axis %= x.type.rank
    n = x.shape[axis]
    assert isinstance(n, int)
    if n == 1:
        order = (*(i for i in range(x.type.rank) if i != axis), axis)
        return permute(x, order), permute(y, order)
    turns = roots_of_unity(np.outer(np.arange(n), np.arange(n)) % n / n, sign)
    c, s = turns.real, turns.imag
    matrix = np.block([[c, s], [-s, c]]).astype(x.dtype.dtype)
    both = DotGeneral((axis,), (0,))(Concat(axis)(x, y), constant(matrix))
    last = both.type.rank - 1
    return slice_axis(both, last, 0, n), slice_axis(both, last, n, 2 * n)


def _circle(fractions: np.ndarray, sign: float, like: Node) -> Pair:
    """The same as nodes, repeated along the leading axes of `like`."""
    return _constants(roots_of_unity(fractions, sign), like)


def _constants(values: np.ndarray, like: Node) -> Pair:
    lead = tuple(range(like.type.rank - values.ndim))
    dtype: DType = like.dtype
    shape = (*like.shape[: len(lead)], *values.shape)
    first, second = (constant(v.astype(dtype.dtype)) for v in (values.real, values.imag))
    return expand(first, shape, lead), expand(second, shape, lead)


def _by_convolution(z: Pair, sign: float) -> Pair:
    """The same with transforms that are products."""
    n = z[0].shape[-1]
    assert isinstance(n, int)
    m = 1 << (2 * n - 1).bit_length()
    chirp, spectrum = _chirp(n, m, sign)
    around = _constants(chirp, z[0])
    lead = (0,) * (z[0].type.rank - 1)
    x, y = (pad(part, (*lead, 0), (*lead, m - n)) for part in mul(z, around))
    x, y = _along_last((x, y), -1.0)
    x, y = _along_last(mul((x, y), _constants(spectrum, x)), 1.0)
    last = x.type.rank - 1
    return mul((slice_axis(x, last, 0, n), slice_axis(y, last, 0, n)), around)
