"""Arguments under PyTorch's and NumPy's names: each works, or the error says what to write."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.coming_from.keywords import respelled, respells

rg: Any = retrograd  # to a type checker these names are errors
A = np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 3.0], [2.0, 3.0, 6.0]])
B = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0], [2.0, 2.0, -1.0]])
I = np.array([[2, 0, 1]])  # noqa: E741

# A call, and NumPy's value of it.
CALLS: list[tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = [
    (lambda a, b: rg.sin(input=a), lambda a, b: np.sin(a)),
    (lambda a, b: rg.add(input=a, other=b), lambda a, b: a + b),
    (lambda a, b: rg.add(other=b, input=a, alpha=2), lambda a, b: a + 2 * b),
    (lambda a, b: rg.subtract(a, b, alpha=0.5), lambda a, b: a - 0.5 * b),
    (lambda a, b: rg.sub(a, other=b), lambda a, b: a - b),
    (lambda a, b: rg.divide(a, b + 5, rounding_mode="floor"), lambda a, b: a // (b + 5)),
    (lambda a, b: rg.round(a / 7, decimals=2), lambda a, b: np.round(a / 7, 2)),
    (lambda a, b: rg.round(a / 7, 2), lambda a, b: np.round(a / 7, 2)),
    (lambda a, b: rg.pow(input=a, exponent=2), lambda a, b: a**2),
    (lambda a, b: a.pow(exponent=2), lambda a, b: a**2),
    (lambda a, b: a.mul(other=b), lambda a, b: a * b),
    (lambda a, b: rg.matmul(input=a, other=b), lambda a, b: a @ b),
    (lambda a, b: rg.mm(input=a, mat2=b), lambda a, b: a @ b),
    (lambda a, b: rg.cat(tensors=[a, b], dim=1), lambda a, b: np.concatenate([a, b], 1)),
    (lambda a, b: rg.hstack(tensors=(a, b)), lambda a, b: np.hstack([a, b])),
    (lambda a, b: rg.sum(input=a, dim=0, keepdim=True), lambda a, b: a.sum(0, keepdims=True)),
    (lambda a, b: rg.sum(a=a, axis=0, out=None), lambda a, b: a.sum(0)),
    (lambda a, b: rg.topk(input=a, k=2).values, lambda a, b: -np.sort(-a)[:, :2]),
    (lambda a, b: rg.where(condition=a > b, input=a, other=b), np.maximum),
    (lambda a, b: rg.clip(a, a_min=1, a_max=3), lambda a, b: a.clip(1, 3)),
    (lambda a, b: rg.trapezoid(a, dim=0), lambda a, b: np.trapezoid(a, axis=0)),
    (lambda a, b: rg.gradient(a, dim=0)[0], lambda a, b: np.gradient(a, axis=0)),
    (lambda a, b: rg.gradient(a, spacing=2.0)[1], lambda a, b: np.gradient(a, 2.0)[1]),
    (lambda a, b: rg.gradient(a, spacing=(2.0, 3.0))[1], lambda a, b: np.gradient(a, 2, 3)[1]),
    (lambda a, b: rg.rot90(a, k=1, dims=(1, 0)), lambda a, b: np.rot90(a, 1, (1, 0))),
    (lambda a, b: rg.tile(a, dims=(2, 1)), lambda a, b: np.tile(a, (2, 1))),
    (lambda a, b: rg.tile(a, reps=2), lambda a, b: np.tile(a, 2)),
    (lambda a, b: a.tile(dims=(2, 1)), lambda a, b: np.tile(a, (2, 1))),
    (lambda a, b: a.view(size=(1, 9)), lambda a, b: a.reshape(1, 9)),
    (lambda a, b: a.reshape(shape=(1, 9)), lambda a, b: a.reshape(1, 9)),
    (lambda a, b: a.permute(dims=(1, 0)), lambda a, b: a.T),
    (lambda a, b: a.flip(dims=(1,)), lambda a, b: a[:, ::-1]),
    (lambda a, b: a.flip(dims=()), lambda a, b: a),
    (lambda a, b: a.flip(), lambda a, b: a[::-1, ::-1]),
    (lambda a, b: a[:1].expand(size=(2, 3)), lambda a, b: a[[0, 0]]),
    (lambda a, b: rg.roll(a, shifts=1, dims=0), lambda a, b: np.roll(a, 1, 0)),
    (lambda a, b: rg.unique(a, dim=0), lambda a, b: np.unique(a, axis=0)),
    (lambda a, b: rg.zeros_like(input=a, device="cpu"), lambda a, b: 0 * a),
    (lambda a, b: rg.eye(n=2, m=3, dtype=rg.float64), lambda a, b: np.eye(2, 3)),
    (lambda a, b: rg.arange(end=3), lambda a, b: np.arange(3)),
    (lambda a, b: rg.arange(start=1, end=3), lambda a, b: np.arange(1, 3)),
    (lambda a, b: rg.linspace(start=0, end=1, steps=3), lambda a, b: np.linspace(0, 1, 3)),
    (lambda a, b: rg.bmm(input=a[None], mat2=b[None])[0], lambda a, b: a @ b),
    (lambda a, b: rg.cov(input=a, correction=0), lambda a, b: np.cov(a, ddof=0)),
    (lambda a, b: rg.searchsorted(sorted_sequence=a[:, 0] * 0, input=b[0]), lambda a, b: [3, 0, 3]),
    (lambda a, b: rg.linalg.inv(A=a), lambda a, b: np.linalg.inv(a)),
    (lambda a, b: rg.linalg.solve(A=a, B=b), np.linalg.solve),
    (lambda a, b: rg.linalg.eigvalsh(b, UPLO="L"), lambda a, b: np.linalg.eigvalsh(b, "L")),
    (lambda a, b: rg.linalg.eigvalsh(b, UPLO="U"), lambda a, b: np.linalg.eigvalsh(b, "U")),
    (lambda a, b: rg.linalg.eigh(b, UPLO="U")[0], lambda a, b: np.linalg.eigh(b, "U")[0]),
    (
        lambda a, b: rg.linalg.solve_triangular(a, b, upper=False),
        lambda a, b: np.linalg.solve(np.tril(a), b),
    ),
    (
        lambda a, b: rg.linalg.solve_triangular(A=a, B=b, upper=True, left=False),
        lambda a, b: b @ np.linalg.inv(np.triu(a)),
    ),
    (
        lambda a, b: rg.linalg.solve_triangular(a, b, upper=True, unitriangular=True),
        lambda a, b: np.linalg.solve(np.triu(a, 1) + np.eye(3), b),
    ),
    (lambda a, b: rg.linalg.matrix_rank(a, atol=3.0), lambda a, b: np.linalg.matrix_rank(a, 3.0)),
    (lambda a, b: rg.linalg.matrix_rank(a, tol=3.0), lambda a, b: np.linalg.matrix_rank(a, 3.0)),
    (
        lambda a, b: rg.linalg.pinv(a, rcond=0.4, hermitian=True),
        lambda a, b: np.linalg.pinv(a, rcond=0.4),
    ),
    (
        lambda a, b: rg.linalg.pinv(b, hermitian=True),
        lambda a, b: np.linalg.pinv(b, hermitian=True),
    ),
    (lambda a, b: rg.linalg.pinv(a, atol=3.0), lambda a, b: np.linalg.pinv(a, rcond=3 / 9.57)),
    (lambda a, b: rg.fft.fft(input=a, dim=0).real, lambda a, b: np.fft.fft(a, axis=0).real),
    (lambda a, b: rg.fft.fft2(a, dim=(0, 1)).imag, lambda a, b: np.fft.fft2(a).imag),
    (lambda a, b: rg.fft.fftn(a, dim=0).imag, lambda a, b: np.fft.fft(a, axis=0).imag),
    (lambda a, b: rg.vmap(lambda x, y: x * y, in_dims=(0, None))(a, b[0]), lambda a, b: a * b[0]),
    (lambda a, b: rg.cond(pred=True, true_fn=lambda: a, false_fn=lambda: b), lambda a, b: a),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(CALLS)))
def test_a_call_under_other_names(i: int) -> None:
    ours, theirs = CALLS[i]
    with rg.backend("reference"):
        found = ours(rg.asarray(A), rg.asarray(B))
        np.testing.assert_allclose(found.numpy(), theirs(A, B), rtol=1e-6, atol=1e-9)


ERRORS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: rg.sin(x, out=x), "y[...] = rg.sin(...)"),
    (lambda x: rg.sum(x, 0, wrong=3), "it takes x, axis"),
    (lambda x: rg.sum(x, keepdimz=True), "did you mean 'keepdim'?"),
    (lambda x: rg.sum(x, x=x), "given 'x' twice"),
    (lambda x: rg.multiply(x), "misses 'x2'"),
    (lambda x: rg.sin(), "misses 'x'"),
    (lambda x: rg.sin(x, x), "not 2 arguments"),
    (lambda x: rg.max(x, other=x), "rg.maximum(x, y)"),
    (lambda x: rg.zeros_like(x, device="cuda"), "cpu"),
    (lambda x: x.view(size=(2, 2), memory_format=1), "one layout"),
    (lambda x: rg.scatter_add(x, dim=0, index=x, src=x), "x.scatter_add(dim, index, src)"),
    (lambda x: rg.linalg.lu_solve(LU=x, pivots=x, B=x), "lu_solve(lu_factor(A), B)"),
    (lambda x: rg.linalg.lu(x, pivot=False), "always exchanged"),
    (lambda x: rg.linalg.eigh(x, UPLO="X"), "'L' or 'U'"),
    (lambda x: rg.linalg.solve_triangular(x, x, upper=True, lower=True), "not both"),
    (lambda x: rg.matmul(x, x, x), "not 3 arguments"),
]


@pytest.mark.parametrize("i", range(len(ERRORS)))
def test_a_name_that_means_nothing_says_what_to_write(i: int) -> None:
    call, said = ERRORS[i]
    with pytest.raises((TypeError, ValueError), match=re.escape(said)) as error:
        call(rg.asarray(A))
    assert isinstance(error.value, rg.RetrogradError)


def test_gradients_go_through_arguments_by_name() -> None:
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    rg.sum(input=rg.mul(input=x, other=x)).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]
    compiled = rg.jit(lambda x: rg.sum(input=rg.exp(input=x), dim=0))
    np.testing.assert_allclose(compiled(x.detach()).item(), np.exp([1.0, 2.0]).sum(), rtol=1e-6)


def test_a_function_of_ones_own() -> None:
    @respells
    def f(x: Any, /, axis: int = 0, *, keepdims: bool = False) -> tuple[Any, int, bool]:
        return x, axis, keepdims

    g: Any = f
    assert g(input=1, dim=2, keepdim=True) == g(1, 2, keepdims=True) == (1, 2, True)
    assert respelled(lambda *shape: shape, (), {"size": 3, "out": None})[1] == {}
    with pytest.raises(rg.ArgumentError, match="twice"):
        g(1, 2, dim=3)


def test_layers_are_made_by_programs_of_pytorch() -> None:
    assert rg.nn.Linear(2, 3, device="cpu", dtype=rg.float64).weight.dtype is rg.float64
    assert rg.nn.MSELoss(size_average=None, reduce=None)(rg.ones(2), rg.zeros(2)).item() == 1.0
    for call, said in (
        (lambda: rg.nn.Linear(2, 3, device="cuda"), 'rg.backend("...")'),
        (lambda: rg.nn.Linear(2, 3, baias=False), "did you mean 'bias'?"),
        (lambda: rg.nn.MSELoss(size_average=True), 'reduction="mean"'),
    ):
        with pytest.raises(rg.ArgumentError, match=re.escape(said)):
            call()

    class Own(rg.nn.Linear):
        def __init__(self, device: str) -> None:
            super().__init__(2, 3, device=device)

    assert Own("cpu").weight.shape == (3, 2)


def test_arguments_of_any_name_stay_as_they_are() -> None:
    @respells
    def f(*args: Any, axis: int = 0, **others: Any) -> Any:
        return args, axis, others

    g: Any = f
    assert g(1, dim=3, input=2) == ((1,), 0, {"dim": 3, "input": 2})


def test_names_of_jax_that_mean_what_is_here() -> None:
    @functools.partial(rg.jit, static_argnums=0, donate_argnums=(1,))
    def power(n: int, x: Any) -> Any:
        return x**n

    with rg.backend("reference"):
        assert power(2, rg.tensor([1.0, 3.0])).block_until_ready().tolist() == [1.0, 9.0]
        total, _ = rg.scan(lambda c, x: (c + x, None), 0.0, rg.arange(4.0), unroll=2)
        assert total.item() == 6.0
    with pytest.raises(rg.ArgumentError, match="no axis has a name"):
        rg.vmap(lambda x: x, axis_name="i")
