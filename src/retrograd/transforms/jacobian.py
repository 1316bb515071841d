"""Matrices of derivatives: jacrev, jacfwd, jacobian, hessian, and hvp."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, overload

import numpy as np

from retrograd import pytree
from retrograd.autodiff import batched, pullback, pushforward
from retrograd.eager.weak_types import is_weak, wide
from retrograd.errors import ArgumentError, GradientError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, Node, TensorType, full, int64
from retrograd.ops.elementwise import cast, eq
from retrograd.ops.leaf import Iota, input_node
from retrograd.ops.shape import expand, permute, reshape
from retrograd.tracing.module_state import put_back
from retrograd.tracing.scope import (
    ArgNums,
    call_site,
    called_on,
    detach_results,
    gradients,
    is_tracked,
    need_arguments,
    need_function,
    select,
    stand_in,
    substituted,
    to_node,
    with_aux,
)
from retrograd.tracing.transformed import Transformed
from retrograd.transforms.grad import differentiable, forgotten, grad
from retrograd.transforms.jvp import jvp

Blocks = list[list[Node | None]]  # by output and input; None: zero

P = ParamSpec("P")


def jacrev(f: Callable[P, Any], argnums: ArgNums = 0, has_aux: bool = False) -> Transformed[P, Any]:
    """A function that returns the Jacobian of f, row by row: a reverse pass for all elements of
    the output at once. For functions with fewer outputs than inputs.

    The result has the structure of the output, each leaf of which holds the structure of the
    argument; the block of an output of shape s and an input of shape t has the shape `s + t` and
    holds `d out[i] / d in[j]`. See `grad` for `argnums`, names and `has_aux`.

    `GradientError` for integer or complex inputs and outputs.

    >>> import retrograd as rg
    >>> rg.jacrev(lambda x: x**2)(rg.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacobian(f, argnums, has_aux, "jacrev", lambda ys, xs: True)


def jacfwd(f: Callable[P, Any], argnums: ArgNums = 0, has_aux: bool = False) -> Transformed[P, Any]:
    """A function that returns the Jacobian of f, column by column: a forward pass for all elements
    of the input at once. For functions with fewer inputs than outputs. Otherwise as `jacrev`.

    Shapes are those of `jacrev`; `GradientError` for integer or complex inputs and outputs.

    >>> import retrograd as rg
    >>> rg.jacfwd(lambda x: rg.stack([x, x**2]))(3.0).tolist()
    [1.0, 6.0]
    """
    return _jacobian(f, argnums, has_aux, "jacfwd", lambda ys, xs: False)


def dense_jacobian(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Any:
    """`jacrev` or `jacfwd`, whichever takes fewer passes for the sizes at hand."""
    return _jacobian(f, argnums, has_aux, "jacobian", _has_fewer_outputs)


def _has_fewer_outputs(ys: Sequence[Node], xs: Sequence[Node]) -> bool:
    """Whether there are fewer outputs than inputs; a named size counts as large."""
    rows, columns = ([x.type.size for x in nodes] for nodes in (ys, xs))
    named = [any(isinstance(n, Dim) for n in sizes) for sizes in (rows, columns)]
    if any(named):
        return named[1]
    return sum(map(int, rows)) < sum(map(int, columns))


def _jacobian(
    f: Callable[..., Any],
    argnums: ArgNums,
    has_aux: bool,
    what: str,
    reverse: Callable[[Sequence[Node], Sequence[Node]], bool],
) -> Any:
    need_function(f, what)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        numbers = select(args, argnums, what)
        chosen = tuple(args[i] for i in numbers)
        leaves, structure = pytree.flatten(chosen)
        inner = [stand_in(n) for n in differentiable(leaves, chosen, what)]
        result, state = called_on(
            lambda *new, **kwargs: f(*substituted(args, numbers, new), **kwargs),
            structure, inner, kwargs,
        )  # fmt: skip
        out, aux = with_aux(result, has_aux, "out")
        ends, shape = pytree.flatten(out)
        outputs = output_nodes(ends, what)
        need_real([*inner, *outputs], what)
        wrt = [x for x in inner if x.dtype.is_inexact]
        with call_site():
            way, other = (_rows, _columns) if reverse(outputs, wrt) else (_columns, _rows)
            try:
                blocks = way(outputs, inner)
            except GradientError:  # a rule that is for the other mode only
                if what in ("jacrev", "jacfwd"):
                    raise
                way = other
                blocks = way(outputs, inner)
        tracked = is_tracked([b for row in blocks for b in row])
        put_back(chosen, detach_results(state, tracked))
        rows = []
        for y, row in zip(outputs, blocks, strict=True):
            filled = [
                full(0, _block_type(way, y, x)) if b is None else b
                for x, b in zip(inner, row, strict=True)
            ]
            inside = pytree.unflatten(structure, [Tensor(b, tracked) for b in filled])
            rows.append(inside[0] if isinstance(argnums, int) else inside)
        jacobian = pytree.unflatten(shape, rows)
        return (jacobian, detach_results(aux, tracked)) if has_aux else jacobian

    return call


def _block_type(way: Callable[..., Any], y: Node, x: Node) -> TensorType:
    """Of a gradient of y by reverse passes, which has the dtype of x, or of a tangent."""
    dtype = x.dtype if way is _rows and x.dtype.is_inexact and not is_weak(x) else y.dtype
    return TensorType(dtype, (*y.shape, *x.shape))


def output_nodes(ends: Sequence[Any], what: str) -> list[Node]:
    """The outputs of a function as nodes, which have to be differentiable."""
    nodes = []
    for y in ends:
        if not isinstance(y, Tensor):
            raise GradientError(forgotten(y))
        node = to_node(y, what)
        if not node.dtype.is_inexact:
            raise GradientError(
                f"{what} of an output of dtype {node.dtype}: only floating outputs have "
                f"derivatives, not {node.describe()}; return it as aux (has_aux=True)"
            )
        nodes.append(node)
    return nodes


def need_real(nodes: Sequence[Node], what: str) -> None:
    for node in nodes:
        if node.dtype.is_complex:
            raise GradientError(
                f"{what} of complex numbers is ambiguous: {node.describe()}; differentiate with "
                "respect to real and imaginary parts, and take the rg.real or rg.imag of outputs"
            )


def _rows(outputs: Sequence[Node], inner: Sequence[Node]) -> Blocks:
    """By reverse passes: a stack of cotangents for each output."""
    blocks: Blocks = []
    for y in outputs:
        g = input_node(y.type)
        found = gradients(pullback([y], [g], [wide(x) for x in inner]), inner, [y])
        stacks = stacked(found, g)
        blocks.append(
            [
                None if s is None else reshape(s, (*y.shape, *x.shape))
                for s, x in zip(stacks, inner, strict=True)
            ]
        )
    return blocks


def _columns(outputs: Sequence[Node], inner: Sequence[Node]) -> Blocks:
    """By forward passes: a stack of tangents for each input."""
    columns: Blocks = []
    for x in inner:
        if not x.dtype.is_inexact:
            columns.append([None] * len(outputs))
            continue
        t = input_node(wide(x).type)
        stacks = stacked(pushforward(outputs, [wide(x)], [t]), t)
        last = [(*range(1, y.type.rank + 1), 0) for y in outputs]
        columns.append(
            [
                None if s is None else reshape(permute(s, perm), (*y.shape, *x.shape))
                for s, y, perm in zip(stacks, outputs, last, strict=True)
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)]


def stacked(nodes: Sequence[Node | None], direction: Node) -> list[Node | None]:
    """Nodes that are linear in a direction, for each of its unit vectors along a new axis 0."""
    size = direction.type.size
    identity = reshape(unit_vectors(size, direction.type), (size, *direction.shape))
    there = [n for n in nodes if n is not None]
    results = iter(
        [
            n if s else expand(n, (size, *n.shape), (0,))
            for n, s in batched(there, {direction: identity}, size)
        ]
    )
    return [None if n is None else next(results) for n in nodes]


def unit_vectors(size: int | Dim, type: TensorType) -> Node:
    """The identity matrix."""
    row, column = (Iota((size, size), axis, int64)() for axis in (0, 1))
    return cast(eq(row, column), type.dtype)


def dense_hessian(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Any:
    """Forward over reverse: one forward pass through the gradient for each element."""
    gradient = _jacobian(f, argnums, has_aux, "hessian", lambda ys, xs: True)
    return _jacobian(gradient, argnums, has_aux, "hessian", lambda ys, xs: False)


@overload
def hvp(f: Callable[..., Any], args: Any, v: Tensor | np.ndarray[Any, Any] | float) -> Tensor: ...
@overload
def hvp(f: Callable[..., Any], args: Any, v: Any) -> Any: ...
def hvp(f: Callable[..., Any], args: Any, v: Any) -> Any:
    """The product of the Hessian of a scalar function with a vector, `d/dt grad f(args + t v)`,
    without the Hessian: for about the price of two gradients, whatever the size.

    `args` is a tuple of arguments and `v` one of the same structure, and so is the result; of a
    single argument, which is no tuple, all three are given as they are.

    `ArgumentError` for a v that is no tuple where `args` is one, `GradientError` where f returns no
    real scalar.

    The result has the shapes and dtypes of the arguments.

    >>> import retrograd as rg
    >>> x, v = rg.tensor([1.0, 2.0]), rg.tensor([1.0, 0.0])
    >>> rg.hvp(lambda x: (x**3).sum(), x, v).tolist()
    [6.0, 0.0]
    """
    need_function(f, "hvp")
    single = not isinstance(args, tuple)
    given, direction = ((args,), (v,)) if single else (args, v)
    if not isinstance(direction, tuple):
        raise ArgumentError(
            "hvp takes the vector as a tuple where the arguments are one: rg.hvp(f, (x,), (v,)), "
            f"or rg.hvp(f, x, v) for a function of one argument; not {type(direction).__name__}"
        )
    need_arguments(f, given, "hvp")
    gradient = grad(f, argnums=tuple(range(len(given))))
    result: Any = jvp(gradient, given, direction)[1]
    return result[0] if single else result
