"""The key of a graph in the compilation cache: a hash of all that its code depends on.

That is the graph as given, how it is compiled and for what, and the compiler itself, down to its
files: a changed compiler finds nothing of what another one left. Object code has a key of its own,
of its LLVM text (`assembler.py`).
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from retrograd.errors import FormatError
from retrograd.files import sha256
from retrograd.ir import Graph, print_graph
from retrograd.ops.leaf import Constant
from retrograd.runtime.disk_cache import current_store, key_of
from retrograd.tuning import TUNING

STARTED = time.time()  # of this process, nearly
CLOCK_S = 2.0  # the times of files may be so coarse
ROOT = os.path.dirname(os.path.dirname(__file__))
ROOMS = ("autodiff", "codegen", "ir", "ops", "passes", "runtime", "schedule", "tuning.py")
READING = os.O_RDONLY | getattr(os, "O_BINARY", 0)


class SourceFile(NamedTuple):
    """A file, and what the system says of its content: on POSIX systems nobody can set `changed`,
    on Windows it is when the file was made."""

    path: str
    size: int
    modified: int  # nanoseconds
    changed: int
    number: int

    @staticmethod
    def of(path: str, found: os.stat_result) -> SourceFile:
        return SourceFile(path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


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
        text = print_graph(graph, calls=False)
    except FormatError:
        return None
    return key_of(["program", *identity, compiler, np.__version__, repr(options), text])


@functools.cache
def fingerprint() -> str | None:
    """A hash of the files that the compiler consists of; None where they cannot be read, or were
    changed after this process began, and may not be what it runs.

    Reading them all takes longer than any program takes to load, so the store has the hash under
    what the system says of the files.
    """
    try:
        sources = _sources()
        latest = max(source.modified for source in sources) / 1e9
        if latest >= STARTED:
            return None
        key, store = key_of(["sources", str([*map(tuple, sources)])]), current_store()
        known = store.load(key) if store is not None else None
        if known is not None:
            return known.decode()
        found = _hash(sources)
    except OSError:
        return None
    # A file that changes later is to have another time.
    settled = max(latest, *[source.changed / 1e9 for source in sources]) < STARTED - CLOCK_S
    if store is not None and settled and found is not None:
        store.save(key, found.encode())
    return found


def _sources() -> list[SourceFile]:
    """The files of `ROOMS`, in an order that is always the same."""
    found = []
    todo = [os.path.join(ROOT, room) for room in ROOMS]
    while todo:
        path = todo.pop()
        if path.endswith(".py"):
            found.append(SourceFile.of(path, os.stat(path)))
            continue
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_dir():
                    found.append(SourceFile.of(entry.path, os.stat(entry.path)))
                elif entry.name != "__pycache__":
                    todo.append(entry.path)
    return sorted(found)


def _hash(sources: Sequence[SourceFile]) -> str | None:
    """The hash of all names and contents; None where one is not any more what it was."""
    h = sha256()
    for source in sources:
        # By the system's own functions: with objects for files it would take three times as long.
        file = os.open(source.path, READING)
        try:
            is_same = SourceFile.of(source.path, os.fstat(file)) == source
            content = os.read(file, source.size)
        finally:
            os.close(file)
        if not is_same:
            return None
        h.update(f"{source.path[len(ROOT) :]} {len(content)}\n".encode())
        h.update(content)
    return h.hexdigest()
