"""Random graphs of every op, of odd sizes and all dtypes, for the fuzz tests of compilers.

What a graph computes must be comparable between backends that round differently. So every node is
known to be `exact` (the same on all backends, but for the sign of zeros) or not; ops that jump
(`floor`, comparisons, conversions to integers, positions of extrema) are applied to exact nodes
only, and floats stay within a few units and away from poles, so that differences of rounding are
not blown up.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    Dim,
    DType,
    Graph,
    Node,
    TensorType,
    TupleType,
    bfloat16,
    bool_,
    evaluate,
    float16,
    float32,
    float64,
    full,
    int8,
    int32,
    int64,
    product,
    uint8,
    uint32,
    uint64,
)
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import Constant, SizeOf, input_node
from retrograd.ops.shape import expand
from retrograd.runtime.backend import Array
from tests.runtime import fuzz_makers

SIZES = (0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 100)
MOST = 6000  # elements of a node
FLOATS = (float32, float32, float64, float64, float16, bfloat16)
INTEGERS = (int32, int64, int8, uint8, uint64)
REACH = 4.0  # floats are kept within

Sizes = dict[str, int]


class Fuzz:
    """Grows a random graph. `bindings` are values of the symbolic sizes that make sense for it.

    With `rows`, most of it is matrices of one or two shapes that are gone through row by row.
    """

    def __init__(self, seed: int, symbolic: bool = False, rows: bool = False) -> None:
        self.r = random.Random(seed)
        r = self.r
        self.makers = fuzz_makers.ROWS if rows else fuzz_makers.MAKERS
        self.sizes: list[int | Dim] = [*r.sample(SIZES[2:], 3), r.choice((0, 1, 1))]
        if rows:
            self.sizes = r.sample(SIZES[2:], 2)
        self.bindings: list[Sizes] = [{}]
        if symbolic:
            n, m = Dim("N"), Dim("M")
            self.sizes = [n, n, m, r.choice((2 * n, n + 1, n + m)), r.choice(SIZES[2:])]
            self.bindings = [{"N": r.choice(SIZES), "M": r.choice(SIZES)} for _ in range(3)]
        self.float = r.choice(FLOATS)
        self.integer = r.choice(INTEGERS)
        self.exact: set[Node] = set()
        self.nodes: list[Node] = []
        for dtype in (self.float, self.float, self.integer, bool_, self.float):
            self.feed(TensorType(dtype, self.shape(2 if rows else -1)))
        if symbolic:
            self.feed(TensorType(bool_, (n, m)))  # tells the sizes
        self.feed(TensorType(uint32, (2,)))
        self.inputs = list(self.nodes)

    # -- what makers ask for ------------------------------------------------------------------
    def shape(self, rank: int = -1) -> tuple[int | Dim, ...]:
        """A random shape that is not too large."""
        rank = self.r.choice((0, 1, 2, 2, 3)) if rank < 0 else rank
        while True:
            found = tuple(self.r.choice(self.sizes) for _ in range(rank))
            if self.small(found):
                return found
            rank = max(rank - 1, 0)

    def small(self, shape: Sequence[int | Dim]) -> bool:
        size = product(shape)
        return all(evaluate(size, b) <= MOST for b in self.bindings)

    def pick(self, test: Callable[[Node], bool] = lambda x: True) -> Node | None:
        """A node that passes a test, rather a late one."""
        found = [x for x in self.nodes if test(x)]
        if not found:
            return None
        return self.r.choice(found[-8:] if self.r.random() < 0.7 else found)

    def known(self, *nodes: Node) -> bool:
        return all(x in self.exact for x in nodes)

    def positive(self, d: int | Dim) -> bool:
        """Whether a size is never 0."""
        return all(evaluate(d, b) > 0 for b in self.bindings)

    def do(self, op: str, *args: Node) -> Node:
        return ELEMENTWISE[op](*args)

    def number(self, value: float, like: Node) -> Node:
        return full(value, like.type)

    def length(self, d: int | Dim, like: Node) -> Node:
        """A size as an integer node."""
        if not isinstance(d, Dim):
            return full(d, like.type)
        return expand(SizeOf(d, like.dtype)(), like.shape, tuple(range(like.type.rank)))

    def calm(self, x: Node) -> Node:
        """x within a few units; exactly so, where x is exact."""
        if not x.dtype.is_float:
            return x
        if self.known(x) or self.r.random() < 0.5:
            low, high = (full(v, x.type) for v in (-REACH, REACH))
            return self.made(self.do("clamp", x, low, high), self.known(x))
        return self.made(self.do("tanh", x), False)

    def made(self, node: Node, exact: bool) -> Node:
        if exact:
            self.exact.add(node)
        return node

    # -- growth -------------------------------------------------------------------------------
    def feed(self, type: TensorType) -> None:
        x = input_node(type, f"x{len(self.nodes)}")
        self.exact.add(x)
        self.nodes.append(x)

    def leaf(self) -> Node:
        """A constant array, or one number."""
        dtype = self.r.choice((self.float, self.integer, bool_))
        type = TensorType(dtype, self.shape())
        if type.is_static and self.r.random() < 0.5:
            return Constant(values(type, self.r.randrange(99)), type.shape)()
        return full(self.r.choice((0, 1, 1)) if dtype is bool_ else self.r.choice((0, 1, 3)), type)

    def grow(self, count: int) -> None:
        start = len(self.nodes)
        while len(self.nodes) < start + count:
            maker = self.r.choice(self.makers)
            try:
                made = maker(self)
                if made is not None and self.sound(made[0]):
                    node = self.calm(self.made(*made))
                    self.nodes.append(node)
            except (ShapeError, DTypeError):
                continue

    def sound(self, node: Node) -> bool:
        """Whether it makes sense, and stays small, for all sizes."""
        if not self.small(node.shape):
            return False
        for b in self.bindings:
            new, seen = [node], set(self.nodes)
            while new:
                x = new.pop()
                if x in seen:
                    continue
                seen.add(x)
                types = [y.type.bind(b) for y in x.inputs]
                if x.prim.bind(b).infer(*types) != x.type.bind(b):
                    return False
                results = x.type.items if isinstance(x.type, TupleType) else (x.type,)
                if not all(self.small(t.shape) for t in results):
                    return False
                new.extend(x.inputs)
        return True

    def graph(self, count: int = 20, ends: int = 3) -> Graph:
        self.grow(count)
        late = self.nodes[len(self.inputs) :]
        return Graph(self.inputs, [self.nodes[-1], *self.r.sample(late, min(ends, len(late)))])

    def arrays(self, binding: Sizes, seed: int = 0) -> list[Array]:
        return [values(x.type.bind(binding), seed + 7 * k) for k, x in enumerate(self.inputs)]


def values(type: TensorType, seed: int) -> Array:
    """Elements of a type: small floats with zeros of both signs, small and extreme integers."""
    shape = tuple(evaluate(d, {}) for d in type.shape)
    r = np.random.default_rng((seed, *shape))
    dtype: DType = type.dtype
    if dtype is bool_:
        return np.asarray(r.random(shape) < 0.5)
    if dtype is uint32:
        return np.asarray(r.integers(0, 2**32, shape, np.uint32))
    if dtype.is_integer:
        info = np.iinfo(dtype.dtype)
        x = np.asarray(r.integers(max(info.min, -9), 10, shape)).astype(dtype.dtype)
        ends = np.array([info.min, info.max], dtype.dtype)
        return np.where(r.random(shape) < 0.1, ends[r.integers(0, 2, shape)], x)
    x = np.where(r.random(shape) < 0.1, r.choice([0.0, -0.0, 1.0], shape), r.normal(0, 1.5, shape))
    return np.asarray(np.clip(x, -REACH, REACH)).astype(dtype.dtype)
