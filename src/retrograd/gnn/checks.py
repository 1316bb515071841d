"""What edges and their weights and types have to be; errors name the edge that is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.errors import FormatError, IndexKindError, IndexRangeError, ShapeError

Array = np.ndarray[Any, Any]


def check_ends(ends: Array, nodes: int) -> None:
    """An `IndexRangeError` for the first edge that has an end outside of the graph."""
    outside = ((ends < 0) | (ends >= nodes)).any(axis=0)
    if outside.any():
        e = int(np.flatnonzero(outside)[0])
        u, v = (int(x) for x in ends[:, e])
        raise IndexRangeError(
            f"edge {e} leads from node {u} to node {v}, but the graph has {nodes} nodes, which are "
            "counted from 0"
        )


def edge_numbers(chosen: Any, edges: int) -> Array:
    """Edges that are chosen by their numbers, or by a boolean for each, as numbers."""
    found = np.asarray(chosen)
    if found.ndim != 1 or (found.dtype == bool and len(found) != edges):
        raise ShapeError(
            f"edges are chosen by their numbers or by {edges} booleans, not by an array of dtype "
            f"{found.dtype} and shape {found.shape}"
        )
    if found.dtype == bool:
        return np.flatnonzero(found)
    if not found.size:
        return found.astype(np.int64)
    if found.dtype.kind not in "iu":
        raise IndexKindError(f"edges are chosen by integers or booleans, not {found.dtype}")
    outside = (found < -edges) | (found >= edges)
    if outside.any():
        raise IndexRangeError(f"edge {found[outside][0]} of a graph with {edges} edges")
    return found


def check_weights(weights: Array, ends: Array, negative: bool, finite: bool = True) -> None:
    """A `FormatError` for the first weight that is not allowed, naming its edge."""
    wrong = np.zeros(weights.shape, bool)
    if finite:
        wrong |= ~np.isfinite(weights)
    if not negative:
        wrong |= ~(weights >= 0)
    if wrong.any():
        e = int(np.flatnonzero(wrong.reshape(len(weights), -1).any(axis=1))[0])
        allowed = "finite" if negative else "finite and not negative"
        raise FormatError(
            f"edge {e}, from node {ends[0, e]} to node {ends[1, e]}, has the weight {weights[e]}; "
            f"weights have to be {allowed} here"
        )


def check_types(types: Array, ends: Array, count: int) -> None:
    """An `IndexRangeError` for the first edge whose type is none of 0 to `count - 1`."""
    wrong = np.flatnonzero((types < 0) | (types >= count))
    if wrong.size:
        e = int(wrong[0])
        raise IndexRangeError(
            f"edge {e}, from node {ends[0, e]} to node {ends[1, e]}, has the type {types[e]}, but "
            f"there are {count} types, which are counted from 0"
        )
