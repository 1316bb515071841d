"""Functions that rearrange: shapes, axes, joining, splitting, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.eager.immediate.slicing import joined_by
from retrograd.errors import OptionError, ShapeError
from retrograd.functions import broadcasting
from retrograd.functions.broadcasting import (
    alike,
    as_node,
    integer,
    listed_axes,
    normal_axes,
    normal_axis,
    number,
    one_axis,
)
from retrograd.ir import Dim, Node, Shape, TensorType, as_shape, bool_, full, int64, product
from retrograd.ops import elementwise as el
from retrograd.ops import shape as ops
from retrograd.ops.assume import guard
from retrograd.ops.leaf import Iota


@op_function
def reshape(x: ArrayLike, /, shape: Any, *, copy: bool | None = None) -> Any:
    """The same elements in row-major order under another shape; one size may be -1.

    The dtype stays; `y.flatten() = x.flatten()`, and so for the cotangent. `ShapeError` where the
    numbers of elements differ, or more than one size is -1.

    >>> import retrograd as rg
    >>> rg.reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """
    x = as_node(x)
    shape = shape.tolist() if hasattr(shape, "tolist") else shape
    given = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    unknown = [i for i, d in enumerate(given) if not isinstance(d, Dim) and d == -1]
    if len(unknown) > 1:
        raise ShapeError(f"reshape to {given}: only one size may be -1")
    sizes = as_shape(tuple(1 if i in unknown else d for i, d in enumerate(given)))
    total, rest = x.type.size, product(sizes)
    if unknown:
        if rest == 0 or (total % rest != 0):
            raise ShapeError(f"reshape of {x.shape} to {given}: {total} elements do not divide")
        sizes = tuple(total // rest if i in unknown else d for i, d in enumerate(sizes))
    elif total != rest:
        raise ShapeError(f"reshape of {x.shape} with {total} elements to {given} with {rest}")
    return ops.reshape(x, sizes)


@op_function
def permute_dims(x: ArrayLike, /, axes: Sequence[int]) -> Any:
    """Reorder axes: axis i of the result is axis `axes[i]` of x.

    `[n0, n1, ...]` to `[n_axes[0], n_axes[1], ...]`; the cotangent goes through the inverse
    permutation. `ShapeError` where `axes` does not list each axis once, `AxisError` for an axis
    that x does not have.

    >>> import retrograd as rg
    >>> rg.permute_dims([[1, 2, 3]], (1, 0)).tolist()
    [[1], [2], [3]]
    """
    x = as_node(x)
    perm = listed_axes(axes, x.type.rank, "permute_dims")
    if len(perm) != x.type.rank:
        raise ShapeError(f"permute_dims of {x.shape}: {perm} must list each axis once")
    return ops.permute(x, perm)


@op_function
def matrix_transpose(x: ArrayLike, /) -> Any:
    """The last two axes exchanged.

    `[..., m, n]` to `[..., n, m]`. `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> rg.matrix_transpose([[1, 2, 3]]).tolist()
    [[1], [2], [3]]
    """
    x = as_node(x)
    if x.type.rank < 2:
        raise ShapeError(f"matrix_transpose takes matrices, not an array of the shape {x.shape}")
    return swapaxes(x, -1, -2)


@op_function
def swapaxes(x: ArrayLike, axis1: int, axis2: int, /) -> Any:
    """Two axes exchanged.

    The sizes of both are exchanged in the shape. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.swapaxes(rg.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_node(x)
    order = list(range(x.type.rank))
    i, j = (normal_axis(a, x.type.rank, "swapaxes") for a in (axis1, axis2))
    order[i], order[j] = j, i
    return ops.permute(x, order)


@op_function
def moveaxis(x: ArrayLike, source: Any, destination: Any, /) -> Any:
    """Axes moved to new positions; the others keep their order.

    Axis `source[i]` of x is axis `destination[i]` of the result; both are one axis or as many.
    `ShapeError` where they are not as many or name one twice, `AxisError` for an axis that x does
    not have.

    >>> import retrograd as rg
    >>> rg.moveaxis(rg.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_node(x)
    src, dst = (listed_axes(a, x.type.rank, "moveaxis") for a in (source, destination))
    if len(src) != len(dst):
        raise ShapeError(f"moveaxis from {source} to {destination}: different numbers of axes")
    order = [i for i in range(x.type.rank) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return ops.permute(x, order)


@op_function
def expand_dims(x: ArrayLike, /, axis: int | Sequence[int] = 0, *, dim: int | None = None) -> Any:
    """New axes of size 1 at the given positions of the result.

    The elements and the dtype stay. `AxisError` for a position beyond the result's shape,
    `ShapeError` for one named twice.

    >>> import retrograd as rg
    >>> rg.expand_dims([1, 2], axis=1).tolist()
    [[1], [2]]
    """
    axis = one_axis(axis, dim, 0)
    x = as_node(x)
    n = len(axis) if isinstance(axis, tuple | list) else 1
    if axis is None:
        raise ShapeError("expand_dims needs an axis")
    axes = normal_axes(axis, x.type.rank, "expand_dims", n)
    old = iter(x.shape)
    return ops.reshape(x, tuple(1 if i in axes else next(old) for i in range(x.type.rank + n)))


@op_function
def squeeze(
    x: ArrayLike,
    /,
    axis: int | Sequence[int] | None = None,
    *,
    dim: int | Sequence[int] | None = None,
) -> Any:
    """Drop axes of size 1: those given, which must have that size, or all that have it.

    The elements and the dtype stay. `ShapeError` for an axis of another size, which PyTorch's `dim`
    in place of `axis` leaves as it is; `AxisError` for one that x does not have.

    >>> import retrograd as rg
    >>> rg.squeeze([[[1, 2]]], axis=0).shape
    (1, 2)
    """
    x = as_node(x)
    if axis is None and dim is None:
        axis = tuple(i for i, d in enumerate(x.shape) if d == 1)
    axes = normal_axes(one_axis(axis, dim), x.type.rank, "squeeze")
    if dim is not None:
        axes = tuple(a for a in axes if x.shape[a] == 1)
    for a in axes:
        if x.shape[a] != 1:
            raise ShapeError(f"squeeze of axis {a} of {x.shape}, whose size is not 1")
    return ops.reshape(x, tuple(d for i, d in enumerate(x.shape) if i not in axes))


@op_function
def broadcast_to(x: ArrayLike, /, shape: Any) -> Any:
    """x repeated to a shape, following the rules of broadcasting.

    Missing axes are put in front, and axes of size 1 stretch; the cotangent is summed over them.
    `ShapeError` where the shape does not fit.

    >>> import retrograd as rg
    >>> rg.broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return broadcasting.broadcast_to(as_node(x), as_shape(shape))


@op_function_of_several
def broadcast_arrays(*arrays: ArrayLike) -> tuple[Node, ...]:
    """The arrays repeated to their common shape, as a tuple; dtypes stay.

    `ShapeError` where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> [x.tolist() for x in rg.broadcast_arrays([[1], [2]], 3)]
    [[[1], [2]], [[3], [3]]]
    """
    nodes = [as_node(a) for a in arrays]
    shape = broadcasting.broadcast_shapes(*(n.shape for n in nodes))
    return tuple(broadcasting.broadcast_to(n, shape) for n in nodes)


def broadcast_shapes(*shapes: Any) -> Shape:
    """The common shape of arrays of these shapes: axes are aligned from the right, and those of
    size 1 stretch. `ShapeError` where sizes differ otherwise.

    >>> import retrograd as rg
    >>> rg.broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    """
    return broadcasting.broadcast_shapes(*(as_shape(s) for s in shapes))


def alike_of(arrays: Sequence[ArrayLike], what: str) -> list[Node]:
    """Nodes of one dtype, of a sequence of arrays, or of one along its first axis."""
    if isinstance(arrays, Node):
        arrays = unstack(arrays)
    if not len(arrays):
        raise ShapeError(f"{what} needs at least one array")
    return alike(*arrays)


@op_function
@joined_by(np.concatenate)
def concat(arrays: Sequence[ArrayLike], /, axis: int | None = 0, *, dim: int | None = None) -> Any:
    """Join arrays along an axis; None flattens them first.

    `[..., n, ...]` and `[..., m, ...]` to `[..., n + m, ...]`; the dtypes are promoted.
    `ShapeError` where the other sizes differ or there is no array, `AxisError` for an axis that the
    arrays do not have.

    >>> import retrograd as rg
    >>> rg.concat([[1, 2], [3]]).tolist()
    [1, 2, 3]
    """
    axis = one_axis(axis, dim, 0)
    nodes = alike_of(arrays, "concat")
    if axis is None:
        nodes, axis = [ops.reshape(n, (n.type.size,)) for n in nodes], 0
    return joined(nodes, axis)


def joined(nodes: Sequence[Node], axis: int) -> Node:
    """`concat` of nodes of one dtype."""
    return ops.Concat(normal_axis(axis, nodes[0].type.rank, "concat"))(*nodes)


@op_function
@joined_by(np.stack)
def stack(arrays: Sequence[ArrayLike], /, axis: int = 0, *, dim: int | None = None) -> Any:
    """Join arrays of one shape along a new axis.

    k arrays `[n, ...]` to `[k, n, ...]`, the new axis at `axis`; the dtypes are promoted.
    `ShapeError` where the shapes differ or there is no array, `AxisError` for an axis beyond the
    result.

    >>> import retrograd as rg
    >>> rg.stack([[1, 2], [3, 4]], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    axis = one_axis(axis, dim, 0)
    nodes = alike_of(arrays, "stack")
    for n in nodes[1:]:
        if n.shape != nodes[0].shape:
            raise ShapeError(f"stack takes arrays of one shape, not {nodes[0].shape} and {n.shape}")
    return stacked(nodes, axis)


def stacked(nodes: Sequence[Node], axis: int) -> Node:
    """`stack` of nodes of one type."""
    at = normal_axis(axis, nodes[0].type.rank, "stack", 1)
    return ops.Concat(at)(*(as_node(expand_dims(n, at)) for n in nodes))


@op_function_of_several
def unstack(x: ArrayLike, /, axis: int = 0, *, dim: int | None = None) -> tuple[Node, ...]:
    """The slices along an axis, as a tuple. How many there are is part of the program, so that a
    symbolic size is refused: `rg.scan` and `rg.vmap` go along such an axis.

    `[..., k, ...]` to k arrays `[..., ...]`. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> [x.tolist() for x in rg.unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    axis = one_axis(axis, dim, 0)
    x = as_node(x)
    at = normal_axis(axis, x.type.rank, "unstack")
    n = known_size(x, at, "unstack")
    return tuple(as_node(squeeze(ops.slice_axis(x, at, i, i + 1), at)) for i in range(n))


@op_function_of_several
def split(
    x: ArrayLike, /, sections: int | Sequence[int], axis: int = 0, *, dim: int | None = None
) -> tuple[Node, ...]:
    """Parts along an axis, as a tuple: so many equal parts, or parts of the given sizes.

    `[..., n, ...]` to `[..., n_i, ...]`, where the `n_i` sum to n. `ShapeError` where they do not,
    or n is no multiple of the number of parts; `AxisError` for an axis that x does not have. With
    PyTorch's `dim` in place of `axis` a number is, as in PyTorch, the size of the parts, of which
    the last may be smaller.

    >>> import retrograd as rg
    >>> [x.tolist() for x in rg.split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3, 4]]
    """
    x = as_node(x)
    at = normal_axis(one_axis(axis, dim, 0), x.type.rank, "split")
    n = x.shape[at]
    if dim is not None and not isinstance(sections, tuple | list):
        sections = pieces(sections, known_size(x, at, "split"))
    if isinstance(sections, tuple | list):
        sizes = [s if isinstance(s, Dim) else integer(s, "split: a size") for s in sections]
    else:
        count = integer(sections, "split: the number of parts")
        uneven = f"split of {n} elements into {count} equal parts"
        if count < 1:
            raise ShapeError(uneven)
        x = guard(x, n % count, "<=", 0, uneven)
        sizes = [n // count] * count
        n = n // count * count
    if sum(sizes) != n or any(isinstance(s, int) and s < 0 for s in sizes):
        raise ShapeError(f"split of {n} elements into parts of {tuple(sizes)}")
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return tuple(ops.slice_axis(x, at, e - s, e) for s, e in zip(sizes, ends, strict=True))


def pieces(size: Any, n: int) -> list[int]:
    """The sizes of parts of n elements that have one size, but for the last."""
    each = integer(size, "split: the size of a part")
    if each < 0 or (each == 0 and n):
        raise ShapeError(f"split of {n} elements into parts of {each}")
    return [min(each, n - i) for i in range(0, n, each)] if n else [0]


def known_size(x: Node, axis: int, what: str) -> int:
    n = x.shape[axis]
    if isinstance(n, Dim):
        raise ShapeError(
            f"{what} along axis {axis} of {x.shape}, whose size {n} is symbolic, so that it is not "
            "known how many results there are; rg.scan and rg.vmap go along such an axis"
        )
    return n


@op_function
def flip(
    x: ArrayLike,
    /,
    axis: int | Sequence[int] | None = None,
    *,
    dims: int | Sequence[int] | None = None,
) -> Any:
    """The order reversed along the given axes, all by default.

    Shape and dtype stay. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.flip([1, 2, 3]).tolist()
    [3, 2, 1]
    """
    x = as_node(x)
    axes = normal_axes(one_axis(axis, dims), x.type.rank, "flip")
    return ops.flip(x, axes)


@op_function
def roll(
    x: ArrayLike, /, shift: Any = None, axis: Any = None, *, shifts: Any = None, dims: Any = None
) -> Any:
    """Elements moved along axes by `shift`, a number for each axis or one for all; those that leave
    come in at the other end. Without an axis, x is rolled as if it were flattened.

    `y[(i + shift) mod n] = x[i]`; shape and dtype stay. `ShapeError` where there are not as many
    shifts as axes, `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.roll([1, 2, 3], 1).tolist()
    [3, 1, 2]
    """
    x = as_node(x)
    axis = one_axis(axis, None if dims in ((), []) else dims)  # PyTorch's default is ()
    shift = one_axis(shift, shifts)
    if axis is None:
        flat = as_node(roll(ops.reshape(x, (x.type.size,)), shift, 0))
        return ops.reshape(flat, x.shape)
    axes = listed_axes(axis, x.type.rank, "roll")
    shifts = shift if isinstance(shift, tuple | list) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll by {shift} along the axes {axis}: one shift for each axis")
    for at, by in zip(axes, shifts, strict=True):
        n = x.shape[at]
        k = by if isinstance(by, Dim) else integer(by, "roll: a shift")
        k = k % (n + 1 // (n + 1))  # which is 1 where n is 0
        if k != 0:
            x = ops.Concat(at)(ops.slice_axis(x, at, n - k, n), ops.slice_axis(x, at, 0, n - k))
    return x


@op_function
def tile(x: ArrayLike, repetitions: int | Sequence[int], /) -> Any:
    """x laid side by side the given number of times along each axis.

    Sizes of the shape are multiplied; axes that are missing on one side are put in front.
    `ShapeError` for repetitions that are negative or no integers.

    >>> import retrograd as rg
    >>> rg.tile([1, 2], 2).tolist()
    [1, 2, 1, 2]
    """
    x = as_node(x)
    given = as_shape(repetitions)
    reps = (1,) * (x.type.rank - len(given)) + given
    sizes = (1,) * (len(reps) - x.type.rank) + x.shape
    wide = tuple(d for pair in zip(reps, sizes, strict=True) for d in pair)
    axes = tuple(range(0, len(wide), 2))
    result = tuple(r * d for r, d in zip(reps, sizes, strict=True))
    return ops.reshape(ops.expand(ops.reshape(x, sizes), wide, axes), result)


@op_function
def pad(x: ArrayLike, /, pad_width: Any, *, value: ArrayLike = 0) -> Any:
    """A constant put around x; `pad_width` is (before, after) for each axis, or one pair or number
    for all.

    `[n, ...]` to `[before + n + after, ...]`; the dtype stays. `ShapeError` for a `pad_width` that
    has not a pair for each axis, `DTypeError` for a value that does not fit the dtype.

    >>> import retrograd as rg
    >>> rg.pad([1, 2], (1, 2)).tolist()
    [0, 1, 2, 0, 0]
    """
    x = as_node(x)
    pairs = pad_width if isinstance(pad_width, tuple | list) else (pad_width, pad_width)
    if not any(isinstance(p, tuple | list) for p in pairs):
        pairs = [pairs] * x.type.rank
    sizes = [as_shape(p) for p in pairs]
    if len(sizes) != x.type.rank or any(len(p) != 2 for p in sizes):
        raise ShapeError(f"pad of {x.shape} needs (before, after) for each axis, not {pad_width}")
    low, high = (tuple(p[i] for p in sizes) for i in (0, 1))
    if isinstance(value, Node):
        y = ops.pad(x, low, high)
        inside = ops.pad(full(True, x.type.with_dtype(bool_)), low, high, value=False)
        around = broadcasting.broadcast_to(broadcasting.rounded(value, x.dtype), y.shape)
        return el.select(inside, y, around)
    number(value, x.dtype)  # refuses what the dtype cannot hold
    return ops.pad(x, low, high, value=value)


def positions(shape: Any, axis: int) -> Node:
    """`y[i0, ..., in] = i_axis` as int64."""
    return Iota(tuple(shape), axis, int64)()


def _triangle(x: ArrayLike, k: int, lower: bool) -> Node:
    x = as_node(x)
    if x.type.rank < 2:
        raise ShapeError(f"a triangle is taken of a matrix, not of the shape {x.shape}")
    k = integer(k, "a diagonal")
    below = mask_below(x.shape[-2], x.shape[-1], k if lower else k - 1)
    inside = below if lower else el.bitwise_not(below)
    zero = full(False if x.dtype is bool_ else 0, x.type)
    return el.select(broadcasting.broadcast_to(inside, x.shape), x, zero)


def mask_below(rows: int | Dim, columns: int | Dim, k: int = 0) -> Node:
    """The boolean matrix that is true where `column - row <= k`."""
    i, j = positions((rows, columns), 0), positions((rows, columns), 1)
    return el.le(j - i, full(k, TensorType(int64, (rows, columns))))


@op_function
def tril(x: ArrayLike, /, diagonal: int = 0, *, k: int = 0) -> Any:
    """The lower triangles of matrices, on and below diagonal k, which is also
    called `diagonal`; zero elsewhere.

    `[..., m, n]` to the same. `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> rg.tril([[1, 2], [3, 4]]).tolist()
    [[1, 0], [3, 4]]
    """
    return _triangle(x, k or diagonal, True)


@op_function
def triu(x: ArrayLike, /, diagonal: int = 0, *, k: int = 0) -> Any:
    """The upper triangles of matrices, on and above diagonal k, which is also
    called `diagonal`; zero elsewhere.

    `[..., m, n]` to the same. `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> rg.triu([[1, 2], [3, 4]]).tolist()
    [[1, 2], [0, 4]]
    """
    return _triangle(x, k or diagonal, False)


@op_function_of_several
def meshgrid(*arrays: ArrayLike, indexing: str = "xy") -> tuple[Node, ...]:
    """Coordinate arrays of the grid spanned by vectors, as a tuple.

    Each keeps its dtype. Of `[n]` and `[m]`, two arrays `[m, n]`, with `indexing="ij"` `[n, m]`.
    `OptionError` for another indexing, `ShapeError` for anything but vectors.

    >>> import retrograd as rg
    >>> [x.tolist() for x in rg.meshgrid([1, 2], [3])]
    [[[1, 2]], [[3, 3]]]
    """
    if indexing not in ("xy", "ij"):
        raise OptionError(f"meshgrid indexing is 'xy' or 'ij', not {indexing!r}")
    nodes = [as_node(a) for a in arrays]
    if any(n.type.rank > 1 for n in nodes):
        raise ShapeError(f"meshgrid takes vectors, not {', '.join(str(n.type) for n in nodes)}")
    shape = tuple(n.type.size for n in nodes)
    grids = [
        ops.expand(ops.reshape(n, (n.type.size,)), shape, [j for j in range(len(nodes)) if j != i])
        for i, n in enumerate(nodes)
    ]
    if indexing == "xy" and len(grids) > 1:
        grids = [as_node(swapaxes(g, 0, 1)) for g in grids]
    return tuple(grids)
