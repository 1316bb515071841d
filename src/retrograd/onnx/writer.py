"""What is being written: nodes of ONNX graphs, with the constants and sizes that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import BackendError
from retrograd.ir import (
    Dim,
    DType,
    Graph,
    Node,
    Shape,
    bool_,
    entering,
    float32,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint64,
)

OPSET = 20  # of the default domain: the first with a Gelu, IsNaN and ReduceMax of all dtypes
IR_VERSION = 10

# Engines choose between, compare and pad numbers of 16 bits no more than they do booleans: these go
# by way of a dtype that has their values, or their bits.
PADDED = {int16: int32, uint16: int32}
CHOSEN = {**PADDED, uint64: int64, bool_: uint8}

Rule = Callable[["OnnxWriter", Node, list[str]], "str | list[str]"]
# `@rule(Conv)` says how ops are written: from the names of the inputs to the name of the result, or
# to a list of them.
RULES: dict[str, Rule] = {}
rule = entering(RULES)


class Shared:
    """What a model has once: names, constants, and what the sizes are read off."""

    def __init__(self) -> None:
        self.constants: list[Any] = []
        self.found: dict[tuple[Any, ...], str] = {}
        self.sizes: dict[str, tuple[str, int]] = {}  # a named size: an input, and its axis
        self.taken: set[str] = set()
        self.used = 0

    def name(self, kind: str) -> str:
        """A name that nothing has yet."""
        while True:
            self.used += 1
            name = f"{kind}_{self.used}"
            if name not in self.taken:
                self.taken.add(name)
                return name


class OnnxWriter:
    """One ONNX graph that grows node by node; a body within another sees the values of that."""

    def __init__(self, onnx: Any, shared: Shared | None = None, outer: OnnxWriter | None = None):
        self.onnx = onnx
        self.shared = shared or Shared()
        self.nodes: list[Any] = []
        self.values: dict[Node, str | list[str]] = dict(outer.values) if outer else {}
        self.dims: dict[Dim | int, str] = dict(outer.dims) if outer else {}
        self.where: Node | None = outer.where if outer else None

    # -- nodes --------------------------------------------------------------------------------
    def emit(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; the name of its output, or a list of the names."""
        names = [self.shared.name(kind.lower()) for _ in range(outputs)]
        scope = self.where.scope if self.where else ""
        made = self.onnx.helper.make_node(
            kind,
            list(inputs),
            names,
            name="/".join(["", *scope.split("."), names[0]] if scope else [names[0]]),
            doc_string=_origin(self.where) if self.where else None,
            **attributes,
        )
        self.nodes.append(made)
        return names[0] if outputs == 1 else names

    def inside(self) -> OnnxWriter:
        """The graph of a body."""
        return OnnxWriter(self.onnx, self.shared, self)

    def body(self, name: str, inputs: Sequence[Any], outputs: Sequence[str], types: Any) -> Any:
        """The graph as an attribute. Its outputs are results of its own nodes."""
        own = [self.emit("Identity", x) for x in outputs]
        infos = [self.info(x, dtype, shape) for x, (dtype, shape) in zip(own, types, strict=True)]
        return self.onnx.helper.make_graph(self.nodes, name, list(inputs), infos)

    def info(self, name: str, dtype: DType, shape: Shape | None) -> Any:
        """The declaration of a value."""
        sizes = None if shape is None else [d if isinstance(d, int) else str(d) for d in shape]
        return self.onnx.helper.make_tensor_value_info(name, self.code(dtype), sizes)

    def code(self, dtype: DType) -> int:
        """ONNX's number of a dtype."""
        if dtype.is_complex:
            raise self.refused(f"{dtype} numbers: its operators take real ones")
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(dtype.dtype))

    def refused(self, what: str) -> BackendError:
        at = "" if self.where is None else f", at {_origin(self.where)}"
        return BackendError(
            f"ONNX has no counterpart of {what}{at}; the graph as text, `g.save(path)`, has it all"
        )

    # -- constants and sizes ------------------------------------------------------------------
    def constant(self, value: Any) -> str:
        """The name of an array, which is stored once."""
        array = np.asarray(value)
        key = (array.dtype.str, array.dtype.name, array.shape, array.tobytes())
        if key not in self.shared.found:
            name = self.shared.found[key] = self.shared.name("constant")
            self.shared.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return self.shared.found[key]

    def ints(self, values: Iterable[int]) -> str:
        """A vector of int64."""
        return self.constant(np.array(list(values), np.int64))

    def size(self, d: Dim | int) -> str:
        """A size as a vector of one int64."""
        if isinstance(d, int):
            return self.ints([d])
        if d not in self.dims:
            self.dims[d] = self._computed(d)
        return self.dims[d]

    def _computed(self, d: Dim) -> str:
        total = ""
        for monomial, factor in d.terms:
            part = self.ints([factor])
            for atom, power in monomial:
                for _ in range(power):
                    part = self.emit("Mul", part, self._atom(atom))
            total = self.emit("Add", total, part) if total else part
        return total

    def _atom(self, atom: Any) -> str:
        if not isinstance(atom, str):  # floor(a / b); b is positive, so Mod has the sign of b
            a, b = self.size(atom.numerator), self.size(atom.denominator)
            return str(self.emit("Div", self.emit("Sub", a, self.emit("Mod", a, b)), b))
        if atom not in self.shared.sizes:
            raise self.refused(f"the size {atom}, which no input has as an axis of its own")
        source, axis = self.shared.sizes[atom]
        return str(self.emit("Shape", source, start=axis, end=axis + 1))

    def shape(self, sizes: Shape) -> str:
        """A shape as a vector of int64."""
        if all(isinstance(d, int) for d in sizes):
            return self.ints(sizes)  # type: ignore[arg-type]
        return str(self.emit("Concat", *[self.size(d) for d in sizes], axis=0))

    def scalar(self, d: Dim | int) -> str:
        """A size as an int64 without axes."""
        return str(self.emit("Squeeze", self.size(d), self.ints([0])))

    # -- what many rules need -----------------------------------------------------------------
    def cast(self, x: str, before: DType, after: DType) -> str:
        """Conversion as ONNX does it; `x` itself where there is none."""
        return x if before is after else str(self.emit("Cast", x, to=self.code(after)))

    def transpose(self, x: str, perm: Sequence[int]) -> str:
        same = list(perm) == list(range(len(perm)))
        return x if same else str(self.emit("Transpose", x, perm=list(perm)))

    def reshape(self, x: str, shape: Shape) -> str:
        return str(self.emit("Reshape", x, self.shape(shape), allowzero=1))

    def slice(
        self, x: str, starts: Shape, stops: Shape, axes: Sequence[int], steps: Sequence[int]
    ) -> str:
        given = self.shape(starts), self.shape(stops), self.ints(axes), self.ints(steps)
        return str(self.emit("Slice", x, *given))

    def counter(self, size: Dim | int) -> str:
        """0, 1, ... as a vector of int64."""
        zero, one = self.constant(np.int64(0)), self.constant(np.int64(1))
        return str(self.emit("Range", zero, self.scalar(size), one))

    def in_float32(self, dtype: DType, f: Callable[..., str], *inputs: str) -> str:
        """Apply what is computed in float32 where the dtype is half precision."""
        if not dtype.is_half:
            return f(*inputs)
        return self.cast(f(*[self.cast(x, dtype, float32) for x in inputs]), float32, dtype)


def values_of(w: OnnxWriter, graph: Graph, inputs: Sequence[str]) -> list[str]:
    """Write the nodes of a graph; the names of its outputs."""
    w.values.update(zip(graph.inputs, inputs, strict=True))
    where = w.where
    for node in graph.body:
        w.where = node
        if node.op not in RULES:
            raise w.refused(f"the op {node.op}")
        names = [w.values[x] for x in node.inputs]
        w.values[node] = RULES[node.op](w, node, names)  # type: ignore[arg-type]
    w.where = where
    return [w.values[y] for y in graph.outputs]  # type: ignore[misc]


def _origin(node: Node) -> str:
    """What a node is a part of, for people: its op, the user's line, and what it is the gradient
    of."""
    text = node.op
    if node.source:
        text += f", {node.source}"
    return f"{text}, gradient of {node.origin.op}" if node.origin is not None else text
