"""Graphs inside of operations: what the rules of all of these operations do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from retrograd.autodiff import batched, pullback, pushforward
from retrograd.errors import RetrogradError, ShapeError
from retrograd.ir import (
    Dim,
    Graph,
    Node,
    Op,
    TensorType,
    TupleType,
    apply,
    full,
    interpret,
    substitute,
)
from retrograd.ops.complex import conj
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import expand

Types = Sequence[TensorType]


def fresh(graph: Graph) -> tuple[list[Node], list[Node]]:
    """Inputs of their own, and the outputs computed from these: the start of another graph."""
    inputs = [input_node(x.type, x.name) for x in graph.inputs]
    return inputs, inline(graph, inputs)


def inline(graph: Graph, inputs: Sequence[Node]) -> list[Node]:
    """The outputs of a graph, computed from other nodes."""
    return substitute(graph.outputs, dict(zip(graph.inputs, inputs, strict=True)))


def types_of(nodes: Sequence[Node]) -> list[TensorType]:
    return [x.type for x in nodes]


def inputs_like(nodes: Sequence[Node], prefix: str) -> list[Node]:
    """Inputs for what belongs to these, such as their cotangents."""
    return [input_node(x.type, f"{prefix}{x.name}" if x.name else "") for x in nodes]


def closed(inputs: Sequence[Node], outputs: Sequence[Node], name: str) -> Graph:
    """A graph whose inputs have names of their own, or none."""
    seen: set[str] = set()
    new: dict[Node, Node] = {}
    for x in inputs:
        name_ok = x.name not in seen
        seen.add(x.name)
        new[x] = x if name_ok or not x.name else input_node(x.type)
    return Graph([new[x] for x in inputs], substitute(outputs, new), name)


def need_counts(op: Op, among: int, **counts: int | Dim) -> None:
    """Raise a `ShapeError` where the numbers of inputs of each kind, of so many, leave none for the
    others or count some twice."""
    for name, n in counts.items():
        if isinstance(n, bool) or not isinstance(n, int | Dim) or (isinstance(n, int) and n < 0):
            raise ShapeError(f"{op.name}: {name} is a number that is not negative, not {n!r}")
    kinds = {k: n for k, n in counts.items() if isinstance(n, int) and k != "length"}
    if sum(kinds.values()) > among:
        listed = " and ".join(f"{n} {name}" for name, n in kinds.items())
        raise ShapeError(f"{op.name} has {among} inputs, and counts {listed} among them")


def need(op: Op, what: str, found: Types, expected: Types) -> None:
    """Raise a `ShapeError` where types are not as expected."""
    if list(found) != list(expected):
        raise ShapeError(
            f"{op.name}: {what} should be {', '.join(map(str, expected)) or 'none'}, "
            f"not {', '.join(map(str, found)) or 'none'}"
        )


# How `run` computes a node: who looks at every value looks into loops, too.
MEANING: ContextVar[Callable[[Node, Sequence[Any]], Any]] = ContextVar("meaning", default=apply)


def run(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """The values of a graph whose sizes are known, by the meaning of each of its operations."""
    meaning = MEANING.get()

    def value(node: Node, given: Sequence[Any]) -> Any:
        try:
            result = meaning(node, given)
        except RetrogradError as error:
            if node.describe() in str(error):
                raise
            raise type(error)(f"{error}: {node.describe()}") from None
        several = isinstance(node.type, TupleType)
        return result if several else np.asarray(result, node.dtype.dtype)

    return interpret(graph, arrays, value)


# -- derivatives ----------------------------------------------------------------------------------


def zeros(type: TensorType) -> Node:
    return full(0, type)


def inexact(nodes: Sequence[Node]) -> list[int]:
    """Positions of what has derivatives."""
    return [i for i, x in enumerate(nodes) if x.dtype.is_inexact]


# Whether the graph inside of an operation is being differentiated: what a rule gives then has to be
# made of what it was given, as nothing else is an input of that graph.
_WITHIN: ContextVar[bool] = ContextVar("within", default=False)


def is_within_body() -> bool:
    """Whether the derivative that is asked for becomes part of a graph inside of an operation."""
    return _WITHIN.get()


@contextmanager
def _within() -> Iterator[None]:
    token = _WITHIN.set(True)
    try:
        yield
    finally:
        _WITHIN.reset(token)


def pulled(
    outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node], stop: Any
) -> list[Node | None]:
    """Cotangents of `wrt`, of which only what is inexact has one; all of them as rules have them,
    the conjugates of what `pullback` takes and gives."""
    pairs = [(y, conj(g)) for y, g in zip(outputs, cotangents, strict=True) if g is not None]
    wanted = [x for x in wrt if x.dtype.is_inexact]
    with _within():
        found = iter(pullback([y for y, _ in pairs], [g for _, g in pairs], wanted, stop))
    ends = [next(found) if x.dtype.is_inexact else None for x in wrt]
    return [None if g is None else conj(g) for g in ends]


def pushed(
    outputs: Sequence[Node], wrt: Sequence[Node], tangents: Sequence[Node], stop: Any
) -> list[Node | None]:
    """Tangents of the outputs, of which only what is inexact has one."""
    ends = [y for y in outputs if y.dtype.is_inexact]
    with _within():
        found = iter(pushforward(ends, wrt, tangents, stop))
    return [next(found) if y.dtype.is_inexact else None for y in outputs]


def stacked(
    outputs: Sequence[Node], inputs: Sequence[Node], flags: Sequence[bool], size: int | Dim
) -> tuple[list[Node], list[tuple[Node, bool]]]:
    """New inputs, stacks of samples where `flags` says so, and the outputs computed from them,
    each with whether it is a stack."""
    new = [
        input_node(x.type.with_shape((size, *x.shape)), x.name) if s else x
        for x, s in zip(inputs, flags, strict=True)
    ]
    samples = {x: n for x, n, s in zip(inputs, new, flags, strict=True) if s}
    return new, batched(outputs, samples, size)


def wide(y: Node, is_stack: bool, size: int | Dim) -> Node:
    """A stack of samples, made of one value if need be."""
    return y if is_stack else expand(y, (size, *y.shape), (0,))
