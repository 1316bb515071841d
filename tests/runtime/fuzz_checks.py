"""What the fuzz tests ask of the programs of one graph."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from retrograd.ir import Graph, as_dtype
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.runtime.thread_pool import current_team
from tests.runtime.agreement import GuardedProgram
from tests.runtime.fuzz_graphs import Fuzz

COUNTS = (1, 2, 3, 7)  # of threads
# How far apart results may be that were rounded differently, by the coarsest dtype of the graph.
TOLERANCE = {"float16": 0.2, "bfloat16": 0.8, "float32": 2e-2, "float64": 1e-6}


class Threaded(GuardedProgram):
    """On so many threads, whatever this machine has."""

    def __init__(self, graph: Graph, count: int) -> None:
        self.wanted = count
        super().__init__(graph)

    def threads(self) -> int:
        return self.wanted


def gather_threads() -> None:
    """Have the workers of the largest count arrive."""
    team = current_team()
    team.prepare(max(COUNTS))
    end = time.monotonic() + 30
    while team.threads < max(COUNTS) and time.monotonic() < end:
        time.sleep(0.001)
    assert team.threads >= max(COUNTS)


def assert_agrees(f: Fuzz, graph: Graph, program: GuardedProgram, seed: int) -> None:
    """The program gives what the reference gives, for all sizes, and keeps to its memory."""
    reference = ReferenceProgram(graph)
    tolerance = max(TOLERANCE.get(n.dtype.name, 0) for n in graph.nodes)
    for sizes in f.bindings:
        arrays = f.arrays(sizes, seed)
        before = [a.tobytes() for a in arrays]
        with np.errstate(all="ignore"):
            expected = reference(arrays)
        for _ in range(2):  # the second call reuses the arena
            found = program(arrays)
            program.check_guards()
            assert [a.tobytes() for a in arrays] == before, "an input was changed"
            for y, r, node in zip(found, expected, graph.outputs, strict=True):
                bound = 0 if node in f.exact else tolerance
                assert_near(y, r, bound, f"{sizes}: {node.describe()}")


def assert_near(y: Array, r: Array, bound: float, what: str) -> None:
    assert (y.dtype, y.shape) == (r.dtype, r.shape), what
    if not as_dtype(r.dtype).is_float:
        np.testing.assert_array_equal(y, r, err_msg=what)
        return
    a, b = y.astype(np.float64), r.astype(np.float64)
    with np.errstate(all="ignore"):
        near = (a == b) | (np.abs(a - b) <= bound * np.maximum(1, np.abs(b)))
    near |= np.isnan(a) & np.isnan(b)
    assert near.all(), f"{what}: {a[~near][:3]} instead of {b[~near][:3]}"


def assert_equal_bits(f: Fuzz, programs: Sequence[GuardedProgram], seed: int) -> None:
    """All programs give the same, to the bit but for the payload of NaN."""
    for sizes in f.bindings:
        arrays = f.arrays(sizes, seed)
        first = programs[0](arrays)
        for k, program in enumerate(programs):
            for y, z in zip(program(arrays), first, strict=True):
                same = y.tobytes() == z.tobytes() or same_but_nan(y, z)
                assert same, f"program {k} differs from the first at {sizes}"
            program.check_guards()


def same_but_nan(y: Array, z: Array) -> bool:
    if not as_dtype(y.dtype).is_float:
        return False
    y, z = y.astype(np.float64), z.astype(np.float64)
    return np.array_equal(y, z, equal_nan=True) and np.array_equal(
        np.signbit(y[~np.isnan(y)]), np.signbit(z[~np.isnan(z)])
    )
