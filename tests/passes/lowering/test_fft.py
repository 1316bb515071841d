"""The discrete Fourier transform as products of small matrices."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from retrograd.backend_registry import compile_graph, start_graph
from retrograd.errors import MemoryLimitError
from retrograd.ir import Graph, float32, float64, spec
from retrograd.ops.fft import Fft
from retrograd.ops.leaf import input_node
from retrograd.passes.lowering.fft import _turns, fourier
from retrograd.runtime.executors.reference import ReferenceProgram


def graph_of(shape, axis, inverse=False, dtype=float64):
    x, y = (input_node(spec(shape, dtype)) for _ in range(2))
    return Graph([x, y], fourier((x, y), axis, inverse))


# How many products there are: one up to 96 elements, one for each factor, and those of two
# transforms of a power of two where a prime is too large.
PRODUCTS = {1: 0, 2: 1, 96: 1, 97: 4, 128: 2, 1024: 2, 194: 4, 30 * 32 * 4: 3}


@pytest.mark.parametrize("n", PRODUCTS)
@pytest.mark.parametrize("inverse", [False, True])
def test_factors_and_values(n, inverse):
    graph = graph_of((2, n), 1, inverse)
    assert sum(node.op == "dot_general" for node in graph.body) == PRODUCTS[n]
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, 2, n))
    x, y = ReferenceProgram(graph)([a, b])
    z = a + 1j * b
    right = np.fft.ifft(z, norm="forward") if inverse else np.fft.fft(z)
    np.testing.assert_allclose(x + 1j * y, right, rtol=0, atol=1e-14 * n)


def test_along_an_axis_in_the_middle():
    a = np.random.default_rng(0).normal(size=(2, 100, 3))
    x, y = ReferenceProgram(graph_of(a.shape, 1))([a, 0 * a])
    np.testing.assert_allclose(x + 1j * y, np.fft.fft(a, axis=1), atol=1e-12)


def test_tables_have_the_dtype_and_what_no_memory_holds_is_refused():
    graph = graph_of((128,), 0, dtype=float32)
    assert {n.dtype for n in graph.nodes} == {float32}
    with pytest.raises(MemoryLimitError, match="a Fourier transform"):
        graph_of((2**45,), 0)


@pytest.mark.parametrize(
    "n", [1, 2, 3, 7, 16, 60, 96, 97, 100, 101, 128, 194, 1000, 1009, 4096, 30030]
)
@pytest.mark.sample(4)
def test_transforms_of_all_kinds_of_sizes(n: int) -> None:
    rng = np.random.default_rng(n)
    for dtype, tolerance in ((np.complex64, 2e-6), (np.complex128, 4e-15)):
        z = (rng.normal(size=(2, n)) + 1j * rng.normal(size=(2, n))).astype(dtype)
        x = input_node(spec(z.shape, z.dtype))
        graph = Graph([x], [Fft(1)(x), Fft(1, True)(x), Fft(0)(x)])
        for program in (compile_graph(graph, "llvm"), start_graph(graph, "llvm")):
            found = program([z])
            wide = z.astype(np.complex128)
            right = [np.fft.fft(wide), np.fft.ifft(wide, norm="forward"), np.fft.fft(wide, axis=0)]
            for y, r in zip(found, right, strict=True):
                assert y.dtype == dtype
                scale = np.sqrt(np.mean(np.abs(r) ** 2))
                assert np.abs(y - r).max() <= tolerance * scale * max(1, math.log2(n))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_turns_are_rounded_once_and_exact_at_quarters(sign: float) -> None:
    """So that the transform of ones is exactly zero where that is a sum of quarters."""
    for n in (4, 12, 97):
        exact = [complex(mpmath.expjpi(2 * sign * mpmath.mpf(k) / n)) for k in range(n)]
        apart = _turns(np.arange(n) / n, sign) - exact
        assert max(abs(apart.real).max(), abs(apart.imag).max()) < 2.0**-52
    assert _turns(np.arange(4) / 4, sign).tolist() == [1, sign * 1j, -1, -sign * 1j]
