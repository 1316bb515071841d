"""Makers of operations that hold graphs, or go through some, and of marks on nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from retrograd.ir import Dim, Graph, Node, TensorType, bool_, float32, float64, full, int64, product
from retrograd.ops.control import Cond, DagScan, Scan, Sized, WhileLoop
from retrograd.ops.control.custom import Custom
from retrograd.ops.control.pure_callback import HostFunction, PureCallback
from retrograd.ops.elementwise import cast, lt
from retrograd.ops.identity import Item, StopGradient
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.reduce import ReduceAny, ReduceMax
from retrograd.ops.remat import After, Keep, RegionIn, RegionOut
from retrograd.ops.shape import expand
from retrograd.ops.toposort import DagOrder
from retrograd.verify.records.control import Double
from retrograd.verify.records.graphs import DAGS, MADE, SENT, edges_of

if TYPE_CHECKING:
    from tests.runtime.fuzz_graphs import Fuzz

Made = tuple[Node, bool] | None


def mark(f: Fuzz) -> Made:
    x, other = f.pick(), f.pick()
    assert x is not None
    assert other is not None
    kind = f.r.choice((RegionIn, RegionOut, Keep, After))
    return (After()(x, other) if kind is After else kind()(x)), f.known(x)


def custom(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.dtype.is_float)
    if x is None:
        return None
    return Item(0)(Custom("double", 1, Double())(x, x + x)), f.known(x)


BACKWARDS = HostFunction(lambda x: x[::-1].copy())


def callback(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0)
    if x is None:
        return None
    op = PureCallback("backwards", x.shape, x.dtype, BACKWARDS.number, function=BACKWARDS)
    return op(StopGradient()(x)), f.known(x)


def within(f: Fuzz, x: Node) -> Node:
    """Floats that loops neither blow up nor round differently."""
    return f.do("max", f.do("min", x, f.number(3, x)), f.number(-3, x)) if x.dtype.is_float else x


def graph(f: Callable[..., Sequence[Node]], *types: TensorType) -> Graph:
    inputs = [input_node(t) for t in types]
    return Graph(inputs, f(*inputs))


def step(f: Fuzz) -> Callable[..., list[Node]]:
    """What a loop does with its state and an element of the same type."""
    name = f.r.choice(("add", "sub", "mul", "max"))

    def body(h: Node, x: Node) -> list[Node]:
        return [within(f, f.do(name, h, x)), f.do("min", h, x)]

    return body


def number(f: Fuzz) -> Node | None:
    """A count of a few, known exactly."""
    x = f.pick(lambda x: x.dtype is bool_ and f.known(x))
    if x is None:
        return None
    flag = ReduceAny(tuple(range(x.type.rank)))(x)
    return cast(flag, int64) + full(f.r.choice((0, 1, 3)), TensorType(int64, ()))


def scan(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0 and x.dtype is not bool_ and not x.dtype.is_complex)
    if x is None:
        return None
    state = x.type.with_shape(x.shape[1:])
    loop = Scan(graph(step(f), state, state), 1, 1, x.shape[0], f.r.random() < 0.5)
    return Item(f.r.choice((0, 1)))(loop(full(1, state), x)), f.known(x)


def cond(f: Fuzz) -> Made:
    pair, test = two(f), f.pick(lambda x: x.dtype is bool_ and f.known(x))
    if pair is None or test is None:
        return None
    x, y = pair
    then, otherwise = (graph(step(f), x.type, y.type) for _ in range(2))
    choice = Cond(then, otherwise)(ReduceAny(tuple(range(test.type.rank)))(test), x, y)
    return Item(f.r.choice((0, 1)))(choice), f.known(x, y)


def while_loop(f: Fuzz) -> Made:
    pair, count = two(f), number(f)
    if pair is None or count is None:
        return None
    x, y = pair
    one, body = TensorType(int64, ()), step(f)
    loop = WhileLoop(
        graph(lambda y, i, x: (lt(i, full(3, one)),), y.type, one, x.type),
        graph(lambda y, i, x: (i + full(1, one), body(x, y)[0]), y.type, one, x.type),
        2,
        9,
    )
    return Item(f.r.choice((0, 1)))(loop(y, count, x)), f.known(x, y)


def sized(f: Fuzz) -> Made:
    pair, count = two(f), number(f)
    if pair is None or count is None:
        return None
    x, y = pair
    own = graph(lambda y, h: step(f)(h, y), y.type, x.type)

    def body(y: Node, x: Node) -> Sequence[Node]:
        loop = Scan(own, 1, 0, Dim("steps"))(y, x)
        return (Item(0)(loop),)

    return Item(0)(Sized(graph(body, y.type, x.type), "steps")(count, y, x)), f.known(x, y)


def two(f: Fuzz) -> tuple[Node, Node] | None:
    """Two nodes of one type, of real numbers."""
    x = f.pick(lambda x: x.dtype is not bool_ and not x.dtype.is_complex)
    y = x and f.pick(lambda y: y.type == x.type)
    return None if x is None or y is None else (x, y)


def dag(f: Fuzz) -> Made:
    """The order of a graph, or states of its nodes."""
    n, pairs = f.r.choice(DAGS)
    edges = constant(edges_of(pairs))
    order = DagOrder(n)(edges)
    x = f.pick(lambda x: x.dtype in (float32, float64) and f.positive(product(x.shape)))
    if x is None or f.r.random() < 0.3:
        return order, True
    top = f.do("tanh", ReduceMax(tuple(range(x.type.rank)))(x))
    r = np.random.default_rng(f.r.randrange(1 << 30))

    def like(*shape: int) -> Node:
        own = constant(r.uniform(-1, 1, shape).astype(x.dtype.dtype))
        return own * expand(top, shape, tuple(range(len(shape))))

    sent, made = (Graph.parse(t.replace("f64", x.dtype.code)) for t in (SENT, MADE))
    op = DagScan(n, sent, made, 1, 0, 1, f.r.random() < 0.5)
    return op(edges, order, like(len(pairs[0])), like(n, 2), like(2, 2)), False


CONTROL = (mark, custom, callback, scan, cond, while_loop, sized, dag)
