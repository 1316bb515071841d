"""Where the source says something about single ops: tables, comparisons, names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from scripts.house.row import Row, counted
from scripts.house.tree import Tree

MEMBERSHIP = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
COLLECTIONS = {"dict", "frozenset", "fromkeys", "set", "tuple", "MappingProxyType"}
# What is to be independent of an op's own words: samples of it, and what its derivatives are said
# to be. They are by op, one for each.
INDEPENDENT = ("verify/records/", "verify/certification/conventions.py")
EXAMPLES = {"flip": "Flip", "argsort": "ArgSort"}  # ops that hardly any file needs to know


def rows(tree: Tree, names: frozenset[str], classes: frozenset[str]) -> list[Row]:
    """Rows for ops of these names, and of these classes."""
    by_name, by_class = tables(tree, names), tables(tree, classes)
    equal, compared = comparisons(tree, ast.Eq), comparisons(tree, *MEMBERSHIP)
    return [
        counted("op_tables", "module-level tables that name two or more ops", by_name, "traits"),
        counted("op_table_files", "  files with such tables", files_of(by_name), "10"),
        counted("class_tables", "module-level tables of two or more classes of ops", by_class),
        counted("op_equals", 'comparisons `node.op == "..."`', equal, "traits"),
        counted("op_equal_files", "  files with such comparisons", files_of(equal), "10"),
        counted("op_comparisons", "  with `!=`, `in` and `not in` as well", compared, "traits"),
        counted("op_comparison_files", "  files with any of them", files_of(compared), "10"),
        *(
            counted(f"knows_{name}", f"source files that know the op `{name}`", known, "6")
            for name, of in EXAMPLES.items()
            for known in [knowing(tree, name, of)]
        ),
    ]


def files_of(places: list[str]) -> set[str]:
    """The files of places that are written as `file:line what`."""
    return {place.split(":")[0] for place in places}


def tables(tree: Tree, names: frozenset[str]) -> list[str]:
    """Assignments at the level of a module whose value is a collection with two of the names, as
    strings or as classes; not the list of what a module exports."""
    found = []
    for file in tree.files:
        if file.path.startswith(INDEPENDENT):
            continue
        for statement in file.tree.body:
            if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
                continue
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if not isinstance(target, ast.Name) or target.id == "__all__":
                continue
            if len(names & set(members(statement.value))) > 1:
                found.append(f"{file.path}:{statement.lineno} {target.id}")
    return found


def members(value: ast.expr) -> Iterator[str]:
    """Strings and names of classes in a collection: elements, keys, values, and what is in them."""
    if isinstance(value, ast.Dict):
        for part in (*value.keys, *value.values):
            if part is not None:
                yield from element(part)
    elif isinstance(value, ast.Set | ast.Tuple | ast.List):
        for part in value.elts:
            yield from element(part)
    elif isinstance(value, ast.BinOp):
        yield from members(value.left)
        yield from members(value.right)
    elif isinstance(value, ast.Call) and last_name(value.func) in COLLECTIONS:
        for part in value.args:
            yield from members(part)
        for keyword in value.keywords:
            yield keyword.arg or ""
            yield from element(keyword.value)


def element(part: ast.expr) -> Iterator[str]:
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        yield part.value
    elif isinstance(part, ast.Name | ast.Attribute):
        if last_name(part)[:1].isupper():
            yield last_name(part)
    else:
        yield from members(part.value if isinstance(part, ast.Starred) else part)


def last_name(node: ast.expr) -> str:
    """`c` of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def comparisons(tree: Tree, *operators: type[ast.cmpop]) -> list[str]:
    """Comparisons of an attribute `op`, or of the `name` of an `op` or `prim`, with strings."""
    found = []
    for path, node in tree.where([ast.Compare]):
        sides = (node.left, node.comparators[0])
        if (
            isinstance(node.ops[0], operators)
            and any(map(is_op_name, sides))
            and any(map(is_text, sides))
            and not path.startswith(INDEPENDENT)
        ):
            found.append(f"{path}:{node.lineno} {ast.unparse(node)}")
    return found


def is_text(node: ast.expr) -> bool:
    """Whether this is a string, or a collection of strings written out."""
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return any(map(is_text, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def is_op_name(node: ast.expr) -> bool:
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr == "op" or (node.attr == "name" and last_name(node.value) in ("op", "prim"))


def knowing(tree: Tree, name: str, of: str) -> list[str]:
    """Files that have an op's name as a string, or the name of its class."""

    kinds: tuple[type[ast.AST], ...] = (
        ast.Constant, ast.Name, ast.Attribute, ast.ClassDef, ast.alias,
    )  # fmt: skip

    def is_known(node: ast.AST) -> bool:
        match node:
            case ast.Constant(value=text):
                return bool(text == name)
            case ast.Name(id=text) | ast.Attribute(attr=text):
                return text == of
            case ast.ClassDef(name=text) | ast.alias(name=text):
                return text == of
        return False

    found = {path for path, _ in tree.where(kinds, is_known)}
    return sorted(path for path in found if not path.startswith(INDEPENDENT))
