"""Which statements of which files run: every function is made to say where it is.

In front of each statement, and around the body of each `lambda`, stands a call that notes its line.
The functions that are there get that code (`patch.py`), so that nothing else becomes slower, as it
would with a tracing function of the interpreter.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType

from scripts.mutation.mutants import parse
from scripts.mutation.patch import compiled, inner_code

NOTE = "_note_statement"  # the name of the call, a built-in while coverage is measured
MOST = 1 << 20  # lines of a file

Lines = dict[str, list[int]]


class Notes:
    """The statements noted so far."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths
        self._found: set[int] = set()
        self.note = self._found.add

    def start(self) -> None:
        self._found.clear()

    def lines(self) -> Lines:
        """Of each file the first lines of the statements that ran."""
        found: Lines = {}
        for code in sorted(self._found):
            found.setdefault(self._paths[code // MOST], []).append(code % MOST)
        return found


@contextmanager
def noting(live: Mapping[str, list[FunctionType]]) -> Iterator[Notes]:
    """The live functions of files, by path, note their statements while this lasts."""
    paths = sorted(live)
    notes = Notes(paths)
    before = [(f, f.__code__) for path in paths for f in live[path]]
    for number, path in enumerate(paths):
        tree = parse(Path(path))
        original = compiled(tree, Path(path))
        _Noting(number).visit(tree)
        changed = compiled(ast.fix_missing_locations(tree), Path(path))
        pairs = dict(_pairs(original, changed))
        for function in live[path]:
            if function.__code__ in pairs:
                function.__code__ = pairs[function.__code__]
    setattr(builtins, NOTE, notes.note)
    try:
        yield notes
    finally:
        for function, code in before:
            function.__code__ = code
        delattr(builtins, NOTE)


def _pairs(a: CodeType, b: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield a, b
    for x, y in zip(inner_code(a), inner_code(b), strict=True):
        yield from _pairs(x, y)


class _Noting(ast.NodeTransformer):
    def __init__(self, number: int) -> None:
        self._number = number
        self._depth = 0

    def _note(self, node: ast.stmt | ast.expr) -> ast.expr:
        line = ast.Constant(self._number * MOST + node.lineno)
        call = ast.Call(ast.Name(NOTE, ast.Load()), [line], [])
        return ast.copy_location(call, node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        # The call gives None, so that the body is what the lambda gives.
        node.body = ast.copy_location(ast.BoolOp(ast.Or(), [self._note(node), node.body]), node)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self._depth:
            for field in ("body", "orelse", "finalbody"):
                statements = getattr(node, field, None)
                if isinstance(statements, list):
                    setattr(node, field, [x for s in statements for x in self._noted(s)])
        return node

    def _noted(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.Nonlocal | ast.Global):
            return [node]
        return [ast.copy_location(ast.Expr(self._note(node)), node), node]
