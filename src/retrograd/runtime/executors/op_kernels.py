"""One operation, in NumPy where it can be told how, and it is little work, else as native code,
compiled once for all sizes of its operands.

An elementwise operation does not see shapes: it is compiled for vectors of N elements. Any other is
compiled for operands of so many axes, each of a size with a name of its own, except that axes which
the operation pairs, and those of matrices that are equally long, have one name. Where attributes
hold sizes, it is compiled for these.

Code for operands of few elements is made in a fraction of the time, see `Executable`: what is
typed at a prompt is mostly small, and waits for the compiler. Larger operands that come later are
computed by that code, too, until better code would have paid; the bits are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from retrograd.errors import LoopLimitError
from retrograd.ir import (
    Dim,
    Graph,
    Node,
    TupleType,
    evaluate,
)
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
from retrograd.ops.special.portable import FORMULAS
from retrograd.ops.toposort import order_size
from retrograd.passes.lowering.complex_linalg import Paired
from retrograd.runtime.backend import Array, Program
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.numpy_mirror.contracting import contracted
from retrograd.runtime.executors.numpy_mirror.facts import once
from retrograd.runtime.executors.numpy_mirror.formulas import written
from retrograd.runtime.executors.numpy_mirror.matrices import factored
from retrograd.runtime.executors.numpy_mirror.ordered import (
    can_evaluate,
    can_reduce,
    in_order,
    reduced,
)
from retrograd.runtime.executors.numpy_mirror.scanning import scanned
from retrograd.runtime.executors.shape_generalization import difference, named, types_of
from retrograd.shared import Key, lock, trim

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

    program: Program
    level: int
    excess: float = 0


_PROGRAMS: dict[Any, Code] = {}
_LOCK = lock(40)

FULL = float("inf")  # work: loops run more than once
HEAVY = (Conv, MatrixOp, Paired)
_FREE = (Reduction, ArgMax, AxisScan, Sort)  # no attribute holds a size


def run(node: Node, arrays: list[Array]) -> Array:
    """The value of a node, whose inputs have these values."""
    prim = node.prim
    work = _work(node, arrays)
    if isinstance(prim, Elementwise | Cast):
        shape = arrays[0].shape
        if not arrays[0].size:
            return np.empty(shape, node.dtype.dtype)
        if prim.name in FORMULAS and can_evaluate(node, work):
            return np.asarray(prim.reference(*arrays))
        key = _key(node, "flat")
        found = None if key in _PROGRAMS else written(node, arrays)
        if found is not None:
            return found
        flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
        return _program(node, "flat", work, key)(flat)[0].reshape(shape)
    if not all(a.size for a in arrays):
        return _program(node, "", work)(arrays)[0]
    if isinstance(prim, Reduction) and can_reduce(node, work):
        return reduced(prim, arrays[0])
    if isinstance(prim, _FREE):
        slim = _without_ones(node, arrays[0])
        if slim is not None:
            given = [a.reshape(slim.inputs[0].shape) for a in arrays]
            found = _value(slim, "free", work, given, lambda: scanned(node, arrays))
            return found.reshape(node.shape)
    if isinstance(prim, DotGeneral):
        if node.dtype.is_float and _summed(node, arrays) == 1:
            return _outer(node, *arrays)
        slim, orders = once(node, "slim", _slim)
        key = _key(slim, "paired")
        found = None if key in _PROGRAMS else contracted(node, arrays)
        if found is None:
            slender = [
                a.transpose(order).reshape(x.shape)
                for a, order, x in zip(arrays, orders, slim.inputs, strict=True)
            ]
            found = _program(slim, "paired", work, key)(slender)[0]
        return found.reshape(node.shape)
    if isinstance(prim, MatrixOp | Paired):
        kind = named(node)
        given = [*arrays, *difference(node, kind)]
        return _value(node, kind, work, given, lambda: factored(node, arrays))
    if isinstance(node.prim, DagScan):
        return _program(_of_any_graph(node), "graph", FULL)(arrays)[0]
    kind = "paired" if isinstance(prim, Scatter | SearchSorted) else ""
    return _value(node, kind, work, arrays, lambda: in_order(node, arrays, work))


def _value(
    node: Node, kind: str, work: float, arrays: list[Array], without: Callable[[], Array | None]
) -> Array:
    """What NumPy has for a node `without` code, as long as there is none, else what code says."""
    key = _key(node, kind)
    found = None if key in _PROGRAMS else without()
    return _program(node, kind, work, key)(arrays)[0] if found is None else found


def run_region(node: Node, arrays: list[Array]) -> list[Array]:
    """The results of an operation that holds graphs: compiled, as a loop runs more than once."""
    try:
        return _program(node, "", FULL)(arrays)
    except LoopLimitError as error:  # the program is one for all lines that do the same
        if node.source is None or str(node.source) in str(error):
            raise
        raise LoopLimitError(f"{error} (in {node.op} at {node.source})") from None


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


def _without_ones(node: Node, x: Array) -> Node | None:
    """The node on operands, all of one shape, without the axes of size 1, which a compiler that
    knows the sizes does not loop over either; None where only such axes are reduced."""
    prim: Any = node.prim
    many = [i for i, n in enumerate(x.shape) if n != 1]
    single = not isinstance(prim, Reduction)
    axes = [many.index(i) for i in ((prim.axis,) if single else prim.axes) if i in many]
    if not axes:
        return None
    op = replace(prim, axis=axes[0]) if single else replace(prim, axes=tuple(axes))
    x_type = node.inputs[0].type
    slim = x_type.with_shape(tuple([x.shape[i] for i in many]))
    return op(*[input_node(slim) for _ in node.inputs])


def _summed(node: Node, arrays: list[Array]) -> int:
    """How many products a contraction adds up for each result."""
    prim: Any = node.prim
    return math.prod([arrays[0].shape[i] for i in prim.a_contract])


def _outer(node: Node, a: Array, b: Array) -> Array:
    """A contraction in which nothing is added up."""
    prim: Any = node.prim
    n = len(prim.a_batch)
    a_free, b_free = prim.free_axes(a.ndim, b.ndim)
    x = a.transpose((*prim.a_batch, *a_free, *prim.a_contract))
    y = b.transpose((*prim.b_batch, *b_free, *prim.b_contract))
    rows = x.reshape((*x.shape[: n + len(a_free)], *[1] * len(b_free)))
    columns = y.reshape((*y.shape[:n], *[1] * len(a_free), *y.shape[n : n + len(b_free)]))
    return np.asarray(rows * columns, node.dtype.dtype)


def _slim(node: Node) -> tuple[Node, list[Sequence[int]]]:
    """A contraction of which there are few, so that all have some programs in common, and the order
    of axes in which operands are those of it."""
    return _matrices(node) or _slim_product(node)


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


def _work(node: Node, arrays: list[Array]) -> float:
    """What a node has to do with these operands, in elements of an elementwise operation."""
    elements = sum([a.size for a in arrays])
    prim = node.prim
    if isinstance(prim, DotGeneral):
        own = evaluate(node.type.size, {}) * _summed(node, arrays) / MULTIPLY_ADDS
        return max(own, elements)
    return elements * HEAVY_ELEMENT if isinstance(prim, HEAVY) else elements


def _key(node: Node, kind: str) -> Key:
    """What one program is for."""
    return once(node, f"key {kind}", lambda node: Key(_described(node, kind)))


def _described(node: Node, kind: str) -> Any:
    types = [x.type for x in node.inputs]
    by_rank = kind not in ("", "graph")
    shapes = tuple(t.rank if by_rank else t.shape for t in types) if kind != "flat" else None
    return node.prim, tuple([t.dtype for t in types]), shapes, kind


def has_code(node: Node, kind: str) -> bool:
    """Whether a program has been compiled, which takes less time than what needs none."""
    return _key(node, kind) in _PROGRAMS


def _program(node: Node, kind: str, work: float, key: Any = None) -> Program:
    """The code for a node; `work` is what it has to do now."""
    key = key or _key(node, kind)
    found = _PROGRAMS.get(key)
    if found is not None and not tier_up(found, work):
        return found.program
    with _LOCK:
        now = _PROGRAMS.get(key)
        if now is None or now is found:
            found = now = _PROGRAMS[key] = _compiled(node, kind, _level(work))
            trim(_PROGRAMS, CAPACITY)
    return now.program


def _level(work: float) -> int:
    """The level of code for so much work."""
    return sum([work > most for most, _ in LEVELS])


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
    COMPILED["programs"] += 1
    program = Executable(Graph(inputs, outputs), light=level < len(LEVELS), narrow=level == 0)
    return Code(program, level)
