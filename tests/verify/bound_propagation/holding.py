"""Attacks on bounds: inputs from regions, and what a program gives for them that no bound holds.

A region is a list of pairs of arrays, the ends of what each input of a graph can be. Points are
ends, corners, numbers in between, and neighbours of the ends; `climbed` follows gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograd.graph.graph import Graph
from retrograd.ir import Node, TupleType
from retrograd.ops.identity import items
from retrograd.verify.bound_propagation.interval import Interval, Rectangle, either, point
from retrograd.verify.bound_propagation.propagation import outputs_of
from retrograd.verify.bound_propagation.rules.leaves import entered

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
WIDTHS = (0.0, 1e-6, 0.1, 2.0)
# Ops of factors that were computed of another input: these go with that, not each by itself.
FACTORS = {"solve": 1, "inv": 1, "least_squares": 1}


def parts(x: Any) -> list[Array]:
    """Real parts of an array, which may be complex."""
    x = np.asarray(x)
    return [np.array(x.real), np.array(x.imag)] if x.dtype.kind == "c" else [x]


def whole(pieces: Sequence[Array], like: Any) -> Array:
    if len(pieces) == 1:
        return pieces[0].astype(like.dtype)
    z = np.empty(like.shape, like.dtype)
    z.real, z.imag = pieces
    return z


def widened(rng: Rng, x: Array, width: float) -> tuple[Array, Array]:
    """Ends around an array; integers stay as they are, booleans may become uncertain."""
    if x.dtype.kind == "b" and width:
        unsure = rng.random(x.shape) < 0.5
        return x & ~unsure, x | unsure
    if x.dtype.kind in "biu":
        return x, x
    wide = x.astype(np.float64)
    radius = width * np.abs(rng.normal(size=x.shape))
    with np.errstate(all="ignore"):
        low = (wide - radius * (rng.random(x.shape) < 0.7)).astype(x.dtype)
        high = (wide + radius * (rng.random(x.shape) < 0.7)).astype(x.dtype)
    return np.minimum(low, x), np.maximum(high, x)


Region = list[tuple[list[tuple[Array, Array]], Array]]  # ends of the parts, and the middle


def region_around(rng: Rng, name: str, arrays: Sequence[Any], width: float) -> Region:
    found: Region = []
    for i, x in enumerate(arrays):
        own = 0.0 if FACTORS.get(name) == i else width
        found.append(([widened(rng, p, own) for p in parts(x)], np.asarray(x)))
    return found


def values_of(nodes: Sequence[Node], region: Region) -> list[Any]:
    """What inputs can be, as `bounds` takes it."""
    found = []
    for node, (pieces, _) in zip(nodes, region, strict=True):
        ends = [(point(low), point(high)) for low, high in pieces]
        own = [Interval(a.lower, b.upper, either(a.nan, b.nan)) for a, b in ends]
        found.append(entered(node, own[0] if len(own) == 1 else Rectangle(*own)))
    return found


def drawn(rng: Rng, region: Region, how: str) -> list[Array]:
    """A point: the middle, a corner, or somewhere in between."""
    found = []
    for pieces, middle in region:
        own = []
        for (low, high), centre in zip(pieces, parts(middle), strict=True):
            if how == "middle":
                own.append(centre)
                continue
            corner = np.where(rng.random(low.shape) < 0.5, low, high).astype(low.dtype)
            if how == "corner" or low.dtype.kind in "biu":
                own.append(corner)
                continue
            with np.errstate(all="ignore"):
                t = rng.random(low.shape)
                x = low.astype(np.float64) * (1 - t) + high.astype(np.float64) * t
                x = np.clip(np.where(np.isnan(x), corner, x), low, high).astype(low.dtype)
            own.append(np.where(low == high, low, np.clip(x, low, high)).astype(low.dtype))
        found.append(whole(own, middle))
    return found


def outside(value: Any, y: Any) -> Array:
    """Where a result is not within its bounds."""
    if isinstance(value, Rectangle):
        return outside(value.real, np.real(y)) | outside(value.imag, np.imag(y))
    y = np.asarray(y)
    assert tuple(value.shape) == y.shape, f"bounds of {value.shape} for a result of {y.shape}"
    y = y.astype(np.float64)
    missed = ~((y >= value.lower) & (y <= value.upper))
    return np.asarray(np.where(np.isnan(y), ~np.broadcast_to(value.nan, y.shape), missed))


def graph_of(node: Node, inputs: Sequence[Node]) -> Graph:
    return Graph(inputs, items(node) if isinstance(node.type, TupleType) else [node])


def violation(
    graph: Graph, program: Callable[..., Any], region: Region, points: Iterator[list[Array]]
) -> tuple[int, str]:
    """How many results were looked at, and the first that is not within the bounds."""
    with np.errstate(all="ignore"):
        found = outputs_of(graph, values_of(graph.inputs, region))
    count = 0
    for arrays in points:
        try:
            results = program(arrays)
        except Exception:
            continue  # a refused matrix, an index out of range: nothing is promised
        for k, (value, y) in enumerate(zip(found, results, strict=True)):
            count += int(np.size(y))
            bad = outside(value, y)
            if bad.any():
                at = tuple(map(int, np.argwhere(bad)[0]))
                return count, f"output {k}{list(at)} is {np.asarray(y)[at]!r} of {graph}"
    return count, ""


def points_of(rng: Rng, region: Region, draws: int) -> Iterator[list[Array]]:
    yield drawn(rng, region, "middle")
    for _ in range(draws):
        yield drawn(rng, region, "corner")
        yield drawn(rng, region, "inside")


def climbed(
    slope: Callable[[Array], Array], low: Array, high: Array, start: Array, steps: int, up: bool
) -> Iterator[Array]:
    """Points towards the extremum of a function in a box: steps by the sign of its gradient, then
    by the corner that it points to."""
    x, reach = start, (high - low) / 2
    for _ in range(steps):
        g = np.sign(np.nan_to_num(slope(x))) * (1 if up else -1)
        yield np.where(g > 0, high, np.where(g < 0, low, x)).astype(x.dtype)
        x = np.clip(x + g * reach, low, high).astype(x.dtype)
        reach = reach / 2
        yield x
