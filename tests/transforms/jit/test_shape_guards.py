"""What a program assumes of sizes that its function compared."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import retrograd as rg

N, M = rg.Dim("N"), rg.Dim("M")


def branch(x: Any) -> Any:
    if x.shape[0] == 5:
        return x * 0.0
    return x * 2.0


@pytest.mark.parametrize("backend", ["reference", "llvm", "checked"])
def test_a_call_that_does_not_fit_says_where_what_was_compared(backend):
    with rg.backend(backend):
        f: Any = rg.jit(branch, shapes={"x": "N 3"})
        for n in (4, 6, 0, 6, 7):
            assert f(rg.ones((n, 3))).tolist() == [[2.0] * 3] * n
        for _ in range(3):
            with pytest.raises(
                rg.ShapeError, match=r"N != 5.*test_shape_guards.py:\d+ in branch.*N = 5"
            ):
                f(rg.ones((5, 3)))
        assert f(rg.ones((8, 3))).sum().item() == 48
    assert f.cache_stats()["compilations"] == 1


@pytest.mark.parametrize("test", [
    lambda x, y: x.shape == (5, 3),
    lambda x, y: operator.eq((5, 3), x.shape),
    lambda x, y: x.shape != y.shape,
    lambda x, y: 5 in x.shape,
    lambda x, y: x.shape[0] in (1, 5),
    lambda x, y: x.shape[0] == np.int64(5),
    lambda x, y: 2 * x.shape[0] + 1 == 11,
    lambda x, y: x.shape.index(3) == 1 and x.shape.count(5) == 0,
    lambda x, y: x.size == 15,
    lambda x, y: len({5: 1} | {x.shape[0]: 2}) == 2 and x.shape[0] == 5,
])  # fmt: skip
def test_every_way_to_compare(test):
    def f(x, y):
        return x.sum() + y.sum() if test(x, y) else x.sum()

    compiled: Any = rg.jit(f, shapes={"x": "N 3", "y": "M 3"})
    for n, m in ((4, 6), (6, 4)):
        x, y = rg.ones((n, 3)), rg.ones((m, 3))
        assert compiled(x, y).item() == f(x, y).item()
    with pytest.raises(rg.ShapeError, match=r"N = 5"):
        compiled(rg.ones((5, 3)), rg.ones((5, 3)))


def test_what_cannot_be_is_not_assumed():
    def f(x):
        n = x.shape[0]
        never = (n == -1, n + 1 == 0, n == "N", n == 2.5, n in (None, ""), n + 1 == n)
        return x.sum() * float(any(never))

    compiled: Any = rg.jit(f, shapes={"x": "N"})
    assert [compiled(rg.ones(n)).item() for n in (3, 0, 1, 2)] == [0.0] * 4
    assert "assume" not in str(rg.trace(f, rg.spec((N,), rg.float32)))


def test_equal_sizes_and_dictionaries_go_on_working():
    def f(x, y):
        seen = {x.shape: "x"}
        assert seen[y.shape] == "x"
        assert x.shape == y.shape
        assert {x.shape[0], y.shape[0]} == {x.shape[0]}
        return (x + y).sum()

    compiled: Any = rg.jit(f, shapes={"x": "N", "y": "N"})
    assert [compiled(rg.ones(n), rg.ones(n)).item() for n in (3, 5)] == [6.0, 10.0]


def test_order():
    def f(x):
        n = x.shape[0]
        assert n >= 0
        assert n + 1 > 0
        assert n + 2 > n
        assert not n < 0
        assert max(n, n + 1) == n + 1
        return x.sum()

    compiled: Any = rg.jit(f, shapes={"x": "N"})
    assert compiled(rg.ones(3)).item() == 3.0
    less = (lambda n: n < 10, lambda n: n <= 3, lambda n: max(n, 7))
    for ask in (*less, range, int, bool):
        g: Any = rg.jit(lambda x, ask=ask: x * len(str(ask(x.shape[0]))), shapes={"x": "N"})
        with pytest.raises(rg.ShapeError, match=r"N .*before the call.*declare that axis as _"):
            g(rg.ones(3))


def inside_scan(x):
    return rg.scan(lambda c, r: (c + branch(x).sum() + r.sum(), r), 0.0, x)[0]


@pytest.mark.parametrize("f", [
    rg.grad(lambda x: branch(x).sum()),
    rg.grad(lambda x: rg.grad(lambda x: (branch(x) ** 3).sum())(x).sum()),
    lambda x: rg.jvp(branch, (x,), (x,))[1],
    lambda x: rg.jacrev(branch)(x).sum(axis=(0, 1)),
    lambda x: rg.vmap(lambda column: branch(column), in_axes=1, out_axes=1)(x),
    rg.grad(lambda x: rg.checkpoint(branch)(x).sum()),
    lambda x: rg.cond(x.sum() > 0, branch, lambda x: x, x),
    lambda x: rg.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, branch(c[1])), (0, x))[1],
    lambda x: rg.fori_loop(0, 3, lambda i, c: c + branch(x), x),
    inside_scan, rg.grad(inside_scan), lambda x: rg.jit(branch)(x),
    lambda x: rg.hvp(lambda x: (branch(x) ** 3).sum(), (x,), (x,))[0],
])  # fmt: skip
def test_in_every_transform_and_loop(f):
    compiled: Any = rg.jit(f, shapes={"x": "N 3"})
    for n in (4, 6, 7):
        x = rg.arange(3.0 * n).reshape(n, 3)
        np.testing.assert_allclose(compiled(x).numpy(), f(x).numpy(), rtol=1e-5)
    with pytest.raises(rg.ShapeError, match=r"N != 5.*N = 5"):
        compiled(rg.ones((5, 3)))
    assert compiled.cache_stats()["compilations"] == 1


def test_graphs_say_what_they_assume_and_so_do_their_gradients(tmp_path):
    graph = rg.trace(branch, rg.spec((N, 3), rg.float32))
    graph.save(tmp_path / "branch.rg")
    for g in (graph, graph.gradient(), graph.optimize(), rg.load_graph(tmp_path / "branch.rg")):
        g.check()
        assert "assume" in str(g)
        for backend in ("reference", "llvm"):
            run: Any = g.compile(backend)
            run(*[np.ones((4, 3), np.float32)] * len(g.inputs))
            with pytest.raises(rg.ShapeError, match="N = 5"):
                run(*[np.ones((5, 3), np.float32)] * len(g.inputs))


def test_an_onnx_model_does_not_check(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed (extra: onnx)")
    graph = rg.trace(branch, rg.spec((N, 3), rg.float32))
    with pytest.warns(UserWarning, match=r"cannot check that the program is for N != 5, as"):
        graph.to_onnx(tmp_path / "branch.onnx")


def test_nothing_to_check():
    f: Any = rg.jit(lambda x: "five" if x.shape[0] == 5 else "other", shapes={"x": "N"})
    with pytest.raises(rg.TraceError, match="return a tensor"):
        f(rg.ones(3))


def test_outside_of_a_trace_sizes_are_compared_as_they_are():
    assert (N == 5, N == N, N != M, (N, 3) == (N, 3)) == (False, True, True, True)
    b = rg.GraphBuilder()
    assert b.input("x", (N, 3)).shape == (N, 3)  # type: ignore[comparison-overlap]


def test_a_step_of_training_and_donation():
    def step(w, x):
        loss = rg.grad(lambda w: (branch(x) @ w).sum())(w)
        return w - 0.1 * loss

    f: Any = rg.jit(step, donate="w", shapes={"x": "N 3"})
    w = rg.ones(3)
    for n in (2, 3, 4):
        w = f(w, rg.ones((n, 3)))
    kept = w.numpy().copy()
    with pytest.raises(rg.ShapeError, match="N = 5"):
        f(w, rg.ones((5, 3)))
    np.testing.assert_array_equal(w.numpy(), kept)
