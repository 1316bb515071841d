"""The house rules that a program can check: imports point one way, folders stay small."""

import ast
import collections
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd

SOURCE = Path(retrograd.__file__).parent
FILES = sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")

# Packages and single modules, each of which may import itself and what stands above it in the list.
# The modules of a package without those of the packages within it: these have lines of their own.
LEVELS = [
    "errors", "coming_from", "files", "shared", "lazy_import", "post_import", "tuning",
    "context_setting", "gc_paused", "pytree", "tree_plan", "tensor_type", "accelerate", "ir",
    "memory_limit",
    "ops.numerics", "ops", "ops.special.incomplete", "ops.special", "ops.random",
    "ops.random.sampling", "ops.linalg", "autodiff", "ops.control",
    "passes", "passes.lowering", "passes.pipeline",
    "schedule", "schedule.tiling", "schedule.memory", "schedule.planning",
    "codegen", "codegen.math", "codegen.gemm", "codegen.emit", "codegen.sort", "codegen.libcalls",
    "codegen.program",
    "runtime.native", "runtime.routines", "runtime", "runtime.executors",
    "runtime.executors.tiered", "xla.lowering", "xla", "wgpu", "wgpu.math", "wgpu.emit",
    "wgpu.specialization", "wgpu.run", "wgpu.control_flow", "wgpu.executable", "wgpu.fallback",
    "nvptx.emit", "nvptx", "backend_registry",
    "onnx", "viz.mathematics", "viz", "viz.pictures", "notebook", "inspect",
    "eager", "eager.immediate", "eager.quick_dispatch", "eager.call_cache", "eager.dispatch",
    "eager.segment_backward", "eager.backward",
    "functions", "functions.linalg", "functions.special", "functions.pytorch", "functions.tensor",
    "functions.creation",
    "functions.fft", "tracing", "functions.linalg.matrix_functions", "functions.numpy_api",
    "functions.random", "functions.pytorch.creation",
    "functions.pytorch.modes", "graph", "transforms", "transforms.jit",
    "transforms.sparse", "tape", "scalar.machine", "scalar", "api",
    "verify.bound_propagation.interval", "verify.bound_propagation.box",
    "verify.bound_propagation.propagation", "verify.bound_propagation.rules",
    "verify.bound_propagation", "verify.records", "verify", "verify.certification",
    "verify.rounding_error",
    "nn.module", "nn", "nn.functional", "nn.utils", "nn.layers",
    "nn.losses", "nn.casting", "nn.lora", "nn.model_summary", "micrograd", "optim",
    "nn.utils.clip_grad", "amp", "metrics", "io", "distributed", "data", "data.transforms", "gnn",
    "gnn.convert",
    "interop", "interop.onnx.registry", "interop.onnx.values", "interop.onnx.dtypes",
    "interop.onnx.narrow", "interop.onnx.model", "interop.onnx.dynamic_size",
    "interop.onnx.operators.ml", "interop.onnx.operators", "interop.onnx",
    "models", "solvers", "testing",
    "autograd", "func", "utils", "train", "train.loop", "train.gpt", "train.graph", "train.images",
    "train.tabular", "cli", "__main__",
]  # fmt: skip
# Modules that import each other, in types at least; the same holds.
CIRCLES: list[set[str]] = []
MOST = 20  # files of Python in a folder, `__init__.py` included
# Beside the sources: a peer is measured in a process that has not imported retrograd.
BENCH_FILES = sorted((SOURCE.parents[1] / "benchmarks").rglob("*.py"))
# The only imports inside functions: what they bring in is large and not needed by every program.
LAZY = {
    "google", "llvmlite", "networkx", "onnx", "scipy", "tensorboard", "click",
    "tokenizers", "pyarrow", "PIL", "jax", "wgpu", "cuda", "vl_convert",
    "mpmath", "sympy",
}  # fmt: skip


