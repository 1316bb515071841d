"""Mutants of a source file: small changes that a test should notice.

Every function of the file is walked; each expression gives the changes that its form allows:

    sign      `-x` to `x`, `a + b` to `a - b`
    factor    a factor dropped, a number doubled
    axis      an index moved on by one
    term      a term of a sum dropped
    swap      `a - b` to `b - a`, `f(a, b)` to `f(b, a)`, two results exchanged
    bound     `<` to `<=`, `==` to `!=`, a bound of a range or slice moved by one
    mask      a choice that is always, or never, taken; one operand of `and`, `or`, `&`, `|` alone

Left out are what checks arguments (an `if` that only raises), messages, annotations, docstrings,
defaults and decorators.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Change = tuple[str, ast.AST]  # kind, and what takes the place of the node

SWAPPED = {  # comparisons, and what they become
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
# Calls whose arguments may be exchanged, or that are not mathematics.
SYMMETRIC = {
    "add", "mul", "zzmul", "max", "min", "eq", "ne", "zip", "isinstance", "issubclass", "getattr",
    "map", "hypot", "inner", "maximum", "minimum", "logaddexp", "hasattr", "setattr", "partial",
    "replace", "bitwise_and", "bitwise_or",
}  # fmt: skip
PRODUCTS = {"mul", "zmul", "zdiv", "zzmul", "div"}
# Calls of one argument that say what it is, or make a container of it.
CONTAINERS = {
    "len", "tuple", "list", "set", "dict", "frozenset", "int", "float", "str", "bool", "iter",
    "range", "enumerate", "type", "isinstance", "repr", "next", "super", "id", "all", "any",
}  # fmt: skip
UNTOUCHED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Global)
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "defaults", "kw_defaults", "args"}


@dataclasses.dataclass(frozen=True, eq=False)
class Mutant:
    """One change at one place of a file. `function` is the function or table entry it stands in,
    `number` counts mutants of a file that read alike."""

    file: str
    function: str
    lines: range
    column: int
    kind: str
    before: str
    after: str
    number: int
    outer_place: tuple[int, int]  # line and column of the outermost function it stands in
    noted: int  # the line of the innermost statement, or lambda
    place: tuple[ast.AST, str, int | None]  # parent, field, position in the field
    new: ast.AST

    @property
    def line(self) -> int:
        return self.lines.start

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What names a mutant while lines move."""
        return self.file, self.function, self.kind, self.before, self.after

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}:{self.column} {self.function}: {self.kind}: "
            f"{self.before} -> {self.after}"
        )

    def apply(self) -> Callable[[], None]:
        """Change the syntax tree; what is returned changes it back."""
        parent, field, at = self.place
        old = getattr(parent, field) if at is None else getattr(parent, field)[at]

        def put(node: Any) -> None:
            if at is None:
                setattr(parent, field, node)
            else:
                getattr(parent, field)[at] = node

        put(_placed(self.new, old))
        return lambda: put(old)


@dataclasses.dataclass(frozen=True)
class _Place:
    node: ast.AST
    parent: ast.AST
    field: str
    at: int | None
    function: str
    outer: ast.AST | None
    statement: ast.AST | None


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def mutants_of(tree: ast.Module, file: str) -> list[Mutant]:
    """All mutants of a file, in the order of their places."""
    found = []
    counts: collections.Counter[tuple[str, ...]] = collections.Counter()
    for place in _places(tree):
        node = place.node
        before = ast.unparse(node)
        for kind, new in _changes(node, place.parent, place.field):
            after = ast.unparse(_placed(new, node))
            if after == before:
                continue
            key = (file, place.function, kind, before, after)
            counts[key] += 1
            statement = node if isinstance(node, ast.stmt) else place.statement
            found.append(
                Mutant(
                    file, place.function, _lines(node), _place(node)[1], kind, before, after,
                    counts[key], _place(place.outer), _lines(statement).start,
                    (place.parent, place.field, place.at), new,
                )
            )  # fmt: skip
    return found


