"""A program, and the ways in which it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import retrograd as rg

Array = np.ndarray[Any, Any]
Way = Callable[[], Any]  # computes a tree of tensors


@dataclass(frozen=True)
class Case:
    """A function of arrays that gives a tree of tensors."""

    name: str
    f: Callable[..., Any]
    arrays: Sequence[Array]
    shapes: Sequence[str] = ()  # names of the sizes of each array, where they may have names
    orders: int = 2  # of derivatives
    threads: bool = False  # large enough to be computed by several threads

    def tensors(self, requires_grad: bool = False) -> list[Any]:
        return [rg.tensor(a, requires_grad=requires_grad and is_real(a)) for a in self.arrays]

    def by(self) -> tuple[int, ...]:
        """The arguments that are differentiated by."""
        return tuple(i for i, a in enumerate(self.arrays) if is_real(a))


def is_real(array: Array) -> bool:
    return array.dtype.kind == "f"


def loss(case: Case) -> Callable[..., Any]:
    """A number made of all results that have gradients; not one in which they meet evenly."""

    def total(*arguments: Any) -> Any:
        found = rg.tensor(0.0)
        for k, y in enumerate(rg.tree.flatten(case.f(*arguments))[0]):
            if isinstance(y, rg.Tensor) and y.dtype.kind in ("float", "complex"):
                y = rg.real(y) + 0.5 * rg.imag(y) if y.dtype.kind == "complex" else y
                y = rg.astype(y, "float32")
                found = found + (k + 1) * (y * rg.sin(y + 0.3)).sum()
        return found

    return total


def ways(case: Case) -> Iterator[tuple[str, Way]]:
    """Names of ways to compute a case and its derivatives."""
    if case.threads:
        for n in (1, 2):
            for name, way in (("jit", jitted(case)), ("gradient jit", gradient(case))):
                yield f"{name}, {n} threads", threaded(n, way)
            yield f"gradient eager, {n} threads", threaded(n, lambda: backward(case))
        return
    yield "eager", lambda: case.f(*case.tensors())
    yield "jit", jitted(case)
    yield "reference", lambda: referred(lambda: case.f(*case.tensors()))
    if case.shapes:
        yield "jit named", jitted(case, named=True)
    if case.by() and case.orders:
        yield "gradient eager", lambda: backward(case)
        yield "gradient jit", gradient(case)
        yield "gradient reference", lambda: referred(lambda: backward(case))
        if case.shapes:
            yield "gradient jit named", gradient(case, named=True)
    if case.by() and case.orders > 1:
        yield "second order", second(case)


def threaded(n: int, way: Way) -> Way:
    def call() -> Any:
        with rg.num_threads(n):
            return computed(way())

    return call


def jitted(case: Case, named: bool = False) -> Way:
    return compiled(case, lambda *arguments: case.f(*arguments), named)


def gradient(case: Case, named: bool = False) -> Way:
    return compiled(case, rg.value_and_grad(loss(case), case.by()), named)


def second(case: Case) -> Way:
    """Gradients of the sum of the squares of gradients."""
    first = rg.grad(loss(case), case.by())

    def squared(*arguments: Any) -> Any:
        return sum(((g * g).sum() for g in first(*arguments)), rg.tensor(0.0))

    return compiled(case, rg.grad(squared, case.by()))


def compiled(case: Case, f: Callable[..., Any], named: bool = False) -> Way:
    """A compiled call of a function of the arguments in a list, whose sizes may have names."""
    shapes = {"arguments": list(case.shapes)} if named else None
    call = rg.jit(lambda arguments: f(*arguments), shapes=shapes)
    return lambda: call(case.tensors())


def backward(case: Case) -> Any:
    """The loss and its gradients; zeros for what it does not depend on, as compiled ones have."""
    arguments = case.tensors(requires_grad=True)
    value = loss(case)(*arguments)
    value.backward()
    by = [arguments[i] for i in case.by()]
    return [value, *(rg.zeros_like(x) if x.grad is None else x.grad for x in by)]


def referred(way: Way) -> Any:
    with rg.backend("reference"):
        return computed(way())


def computed(result: Any) -> list[Array]:
    """The arrays of a tree of tensors; None is an empty one."""
    leaves = rg.tree.flatten(result)[0]
    return [np.asarray(y.numpy() if isinstance(y, rg.Tensor) else y) for y in leaves]
