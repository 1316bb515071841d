"""Compiled sorting: patterns that upset pivots and digits, around the sizes where the way changes,
with guards around all memory."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.sort import ArgSort, Sort
from tests.codegen.sort.patterns import PATTERNS, marked
from tests.runtime.agreement import GuardedProgram

SIZES = (0, 1, 7, 8, 9, 16, 33, 64, 65, 127, 128, 129, 200, 1000, 3001)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int32", "uint32", "int64", "uint64"]
)
@pytest.mark.sample(4)
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
