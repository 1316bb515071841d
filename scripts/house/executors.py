"""How many things run a graph."""

from __future__ import annotations

import ast

from scripts.house.op_knowledge import last_name
from scripts.house.row import Row, counted
from scripts.house.tree import Tree

RUN = ("__call__", "run", "execute")
GIVEN, RESULT = ("Sequence[Array]", "list[Array]"), "list[Array]"


def rows(tree: Tree) -> list[Row]:
    return [
        counted("program_classes", "program classes (arrays to arrays)", programs(tree), "4"),
        counted("node_loops", "files that compute node by node", evaluating(tree), "1"),
    ]


def programs(tree: Tree) -> list[str]:
    """Classes, no protocols, that take a sequence of arrays and give a list of arrays."""
    found = []
    for path, node in tree.where([ast.ClassDef]):
        if "Protocol" not in map(last_name, node.bases) and any(map(runs, node.body)):
            found.append(f"{path}:{node.lineno} {node.name}")
    return found


def runs(statement: ast.stmt) -> bool:
    """Whether this is a method that computes the results of a program."""
    if not isinstance(statement, ast.FunctionDef) or statement.name not in RUN:
        return False
    given = [ast.unparse(a.annotation) for a in statement.args.args[1:] if a.annotation]
    result = ast.unparse(statement.returns) if statement.returns else ""
    return result == RESULT and any(one in GIVEN for one in given)


def evaluating(tree: Tree) -> list[str]:
    """Files that apply the definition of a node's op to arrays:
    `node.prim.bind(sizes).reference(*arrays)`, or the same of `node.op`."""

    def applies(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(attr="reference", value=op), args=[ast.Starred()]):
                if isinstance(op, ast.Call) and last_name(op.func) == "bind":
                    assert isinstance(op.func, ast.Attribute)
                    op = op.func.value
                return isinstance(op, ast.Attribute) and op.attr in ("prim", "op")
        return False

    return sorted({path for path, _ in tree.where([ast.Call], applies)})
