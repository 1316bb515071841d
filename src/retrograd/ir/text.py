"""Graphs as text, and text as graphs; exact inverses up to structure (`Graph.__eq__`).

    graph loss {
      %0 x: f32[N, 3] = input
      %1 w: f32[3, 4] = input
      %2: f32[N, 4] = dot_general(%0, %1) a_contract=(1,) b_contract=(0,)  @model.layers[0]
      return %2
    }

Graphs among attributes, such as what a loop repeats, stand before the graph that uses them, under
a number of their own, each once:

    graph &0 body {
      ...
    }
    graph {
      %2: (f32[], f32[9]) = scan(%0, %1) body=&0 carries=1 length=9
      ...

One node a line: number, name, type, operation, inputs, attributes, scope. Attributes that repeat
the node's type (`shape`, `dtype`) or have their default value are left out. Names and scopes of
other than letters, digits, `_.[]` stand in quotes. `#` starts a comment. Both ways are one loop.

Nodes that one call of a function made have a scope of their own within that of the module, such as
`@model.head.softmax()`, for the second call `@model.head.softmax_2()`. It is no part of the
structure: graphs that differ in that only are equal.

An input may have a value, used where the caller gives none, as a saved parameter does:

      %1 w: f32[2] = input value=f32[2](0.5, -1.0)

A file begins with `# retrograd graph, version 1`. Without that line a text is of version 1; a newer
one is refused. `docs/graph-format.md` says the same at length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from retrograd.errors import FormatError
from retrograd.ir.calls import Called, calls_of, without_number
from retrograd.ir.dtype import as_dtype
from retrograd.ir.literal import LiteralReader, quote, show, show_type, unquote
from retrograd.ir.node import Nested, Node, Op, Source, nested
from retrograd.ir.registry import lookup
from retrograd.ir.source import next_call
from retrograd.ir.types import TensorType
from retrograd.ir.verifier import check_node

G = TypeVar("G")
Array = np.ndarray[Any, Any]
VERSION = 1  # of the format: raised where a reader of before would misread, or cannot read, a text
_VERSION = re.compile(r"#\s*retrograd graph, version (\d{1,9})\s*")

# -- printing -------------------------------------------------------------------------------------


def print_graph(
    graph: Nested,
    sources: bool = False,
    values: Mapping[Node, Array] | None = None,
    calls: bool = True,
) -> str:
    """The text of a graph; with `sources`, the user's line of each node as a comment, with `values`
    of inputs, these, and without `calls` only what its structure is."""
    numbers: dict[Nested, str] = {}
    lines: list[str] = []
    for inner in nested(graph):
        if inner not in numbers:
            name = numbers[inner] = f"&{len(numbers)}"
            lines += _print(inner, name, numbers, sources, calls)
    lines += _print(graph, "", numbers, sources, calls, values or {})
    return "\n".join(lines) + "\n"


def versioned(text: str) -> str:
    """The text of a graph as a file has it."""
    return f"# retrograd graph, version {VERSION}\n{text}"


def _check_version(text: str) -> None:
    found = _VERSION.fullmatch(text[: text.find("\n") + 1].strip())
    if found is not None and not 1 <= int(found[1]) <= VERSION:
        raise FormatError(
            f"the text is of version {found[1]} of the format, and this retrograd reads up to "
            f"version {VERSION}: pip install -U retrograd"
        )


def _print(
    graph: Nested,
    place: str,
    numbers: Mapping[Nested, str],
    sources: bool,
    calls: bool,
    values: Mapping[Node, Array] = MappingProxyType({}),
) -> list[str]:
    """The lines of one graph."""
    number = {node: f"%{i}" for i, node in enumerate(graph.nodes)}
    types: dict[TensorType, str] = {}
    called = calls_of(graph.nodes) if calls else {}
    operations: dict[tuple[int, TensorType], str] = {}  # by identity: the graph keeps ops alive
    labels = [x for x in (place, _label(graph.name) if graph.name else "") if x]
    lines = [" ".join(["graph", *labels, "{"])]
    for i, node in enumerate(graph.nodes):
        type = types.get(node.type) or types.setdefault(node.type, show_type(node.type))
        name = f" {_label(node.name)}" if node.name else ""
        if i < len(graph.inputs):
            value = f" value={show(values[node])}" if node in values else ""
            lines.append(f"  %{i}{name}: {type} = input{value}")
            continue
        key = id(node.prim), node.type
        attrs = operations.get(key)
        if attrs is None:
            attrs = operations[key] = _show_attrs(node, numbers)
        inputs = f"({', '.join([number[x] for x in node.inputs])})" if node.inputs else ""
        call = called.get(node)
        scope = f"  @{_place(node.scope, call)}" if node.scope or call else ""
        said = [node.prim.remark, str(node.source) if sources and node.source else ""]
        source = f"  # {' '.join(' '.join(said).split())}" if any(said) else ""
        lines.append(f"  %{i}{name}: {type} = {node.prim.name}{inputs}{attrs}{scope}{source}")
    outputs = [number[node] for node in graph.outputs]
    return [*lines, f"  return {', '.join(outputs)}".rstrip(), "}"]


def _place(scope: str, call: Called | None) -> str:
    """Where a node is from: the scope of the module, and the call within it."""
    if call is None:
        return _label(scope)
    shown = call.shown if _CALLED.fullmatch(call.shown) else f"{quote(call.shown)}()"
    return f"{_label(scope)}.{shown}" if scope else shown


def _label(name: str) -> str:
    return name if _BARE.fullmatch(name) else quote(name)


def _show_attrs(node: Node, numbers: Mapping[Nested, str]) -> str:
    """The attributes that `_fill` would not find by itself."""
    text = ""
    for key, value in node.prim.attrs.items():
        implied = _implied(type(node.prim), key, node.type)
        if implied.__class__ is value.__class__ and implied == value:
            continue
        try:
            shown = numbers[value] if isinstance(value, Nested) else show(value)
            text += f" {key}={shown}"
        except FormatError as error:
            raise FormatError(f"{error}: attribute {key} of {node.describe()}") from None
    return text


def _implied(factory: Any, key: str, result: TensorType) -> Any:
    """The value of an attribute that the text does not give."""
    if key == "shape":
        return result.shape
    if key == "dtype":
        return result.dtype
    return factory.__dataclass_fields__[key].default


# -- parsing --------------------------------------------------------------------------------------

_NAME = r'[^\W\d][\w.\[\]]*|"(?:[^"\\\n]|\\.)*"'
_BARE = re.compile(r"[^\W\d][\w.\[\]]*")
_HEADER = re.compile(rf"\s*graph(?:\s+(&[0-9]+))?(?:\s+({_NAME}))?\s*{{\s*(?:#.*)?")
_RETURN = re.compile(r"\s*return\b((?:\s*%[0-9]+(?:\s*,\s*%[0-9]+)*)?)\s*(?:#.*)?", re.ASCII)
_END = re.compile(r"\s*}\s*(?:#.*)?")
_EMPTY = re.compile(r"\s*(?:#.*)?")
_CALL = r'[^\W\d]\w*\([\w.\[\]]*\)|"(?:[^"\\\n]|\\.)*"\(\)'
_CALLED = re.compile(_CALL)
_SCOPE = re.compile(rf"@(?:(?:({_NAME})\.)?({_CALL})|({_NAME}))")
_VALUE = re.compile(r"\s*value\s*=")
_KEY = re.compile(r"(\w+)\s*=")

# A node line in parts, each with what is expected there. Together they are the expression that
# reads a line in one step; where it does not match, the first part that fails is the error.
_PARTS = [
    ("a node such as '%2: f32[N, 3] = add(%0, %1)'", r"\s*(%[0-9]+)"),
    ("a name, or ':'", rf"(?:\s+({_NAME}))?"),
    ("a name, or ':' and a type such as f32[N, 3]", r"\s*:\s*(\([^=\n]*\)|[^\s\[(]+\[[^\]]*\])"),
    ("'='", r"\s*="),
    ("an operation", r"\s*(\w++)"),
    ("inputs such as (%0, %1)", r"(?:\(\s*((?:%[0-9]+(?:\s*,\s*%[0-9]+)*)?)\s*\))?(?!\()"),
]
_NODE = re.compile("".join(pattern for _, pattern in _PARTS) + "(.*)")


def parse_graph(
    text: str,
    cls: Callable[[Sequence[Node], Sequence[Node], str], G],
    with_value: Callable[[Array, str], Node] | None = None,
) -> G:
    """The graph, of class `cls`, that the text describes. `with_value` makes an input of a value
    and a name; without it, values of inputs are left out.

    Raises `FormatError` with the line and what was expected there, and for a text of a newer
    version. Types are checked.
    """
    _check_version(text)
    lines, graphs = _Lines(text), dict[str, Any]()
    try:
        while True:
            place, graph = _parse_one(lines, graphs, cls, with_value)
            if not place:
                break
            if place in graphs:
                raise FormatError(f"expected a new number, found {place} again")
            graphs[place] = graph
        for line in lines:
            raise _expected("the end of the text", line)
    except FormatError as error:
        raise FormatError(f"line {lines.number}: {error}") from error
    return graph


def _parse_one(
    lines: _Lines,
    graphs: Mapping[str, Any],
    cls: Callable[[Sequence[Node], Sequence[Node], str], G],
    with_value: Callable[[Array, str], Node] | None,
) -> tuple[str, G]:
    """The next graph of a text, and its number, which is empty for the last."""
    body = _ParsedBody(graphs, with_value)
    header = lines.take(_HEADER, "'graph NAME {'")
    for line in lines:
        found = _NODE.fullmatch(line)
        if found is None:
            break
        body.add(*found.groups())
    else:
        raise FormatError("expected a node or 'return', found the end of the text")
    end = _RETURN.fullmatch(line)
    if end is None:
        raise _diagnose(line)
    outputs = body.find(end[1])
    lines.take(_END, "'}'")
    return header[1] or "", cls(body.inputs, outputs, _unlabel(header[2]))


class _Lines:
    """The lines of a text that hold more than a comment, and the number of the current one."""

    def __init__(self, text: str) -> None:
        self.number = 0
        self._lines = self._filled(text)

    def _filled(self, text: str) -> Iterator[str]:
        for self.number, line in enumerate(text.split("\n"), 1):
            if line and not _EMPTY.fullmatch(line):
                yield line

    def __iter__(self) -> Iterator[str]:
        return self._lines

    def take(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """The next line, which must match."""
        line = next(self._lines, "")
        found = pattern.fullmatch(line)
        if found is None:
            raise _expected(expected, line)
        return found


class _ParsedBody:
    """The nodes read so far, by their number in the text."""

    def __init__(
        self, graphs: Mapping[str, Any], with_value: Callable[[Array, str], Node] | None
    ) -> None:
        self.graphs = graphs
        self.with_value = with_value
        self.inputs: list[Node] = []
        self._names: set[str] = set()
        self._nodes: dict[str, Node] = {}
        self._types: dict[str, TensorType] = {}
        self._operations: dict[tuple[str, str, str], tuple[Op, str, Source | None]] = {}
        self._calls: dict[tuple[str, str], Source] = {}

    def find(self, numbers: str | None) -> tuple[Node, ...]:
        """The nodes meant by text such as `%0, %1`."""
        if not numbers or numbers.isspace():
            return ()
        try:
            return tuple([self._nodes[n.strip()] for n in numbers.split(",")])
        except KeyError as error:
            raise FormatError(
                f"expected the number of a node above, found {error.args[0]}"
            ) from None

    def _source(self, scope: str, shown: str) -> Source | None:
        """What the nodes of a call have in common."""
        if not shown:
            return None
        found = self._calls.get((scope, shown))
        if found is None:
            found = Source(None, 0, without_number(shown), "", next_call())
            self._calls[scope, shown] = found
        return found

    def add(
        self, number: str, name: str | None, type: str, op: str, inputs: str | None, rest: str
    ) -> None:
        """One line: what the groups of `_NODE` found."""
        if number in self._nodes:
            raise FormatError(f"expected a new number, found {number} again")
        result = self._types.get(type)
        if result is None:
            result = self._types[type] = _whole(type)
        value = None
        if op == "input" and (found := _VALUE.match(rest)):
            value, rest = _value_of_input(rest, found.end(), result)
        key = op, type, rest
        known = self._operations.get(key)
        if known is None:
            prim, scope, shown = _operation(op, result, rest, self.graphs)
            known = self._operations[key] = prim, scope, self._source(scope, shown)
        prim, scope, source = known
        if value is not None and self.with_value is not None:
            node = self.with_value(value, _unlabel(name))
        else:
            node = Node(prim, self.find(inputs), result, scope, source, None, _unlabel(name))
        check_node(node)
        self._nodes[number] = node
        if op == "input":
            if node.name in self._names:
                raise FormatError(f"expected another name, found a second input {node.name!r}")
            self._names.update([node.name] if node.name else [])
            self.inputs.append(node)


def _value_of_input(rest: str, at: int, type: TensorType) -> tuple[Array, str]:
    """The array behind `value=`, and what follows."""
    reader = LiteralReader(rest, at)
    value = reader.value()
    if not isinstance(value, np.ndarray) or TensorType(as_dtype(value.dtype), value.shape) != type:
        raise FormatError(f"expected a value of the type {show_type(type)}, found {value!r:.60}")
    return value, reader.rest


def _whole(type: str) -> TensorType:
    reader = LiteralReader(type)
    result = reader.type()
    if reader.rest.strip():
        raise reader.fail("'='")
    return result


def _operation(
    op: str, result: TensorType, rest: str, graphs: Mapping[str, Any]
) -> tuple[Op, str, str]:
    """The operation, the scope and the call told by a name and what stands behind the inputs."""
    factory, values, reader = lookup(op), dict[str, Any](), LiteralReader(rest, 0, graphs)
    scope = call = ""
    fields = getattr(factory, "__dataclass_fields__", {})
    while found := reader.match(_KEY):
        key = found[1]
        if key not in fields or key in values:
            known = ", ".join(k for k in fields if k not in values) or "no more"
            raise FormatError(f"expected an attribute of {op} ({known}), found {key}=")
        values[key] = reader.value()
    if found := reader.match(_SCOPE):
        scope = _unlabel(found[1] or found[3])
        call = found[2] or ""
        call = unquote(call.removesuffix("()")) if call.startswith('"') else call
    if not _EMPTY.fullmatch(reader.rest):
        raise reader.fail("an attribute such as axis=0, or a scope such as @model")
    for key in fields:
        if values.setdefault(key, _implied(factory, key, result)) is MISSING:
            raise FormatError(f"expected the attribute {key} of {op}")
    try:
        return factory(**values), scope, call
    except Exception as error:  # damaged text may hold any value where the op expects another kind
        raise FormatError(f"{op} cannot have these attributes: {error}") from error


def _unlabel(name: str | None) -> str:
    return unquote(name) if name and name[0] == '"' else name or ""


def _expected(what: str, line: str) -> FormatError:
    found = repr(line.strip()[:60]) if line.strip() else "the end of the text"
    return FormatError(f"expected {what}, found {found}")


def _diagnose(line: str) -> FormatError:
    """Why a line is not a node: the first part of it that does not match."""
    if not line.lstrip().startswith("%"):
        return _expected(f"{_PARTS[0][0]}, or 'return'", line)
    at = 0
    for expected, pattern in _PARTS:
        found = re.compile(pattern).match(line, at)
        if found is None:
            return LiteralReader(line, at).fail(expected)
        at = found.end()
    return _expected("'return' and nodes such as %0, %1", line)
