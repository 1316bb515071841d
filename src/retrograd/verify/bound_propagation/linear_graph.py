"""The graph that linear bounds are computed on: the same values, by operations with relaxations.

Loops of known length are unrolled, extrema of two become `relu`, quotients products, softmax the
exponential of what logsumexp leaves. What stands for a node of the program is remembered with it
(`Rewritten.program`): rounding is that of the program's node, nodes that only help have none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from retrograd.functions.activations import gelu
from retrograd.graph.graph import trace
from retrograd.ir import Graph, Node, TensorType, Trait, TupleType, full
from retrograd.ir.registry import entering
from retrograd.ops import elementwise as el
from retrograd.ops.control.custom import Custom
from retrograd.ops.control.scan import Scan
from retrograd.ops.identity import Item
from retrograd.ops.leaf import Constant
from retrograd.ops.pool import MaxPool
from retrograd.ops.reduce import LogSumExp, ReduceMax, ReduceMin, ReduceSum
from retrograd.ops.shape import Concat, Expand, Pad, Slice, reshape
from retrograd.ops.windows import Windows
from retrograd.passes.common_subexpressions import cse
from retrograd.verify.bound_propagation.rules.patterns import reduced

UNROLLED = 4096  # nodes: longer loops are left to intervals
Rule = Callable[[Node, tuple[Node, ...]], "Node | None"]
RULES: dict[str, Rule] = {}
rewrites = entering(RULES)  # a decorator: `@rewrites(el.div)`


class Rewritten(NamedTuple):
    """A graph, for nodes that stand for one of the program that node (on new inputs), and nodes
    that the program does not compute."""

    graph: Graph
    program: dict[Node, Node]
    helping: set[Node]


def rewritten(graph: Graph) -> Rewritten:
    """The graph in operations that have relaxations."""
    graph = cse(Graph(graph.inputs, unrolled(graph).outputs))
    program: dict[Node, Node] = {}
    helping: set[Node] = set()

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if Trait.IDENTITY in node.prim.traits and not isinstance(node.type, TupleType):
            return inputs[0]
        same = node if inputs == node.inputs else node.with_inputs(inputs)
        found = None
        if node.dtype.is_float and (make := RULES.get(node.op)) is not None:
            found = make(same, inputs)
        if found is None:
            return same
        program[found] = same
        new = {found, *inputs}
        todo = [found]
        while todo:
            for x in todo.pop().inputs:
                if x not in new and x not in known:
                    new.add(x)
                    helping.add(x)
                    todo.append(x)
        return found

    known: set[Node] = set()

    def remember(node: Node, inputs: tuple[Node, ...]) -> Node:
        result = rule(node, inputs)
        known.add(result)
        return result

    known.update(graph.inputs)
    result = graph.rewrite(remember)
    return Rewritten(result, program, helping)


# -- loops and calls ------------------------------------------------------------------------------


def unrolled(graph: Graph) -> Graph:
    """Loops of known length, and functions with rules of their own, written out."""
    while any(_is_open(node) for node in graph.body):
        new: dict[Node, Node | list[Node]] = {x: x for x in graph.inputs}
        for node in graph.body:
            inputs = [new[x] for x in node.inputs]
            if isinstance(node.prim, Item) and isinstance(inputs[0], list):
                new[node] = inputs[0][node.prim.index]
            elif _is_open(node):
                new[node] = _written_out(node, inputs)  # type: ignore[arg-type]
            else:
                new[node] = node.with_inputs(inputs)  # type: ignore[arg-type]
        graph = Graph(graph.inputs, [new[y] for y in graph.outputs])  # type: ignore[misc]
    return graph


def _is_open(node: Node) -> bool:
    prim = node.prim
    if isinstance(prim, Scan):
        size = prim.length
        return isinstance(size, int) and size * len(prim.body.nodes) <= UNROLLED
    return isinstance(prim, Custom)


def _inlined(graph: Graph, inputs: Sequence[Node]) -> list[Node]:
    """The outputs on other inputs, of nodes that are all made now: ids are to grow."""
    new = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.body:
        new[node] = node.with_inputs([new[x] for x in node.inputs])
    return [new[y] for y in graph.outputs]


def _written_out(node: Node, inputs: list[Node]) -> list[Node]:
    prim = node.prim
    if isinstance(prim, Custom):
        return inputs[prim.count :]
    assert isinstance(prim, Scan)
    constants, carry, xs = prim.parts(inputs)
    assert isinstance(prim.length, int)
    order = range(prim.length)[:: -1 if prim.reverse else 1]
    rows: list[list[Node]] = [[] for _ in prim.body.outputs[prim.carries :]]
    for t in order:
        results = _inlined(prim.body, [*constants, *carry, *[row(x, t) for x in xs]])
        carry = results[: prim.carries]
        for found, y in zip(rows, results[prim.carries :], strict=True):
            found.append(y)
    stacks = [
        _stack(found[::-1] if prim.reverse else found, y.type)
        for found, y in zip(rows, prim.body.outputs[prim.carries :], strict=True)
    ]
    return [*carry, *stacks]


def row(x: Node, t: int) -> Node:
    """`x[t]`."""
    rest = x.shape[1:]
    zeros = tuple(0 for _ in rest)
    part = Slice((t, *zeros), (t + 1, *rest), (1,) * x.type.rank)(x)
    return reshape(part, rest)


def _stack(parts: Sequence[Node], type: TensorType) -> Node:
    if not parts:
        return full(0, type.with_shape((0, *type.shape)))
    return Concat(0)(*[reshape(p, (1, *p.shape)) for p in parts])


# -- operations -----------------------------------------------------------------------------------


@rewrites(el.max)
def _max(node: Node, inputs: tuple[Node, ...]) -> Node:
    a, b = inputs
    if not isinstance(b.prim, Constant) and isinstance(a.prim, Constant):
        a, b = b, a
    return el.add(b, el.relu(el.sub(a, b)))


@rewrites(el.min)
def _min(node: Node, inputs: tuple[Node, ...]) -> Node:
    a, b = inputs
    return el.sub(a, el.relu(el.sub(a, b)))


@rewrites(el.logaddexp)
def _logaddexp(node: Node, inputs: tuple[Node, ...]) -> Node:
    a, b = inputs
    return el.add(b, el.softplus(el.sub(a, b)))


@rewrites(ReduceMin)
def _reduce_min(node: Node, inputs: tuple[Node, ...]) -> Node:
    return el.neg(ReduceMax(node.prim.axes)(el.neg(inputs[0])))  # type: ignore[attr-defined]


@rewrites(MaxPool)
def _max_pool(node: Node, inputs: tuple[Node, ...]) -> Node:
    prim = node.prim
    assert isinstance(prim, MaxPool)
    (x,) = inputs
    framed = x
    if any((*prim.low, *prim.high)):
        wide = prim.frame(x, -math.inf)
        framed = _pad(wide, wide.inputs) or wide
    windows = Windows(prim.sizes, prim.strides, prim.dilations)(framed)
    rank = windows.type.rank
    return ReduceMax(tuple(range(rank - prim.rank, rank)))(windows)


@rewrites(Pad)
def _pad(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """Joined to parts of what it is padded with, of which each sample has its own."""
    prim = node.prim
    assert isinstance(prim, Pad)
    if any(prim.interior):
        return None
    x, fill = inputs
    for axis, sizes in enumerate(zip(prim.low, prim.high, strict=True)):
        shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
        low, high = (
            [Expand(shape, tuple(range(len(shape))))(fill)] if shape[axis] else []
            for shape in shapes
        )
        x = Concat(axis)(*low, x, *high) if low or high else x
    return None if x is inputs[0] else x


@rewrites(el.div)
def _div(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """softmax and log-softmax are recognised; other quotients are products with a reciprocal."""
    found = _softmax(node, inputs)
    if found is not None:
        return found
    a, b = inputs
    if a is b:
        return None
    return el.mul(a, el.reciprocal(b))


@rewrites(el.zdiv)
def _zdiv(node: Node, inputs: tuple[Node, ...]) -> Node:
    return el.mul(inputs[0], el.reciprocal(inputs[1]))


def _shifted(y: Node, axes: tuple[int, ...]) -> Node | None:
    """`x` of `x - m`, where m is the maximum of x along axes (or 0 where that is not finite)."""
    if y.op != el.sub.name or (m := reduced(y.inputs[1], Expand, axes)) is None:
        return None
    x = y.inputs[0]
    if m.op == el.select.name and m.inputs[0].op == el.isfinite.name:
        m = m.inputs[1] if m.inputs[0].inputs[0] is m.inputs[1] else m
    return x if reduced(m, ReduceMax, axes) is x else None


def _summed(y: Node) -> tuple[Node, tuple[int, ...]] | None:
    """What is summed, along which axes, in a sum that is spread over these again."""
    prim = y.prim
    if not isinstance(prim, Expand):
        return None
    x = reduced(y.inputs[0], ReduceSum, prim.axes)
    return None if x is None else (x, prim.axes)


def _softmax(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """`exp(x - m) / sum(exp(x - m))`, with the maximum m, which is `exp(x - logsumexp(x))`."""
    e, total = inputs
    found = _summed(total)
    if e.op != el.exp.name or found is None or found[0] is not e:
        return None
    x = _shifted(e.inputs[0], found[1])
    return None if x is None else el.exp(_less_logsumexp(x, found[1]))


def _less_logsumexp(x: Node, axes: tuple[int, ...]) -> Node:
    return el.sub(x, Expand(x.shape, axes)(LogSumExp(axes)(x)))


@rewrites(el.sub)
def _sub(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """`(x - m) - log(sum(exp(x - m)))`, with the maximum m, is `x - logsumexp(x)`."""
    z, spread = inputs
    prim = spread.prim
    if not isinstance(prim, Expand) or spread.inputs[0].op != el.log.name:
        return None
    e = reduced(spread.inputs[0].inputs[0], ReduceSum, prim.axes)
    if e is None or e.op != el.exp.name or e.inputs[0] is not z:
        return None
    x = _shifted(z, prim.axes)
    return None if x is None else _less_logsumexp(x, prim.axes)


@rewrites(el.select)
def _select(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """`x where x > 0, else c x`: `c x + (1 - c) relu(x)`."""
    condition, a, b = inputs
    if condition.op not in (el.gt.name, el.ge.name) or not _is_zero(condition.inputs[1]):
        return None
    x = condition.inputs[0]
    if a is not x or b.op != el.mul.name or x not in b.inputs:
        return None
    c = b.inputs[0] if b.inputs[1] is x else b.inputs[1]
    if not isinstance(c.prim, Constant):
        return None
    return el.add(b, el.mul(el.sub(full(1, c.type), c), el.relu(x)))


@rewrites(el.mul)
def _mul(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """gelu is recognised, which is written so that constants of float32 cost it no accuracy."""
    if all(x.op != el.mul.name for x in inputs):
        return None
    template = _gelu(node.type)
    (variable,) = template.inputs
    found: dict[Node, Node] = {}
    todo = [(template.outputs[0], node)]
    while todo:
        t, n = todo.pop()
        if found.setdefault(t, n) is not n:
            return None
        if t is variable:
            continue
        if t.prim != n.prim or len(t.inputs) != len(n.inputs):
            return None
        todo += zip(t.inputs, n.inputs, strict=True)
    x = found[variable]
    half, root = full(0.5, x.type), full(-math.sqrt(0.5), x.type)
    return el.mul(x, el.mul(half, el.erfc(el.mul(x, root))))


@functools.lru_cache(maxsize=64)
def _gelu(type: TensorType) -> Graph:
    """The graph of gelu as `rewritten` sees it."""
    graph = trace(gelu, type)
    plain = Graph(graph.inputs, graph.outputs).rewrite(
        lambda node, inputs: (
            inputs[0]
            if Trait.IDENTITY in node.prim.traits
            else node
            if inputs == node.inputs
            else node.with_inputs(inputs)
        )
    )
    return cse(plain)


def _is_zero(x: Node) -> bool:
    return isinstance(x.prim, Constant) and not x.prim.value.any()
