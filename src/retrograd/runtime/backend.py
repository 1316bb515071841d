"""What a backend is: it makes a `Program` of a `Graph`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, Graph, Node, evaluate, solve

Array = np.ndarray[Any, Any]


class Program(Protocol):
    """A runnable graph.

    Takes one array for each graph input, of its dtype and of a shape that fits its type, and
    returns one fresh, writable, contiguous array for each output. The inputs are not changed.
    """

    graph: Graph

    def __call__(self, arrays: Sequence[Array]) -> list[Array]: ...


@dataclass
class WrappedProgram:
    """The program of a graph as a function that calls another one."""

    graph: Graph
    function: Callable[[Sequence[Array]], list[Array]]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        return self.function(arrays)


Backend = Callable[[Graph], Program]


def bind(inputs: Sequence[Node], arrays: Sequence[Array]) -> dict[str, int]:
    """Match arrays with the types of graph inputs; returns the values of the named sizes.

    Raises `ShapeError` or `DTypeError` naming the input; where a symbolic size has two values, the
    message gives both.
    """
    sizes: dict[str, int] = {}
    named: list[tuple[Dim, int]] = []
    if len(arrays) == len(inputs):
        for x, a in zip(inputs, arrays, strict=True):
            kind = x.type
            if a.dtype != kind.dtype.dtype or a.ndim != len(kind.shape):
                break
            for d, n in zip(kind.shape, a.shape, strict=True):
                if type(d) is int:
                    if d != n:
                        return _bound(inputs, arrays)
                    continue
                assert isinstance(d, Dim)
                named.append((d, n))
                if (name := str(d)) in d.names:
                    sizes.setdefault(name, n)
        else:
            if not all(d.names <= sizes.keys() for d, _ in named):
                return _bound(inputs, arrays)
            if all(d.evaluate(sizes) == n for d, n in named):
                return sizes
    return _bound(inputs, arrays)


def axes_of_names(inputs: Sequence[Node]) -> list[tuple[int, int]] | None:
    """For each named size the input and the axis that is of this very size, in the order in which
    `bind` lists the names; None where that of some name follows from others only."""
    found: dict[str, tuple[int, int]] = {}
    names: set[str] = set()
    for i, x in enumerate(inputs):
        for axis, d in enumerate(x.shape):
            if isinstance(d, Dim):
                names |= d.names
                if (name := str(d)) in d.names:
                    found.setdefault(name, (i, axis))
    return [*found.values()] if names <= found.keys() else None


def _bound(inputs: Sequence[Node], arrays: Sequence[Array]) -> dict[str, int]:
    """The same, slowly, with an error that says what does not fit."""
    if len(arrays) != len(inputs):
        raise ShapeError(f"the graph takes {len(inputs)} arrays, not {len(arrays)}")
    facts: list[tuple[str, int | Dim, int]] = []
    for i, (x, a) in enumerate(zip(inputs, arrays, strict=True)):
        label = f"input {x.name!r}" if x.name else f"input {i}"
        if a.dtype != x.dtype.dtype:
            raise DTypeError(f"{label} is {x.type}, but the array given is {a.dtype}")
        if a.ndim != x.type.rank:
            raise ShapeError(f"{label} is {x.type}, but the array has the shape {a.shape}")
        for axis, (d, n) in enumerate(zip(x.shape, a.shape, strict=True)):
            facts.append((f"axis {axis} of {label}, {x.type},", d, n))
    sizes = solve((d, n) for _, d, n in facts)
    for where, d, n in facts:
        if isinstance(d, Dim) and (missing := sorted(d.names - sizes.keys())):
            raise ShapeError(
                f"{where} has the size {d}, and the array {n} there, from which the value of "
                f"{missing[0]} does not follow (known: {sizes}); give an input an axis of the size "
                f"{missing[0]} by itself"
            )
        if (expected := evaluate(d, sizes)) != n:
            known = f" = {expected} (from {sizes})" if isinstance(d, Dim) else ""
            raise ShapeError(f"{where} has the size {d}{known}, but the array has {n} there")
    return sizes
