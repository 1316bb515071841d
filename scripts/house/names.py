"""Names that mean several things, numbers that tune, machine text in strings."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from scripts.house.op_knowledge import last_name
from scripts.house.row import Row, counted
from scripts.house.tree import Tree

CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
# A whole function of LLVM IR: its head, a way out of it, its end.
LLVM_FUNCTION = re.compile(
    r"^define\b[^\n]*@[^{]*\{.*?^ *(ret|br|unreachable|musttail)\b.*?^\}+", re.M | re.S
)
# Formulas, and what has to agree with C, with libraries or with files: these numbers decide
# nothing.
FORMULAS = ("codegen/math/", "ops/numerics/", "ops/random/", "ops/special/")
LAYOUTS = ("codegen/launch_layout.py", "runtime/native/")
PACKAGE_OF_WORDS = "nn/"  # may name its classes like anything else: they are PyTorch's


def rows(tree: Tree) -> list[Row]:
    numbers = tuning_numbers(tree)
    text = runtime_text(tree)
    return [
        counted(
            "class_names", "class names with several meanings, outside nn", meanings(tree), "0"
        ),
        counted("tuning_numbers", "numbers as module-level constants", numbers, "one cost model"),
        counted("tuning_names", "  names of such constants", {n.split()[1] for n in numbers}),
        Row(
            "llvm_text",
            "lines of LLVM functions written out in Python strings",
            sum(text.values()),
            "0: C",
            [f"{path} {lines}" for path, lines in sorted(text.items()) if lines],
        ),
    ]


def meanings(tree: Tree) -> list[str]:
    """Names of classes that are declared in several modules; not those that extend one another."""
    declared: dict[str, list[str]] = defaultdict(list)
    for file in tree.files:
        for statement in file.tree.body:
            if isinstance(statement, ast.ClassDef) and not file.path.startswith(PACKAGE_OF_WORDS):
                extends = statement.name in map(last_name, statement.bases)
                declared[statement.name] += [] if extends else [file.path]
    return [f"{n} {len(p)}: {', '.join(p)}" for n, p in declared.items() if len(p) > 1]


def tuning_numbers(tree: Tree) -> list[str]:
    """Numbers as constants of modules, but for folders of mathematical formulas and of layouts that
    are shared with C (`FORMULAS`, `LAYOUTS`)."""
    return [
        f"{file.path}:{statement.lineno} {name}"
        for file in tree.files
        if not file.path.startswith((*FORMULAS, *LAYOUTS))
        for statement in file.tree.body
        for name, value in assigned(statement)
        if CONSTANT.fullmatch(name) and is_number(value)
    ]


def assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are assigned to."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            yield from zip(map(last_name, names), values, strict=False)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value


def is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=number):
            return isinstance(number, int | float) and not isinstance(number, bool)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
    return False


def runtime_text(tree: Tree) -> dict[str, int]:
    """By file, the lines of the strings that hold whole functions of LLVM IR.

    What emits code writes the body of a function instruction by instruction, and is not counted.
    """
    return {
        file.path: sum(
            text.count("\n")
            for text in strings(file.tree)
            if LLVM_FUNCTION.search(text.replace("{{", "{").replace("}}", "}"))
        )
        for file in tree.files
        if "define " in file.text
    }


def strings(node: ast.AST) -> Iterator[str]:
    """The strings below a node, with `0` for what a string is formatted with."""
    match node:
        case ast.JoinedStr(values=values):
            yield "".join(
                v.value if isinstance(v, ast.Constant) and isinstance(v.value, str) else "0"
                for v in values
            )
        case ast.Constant(value=str(text)):
            yield text
        case _:
            for child in ast.iter_child_nodes(node):
                yield from strings(child)
