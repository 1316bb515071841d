"""The variables that users assigned the values of nodes to: of `h = tanh(x @ w)`, the name `h`.

Each node knows the instruction that made it, and Python the place of that in the text. Where this
is all that stands on the right of an assignment, its last node is what has the name.
"""

from __future__ import annotations

import ast
import itertools
import linecache
from collections import Counter
from collections.abc import Iterator, Sequence

from retrograd.ir import Node, Source

Span = tuple[int, int, int, int]  # first and last line, first and last column
LONGEST = 2_000_000  # characters of a file that is read
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def variables(nodes: Sequence[Node]) -> dict[Node, str]:
    """The names of nodes that have none of their own, each once: a second `h` is `h₂`."""
    last: dict[tuple[int, int, int], tuple[Node, Source]] = {}
    run = 0
    before: tuple[object, ...] = ()
    for node in sorted(nodes, key=lambda n: n.id):
        at = node.source
        if node.origin is not None or not at or not node.inputs:
            continue
        # One call; of a layer, which calls several functions, what it made one after the other.
        here = (id(at.code), at.lasti, "" if at.module.startswith("nn.") else at.call)
        if here != before:
            run += 1
        before = here
        last[id(at.code), at.lasti, run] = node, at
    taken = Counter(n.name for n in nodes if n.name)
    files: dict[str, dict[Span, str]] = {}
    found = {}
    for node, at in last.values():
        if at.file not in files:
            files[at.file] = assignments(at.file)
        span = _span(at) if files[at.file] else None
        name = files[at.file].get(span) if span is not None else None
        if name and not node.name:
            taken[name] += 1
            number = str(taken[name]).translate(_SUBSCRIPTS) if taken[name] > 1 else ""
            found[node] = f"{name}{number}"
    return found


def _span(at: Source) -> Span | None:
    """The place of an instruction."""
    if at.code is None:
        return None
    found = next(itertools.islice(at.code.co_positions(), at.lasti // 2, None), None)
    if found is None or None in found:
        return None
    return found  # type: ignore[return-value]


def assignments(file: str) -> dict[Span, str]:
    """Where in a file stands what is assigned to variables; of what is no file, nothing."""
    text = "".join(linecache.getlines(file))
    if not text or len(text) > LONGEST:
        return {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # of a notebook's cell with commands of its own, for instance
        return {}
    return dict(_assigned(tree))


def _assigned(tree: ast.AST) -> Iterator[tuple[Span, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target], value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pass
            case ast.NamedExpr(target=target, value=value):
                pass
            case ast.AugAssign(target=target):
                value = node  # type: ignore[assignment]
            case _:
                continue
        name, end, column = _name(target), value.end_lineno, value.end_col_offset
        if not name or end is None or column is None:
            continue
        yield (value.lineno, end, value.col_offset, column), name
        match value:  # Python says of a method on another line that its call begins there
            case ast.Call(
                func=ast.Attribute(attr=attr, end_lineno=int(line), end_col_offset=int(at))
            ):
                yield (line, end, at - len(attr), column), name


def _name(target: ast.expr) -> str:
    """A variable, or an attribute such as `self.h`; those of names like `_` say nothing."""
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return "" if name.startswith("_") else name
    return ""
