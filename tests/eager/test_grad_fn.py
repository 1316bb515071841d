"""What values know of the segment, or call of a compiled function, that made them."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.grad_fn import full_history, grad_fn_of
from retrograd.ir import Graph, Node
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.eager.cutting import cut_after

A = np.array([0.3, -1.2, 2.0], np.float32)


def recomputed(y: Node, *xs: rg.Tensor) -> np.ndarray:
    """From the leaves, by the nodes of the whole history."""
    return ReferenceProgram(Graph([x.node for x in xs], [y]))([x.numpy() for x in xs])[0]


def test_the_whole_history_of_a_value_that_was_cut() -> None:
    with cut_after(3):
        x = rg.tensor(A, requires_grad=True)
        y = x
        for k in range(10):
            y = rg.sin(y) * (1.5 + k) + x
        y.numpy()
        np.testing.assert_allclose(recomputed(y.node, x), y.numpy(), 1e-6)
        np.testing.assert_allclose(recomputed((y * y).node, x), y.numpy() ** 2, 1e-6)


def test_what_nobody_differentiates_has_no_history() -> None:
    with cut_after(3):
        x = rg.tensor(A)
        y = x
        for k in range(10):
            y = y * (1.5 + k)
        y.numpy()
        assert grad_fn_of(y.node) is None
        assert full_history(y.node) is y.node


def test_results_of_compiled_functions() -> None:
    """Gradients go through them; their nodes are made when somebody asks."""

    def f(x: Any, w: Any) -> Any:
        return rg.sin(x * w), (x + w).sum()

    jitted = rg.jit(f)
    x, w = (rg.tensor(a, requires_grad=True) for a in (A, A[::-1].copy()))
    one, total = jitted(x, w)
    (jitted(one, w)[0].sum() * total).backward()
    expected = rg.grad(
        lambda x, w: f(f(x, w)[0], w)[0].sum() * f(x, w)[1], argnums=(0, 1)
    )(A, A[::-1].copy())  # fmt: skip
    for t, g in zip((x, w), expected, strict=True):
        assert t.grad is not None
        np.testing.assert_allclose(t.grad.numpy(), g.numpy(), 1e-5)
    one, _ = jitted(x, w)
    np.testing.assert_allclose(recomputed(one.node, x, w), np.sin(A * A[::-1]), 1e-6)


@pytest.mark.parametrize("length", [1, 300])
def test_long_chains_of_calls_need_no_recursion(length: int) -> None:
    f = rg.jit(lambda x: x * 1.001)
    x = rg.tensor(A, requires_grad=True)
    y = x
    for _ in range(length):
        y = f(y)
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 1.001**length, 1e-4)
