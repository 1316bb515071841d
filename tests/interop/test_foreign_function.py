"""Functions of another library under this one's transforms, where the other library is NumPy with
derivatives written out: what PyTorch and JAX are asked for, without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.interop.foreign_function import ForeignFunction, Library
from retrograd.ir import TensorType, as_dtype


def cubes(a: Any, b: Any) -> Any:
    """`sum(a^3 b)` and `a^2`."""
    return [(a**3 * b).sum(), a**2]


class Polynomials(Library):
    """A library whose derivatives are difference quotients of five points, which are exact for
    polynomials of up to the fourth degree."""

    def call(self, f: Callable[..., Any], arrays: Sequence[Any]) -> list[Any]:
        return [np.asarray(y) for y in f(*arrays)]

    def trees(self, f: Callable[..., Any], structure: Any, rest: Sequence[Any]) -> Any:
        form: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            given = iter(xs)
            whole = [next(given) if r is None else r for r in rest]
            args, named = pytree.unflatten(structure, whole)
            leaves, structure_of_results = pytree.flatten(f(*args, **named))
            form[:] = [structure_of_results]
            return leaves

        return flat, form

    def vjp(self, f: Callable[..., Any], count: int) -> Callable[..., Any]:
        def slopes(*given: Any) -> list[Any]:
            xs, gs = list(given[:count]), given[count:]
            found = [np.zeros_like(x) for x in xs]
            for k, x in enumerate(xs):
                for i in np.ndindex(*x.shape):
                    for by, weight in ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12)):
                        moved = np.array(x)
                        moved[i] += by
                        ys = f(*xs[:k], moved, *xs[k + 1 :])
                        found[k][i] += weight * sum(
                            (g * y).sum() for g, y in zip(gs, ys, strict=True)
                        )
            return found

        return slopes

    def types(self, f: Callable[..., Any], types: Sequence[TensorType]) -> list[TensorType]:
        if any(not isinstance(d, int) for t in types for d in t.shape):
            raise TypeError("sizes with names")
        found = f(*[np.zeros(t.shape, t.dtype.dtype) for t in types])
        return [TensorType(as_dtype(y.dtype), y.shape) for y in map(np.asarray, found)]


F = ForeignFunction(cubes, Polynomials(), "wrap")
A, B = rg.tensor([1.0, -2.0], rg.float64), rg.tensor([0.5, 3.0], rg.float64)


def loss(f: Callable[..., Any]) -> Callable[..., Any]:
    def of(a: Any, b: Any) -> Any:
        total, squares = f(a, b)
        return total * total + (squares * b).sum()

    return of


def close(found: Any, expected: Any) -> None:
    for x, y in zip(pytree.flatten(found)[0], pytree.flatten(expected)[0], strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_values_and_gradients(backend: str) -> None:
    with rg.backend(backend):
        _check_values_and_gradients()


def _check_values_and_gradients() -> None:
    close(F(A, B), cubes(A, B))
    close(rg.grad(loss(F), (0, 1))(A, B), rg.grad(loss(cubes), (0, 1))(A, B))
    a = rg.tensor(A.numpy(), requires_grad=True)
    for _ in range(3):  # what is recorded again is not computed from old values
        a.grad = None
        loss(F)(a, B).backward()
        close(a.grad, rg.grad(loss(cubes))(a.detach(), B))
        assert a.grad is not None
        a = (a - 0.001 * a.grad).detach().requires_grad_()
    with pytest.raises(rg.GradientError, match="depends on nothing"):
        F(A, B)[0].backward()


@pytest.mark.slow
def test_transforms() -> None:
    close(rg.jit(rg.grad(loss(F)))(A, B), rg.grad(loss(cubes))(A, B))
    close(rg.jvp(loss(F), (A, B), (B, A)), rg.jvp(loss(cubes), (A, B), (B, A)))
    stack = rg.stack([A, 2 * A])
    mapped = [rg.vmap(rg.grad(loss(f)), (0, None))(stack, B) for f in (F, cubes)]
    close(*mapped)

    def squared_twice(f: Callable[..., Any]) -> Any:
        return rg.scan(lambda c, _: (f(c, B)[1], c), A, None, length=2)

    close(squared_twice(F), squared_twice(cubes))
    close(*[rg.hvp(loss(f), (A, B), (B, A)) for f in (F, cubes)])


def test_arguments_that_are_no_arrays_are_passed_on() -> None:
    seen = []

    def f(x: Any, *, power: int, name: str) -> Any:
        seen.append((type(power), name))
        return {"y": x**power, "none": None}

    g = ForeignFunction(f, Polynomials(), "wrap")
    assert g(A, power=3, name="a")["y"].tolist() == (A**3).tolist()
    assert g(A, power=2, name="a")["y"].tolist() == (A**2).tolist()
    assert set(seen) == {(int, "a")}
    assert g(A.numpy(), power=2, name="b")["none"] is None
    assert repr(g) == "<wrap of f>"


def test_sizes_with_names_are_refused_where_they_are_declared() -> None:
    f = rg.jit(lambda a: F(a, a)[0], shapes={"a": "N"})
    with pytest.raises(rg.TraceError, match="without the values of its arguments"):
        f(A)
    g = rg.jit(lambda a: F(a, a)[0])  # sizes that change are compiled one by one
    assert [g(rg.ones(n, dtype=rg.float64)).item() for n in (2, 3, 4)] == [2.0, 3.0, 4.0]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(rg.ArgumentError, match="wrap takes a function"):
        ForeignFunction(3, Polynomials(), "wrap")  # type: ignore[arg-type]
