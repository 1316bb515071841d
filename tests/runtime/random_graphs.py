"""Random graphs of mixed ops, with sizes 0, 1, 3, 17 or symbolic ones."""

from __future__ import annotations

import random
from collections.abc import Callable

from retrograd.ir import (
    Dim,
    DType,
    Graph,
    Node,
    bfloat16,
    bool_,
    evaluate,
    float32,
    float64,
    int32,
    int64,
    product,
    spec,
)
from retrograd.ops.elementwise import ELEMENTWISE, cast
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import Iota, input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ArgMax, LogSumExp, ReduceMax, ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.shape import Concat, Flip, Pad, Permute, Reshape, Slice, expand
from retrograd.runtime.backend import Array
from tests.runtime.agreement import sample

SIZES = (0, 1, 3, 17)
# Smooth and bounded in effect, so that rounding is not blown up along the way.
UNARY = ("tanh", "sigmoid", "sin", "abs", "neg", "relu", "cos", "erf")
BINARY = ("add", "sub", "mul", "max", "min")


class Builder:
    """Adds random nodes that fit; what does not fit is tried no further."""

    def __init__(self, seed: int, dtype: DType, symbolic: bool) -> None:
        self.r = random.Random(seed)
        self.dtype = dtype
        sizes: list[int | Dim] = list(SIZES)
        if symbolic:
            sizes = [*sizes[1:3], Dim("N"), Dim("M")]
        self.sizes = sizes
        self.dims = {"N": self.r.choice((0, 1, 5)), "M": self.r.choice((1, 4))}
        shape = lambda: tuple(self.r.choice(sizes) for _ in range(self.r.choice((0, 1, 2, 2, 3))))
        self.inputs = [input_node(spec(shape(), dtype), f"x{i}") for i in range(3)]
        if symbolic:
            named = (Dim("N"), Dim("M"))
            self.inputs.append(input_node(spec(named, dtype), "named"))
        self.nodes = list(self.inputs)

    def graph(self, count: int) -> Graph:
        while len(self.nodes) < len(self.inputs) + count:
            made = self.r.choice(MAKERS)(self, self.r.choice(self.nodes[-12:]))
            if made is not None:
                self.nodes.append(made)
        ends = [self.nodes[-1], *self.r.sample(self.nodes, 3)]
        return Graph(self.inputs, ends)

    def arrays(self) -> list[Array]:
        return [
            sample([evaluate(d, self.dims) for d in x.shape], x.dtype, i)
            for i, x in enumerate(self.inputs)
        ]

    def axis(self, x: Node) -> int:
        return self.r.randrange(x.type.rank)

    def empty_possible(self, d: int | Dim) -> bool:
        return evaluate(d, self.dims) == 0


def unary(b: Builder, x: Node) -> Node:
    return ELEMENTWISE[b.r.choice(UNARY)](x)


def binary(b: Builder, x: Node) -> Node | None:
    others = [y for y in b.nodes if y.type == x.type]
    return ELEMENTWISE[b.r.choice(BINARY)](x, b.r.choice(others))


def choose(b: Builder, x: Node) -> Node:
    other = ELEMENTWISE["neg"](x)
    return ELEMENTWISE["select"](ELEMENTWISE["gt"](x, other), other, x)


def widen(b: Builder, x: Node) -> Node | None:
    if x.type.rank > 2:
        return None
    axis = b.r.randrange(x.type.rank + 1)
    shape = list(x.shape)
    shape.insert(axis, b.r.choice(b.sizes))
    return expand(x, tuple(shape), (axis,))


def reshape(b: Builder, x: Node) -> Node:
    shape = list(x.shape)
    if b.r.random() < 0.5 and len(shape) > 1:
        at = b.r.randrange(len(shape) - 1)
        shape[at : at + 2] = [product(shape[at : at + 2])]
    elif b.r.random() < 0.5:
        shape = shape[::-1]
    else:
        shape.insert(b.r.randrange(len(shape) + 1), 1)
    return Reshape(tuple(shape))(x) if len(shape) < 5 else x


