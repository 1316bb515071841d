"""Random graphs of smooth functions with bounded values, for tests of derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import Graph, Node, TensorType, float64, full
from retrograd.ops.elementwise import ELEMENTWISE, select
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import LogSumExp, ReduceProd, ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice

Array = np.ndarray[Any, Any]
Rng = np.random.Generator

UNARY = ("sin", "cos", "tanh", "sigmoid", "softplus", "atan", "erf", "erfc", "asinh", "exp", "neg")
BINARY = ("add", "sub", "mul", "logaddexp")
SHAPES = ((), (2,), (3,), (2, 3), (3, 2), (2, 2, 3))


def smooth_graph(seed: int, steps: int = 12) -> Graph:
    """Three float64 inputs and, after that many random steps, a scalar and an array output."""
    rng = np.random.default_rng(seed)
    shapes = [SHAPES[i] for i in rng.integers(len(SHAPES), size=3)]
    inputs = [
        input_node(TensorType(float64, s), name) for s, name in zip(shapes, "abc", strict=True)
    ]
    pool = list(inputs)
    while len(pool) < len(inputs) + steps:
        x = pool[-1] if rng.random() < 0.4 else pool[rng.integers(len(pool))]
        y = STEPS[rng.integers(len(STEPS))](rng, x, pool)
        pool.append(tame(y))
    s: Node = full(0, TensorType(float64, ()))
    for x in pool:
        s = s + ReduceSum(tuple(range(x.type.rank)))(x) * float(rng.uniform(-1, 1))
    return Graph(inputs, [s, pool[-1]])


def smooth_arrays(graph: Graph, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(-1.5, 1.5, x.shape)) for x in graph.inputs]


def tame(y: Node) -> Node:
    """Keep values within (-2, 2), so that nothing grows with depth."""
    return 2 * ELEMENTWISE["tanh"](0.5 * y)


def unary(rng: Rng, x: Node, pool: list[Node]) -> Node:
    return ELEMENTWISE[str(rng.choice(UNARY))](x)


def binary(rng: Rng, x: Node, pool: list[Node]) -> Node:
    return ELEMENTWISE[str(rng.choice(BINARY))](*_pair(rng, x, pool))


def _pair(rng: Rng, x: Node, pool: list[Node]) -> tuple[Node, Node]:
    others = [p for p in pool if p.type == x.type]
    y = others[rng.integers(len(others))]
    return (x, y) if rng.random() < 0.5 else (y, x)


def positive(rng: Rng, x: Node, pool: list[Node]) -> Node:
    """A function of a number above 1/2."""
    a, b = _pair(rng, x, pool)
    high = ELEMENTWISE["softplus"](a) + 0.5
    name = str(rng.choice(["log", "sqrt", "rsqrt", "reciprocal", "div", "pow", "hypot", "atan2"]))
    if name in ("log", "sqrt", "rsqrt", "reciprocal"):
        return ELEMENTWISE[name](high)
    if name in ("pow", "hypot"):
        return ELEMENTWISE[name](high, b)
    return ELEMENTWISE[name](b, high)


def masked(rng: Rng, x: Node, pool: list[Node]) -> Node:
    """A choice that does not depend on the values, with a bad branch in what is not taken."""
    a, b = _pair(rng, x, pool)
    mask = rng.random(tuple(map(int, x.shape))) < 0.5
    bad = ELEMENTWISE["log"](a - a)
    return select(constant(mask), select(constant(mask), b, bad), a)


def reduction(rng: Rng, x: Node, pool: list[Node]) -> Node:
    axes = tuple(i for i in range(x.type.rank) if rng.random() < 0.7)
    kind = (ReduceSum, ReduceProd, LogSumExp)[rng.integers(3)]
    return kind(axes)(x)


def movement(rng: Rng, x: Node, pool: list[Node]) -> Node:
    rank, shape = x.type.rank, tuple(map(int, x.shape))
    match int(rng.integers(7)):
        case 0 if rank < 3:
            axis = int(rng.integers(rank + 1))
            return Expand((*shape[:axis], 2, *shape[axis:]), (axis,))(x)
        case 1:
            return Reshape((int(np.prod(shape)),))(x)
        case 2:
            return Permute(tuple(map(int, rng.permutation(rank))))(x)
        case 3:
            starts = tuple(int(rng.integers(0, n)) for n in shape)
            return Slice(starts, shape, tuple(int(rng.integers(1, 3)) for _ in shape))(x)
        case 4:
            low, high, between = (tuple(map(int, w)) for w in rng.integers(0, 2, (3, rank)))
            if max(shape, default=0) < 4:
                return Pad(low, high, between)(x, full(0.5, TensorType(float64, ())))
        case 5 if rank:
            return Flip((int(rng.integers(rank)),))(x)
        case 6 if rank and shape[0] < 4:
            return Concat(0)(x, -x)
    return CumSum(rank - 1, bool(rng.integers(2)))(x) if rank else x


def indexing(rng: Rng, x: Node, pool: list[Node]) -> Node:
    if not x.type.rank:
        return x
    n = int(x.shape[0])
    index = rng.integers(-n, n, 3)
    read = Gather(0)(x, constant(index))
    return read if rng.random() < 0.5 else ScatterAdd(0)(x, constant(index), read)


def contraction(rng: Rng, x: Node, pool: list[Node]) -> Node:
    for y in reversed(pool):
        for i, n in enumerate(x.shape):
            if n in y.shape and x.type.rank + y.type.rank < 5:
                pair = (i,), (y.shape.index(n),)
                empty: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
                op = DotGeneral(*pair) if rng.random() < 0.6 else DotGeneral(*empty, *pair)
                return op(x, y)
    return x


Step = Callable[[Rng, Node, list[Node]], Node]
STEPS: tuple[Step, ...] = (
    unary, unary, unary, binary, binary, binary, positive, masked, reduction,
    movement, movement, indexing, contraction,
)  # fmt: skip
