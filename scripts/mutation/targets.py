"""What is mutated: the derivative rules, and the lowerings.

Rules are `vjp`, `jvp`, `batch` and `smooth` of the operations, the derivatives in the tables of
elementwise operations (functions of a cotangent `g`), what any of these call in `ops/`, and
`autodiff/` as a whole. Lowerings are all functions of `passes/`, `schedule/` and `codegen/`.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

import retrograd
from scripts.mutation.mutants import parse

SOURCE = Path(retrograd.__file__).parent
RULES = ("ops", "autodiff")
LOWERINGS = ("passes", "schedule", "codegen")
ROOTS = {"vjp", "jvp", "batch", "smooth"}
# Not rules, although called like something that a rule calls: types, meanings, costs, refusals.
OTHERS = {
    "infer", "reference", "formula", "flops", "bind", "refusal", "describe", "check", "text",
    "values", "index", "result_type",
}  # fmt: skip
# What operations mean, in NumPy: not rules, although functions of the same names are called there.
MEANINGS = (
    "ops/special/hypergeometric.py",
    "ops/special/portable.py",
    "ops/special/reference.py",
    "ops/numerics/",
)
WHOLE = {"ops/even.py"}  # of functions that a decorator enters in a table of rules

Place = tuple[int, int]  # line and column of a function


@dataclasses.dataclass(frozen=True)
class _Function:
    name: str
    place: Place
    is_root: bool
    calls: frozenset[str]


def files(chosen: str = "rules") -> list[str]:
    """The files of `rules`, of `lowerings`, or below a path like `ops/linalg` or `ops/conv.py`."""
    rooms = {"rules": RULES, "lowerings": LOWERINGS}.get(chosen, (chosen,))
    found: list[Path] = []
    for room in rooms:
        path = SOURCE / room
        if not path.exists():
            raise SystemExit(
                f"nothing to mutate at {room!r}: give rules, lowerings, or a file or folder "
                f"below {SOURCE}, as ops/elementwise.py"
            )
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [p.relative_to(SOURCE).as_posix() for p in found if p.name != "__init__.py"]


def is_rule(file: str) -> bool:
    return file.split("/")[0] in RULES


def files_beside(some: Iterable[str]) -> list[str]:
    """All files of the subjects that some are of, so that what tests reach is found once."""
    kinds = {"rules" if is_rule(file) else "lowerings" for file in some}
    return [file for kind in sorted(kinds) for file in files(kind)]


def rule_functions() -> dict[str, set[Place]]:
    """For each file of `ops/` and `autodiff/` where the functions are that rules consist of."""
    known = {f: _File.read(f) for f in files("rules") if not f.startswith(MEANINGS)}
    todo = [(file, f) for file, of in known.items() for f in of.functions if f.is_root]
    found: dict[str, set[Place]] = {}
    while todo:
        file, here = todo.pop()
        places = found.setdefault(file, set())
        if here.place not in places:
            places.add(here.place)
            calls = here.calls - OTHERS
            for other in {file, *known[file].imports} & known.keys():
                allowed = calls if other == file else calls & known[file].imports[other]
                todo += [(other, f) for f in known[other].functions if f.name in allowed]
    return found


@dataclasses.dataclass(frozen=True)
class _File:
    functions: list[_Function]
    imports: dict[str, set[str]]  # file to what is taken from it: functions, and methods of classes

    @classmethod
    def read(cls, file: str) -> _File:
        tree = _tree(file)
        return cls(list(_functions(tree, file)), _imports(tree))


@functools.cache
def _tree(file: str) -> ast.Module:
    return parse(SOURCE / file)


def _imports(tree: ast.Module) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".")[1:]
        module = "/".join(parts) + ".py"
        for name in node.names:
            found.setdefault(module, set()).add(name.name)
            inner = "/".join([*parts, name.name]) + ".py"  # `from package import module`
            if (SOURCE / inner).exists():
                found[inner] = _all_names(inner)
            elif (SOURCE / module).exists() and name.name[:1].isupper():
                found[module] |= _methods(module, name.name)
    return found


@functools.cache
def _methods(file: str, name: str) -> frozenset[str]:
    tree = _tree(file)
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    return frozenset(f.name for c in classes for f in c.body if isinstance(f, ast.FunctionDef))


@functools.cache
def _all_names(file: str) -> set[str]:
    tree = _tree(file)
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def _functions(tree: ast.Module, file: str) -> Iterator[_Function]:
    """The outermost functions of a file."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            todo += ast.iter_child_nodes(node)
            continue
        name = node.name if isinstance(node, ast.FunctionDef) else ""
        args = node.args.posonlyargs + node.args.args
        of_cotangent = not name and bool(args) and args[0].arg == "g"
        whole = file in WHOLE or file.startswith("autodiff/")
        calls = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        calls |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        yield _Function(
            name, (node.lineno, node.col_offset), name in ROOTS or of_cotangent or whole,
            frozenset(calls),
        )  # fmt: skip
