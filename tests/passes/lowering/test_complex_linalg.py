"""Complex matrices that lie in memory as pairs."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, complex64, complex128, spec
from retrograd.ops.complex import complex_, imag, real
from retrograd.ops.fft import Fft
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg import LU, Cholesky, Eigvals, Eigvalsh, Inv, Solve
from retrograd.passes.lowering.complex import lower_complex
from retrograd.passes.lowering.complex_linalg import NumpyFft, Paired
from retrograd.runtime.executors.reference import ReferenceProgram

RNG = np.random.default_rng(0)


def pairs(z):
    return np.stack([z.real, z.imag], axis=-1)


def hermitian(n):
    z = RNG.normal(size=(n, n)) + 1j * RNG.normal(size=(n, n))
    return z @ z.conj().T + np.eye(n)


def test_matrices_are_not_taken_apart_between_operations() -> None:
    """What one operation leaves in memory the next one reads there."""
    z, b = input_node(spec((4, 4), complex64)), input_node(spec((4, 2), complex64))
    f = LU()(z)
    graph = lower_complex(Graph([z, b], [Solve()(z, f, b), Inv()(z, f)]))
    assert sorted(n.op for n in graph.body) == ["paired"] * 3
    swapped = complex_(imag(z), real(z))
    graph = lower_complex(Graph([z], [Inv()(swapped, LU()(swapped))]))
    assert "concat" in [n.op for n in graph.body]


@pytest.mark.parametrize("op", [Cholesky(), Eigvalsh()], ids=str)
def test_an_op_on_pairs_is_the_op_on_complex_numbers(op):
    z = hermitian(3)
    x = input_node(spec(z.shape, complex128))
    graph = lower_complex(Graph([x], [op(x)]))
    assert [n.op for n in graph.body] == ["paired"]
    (found,) = ReferenceProgram(graph)([pairs(z)])
    expected = np.linalg.cholesky(z) if isinstance(op, Cholesky) else np.linalg.eigvalsh(z)
    right = pairs(expected) if expected.dtype.kind == "c" else expected
    assert graph.outputs[0].shape == right.shape
    np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)


def test_eigenvalues_of_real_matrices_are_pairs():
    """Complex results of real operands."""
    a = np.array([[0.0, -2.0], [2.0, 0.0]])
    x = input_node(spec((2, 2), "float64"))
    op = Paired(Eigvals(), given=False)
    assert op.infer(x.type) == spec((2, 2), "float64")
    found = op.reference(a)
    np.testing.assert_allclose(sorted(found.tolist()), [[0, -2], [0, 2]], atol=1e-14)


def test_named_sizes_are_bound_in_the_op_inside():
    n = Dim("N")
    x, b = input_node(spec((n, n), complex64)), input_node(spec((n, 2), complex64))
    graph = lower_complex(Graph([x, b], [Solve()(x, LU()(x), b)]))
    assert graph.outputs[0].shape == (n, 2, 2)
    z, y = hermitian(3).astype(np.complex64), RNG.normal(size=(3, 2)) + 0j
    (found,) = ReferenceProgram(graph)([pairs(z), pairs(y).astype(np.float32)])
    np.testing.assert_allclose(found, pairs(np.linalg.solve(z, y)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inverse", [False, True])
def test_a_transform_of_a_named_size(inverse):
    x = input_node(spec((2, Dim("N"), 3), complex128))
    graph = lower_complex(Graph([x], [Fft(1, inverse)(x)]))
    (node,) = (n for n in graph.body if n.op == "numpy_fft")
    z = RNG.normal(size=(2, 7, 3)) + 1j * RNG.normal(size=(2, 7, 3))
    expected = np.fft.ifft(z, axis=1, norm="forward") if inverse else np.fft.fft(z, axis=1)
    (found,) = ReferenceProgram(graph)([pairs(z)])
    np.testing.assert_allclose(found, pairs(expected), rtol=1e-12, atol=1e-12)
    given, parts_of = input_node(node.inputs[0].type), NumpyFft(1, inverse).on_parts
    assert node.prim == NumpyFft(1, inverse)
    (parts,) = ReferenceProgram(Graph([given], [parts_of(given)]))([pairs(z)])
    np.testing.assert_array_equal(parts, found)
