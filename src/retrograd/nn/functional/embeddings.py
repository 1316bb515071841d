"""Embeddings and one-hot vectors as functions, with PyTorch's names and arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.eager.listeners import listening
from retrograd.eager.modes import is_tracing
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.indexing import rows_from_front
from retrograd.functions.tensor.sparse_grad import look_up
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim
from retrograd.ir.source import located
from retrograd.nn.functional.affine import here
from retrograd.nn.functional.conv_pool import values_of
from retrograd.nn.module.parameter import Parameter
from retrograd.tracing.scope import is_differentiating


@located
def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """1 at each index along a new last axis, 0 elsewhere; int64.

    Without `num_classes` it is one more than the largest index, which must be known: in transforms
    and `jit` it is an error that says so.

    `[...]` to `[..., num_classes]`. `DTypeError` for floats, `ShapeError` for no indices without
    `num_classes`.

    >>> import retrograd as rg
    >>> rg.nn.functional.one_hot(rg.tensor([1, 0]), 3).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    if num_classes == -1:
        x = rg.asarray(tensor)
        if x.size == 0:
            raise ShapeError(f"one_hot{here()} of {x.shape}: of no indices, give num_classes")
        num_classes = int(rg.max(x)) + 1
    return rg.one_hot(tensor, num_classes, dtype=rg.int64)


