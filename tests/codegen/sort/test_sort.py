"""Compiled sorting: patterns that upset pivots and digits, around the sizes where the way changes,
with guards around all memory."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.sort import ArgSort, Sort
from retrograd.runtime.native import numpy_api
from tests.runtime.agreement import GuardedProgram

PATTERNS = {
    "random": lambda r, n: r.standard_normal(n) * 100,
    "sorted": lambda r, n: np.arange(n),
    "reversed": lambda r, n: np.arange(n)[::-1],
    "equal": lambda r, n: np.zeros(n),
    "few": lambda r, n: r.integers(0, 3, n),
    "pipe": lambda r, n: np.minimum(np.arange(n), np.arange(n)[::-1]),
    "teeth": lambda r, n: np.arange(n) % 17,
}
SIZES = (0, 1, 7, 8, 9, 16, 33, 64, 65, 127, 128, 129, 200, 1000, 3001)


def marked(r, x):
    """The numbers with special values among them."""
    x, n = x.copy(), len(x)
    if n and x.dtype.kind == "f":
        for value in (np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan):
            x[r.integers(0, n, n // 10 + 1)] = value
    elif n:
        ends = np.iinfo(x.dtype)
        for value in (ends.min, ends.max):
            x[r.integers(0, n, n // 5 + 1)] = value
    return x


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int32", "uint32", "int64", "uint64"]
)
@pytest.mark.sample(5)
def test_patterns(dtype, descending):
    x = input_node(spec((Dim("N"),), dtype))
    graph = Graph([x], [Sort(0, descending)(x), ArgSort(0, descending)(x)])
    program = GuardedProgram(graph)
    r = np.random.default_rng(0)
    for name, pattern in PATTERNS.items():
        for n in SIZES:
            plain = np.abs(pattern(r, n)) if dtype.startswith("u") else pattern(r, n)
            plain = plain.astype(dtype)
            for a in (plain, marked(r, plain)):
                keys = a if not descending else -a if a.dtype.kind == "f" else ~a
                order = np.argsort(keys, kind="stable")
                values, found = program([a])
                np.testing.assert_array_equal(found, order, f"{name}, {n}")
                assert values.tobytes() == a[order].tobytes(), (name, n)
    program.check_guards()


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint32", "int64"])
@pytest.mark.parametrize("count", [0, 1, 24, 25, 130])
@pytest.mark.sample(15)
def test_the_first_places(count, dtype, descending):
    x = input_node(spec((2, Dim("N")), dtype))
    program = GuardedProgram(Graph([x], [ArgSort(1, descending, count)(x)]))
    r = np.random.default_rng(0)
    for pattern in PATTERNS.values():
        for n in (130, 511, 512, 1040, 3001):
            plain = np.abs([pattern(r, n), pattern(r, n)[::-1]]).astype(dtype)
            for a in (plain, np.stack([marked(r, row) for row in plain])):
                keys = a if not descending else -a if a.dtype.kind == "f" else ~a
                order = np.argsort(keys, axis=1, kind="stable")[:, :count]
                np.testing.assert_array_equal(program([a])[0], order)
    program.check_guards()


def test_another_version_of_numpys_interface(monkeypatch):
    """Then the interpreter sorts: the same results, in programs that are compiled already too."""
    monkeypatch.setattr(numpy_api, "KNOWN", 0)
    numpy_api.sort_address.cache_clear()
    try:
        x = input_node(spec((3, Dim("N"))))
        program = GuardedProgram(Graph([x], [Sort(1, True)(x), ArgSort(1)(x)]))
        a = marked(np.random.default_rng(0), np.arange(600.0, dtype=np.float32)).reshape(3, 200)
        values, order = program([a])
        np.testing.assert_array_equal(order, np.argsort(a, axis=1, kind="stable"))
        np.testing.assert_array_equal(
            values, np.take_along_axis(a, np.argsort(-a, kind="stable"), 1)
        )
        program.check_guards()
    finally:
        numpy_api.sort_address.cache_clear()
