"""The first few places of rows, around the sizes where they are selected rather than sorted."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.sort import ArgSort
from tests.codegen.sort.patterns import PATTERNS, marked
from tests.runtime.agreement import GuardedProgram


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint32", "int64"])
@pytest.mark.parametrize("count", [0, 1, 24, 25, 130])
@pytest.mark.sample(10)
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
