"""Random well-typed graphs, for property tests of the text, the passes and the backends.

Only operations whose result depends neither on the order of summation nor on which of NumPy's loops
computes them, so that whatever keeps the meaning of a graph keeps the bits of its results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd.ops.elementwise as e
from retrograd.ir import (
    Dim,
    DType,
    Graph,
    Node,
    Provenance,
    Shape,
    TensorType,
    bfloat16,
    bool_,
    evaluate,
    float16,
    float32,
    float64,
    full,
    int32,
    made_by,
    uint8,
)
from retrograd.ops.leaf import Constant, Iota, input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceAny, ReduceMax, ReduceMin, ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice

Array = np.ndarray[Any, Any]
Rng = np.random.Generator

SIZES = {"N": 3, "M": 2}
DTYPES: tuple[DType, ...] = (float32, float32, float64, float16, bfloat16, int32, uint8, bool_)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, math.inf, -math.inf, math.nan)
NAMES = ("", "", "", "h", "layers[0].w", 'a "quoted"\nname\\', "größe", "\u2028", "a b: c", "@%#")

FLOAT_UNARY = (
    "neg",
    "abs",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "round",
    "sqrt",
    "relu",
    "reciprocal",
)
FLOAT_BINARY = ("add", "sub", "mul", "div", "zmul", "zdiv")
INTEGER_BINARY = ("add", "sub", "mul", "floor_div", "max", "min", "pow", "shift_left")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


def random_graph(seed: int, nodes: int = 24, symbolic: bool = True) -> Graph:
    """A graph of about that many nodes, with named sizes among its dimensions if `symbolic`."""
    rng = np.random.default_rng(seed)
    sizes: list[int | Dim] = [1, 2, 3, 4]
    if symbolic:
        n = Dim("N")
        sizes += [n, Dim("M"), n + 1, 2 * n, (n + 1) // 2]
    pool = [
        input_node(random_type(rng, sizes, dtype), name)
        for dtype, name in zip((float32, float32, int32, bool_), "xwic", strict=True)
    ]
    if symbolic:
        pool.append(input_node(TensorType(float32, (Dim("N"), Dim("M")))))  # tells the sizes
    inputs = list(pool)
    while len(pool) < nodes:
        scope = str(rng.choice(NAMES))
        with made_by(Provenance(scope)):
            made = MAKERS[rng.integers(len(MAKERS))](rng, pool, sizes)
        if made is not None:
            name = str(rng.choice(NAMES))
            pool.append(made.renamed(name) if name else made)
    outputs = [pool[i] for i in rng.integers(len(pool) // 2, len(pool), 4)]
    return Graph(inputs, [*outputs, pool[-1]], str(rng.choice(NAMES)))


def random_arrays(graph: Graph, seed: int) -> list[Array]:
    """Inputs of the graph, with NaN, infinities and zeros of both signs among them."""
    rng = np.random.default_rng(seed)
    return [random_values(rng, x.type.bind(SIZES)) for x in graph.inputs]


def random_values(rng: Rng, type: TensorType) -> Array:
    shape = tuple(evaluate(d, {}) for d in type.shape)
    if type.dtype is bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if type.dtype.is_integer:
        return np.asarray(rng.integers(0, 6, shape)).astype(type.dtype.dtype)
    values = np.where(rng.random(shape) < 0.4, rng.choice(SPECIAL, shape), rng.normal(0, 2, shape))
    return np.asarray(values).astype(type.dtype.dtype)


def random_type(rng: Rng, sizes: list[int | Dim], dtype: DType) -> TensorType:
    return TensorType(
        dtype, tuple(sizes[i] for i in rng.integers(len(sizes), size=rng.integers(4)))
    )


def same_values(a: Array, b: Array) -> bool:
    """Equal to the bit, any NaN counting as any other."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "iub":
        return bool((a == b).all())
    if a.dtype.kind == "c":
        return same_values(a.real, b.real) and same_values(a.imag, b.imag)
    nan = np.isnan(a)
    bits = (a == b) & (np.signbit(a) == np.signbit(b))
    return bool(((nan & np.isnan(b)) | bits).all())


# -- makers: each gives a node on some of the pool, or None where it finds nothing that fits ------

Maker = Callable[[Rng, list[Node], list["int | Dim"]], Node | None]


def pick(rng: Rng, pool: list[Node], test: Callable[[Node], bool]) -> Node | None:
    found = [x for x in pool if test(x)]
    return found[rng.integers(len(found))] if found else None


def anything(rng: Rng, pool: list[Node]) -> Node:
    return pool[rng.integers(len(pool))]


