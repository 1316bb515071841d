"""Transforms whose results come in another order than here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograd import pytree
from retrograd.functions.tensor.tensor import Tensor
from retrograd.transforms.grad import value_and_grad
from retrograd.transforms.grad import vjp as pullback_of


def grad_and_value(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that gives the gradient and then the value: `rg.value_and_grad` the other way
    round.

    >>> import retrograd as rg
    >>> rg.func.grad_and_value(lambda x: x**2)(3.0)
    (Tensor(6., dtype=float32), Tensor(9., dtype=float32))
    """
    both = value_and_grad(func, argnums if isinstance(argnums, int) else tuple(argnums), has_aux)

    def call(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return call


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of `func`, and the function that maps a cotangent to those of the primals: as
    PyTorch has it one gradient of one primal, a tuple of several. With `has_aux` what `func`
    returns second comes third. `rg.vjp` always gives a tuple.

    >>> import retrograd as rg
    >>> y, back = rg.func.vjp(lambda x: x**2, rg.tensor(3.0))
    >>> y.item(), back(rg.tensor(1.0)).item()
    (9.0, 6.0)
    """
    more: list[Any] = []

    def value(*args: Any) -> Any:
        out = func(*args)
        if not has_aux:
            return out
        more[:] = [pytree.map(lambda x: x.detach() if isinstance(x, Tensor) else x, out[1])]
        return out[0]

    out, back = pullback_of(value, *primals)

    def call(cotangent: Any) -> Any:
        found = back(cotangent)
        return found[0] if len(primals) == 1 else tuple(found)

    return (out, call, *more)
