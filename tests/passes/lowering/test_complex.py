"""Complex numbers compiled as pairs: special values, accuracy, sizes of transforms, memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend_registry import compile_graph
from retrograd.errors import BackendError
from retrograd.ir import Graph, Trait, complex64, lookup, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg.matrix import MatrixOp
from retrograd.passes.lowering.complex import RULES, lower_complex
from retrograd.passes.lowering.complex_math import FUNCTIONS
from retrograd.runtime.executable import Executable
from retrograd.verify.records import RECORDS


@pytest.mark.slow
def test_every_operation_on_complex_numbers_is_compiled() -> None:
    """The table covers what takes complex numbers, going by the samples of the records."""
    for name, record in RECORDS.items():
        dtypes = {node.dtype for s in record.samples() for node in (*s.nodes(), s.op(*s.nodes()))}
        if name != "input" and any(d.is_complex for d in dtypes):
            op = next(iter(record.samples())).op
            alike = Trait.REAL_LINEAR in op.traits or isinstance(op, MatrixOp)
            assert alike or name in FUNCTIONS.keys() | RULES.keys()


def test_an_operation_that_is_not_compiled_is_named() -> None:
    z = input_node(spec((2,), complex64))
    planted = type(z)(lookup("rsqrt")(), (z,), z.type)  # its inference would refuse
    with pytest.raises(BackendError, match="rsqrt of complex"):
        lower_complex(Graph([z], [planted]))


def test_native_code_itself_takes_real_numbers() -> None:
    z = input_node(spec((2,), complex64))
    with pytest.raises(BackendError, match="real numbers only"):
        Executable(Graph([z], [lookup("neg")()(z)]))


def test_memory_is_shared_not_converted() -> None:
    """A contiguous array is read in place, and the result is complex without a copy."""
    z = np.arange(6, dtype=np.complex64).reshape(2, 3)
    x = input_node(spec((2, 3), complex64))
    program = compile_graph(Graph([x], [lookup("neg")()(x)]), "llvm")
    for given in (z, z.T.copy().T, z[:, ::-1]):
        (y,) = program([given])
        np.testing.assert_array_equal(y, -given)
        assert y.flags.c_contiguous
        assert y.flags.writeable
        assert y.shape == (2, 3)


@pytest.mark.slow
def test_graphs_inside_of_operations_run_on_pairs_too() -> None:
    """Loops and choices with complex numbers inside, among the carries, or nowhere else."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(5, 3)) + 1j * rng.normal(size=(5, 3))

    def loss(z: Any) -> Any:
        c, ys = rg.scan(lambda c, t: (c * t + 0.3j, rg.real(c) + t), z[0] * 0, z)
        d = rg.while_loop(lambda s: abs(s).sum() > 0.1, lambda s: s * (0.5 + 0.3j), c)
        e = rg.cond(rg.real(c).sum() > 0, lambda c: c * c, lambda c: c * 1j, c)
        x = rg.cond(rg.imag(c).sum() > 0, squared, rg.sin, rg.real(z[1]))
        return (abs(ys) ** 2).sum() + abs(d).sum() + rg.imag(e).sum() + x.sum()

    def squared(x: Any) -> Any:  # complex numbers nowhere but inside
        return rg.real(rg.complex(x, 2 * x) ** 2)

    expected = rg.numerical_gradient(loss, z).numpy()
    stack = np.stack([z * 2, z])
    for backend in ("reference", "llvm"):
        with rg.backend(backend):
            gradient = rg.grad(loss)
            assert loss(z).item() == pytest.approx(rg.jit(loss)(z).item(), rel=1e-12)
            np.testing.assert_allclose(gradient(z).numpy(), expected, rtol=1e-8)
            np.testing.assert_allclose(rg.jit(gradient)(z).numpy(), expected, rtol=1e-8)
            np.testing.assert_allclose(rg.vmap(gradient)(stack).numpy()[1], expected, rtol=1e-8)
