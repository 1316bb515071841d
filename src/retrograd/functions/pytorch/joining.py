"""Joining and splitting under PyTorch's names."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from retrograd.coming_from.keywords import respells
from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import OptionError, ShapeError
from retrograd.functions import manipulation
from retrograd.functions.broadcasting import as_node, integer, normal_axis, one_axis
from retrograd.functions.counting import repeat
from retrograd.functions.indexing import take
from retrograd.functions.manipulation import known_size, pieces
from retrograd.ir import Node
from retrograd.ops import shape as ops
from retrograd.ops.leaf import constant
from retrograd.tensor_type import Tensor


@op_function
def cat(tensors: Sequence[ArrayLike], /, dim: int | None = None, *, axis: int | None = None) -> Any:
    """Join arrays along an axis, 0 by default: `concat`. Vectors without elements are left out,
    whatever the number of axes of the others.

    `[..., n, ...]` and `[..., m, ...]` to `[..., n + m, ...]`. `ShapeError` where the other sizes
    differ, `AxisError` for an axis that the arrays do not have.

    >>> import retrograd as rg
    >>> rg.cat([rg.ones(2), rg.zeros(1)], dim=0).tolist()
    [1.0, 1.0, 0.0]
    """
    if not isinstance(tensors, Node):
        tensors = [x for x in map(as_node, tensors) if x.shape != (0,)] or tensors
    at = one_axis(axis, dim)
    return manipulation.joined(manipulation.alike_of(tensors, "cat"), 0 if at is None else at)


@op_function_of_several
def chunk(x: ArrayLike, /, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most so many parts along an axis, of one size but for the last, as a tuple.

    `[..., n, ...]` to `[..., ceil(n / chunks), ...]`. `ShapeError` for less than one part,
    `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> [part.tolist() for part in rg.chunk(rg.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    x = as_node(x)
    at = normal_axis(dim, x.type.rank, "chunk")
    n, count = known_size(x, at, "chunk"), integer(chunks, "chunk: the number of parts")
    if count < 1:
        raise ShapeError(f"chunk into {count} parts: there is at least 1")
    return manipulation.split(x, pieces(max(-(-n // count), 1), n) if n else [0] * count, at)


@op_function_of_several
def tensor_split(x: ArrayLike, /, indices_or_sections: Any, dim: int = 0) -> tuple[Node, ...]:
    """Parts along an axis, as a tuple: so many, of which the first are longer by one where it does
    not come out even, or those between the given places.

    `[..., n, ...]` to `[..., n_i, ...]`. `ShapeError` for less than one part, `AxisError` for an
    axis that x does not have.

    >>> import retrograd as rg
    >>> [part.tolist() for part in rg.tensor_split(rg.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    x, at = as_node(x), indices_or_sections
    axis = normal_axis(dim, x.type.rank, "tensor_split")
    n = known_size(x, axis, "tensor_split")
    at = at.tolist() if hasattr(at, "tolist") else at
    if not isinstance(at, tuple | list):
        count = integer(at, "tensor_split: the number of parts")
        if count < 1:
            raise ShapeError(f"tensor_split into {count} parts: there is at least 1")
        size, more = divmod(n, count)
        at = [i * size + min(i, more) for i in range(1, count)]
    ends = [slice(a, b).indices(n) for a, b in itertools.pairwise((0, *at, n))]
    return tuple(ops.slice_axis(x, axis, a, max(a, b)) for a, b, _ in ends)


@op_function_of_several
def unbind(x: ArrayLike, /, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, as a tuple: `unstack`.

    `[..., k, ...]` to k arrays `[..., ...]`. `AxisError` for an axis that x does not have,
    `ShapeError` for a symbolic size.

    >>> import retrograd as rg
    >>> [row.tolist() for row in rg.unbind(rg.eye(2))]
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return manipulation.unstack(as_node(x), dim)


@op_function_of_several
def split_with_sizes(
    x: ArrayLike, /, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Parts of the given sizes along an axis, as a tuple: `split` of a list.

    `[..., n, ...]` to `[..., n_i, ...]`. `ShapeError` where the sizes do not sum to n, `AxisError`
    for an axis that x does not have.

    >>> import retrograd as rg
    >>> [part.tolist() for part in rg.split_with_sizes(rg.arange(3), [1, 2])]
    [[0], [1, 2]]
    """
    return manipulation.split(as_node(x), list(split_sizes), dim)


@op_function_of_several
def broadcast_tensors(*tensors: ArrayLike) -> tuple[Tensor, ...]:
    """The arrays repeated to their common shape, as a tuple: `broadcast_arrays`.

    The dtypes stay. `ShapeError` where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> [x.shape for x in rg.broadcast_tensors(rg.ones((2, 1)), rg.ones(3))]
    [(2, 3), (2, 3)]
    """
    return manipulation.broadcast_arrays(*map(as_node, tensors))


@op_function
def cartesian_prod(*tensors: ArrayLike) -> Any:
    """All tuples with one element of each vector.

    Of `[n]` and `[m]`, `[n * m, 2]`, in the order of nested loops; one vector stays as it is.
    `ShapeError` for anything but vectors.

    >>> import retrograd as rg
    >>> rg.cartesian_prod(rg.tensor([1, 2]), rg.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    nodes = [as_node(x) for x in tensors]
    if not nodes or any(n.type.rank != 1 for n in nodes):
        raise ShapeError("cartesian_prod takes vectors")
    if len(nodes) == 1:
        return nodes[0]
    grids = [as_node(g) for g in manipulation.meshgrid(*nodes, indexing="ij")]
    return manipulation.stacked([ops.reshape(g, (g.type.size,)) for g in grids], 1)


@op_function
def combinations(x: ArrayLike, /, r: int = 2, with_replacement: bool = False) -> Any:
    """All choices of r elements of a vector, in the order of `itertools.combinations`.

    `[n]` to `[n! / (r! (n - r)!), r]`. `ShapeError` for anything but a vector, `OptionError` for a
    negative r.

    >>> import retrograd as rg
    >>> rg.combinations(rg.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    x = as_node(x)
    if x.type.rank != 1:
        raise ShapeError(f"combinations takes a vector, not the shape {x.shape}")
    if r < 0:
        raise OptionError(f"combinations of {r} elements")
    chosen = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(chosen(range(known_size(x, 0, "combinations")), r))
    places = manipulation.np.array(rows, manipulation.np.int64).reshape(len(rows), r)
    return take(x, constant(places))


@respells
def repeat_interleave(
    x: Any, /, repeats: Any, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element repeated along an axis; None flattens first: `repeat`.

    `[..., n, ...]` to `[..., sum(repeats), ...]`; where these are traced, `output_size` has to say
    it. `ShapeError` where the number of `repeats` is not the size of the axis.

    >>> import retrograd as rg
    >>> rg.repeat_interleave(rg.tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    return repeat(x, repeats, dim, total_repeat_length=output_size)
