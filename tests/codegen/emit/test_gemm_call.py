"""The bits of small contractions do not tell whether their sizes were known when compiling."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, float32, float64, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.runtime.executable import Executable

M = Dim("M")
# Odd ones, some of them on both sides of full tiles and vectors.
SIZES = [(1, 5, 9), (5, 17, 3), (8, 64, 10), (33, 40, 50), (70, 60, 200)]


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
@pytest.mark.sample(2)
def test_static_and_symbolic(dtype, turned):
    """All layouts of `a[m, k] @ b[k, n]`, the rows named or not."""
    rng = np.random.default_rng(0)

    def program(m, k, n):
        a = input_node(spec((k, m) if turned[0] else (m, k), dtype))
        b = input_node(spec((n, k) if turned[1] else (k, n), dtype))
        axes = ((0,) if turned[0] else (1,)), ((1,) if turned[1] else (0,))
        return Executable(Graph([a, b], [DotGeneral(*axes, (), ())(a, b)]))

    for m, k, n in SIZES:
        shapes = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))
        arrays = [rng.normal(size=s).astype(dtype.dtype) for s in shapes]
        (expected,) = program(m, k, n)(arrays)
        np.testing.assert_array_equal(program(M, k, n)(arrays)[0], expected)


def test_rows_of_a_stack():
    """The same of stacks of products."""
    rng = np.random.default_rng(1)

    def program(batch, m):
        a, b = input_node(spec((batch, m, 20), float32)), input_node(spec((batch, 20, 9), float32))
        return Executable(Graph([a, b], [DotGeneral((2,), (1,), (0,), (0,))(a, b)]))

    named = program(Dim("B"), M)
    for batch, m in ((2, 3), (3, 8), (4, 13)):
        arrays = [rng.normal(size=s).astype("f") for s in ((batch, m, 20), (batch, 20, 9))]
        np.testing.assert_array_equal(named(arrays)[0], program(batch, m)(arrays)[0])
