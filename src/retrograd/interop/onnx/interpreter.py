"""A model run node by node on values: tensors that a graph is recorded from, or numbers."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from retrograd.errors import (
    BackendError,
    FormatError,
    MemoryLimitError,
    RetrogradError,
    ShapeError,
)
from retrograd.files import StrPath
from retrograd.interop.onnx.dtypes import NARROW, dtype_of, number_of
from retrograd.interop.onnx.dynamic_size import LeavesItsGraph, UnknownSize, sized
from retrograd.interop.onnx.model import attribute, label, opsets_of
from retrograd.interop.onnx.narrow import Narrow, from_array, wide
from retrograd.interop.onnx.operators import (  # noqa: F401 (each registers rules)
    attention,
    control,
    conv,
    elementwise,
    index,
    loss,
    matmul,
    normalization,
    quantization,
    random,
    recurrent,
    reduction,
    resize,
    sequence,
    shape,
    spectral,
)  # fmt: skip
from retrograd.interop.onnx.operators.ml import features, linear, trees  # noqa: F401
from retrograd.interop.onnx.registry import RULES, NodeCall
from retrograd.interop.onnx.values import NeedsValue, as_tensor
from retrograd.ir import Dim
from retrograd.onnx.weights import array_of
from retrograd.tuning import TUNING

WRONG_USE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


class Interpreter:
    """The nodes of a model, each by its rule, or by the function that ONNX defines it as."""

    def __init__(self, model: Any, file: StrPath) -> None:
        self.file = file
        self.opsets = opsets_of(model.opset_import)
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.dims: list[str] = []  # the named sizes of its inputs
        self.depth = 0
        self.reruns = self.unknown_sizes = 0

    def run(self, graph: Any, given: Mapping[str, Any], around: Mapping[str, Any]) -> list[Any]:
        """The outputs of a graph from its inputs and what it uses from around it."""
        values = {**around, **self._initializers(graph), **given}
        ends = [y.name for y in graph.output]
        self.walk(graph.node, values, self.opsets, ends=ends)
        return [_named(values, name, "an output of the graph") for name in ends]

    def _initializers(self, graph: Any) -> dict[str, Any]:
        if graph.sparse_initializer:
            name = graph.sparse_initializer[0].values.name
            raise BackendError(f"{self.file}: the initializer {name!r:.80} is sparse")
        return {x.name: self.tensor(x) for x in graph.initializer}

    def tensor(self, proto: Any) -> Any:
        where = f"{self.file}: {proto.name!r:.80}"
        dtype_of(proto.data_type, where, narrow=True)
        return from_array(array_of(proto, where, self.file))

    def walk(
        self,
        nodes: Sequence[Any],
        values: dict[str, Any],
        opsets: Mapping[str, int],
        fixed: Container[str] = (),
        before: Sequence[Any] | None = None,
        ends: Sequence[str] = (),
        start: int = 0,
    ) -> None:
        """Run nodes in order, from one on; their outputs are added to the values, but for those
        that are fixed. `before` are the nodes that a gradient is taken of, if not these; `ends` are
        what is asked for afterwards."""
        for i, node in enumerate(nodes[start:], start):
            inputs = [_named(values, x, label(node)) if x else None for x in node.input]
            while inputs and inputs[-1] is None:  # left out at the end
                inputs.pop()
            past = nodes[:i] if before is None else before
            try:
                found = self.apply(node, inputs, values, opsets, past)
            except UnknownSize as unknown:
                size = unknown
                if size.outputs is None:  # of a node inside of this one
                    again = partial(self._again, node, inputs, values, opsets, past)
                    size = UnknownSize(size.what, size.count, again, size.message)
                self._inside(size, i, nodes, values, opsets, fixed, before, ends)
                return
            _bind(node, found, values, fixed)

    def _inside(
        self,
        unknown: UnknownSize,
        at: int,
        nodes: Sequence[Any],
        values: dict[str, Any],
        opsets: Mapping[str, int],
        fixed: Container[str],
        before: Sequence[Any] | None,
        ends: Sequence[str],
    ) -> None:
        """A node with results of a size that only a run knows, and all nodes after it."""
        self.unknown_sizes += 1
        if self.unknown_sizes > TUNING.onnx_unknown_sizes:
            raise FormatError(
                f"{self.file}: more than {TUNING.onnx_unknown_sizes} sizes that only a run knows"
            )
        size = Dim(next(n for n in _names("size", self.unknown_sizes) if n not in self.dims))
        node, made = nodes[at], {y for x in nodes[at:] for y in x.output}
        names = [name for name in ends if name in made and name not in fixed]

        def after() -> list[Any]:
            within = dict(values)
            assert unknown.outputs is not None
            _bind(node, unknown.outputs(size), within, fixed)
            self.walk(nodes, within, opsets, fixed, before, names, at + 1)
            return [_named(within, name, "an output") for name in names]

        try:
            found = sized(unknown, size, after, names)
        except LeavesItsGraph as left:
            what = f"{unknown.what}, which the shape of {left} depends on"
            message = unknown.message or _where(self.file, node, what)
            raise UnknownSize(unknown.what, unknown.count, None, message) from None
        values.update(zip(names, found, strict=True))

    def _again(
        self,
        node: Any,
        inputs: list[Any],
        values: Mapping[str, Any],
        opsets: Mapping[str, int],
        before: Sequence[Any],
        _size: Dim,
    ) -> Any:
        """The outputs of a node once a size that it needs has a name."""
        return self.apply(node, inputs, values, opsets, before)

    def apply(
        self,
        node: Any,
        inputs: list[Any],
        values: Mapping[str, Any],
        opsets: Mapping[str, int],
        before: Sequence[Any],
    ) -> Any:
        """The outputs of a node. Whatever is wrong with it is an error that names it."""
        try:
            return self._apply(node, inputs, values, opsets, before)
        except NeedsValue as error:
            raise (
                error if error.is_placed else NeedsValue(_where(self.file, node, error), True)
            ) from None
        except RetrogradError as error:
            error.add_note(f"at {label(node)} of {self.file}")
            if isinstance(error, ShapeError) and self.dims:
                error.add_note(
                    f"where the model is for some {' and '.join(self.dims)} only: "
                    f"rg.load_onnx(path, dims={{{self.dims[0]!r}: ...}})"
                )
            raise
        except WRONG_USE as error:  # too few inputs, or attributes of another kind
            raise FormatError(f"{self.file}: {label(node)} cannot be computed: {error}") from error
        except MemoryError as error:
            raise MemoryLimitError(f"{self.file}: {label(node)}: {error}") from error

    def _apply(
        self,
        node: Any,
        inputs: list[Any],
        values: Mapping[str, Any],
        opsets: Mapping[str, int],
        before: Sequence[Any],
    ) -> Any:
        domain = "" if node.domain == "ai.onnx" else node.domain
        rule = RULES.get((domain, node.op_type))
        if (domain, node.op_type) in self.functions:
            return self._function(node, self.functions[domain, node.op_type], inputs)
        if rule is None:
            return self._defined(node, domain, inputs, opsets)
        call = NodeCall(
            node.op_type, self._attributes(node), opsets.get(domain, 1), node.output,
            lambda graph, given: self.run(
                graph, dict(zip((x.name for x in graph.input), given, strict=False)), values
            ),
            lambda given, name: self._rerun(before, given, name, values, opsets),
        )  # fmt: skip
        if not rule.sizes:
            inputs = [as_tensor(x) for x in inputs]
        if rule.moves and inputs and isinstance(inputs[0], Narrow):
            return _moved(rule.function(call, *[_held(x) for x in inputs]), inputs[0].number)
        if not rule.narrow:
            inputs = [wide(x, node.op_type) for x in inputs]
        return rule.function(call, *inputs)

    def _rerun(
        self,
        nodes: Sequence[Any],
        given: Mapping[str, Any],
        name: str,
        values: Mapping[str, Any],
        opsets: Mapping[str, int],
    ) -> Any:
        """A value where others are as given: what depends on these is computed once more."""
        self.reruns += 1
        if self.reruns > TUNING.onnx_reruns:
            raise FormatError(
                f"{self.file}: more than {TUNING.onnx_reruns} gradients are taken of each other"
            )
        changed = set(given)
        again = []
        for node in nodes:
            if changed.intersection(node.input) and not changed.issuperset(node.output):
                changed.update(node.output)
                again.append(node)
        needed, kept = {name}, []
        for node in reversed(again):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(node)
        made = {**values, **given}
        self.walk(kept[::-1], made, opsets, given, nodes, [name])
        return _named(made, name, "Gradient")

    def _attributes(self, node: Any) -> dict[str, Any]:
        import onnx

        found = {a.name: attribute(a) for a in node.attribute}
        for name, value in found.items():
            if isinstance(value, onnx.TensorProto):
                dtype_of(value.data_type, label(node), narrow=True)
                found[name] = array_of(value, label(node), self.file)
        return found

    def _defined(self, node: Any, domain: str, inputs: list[Any], opsets: Mapping[str, int]) -> Any:
        """By the function of other operators that ONNX defines an operator as."""
        import onnx

        version = opsets.get(domain, 1)
        try:
            schema: Any = onnx.defs.get_schema(node.op_type, version, domain)
        except onnx.defs.SchemaError:
            raise BackendError(
                f"{self.file}: {label(node)} is an operator that is not known"
            ) from None
        inputs = [as_tensor(x) for x in inputs]
        if schema.has_function:
            return self._function(node, schema.function_body, inputs, schema)
        if not schema.has_context_dependent_function:
            raise BackendError(f"{self.file}: {label(node)} is an operator without a rule")
        types = [_type(x).SerializeToString() for x in inputs]
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        body = onnx.FunctionProto()
        body.ParseFromString(schema.get_context_dependent_function(copy.SerializeToString(), types))
        return self._function(node, body, inputs, schema)

    def _function(self, node: Any, body: Any, inputs: list[Any], schema: Any = None) -> Any:
        """A function's nodes with the attributes of the call in the places that refer to them."""
        if self.depth > 64:
            raise FormatError(
                f"{self.file}: the functions of the model call each other without end"
            )
        values: dict[str, Any] = dict.fromkeys(body.input)
        values.update(zip(body.input, inputs, strict=False))
        given = {a.name: a for a in node.attribute}
        given = {a.name: a for a in body.attribute_proto} | given
        if schema is not None:
            defaults = {name: a.default_value for name, a in schema.attributes.items()}
            given = {name: a for name, a in defaults.items() if a.name} | given
        self.depth += 1
        try:
            nodes = [_bound(x, given) for x in body.node]
            self.walk(nodes, values, opsets_of(body.opset_import) or self.opsets, ends=body.output)
        finally:
            self.depth -= 1
        return tuple(values.get(y) for y in body.output)


