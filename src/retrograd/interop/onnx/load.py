"""`load_onnx`: a model as a graph, to be differentiated, compiled, trained, exported again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import retrograd as rg
from retrograd.errors import ArgumentError, BackendError, FormatError, nearest
from retrograd.files import StrPath, read_bytes
from retrograd.interop.onnx.dtypes import NARROW, dtype_of
from retrograd.interop.onnx.dynamic_size import UnknownSize
from retrograd.interop.onnx.formulas import DOMAIN, with_ops
from retrograd.interop.onnx.interpreter import Interpreter
from retrograd.interop.onnx.model import graphs, label, parsed
from retrograd.interop.onnx.narrow import Narrow, from_array
from retrograd.interop.onnx.registry import RULES
from retrograd.interop.onnx.values import PARAMETERS, NeedsValue, as_tensor


def load_onnx(
    path: StrPath,
    *,
    values: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Any:
    """An ONNX model as a `Graph`: its inputs by name, its float initializers as parameters.

    Sizes that have a name in the model have it in the graph, which is compiled once for all.
    `values` gives inputs that decide shapes, or that shall be constants; `dims` sizes that shall be
    numbers. The graph is like any other: call it, `gradient(wrt=...)`, `jit`, `save`, `to_onnx`.

    Opsets 13 to the newest that the package `onnx` knows; external data is read from the folder of
    the model and from nowhere else.

    Raises `FormatError` for what is no model or is damaged, `BackendError` for operators and dtypes
    that are not known (all of them in one message), `TraceError` where a shape depends on what only
    a run can tell.

    >>> import retrograd as rg
    >>> g = rg.trace(lambda x, w: rg.tanh(x @ w), rg.spec((rg.Dim("N"), 3)), rg.spec((3, 2)))
    >>> g.to_onnx("model.onnx")  # doctest: +SKIP
    >>> rg.load_onnx("model.onnx")(rg.ones((4, 3)), rg.ones((3, 2))).shape  # doctest: +SKIP
    (4, 2)
    """
    file = os.fspath(path)
    return graph_of(parsed(read_bytes(path, "ONNX model"), file), file, values, dims)


def graph_of(
    model: Any,
    file: StrPath,
    values: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Any:
    """The graph of a model that is in memory."""
    known, sizes = dict(values or {}), dict(dims or {})
    _check_operators(model, file)
    if model.producer_name == "retrograd":
        model = with_ops(model, file)
    given = {x.name for x in model.graph.input} - {x.name for x in model.graph.initializer}
    for name in known:
        if name not in given:
            near = nearest(name, given)
            raise ArgumentError(
                f"{file} has no input {name!r}; {near or f'it has {sorted(given)}'}"
            )
    interpreter = Interpreter(model, file)
    builder = rg.GraphBuilder(model.graph.name)
    bound: dict[str, Any] = {}
    for x in model.graph.input:
        if x.name in known:
            bound[x.name] = _given(x, known[x.name])
        elif x.name in given:
            value = bound[x.name] = _input(builder, x, sizes, file)
            names = {str(d) for d in value.shape if isinstance(d, rg.Dim)}
            interpreter.dims = sorted({*interpreter.dims, *names})
    bound |= _weights(builder, interpreter, model)
    ends = [y.name for y in model.graph.output]
    try:
        interpreter.walk(model.graph.node, bound, interpreter.opsets, ends=ends)
    except UnknownSize as unknown:
        raise NeedsValue(unknown.message, True) from None
    for y in model.graph.output:
        if y.name not in bound:
            raise FormatError(f"{file} has the output {y.name!r:.80}, which nothing makes")
        for name, value in _tensors(y.name, bound[y.name], file):
            builder.output(value, name)
    return builder.graph()


def _tensors(name: str, value: Any, file: StrPath) -> Iterator[tuple[str, Any]]:
    """An output as tensors: those of a sequence are outputs of their own, with their places."""
    if value is None:
        raise BackendError(
            f"{file} has the output {name!r}, an optional value that is empty; the outputs of a "
            "graph are tensors"
        )
    if isinstance(value, list):
        for i, part in enumerate(value):
            yield from _tensors(f"{name}_{i}", part, file)
    else:
        yield name, value.tensor if isinstance(value, Narrow) else as_tensor(value)


def _weights(builder: Any, interpreter: Interpreter, model: Any) -> dict[str, Any]:
    """The initializers: those of floating numbers are parameters. Of a model that lists some
    among its inputs, and of what this library wrote, only these are; the rest are constants."""
    if model.graph.sparse_initializer:
        name = model.graph.sparse_initializer[0].values.name
        raise BackendError(f"{interpreter.file}: the initializer {name!r:.80} is sparse")
    inputs = {x.name for x in model.graph.input}
    names = {x.name for x in model.graph.initializer}
    if names & inputs or model.producer_name == "retrograd":
        names &= inputs
    found: dict[str, Any] = {}
    for x in model.graph.initializer:
        value = made = interpreter.tensor(x)
        tensor = made.tensor if isinstance(made, Narrow) else made
        if x.name in names and tensor.dtype.is_inexact and tensor.size:
            own = tensor.numpy()
            value = builder.parameter(x.name, tensor.shape, tensor.dtype, init=own)
            PARAMETERS[value.node] = own
            value = Narrow(value, made.number) if isinstance(made, Narrow) else value
        found[x.name] = value
    return found


def _input(builder: Any, x: Any, sizes: Mapping[str, int], file: StrPath) -> Any:
    kind = x.type.WhichOneof("value")
    if kind != "tensor_type":
        raise BackendError(
            f"{file} has the input {x.name!r} of kind {kind or 'none'}; the inputs of a graph are "
            "tensors"
        )
    described = x.type.tensor_type
    dtype = dtype_of(described.elem_type, f"{file}: the input {x.name!r}", narrow=True)
    shape = []
    for i, d in enumerate(described.shape.dim):
        if d.HasField("dim_value"):
            if d.dim_value < 0:
                raise FormatError(f"{file}: the input {x.name!r} has the size {d.dim_value}")
            shape.append(d.dim_value)
            continue
        name = _size_name(d.dim_param) or f"{_size_name(x.name)}_{i}"
        shape.append(sizes.get(d.dim_param or name, rg.Dim(name)))
    if not described.HasField("shape"):
        raise BackendError(
            f"{file}: the input {x.name!r} has no shape; give its value: "
            f"rg.load_onnx(path, values={{{x.name!r}: ...}})"
        )
    found = builder.input(x.name, tuple(shape), dtype)
    return Narrow(found, described.elem_type) if described.elem_type in NARROW else found


def _given(described: Any, value: Any) -> Any:
    """The value of an input; what a sequence is given is one for each part."""
    if described.type.WhichOneof("value") == "tensor_type":
        return from_array(value)
    return _value(value)


def _size_name(text: str) -> str:
    """Names of sizes are letters, digits and underscores here."""
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in text)
    return f"_{name}" if name[:1].isdigit() else name


def _check_operators(model: Any, file: StrPath) -> None:
    """Operators that nothing computes, all at once."""
    import onnx

    own = {(f.domain, f.name) for f in model.functions}
    lacking: dict[str, list[str]] = {}
    for graph in graphs(model.graph):
        for node in graph.node:
            domain = "" if node.domain == "ai.onnx" else node.domain
            key = (domain, node.op_type)
            if (key in RULES and domain != DOMAIN) or key in own:
                continue
            if onnx.defs.has(node.op_type, domain):
                schema: Any = onnx.defs.get_schema(node.op_type, domain=domain)
                if schema.has_function or schema.has_context_dependent_function:
                    continue
            lacking.setdefault(f"{domain}:{node.op_type}".lstrip(":"), []).append(label(node))
    if lacking:
        listed = "; ".join(f"{name} ({_some(at)})" for name, at in lacking.items())
        raise BackendError(f"{file} has operators without a rule here: {listed}")


def _some(names: Sequence[str], most: int = 8) -> str:
    """Names of nodes, of very many the first."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def call_eagerly(model: Any, file: StrPath, inputs: Mapping[str, Any]) -> list[Any]:
    """The outputs of a model on values, computed node by node: also where a shape depends on
    values, and for sequences and optional values."""
    interpreter = Interpreter(model, file)
    given = {name: _value(x) for name, x in inputs.items()}
    found = interpreter.run(model.graph, given, {})
    return [y.tensor if isinstance(y, Narrow) else as_tensor(y) for y in found]


def _value(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return [_value(part) for part in x]
    return None if x is None else from_array(x)
