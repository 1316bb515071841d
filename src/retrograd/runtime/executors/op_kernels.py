"""One operation as native code, compiled once for all sizes of its operands.

An elementwise operation does not see shapes: it is compiled for vectors of N elements. Any other is
compiled for operands of so many axes, each of a size with a name of its own, except that axes which
the operation pairs, and those of matrices that are equally long, have one name. A scan is compiled
for any number of steps. Where other attributes hold sizes, it is compiled for these.

A kind of operation takes 4 to 17 ms of a CPU core to compile (median 6; measured for all 464
functions of `benchmarks/calls`), 1 to 2.5 ms to load from disk: within what a prompt may take, so
nothing stands in for a kernel until it is there.

Code for operands of few elements is made in a fraction of the time, see `Executable`: what is
typed at a prompt is mostly small, and waits for the compiler. Larger operands that come later are
computed by that code, too, until better code would have paid; the bits are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from retrograd.ir import (
    Dim,
    Graph,
    Node,
    Trait,
    TupleType,
    evaluate,
)
from retrograd.ir.node import graphs_of
from retrograd.ops.control import Scan
from retrograd.ops.control.dag_scan import DagScan
from retrograd.ops.conv import Conv
from retrograd.ops.elementwise import Cast, Elementwise
from retrograd.ops.identity import items
from retrograd.ops.index import Scatter
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg.matrix import MatrixOp
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ArgMax, Reduction
from retrograd.ops.scan import AxisScan
from retrograd.ops.sort import SearchSorted, Sort
from retrograd.ops.toposort import order_size
from retrograd.passes.lowering.complex_linalg import Paired, PairedFft
from retrograd.runtime.backend import Array
from retrograd.runtime.call_frame import CallFrame
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.background_compiler import BEHIND
from retrograd.runtime.executors.graph_family import shared
from retrograd.runtime.executors.shape_generalization import difference, named, types_of
from retrograd.shared import Key, lock, trim
from retrograd.tuning import TUNING

CAPACITY = 1024  # programs that are remembered; the oldest is forgotten
# How much work, in elements, code of a level does before better code would be there: that which
# goes through one element at a time, and that which is not optimised. The second numbers are how
# much it may do, in all, of work that is above its level.
LEVELS = ((1 << 12, 1 << 17), (1 << 17, 1 << 21))
MULTIPLY_ADDS = 2  # of which as many take as long as an element
HEAVY_ELEMENT = 16  # elements that take as long as one of what does much with each
COMPILED = {"programs": 0}  # of single operations, ever


@dataclass
class Code:
    """A program, its level, and the work above that level that it has done."""

    program: Executable
    level: int
    excess: float = 0
    better: OpKernel | None = None  # waits for the background compiler, which does not keep it


@dataclass(frozen=True)
class BoundCode:
    """Code at sizes that are known: its address, and a block of slots whose first words are to be
    the addresses of the operands and of the result."""

    code: int
    frame: CallFrame
    program: Executable  # to which both belong


_PROGRAMS: dict[Any, Code] = {}
_LOCK = lock(40)

FULL = float("inf")  # work: loops run more than once
HEAVY = (Conv, MatrixOp, Paired, PairedFft)
_FREE = (Reduction, ArgMax, AxisScan, Sort)  # no attribute holds a size


class OpKernel:
    """The native code of one operation on operands of known types.

    `node` is the operation as it is compiled, for the operands that `operands` gives: the same in
    other shapes, and, where `orders` says so, with other orders of axes.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.kind = ""
        self.work = _work(node)
        self.orders: list[Sequence[int]] | None = None
        self.shapes: list[tuple[int, ...]] | None = None  # None: as they are
        self.more: list[Array] = []  # operands that only give names to sizes
        self._generalize()
        self.key = Key(_described(self.node, self.kind))

    def _generalize(self) -> None:
        """Find the program that serves the most operands."""
        node, prim = self.node, self.node.prim
        if Trait.CONTROL in prim.traits and not isinstance(prim, DagScan):
            self.work = FULL
            if isinstance(prim, Scan) and prim.scanned and prim.length not in (0, 1):
                self.node, self.kind = _of_any_length(node), "length"
        elif isinstance(prim, Elementwise | Cast):
            self.kind = "flat"
            self.shapes = [(-1,)] * len(node.inputs)
        elif not all(x.type.size for x in node.inputs):
            pass  # for these sizes only, of which none is to be divided by
        elif isinstance(prim, _FREE):
            slim = _collapsed(node)
            if slim is not None:
                self.node, self.kind = slim, "free"
                self.shapes = [_shape(x) for x in slim.inputs]
        elif isinstance(prim, DotGeneral):
            self.node, self.orders = _matrices(node) or _slim_product(node)
            self.kind = "paired"
            self.shapes = [_shape(x) for x in self.node.inputs]
        elif isinstance(prim, PairedFft):
            self.node, self.kind = _of_any_batch(node), "batch"
            self.shapes = [(-1, *_shape(node.inputs[0])[prim.axis :])]
        elif isinstance(prim, MatrixOp | Paired):
            self.kind = named(node)
            self.more = difference(node, self.kind)
        elif isinstance(prim, DagScan):
            self.node, self.kind, self.work = _of_any_graph(node), "graph", FULL
        elif isinstance(prim, Scatter | SearchSorted):
            self.kind = "paired"

    def operands(self, arrays: Sequence[Array]) -> list[Array]:
        """What the code takes for these operands of the operation."""
        given = [*arrays]
        if self.orders is not None:
            given = [a.transpose(o) for a, o in zip(given, self.orders, strict=True)]
        if self.shapes is not None:
            given = [a.reshape(shape) for a, shape in zip(given, self.shapes, strict=True)]
        return given + self.more

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The results, in the shapes of the code."""
        return self.program()(self.operands(arrays))

    def program(self) -> Executable:
        """The code, which is made if there is none, or none that is good enough by now."""
        found = _PROGRAMS.get(self.key)
        if found is not None and not tier_up(found, self.work):
            return found.program
        level = _level(self.work, 1 if found is None else 0)
        waits = level == len(LEVELS) and self._may_wait(found) and BEHIND.ran(self)
        level -= waits
        if found is None or found.level < level:
            with _LOCK:
                now = _PROGRAMS.get(self.key)
                if now is None or now is found:
                    now = _PROGRAMS[self.key] = _compiled(self.node, self.kind, level)
                    now.excess = 0 if found is None else found.excess
                    trim(_PROGRAMS, CAPACITY)
            found = now
        if waits:
            found.better = self
        return found.program

    def _may_wait(self, found: Code | None) -> bool:
        """Whether the best code may be made in the background: that for products of matrices takes
        longer to make than this much work takes with code that is made in haste."""
        work = self.work if found is None else found.excess
        return isinstance(self.node.prim, DotGeneral) and work <= TUNING.hasty_product_work

    def compile(self) -> None:
        """Make the best code; what there is serves until then."""
        found = _PROGRAMS.get(self.key)
        if found is not None and found.level < len(LEVELS):
            best = _compiled(self.node, self.kind, len(LEVELS))
            with _LOCK:
                if _PROGRAMS.get(self.key) is found:
                    _PROGRAMS[self.key] = best

    def bound_code(self) -> BoundCode | None:
        """What computes one contiguous result from contiguous operands on one thread; None where
        that takes more: another order of axes, several results, the work of other threads."""
        turned = any(list(order) != sorted(order) for order in self.orders or ())
        if turned or self.more or self.kind == "batch" or isinstance(self.node.type, TupleType):
            return None
        types = [x.type for x in self.node.inputs]
        flat = self.kind == "flat"
        shapes = [(evaluate(t.size, {}),) if flat else _sizes(t.shape) for t in types]
        program = self.program()
        shaped = program.shaped_for([
            np.broadcast_to(np.zeros((), t.dtype.dtype), shape)
            for t, shape in zip(types, shapes, strict=True)
        ])  # fmt: skip
        if shaped.shared or not shaped.plain:
            return None
        return BoundCode(program.address, shaped.frame(), program)


def _sizes(shape: Sequence[int | Dim]) -> tuple[int, ...]:
    return tuple([evaluate(d, {}) for d in shape])


def _shape(node: Node) -> tuple[int, ...]:
    return _sizes(node.type.shape)


def _of_any_length(node: Node) -> Node:
    """A scan of any number of steps, which what it goes through tells."""
    prim: Any = node.prim
    length, first = Dim("length"), len(node.inputs) - prim.scanned
    rows = [x.type.with_shape((length, *x.shape[1:])) for x in node.inputs[first:]]
    types = [*[x.type for x in node.inputs[:first]], *rows]
    return replace(prim, length=length)(*[input_node(t) for t in types])


def _of_any_batch(node: Node) -> Node:
    """A Fourier transform for any sizes of the axes before. That of its own says what its code is,
    and how long the rows of columns are."""
    prim: Any = node.prim
    shape = _shape(node.inputs[0])
    own: tuple[int | Dim, ...] = (Dim("batch"), *shape[prim.axis :])
    return replace(prim, axis=1)(input_node(node.inputs[0].type.with_shape(own)))


def _of_any_graph(node: Node) -> Node:
    """A scan over graphs of any number of nodes and edges."""
    prim: Any = node.prim
    n, e = Dim("n_nodes"), Dim("n_edges")
    edges, order, *rest = [x.type for x in node.inputs]
    first = prim.edge_inputs
    second = first + prim.message_inputs
    types = [edges.with_shape((2, e)), order.with_shape((order_size(n, e),))]
    for i, t in enumerate(rest):
        rows = e if i < first else n if second <= i < second + prim.node_inputs else None
        types.append(t if rows is None else t.with_shape((rows, *t.shape[1:])))
    return replace(prim, nodes=n)(*[input_node(t) for t in types])


def _collapsed(node: Node) -> Node | None:
    """The node on operands, all of one shape, without the axes of size 1, which a compiler that
    knows the sizes does not loop over either, and with neighbouring axes that it does not work
    along as one; a single row is one of many. None where only axes of size 1 are reduced."""
    prim: Any = node.prim
    single = not isinstance(prim, Reduction)
    along = (prim.axis,) if single else prim.axes
    sizes: list[int] = []
    axes: list[int] = []
    kept = False  # whether the latest axis is one that it does not work along
    for i, n in enumerate(_shape(node.inputs[0])):
        if n == 1:
            continue
        if i in along:
            axes.append(len(sizes))
        elif kept:
            sizes[-1] *= n
            continue
        sizes.append(n)
        kept = i not in along
    if not axes:
        return None
    if len(sizes) == 1:
        sizes, axes = [1, *sizes], [1]
    op = replace(prim, axis=axes[0]) if single else replace(prim, axes=tuple(axes))
    slim = node.inputs[0].type.with_shape(tuple(sizes))
    return op(*[input_node(slim) for _ in node.inputs])


def _matrices(node: Node) -> tuple[Node, list[Sequence[int]]] | None:
    """A contraction as a product of matrices; None where b has no columns, as then the order of
    sums depends on how a lies in memory."""
    prim: Any = node.prim
    a, b = [x.shape for x in node.inputs]
    a_free, b_free = prim.free_axes(len(a), len(b))
    many, rows, inner, columns = [
        math.prod([shape[i] for i in axes])
        for shape, axes in ((a, prim.a_batch), (a, a_free), (a, prim.a_contract), (b, b_free))
    ]
    if columns == 1 or inner == 1:
        return None
    stack = (many,) if many != 1 else ()
    shapes = (*stack, *((rows,) if rows != 1 else ()), inner), (*stack, inner, columns)
    batch = tuple(range(len(stack)))
    op = DotGeneral((len(shapes[0]) - 1,), (len(stack),), batch, batch)
    types = [x.type.with_shape(shape) for x, shape in zip(node.inputs, shapes, strict=True)]
    orders = (*prim.a_batch, *a_free, *prim.a_contract), (*prim.b_batch, *prim.b_contract, *b_free)
    return op(*[input_node(t) for t in types]), [*orders]


def _slim_product(node: Node) -> tuple[Node, list[Sequence[int]]]:
    """A contraction, operands without the axes of size 1, along which a compiler that knows the
    sizes does not sum either."""
    prim: Any = node.prim
    rows = [[i for i, n in enumerate(x.shape) if n != 1] for x in node.inputs]

    def renumbered(k: int, axes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([rows[k].index(i) for i in axes if i in rows[k]])

    op = DotGeneral(
        renumbered(0, prim.a_contract), renumbered(1, prim.b_contract),
        renumbered(0, prim.a_batch), renumbered(1, prim.b_batch),
    )  # fmt: skip
    types = [x.type.with_shape(tuple([x.shape[i] for i in keep])) for x, keep in zip(
        node.inputs, rows, strict=True
    )]  # fmt: skip
    return op(*[input_node(t) for t in types]), [range(x.type.rank) for x in node.inputs]


def _work(node: Node) -> float:
    """What a node has to do, in elements of an elementwise operation."""
    elements = sum([evaluate(x.type.size, {}) for x in node.inputs])
    prim = node.prim
    if isinstance(prim, DotGeneral):
        summed = math.prod([evaluate(node.inputs[0].type.shape[i], {}) for i in prim.a_contract])
        return max(evaluate(node.type.size, {}) * summed / MULTIPLY_ADDS, elements)
    return elements * HEAVY_ELEMENT if isinstance(prim, HEAVY) else elements


def _described(node: Node, kind: str) -> Any:
    types = [x.type for x in node.inputs]
    by_rank = kind not in ("", "graph", "length", "batch")
    shapes = tuple(t.rank if by_rank else t.shape for t in types) if kind != "flat" else None
    return node.prim, tuple([t.dtype for t in types]), shapes, kind


def _level(work: float, column: int) -> int:
    """The level of code for so much work: for what comes back (column 0), or for the first time
    (column 1): the lowest that does not have to be replaced at once, as somebody waits for it."""
    return sum([work > limits[column] for limits in LEVELS])


def tier_up(code: Code, work: float) -> bool:
    """Whether better code would pay by now."""
    if code.level == len(LEVELS) or work <= LEVELS[code.level][0]:
        return False
    code.excess += work
    return code.excess > LEVELS[code.level][1]


def _compiled(node: Node, kind: str, level: int) -> Code:
    inputs = [input_node(t) for t in types_of(node, kind)]
    result = node.prim(*inputs[: len(node.inputs)])
    outputs = items(result) if isinstance(result.type, TupleType) else [result]

    def made(graph: Graph) -> Executable:
        COMPILED["programs"] += 1
        return Executable(graph, light=level < len(LEVELS), narrow=level == 0)

    graph = Graph(inputs, outputs)
    if not graphs_of(node.prim):
        return Code(made(graph), level)
    program: Any = shared(graph, ("kernel", level), made)  # of a loop, for sizes that change
    return Code(program, level)
