"""What ONNX has no operator for, this library writes as a formula of several. Read back, a formula
is the op again, so that a graph that was written and read gives the same bits.

The text of a node says which op it is a part of; it is believed where the nodes are, one by one,
those that would be written for that op. So a file from a stranger means what its nodes mean.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.files import StrPath
from retrograd.functions.broadcasting import broadcast
from retrograd.interop.onnx.model import graphs
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.ir import (
    DType,
    TensorType,
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from retrograd.lazy_import import need
from retrograd.onnx.elementwise import FORMULAS
from retrograd.onnx.weights import array_of
from retrograd.onnx.writer import RULES, OnnxWriter
from retrograd.ops.elementwise import ELEMENTWISE, Elementwise
from retrograd.ops.leaf import input_node

DOMAIN = "retrograd"  # of nodes that stand for a formula; no file has it
FLOATS = (float32, float64, float16, bfloat16)
INTS = (int64, int32, int16, int8, uint8, uint16, uint32, uint64)
OPS = {name: op for name, op in ELEMENTWISE.items() if name in FORMULAS and name != "select"}
ARITY = {name: op.arity or 1 for name, op in OPS.items()}


class FormulaNode(NamedTuple):
    """A node of a formula: its inputs are inputs of the op (("x", 0)), steps (("y", 0)) and
    constants (("c", ...))."""

    operator: str
    attributes: bytes
    inputs: tuple[Any, ...]


def _called(op: Elementwise) -> Any:
    def unary(x: ArrayLike, /) -> Any:
        return op(*broadcast(x))

    def binary(x1: ArrayLike, x2: ArrayLike, /) -> Any:
        return op(*broadcast(x1, x2))

    def ternary(x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, /) -> Any:
        return op(*broadcast(x1, x2, x3))

    return op_function((unary, binary, ternary)[ARITY[op.name] - 1])


CALLED = {name: _called(op) for name, op in OPS.items()}


@rule(*OPS, domain=DOMAIN)
def op_of_formula(call: NodeCall, *values: Any) -> Any:
    return CALLED[call.operator](*values)


def _content(array: Any) -> Any:
    array = np.asarray(array)
    return array.dtype.name, array.shape, array.tobytes()


def _attributes(node: Any) -> bytes:
    ordered = sorted(node.attribute, key=lambda a: a.name)
    return b"".join(bytes(a.SerializeToString(deterministic=True)) for a in ordered)


@functools.cache
def _formula(name: str, dtype: DType) -> tuple[FormulaNode, ...]:
    """What is written for an op; empty for one that ONNX has, or that is not of the dtype."""
    onnx, op = need("onnx", "reading ONNX"), OPS[name]
    need("onnx.helper", "reading ONNX")
    kinds = {"float" if dtype.is_float else dtype.kind}
    if not kinds & set(op.kinds):
        return ()
    inputs = [input_node(TensorType(dtype, (2,)), f"x{i}") for i in range(ARITY[name])]
    w = OnnxWriter(onnx)
    names = [f"input {i}" for i in range(ARITY[name])]
    result = RULES[name](w, op(*inputs), names)
    is_operator = len(w.nodes) == 1 and not w.shared.constants
    if is_operator or result != w.nodes[-1].output[0]:
        return ()
    numpy = onnx.numpy_helper.to_array
    known: dict[str, Any] = {c.name: ("c", _content(numpy(c))) for c in w.shared.constants}
    known |= {x: ("x", i) for i, x in enumerate(names)}
    steps = []
    for i, node in enumerate(w.nodes):
        given = tuple(known[x] for x in node.input)
        steps.append(FormulaNode(node.op_type, _attributes(node), given))
        known[node.output[0]] = ("y", i)
    return tuple(steps)


def _bound(
    steps: Sequence[FormulaNode], nodes: Sequence[Any], constants: Mapping[str, Any], arity: int
) -> list[str] | None:
    """The inputs of an op whose formula some nodes are; None where they are something else."""
    found: dict[int, str] = {}
    made: dict[str, int] = {}
    for i, (step, node) in enumerate(zip(steps, nodes, strict=True)):
        if node.op_type != step.operator or len(node.input) != len(step.inputs):
            return None
        for x, wanted in zip(node.input, step.inputs, strict=True):
            kind, what = wanted
            if kind == "x":
                fits = x not in made and found.setdefault(what, x) == x
            elif kind == "y":
                fits = made.get(x) == what
            else:
                fits = x in constants and constants[x] == what
            if not fits:
                return None
        if _attributes(node) != step.attributes or len(node.output) != 1 or node.domain:
            return None
        made[node.output[0]] = i
    return [found[i] for i in range(arity)] if len(found) == arity else None


def with_ops(model: Any, file: StrPath) -> Any:
    """The model with a node of its op for each formula."""
    onnx = need("onnx", "reading ONNX")
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    constants = {
        x.name: _content(array_of(x, f"{file}: {x.name!r:.80}", file))
        for x in copy.graph.initializer
        if _is_small(x)
    }
    everything = list(graphs(copy.graph))
    uses = Counter(x for g in everything for node in g.node for x in node.input)
    uses.update(y.name for g in everything for y in g.output)
    for g in reversed(everything):  # inner graphs before those they stand in
        nodes = _read(onnx, list(g.node), constants, uses)
        del g.node[:]
        g.node.extend(nodes)
    return copy


def _is_small(tensor: Any) -> bool:
    """Formulas have single numbers."""
    return len(tensor.dims) <= 1 and all(0 <= d <= 1 for d in tensor.dims)


def _read(onnx: Any, nodes: list[Any], constants: Any, uses: Counter[str]) -> list[Any]:
    found, i = [], 0
    while i < len(nodes):
        text = nodes[i].doc_string
        name = text.split(",", 1)[0] if isinstance(text, str) else ""  # bytes: no UTF-8
        length, inputs = _longest(name, nodes, i, constants, uses) if name in OPS else (1, None)
        if inputs is None:
            found.append(nodes[i])
        else:
            output = list(nodes[i + length - 1].output)
            found.append(onnx.helper.make_node(name, inputs, output, domain=DOMAIN))
        i += length
    return found


def _longest(
    name: str, nodes: list[Any], at: int, constants: Any, uses: Counter[str]
) -> tuple[int, list[str] | None]:
    """How many nodes from a place on are the formula of an op, and its inputs."""
    for steps in sorted({_formula(name, d) for d in (*FLOATS, *INTS)}, key=len, reverse=True):
        part = nodes[at : at + len(steps)]
        if len(part) < max(len(steps), 1):
            continue
        inputs = _bound(steps, part, constants, ARITY[name])
        inner = [node.output[0] for node in part[:-1]]
        own = Counter(x for node in part for x in node.input)
        if inputs is not None and all(uses[x] == own[x] for x in inner):
            return len(steps), inputs
    return 1, None