@located
def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` (`[num, dim]`) at the given indices: `[...]` gives `[..., dim]`.

    Indices out of range, negative ones too, are an `IndexRangeError`. The row `padding_idx` gets
    no gradient. With `scale_grad_by_freq` the gradient of a row is divided by how often it was
    looked at in this call.

    With `max_norm`, rows that are looked at and whose norm (of the order `norm_type`) is greater
    are first scaled down to it, in the weight itself, which must be a `Parameter` with values: in
    transforms and `jit` that is an `OptionError`.

    With `sparse`, what `backward()` gives a `Parameter` is a `RowSparse`: the rows that were looked
    at, and their gradients; no array of the size of the table is made. Optimizers then move these
    rows alone, with their part of the state: decay and momentum of other rows wait until these are
    looked at. The indices are computed at once. In transforms, `jit` and under `rg.grad` it is a
    lookup like any other; there the pure form of `SGD` without momentum and of `Adagrad`, both
    without decay, moves the rows that any lookup read, with the bits of the whole gradient.

    `DTypeError` for indices that are no integers, `ShapeError` for a weight that is no matrix.

    >>> import retrograd as rg
    >>> rg.nn.functional.embedding([1, 0], rg.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    index, weight = rg.asarray(input), rg.asarray(weight)
    if not index.dtype.is_integer:
        raise DTypeError(f"embedding{here()} takes integer indices, not {index.dtype}")
    if weight.ndim != 2:
        raise ShapeError(f"embedding{here()}: the weight is a matrix, not of shape {weight.shape}")
    if max_norm is not None:
        _bound_rows(index, weight, max_norm, norm_type)
    y = _rows_of(weight, index, sparse)
    if scale_grad_by_freq:
        y = _by_frequency(y, index, weight.shape[0], rg.ones(index.shape, dtype=rg.bool))
    if padding_idx is None:
        return y
    row = padding_idx + weight.shape[0] if padding_idx < 0 else padding_idx
    return rg.where(rg.expand_dims(index == row, axis=-1), rg.stop_gradient(y), y)


def _is_plain(weight: Any) -> bool:
    """Whether a weight is a parameter that has values, and nothing is traced."""
    recorded = is_tracing() or is_differentiating() or listening()
    return isinstance(weight, Parameter) and weight.is_source and not recorded


def _rows_of(weight: Tensor, index: Tensor, sparse: bool) -> Tensor:
    if sparse and _is_plain(weight):
        return look_up(weight, index.numpy())
    return rows_from_front(weight, index, of="index")


def _bound_rows(index: Tensor, weight: Any, most: float, order: float) -> None:
    """Scale rows of a parameter down to a norm, as PyTorch does: by `most / (norm + 1e-7)`."""
    if not most >= 0 or not order > 0:
        raise OptionError(
            f"embedding{here()}: max_norm is not negative and norm_type positive, not {most} and "
            f"{order}"
        )
    if not _is_plain(weight):
        raise OptionError(
            f"embedding{here()}: max_norm changes the weight in place, which must be a Parameter, "
            "outside of jit and other transforms; scale the rows of the result instead"
        )
    array = weight.value()
    rows = np.unique(index.numpy())
    rows = rows[(rows >= 0) & (rows < len(array))]  # others are refused by the lookup
    norms = np.linalg.norm(array[rows].astype(np.float64), order, axis=1)
    large = norms > most
    if large.any():
        new = array.copy()
        factors = (most / (norms[large] + 1e-7))[:, None].astype(array.dtype)
        new[rows[large]] = array[rows[large]] * factors
        weight.replace(new)


def _by_frequency(y: Tensor, index: Tensor, n: int | Dim, counted: Any) -> Tensor:
    """Rows whose gradient is divided by how often their index occurs among those that count."""
    flat = index.reshape((-1,))
    places = rg.asarray(counted).reshape((-1,)).astype(y.dtype)
    counts = rg.scatter_add(rg.zeros(n, dtype=y.dtype), flat, places)
    share = 1 / rg.maximum(rg.take(counts, index), 1.0)
    held = rg.stop_gradient(y)
    return held + (y - held) * rg.expand_dims(share, axis=-1)


@located
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Rows of `weight` (`[num, dim]`) summed, averaged or maximised over bags: `[bags, dim]`.

    The indices are `[bags, size]`, or one vector of all bags behind one another, which start at
    `offsets`, which rise from 0; with `include_last_offset` the last of these is the end. Indices
    equal to `padding_idx` count for nothing. An empty bag gives 0. `per_sample_weights` multiply
    the rows of a sum. For `max_norm`, `scale_grad_by_freq` (not with mode "max") and `sparse` see
    `embedding`. Offsets that become known in the call only, in `jit`, are not checked.

    `OptionError` for an unknown mode and options that it does not have, `IndexRangeError` for an
    index that there is not, `ShapeError` for indices of other shapes.

    >>> import retrograd as rg
    >>> rg.nn.functional.embedding_bag([[0, 1]], rg.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[2.0, 3.0]]
    """
    index, table = rg.asarray(input), rg.asarray(weight)
    if mode not in ("sum", "mean", "max"):
        raise OptionError(f"embedding_bag{here()}: mode is 'sum', 'mean' or 'max', not {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        raise OptionError(f"embedding_bag{here()}: per_sample_weights are for mode 'sum'")
    if scale_grad_by_freq and mode == "max":
        raise OptionError(f"embedding_bag{here()}: scale_grad_by_freq is not for mode 'max'")
    if index.ndim not in (1, 2) or (index.ndim == 1) == (offsets is None):
        raise ShapeError(
            f"embedding_bag{here()}: indices [bags, size], or a vector with offsets, not "
            f"{index.shape}"
        )
    factors = None if per_sample_weights is None else rg.asarray(per_sample_weights)
    if factors is not None and factors.shape != index.shape:
        raise ShapeError(
            f"embedding_bag{here()}: a weight for each of the indices {index.shape}, not "
            f"{factors.shape}"
        )
    bags: Tensor | None = None  # the bag of each index, where these are in no rows
    chosen = index
    counts: Any = rg.ones(index.shape, dtype=rg.bool)
    if offsets is not None:
        starts = values_of(offsets)
        if starts is None or isinstance(index.shape[0], Dim):
            bags, counts = _numbered(index, rg.asarray(offsets), include_last_offset)
        else:
            members, inside = _bags(index.shape[0], starts, include_last_offset)
            chosen, counts = rg.take(index, members, axis=0), rg.asarray(inside)
            if factors is not None:
                factors = rg.take(factors, members, axis=0)
    if padding_idx is not None:
        row = padding_idx + table.shape[0] if padding_idx < 0 else padding_idx
        counts = counts & (chosen != row)
    rows = _members(chosen, counts, table, max_norm, norm_type, scale_grad_by_freq, sparse)
    if factors is not None:
        rows = rows * rg.expand_dims(factors.astype(rows.dtype), axis=-1)
    some = rg.expand_dims(counts, axis=-1)
    if bags is not None:
        last = rg.asarray(offsets).shape[0] - int(include_last_offset)

        def joined(x: Any, how: str) -> Tensor:
            return getattr(rg, f"segment_{how}")(x, bags, last)
    else:

        def joined(x: Any, how: str) -> Tensor:
            return getattr(rg, how)(x, axis=1)

    number = joined(some.astype(rows.dtype), "sum")
    if mode == "max":
        most = joined(rg.where(some, rows, -math.inf), "max")
        return rg.where(number > 0, most, 0.0)
    total = joined(rg.where(some, rows, 0.0), "sum")
    return total if mode == "sum" else total / rg.maximum(number, 1.0)


def _members(
    chosen: Tensor,
    counts: Any,
    table: Tensor,
    max_norm: float | None,
    norm_type: float,
    by_frequency: bool,
    sparse: bool,
) -> Tensor:
    """The rows of all members of bags; where they do not count, some row or other."""
    if _is_plain(table) and (sparse or max_norm is not None):
        inside = counts.numpy()
        if not inside.any():
            return rg.zeros((*chosen.shape, table.shape[1]), dtype=table.dtype)
        # A row that is looked at anyhow, so that no other one is touched.
        chosen = rg.where(counts, chosen, int(chosen.numpy()[inside][0]))
    else:
        chosen = rg.where(counts, chosen, 0)
    rows = embedding(chosen, table, None, max_norm, norm_type, sparse=sparse)
    return _by_frequency(rows, chosen, table.shape[0], counts) if by_frequency else rows


def _numbered(index: Tensor, offsets: Tensor, ended: bool) -> tuple[Tensor, Tensor]:
    """The bag of each index, and whether it is in one, for offsets or sizes that are not known."""
    if offsets.ndim != 1:
        raise ShapeError(f"embedding_bag{here()}: offsets are a vector, not of {offsets.shape}")
    place = rg.arange(index.shape[0])
    bags = rg.searchsorted(offsets, place, side="right") - 1
    last = offsets.shape[0] - int(ended)
    inside = (bags >= 0) & (bags < last)
    return rg.where(inside, bags, 0), inside


def _bags(size: int, offsets: Any, ended: bool) -> tuple[Any, Any]:
    """The positions of the members of each bag, `[bags, most]`, and which of these count."""
    starts = offsets.astype(np.int64)
    ends = np.append(starts[1:], [] if ended else [size]).astype(np.int64)
    starts = starts[: len(ends)]
    good = starts.ndim == 1 and bool((starts >= 0).all() and (ends >= starts).all())
    if not good or bool((ends > size).any()) or (len(starts) and starts[0] != 0):
        raise ShapeError(
            f"embedding_bag{here()}: offsets rise from 0 to at most {size}, not {starts.tolist()}"
        )
    members = starts[:, None] + np.arange(max(int((ends - starts).max(initial=0)), 1))
    inside = members < ends[:, None]
    return np.where(inside, members, 0), inside
