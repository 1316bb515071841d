"""The house rules that a program can check: imports point one way, files stay small."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd

SOURCE = Path(retrograd.__file__).parent
FILES = sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")

# For each room the rooms it may import from; every room may import itself, and these.
EVERYWHERE = ("errors", "files", "shared")
CORE = {"ir"}
RULES = {
    "errors": set(),
    "files": set(),
    "shared": set(),
    "accelerate": set(),
    "ir": set(),
    "ops": CORE,
    "autodiff": CORE | {"ops"},
    "control": CORE | {"ops", "autodiff"},
    "passes": CORE | {"ops", "control"},
    "inspect": CORE,
    "onnx": CORE,
    "backends": CORE | {"ops", "control", "passes"},
    "verify": CORE | {"ops", "autodiff", "control", "backends"},
    "frontend": CORE
    | {"accelerate", "ops", "autodiff", "control", "passes", "backends", "inspect", "onnx"},
}
# Rooms built on the public interface only, and on each other in this order.
PUBLIC = [
    "micrograd", "nn", "optim", "io", "data", "gnn", "solvers", "testing", "train", "cli",
    "__main__",
]  # fmt: skip
# Beside the sources: a peer is measured in a process that has not imported retrograd.
BENCH_FILES = sorted((SOURCE.parents[1] / "benchmarks").rglob("*.py"))
# The only imports inside functions: what they bring in is large and not needed by every program.
LAZY = {"llvmlite", "networkx", "onnx", "scipy", "rich", "typer"}


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> list[tuple[str, ast.stmt]]:
    found: list[tuple[str, ast.stmt]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(a.name, node) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            base = node.module or ""
            if base == "retrograd":
                found += [(f"retrograd.{a.name}", node) for a in node.names]
            else:
                found.append((base, node))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    here = room(path)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name, _ in imports(tree):
        parts = name.split(".")
        assert parts[0] != "benchmarks", f"{here} imports {name}"
        if parts[0] != "retrograd":
            continue
        there = parts[1] if len(parts) > 1 else ""
        if there in (here, *EVERYWHERE):
            continue
        if here in RULES:
            assert there in RULES[here], f"{here} imports {name}"
        else:
            earlier = set(PUBLIC[: PUBLIC.index(here)]) | {"frontend", "inspect", "ir", "backends"}
            earlier |= {"accelerate"} if here == "cli" else set()  # says which there are
            public = there not in RULES and there not in PUBLIC
            assert public or there in earlier, f"{here} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_stand_at_the_top(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = [
        (name, node)
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)
        for name, node in imports(f)
    ]
    for name, node in inner:
        top = name.split(".")[0]
        assert top in LAZY or top in sys.stdlib_module_names or "engine" in name, (
            f"{path}:{node.lineno} imports {name} inside a function"
        )


def test_benchmarks_import_what_they_measure_inside_functions():
    """So that the memory and the import time of a peer are its own."""
    code = (
        "import sys, benchmarks.harness.worker, benchmarks.harness.run;"
        "measured = {'retrograd', 'torch', 'jax', 'autograd', 'micrograd'} & set(sys.modules);"
        "assert not measured, measured"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize(
    "path", [*FILES, *BENCH_FILES], ids=lambda p: str(p.relative_to(SOURCE.parent))
)
def test_files_stay_small(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= 450, f"{path} has {lines} lines; split it by topic"


def test_import_is_light():
    code = (
        "import sys, retrograd;"
        "heavy = {'llvmlite', 'networkx', 'scipy', 'torch', 'jax', 'rich', 'typer', 'http',"
        "         'safetensors', 'retrograd.nn', 'html', 'webbrowser', 'tempfile', '_hashlib'};"
        "heavy &= set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_imported_later_is_there_like_the_rest():
    later = {*retrograd.LATER, *retrograd.LATER_NAMES}
    assert later <= {*retrograd.__all__} & {*dir(retrograd)}
    assert all(getattr(retrograd, name) is not None for name in later)
    missing = "nothing"
    with pytest.raises(AttributeError, match="module 'retrograd' has no attribute 'nothing'"):
        getattr(retrograd, missing)


def test_every_public_name_is_listed_and_documented():
    for name in retrograd.__all__:
        thing = getattr(retrograd, name)
        if callable(thing):
            assert thing.__doc__, f"rg.{name} has no docstring"


def test_every_folder_is_a_package():
    """Without `__init__.py` a module can be imported under two names, as two modules."""
    folders = {p.parent for p in FILES}
    assert [f for f in folders if not (f / "__init__.py").exists()] == []