def _places(tree: ast.Module) -> Iterator[_Place]:
    """Every node inside a function that may be changed, in the order of the source."""
    todo: list[_Place] = [_Place(tree, tree, "", None, "", None, None)]
    while todo:
        here = todo.pop()
        node = here.node
        if isinstance(node, UNTOUCHED) or _is_docstring(node):
            continue
        if here.outer and isinstance(node, ast.expr | ast.stmt):
            yield here
        function, outer = here.function, here.outer
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}" if function else node.name
        elif (
            isinstance(node, ast.Assign) and not function and isinstance(node.targets[0], ast.Name)
        ):
            function = node.targets[0].id  # an entry of a table
        if isinstance(node, ast.FunctionDef | ast.Lambda) and outer is None:
            outer = node
            function = function or "<lambda>"
        is_inside = isinstance(node, ast.stmt | ast.Lambda) and outer is not None
        statement = node if is_inside or node is outer else here.statement
        children = []
        for field, value in ast.iter_fields(node):
            if _is_left_out(node, field):
                continue
            if isinstance(value, ast.AST):
                children.append(_Place(value, node, field, None, function, outer, statement))
            elif isinstance(value, list):
                children += [
                    _Place(x, node, field, i, function, outer, statement)
                    for i, x in enumerate(value)
                    if isinstance(x, ast.AST)
                ]
        todo += reversed(children)


def _placed(new: ast.AST, old: ast.AST) -> ast.AST:
    """What is new stands where the old node does; parts of that stay where they are."""
    if not hasattr(new, "lineno"):
        ast.copy_location(new, old)
    return ast.fix_missing_locations(new)


def _lines(node: ast.AST | None) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[union-attr]


def _place(node: ast.AST | None) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[union-attr]


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_left_out(node: ast.AST, field: str) -> bool:
    if isinstance(node, ast.FunctionDef | ast.Lambda | ast.arguments | ast.AnnAssign | ast.arg):
        return field in SKIPPED_FIELDS
    if isinstance(node, ast.ClassDef):
        return field != "body"
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    # Checks of arguments.
    return isinstance(node, ast.If) and field == "test" and _only_raises(node)


def _only_raises(node: ast.If) -> bool:
    return not node.orelse and all(isinstance(s, ast.Raise) for s in node.body)


def _changes(node: ast.AST, parent: ast.AST, field: str) -> Iterator[Change]:
    if field in ("test", "ifs") and isinstance(parent, ast.If | ast.comprehension):
        for taken in (True, False):
            yield "mask", ast.Constant(taken)
    rule = _RULES.get(type(node))
    if rule is not None:
        yield from rule(node, parent, field)


def _binary(node: ast.BinOp, parent: ast.AST, field: str) -> Iterator[Change]:
    a, b = node.left, node.right
    match node.op:
        case ast.Add():
            yield "sign", ast.BinOp(a, ast.Sub(), b)
            yield "term", a
            yield "term", b
        case ast.Sub():
            yield "sign", ast.BinOp(a, ast.Add(), b)
            yield "term", a
            yield "swap", ast.BinOp(b, node.op, a)
        case ast.Mult():
            yield "factor", a
            yield "factor", b
        case ast.Div() | ast.FloorDiv():
            yield "factor", a
            yield "swap", ast.BinOp(b, node.op, a)
        case ast.Mod() | ast.Pow() | ast.LShift() | ast.RShift():
            yield "factor", a
        case ast.MatMult():
            yield "swap", ast.BinOp(b, node.op, a)
        case ast.BitAnd() | ast.BitOr() | ast.BitXor():
            yield "mask", a
            yield "mask", b


def _unary(node: ast.UnaryOp, parent: ast.AST, field: str) -> Iterator[Change]:
    if isinstance(node.op, ast.USub):
        yield "sign", node.operand
    elif isinstance(node.op, ast.Not | ast.Invert):
        yield "mask", node.operand


