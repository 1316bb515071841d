"""Values and exact derivatives of functions of scalars and vectors, for tests that state them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.autodiff import pullback, pushforward
from retrograd.ir import DType, Graph, Node, TensorType, as_dtype, float64, full
from retrograd.ops.elementwise import select
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import slice_axis
from retrograd.verify.rule_checks import run

Function = Callable[..., Node]


def derive(f: Function, *xs: float, dtype: DType = float64) -> tuple[Any, Any, Any]:
    """The value, the gradient and the Hessian of a function of scalars, each partial by reverse
    mode, the Hessian by reverse over reverse."""
    inputs = [input_node(TensorType(dtype, ())) for _ in xs]
    y = f(*inputs)
    first = _gradient(y, inputs)
    second = [_gradient(g, inputs) for g in first]
    ends = [y, *first, *itertools.chain(*second)]
    values = run(Graph(inputs, ends), arrays(xs, dtype))
    n = len(xs)
    value, gradient, hessian = values[0], values[1 : n + 1], values[n + 1 :]
    return value, np.array(gradient), np.array(hessian).reshape(n, n)


def derive_forward(f: Function, *xs: float, dtype: DType = float64) -> tuple[Any, Any]:
    """Gradient by forward mode, Hessian by forward over forward."""
    inputs = [input_node(TensorType(dtype, ())) for _ in xs]
    y = f(*inputs)
    first = [_tangent(y, inputs, i) for i in range(len(xs))]
    second = [_tangent(t, inputs, i) for t in first for i in range(len(xs))]
    values = run(Graph(inputs, [*first, *second]), arrays(xs, dtype))
    n = len(xs)
    return np.array(values[:n]), np.array(values[n:]).reshape(n, n)


def vector_gradient(f: Function, *xs: Any) -> list[Any]:
    """The value and gradients of a scalar function of arrays."""
    data = [np.asarray(x) for x in xs]
    inputs = [input_node(TensorType(_dtype(x), x.shape)) for x in data]
    y = f(*inputs)
    return run(Graph(inputs, [y, *_gradient(y, inputs)]), data)


def vector_hessian(f: Function, x: Any) -> Any:
    """The Hessian of a scalar function of a vector."""
    x = np.asarray(x)
    v = input_node(TensorType(_dtype(x), x.shape))
    (g,) = _gradient(f(v), [v])
    rows = [_gradient(total(slice_axis(g, 0, i, i + 1)), [v])[0] for i in range(len(x))]
    return np.array(run(Graph([v], rows), [x]))


def cotangents(y: Node, wrt: Sequence[Node]) -> list[Any]:
    """What reverse mode gives for a cotangent of ones: None where nothing arrives."""
    return pullback([y], [full(1, y.type)], wrt)


def tangents(y: Node, x: Node) -> list[Any]:
    """What forward mode gives for a tangent of ones, alone in a list."""
    return pushforward([y], [x], [full(1, x.type)])


def total(x: Node) -> Node:
    """The sum of all elements."""
    return ReduceSum(tuple(range(x.type.rank)))(x)


def const(value: float, like: Node) -> Node:
    return full(value, like.type)


def where(c: Node, a: Node | float, b: Node | float) -> Node:
    like = a if isinstance(a, Node) else b
    assert isinstance(like, Node)
    a, b = (v if isinstance(v, Node) else const(v, like) for v in (a, b))
    return select(c, a, b)


def arrays(xs: Any, dtype: DType) -> list[Any]:
    return [np.asarray(x).astype(dtype.dtype) for x in xs]


def _dtype(x: Any) -> DType:
    return as_dtype(x.dtype)


def _gradient(y: Node, inputs: list[Node]) -> list[Node]:
    found = pullback([y], [full(1, y.type)], inputs, set(inputs))
    return [full(0, x.type) if g is None else g for g, x in zip(found, inputs, strict=True)]


def _tangent(y: Node, inputs: list[Node], i: int) -> Node:
    ones = [full(float(i == k), x.type) for k, x in enumerate(inputs)]
    (t,) = pushforward([y], inputs, ones, set(inputs))
    return full(0, y.type) if t is None else t
