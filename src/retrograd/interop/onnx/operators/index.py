"""Operators that read and write elements at indices."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import OptionError
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.interop.onnx.values import (
    SymbolicSizes,
    as_tensor,
    from_sizes,
    known,
    known_sizes,
    number,
)


@rule("Gather", sizes=True, moves=True)
def gather(call: NodeCall, x: Any, indices: Any) -> Any:
    axis = call.get("axis", 0)
    where = known(indices)
    if isinstance(x, SymbolicSizes) and where is not None:
        return from_sizes(np.take(x.array, where, axis=axis))
    if where is not None:  # counted from the front, so that no choice is left to run
        length = x.shape[axis]
        if isinstance(length, int):
            where = np.where(where < 0, where + length, where)
        indices = rg.asarray(where)
    shape = (*x.shape[: axis % x.ndim], *indices.shape, *x.shape[axis % x.ndim + 1 :])
    return rg.reshape(rg.take(x, rg.reshape(indices, (-1,)), axis=axis), shape)


@rule("GatherElements")
def gather_elements(call: NodeCall, x: Any, indices: Any) -> Any:
    return rg.gather(x, call.get("axis", 0), _from_front(indices, x.shape[call.get("axis", 0)]))


@rule("GatherND")
def gather_nd(call: NodeCall, x: Any, indices: Any) -> Any:
    """Each row of `indices` is an index into what follows the batch axes."""
    return x[_rows(x, indices, call.get("batch_dims", 0))]


def _rows(x: Any, indices: Any, batch: int) -> tuple[Any, ...]:
    """The index of arrays that rows of indices mean."""
    columns = [indices[..., i] for i in range(indices.shape[-1])]
    rank = indices.ndim - 1
    leading = []
    for axis in range(batch):
        shape = [1] * rank
        shape[axis] = x.shape[axis]
        leading.append(rg.reshape(rg.arange(x.shape[axis]), tuple(shape)))
    return (*leading, *columns)


def _from_front(indices: Any, length: Any) -> Any:
    return rg.where(indices < 0, indices + length, indices)


@rule("ScatterElements", "Scatter")
def scatter_elements(call: NodeCall, x: Any, indices: Any, updates: Any) -> Any:
    """Elements at whole indices along one axis, replaced or joined by `reduction`."""
    axis = call.get("axis", 0)
    index: list[Any] = []
    for i, d in enumerate(indices.shape):
        shape = [1] * indices.ndim
        shape[i] = d
        index.append(rg.reshape(rg.arange(d), tuple(shape)))
    index[axis] = _from_front(indices, x.shape[axis])
    return _written(call, x, tuple(index), updates)


@rule("ScatterND")
def scatter_nd(call: NodeCall, x: Any, indices: Any, updates: Any) -> Any:
    return _written(call, x, _rows(x, indices, 0), updates)


def _written(call: NodeCall, x: Any, index: tuple[Any, ...], updates: Any) -> Any:
    at = x.at[index]
    reduction = call.get("reduction", "none")
    match reduction:
        case "none":
            return at.set(updates)
        case "add":
            return at.add(updates)
        case "mul":
            return at.multiply(updates)
        case "max":
            return at.max(updates)
        case "min":
            return at.min(updates)
    raise OptionError(f"{call.operator} with the reduction {reduction!r}")


@rule("OneHot", sizes=True)
def one_hot(call: NodeCall, indices: Any, depth: Any, values: Any) -> Any:
    """Off and on; an index out of range is a row of off."""
    count = known_sizes(depth)
    n = number(depth, "the depth of OneHot") if count is None else count.item()
    n = int(n) if isinstance(n, float) else n
    axis = call.get("axis", -1)
    axis = axis + len(indices.shape) + 1 if axis < 0 else axis
    whole = as_tensor(indices).astype(rg.int64)
    whole = rg.expand_dims(rg.where(whole < 0, whole + n, whole), axis=axis)
    shape = [1] * (len(indices.shape) + 1)
    shape[axis] = n
    return rg.where(whole == rg.reshape(rg.arange(n), tuple(shape)), values[1], values[0])


@rule("TensorScatter")
def tensor_scatter(call: NodeCall, past: Any, update: Any, starts: Any = None) -> Any:
    """A cache of keys or values, in which new ones are written at each sequence's place."""
    axis = call.get("axis", -2) % past.ndim
    length, new = past.shape[axis], update.shape[axis]
    begin = rg.zeros((past.shape[0],), dtype=rg.int64) if starts is None else starts
    places = begin[:, None] + rg.arange(new)[None, :]
    if call.get("mode", "linear") == "circular":
        places = rg.remainder(places, length)
    moved, rows = rg.moveaxis(past, axis, 1), rg.moveaxis(update, axis, 1)
    batch = rg.arange(past.shape[0])[:, None]
    return rg.moveaxis(moved.at[batch, places].set(rows), 1, axis)
