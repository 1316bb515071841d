"""The key of a graph in the compilation cache: a hash of all that its code depends on.

That is the graph as given, how it is compiled and for what, and the compiler itself, down to its
files: a changed compiler finds nothing of what another one left. Object code has a key of its own,
of its LLVM text (`assembler.py`).
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from retrograd.errors import FormatError
from retrograd.files import sha256
from retrograd.ir import Graph
from retrograd.ops.leaf import Constant
from retrograd.runtime.disk_cache import key_of
from retrograd.tuning import TUNING

STARTED = time.time()  # of this process, nearly
ROOMS = ("autodiff", "codegen", "ir", "ops", "passes", "runtime", "schedule", "tuning.py")


def program_key(graph: Graph, identity: Sequence[str], *options: object) -> str | None:
    """The key of what a graph is compiled to; None where there is none to rely on: operations from
    elsewhere, sources that cannot be read, large constants."""
    constants = 0
    for node in graph.body:
        prim = node.prim
        if not type(prim).__module__.startswith("retrograd."):
            return None
        if isinstance(prim, Constant):
            constants += prim.value.nbytes
    compiler = fingerprint() if constants <= TUNING.hashed_constant_bytes else None
    if compiler is None:
        return None
    try:
        text = str(graph)
    except FormatError:
        return None
    return key_of(["program", *identity, compiler, np.__version__, repr(options), text])


@functools.cache
def fingerprint() -> str | None:
    """A hash of the files that the compiler consists of; None where they cannot be read, or were
    changed after this process began, and may not be what it runs."""
    h = sha256()
    root = Path(__file__).parents[1]
    found = False
    try:
        for path in (path for room in ROOMS for path in _sources(root / room)):
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_mtime >= STARTED:
                    return None
                content = file.read()
            h.update(f"{path.name} {len(content)}\n".encode())
            h.update(content)
            found = True
    except OSError:
        return None
    return h.hexdigest() if found else None


def _sources(path: Path) -> Iterator[Path]:
    """A file, or all that are in a folder, in an order that is always the same."""
    if path.is_file():
        yield path
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(set(inner) - {"__pycache__"})
        for name in sorted(names):
            yield Path(folder, name)
