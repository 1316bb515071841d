"""Complex numbers as pairs of real ones: the same memory, and the same meaning."""

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, Graph, complex64, complex128, float64, spec
from retrograd.ops.elementwise import exp, mul
from retrograd.ops.leaf import input_node
from retrograd.runtime.executable import Executable
from retrograd.runtime.paired_program import on_real, real_arrays


def test_memory_is_shared_where_it_is_contiguous() -> None:
    z = np.array([[1 + 2j, 3 - 4j]], np.complex64)
    (pairs, same) = real_arrays([z, x := np.ones(3)])
    assert same is x
    assert (pairs.dtype, pairs.shape) == (np.float32, (1, 2, 2))
    assert np.shares_memory(pairs, z)
    np.testing.assert_array_equal(pairs[0], [[1, 2], [3, -4]])
    (turned,) = real_arrays([z.T[::-1]])
    np.testing.assert_array_equal(turned[:, 0], [[3, -4], [1, 2]])
    (scalar,) = real_arrays([np.array(1j)])
    np.testing.assert_array_equal(scalar, [0, 1])


@pytest.mark.parametrize("dtype", [complex64, complex128], ids=str)
def test_programs_give_complex_results_for_complex_inputs(dtype) -> None:
    n = Dim("N")
    z = input_node(spec((n, 2), dtype), "z")
    program = on_real(Graph([z], [exp(mul(z, z)), z]), Executable)
    for rows in (3, 0):
        a = np.random.default_rng(0).standard_normal((rows, 4)).astype(dtype.dtype)[:, ::2]
        a = a * dtype.dtype.type(0.5 + 1j)
        y, same = program([a])
        assert (y.dtype, y.shape) == (dtype.dtype, (rows, 2))
        np.testing.assert_allclose(y, np.exp(a * a), 1e-5 if dtype is complex64 else 1e-13)
        np.testing.assert_array_equal(same, a)


def test_errors_are_about_the_graph_that_was_given() -> None:
    z = input_node(spec((3,), complex128), "z")
    program = on_real(Graph([z], [mul(z, z)]), Executable)
    with pytest.raises(DTypeError, match="input 'z' is c128"):
        program([np.ones(3)])
    with pytest.raises(ShapeError, match="3"):
        program([np.ones(4, complex)])
    x = input_node(spec((3,), float64))
    assert isinstance(on_real(Graph([x], [mul(x, x)]), Executable), Executable)
