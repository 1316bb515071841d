"""Records of the operations that hold graphs, and of what takes their results apart.

The generic tests know operations of one result; a `Result` is one result of an operation of several
as such an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    Dim,
    DType,
    Graph,
    Node,
    Op,
    TensorType,
    bool_,
    float32,
    float64,
    full,
    int64,
)
from retrograd.ops.control import Cond, Scan, Sized, WhileLoop
from retrograd.ops.control.body import wide
from retrograd.ops.control.custom import Custom, CustomRule
from retrograd.ops.control.matrix_function import MatrixFunction
from retrograd.ops.control.pure_callback import HostFunction, PureCallback
from retrograd.ops.elementwise import cos, lt, sin, tanh
from retrograd.ops.identity import Item
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.verify.records.common import N, f64
from retrograd.verify.records.record import Array, Failure, Record, Sample, Symbolic, rng_for

Make = Callable[[DType], Op]


class Result(Op):
    """Result number `index` of the operation that `make` makes for a dtype."""

    def __init__(
        self, make: Make, index: int = 0, dtype: DType = float64, declared: Op | None = None
    ) -> None:
        self.make, self.index, self.dtype = make, index, dtype
        self.prim = make(dtype)
        self.declared = declared or self.prim
        self.name = self.declared.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and (self.prim, self.index) == (other.prim, other.index)

    def __hash__(self) -> int:
        return hash((self.prim, self.index))

    def __call__(self, *inputs: Node) -> Node:
        return Item(self.index)(self.prim(*inputs))

    def __str__(self) -> str:
        return f"{self.prim}[{self.index}]"

    def in_dtype(self, dtype: DType) -> Result:
        return Result(self.make, self.index, dtype, self.declared)

    def bind(self, sizes: Any) -> Result:
        return Result(lambda dtype: self.make(dtype).bind(sizes), self.index, self.dtype)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        results: Any = self.prim.batch(size, batched, *inputs)
        found: Node = results[self.index]
        own = [x.type.with_shape(x.shape[s:]) for x, s in zip(inputs, batched, strict=True)]
        rank = self(*[input_node(t) for t in own]).type.rank
        return wide(found, found.type.rank > rank, size)


def graph(f: Callable[..., Sequence[Node]], *types: TensorType) -> Graph:
    inputs = [input_node(t) for t in types]
    return Graph(inputs, f(*inputs))


# -- scan -----------------------------------------------------------------------------------------


def scan_of(length: int | Dim, reverse: bool = False, recompute: bool = False) -> Make:
    def make(dtype: DType) -> Op:
        t = TensorType(dtype, (2,))

        def body(w: Node, h: Node, x: Node) -> Sequence[Node]:
            after = tanh(w * h + x)
            return after, sin(h) * w

        return Scan(graph(body, t, t, t), 1, 1, length, reverse, recompute)

    return make


def scanned(op: Result, *arrays: Array) -> Array:
    w, h, x = [a.astype(np.float64) for a in arrays]
    prim: Any = op.prim
    ys = np.zeros((len(x), 2))
    for t in sorted(range(len(x)), reverse=prim.reverse):
        ys[t] = np.sin(h) * w
        h = np.tanh(w * h + x[t])
    return np.asarray((h, ys)[op.index], arrays[0].dtype)


def scan_samples() -> Iterator[Sample]:
    rng = rng_for("scan")
    for length, reverse, recompute in (
        (3, False, False), (3, True, False), (2, False, True), (1, True, True), (0, False, False),
    ):  # fmt: skip
        for index in (0, 1):
            op = Result(scan_of(length, reverse, recompute), index)
            inputs = rng.normal(size=2), rng.normal(size=2), rng.normal(size=(length, 2))
            yield Sample(op, inputs, smooth=length > 1)


# -- choices --------------------------------------------------------------------------------------


def cond_of(dtype: DType) -> Op:
    t = TensorType(dtype, (3,))
    return Cond(
        graph(lambda x, y: (sin(x) * y, x + y), t, t), graph(lambda x, y: (x * y * y, y), t, t)
    )


def chosen(op: Result, c: Array, *arrays: Array) -> Array:
    x, y = [a.astype(np.float64) for a in arrays]
    both = ((np.sin(x) * y, x + y), (x * y * y, y))
    return np.asarray(both[0 if c else 1][op.index], arrays[0].dtype)


def cond_samples() -> Iterator[Sample]:
    rng = rng_for("cond")
    for c in (True, False):
        for index in (0, 1):
            inputs = np.asarray(c), rng.normal(size=3), rng.normal(size=3)
            yield Sample(Result(cond_of, index), inputs, smooth=True)


# -- loops ----------------------------------------------------------------------------------------


def while_of(dtype: DType) -> Op:
    t = TensorType(dtype, ())
    return WhileLoop(
        graph(lambda c, x, y: (lt(x, full(9, t)),), t, t, t),
        graph(lambda c, x, y: (x * c + full(1, t), y + sin(x)), t, t, t),
        2,
        100,
    )


def looped(op: Result, *arrays: Array) -> Array:
    c, x, y = [a.astype(np.float64) for a in arrays]
    steps = 0
    while x < 9:
        x, y = x * c + 1, y + np.sin(x)
        steps += 1
    found = (x, y, np.int64(steps))[op.index]
    return np.asarray(found, np.int64 if op.index == 2 else arrays[0].dtype)


def while_samples() -> Iterator[Sample]:
    for index in (0, 1, 2):
        for c, x in ((1.25, 0.5), (1.5, -0.25), (0.75, 11.0)):
            inputs = np.asarray(c), np.asarray(x), np.asarray(0.5)
            yield Sample(Result(while_of, index), inputs, smooth=index == 1 and x < 9)


# -- sizes that become known ----------------------------------------------------------------------


def sized_of(dtype: DType) -> Op:
    t = TensorType(dtype, ())

    def body(w: Node, h: Node) -> Sequence[Node]:
        step = graph(lambda w, h: (cos(w * h), sin(h)), t, t)
        loop = Scan(step, 1, 0, Dim("steps"))(w, h)
        total = ReduceSum((0,))(Item(1)(loop))
        return Item(0)(loop), total

    return Sized(graph(body, t, t), "steps")


def sized(op: Result, n: Array, *arrays: Array) -> Array:
    w, h = [a.astype(np.float64) for a in arrays]
    total = np.zeros(())
    for _ in range(int(n)):
        total = total + np.sin(h)
        h = np.cos(w * h)
    return np.asarray((h, total)[op.index], arrays[0].dtype)


def sized_samples() -> Iterator[Sample]:
    for n in (2, 3, 0):
        for index in (0, 1):
            inputs = np.asarray(n), np.asarray(0.75), np.asarray(1.25)
            yield Sample(Result(sized_of, index), inputs, smooth=n > 0)


def item_samples() -> Iterator[Sample]:
    for sample in cond_samples():
        op = Result(cond_of, sample.op.index, declared=Item(sample.op.index))  # type: ignore[attr-defined]
        yield Sample(op, sample.inputs, smooth=True)


@dataclass(frozen=True)
class Double(CustomRule):
    """The rule of `y = 2 x`."""

    def vjp(self, gs: Any, ys: Any, xs: Any) -> Any:
        return [None if g is None else 2.0 * g for g in gs]

    def jvp(self, tangents: Any, ys: Any, xs: Any) -> Any:
        return [None if t is None else 2.0 * t for t in tangents]


def custom_of(dtype: DType) -> Op:
    return Custom("double", 1, Double())


def custom_samples() -> Iterator[Sample]:
    rng = rng_for("custom")
    for shape in ((), (3,), (2, 0)):
        x = rng.normal(size=shape)
        yield Sample(Result(custom_of), (x, 2 * x), smooth=True)


SHIFTED = HostFunction(lambda x, y: np.add.outer(x, y))


def callback_of(*shape: int | Dim) -> Op:
    return PureCallback("shifted", shape, float64, SHIFTED.number, function=SHIFTED)


def callback_samples() -> Iterator[Sample]:
    rng = rng_for("pure_callback")
    for shape in ((), (3,), (2, 0)):
        x, y = rng.normal(size=shape), rng.normal(size=2)
        yield Sample(callback_of(*shape, 2), (x, y))


# The derivative of `c w^3` of a matrix along a direction.
CUBE = MatrixFunction(
    Graph.parse("graph {\n  %0: f64[] = input\n  %1: f64[] = input\n  %2: f64[] = mul(%0, %0)\n"
                "  %3: f64[] = mul(%2, %0)\n  %4: f64[] = mul(%1, %3)\n  return %4\n}\n"), 1,
)  # fmt: skip


def matrix_function_samples() -> Iterator[Sample]:
    rng = rng_for("matrix_function")
    for lead in ((), (2,)):
        x, e, y = rng.normal(size=(3, *lead, 3, 3))
        yield Sample(CUBE, (x, e, rng.normal(size=lead), y))


def vary(x: Array, k: int) -> Array:
    """Other conditions, other numbers of steps, other values."""
    if x.dtype == bool:
        return x ^ (k % 2 == 1)
    return x + k if x.dtype.kind == "i" else x + np.asarray(0.125 * k, x.dtype)


def records() -> list[Record]:
    f, two = TensorType(float64, ()), TensorType(float64, (2,))
    stack = TensorType(float64, (N, 2))
    condition, three = TensorType(bool_, ()), TensorType(float64, (3,))
    count = TensorType(int64, ())
    cond_use = Symbolic(Result(cond_of), (condition, three, three), ({},))
    return [
        Record(
            "scan", scan_samples, scanned, (0, 1, 2), vary=vary,
            failures=(
                Failure(Result(scan_of(3)), (two, two, two), ShapeError),
                Failure(Result(scan_of(3)), (f, two, two.with_shape((3, 2))), ShapeError),
                Failure(Result(scan_of(3)), (two, two.with_dtype(float32), two), ShapeError),
            ),
            symbolic=tuple(
                Symbolic(Result(scan_of(N, reverse), i), (two, two, stack), ({"N": 3}, {"N": 1}))
                for reverse in (False, True)
                for i in (0, 1)
            ),
        ),
        Record(
            "cond", cond_samples, chosen, (1, 2), vary=vary, symbolic=(cond_use,),
            failures=(
                Failure(Result(cond_of), (f, three, three), DTypeError),
                Failure(Result(cond_of), (condition.with_shape((2,)), three, three), ShapeError),
                Failure(Result(cond_of), (condition, three, f), ShapeError),
            ),
        ),
        Record(
            "while_loop", while_samples, looped, (0, 1, 2), vary=vary,
            edges="from zero its state never gets where the loop ends",
            symbolic=(Symbolic(Result(while_of, 1), (f, f, f), ({},), 1.125, 1.25),),
            failures=(Failure(Result(while_of), (f, f), ShapeError),),
        ),
        Record(
            "sized", sized_samples, sized, (1, 2), vary=vary,
            symbolic=(Symbolic(Result(sized_of, 1), (count, f, f), ({},), below=4),),
            failures=(Failure(Result(sized_of), (f, f, f), ShapeError),),
        ),
        # The operation computes nothing: with respect to x, differences see nothing move.
        Record(
            "custom", custom_samples, lambda op, x, y: np.array(y), unchecked=(0,),
            symbolic=(Symbolic(Result(custom_of), (three, three), ({},)),),
        ),
        Record(
            "pure_callback", callback_samples, lambda op, x, y: x[..., None] + y,
            symbolic=(Symbolic(callback_of(N, 2), (f64(N), f64(2)), ({"N": 3}, {"N": 0})),),
            failures=(Failure(callback_of(-1), (f64(3), f64(2)), ShapeError),),
        ),
        Record(
            "matrix_function", matrix_function_samples, lambda op, *arrays: arrays[-1],
            failures=(
                Failure(CUBE, (f64(3, 3), f64(3, 3)), ShapeError),
                Failure(CUBE, (f64(3, 3), f64(3, 3), f64(3), f64(3, 3)), ShapeError),
                Failure(CUBE, (f64(3, 3), f64(2, 2), f64(), f64(3, 3)), ShapeError),
            ),
            symbolic=(
                Symbolic(CUBE, (f64(N, N), f64(N, N), f64(), f64(N, N)), ({"N": 3}, {"N": 0})),
            ),
        ),
        Record("item", item_samples, chosen, (1, 2), vary=vary, symbolic=(cond_use,)),
    ]  # fmt: skip
