"""Factorisations and solutions by LAPACK, of matrices in columns, against their definition."""

import numpy as np
import pytest

import retrograd as rg
from tests.codegen.libcalls.arrays import DTYPES, SIZES, N, close, compiled, drawn, positive, turned


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.sample(1)
def test_square_matrices(dtype: str) -> None:
    """Of any size, in a stack: factors multiply to the matrix, solutions solve."""

    def all_of(x, a, b):
        half = rg.linalg.cholesky(x)
        lower = rg.linalg.solve_triangular(half, b, lower=True)
        return half, *rg.linalg.lu(a), rg.linalg.solve(a, b), *rg.linalg.qr(a), lower

    program = compiled(all_of, dtype, (2, N, N), (2, N, N), (2, N, 3))
    for n in SIZES:
        x, a, b = positive(dtype, 2, n, n), drawn(dtype, 2, n, n), drawn(dtype, 2, n, 3, seed=1)
        half, p, low, up, y, q, r, z = program(x, a, b)
        close(half @ turned(half), x, dtype)
        assert (np.triu(half, 1) == 0).all()
        close(half @ z, b, dtype, 1000)
        close(p @ low @ up, a, dtype)
        assert (abs(low) <= np.sqrt(2) * 1.000001).all(), "pivots are the largest of their column"
        assert ((p == 0) | (p == 1)).all()
        close(a @ y, b, dtype, 1e4)
        close(q @ r, a, dtype)
        close(turned(q) @ q, np.broadcast_to(np.eye(n), q.shape), dtype)
        assert (np.tril(r, -1) == 0).all()


def test_wide_and_tall_and_empty() -> None:
    for m, n in ((5, 2), (2, 5), (0, 3)):
        a = drawn("float64", m, n)
        q, r = compiled(rg.linalg.qr, "float64", (m, n))(a)
        assert (q.shape, r.shape) == ((m, min(m, n)), (min(m, n), n))
        close(q @ r, a, "float64")
        full, r = compiled(lambda x: rg.linalg.qr(x, mode="complete"), "float64", (m, n))(a)
        assert full.shape == (m, m)
        close(full @ r, a, "float64")
        close(full.T @ full, np.eye(m), "float64")


def test_what_has_no_factors_is_refused() -> None:
    refused = np.eye(3)
    refused[2, 2] = -1
    program = compiled(rg.linalg.cholesky, "float64", (N, N))
    with pytest.raises(rg.errors.LinAlgError, match="positive"):
        program(refused)
    solve = compiled(rg.linalg.solve, "float64", (4, N, N), (4, N, 1))
    a, b = np.stack([np.eye(9)] * 4), np.ones((4, 9, 1))
    a[2, 8] = a[2, 7]
    with pytest.raises(rg.errors.LinAlgError, match=r"\[2\].*singular|singular.*\[2\]"):
        solve(a, b)


@pytest.mark.parametrize("n", [2, 40, 170])
@pytest.mark.parametrize("op", ["solve", "inv"])
def test_factors_that_are_made_up_lead_nowhere_outside(op, n):
    """A saved graph may hold any: rows that are none of the matrix's are read as the first."""
    head = f"%0 a: f32[{n}, {n}] = input\n  %1 f: f32[{n + 2}, {n}] = input\n"
    calls = {
        "solve": f"  %2 b: f32[{n}, 2] = input\n  %3: f32[{n}, 2] = solve(%0, %1, %2)\n"
        "  return %3\n",
        "inv": f"  %2: f32[{n}, {n}] = inv(%0, %1)\n  return %2\n",
    }
    run = rg.Graph.parse(f"graph {{\n  {head}{calls[op]}}}").compile("llvm")
    a = (np.eye(n) * n + np.arange(n)).astype(np.float32)
    given = (np.eye(n, 2, dtype=np.float32),) if op == "solve" else ()
    factors = np.concatenate([a.T, np.tile(np.arange(n, dtype=np.float32), (2, 1))])
    for row in (1e9, -1e9, np.nan, np.inf, n, -1.0):
        factors[n:] = row
        assert np.asarray(run(a, factors, *given)).shape == ((n, 2) if given else (n, n))
