"""Reverse mode for functions: grad, value_and_grad, vjp.

A transform calls the function on tensors with fresh identities and works on the nodes that come
out, so transforms compose in any order, and with `backward()`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from retrograd import pytree
from retrograd.autodiff import pullback, seeds
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.listeners import tell_gradient
from retrograd.eager.modes import calling
from retrograd.eager.weak_types import wide
from retrograd.errors import GradientError
from retrograd.ir import Node
from retrograd.tracing.module_state import StateWatch, put_back
from retrograd.tracing.scope import (
    ArgNums,
    argument,
    call_site,
    called_on,
    detach_results,
    differentiating,
    gradients,
    is_tracked,
    match_cotangents,
    need_arguments,
    need_function,
    select,
    stand_in,
    substituted,
    tensors,
    to_node,
    with_aux,
)
from retrograd.tracing.transformed import Transformed
from retrograd.transforms.grad_cache import eager_gradients, outside, release, stand_ins

# The gradient has the type of the argument. Bound, so that lambdas are taken as they are.
A = TypeVar("A", bound=Any)
P = ParamSpec("P")
R = TypeVar("R")


@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], R],
) -> Transformed[Concatenate[A, P], tuple[R, A]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], R], argnums: Literal[0], has_aux: Literal[False] = ...
) -> Transformed[Concatenate[A, P], tuple[R, A]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], R], argnums: Literal[0] = ..., *, has_aux: Literal[True]
) -> Transformed[Concatenate[A, P], tuple[R, A]]: ...
@overload
def value_and_grad(
    f: Callable[P, R], argnums: Sequence[int], has_aux: bool = ...
) -> Transformed[P, tuple[R, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    f: Callable[P, R], argnums: int, has_aux: bool = ...
) -> Transformed[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, R], argnums: ArgNums = ..., *, has_aux: bool
) -> Transformed[P, tuple[R, Any]]: ...
def value_and_grad(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Any:
    """A function that returns `(f(*args), gradient)`.

    The gradient is that of the scalar f with respect to argument `argnums` (negative numbers count
    from the end, a tuple of them gives a tuple), in the structure of that argument: any tree of
    tuples, lists, dicts, dataclasses and modules. Its leaves must be floating or complex; state
    that comes along, such as the key of a random generator in a module, gets zeros. Arguments given
    by name are passed on as they are and count as constants. With `has_aux`, f returns
    `(scalar, aux)` and the result is `((scalar, aux), gradient)`.

    f gets modules that are copies of those among the arguments. What it changes there and does not
    return, such as the running statistics of batch normalization and the position of the random
    generator of a dropout, is then changed in the argument, as if f had been called on that.

    Raises `GradientError` where f returns no scalar, where it returns a plain number or array that
    has forgotten what it was computed from, and for integer leaves.

    Gradients have the shapes and dtypes of the leaves.

    >>> import retrograd as rg
    >>> value, slope = rg.value_and_grad(lambda x: x**2)(3.0)
    >>> value.item(), slope.item()
    (9.0, 6.0)
    """
    need_function(f, "value_and_grad")

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        numbers = select(args, argnums, "grad")
        chosen = tuple(args[i] for i in numbers)
        leaves, structure = pytree.flatten(chosen)
        own = stand_ins(leaves)
        if own is not None:
            try:
                with differentiating((), own), calling():
                    new = pytree.unflatten(structure, own)
                    # Parameters are of a class of their own, and no state.
                    plain = any(type(x) is LazyTensor.handle_class for x in leaves)
                    holds = plain and pytree.may_hold_state(new)
                    watch = StateWatch(new, structure, own) if holds else None
                    result = f(*substituted(args, numbers, new), **kwargs)
                value, aux = with_aux(result, has_aux, "scalar")
                state = [] if watch is None else watch.lost(result)
                found = eager_gradients(value, own)
            finally:
                release(own)
            if found is not None:
                tracked, slopes = found
                if state:
                    put_back(chosen, outside(state, tracked))
                value, aux = outside((value, aux), tracked)
                return _given(value, aux, pytree.unflatten(structure, slopes))
            y, inner = _scalar(value), [x.node for x in own]
        else:
            inner = [stand_in(n) for n in differentiable(leaves, chosen, "grad")]
            result, state = called_on(
                lambda *new, **kwargs: f(*substituted(args, numbers, new), **kwargs),
                structure, inner, kwargs,
            )  # fmt: skip
            value, aux = with_aux(result, has_aux, "scalar")
            y = _scalar(value)
        tell_gradient([y], [wide(n) for n in inner])
        with call_site():
            ends = gradients(pullback([y], seeds([y]), [wide(n) for n in inner]), inner, [y])
        tracked = is_tracked([y, *ends])
        if state:
            put_back(chosen, detach_results(state, tracked))
        value, aux = detach_results((value, aux), tracked)
        return _given(value, aux, pytree.unflatten(structure, tensors(ends, inner, tracked)))

    def _given(value: Any, aux: Any, grads: Any) -> Any:
        """What the caller gets."""
        return (value, aux) if has_aux else value, grads[0] if isinstance(argnums, int) else grads

    return call


@overload
def grad(f: Callable[Concatenate[A, P], Any]) -> Transformed[Concatenate[A, P], A]: ...
@overload
def grad(
    f: Callable[Concatenate[A, P], Any], argnums: Literal[0], has_aux: Literal[False] = ...
) -> Transformed[Concatenate[A, P], A]: ...
@overload
def grad(
    f: Callable[Concatenate[A, P], tuple[Any, R]],
    argnums: Literal[0] = ...,
    *,
    has_aux: Literal[True],
) -> Transformed[Concatenate[A, P], tuple[A, R]]: ...
@overload
def grad(
    f: Callable[P, Any], argnums: Sequence[int], has_aux: Literal[False] = ...
) -> Transformed[P, tuple[Any, ...]]: ...
@overload
def grad(f: Callable[P, Any], argnums: ArgNums, has_aux: bool = ...) -> Transformed[P, Any]: ...
@overload
def grad(f: Callable[P, Any], argnums: ArgNums = ..., *, has_aux: bool) -> Transformed[P, Any]: ...
def grad(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Any:
    """A function that returns the gradient of the scalar function f.

    See `value_and_grad`; with `has_aux` the result is `(gradient, aux)`.

    The gradient has the structure, shapes and dtypes of the argument. `GradientError` where f
    returns no scalar, and for integer leaves.

    >>> import retrograd as rg
    >>> rg.grad(lambda x: x**3)(2.0).item()
    12.0
    """
    need_function(f, "grad")
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return call


def differentiable(leaves: Sequence[Any], arguments: Any, what: str) -> list[Node]:
    """The nodes of leaves, which have to be of a dtype that has gradients."""
    nodes = [argument(x, what) for x in leaves]
    if all(n.dtype.is_inexact for n in nodes):
        return nodes
    names = pytree.paths(arguments)
    for node, state, name in zip(nodes, pytree.is_state(arguments), names, strict=True):
        if not (node.dtype.is_inexact or state):
            raise GradientError(
                f"{what} with respect to a {node.dtype} argument of shape {node.shape} (leaf "
                f"{name} of the chosen arguments): only floating values have gradients; write 3.0 "
                "for 3, cast it with rg.astype(x, rg.float32), or pass it in another argument"
            )
    return nodes


def _scalar(value: Any) -> Node:
    if isinstance(value, LazyTensor):
        return value.node
    if isinstance(value, bool | int | float) or hasattr(value, "__array__"):
        raise GradientError(forgotten(value))
    raise GradientError(
        f"grad needs a function that returns a scalar tensor, not {type(value).__name__}; use "
        "has_aux=True for a function that returns (scalar, more)"
    )


def forgotten(value: Any) -> str:
    """What to say of a result that nothing is known of."""
    return (
        f"the function to differentiate returned the plain number or array {value!r:.80}, which "
        "knows nothing of what it was computed from: its gradient would silently be zero. "
        "Compute with tensors throughout (rg.sin instead of math.sin or np.sin, no .item() or "
        ".numpy()), or return rg.tensor(...) if a constant is meant"
    )


Pullback = Callable[[Any], tuple[Any, ...]]


@overload
def vjp(f: Callable[..., R], *args: Any, has_aux: Literal[False] = ...) -> tuple[R, Pullback]: ...
@overload
def vjp(
    f: Callable[..., tuple[R, A]], *args: Any, has_aux: Literal[True]
) -> tuple[R, Pullback, A]: ...
@overload
def vjp(f: Callable[..., Any], *args: Any, has_aux: bool) -> tuple[Any, ...]: ...
def vjp(f: Callable[..., Any], *args: Any, has_aux: bool = False) -> Any:
    """`(out, pullback)`: the value, and the function from a cotangent to one gradient for each
    argument, `g^T df/dx`.

    `pullback` takes a cotangent in the structure of the output, with its shapes and dtypes, and
    can be called any number of times. Integer and bool arguments get zeros of their own dtype;
    integer outputs take a cotangent of their type, which is ignored. With `has_aux`, f returns
    `(out, aux)` and the result is `(out, pullback, aux)`.

    `GradientError` for a cotangent that has not the structure or shapes of the output, and where
    the output is a plain number that has forgotten what it was computed from.

    >>> import retrograd as rg
    >>> out, pullback = rg.vjp(lambda x, y: x * y, rg.tensor([1.0, 2.0]), 3.0)
    >>> gx, gy = pullback(rg.tensor([1.0, 10.0]))
    >>> gx.tolist(), gy.item()
    ([3.0, 30.0], 21.0)
    """
    need_function(f, "vjp")
    need_arguments(f, args, "vjp")
    leaves, structure = pytree.flatten(args)
    inner = [stand_in(argument(x, "vjp")) for x in leaves]
    result, state = called_on(f, structure, inner, {})
    out, aux = with_aux(result, has_aux, "out")
    ends, shape = pytree.flatten(out)
    outputs = [to_node(y, "vjp") for y in ends]
    tracked = is_tracked(outputs)
    put_back(args, detach_results(state, tracked))

    def back(cotangent: Any) -> tuple[Any, ...]:
        start = match_cotangents(cotangent, shape, outputs, "cotangent", "output")
        pairs = [(y, g) for y, g in zip(outputs, start, strict=True) if y.dtype.is_inexact]
        ends = [y for y, _ in pairs]
        tell_gradient(ends, [wide(n) for n in inner])
        found = pullback([wide(y) for y in ends], [g for _, g in pairs], [wide(n) for n in inner])
        found = gradients(found, inner, ends)
        again = is_tracked(found)
        slopes: tuple[Any, ...] = pytree.unflatten(structure, tensors(found, inner, again))
        return slopes

    out, aux = detach_results((out, aux), tracked)
    return (out, back, aux) if has_aux else (out, back)