def module(path: Path) -> str:
    """The name of the module of a file, without the package that all are in."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(path): path for path in FILES}


def room(name: str) -> str:
    """The line of `LEVELS` that a module stands in."""
    if name in LEVELS:
        return name
    return name.rpartition(".")[0]


@functools.cache
def imports(path: Path) -> list[tuple[str, int, bool]]:
    """What a file imports, in which line, and whether inside a function."""
    found: list[tuple[str, int, bool]] = []
    todo: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    while todo:
        node, is_inner = todo.pop()
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{a.name}" for a in node.names]
        found += [(name, getattr(node, "lineno", 0), is_inner) for name in names]
        is_inner |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        children = ast.iter_child_nodes(node)
        todo += [(child, is_inner) for child in children if not isinstance(child, ast.expr)]
    return found


@functools.cache
def imported(name: str) -> frozenset[str]:
    """The modules of this package that a module imports, those for types alone included."""
    found = set()
    for target, _, _ in imports(MODULES[name]):
        parts = target.split(".")
        assert parts[0] != "benchmarks", f"{name} imports {target}"
        if parts[0] == "retrograd":
            inner = ".".join(parts[1:])
            while inner and inner not in MODULES:
                inner = inner.rpartition(".")[0]
            found.add(inner)
    return frozenset(found - {"", name})


def test_imports_point_one_way():
    """Public names (`import retrograd as rg`) are for what is built on the public interface."""
    level = {name: i for i, name in enumerate(LEVELS)}
    wrong = set()
    for name, path in MODULES.items():
        if path.name == "__init__.py":  # lists what the packages within it hold
            continue
        here = room(name)
        for target in imported(name):
            there = room(target)
            if level[there] > level[here]:
                wrong.add((name, target))
    assert not wrong, "\n".join(f"{a} imports {b}" for a, b in sorted(wrong))


def test_no_modules_import_each_other():
    graph = {name: set(imported(name)) for name in MODULES}
    circles = [c for c in strongly_connected(graph) if len(c) > 1]
    assert sorted(map(sorted, circles)) == sorted(map(sorted, CIRCLES))


def strongly_connected(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of nodes that reach each other."""
    below: dict[str, set[str]] = {}
    for start in graph:
        seen, todo = {start}, [start]
        while todo:
            new = graph[todo.pop()] - seen
            seen |= new
            todo += new
        below[start] = seen
    found: dict[str, set[str]] = {}
    for name, reached in below.items():
        found.setdefault(min(x for x in reached if name in below[x]), set()).add(name)
    return list(found.values())


def test_imports_stand_at_the_top():
    wrong = [
        f"{path}:{line} imports {name} inside a function"
        for path in FILES
        for name, line, is_inner in imports(path)
        if is_inner
        and name.split(".")[0] not in LAZY | set(sys.stdlib_module_names)
        and "engine" not in name
    ]
    assert not wrong, "\n".join(wrong)


def test_benchmarks_import_what_they_measure_inside_functions():
    """So that the memory and the import time of a peer are its own."""
    code = (
        "import sys, benchmarks.harness.worker, benchmarks.harness.run;"
        "measured = {'retrograd', 'torch', 'jax', 'autograd', 'micrograd'} & set(sys.modules);"
        "assert not measured, measured"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_folders_have_at_most_twenty_files():
    counts = collections.Counter(path.parent for path in (*FILES, *BENCH_FILES))
    full = [f"{folder} has {n} files" for folder, n in counts.items() if n > MOST]
    assert not full, "\n".join(full)


def test_import_is_light():
    code = (
        "import sys, retrograd;"
        "heavy = {'llvmlite', 'networkx', 'scipy', 'torch', 'jax', 'click', 'http',"
        "         'safetensors', 'retrograd.nn', 'html', 'webbrowser', 'tempfile', '_hashlib',"
        "         'retrograd.api', 'retrograd.tape', 'retrograd.transforms.sparse',"
        "         'retrograd.viz.graph_document', 'retrograd.onnx.writer',"
        "         'fractions', 'retrograd.functions.special.integrals',"
        "         'retrograd.codegen.emit', 'retrograd.schedule.fusion'};"
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


def test_no_name_hides_a_package_or_module():
    """`import retrograd.a.b` gives the module of that path, and so does `rg.a.b` behind it."""
    code = (
        "import importlib, sys, retrograd\n"
        "for name in sys.argv[1:]:\n"
        "    module, found = importlib.import_module(f'retrograd.{name}'), retrograd\n"
        "    for part in name.split('.'):\n"
        "        found = getattr(found, part)\n"
        "    if found is not module:\n"
        "        print(name, 'is hidden by a', type(found).__name__)\n"
    )
    names = sorted({*MODULES} - {"__main__", "cli.__main__"})
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *names],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
