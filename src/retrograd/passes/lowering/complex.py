"""Rewriting a graph of complex numbers into one of pairs of real numbers.

An input or output of complex numbers becomes one of real numbers with one more axis, of size 2, at
the end: the same memory. In between, a node of complex numbers is two nodes, its parts.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from retrograd.errors import BackendError
from retrograd.ir import (
    Graph,
    Node,
    Provenance,
    TensorType,
    Trait,
    entering,
    full,
    graphs_of,
    made_by,
    nested,
    product,
)
from retrograd.ops import elementwise as e
from retrograd.ops.complex import Complex, Imag, Real
from retrograd.ops.control import PureCallback
from retrograd.ops.conv import Conv
from retrograd.ops.fft import Fft
from retrograd.ops.identity import Item
from retrograd.ops.leaf import Constant, Iota, SizeOf, constant, input_node
from retrograd.ops.linalg.determinant import Det, LogAbsDet
from retrograd.ops.linalg.matrix import MatrixOp
from retrograd.ops.linalg.pinv import Pinv
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceProd, ReduceSum
from retrograd.ops.remat import After
from retrograd.ops.scan import CumProd, LinearScan
from retrograd.ops.shape import (
    Concat,
    LinearOp,
    Slice,
    expand,
    pad,
    permute,
    reshape,
    slice_axis,
)
from retrograd.passes.after_autodiff import settled
from retrograd.passes.constants import leaf_value
from retrograd.passes.lowering.complex_linalg import PairedFft, on_pairs
from retrograd.passes.lowering.complex_math import (
    FUNCTIONS,
    Pair,
    add,
    joined,
    mul,
    parts_of,
    taken_from,
    zmul,
)
from retrograd.passes.lowering.fft import transformed

Parts = Node | Pair


def type_of_pairs(type: TensorType) -> TensorType:
    """The type of an array of complex numbers seen as an array of their parts."""
    return TensorType(type.dtype.real, (*type.shape, 2)) if type.dtype.is_complex else type


def lower_complex(graph: Graph) -> Graph:
    """The graph on real numbers."""
    graph = settled(graph)
    found: dict[Node, Parts] = {}
    inputs = [input_node(type_of_pairs(x.type), x.name) for x in graph.inputs]
    for x, new in zip(graph.inputs, inputs, strict=True):
        found[x] = parts_of(new) if x.dtype.is_complex else new
    used = Counter([*graph.outputs, *(x for node in graph.body for x in node.inputs)])
    for node in graph.body:
        parts = [found[x] for x in node.inputs]
        if graphs_of(node.prim) or isinstance(node.prim, Item):
            with made_by(Provenance(node.scope, node.source, node.origin)):
                found[node] = _held(node, parts)
            continue
        reals = tuple([p for p in parts if isinstance(p, Node)])
        if len(reals) == len(parts) and not node.dtype.is_complex:
            found[node] = node if reals == node.inputs else node.with_inputs(reals)
            continue
        with made_by(Provenance(node.scope, node.source, node.origin)):
            first = _first_of_transform(node, parts, used)
            found[node] = _rule(node)(node, parts) if first is None else first
    outputs = []
    for y in graph.outputs:
        end = found[y]
        with made_by(Provenance(y.scope, y.source, y.origin)):
            outputs.append(joined(end) if isinstance(end, tuple) else end)
    return Graph(inputs, outputs, graph.name)


def _held(node: Node, parts: Sequence[Parts]) -> Parts:
    """An operation that holds graphs, with these rewritten, or one of its results."""
    given = [joined(p) if isinstance(p, tuple) else p for p in parts]
    if isinstance(node.prim, Item):
        item = node.prim(*given)
        return parts_of(item) if node.dtype.is_complex else item
    held = {k: lower_complex(g) for k, g in node.attrs.items() if isinstance(g, Graph)}
    new: Node = dataclasses.replace(node.prim, **held)(*given)  # type: ignore[type-var]
    return new


Rule = Callable[[Node, Sequence[Parts]], Parts]
RULES: dict[str, Rule] = {}
on_parts = entering(RULES)


def _rule(node: Node) -> Rule:
    if Trait.REAL_LINEAR in node.prim.traits:
        return _planewise
    if node.op in FUNCTIONS:
        return _function
    if node.op in RULES:
        return RULES[node.op]
    if isinstance(node.prim, MatrixOp):
        return _matrices
    raise BackendError(f"{node.op} of complex numbers is not compiled: {node.describe()}")


def _function(node: Node, parts: Sequence[Parts]) -> Pair:
    return FUNCTIONS[node.op](*parts)


def _planewise(node: Node, parts: Sequence[Parts]) -> Pair:
    if len(parts) == 1 and isinstance(node.prim, LinearOp):
        (z,) = parts
        if isinstance(z, tuple) and _is_nothing(z[1]):
            first = node.prim(z[0])
            return first, full(0, first.type)
    first, second = (
        node.prim(*[p[k] if isinstance(p, tuple) else p for p in parts]) for k in (0, 1)
    )
    return first, second


def _is_nothing(x: Node) -> bool:
    """Whether a part is zero everywhere, as the imaginary one of real numbers is."""
    value = leaf_value(x) if isinstance(x.prim, Constant) else None
    return value is not None and bool(value == 0) and not np.signbit(value)


def _matrices(node: Node, parts: Sequence[Parts]) -> Parts:
    y = on_pairs(node, [joined(p) if isinstance(p, tuple) else p for p in parts])
    return parts_of(y) if node.dtype.is_complex else y


@on_parts(Fft)
def _transformed(node: Node, parts: Sequence[Parts]) -> Parts:
    (z,), axis, inverse = parts, node.attrs["axis"], node.attrs["inverse"]
    assert isinstance(z, tuple)
    of_real = _is_nothing(z[1])
    x = z[0] if of_real else joined(z)
    return parts_of(transformed(x, PairedFft(axis, inverse, of_real)))


def _first_of_transform(node: Node, parts: Sequence[Parts], used: Counter[Node]) -> Pair | None:
    """The first elements along the axis of a transform whose others nobody reads."""
    prim = node.prim
    if not isinstance(prim, Slice) or used[node.inputs[0]] > 1:
        return None
    whole = taken_from(parts[0])  # type: ignore[arg-type]
    if whole is None or not isinstance(whole.prim, PairedFft) or whole.prim.kept is not None:
        return None
    axis = whole.prim.axis
    kept = node.shape[axis]
    if not isinstance(kept, int) or prim != slice_axis(node.inputs[0], axis, 0, kept).prim:
        return None
    return parts_of(dataclasses.replace(whole.prim, kept=kept)(*whole.inputs))


@on_parts(PureCallback)
def _called(node: Node, parts: Sequence[Parts]) -> Parts:
    assert isinstance(node.prim, PureCallback)
    call = node.prim.on_pairs([isinstance(p, tuple) for p in parts])
    y = call(*[joined(p) if isinstance(p, tuple) else p for p in parts])
    return parts_of(y) if node.dtype.is_complex else y


@on_parts(After)
def _after(node: Node, parts: Sequence[Parts]) -> Parts:
    x, *others = parts
    awaited = [q for p in others for q in (p if isinstance(p, tuple) else (p,))]
    after = node.prim
    return (
        (after(x[0], *awaited), after(x[1], *awaited))
        if isinstance(x, tuple)
        else after(x, *awaited)
    )


@on_parts(DotGeneral, Conv)
def _bilinear(node: Node, parts: Sequence[Parts]) -> Pair:
    (a, b), (c, d) = parts  # type: ignore[misc]
    f = node.prim
    return f(a, c) - f(b, d), f(a, d) + f(b, c)


@on_parts(Constant)
def _constant(node: Node, parts: Sequence[Parts]) -> Pair:
    prim = node.prim
    assert isinstance(prim, Constant)
    real = node.type.with_dtype(node.dtype.real)
    if not prim.value.ndim:
        return full(prim.value.real, real), full(prim.value.imag, real)
    return constant(prim.value.real), constant(prim.value.imag)


@on_parts(Iota, SizeOf)
def _counted(node: Node, parts: Sequence[Parts]) -> Pair:
    """A leaf that counts: real, in the dtype that it names."""
    x = dataclasses.replace(node.prim, dtype=node.dtype.real)()  # type: ignore[type-var]
    return x, full(0, x.type)


@on_parts(e.Cast)
def _cast(node: Node, parts: Sequence[Parts]) -> Parts:
    (z,) = parts
    if isinstance(z, Node):
        x = e.cast(z, node.dtype.real)
        return x, full(0, x.type)
    if node.dtype.is_complex:
        return e.cast(z[0], node.dtype.real), e.cast(z[1], node.dtype.real)
    boolean: Node = e.cast(z[0], node.dtype) | e.cast(z[1], node.dtype)
    return boolean


@on_parts(ReduceProd)
def _product_over(node: Node, parts: Sequence[Parts]) -> Pair:
    """Products of two halves, until one element is left; over an axis whose size is not known, the
    product of the sizes and the sum of the angles."""
    (z,), axes = parts, node.attrs["axes"]
    assert isinstance(z, tuple)
    x = z[0]
    kept = [i for i in range(x.type.rank) if i not in axes]
    count = product(x.shape[i] for i in axes)
    if not isinstance(count, int):
        size, angle = ReduceProd(axes)(e.hypot(*z)), ReduceSum(axes)(e.atan2(z[1], z[0]))
        return size * e.cos(angle), size * e.sin(angle)
    shape = tuple(x.shape[i] for i in kept)
    one = full(1, x.type.with_shape(shape)), full(0, x.type.with_shape(shape))
    if count == 0:
        return one
    last = len(kept)
    a, b = (reshape(permute(p, (*kept, *axes)), (*shape, count)) for p in z)
    while count > 1:
        if count % 2:
            spare = [expand(p, (*shape, 1), (last,)) for p in one]
            a, b = Concat(last)(a, spare[0]), Concat(last)(b, spare[1])
            count += 1
        half = count // 2
        low = slice_axis(a, last, 0, half), slice_axis(b, last, 0, half)
        high = slice_axis(a, last, half, count), slice_axis(b, last, half, count)
        a, b = mul(low, high)
        count = half
    return reshape(a, shape), reshape(b, shape)


@on_parts(CumProd, LinearScan)
def _running(node: Node, parts: Sequence[Parts]) -> Pair:
    """A recurrence `y = a y + b` by doubling: `(a, b)` after another is `(a a', a b' + b)`. Running
    products are those of b = 0 with the first element for a start."""
    axis, up = node.attrs["axis"], node.attrs["reverse"]
    known: list[Pair] = [p for p in parts if isinstance(p, tuple)]
    n = node.shape[axis]
    if not isinstance(n, int):
        raise BackendError(f"{node.op} of complex numbers needs a known size: {node.describe()}")
    factor, rest = known[0], known[1] if len(known) > 1 else None
    step = 1
    while step < n:
        before = _moved(factor, axis, step, up, 1)
        if rest is not None:
            rest = add(zmul(_moved(rest, axis, step, up, 0), factor), rest)
        factor = mul(factor, before)
        step *= 2
    return factor if rest is None else rest


def _moved(z: Pair, axis: int, step: int, up: bool, value: float) -> Pair:
    """What stands `step` places before each; where there is nothing, a real number."""
    rank, n = z[0].type.rank, z[0].shape[axis]
    none, some = (0,) * rank, tuple(step if i == axis else 0 for i in range(rank))
    low, high = (none, some) if up else (some, none)
    wide = [pad(p, low, high, value=v) for p, v in zip(z, (value, 0), strict=True)]
    start = step if up else 0
    x, y = (slice_axis(p, axis, start, start + n) for p in wide)
    return x, y


@on_parts(Det, LogAbsDet, Pinv)
def _second(node: Node, parts: Sequence[Parts]) -> Parts:
    """Ops that give their second operand a derivative."""
    return parts[1]


@on_parts(Complex)
def _composed(node: Node, parts: Sequence[Parts]) -> Pair:
    x, y = parts
    assert isinstance(x, Node)
    assert isinstance(y, Node)
    return x, y


@on_parts(Real, Imag)
def _part_of(node: Node, parts: Sequence[Parts]) -> Node:
    (z,) = parts
    assert isinstance(z, tuple)
    return z[0] if isinstance(node.prim, Real) else z[1]


@on_parts(e.eq, e.ne)
def _compared(node: Node, parts: Sequence[Parts]) -> Node:
    (a, b), (c, d) = parts  # type: ignore[misc]
    first, second = node.prim(a, c), node.prim(b, d)
    both: Node = first & second if node.prim is e.eq else first | second
    return both


def has_complex(graph: Graph) -> bool:
    """Whether complex numbers occur in a graph."""
    return any(node.dtype.is_complex for g in (graph, *nested(graph)) for node in g.nodes)


def real_graph(graph: Graph) -> Graph:
    """The graph on pairs of real numbers; itself where there is nothing complex."""
    return lower_complex(graph) if has_complex(graph) else graph
