"""Backends by name: each makes a runnable `Program` of a `Graph`."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from types import ModuleType

from retrograd.errors import BackendError, DTypeError
from retrograd.ir import Graph
from retrograd.passes import optimize
from retrograd.passes.lowering.complex import has_complex
from retrograd.runtime.backend import Backend, Program, WrappedProgram
from retrograd.runtime.executable import Executable, start_compiler
from retrograd.runtime.executors.bytecode import BytecodeExecutor
from retrograd.runtime.executors.nan_observer import CHECKED, CheckedProgram
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.runtime.executors.tiered import Patience, is_long, tiered
from retrograd.runtime.paired_program import on_real
from retrograd.shared import IMPORTING

PROFILED = "profiled"  # a backend that is no choice of a user


def profiled(graph: Graph) -> Program:
    """Native code, each call of which tells how long its kernels took."""
    return WrappedProgram(graph, Executable(graph, timed=True, simplify=True).told)


def native(graph: Graph, donate: Collection[int] = ()) -> Program:
    """Native code for a graph: one function, or, where that would take minutes to compile, many
    small operations one after the other (`BytecodeExecutor`)."""
    if is_long(graph):
        return BytecodeExecutor(optimize(graph))
    return Executable(graph, donate=donate, simplify=True)


# The reference backend runs a graph as it was written, node by node: it defines the meaning. The
# others get it optimised.
BACKENDS: dict[str, Backend] = {
    "reference": ReferenceProgram,
    CHECKED: CheckedProgram,  # of `rg.debug`
    PROFILED: lambda graph: on_real(graph, profiled),  # of `rg.profile`
    "llvm": lambda graph: on_real(graph, native),
}


# Those on engines that come with an extra. Each is a package that is imported once it is asked for,
# with two functions: `missing()` says what it lacks here and the remedy, or None; `program(graph)`
# is the backend.
FALLBACK = "+llvm"  # behind the name of one of these: what it cannot do is done by native code
ENGINES = {
    "wgpu": "retrograd.wgpu",
    "xla": "retrograd.xla",
    "cuda": "retrograd.nvptx",
}


def available() -> list[str]:
    """Names of the backends that can run here.

    >>> import retrograd as rg
    >>> rg.backends()[:2]
    ['reference', 'llvm']
    """
    own = [name for name in BACKENDS if name not in (CHECKED, PROFILED)]
    return own + [name for name in ENGINES if engine_of(name).missing() is None]


def lacking(name: str) -> str | None:
    """Why an engine cannot run here, and the remedy; None where it can."""
    found: str | None = engine_of(name).missing()
    return found


def find(name: str) -> Backend:
    """The backend of this name; `BackendError` lists those there are, or says what the one asked
    for lacks here."""
    if name in BACKENDS:
        return BACKENDS[name]
    if not isinstance(name, str):
        raise DTypeError(f"a backend has a name, not {name!r}; there are {', '.join(available())}")
    asked, (name, plus, _) = name, name.partition(FALLBACK)
    if name not in ENGINES or (plus and asked != name + FALLBACK):
        raise BackendError(
            f"there is no backend named {asked!r} here; there are {', '.join(available())}"
        )
    engine = engine_of(name)
    if reason := engine.missing():
        raise BackendError(f"the backend {name!r} cannot run here: {reason}")
    if plus and not hasattr(engine, "program_with_fallback"):
        raise BackendError(f"the backend {name!r} does not leave operations to the CPU")
    made: Backend = engine.program_with_fallback if plus else engine.program
    return made


def is_device(name: str) -> bool:
    """Whether a backend may leave what it computes on a device."""
    return name.removesuffix(FALLBACK) in ENGINES


def compiles_each_size(name: str) -> bool:
    """Whether a program is compiled anew for each choice of its named sizes, which takes long: it
    is better called with arrays of few shapes."""
    engine = name.removesuffix(FALLBACK)
    return engine in ENGINES and getattr(engine_of(engine), "COMPILES_EACH_SIZE", False)


def engine_of(name: str) -> ModuleType:
    """The package of an engine, imported now."""
    with IMPORTING:
        return import_module(ENGINES[name])


def compile_graph(graph: Graph, backend: str, donate: Collection[int] = ()) -> Program:
    """A program that runs the graph on the named backend.

    `donate` lists inputs that a program may overwrite when it is called by `consume`.
    """
    if donate and backend == "llvm" and not has_complex(graph):
        return native(graph, donate)
    if donate and backend in ("xla", "wgpu"):
        made: Program = find(backend)(graph, donate)  # type: ignore[call-arg]
        return made
    return find(backend)(graph)


def start_graph(graph: Graph, backend: str, patience: Patience = Patience.NODES) -> Program:
    """A program that need not run often: one that is compiled only when it does, where the backend
    compiles; a large one at once, as far as there is no more `patience`. The bits of its results
    are those of `compile_graph`."""
    if backend == "llvm":
        # The first result waits for the compiler, whether it needs it or not: the next ones will.
        start_compiler()
        return on_real(graph, lambda g: tiered(g, patience, optimize))
    return find(backend)(graph)
