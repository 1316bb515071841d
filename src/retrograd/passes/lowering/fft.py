"""The discrete Fourier transform as products of small matrices.

`n = p q`: with `j = q j1 + j2` and `k = k1 + p k2`,

    y[k] = sum_j2 w_q^(j2 k2) ( w_n^(j2 k1) sum_j1 w_p^(j1 k1) x[j] ),

a product with a p x p matrix, a multiplication by `w_n^(j2 k1)`, and a transform of q elements
(J. W. Cooley, J. W. Tukey, 1965). A matrix of 16 to 64 rows keeps a vector unit busy, so the
factors are taken that large. A size with a larger prime factor becomes a convolution, of a size
without (L. I. Bluestein, 1970).
"""

from __future__ import annotations

import numpy as np

from retrograd.ir import DType, Node
from retrograd.memory_limit import check_new
from retrograd.ops.leaf import constant
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import Concat, expand, pad, permute, reshape, slice_axis
from retrograd.passes.lowering.complex_math import Pair, mul

RADIX = 32  # the largest factor that is looked for
DIRECT = 96  # a transform of at most so many elements is one product


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
    turns = _turns(np.outer(np.arange(n), np.arange(n)) % n / n, sign)
    c, s = turns.real, turns.imag
    matrix = np.block([[c, s], [-s, c]]).astype(x.dtype.dtype)
    both = DotGeneral((axis,), (0,))(Concat(axis)(x, y), constant(matrix))
    last = both.type.rank - 1
    return slice_axis(both, last, 0, n), slice_axis(both, last, n, 2 * n)


def _turns(fractions: np.ndarray, sign: float) -> np.ndarray:
    """`exp(2 pi i sign f)`, exact at quarters of a turn, and computed within an eighth of one."""
    quarters = np.rint(4 * fractions)
    near = np.exp(2j * np.pi * (fractions - quarters / 4))
    turned = near * np.array([1, 1j, -1, -1j])[quarters.astype(np.int64) % 4]
    return np.asarray(turned if sign > 0 else turned.conj())


def _circle(fractions: np.ndarray, sign: float, like: Node) -> Pair:
    """The same as nodes, repeated along the leading axes of `like`."""
    return _constants(_turns(fractions, sign), like)


def _constants(values: np.ndarray, like: Node) -> Pair:
    lead = tuple(range(like.type.rank - values.ndim))
    dtype: DType = like.dtype
    shape = (*like.shape[: len(lead)], *values.shape)
    first, second = (constant(v.astype(dtype.dtype)) for v in (values.real, values.imag))
    return expand(first, shape, lead), expand(second, shape, lead)


def _by_convolution(z: Pair, sign: float) -> Pair:
    """`j k = (j^2 + k^2 - (k - j)^2) / 2` makes the transform a convolution with a chirp."""
    n = z[0].shape[-1]
    assert isinstance(n, int)
    m = 1 << (2 * n - 1).bit_length()
    squares = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
    chirp = _turns(squares / (2 * n), sign)
    kernel = np.zeros(m, np.complex128)
    kernel[:n] = chirp.conj()
    kernel[m - n + 1 :] = chirp.conj()[1:][::-1]
    spectrum = np.fft.fft(kernel) / m
    around = _constants(chirp, z[0])
    lead = (0,) * (z[0].type.rank - 1)
    x, y = (pad(part, (*lead, 0), (*lead, m - n)) for part in mul(z, around))
    x, y = _along_last((x, y), -1.0)
    x, y = _along_last(mul((x, y), _constants(spectrum, x)), 1.0)
    last = x.type.rank - 1
    return mul((slice_axis(x, last, 0, n), slice_axis(y, last, 0, n)), around)