def unary(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    x = anything(rng, pool)
    if x.dtype is bool_:
        return e.bitwise_not(x)
    names = FLOAT_UNARY if x.dtype.is_float else ("neg", "abs", "bitwise_not")
    return e.ELEMENTWISE[str(rng.choice(names))](x)


def binary(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    a = anything(rng, pool)
    b = pick(rng, pool, lambda x: x.type == a.type) if rng.random() < 0.6 else None
    if b is None:
        b = full(rng.choice(SPECIAL if a.dtype.is_float else (0, 1, 2, 3)), a.type)
    if rng.random() < 0.5:
        a, b = b, a
    names = FLOAT_BINARY if a.dtype.is_float else BITS if a.dtype is bool_ else INTEGER_BINARY
    if rng.random() < 0.2:
        names = COMPARE
    return e.ELEMENTWISE[str(rng.choice(names))](a, b)


def select(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    c = pick(rng, pool, lambda x: x.dtype is bool_)
    a = c and pick(rng, pool, lambda x: x.shape == c.shape)
    b = a and pick(rng, pool, lambda x: x.type == a.type)
    return e.select(c, a, b) if c and a and b else None


def cast(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    return e.Cast(DTYPES[rng.integers(len(DTYPES))])(anything(rng, pool))


def leaf(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    type = random_type(rng, sizes, DTYPES[rng.integers(len(DTYPES))])
    if type.shape and rng.random() < 0.3 and type.dtype is not bool_:
        return Iota(type.shape, int(rng.integers(type.rank)), type.dtype)()
    if type.is_static and rng.random() < 0.5:
        return Constant(random_values(rng, type), type.shape)()
    return Constant(random_values(rng, type.with_shape(())), type.shape)()


def expand(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    x = pick(rng, pool, lambda x: x.type.rank < 3)
    if x is None:
        return None
    shape: list[int | Dim] = list(x.shape)
    axis = int(rng.integers(len(shape) + 1))
    shape.insert(axis, sizes[rng.integers(len(sizes))])
    return Expand(tuple(shape), (axis,))(x)


def permute(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    x = pick(rng, pool, lambda x: x.type.rank > 1)
    return Permute(tuple(map(int, rng.permutation(x.type.rank))))(x) if x else None


def reshape(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    x = anything(rng, pool)
    shape: Shape = (1, *x.shape) if rng.random() < 0.5 else (x.type.size,)
    return Reshape(shape)(x)


def take(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    x = pick(rng, pool, lambda x: x.type.rank > 0)
    if x is None:
        return None
    starts, steps = [0] * x.type.rank, [1] * x.type.rank
    stops = list(x.shape)
    for axis, d in enumerate(x.shape):
        if isinstance(d, int) and d > 0 and rng.random() < 0.7:
            starts[axis] = int(rng.integers(d))
            steps[axis] = int(rng.integers(1, 3))
    return Slice(tuple(starts), tuple(stops), tuple(steps))(x)


def pad(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    x = pick(rng, pool, lambda x: x.type.rank > 0 and x.dtype.is_float)
    if x is None:
        return None
    low, high, between = (tuple(map(int, w)) for w in rng.integers(0, 2, (3, x.type.rank)))
    return Pad(low, high, between)(x, full(rng.choice(SPECIAL), TensorType(x.dtype, ())))


def flip(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    x = pick(rng, pool, lambda x: x.type.rank > 0)
    return Flip((int(rng.integers(x.type.rank)),))(x) if x else None


def concat(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    x = pick(rng, pool, lambda x: x.type.rank > 0)
    y = x and pick(rng, pool, lambda y: y.type == x.type)
    return Concat(int(rng.integers(x.type.rank)))(x, y) if x and y else None


def reduce(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    x = pick(rng, pool, lambda x: x.type.rank > 0 and 0 not in x.shape)
    if x is None:
        return None
    axes = tuple(i for i in range(x.type.rank) if rng.random() < 0.6)
    if x.dtype is bool_:
        return ReduceAny(axes)(x)
    if x.dtype.is_integer and rng.random() < 0.5:
        return ReduceSum(axes)(x) if rng.random() < 0.7 else CumSum(0)(x)
    return (ReduceMax if rng.random() < 0.5 else ReduceMin)(axes)(x)


def dot(rng: Rng, pool: list[Node], sizes: list[int | Dim]) -> Node | None:
    a = pick(rng, pool, lambda x: x.dtype is int32 and x.type.rank > 0)
    if a is None:
        return None
    i = int(rng.integers(a.type.rank))
    b = pick(rng, pool, lambda x: x.dtype is int32 and a.shape[i] in x.shape and x.type.rank < 3)
    return DotGeneral((i,), (b.shape.index(a.shape[i]),))(a, b) if b else None


MAKERS: tuple[Maker, ...] = (
    *[unary] * 3, *[binary] * 10, select, select, cast, leaf, expand, expand, permute, permute,
    reshape, take, pad, flip, concat, reduce, dot,
)  # fmt: skip
