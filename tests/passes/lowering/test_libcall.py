"""Routines instead of loops: errors, threads, the store, and ops that Python computes."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from retrograd.eager.modes import num_threads
from retrograd.errors import LinAlgError
from retrograd.ir import Dim, Graph, Op, float64, spec
from retrograd.ops.elementwise import add, exp
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg import (
    LU,
    QR,
    SVD,
    Cholesky,
    Cofactor,
    Eig,
    Eigh,
    Eigvals,
    Eigvalsh,
    Expm,
    Inv,
    Solve,
    Svdvals,
    TriangularSolve,
)
from retrograd.ops.scan import CumSum
from retrograd.passes.lowering import legalize
from retrograd.passes.lowering.complex import real_graph
from retrograd.passes.lowering.libcall import by_reference
from retrograd.passes.lowering.rules import RULES
from retrograd.passes.rewrite import RuleSet
from retrograd.runtime.disk_cache import VARIABLE
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.runtime.paired_program import on_real, real_arrays
from tests.runtime.agreement import GuardedProgram, assert_same


def positive(*shape: int) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal(shape)
    return x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])


def drawn(dtype: str, *shape: int) -> np.ndarray:
    """Positive definite matrices, or complex ones with such a real part."""
    x = positive(*shape)
    if dtype.startswith("complex"):
        x = x + 0.1j * np.random.default_rng(1).standard_normal(shape)
    return x.astype(dtype)


def factor(*shape: int | Dim) -> Graph:
    x = input_node(spec(shape, float64), "x")
    return Graph([x], [exp(Cholesky()(add(x, x)))])


def test_a_batch_is_shared_by_threads() -> None:
    program = Executable(factor(500, 6, 6))
    assert program.plan.threaded
    x = positive(500, 6, 6)
    (one,) = program([x])
    with num_threads(4):
        (four,) = program([x])
    assert one.tobytes() == four.tobytes()
    np.testing.assert_allclose(one, np.exp(np.linalg.cholesky(2 * x)), rtol=1e-12)


WORKING = [
    QR(), Eigh(), Eigvalsh(), SVD(), Svdvals(), LU(), Expm(), Cofactor(), Eig(), Eigvals(),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("op", WORKING, ids=str)
@pytest.mark.sample(3)
def test_each_thread_has_its_workspace(op: Op, named: bool, dtype: str) -> None:
    shape = (Dim("B"), Dim("N"), Dim("N")) if named else (300, 20, 20)
    x = input_node(spec(shape, dtype))
    graph = Graph([x], [op(x)])
    program = GuardedProgram(real_graph(graph))
    assert program.plan.threaded
    (array,) = real_arrays([drawn(dtype, 300, 20, 20)])
    (one,) = program([array])
    with num_threads(4):
        for _ in range(3):
            (four,) = program([array])
            assert one.tobytes() == four.tobytes()
    program.check_guards()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "shape", [(500, 6, 6), (2, 250, 6, 6), (Dim("B"), 250, Dim("N"), Dim("N"))]
)
def test_the_error_names_the_matrix(threads: int, shape: tuple[int | Dim, ...]) -> None:
    program = Executable(factor(*shape))
    known = (2, *shape[1:-2], 6, 6) if isinstance(shape[0], Dim) else shape
    x = positive(*known)  # type: ignore[arg-type]
    x.reshape(-1, 6, 6)[377, 2, 2] = -1
    index = ", ".join(map(str, np.unravel_index(377, x.shape[:-2])))
    with num_threads(threads):
        with pytest.raises(
            LinAlgError, match=rf"matrix \[{index}\]: .* order 3 .*cholesky"
        ) as caught:
            program([x])
        x.reshape(-1, 6, 6)[377, 2, 2] = 50
        program([x])
    assert isinstance(caught.value, np.linalg.LinAlgError)


def test_symbolic_sizes_and_guards() -> None:
    graph = factor(Dim("B"), Dim("N"), Dim("N"))
    program = GuardedProgram(graph)
    for b, n in ((3, 4), (1, 1), (0, 2), (2, 0), (5, 40)):
        assert_same(graph, [positive(b, n, n)], program=program)


def test_a_refused_run_leaves_donated_inputs_alone() -> None:
    x = input_node(spec((3, 3), float64), "x")
    program = Executable(Graph([x], [Cholesky()(x)]), donate=[0])
    bad = -positive(3, 3)
    before = bad.copy()
    with pytest.raises(LinAlgError):
        program.consume([bad])
    np.testing.assert_array_equal(bad, before)


STORED = """
import numpy as np
from retrograd.runtime.executable import Executable
from tests.passes.lowering.test_libcall import factor, positive
x = positive(5, 4, 4)
program = Executable(factor(5, 4, 4))
np.testing.assert_allclose(program([x])[0], np.exp(np.linalg.cholesky(2 * x)))
x[2] = -x[2]
try:
    program([x])
except np.linalg.LinAlgError as error:
    print(error)
