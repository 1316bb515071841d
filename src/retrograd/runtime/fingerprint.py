"""When two programs are the same: all that the code of a program depends on.

That is the graph as given, how it is compiled and for what, and the compiler itself, down to its
files: a changed compiler finds nothing of what another one left.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from retrograd.errors import FormatError
from retrograd.files import sha256
from retrograd.ir import Graph
from retrograd.ops.leaf import Constant
from retrograd.runtime.disk_cache import key_of

STARTED = time.time()  # of this process, nearly
LARGEST = 1 << 24  # bytes of constants in a graph; hashing more costs more than it saves
ROOMS = ("autodiff", "codegen", "ir", "ops", "passes", "runtime", "schedule")


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
    compiler = fingerprint() if constants <= LARGEST else None
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
        for room in ROOMS:
            for folder, inner, names in os.walk(root / room):
                inner[:] = sorted(set(inner) - {"__pycache__"})
                for name in sorted(names):
                    with open(os.path.join(folder, name), "rb") as file:
                        if os.fstat(file.fileno()).st_mtime >= STARTED:
                            return None
                        content = file.read()
                    h.update(f"{name} {len(content)}\n".encode())
                    h.update(content)
                    found = True
    except OSError:
        return None
    return h.hexdigest() if found else None
