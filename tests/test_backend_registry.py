"""Backends by name: what each makes of a graph gives the same numbers."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend_registry import (
    available,
    compile_graph,
    compiles_each_size,
    find,
    start_graph,
)
from retrograd.errors import BackendError
from retrograd.ir import Graph, complex64, float32, spec
from retrograd.ops.elementwise import exp, mul
from retrograd.ops.leaf import input_node
from retrograd.runtime.executable import Executable


def graph(dtype=float32) -> Graph:
    x = input_node(spec((4,), dtype), "x")
    return Graph([x], [exp(mul(x, x)), x])


@pytest.mark.parametrize("dtype", [float32, complex64], ids=str)
def test_each_backend_computes_the_graph(dtype) -> None:
    x = np.array([0.5, -1, 2, 0], dtype.dtype)
    if dtype.is_complex:
        x = x + np.complex64(0.25j)
    programs = [compile_graph(graph(dtype), name) for name in (*available(), "checked", "profiled")]
    programs.append(start_graph(graph(dtype), "llvm"))
    for program in programs:
        y, same = program([x])
        np.testing.assert_allclose(y, np.exp(x * x), 1e-6)
        np.testing.assert_array_equal(same, x)
        assert not np.shares_memory(same, x)


def test_those_of_debugging_are_no_choice() -> None:
    assert available() == rg.backends()
    assert available()[:2] == ["reference", "llvm"]
    with pytest.raises(BackendError, match="named 'gpu' here; there are reference, llvm"):
        find("gpu")


def test_what_is_given_away_is_overwritten_by_native_code_alone() -> None:
    x = np.array([0.5, -1, 2, 0], np.float32)
    program = compile_graph(Graph([y := input_node(spec((4,)))], [mul(y, y)]), "llvm", donate=[0])
    assert isinstance(program, Executable)
    before = x.copy()
    np.testing.assert_array_equal(program([x])[0], before * before)  # a plain call changes nothing
    np.testing.assert_array_equal(x, before)
    arrays = [x]
    address = x.ctypes.data
    del x
    (own,) = program.consume(arrays)
    assert own.ctypes.data == address
    np.testing.assert_array_equal(own, before * before)


def test_which_backends_compile_each_size() -> None:
    assert compiles_each_size("xla")
    assert not any(map(compiles_each_size, ("llvm", "reference", "wgpu+llvm")))