"""


@pytest.mark.slow
def test_another_process_finds_routines_by_name(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    outputs = [
        subprocess.run([sys.executable, "-c", STORED], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert outputs[0].stdout == outputs[1].stdout
    assert "matrix [2]" in outputs[1].stdout


SIZES = [1, 2, 3, 5, 6, 7, 11, 12, 13, 16, 17, 33]  # around those where another way is taken
FACTORS = [
    Cholesky(), Cholesky(True), LU(), QR(), Eigh(), TriangularSolve(), TriangularSolve(True, True),
    TriangularSolve(True, unit=True), Solve(), Solve(True), Inv(), Expm(), Cofactor(),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64"])
@pytest.mark.parametrize("op", FACTORS, ids=str)
@pytest.mark.sample(3)
def test_the_same_bits_for_known_and_named_sizes(op: Op, dtype: str) -> None:
    """Small matrices get code of their own where their sizes are known."""
    n, k = Dim("N"), Dim("K")
    all_shapes: list[tuple[int | Dim, ...]] = [(n, n), (n + 2, n), (n, k)]
    shapes = all_shapes[: op.arity]
    if isinstance(op, TriangularSolve):
        shapes = all_shapes[::2]
    named = [input_node(spec(s, dtype)) for s in shapes]
    program = on_real(Graph(named, [op(*named)]), Executable)
    rng = np.random.default_rng(0)
    turn = 1 + 0.5j if dtype.startswith("complex") else 1
    for size in SIZES:
        for columns in (1, 3, 7) if len(shapes) > 1 else (1,):
            a = positive(size, size) / size
            a = a if len(shapes) == 1 else a + rng.uniform(-0.1, 0.1, (size, size))
            b = turn * rng.standard_normal((size, columns))
            if turn != 1:
                a = a + 0.1j * rng.standard_normal((size, size)) / size
            given = [a, b][: len(shapes)]
            if isinstance(op, Solve | Inv):
                given[1:] = [LU().reference(a), b][: len(shapes) - 1]
            arrays = [x.astype(dtype) for x in given]
            known = [input_node(spec(x.shape, dtype)) for x in arrays]
            (found,) = program(arrays)
            (static,) = on_real(Graph(known, [op(*known)]), Executable)(arrays)
            assert found.tobytes() == static.tobytes()
            (expected,) = ReferenceProgram(Graph(known, [op(*known)]))(arrays)
            tolerance = 1e-10 if dtype == "float64" else 1e-3
            # Elements that are small beside others, as of cofactors, are right beside these.
            beside = max(tolerance, 1e-3 * tolerance * np.abs(expected).max(initial=0))
            np.testing.assert_allclose(found, expected, tolerance, beside)


@pytest.mark.slow
def test_pivots_of_equal_and_vanishing_columns() -> None:
    """Ties, zeros and permutations, whatever way the factors are found."""
    rng = np.random.default_rng(1)
    for n in (3, 4, 9, 16, 17, 40):
        for x in (
            np.eye(n)[rng.permutation(n)],
            np.zeros((n, n)),
            np.ones((n, n)),
            rng.integers(-1, 2, (n, n)).astype(np.float64),
        ):
            node = input_node(spec((n, n), float64))
            ((y,), (r,)) = (
                kind(Graph([node], [LU()(node)]))([x]) for kind in (Executable, ReferenceProgram)
            )
            both, order = y[:n].T, y[n].astype(int)
            product = (np.tril(both, -1) + np.eye(n)) @ np.triu(both)
            np.testing.assert_allclose(product, x[order], atol=1e-12)
            assert (np.abs(np.tril(both, -1)) <= 1).all()
            assert sorted(order) == list(range(n))
            if n < 17:
                np.testing.assert_allclose(y, r, atol=1e-12)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_errors_name_the_matrix(dtype: str) -> None:
    x = drawn(dtype, 5, 8, 8)
    x = x @ x.conj().swapaxes(-1, -2)
    node = input_node(spec(x.shape, dtype))
    for op, bad, words in (
        (Cholesky(), -1, r"matrix \[3\]: .* order 3"),
        (Eigh(), np.nan, r"matrix \[3\]: it holds NaN"),
        (SVD(), np.inf, r"matrix \[3\]: it holds NaN"),
        (Eig(), np.inf, r"matrix \[3\]: it holds NaN"),
    ):
        program = on_real(Graph([node], [op(node)]), Executable)
        program([x])
        wrong = x.copy()
        wrong[3, 2, 2] = bad
        with pytest.raises(LinAlgError, match=words):
            program([wrong])


# -- by reference ---------------------------------------------------------------------------------
@pytest.fixture
def python(monkeypatch):
    """Some ops computed by Python."""

    rules = dict.fromkeys(("exp", "cumsum", "cholesky"), by_reference)
    monkeypatch.setattr(legalize, "LOWER", RuleSet.lowering("lower", RULES, rules))
    monkeypatch.setenv(VARIABLE, "off")


def test_python_computes_an_op(python) -> None:
    n = Dim("N")
    x = input_node(spec((n, 3), float64), "x")
    graph = Graph([x], [CumSum(0, True)(exp(add(x, x))), exp(x)])
    program = GuardedProgram(graph)
    for size in (4, 1, 0, 4):
        assert_same(graph, [np.random.default_rng(size).standard_normal((size, 3))], 0, program)


def test_python_computes_for_several_threads(python) -> None:
    x = input_node(spec((400, 300), float64), "x")
    program = Executable(Graph([x], [exp(add(exp(add(x, x)), x))]))
    array = np.random.default_rng(1).uniform(-1, 0, (400, 300))
    expected = np.exp(np.exp(2 * array) + array)
    with num_threads(3), ThreadPoolExecutor(4) as pool:
        for (found,) in pool.map(lambda _: program([array]), range(40)):
            np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_what_python_raises_is_raised(python, threads: int) -> None:
    program = Executable(factor(200, 4, 4))
    x = positive(200, 4, 4)
    x[7] = -x[7]
    with num_threads(threads), pytest.raises(LinAlgError, match=r"matrix \[7\].*cholesky\(upper"):
        program([x])


def test_any_exception_of_a_reference_is_raised(python, monkeypatch) -> None:
    class Odd(Exception):
        pass

    def fails(*_: object) -> None:
        raise Odd("no")

    program = Executable(factor(2, 3, 3))
    monkeypatch.setattr(Cholesky, "reference", fails)
    for _ in range(3):
        with pytest.raises(Odd, match="no"):
            program([positive(2, 3, 3)])
    gc.collect()
    assert threading.active_count() < 50
