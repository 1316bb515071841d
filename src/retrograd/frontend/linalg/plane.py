"""Complex matrices as real ones of twice the size: `B + iC` stands as `[[B, -C], [C, B]]`.

Sums, products, inverses and pseudo-inverses of such matrices stand for those of the complex ones,
and each singular value of the complex matrix occurs twice, so what the real operations have to say,
their derivatives included, holds for complex matrices too.
"""

from __future__ import annotations

from retrograd.ir import Dim, Node
from retrograd.ops.complex import complex_, imag, real
from retrograd.ops.linalg.matrix import rows
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Concat, reshape


def stacked_parts(z: Node) -> Node:
    """The real part above the imaginary part: the left half of the matrix that stands for z."""
    return Concat(z.type.rank - 2)(real(z), imag(z))


def doubled(z: Node) -> Node:
    """The real matrix that stands for z."""
    turned = Concat(z.type.rank - 2)(-imag(z), real(z))
    return Concat(z.type.rank - 1)(stacked_parts(z), turned)


def halved(x: Node, n: int | Dim) -> Node:
    """The complex matrix of `n` rows of which x holds the parts, one above the other."""
    return complex_(rows(x, 0, n), rows(x, n, x.shape[-2]))


def once(values: Node) -> Node:
    """Ordered values of which each occurs twice, once each. The mean of both has a derivative that
    does not depend on how the space that belongs to both is split between them."""
    k = values.shape[-1] // 2
    pairs = reshape(values, (*values.shape[:-1], k, 2))
    return ReduceSum((pairs.type.rank - 1,))(pairs) * 0.5