def _compare(node: ast.Compare, parent: ast.AST, field: str) -> Iterator[Change]:
    for i, op in enumerate(node.ops):
        new = SWAPPED[type(op)]()
        yield (
            "bound",
            ast.Compare(node.left, [*node.ops[:i], new, *node.ops[i + 1 :]], node.comparators),
        )


def _logic(node: ast.BoolOp, parent: ast.AST, field: str) -> Iterator[Change]:
    for i in range(len(node.values)):
        rest = [*node.values[:i], *node.values[i + 1 :]]
        yield "mask", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _choice(node: ast.IfExp, parent: ast.AST, field: str) -> Iterator[Change]:
    yield "mask", node.body
    yield "mask", node.orelse


def _constant(node: ast.Constant, parent: ast.AST, field: str) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield "mask", ast.Constant(not value)
    elif isinstance(value, float):
        yield "factor", ast.Constant(2 * value if value else 1.0)
    elif isinstance(value, int):
        is_index = isinstance(parent, ast.Subscript | ast.Slice | ast.Tuple | ast.List)
        yield "axis" if is_index else "bound", ast.Constant(value + 1)


def _call(node: ast.Call, parent: ast.AST, field: str) -> Iterator[Change]:
    name = _name_of(node.func)
    args = node.args
    if any(isinstance(a, ast.Starred) for a in args) or not args:
        return
    if name in PRODUCTS and len(args) == 2:
        yield "factor", args[0]
    if name in {"select", "where"} and len(args) == 3:
        yield "mask", args[1]
        yield "mask", args[2]
    if name in {"keep_if", "drop_if", "one_if"}:
        yield "mask", args[1]
    if name == "range":
        last = len(args) - (1 if len(args) < 3 else 2)
        fewer = ast.BinOp(args[last], ast.Sub(), ast.Constant(1))
        yield "bound", ast.Call(node.func, [*args[:last], fewer, *args[last + 1 :]], [])
    if len(args) == 1 and not node.keywords and name.islower() and name not in CONTAINERS:
        yield "term", args[0]
    if name not in SYMMETRIC:
        for i in range(len(args) - 1):
            swapped = [*args[:i], args[i + 1], args[i], *args[i + 2 :]]
            yield "swap", ast.Call(node.func, swapped, node.keywords)


def _name_of(func: ast.expr) -> str:
    if isinstance(func, ast.Name):
        return func.id
    return func.attr if isinstance(func, ast.Attribute) else ""


def _slice(node: ast.Slice, parent: ast.AST, field: str) -> Iterator[Change]:
    for name in ("lower", "upper"):
        end = getattr(node, name)
        if end is not None and not isinstance(end, ast.Constant):
            moved = ast.BinOp(end, ast.Add(), ast.Constant(1))
            new = ast.Slice(node.lower, node.upper, node.step)
            setattr(new, name, moved)
            yield "bound", new


def _augmented(node: ast.AugAssign, parent: ast.AST, field: str) -> Iterator[Change]:
    yield "term", ast.Pass()
    if isinstance(node.op, ast.Add | ast.Sub):
        other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield "sign", ast.AugAssign(node.target, other, node.value)


def _returned(node: ast.Return, parent: ast.AST, field: str) -> Iterator[Change]:
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
        yield "swap", ast.Return(ast.Tuple(node.value.elts[::-1], ast.Load()))


_RULES: Mapping[type[ast.AST], Callable[..., Iterator[Change]]] = {
    ast.BinOp: _binary, ast.UnaryOp: _unary, ast.Compare: _compare, ast.BoolOp: _logic,
    ast.IfExp: _choice, ast.Constant: _constant, ast.Call: _call,
    ast.Slice: _slice, ast.AugAssign: _augmented, ast.Return: _returned,
}  # fmt: skip
