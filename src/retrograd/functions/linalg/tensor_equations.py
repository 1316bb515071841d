"""Equations between arrays of more axes than matrices have, and matrices of a form."""

from __future__ import annotations

from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import ShapeError
from retrograd.functions.broadcasting import alike, as_node, integer, normal_axes
from retrograd.functions.linalg.linear_systems import inv, solve
from retrograd.functions.linalg.operands import inexact
from retrograd.ir import Dim, full, int64, product
from retrograd.ops.elementwise import eq, select
from retrograd.ops.leaf import Iota
from retrograd.ops.scan import CumProd
from retrograd.ops.shape import Concat, expand, pad, permute, reshape


@op_function
def tensorsolve(a: ArrayLike, b: ArrayLike, /, *, axes: Any = None) -> Any:
    """The x with `tensordot(a, x, x.ndim) = b`.

    a has the axes of b, then those of x, and as many elements in the first as in the last. `axes`
    of a move to the end before. `LinAlgError` where that square matrix is singular.

    `ShapeError` for sizes that do not fit.

    The shape is that of the last axes of a.

    >>> import retrograd as rg
    >>> a = rg.reshape(rg.eye(6) * 2, (2, 3, 6))
    >>> rg.linalg.tensorsolve(a, rg.ones((2, 3))).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    """
    x, y = inexact(a, b)
    if axes is not None:
        last = normal_axes(axes, x.type.rank, "tensorsolve")
        x = permute(x, (*(i for i in range(x.type.rank) if i not in last), *last))
    n, into = y.type.rank, x.shape[y.type.rank :]
    rows, columns = product(y.shape), product(into)
    if x.shape[:n] != y.shape or rows != columns:
        raise ShapeError(
            f"tensorsolve of {x.type} and {y.type}: the first axes are those of the right side, "
            "the others have as many elements"
        )
    return reshape(as_node(solve(reshape(x, (rows, rows)), reshape(y, (rows,)))), into)


@op_function
def tensorinv(a: ArrayLike, /, *, ind: int = 2) -> Any:
    """The inverse of `x -> tensordot(a, x, ...)`: an array of the last axes of a, and then its
    first `ind`; `tensordot(tensorinv(a, ind=ind), b, ind) = tensorsolve(a, b)`.

    `[*I, *J]`, with as many elements in I as in J, to `[*J, *I]`. `ShapeError` where there are not,
    `LinAlgError` where that square matrix is singular.

    >>> import retrograd as rg
    >>> rg.linalg.tensorinv(rg.reshape(rg.eye(4), (2, 2, 4))).shape
    (4, 2, 2)
    """
    (x,) = inexact(a)
    k = integer(ind, "tensorinv: ind")
    sizes = x.shape
    rows = product(sizes[:k])
    if not 0 < k <= len(sizes) or rows != product(sizes[k:]):
        raise ShapeError(
            f"tensorinv of {x.type} with ind={ind}: the first {ind} axes have as many elements as "
            "the others"
        )
    return reshape(as_node(inv(reshape(x, (rows, rows)))), (*sizes[k:], *sizes[:k]))


@op_function
def vander(x: ArrayLike, /, *, N: int | None = None) -> Any:
    """The Vandermonde matrices of vectors `x[..., n]`: `y[..., i, j] = x[..., i]**j` for j up to N,
    n by default.

    `[..., n]` to `[..., n, N]`. `ShapeError` for an array without axes, or a negative N.

    >>> import retrograd as rg
    >>> rg.linalg.vander(rg.tensor([2.0, 3.0]), N=3).tolist()
    [[1.0, 2.0, 4.0], [1.0, 3.0, 9.0]]
    """
    x = as_node(x)
    if x.type.rank < 1:
        raise ShapeError(f"vander takes vectors, or stacks of them, not {x.type}")
    count: int | Dim = x.shape[-1] if N is None else _extent(N)
    if isinstance(count, int) and count < 0:
        raise ShapeError(f"vander of {x.type}: N is a number, at least 0, not {count}")
    n = x.type.rank
    wide = expand(x, (*x.shape, count), (n,))
    column = Iota(wide.shape, n, int64)()
    one = full(1, wide.type)
    return CumProd(n)(select(eq(column, full(0, column.type)), one, wide))


def _extent(n: Any) -> int | Dim:
    return n if isinstance(n, Dim) else integer(n, "vander: N")


@op_function
def block_diag(*arrays: ArrayLike) -> Any:
    """A matrix with these along its diagonal, zeros elsewhere; vectors are rows.

    `[n, m]` and `[p, q]` to `[n + p, m + q]`. `ShapeError` for arrays of more than two axes.

    >>> import retrograd as rg
    >>> rg.linalg.block_diag(rg.tensor([[1.0], [2.0]]), rg.tensor([3.0, 4.0])).tolist()
    [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 3.0, 4.0]]
    """
    blocks = alike(*arrays) if arrays else []
    if not blocks or any(b.type.rank > 2 for b in blocks):
        listed = ", ".join(str(b.type) for b in blocks) or "none"
        raise ShapeError(f"block_diag takes matrices, vectors and numbers, not {listed}")
    blocks = [reshape(b, (1,) * (2 - b.type.rank) + b.shape) for b in blocks]
    widths = [b.shape[1] for b in blocks]
    rows = [
        pad(b, (0, sum(widths[:i], 0)), (0, sum(widths[i + 1 :], 0))) for i, b in enumerate(blocks)
    ]
    return Concat(0)(*rows) if len(rows) > 1 else rows[0]