def permute(b: Builder, x: Node) -> Node:
    return Permute(tuple(b.r.sample(range(x.type.rank), x.type.rank)))(x)


def cut(b: Builder, x: Node) -> Node:
    starts, stops, steps = [], [], []
    for d in x.shape:
        free = isinstance(d, int) and d > 2
        starts.append(b.r.choice((0, 1)) if free else 0)
        stops.append(d - b.r.choice((0, 1)) if free else d)
        steps.append(b.r.choice((1, 2)) if free else 1)
    return Slice(tuple(starts), tuple(stops), tuple(steps))(x)


def flip(b: Builder, x: Node) -> Node | None:
    return Flip((b.axis(x),))(x) if x.type.rank else None


def surround(b: Builder, x: Node) -> Node:
    width = lambda: tuple(b.r.choice((0, 0, 1, 2)) for _ in x.shape)
    low, high = width(), width()
    gaps = tuple(b.r.choice((0, 0, 1)) if d in (1, 3) else 0 for d in x.shape)
    scalars = [y for y in b.nodes if y.shape == () and y.dtype is x.dtype]
    fill = b.r.choice(scalars) if scalars else ReduceSum(tuple(range(x.type.rank)))(x)
    return Pad(low, high, gaps)(x, fill)


def join(b: Builder, x: Node) -> Node | None:
    if not x.type.rank or product(x.shape) == 0:
        return None
    parts = [x, ELEMENTWISE["neg"](x)] * b.r.choice((1, 1, 3))
    return Concat(b.axis(x))(*parts)


def total(b: Builder, x: Node) -> Node | None:
    axes = tuple(sorted(b.r.sample(range(x.type.rank), b.r.randint(0, x.type.rank))))
    op: Callable[..., Callable[[Node], Node]] = b.r.choice((ReduceSum, ReduceMax, LogSumExp))
    if op is ReduceMax and any(b.empty_possible(x.shape[a]) for a in axes):
        op = ReduceSum
    return ELEMENTWISE["tanh"](op(axes)(x))


def running(b: Builder, x: Node) -> Node | None:
    return CumSum(b.axis(x), b.r.random() < 0.5)(x) if x.type.rank else None


def select_rows(b: Builder, x: Node) -> Node | None:
    if not x.type.rank:
        return None
    axis = b.axis(x)
    if b.empty_possible(x.shape[axis]):
        return None
    # Positions from the data: the largest of each row, always within the axis.
    at = ArgMax(axis)(x)
    shared = axis if b.r.random() < 0.5 else 0
    index = at if shared else Reshape((at.type.size,))(at)
    if b.r.random() < 0.3:
        index = ELEMENTWISE["neg"](ELEMENTWISE["min"](index, ELEMENTWISE["sign"](index)))
    if index.type.rank + x.type.rank - shared - 1 > 4 or shared > index.type.rank:
        return None
    y = Gather(axis, shared)(x, index)
    if b.r.random() < 0.5:
        return ELEMENTWISE["tanh"](ScatterAdd(axis, shared)(x, index, y))
    return y


def contract(b: Builder, x: Node) -> Node | None:
    pairs = [
        (y, i, j) for y in b.nodes for i, d in enumerate(x.shape) for j, e in enumerate(y.shape)
        if d == e and y.dtype is x.dtype and x.type.rank + y.type.rank < 6
    ]  # fmt: skip
    if not pairs:
        return None
    y, i, j = b.r.choice(pairs)
    stacked = b.r.random() < 0.3
    dot = DotGeneral((), (), (i,), (j,)) if stacked else DotGeneral((i,), (j,))
    return ELEMENTWISE["tanh"](dot(x, y))


def number(b: Builder, x: Node) -> Node | None:
    if not x.type.rank:
        return None
    return cast(Iota(x.shape, b.axis(x), int64)(), x.dtype)


MAKERS = [
    unary, unary, binary, binary, binary, choose, widen, reshape, permute, cut, flip, surround,
    join, total, running, select_rows, contract, number,
]  # fmt: skip

FLOAT_DTYPES = (float32, float32, float64, bfloat16)
INTEGER_DTYPES = (int32, bool_)
