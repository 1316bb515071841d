"""Functions in Python, called from what is traced and compiled."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import retrograd as rg


def ordered(x: Any) -> Any:
    return {"values": np.sort(x), "places": np.argsort(x)}


FORM = {"values": rg.spec((3,)), "places": rg.spec((3,), rg.int64)}
X = rg.tensor([3.0, 1.0, 2.0])
STACK = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]], np.float32)


def f(x: Any) -> Any:
    return rg.pure_callback(ordered, FORM, x)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_called_under_every_transform(backend: str) -> None:
    with rg.backend(backend):
        for g in (f, rg.jit(f)):
            assert g(X)["values"].tolist() == [1.0, 2.0, 3.0]
            assert g(X)["places"].tolist() == [1, 2, 0]
        for g in (rg.vmap(f), rg.jit(rg.vmap(f))):
            np.testing.assert_array_equal(g(STACK)["values"].numpy(), np.sort(STACK))
        twice = rg.jit(rg.vmap(rg.vmap(f, 0), 0))(STACK[None] + np.zeros((2, 1, 1), np.float32))
        np.testing.assert_array_equal(twice["places"].numpy()[1], np.argsort(STACK))
        last, _ = rg.scan(lambda c, _: (f(c)["values"] - c, c), X, None, length=2)
        assert last.tolist() == [0.0, 0.0, 0.0]  # of [-2, 1, 1], which is in order


def test_what_a_sample_does_not_have_of_its_own_is_shared() -> None:
    shapes = set()

    def add(x: Any, y: Any) -> Any:
        shapes.add((x.shape, y.shape))
        return x + y

    def g(x: Any, y: Any) -> Any:
        return rg.pure_callback(add, rg.spec((3,)), x, y)

    inner = rg.vmap(g, (0, None))
    outer = rg.jit(rg.vmap(inner, (None, 0)))
    found = outer(STACK, STACK)
    np.testing.assert_array_equal(found.numpy(), STACK[None] + STACK[:, None])
    assert shapes == {((3,), (3,))}


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "complex64", "complex128", "bool", "uint8"]
)
def test_every_dtype_crosses(name: str) -> None:
    x = rg.tensor([1, 0, 1], getattr(rg, name))
    doubled = rg.jit(lambda x: rg.pure_callback(lambda a: a[::-1], rg.spec(x.shape, x.dtype), x))
    found = doubled(x)
    assert found.dtype is x.dtype
    np.testing.assert_array_equal(found.numpy(), x.numpy()[::-1])
    assert rg.jit(rg.vmap(doubled))(x.reshape(3, 1)).tolist() == x.reshape(3, 1).tolist()


def test_sizes_with_names() -> None:
    g = rg.jit(lambda x: rg.pure_callback(np.sort, rg.spec(x.shape), x), shapes={"x": "N"})
    assert g(X).tolist() == [1.0, 2.0, 3.0]
    assert g(rg.tensor([2.0, 1.0])).tolist() == [1.0, 2.0]
    assert g(rg.zeros(0)).tolist() == []


def test_arguments_may_be_written_to_and_kept() -> None:
    kept = []

    def g(x: Any) -> Any:
        kept.append(x)
        x += 1
        return x

    h = rg.jit(lambda x: rg.pure_callback(g, rg.spec((3,)), x) + x)
    assert h(X).tolist() == [7.0, 3.0, 5.0]
    h(2 * X)
    assert X.tolist() == [3.0, 1.0, 2.0]
    assert kept[0].tolist() == [4.0, 2.0, 3.0]


def test_other_arguments_are_passed_on_and_functions_told_apart() -> None:
    def scaled(x: Any, by: float, name: str) -> Any:
        assert (type(by), name) == (float, "n")
        return (x * by).astype(x.dtype)

    def g(x: Any, by: float) -> Any:
        return rg.pure_callback(scaled, rg.spec((3,)), x, by, "n")

    both = rg.jit(lambda x: g(x, 2.0) + g(x, 10.0))
    assert both(X).tolist() == [36.0, 12.0, 24.0]
    assert rg.jit(lambda x: rg.pure_callback(np.cos, rg.spec(()), x))(0.0 * X[0]).item() == 1.0
    assert rg.jit(lambda x: rg.pure_callback(np.sin, rg.spec(()), x))(0.0 * X[0]).item() == 0.0


def test_errors() -> None:
    def broken(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        rg.jit(lambda x: rg.pure_callback(broken, rg.spec((3,)), x))(X)
    with pytest.raises(rg.ShapeError, match=r"a result f32\[2\], where f32\[3\] was announced"):
        rg.jit(lambda x: rg.pure_callback(lambda x: x[:2], rg.spec((3,)), x))(X)
    with pytest.raises(rg.DTypeError, match=r"a result f64\[3\]"):
        rg.pure_callback(lambda x: x.astype(float), rg.spec((3,)), X).numpy()
    with pytest.raises(rg.ShapeError, match="structure"):
        rg.pure_callback(lambda x: (x, x), rg.spec((3,)), X).numpy()
    with pytest.raises(rg.ArgumentError, match=r"rg\.spec\(shape, dtype\), not as 3"):
        rg.pure_callback(ordered, 3, X)
    with pytest.raises(rg.ArgumentError, match="takes a function"):
        rg.pure_callback(X, rg.spec((3,)), X)  # type: ignore[arg-type]
    for derivative in (rg.grad(lambda x: f(x)["values"].sum()), lambda x: rg.jvp(f, (x,), (x,))):
        with pytest.raises(rg.GradientError, match=r"rg\.custom_vjp, or pass rg\.stop_gradient"):
            derivative(X)
    constant = rg.grad(lambda x: (f(rg.stop_gradient(x))["values"] * x).sum())
    assert constant(X).tolist() == [1.0, 2.0, 3.0]


def test_the_text_of_a_graph_does_not_run() -> None:
    text = str(rg.trace(f, X))
    assert "a function in Python, which is not in this text" in text
    read = rg.Graph.parse(text)
    for backend in ("reference", "llvm"):
        with pytest.raises(rg.BackendError, match="ordered is Python"):
            read.compile(backend=backend)(X)


def test_from_threads() -> None:
    g, found = rg.jit(f), []

    def run(k: int) -> None:
        found.append((g(X + k)["values"] - k).tolist())

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [[1.0, 2.0, 3.0]] * 4
