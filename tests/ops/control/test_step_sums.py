"""Gradients of what a loop reads in every step: products after the loop, other sums in carries."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, TensorType, float64, reachable
from retrograd.ops.control import Scan
from retrograd.ops.control.step_sums import StepSums
from retrograd.ops.elementwise import add, mul
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import pad, permute
from retrograd.verify.rule_checks import run

X = np.random.default_rng(0).normal(size=(6, 3, 4))
W = np.random.default_rng(1).normal(size=(4, 4)) / 2
B = np.random.default_rng(2).normal(size=4)


def layer(x: Any, w: Any, b: Any) -> Any:
    return rg.tanh(x @ w + b)


def named(x: Any, w: Any, b: Any) -> Any:
    """Weights that are read in parts, turned, and otherwise than in products."""
    return rg.tanh(x @ w.T + rg.concat([x @ w[:, :2], x @ w[:, 2:]], axis=-1) + b * w[0, 0])


def once_more(x: Any, w: Any, b: Any) -> Any:
    return layer(layer(x, w, b), w, b) * w[1]


BODIES = (layer, named, once_more)


def looped(step: Any, checkpoint: Any = None, reverse: bool = False) -> Any:
    def total(w: Any, b: Any, x: Any) -> Any:
        def body(h: Any, row: Any) -> Any:
            h = step(h + row, w, b)
            return h, h * row

        h, ys = rg.scan(body, x[0], x, checkpoint=checkpoint, reverse=reverse)
        return (h * h).sum() + ys.sum()

    return total


def unrolled(step: Any, reverse: bool = False) -> Any:
    def total(w: Any, b: Any, x: Any) -> Any:
        h, ys = x[0], 0.0
        for t in range(len(X))[:: -1 if reverse else 1]:
            h = step(h + x[t], w, b)
            ys = ys + (h * x[t]).sum()
        return (h * h).sum() + ys

    return total


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("checkpoint", [None, 2, "log"])
@pytest.mark.parametrize("step", BODIES)
@pytest.mark.sample(4)
def test_gradients_are_those_of_the_steps_written_out(
    step: Any, checkpoint: Any, reverse: bool
) -> None:
    expected = rg.grad(unrolled(step, reverse), argnums=(0, 1, 2))(W, B, X)
    found = rg.grad(looped(step, checkpoint, reverse), argnums=(0, 1, 2))(W, B, X)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)


@pytest.mark.parametrize("step", BODIES)
def test_second_derivatives(step: Any) -> None:
    def along(f: Any) -> Any:
        return rg.grad(lambda w: (rg.grad(f)(w, B, X) * W).sum())(W).numpy()

    np.testing.assert_allclose(along(looped(step)), along(unrolled(step)), rtol=1e-9)


@pytest.mark.parametrize("step", BODIES)
def test_batches_of_weights(step: Any) -> None:
    stack = np.stack([W, W + 0.1, -W])
    found = rg.vmap(rg.grad(looped(step)), (0, None, None))(stack, B, X).numpy()  # type: ignore[attr-defined]
    for g, w in zip(found, stack, strict=True):
        np.testing.assert_allclose(g, rg.grad(unrolled(step))(w, B, X).numpy(), rtol=1e-10)


def backward(step: Any, checkpoint: Any = None) -> Scan:
    """The loop that goes back, in the gradient by weights and bias."""
    graph = rg.trace(rg.grad(looped(step, checkpoint), argnums=(0, 1)), W, B, X)
    return next(n.prim for n in graph.body if isinstance(n.prim, Scan) and n.prim.reverse)


def test_products_leave_the_loop_with_the_sums_of_what_they_multiply() -> None:
    assert backward(layer).carries == 1  # the cotangent of the state
    assert backward(once_more).carries > 1  # a product element by element stays
    inner = backward(layer, checkpoint=2)  # goes back over what is computed again
    assert inner.carries > 1


def test_one_loop_for_named_sizes_and_known_ones() -> None:
    known = rg.jit(rg.grad(looped(layer), argnums=(0, 1)))
    sizes = rg.jit(
        rg.grad(looped(layer), argnums=(0, 1)), shapes={"x": "T N 4", "w": "4 4", "b": "4"}
    )
    for a, b in zip(known(W, B, X), sizes(W, B, X), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_what_is_taken_and_what_is_left() -> None:
    a, b = (input_node(TensorType(float64, (3, 2))) for _ in range(2))
    fixed = input_node(TensorType(float64, (3, 2)))
    product = DotGeneral((0,), (0,))
    other = mul(product(a, fixed), product(fixed, b))
    term = add(add(permute(product(a, b), (1, 0)), other), product(b, a))
    row = pad(ReduceSum((0,))(a), (1,), (0,))
    sums = StepSums([term, row, other, fixed], (a, b), ())
    assert sums.stacked == [a, b]
    assert sums.left[0] is other
    assert sums.left[1:] == [None, other, fixed]
    stacks = {x: input_node(TensorType(float64, (5, 3, 2))) for x in (a, b)}
    arrays = [np.random.default_rng(k).normal(size=(5, 3, 2)) for k in range(2)]
    ends = [sums.total(k, stacks) for k in range(4)]
    assert ends[2] is ends[3] is None
    graph = Graph(list(stacks.values()), [x for x in ends if x is not None])
    x, y = arrays
    each = np.einsum("tki,tkj->ij", x, y)
    found = run(graph, arrays)
    np.testing.assert_allclose(found[0], each.T + each.T, rtol=1e-12)
    np.testing.assert_allclose(found[1], np.concatenate([[0], x.sum((0, 1))]), rtol=1e-12)


def test_products_whose_axes_differ_between_the_factors() -> None:
    a = input_node(TensorType(float64, (2, 3, 4)))
    b = input_node(TensorType(float64, (5, 4, 3)))
    sums = StepSums([DotGeneral((2,), (1,), (1,), (2,))(a, b)], (a, b), ())
    stacks = {x: input_node(x.type.with_shape((6, *x.shape))) for x in (a, b)}
    total = sums.total(0, stacks)
    assert total is not None
    arrays = [np.random.default_rng(k).normal(size=x.shape) for k, x in enumerate(stacks.values())]
    (found,) = run(Graph(list(stacks.values()), [total]), arrays)
    np.testing.assert_allclose(found, np.einsum("tiba,tjab->bij", *arrays), rtol=1e-12)


def test_sums_along_any_axes_of_what_is_stacked() -> None:
    x = input_node(TensorType(float64, (2, 3, 4)))
    sums = StepSums([ReduceSum((1,))(x), ReduceSum((0, 2))(x), x], (x,), (x,))
    stack = input_node(TensorType(float64, (5, 2, 3, 4)))
    array = np.random.default_rng(0).normal(size=stack.shape)
    ends = [y for k in range(3) if (y := sums.total(k, {x: stack})) is not None]
    found = run(Graph([stack], ends), [array])
    for y, axes in zip(found, ((0, 2), (0, 1, 3), (0,)), strict=True):
        np.testing.assert_allclose(y, array.sum(axes), rtol=1e-12)


def test_a_sum_that_doubles_and_doubles_is_looked_at_once() -> None:
    a, b = (input_node(TensorType(float64, (3,))) for _ in range(2))
    term = DotGeneral((), ())(a, b)
    for _ in range(100):
        term = add(term, term)
    (left,) = StepSums([term], (a, b), ()).left
    assert left is not None
    assert len(reachable([left])) < 400
