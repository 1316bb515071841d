"""`load_onnx`: a model as a graph, to be differentiated, compiled, trained, exported again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import ArgumentError, BackendError, FormatError, nearest
from retrograd.files import StrPath, read_bytes
from retrograd.interop.onnx.dtypes import NARROW, dtype_of
from retrograd.interop.onnx.interpreter import Interpreter
from retrograd.interop.onnx.model import graphs, label, parsed
from retrograd.interop.onnx.registry import RULES
from retrograd.interop.onnx.values import PARAMETERS, as_tensor


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
        if x.name in given:
            bound[x.name] = (
                rg.asarray(known[x.name]) if x.name in known else _input(builder, x, sizes, file)
            )
    interpreter.dims = sorted(
        {str(d) for x in bound.values() for d in x.shape if isinstance(d, rg.Dim)}
    )
    bound |= _weights(builder, interpreter, model)
    interpreter.walk(model.graph.node, bound, interpreter.opsets)
    for y in model.graph.output:
        if y.name not in bound:
            raise FormatError(f"{file} has the output {y.name!r:.80}, which nothing makes")
        value = bound[y.name]
        if value is None or isinstance(value, list):
            raise BackendError(
                f"{file} has the output {y.name!r}, a sequence or an optional value; the outputs "
                "of a graph are tensors"
            )
        builder.output(as_tensor(value), y.name)
    return builder.graph()


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
        value = interpreter.tensor(x)
        if x.name in names and value.dtype.is_inexact and value.size:
            own = value.numpy()
            value = builder.parameter(x.name, value.shape, value.dtype, init=own)
            PARAMETERS[value.node] = own
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
    return builder.input(x.name, tuple(shape), dtype)


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
            if key in RULES or key in own:
                continue
            if onnx.defs.has(node.op_type, domain):
                schema: Any = onnx.defs.get_schema(node.op_type, domain=domain)
                if schema.has_function or schema.has_context_dependent_function:
                    continue
            lacking.setdefault(f"{domain}:{node.op_type}".lstrip(":"), []).append(label(node))
    _check_narrow(model, file)
    if lacking:
        listed = "; ".join(f"{name} ({len(at)}, first {at[0]})" for name, at in lacking.items())
        raise BackendError(f"{file} has operators without a rule here: {listed}")


def _check_narrow(model: Any, file: StrPath) -> None:
    """Numbers of 8 bits and less are only read by `DequantizeLinear`."""
    described = {x.name: x.type.tensor_type.elem_type for x in model.graph.input}
    described |= {x.name: x.data_type for x in model.graph.initializer}
    for graph in graphs(model.graph):
        for node in graph.node:
            for x in node.input:
                if described.get(x) in NARROW and node.op_type != "DequantizeLinear":
                    dtype_of(described[x], f"{file}: {x!r:.80}, an input of {label(node)},")


def call_eagerly(model: Any, file: StrPath, inputs: Mapping[str, Any]) -> list[Any]:
    """The outputs of a model on values, computed node by node: also where a shape depends on
    values, and for sequences and optional values."""
    interpreter = Interpreter(model, file)
    given = {name: _value(x) for name, x in inputs.items()}
    return [as_tensor(y) for y in interpreter.run(model.graph, given, {})]


def _value(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return [_value(part) for part in x]
    return None if x is None else rg.asarray(np.asarray(x))
