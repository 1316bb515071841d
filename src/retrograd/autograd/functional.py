"""Derivatives of a function at inputs, under the names of `torch.autograd.functional`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.errors import GradientError
from retrograd.functions.creation import ones_like
from retrograd.functions.tensor.tensor import Tensor
from retrograd.transforms.grad import vjp as pullback_of
from retrograd.transforms.jacobian import jacfwd, jacrev
from retrograd.transforms.jvp import jvp as pushed

F = Callable[..., Any]


def jacobian(
    func: F,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func` at `inputs`, a tensor or a tuple of them: for each output, and each
    input of a tuple, the array of the shape of the output followed by that of the input.

    `strategy` is "reverse-mode" or "forward-mode". What says how PyTorch computes is passed over.

    >>> import retrograd as rg
    >>> rg.autograd.functional.jacobian(lambda x: x**2, rg.tensor([1.0, 3.0])).tolist()
    [[2.0, 0.0], [0.0, 6.0]]
    """
    way = jacfwd if strategy == "forward-mode" else jacrev
    return _of_all(way, func, inputs, create_graph)


def hessian(
    func: F,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a `func` that gives one number, at `inputs`, a tensor or a tuple of them: for
    each pair of inputs the array of the shapes of both.

    >>> import retrograd as rg
    >>> rg.autograd.functional.hessian(lambda x: (x**3).sum(), rg.tensor([1.0, 3.0])).tolist()
    [[6.0, 0.0], [0.0, 18.0]]
    """
    outer = jacfwd if outer_jacobian_strategy == "forward-mode" else jacrev

    def twice(f: F, argnums: Any) -> Any:
        return outer(jacrev(_one_number(f), argnums), argnums)

    return _of_all(twice, func, inputs, create_graph)


def vjp(
    func: F, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of `func` at `inputs`, and `v^T J`: of the structure of the inputs. Without v the
    output is one number.

    >>> import retrograd as rg
    >>> rg.autograd.functional.vjp(lambda x: x**2, rg.tensor([1.0, 3.0]), rg.ones(2))[1].tolist()
    [2.0, 6.0]
    """
    args = _args(inputs)
    out, back = pullback_of(func, *args)
    found = back(_seed(out, v))
    return _kept(out, create_graph), _kept(_like(inputs, found), create_graph)


def jvp(
    func: F, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of `func` at `inputs`, and `J v`: of the structure of the output. Without v the
    input is one number.

    >>> import retrograd as rg
    >>> rg.autograd.functional.jvp(lambda x: x**2, rg.tensor([1.0, 3.0]), rg.ones(2))[1].tolist()
    [2.0, 6.0]
    """
    args = _args(inputs)
    given = tuple(map(_one, args)) if v is None else _args(v)
    out, tangent = pushed(func, args, given)
    return _kept(out, create_graph), _kept(tangent, create_graph)


def vhp(
    func: F, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of `func`, which is one number, and `v^T H`.

    >>> import retrograd as rg
    >>> rg.autograd.functional.vhp(lambda x: (x**3).sum(), rg.tensor([1.0, 3.0]), rg.ones(2))
    (Tensor(28., dtype=float32), Tensor([ 6., 18.], dtype=float32))
    """
    args = _args(inputs)
    given = tuple(map(_one, args)) if v is None else _args(v)
    gradient = jacrev(_one_number(func), tuple(range(len(args))))
    _, back = pullback_of(gradient, *args)
    return _kept(func(*args), create_graph), _kept(_like(inputs, back(given)), create_graph)


def hvp(
    func: F, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of `func`, which is one number, and `H v`, which forward mode computes.

    >>> import retrograd as rg
    >>> rg.autograd.functional.hvp(lambda x: (x**3).sum(), rg.tensor([1.0, 3.0]), rg.ones(2))
    (Tensor(28., dtype=float32), Tensor([ 6., 18.], dtype=float32))
    """
    args = _args(inputs)
    given = tuple(map(_one, args)) if v is None else _args(v)
    gradient = jacrev(_one_number(func), tuple(range(len(args))))
    _, found = pushed(gradient, args, given)
    return _kept(func(*args), create_graph), _kept(_like(inputs, found), create_graph)


def _args(inputs: Any) -> tuple[Any, ...]:
    return tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)


def _like(inputs: Any, found: Any) -> Any:
    """What was found for each argument, in the structure of the inputs."""
    return tuple(found) if isinstance(inputs, tuple | list) else found[0]


def _of_all(way: Callable[..., Any], func: F, inputs: Any, create_graph: bool) -> Any:
    args = _args(inputs)
    argnums = tuple(range(len(args))) if isinstance(inputs, tuple | list) else 0
    return _kept(way(func, argnums)(*args), create_graph)


def _one_number(func: F) -> F:
    """The function with a result of the shape (), as PyTorch takes one element of any shape."""

    def call(*args: Any) -> Any:
        y = func(*args)
        if not isinstance(y, Tensor) or y._type.size != 1:
            raise GradientError("a Hessian is that of a function whose result is one number")
        return y.reshape(())

    return call


def _one(x: Any) -> Any:
    if getattr(x, "size", 1) != 1 and x._type.size != 1:
        raise GradientError("give v: only with one number in, and out, is it 1 by itself")
    return ones_like(x)


def _seed(out: Any, v: Any) -> Any:
    if v is not None:
        return tuple(v) if isinstance(out, tuple) and isinstance(v, list) else v
    return tuple(map(_one, out)) if isinstance(out, tuple) else _one(out)


def _kept(found: Any, create_graph: bool) -> Any:
    """The results as constants, unless they are to be differentiated again."""
    if isinstance(found, tuple | list):
        return tuple(_kept(x, create_graph) for x in found)
    return found if create_graph or not isinstance(found, Tensor) else found.detach()
