"""A file as a model of ONNX: read with the package `onnx`, and looked over before anything is made
of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from retrograd.errors import FormatError
from retrograd.lazy_import import need

OLDEST_OPSET = 13


def parsed(content: bytes, file: str) -> Any:
    """The model in some bytes. `FormatError` for what is none, or is damaged or of an opset before
    13; `BackendError` without the package `onnx`."""
    onnx = need("onnx", "reading ONNX")
    DecodeError = need("google.protobuf.message", "reading ONNX").DecodeError
    try:
        model = onnx.load_model_from_string(content)
    except (DecodeError, ValueError, TypeError) as error:
        raise FormatError(f"{file} is no ONNX model, or was cut ({error!s:.120})") from None
    if not model.graph.node and not model.graph.output:
        raise FormatError(f"{file} is no ONNX model, or was cut (it has no graph)")
    return checked(model, file)


def checked(model: Any, file: str) -> Any:
    """The model, brought to opset 13 by ONNX's own converter where it is older."""
    onnx = need("onnx", "reading ONNX")
    if any(isinstance(i.domain, bytes) for i in model.opset_import):
        raise FormatError(f"{file} is damaged: the name of an opset is no text")
    for graph in graphs(model.graph):
        _check(graph, file)
    version, newest = opsets_of(model.opset_import).get(""), onnx.defs.onnx_opset_version()
    if version is None or OLDEST_OPSET <= version <= newest:
        return model
    if version > newest:
        raise FormatError(
            f"{file} is of opset {version}, and the package onnx knows {newest}: pip install -U "
            "onnx, or export the model for an older one"
        )
    converter = need("onnx.version_converter", "reading ONNX")
    try:
        return converter.convert_version(model, OLDEST_OPSET)
    except Exception as error:  # of any class: C++ throws them
        raise FormatError(
            f"{file} is of opset {version}, which cannot be made {OLDEST_OPSET}: {error!s:.200}"
        ) from None


def opsets_of(imports: Any) -> dict[str, int]:
    """Versions by domain; ONNX's own has two names."""
    return {"" if i.domain == "ai.onnx" else i.domain: i.version for i in imports}


def graphs(graph: Any) -> Iterator[Any]:
    """A graph and those within it."""
    todo = [graph]
    while todo:
        here = todo.pop()
        yield here
        for node in here.node:
            for a in node.attribute:
                todo += [a.g] * a.HasField("g") + list(a.graphs)


def _check(graph: Any, file: str) -> None:
    """Each name is made once, and before it is used: else the graph has a cycle, or no order."""
    made = {x.name for x in graph.input} | {x.name for x in graph.initializer}
    made |= {x.values.name for x in graph.sparse_initializer}
    own = {y for node in graph.node for y in node.output if y}
    for text in _texts(graph):
        if isinstance(text, bytes):  # what Protobuf gives for what is not UTF-8
            raise FormatError(f"{file} is damaged: a name in it is no text, but {text!r:.80}")
    for node in graph.node:
        for x in node.input:
            if x in own and x not in made:
                raise FormatError(
                    f"{file}: {label(node)} uses {x!r:.80} before it is made; the nodes of a model "
                    "stand in order, and have no cycle"
                )
        for y in node.output:
            if y and y in made:
                raise FormatError(
                    f"{file}: {y!r:.80} is made twice, the second time by {label(node)}"
                )
            made.add(y)


def _texts(graph: Any) -> Iterator[Any]:
    yield graph.name
    for x in (*graph.input, *graph.output):
        yield x.name
        yield from (d.dim_param for d in x.type.tensor_type.shape.dim)
    yield from (x.name for x in graph.initializer)
    for node in graph.node:
        yield from (node.op_type, node.domain, node.name, *node.input, *node.output)
        yield from (a.name for a in node.attribute)


def label(node: Any) -> str:
    """How an error calls a node."""
    name = f" {node.name!r:.80}" if node.name else f" that makes {', '.join(node.output)!r:.80}"
    domain = f"{node.domain}:" if node.domain not in ("", "ai.onnx") else ""
    return f"{domain}{node.op_type}{name}"


def attribute(a: Any) -> Any:
    """The value of an attribute: numbers, texts, lists of them, tensors and graphs as they are."""
    import onnx

    kinds = onnx.AttributeProto
    match a.type:
        case kinds.FLOAT:
            return a.f
        case kinds.INT:
            return a.i
        case kinds.STRING:
            return a.s.decode("utf-8", "replace")
        case kinds.FLOATS:
            return list(a.floats)
        case kinds.INTS:
            return list(a.ints)
        case kinds.STRINGS:
            return [s.decode("utf-8", "replace") for s in a.strings]
        case kinds.TENSOR:
            return a.t
        case kinds.GRAPH:
            return a.g
        case kinds.TYPE_PROTO:
            return a.tp
    raise FormatError(f"the attribute {a.name!r} is of a kind that is not read ({a.type})")
