"""Operations that hold graphs, and running sums: `If`, `Loop` and `Scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Dim, DType, Node, TensorType, bool_, float32, int64
from retrograd.onnx.elementwise import FORMULAS, OnnxNumbers, nan
from retrograd.onnx.shape import LAST
from retrograd.onnx.writer import OnnxWriter, rule, values_of
from retrograd.ops.control.cond import Cond
from retrograd.ops.control.dynamic_size import Sized
from retrograd.ops.control.scan import Scan
from retrograd.ops.control.while_loop import WhileLoop
from retrograd.ops.scan import (
    CumArgMax,
    CumArgMin,
    CumMax,
    CumMin,
    CumProd,
    CumSum,
    LinearScan,
    LogCumSumExp,
)

Typed = tuple[DType, Any]


def _typed(t: TensorType) -> Typed:
    return t.dtype, t.shape


def _named(w: OnnxWriter, types: Sequence[TensorType], kind: str) -> tuple[list[str], list[Any]]:
    """Fresh inputs of a body: their names and declarations."""
    names = [w.shared.name(kind) for _ in types]
    return names, [w.info(n, t.dtype, t.shape) for n, t in zip(names, types, strict=True)]


@rule(Cond)
def cond(w: OnnxWriter, node: Node, names: list[str]) -> list[str]:
    chosen, *operands = names
    branches = []
    for graph in (node.attrs["then"], node.attrs["other"]):
        inner = w.inside()
        outputs = values_of(inner, graph, operands)
        branches.append(inner.body("branch", [], outputs, [_typed(y.type) for y in graph.outputs]))
    n = len(node.attrs["then"].outputs)
    results = w.emit("If", chosen, outputs=n, then_branch=branches[0], else_branch=branches[1])
    return [results] if n == 1 else list(results)


@rule(Sized)
def sized(w: OnnxWriter, node: Node, names: list[str]) -> list[str]:
    """The body stands where the operation is; its size is the value of the first input."""
    size, *operands = names
    name, before = node.attrs["dim"], w.dims
    w.dims = {d: n for d, n in before.items() if not isinstance(d, Dim) or name not in d.names}
    w.dims[Dim(name)] = w.emit("Unsqueeze", size, w.ints([0]))
    outputs = values_of(w, node.attrs["body"], operands)
    w.dims = before
    return outputs


Through = Sequence[tuple[str, TensorType]]  # what is gone through, and the type of one place


def repeated(
    w: OnnxWriter,
    length: Dim | int,
    starts: Through,
    through: Through,
    given: Sequence[TensorType],
    step: Callable[[OnnxWriter, list[str], list[str]], list[str]],
    reverse: bool = False,
) -> list[str]:
    """A `Scan` along the first axis: `step` takes the states and a place of each array, and returns
    new states, then what is stacked.

    Engines want the direction forward and the length not zero, so arrays are turned round here; a
    length that is only known in a run, and may be zero, is looked at first.
    """
    if length == 0:
        return [*[x for x, _ in starts], *_nothing(w, given)]
    if not isinstance(length, Dim) or length.names <= w.shared.sizes.keys():
        return _scanned(w, length, starts, through, given, step, reverse)
    some, none = w.inside(), w.inside()
    types = [t for _, t in starts] + [TensorType(t.dtype, (length, *t.shape)) for t in given]
    found = _scanned(some, length, starts, through, given, step, reverse)
    other = [*[x for x, _ in starts], *_nothing(none, given)]
    then, otherwise = (
        part.body("branch", [], outputs, [_typed(t) for t in types])
        for part, outputs in ((some, found), (none, other))
    )
    go = w.emit("Greater", w.scalar(length), w.constant(np.int64(0)))
    results = w.emit("If", go, outputs=len(types), then_branch=then, else_branch=otherwise)
    return [results] if len(types) == 1 else list(results)


def _nothing(w: OnnxWriter, given: Sequence[TensorType]) -> list[str]:
    """What is stacked in no steps."""
    zeros = [w.constant(np.zeros((), t.dtype.dtype)) for t in given]
    shapes = [w.shape((0, *t.shape)) for t in given]
    return [w.emit("Expand", zero, shape) for zero, shape in zip(zeros, shapes, strict=True)]


def _scanned(
    w: OnnxWriter,
    length: Dim | int,
    starts: Through,
    through: Through,
    given: Sequence[TensorType],
    step: Callable[[OnnxWriter, list[str], list[str]], list[str]],
    reverse: bool,
) -> list[str]:
    states = [t for _, t in starts]
    if not through:  # something must be gone through
        through = [(w.counter(length), TensorType(int64, ()))]
    arrays = [_turned(w, x) if reverse else x for x, _ in through]
    inner = w.inside()
    own, infos = _named(inner, [*states, *[t for _, t in through]], "step")
    outputs = step(inner, own[: len(states)], own[len(states) :])
    made = inner.body("body", infos, outputs, [_typed(t) for t in (*states, *given)])
    found = w.emit(
        "Scan", *[x for x, _ in starts], *arrays, outputs=len(outputs), body=made,
        num_scan_inputs=len(arrays),
    )  # fmt: skip
    results = [found] if len(outputs) == 1 else list(found)
    stacked = results[len(states) :]
    return [*results[: len(states)], *[_turned(w, x) if reverse else x for x in stacked]]


def _turned(w: OnnxWriter, x: str) -> str:
    return w.slice(x, (-1,), (LAST,), [0], [-1])


@rule(Scan)
def scan(w: OnnxWriter, node: Node, names: list[str]) -> list[str]:
    p, body = node.attrs, node.attrs["body"]
    if not body.outputs:
        return []
    carries, constants = p["carries"], len(body.inputs) - p["carries"] - p["scanned"]
    pairs = list(zip(names, [x.type for x in body.inputs], strict=True))

    def step(inner: OnnxWriter, states: list[str], here: list[str]) -> list[str]:
        places = here[: p["scanned"]]
        return values_of(inner, body, [*names[:constants], *states, *places])

    given = [y.type for y in body.outputs[carries:]]
    starts, through = pairs[constants : constants + carries], pairs[constants + carries :]
    return repeated(w, p["length"], starts, through, given, step, p["reverse"])


@rule(WhileLoop)
def while_loop(w: OnnxWriter, node: Node, names: list[str]) -> list[str]:
    """A loop that takes too many steps ends after `most`: ONNX has no way to refuse."""
    p, body, test = node.attrs, node.attrs["body"], node.attrs["test"]
    constants = len(body.inputs) - p["carries"]
    fixed, start = names[:constants], names[constants:]
    types = [*[x.type for x in body.inputs[constants:]], TensorType(int64, ())]
    begin = values_of(w, test, names)[0]
    inner = w.inside()
    own, infos = _named(inner, types, "state")
    step, go = inner.shared.name("step"), inner.shared.name("go")
    head = [inner.info(step, int64, ()), inner.info(go, bool_, ())]
    outputs = values_of(inner, body, [*fixed, *own[:-1]])
    more = values_of(inner, test, [*fixed, *outputs])[0]
    count = inner.emit("Add", own[-1], inner.constant(np.int64(1)))
    made = inner.body(
        "body", [*head, *infos], [more, *outputs, count], [(bool_, ()), *map(_typed, types)]
    )
    most = "" if p["most"] is None else w.constant(np.int64(p["most"]))
    zero = w.constant(np.int64(0))
    results = w.emit("Loop", most, begin, *start, zero, outputs=len(types), body=made)
    return [results] if len(types) == 1 else list(results)


# -- running sums and the like ----------------------------------------------------------------
Step = Callable[..., tuple[list[OnnxNumbers], OnnxNumbers]]


def along(
    w: OnnxWriter,
    node: Node,
    inputs: Sequence[OnnxNumbers],
    starts: Sequence[OnnxNumbers],
    step: Step,
) -> str:
    """Go through the inputs along the axis: `step` makes the next state, and what is given out, of
    the state and of one place of each input."""
    axis, rank = node.attrs["axis"], len(node.shape)
    shape = (*node.shape[:axis], *node.shape[axis + 1 :])
    front = [axis, *[i for i in range(rank) if i != axis]]

    def typed(values: Sequence[OnnxNumbers], perm: Sequence[int]) -> Through:
        return [(w.transpose(x.name, perm), TensorType(x.dtype, shape)) for x in values]

    def place(inner: OnnxWriter, states: list[str], here: list[str]) -> list[str]:
        kinds = [x.dtype for x in (*starts, *inputs)]
        named = zip([*states, *here], kinds, strict=True)
        new, y = step(*[OnnxNumbers(inner, n, d) for n, d in named])
        return [*[x.name for x in new], y.name]

    begin, through = typed(starts, range(rank - 1)), typed(inputs, front)
    given = [TensorType(starts[-1].dtype, shape)]
    *_, y = repeated(w, node.shape[axis], begin, through, given, place, node.attrs["reverse"])
    return w.transpose(y, [front.index(i) for i in range(rank)])


def _filled(w: OnnxWriter, node: Node, value: Any, dtype: DType) -> OnnxNumbers:
    """One number for each row that is gone through."""
    axis = node.attrs["axis"]
    shape = w.shape((*node.shape[:axis], *node.shape[axis + 1 :]))
    return OnnxNumbers(
        w, w.emit("Expand", w.constant(np.asarray(value, dtype.dtype)), shape), dtype
    )


@rule(CumSum)
def cumsum(w: OnnxWriter, node: Node, names: list[str]) -> str:
    dtype = node.dtype
    wide = float32 if dtype.is_half else int64 if dtype.is_integer else dtype
    x, axis = w.cast(names[0], dtype, wide), w.constant(np.int64(node.attrs["axis"]))
    return w.cast(w.emit("CumSum", x, axis, reverse=int(node.attrs["reverse"])), wide, dtype)


@rule(CumProd, CumMax, CumMin, LogCumSumExp, LinearScan)
def running(w: OnnxWriter, node: Node, names: list[str]) -> str:
    dtype = float32 if node.dtype.is_half else node.dtype
    inputs = [OnnxNumbers(w, n, node.dtype).cast(dtype) for n in names]
    ends = (0, 1) if dtype is bool_ else _ends(dtype)

    def linear(y: OnnxNumbers, a: OnnxNumbers, b: OnnxNumbers) -> OnnxNumbers:
        return y.equals(0).where(y, a * y) + b

    steps: dict[str, tuple[Any, Callable[..., OnnxNumbers]]] = {
        "cumprod": (1, lambda y, x: y * x),
        "cummax": (ends[0], lambda y, x: _spoiled(y.larger(x), y, x)),
        "cummin": (ends[1], lambda y, x: _spoiled(y.smaller(x), y, x)),
        "logcumsumexp": (-np.inf, FORMULAS["logaddexp"]),
        "linear_scan": (0, linear),
    }
    start, f = steps[node.op]

    def step(*values: OnnxNumbers) -> tuple[list[OnnxNumbers], OnnxNumbers]:
        y = f(*values)
        return [y], y

    y = along(w, node, inputs, [_filled(w, node, start, dtype)], step)
    return w.cast(y, dtype, node.dtype)


def _ends(dtype: DType) -> tuple[Any, Any]:
    if dtype.is_float:
        return -np.inf, np.inf
    return np.iinfo(dtype.dtype).min, np.iinfo(dtype.dtype).max


def _spoiled(y: OnnxNumbers, a: OnnxNumbers, b: OnnxNumbers) -> OnnxNumbers:
    """NaN where one of the two is: ONNX leaves open what the extremum of NaN is."""
    return (nan(a) | nan(b)).where(np.nan, y) if y.dtype.kind == "float" else y


@rule(CumArgMax, CumArgMin)
def attained(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """The state is the extremum so far and its place; the first place begins it."""
    before = node.inputs[0].dtype
    dtype = float32 if before.is_half else before
    x = OnnxNumbers(w, names[0], before).cast(dtype)
    size, axis = node.shape[node.attrs["axis"]], node.attrs["axis"]
    others = [i for i in range(len(node.shape)) if i != axis]
    counter = w.counter(size)
    if others:
        counter = w.emit("Unsqueeze", counter, w.ints(others))
    at = OnnxNumbers(w, w.emit("Expand", counter, w.shape(node.shape)), int64)
    top = isinstance(node.prim, CumArgMax)

    def step(best: OnnxNumbers, place: OnnxNumbers, value: OnnxNumbers, here: OnnxNumbers) -> Any:
        better = value.above(best) if top else value.below(best)
        if dtype.is_float:
            better = (better | nan(value)) & ~nan(best)
        better = better | place.below(0)
        best, place = better.where(value, best), better.where(here, place)
        return [best, place], place

    starts = [_filled(w, node, 0, dtype), _filled(w, node, -1, int64)]
    return along(w, node, [x, at], starts, step)
