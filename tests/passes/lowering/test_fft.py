"""The discrete Fourier transform as products of small matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend_registry import compile_graph, start_graph
from retrograd.errors import MemoryLimitError
from retrograd.ir import Graph, complex64, float32, float64, spec
from retrograd.ops.elementwise import cast
from retrograd.ops.fft import Fft
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import slice_axis
from retrograd.passes.lowering.complex_linalg import PairedFft
from retrograd.passes.lowering.fft import PRODUCTS, fourier
from retrograd.passes.rewrite import rewrite
from retrograd.runtime.executors.reference import ReferenceProgram


def graph_of(shape, axis, inverse=False, dtype=float64):
    x, y = (input_node(spec(shape, dtype)) for _ in range(2))
    return Graph([x, y], fourier((x, y), axis, inverse))


# How many products there are: one up to 96 elements, one for each factor, and those of two
# transforms of a power of two where a prime is too large.
COUNTS = {1: 0, 2: 1, 96: 1, 97: 4, 128: 2, 1024: 2, 194: 4, 30 * 32 * 4: 3}


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("inverse", [False, True])
def test_factors_and_values(n, inverse):
    graph = graph_of((2, n), 1, inverse)
    assert sum(node.op == "dot_general" for node in graph.body) == COUNTS[n]
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


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [3, 64, 97, 101, 124])
def test_beside_axes_of_no_elements(name: str, n: int) -> None:
    """Which follow, or come before."""
    for shape, axis in (((n, 0), 0), ((0, n), 1), ((2, n, 3, 0), 1)):
        x = np.zeros(shape)
        y = getattr(rg.fft, name)(rg.tensor(x), axis=axis)
        assert y.shape == getattr(np.fft, name)(x, axis=axis).shape
        assert (
            rg.grad(lambda x, a=axis: abs(getattr(rg.fft, name)(x, axis=a)).sum())(x).shape == shape
        )


@pytest.mark.parametrize("n", [27, 97, 101, 120])
def test_halves_and_real_numbers_have_the_bits_of_the_whole(n: int) -> None:
    """Where the imaginary part is zero, and where only the first elements are read, less is
    computed; in columns, more than one at a time. All tiers give the same."""
    x = np.random.default_rng(n).normal(size=(3, n, 5)).astype(np.float32)
    z = x.astype(np.complex64)
    given, real = input_node(spec(z.shape, z.dtype)), input_node(spec(x.shape, x.dtype))
    for axis, size in ((1, n), (2, 5)):
        whole = Fft(axis)(given)
        part = slice_axis(Fft(axis)(cast(real, complex64)), axis, 0, size // 2 + 1)
        for start in (compile_graph, start_graph):
            (y,) = start(Graph([given], [whole]), "llvm")([z])
            (half,) = start(Graph([real], [part]), "llvm")([x])
            first = np.moveaxis(np.moveaxis(y, axis, 0)[: size // 2 + 1], 0, axis)
            # Bits but for the signs of zeros.
            np.testing.assert_array_equal(half, first)
    rows = input_node(spec((15, n), z.dtype))
    (by_rows,) = compile_graph(Graph([rows], [Fft(1)(rows)]), "llvm")(
        [np.ascontiguousarray(np.moveaxis(z, 1, 2)).reshape(15, n)]
    )
    (y,) = compile_graph(Graph([given], [Fft(1)(given)]), "llvm")([z])
    np.testing.assert_array_equal(by_rows.reshape(3, 5, n), np.moveaxis(y, 1, 2))


def test_what_devices_do_is_the_same_transform() -> None:
    x = input_node(spec((2, 120), float64))
    node = PairedFft(1, False, of_real=True, kept=61)(x)
    graph = rewrite(Graph([x], [node]), PRODUCTS)
    assert not any(isinstance(n.prim, PairedFft) for n in graph.body)
    given = np.random.default_rng(0).normal(size=(2, 120))
    (y,) = ReferenceProgram(graph)([given])
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], np.fft.rfft(given), atol=1e-12)


def test_lengths_that_change_keep_their_bits() -> None:
    """No program is made for all of them, whose transform would be another one."""
    rng = np.random.default_rng(0)
    for n in (24, 40, 64, 40):
        z = rg.tensor((rng.normal(size=(2, n)) + 1j).astype(np.complex64))
        exact = rg.jit(lambda z: rg.fft.ifft(rg.fft.fft(z) * 2))(z).numpy()
        for _ in range(3):
            np.testing.assert_array_equal(rg.fft.ifft(rg.fft.fft(z) * 2).numpy(), exact)