def _bound(node: Any, given: Mapping[str, Any]) -> Any:
    """A node of a function; attributes that the call leaves out are left out."""
    import onnx

    if not any(a.ref_attr_name or a.HasField("g") for a in node.attribute):
        return node
    new = onnx.NodeProto()
    new.CopyFrom(node)
    del new.attribute[:]
    for a in node.attribute:
        if not a.ref_attr_name:
            copy = new.attribute.add()
            copy.CopyFrom(a)
            if a.HasField("g"):
                inner = [_bound(x, given) for x in a.g.node]
                del copy.g.node[:]
                copy.g.node.extend(inner)
        elif a.ref_attr_name in given:
            copy = new.attribute.add()
            copy.CopyFrom(given[a.ref_attr_name])
            copy.name = a.name
    return new


def _bind(node: Any, found: Any, values: dict[str, Any], fixed: Container[str]) -> None:
    """Enter what a node gives under the names of its outputs."""
    outputs = found if isinstance(found, tuple) else (found,)
    for name, value in zip(node.output, outputs, strict=False):
        if name and name not in fixed:
            values[name] = value


def _names(word: str, first: int) -> Iterator[str]:
    return (f"{word}_{i}" for i in itertools.count(first))


def _named(values: Mapping[str, Any], name: str, what: str) -> Any:
    try:
        return values[name]
    except KeyError:
        raise FormatError(f"{what} uses {name!r:.80}, which nothing makes") from None


def _type(value: Any) -> Any:
    """The type of a value, as ONNX writes it."""
    import onnx

    if value is None:
        return onnx.TypeProto()
    if isinstance(value, list):
        return onnx.helper.make_sequence_type_proto(_type(value[0]))
    sizes = [d if isinstance(d, int) else str(d) for d in value.shape]
    number = value.number if isinstance(value, Narrow) else number_of(value.dtype)
    return onnx.helper.make_tensor_type_proto(number, sizes)


def _held(value: Any) -> Any:
    return value.tensor if isinstance(value, Narrow) else value


def _moved(found: Any, number: int) -> Any:
    """What moved numbers of few bits are again such; shapes are not."""
    if isinstance(found, tuple):
        return tuple(_moved(part, number) for part in found)
    return Narrow(found, number) if found.dtype is NARROW[number] else found


def _where(file: StrPath, node: Any, error: object) -> str:
    return (
        f"{file}: {label(node)} needs {error}, which is only known when the model runs; where it "
        "comes from an input, give its value: rg.load_onnx(path, values={name: value})"
    )
