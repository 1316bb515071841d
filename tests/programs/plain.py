"""The same words with the plainest meaning: a map is a Python loop, so are loops, and a function is
called where it is compiled or computed again. What is left of `rg` is itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg


class NoPlainMeaning(Exception):
    """As of a map over no elements, where a loop does not know what it would have made."""


class Plain:
    """Stands for `rg` in a program."""

    def __getattr__(self, name: str) -> Any:
        return WORDS.get(name) or getattr(rg, name)


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    def mapped(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        count = next(int(x.shape[a]) for x, a in zip(args, axes, strict=True) if a is not None)
        if not count:
            raise NoPlainMeaning
        rows = [
            f(*[x if a is None else rg.take(x, i, axis=a) for x, a in zip(args, axes, strict=True)])
            for i in range(count)
        ]
        return rg.stack([rg.asarray(y) for y in rows], axis=out_axes)

    return mapped


def scan(f: Any, carry: Any, xs: Any, reverse: bool = False, checkpoint: Any = None) -> Any:
    ys: list[Any] = []
    n = int(xs.shape[0])
    if not n:
        raise NoPlainMeaning
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = f(carry, xs[i])
        ys.append(y)
    return carry, rg.stack(ys[::-1] if reverse else ys)


def fori_loop(lower: int, upper: int, body: Any, init: Any) -> Any:
    for i in range(lower, upper):
        init = body(rg.asarray(i), init)
    return init


def while_loop(test: Any, body: Any, state: Any, max_steps: Any = None) -> Any:
    while bool(test(state)):
        state = body(state)
    return state


def cond(pred: Any, f: Any, g: Any, *args: Any) -> Any:
    return f(*args) if bool(pred) else g(*args)


def same(f: Any, *_: Any, **options: Any) -> Any:
    return f


def jacfwd(f: Any) -> Any:
    def columns(x: Any) -> Any:
        return rg.astype(jacobian(f)(x), f(x).dtype)

    return columns


def either(f: Any) -> Any:
    def found(x: Any) -> Any:
        if f(x).dtype != x.dtype:
            raise NoPlainMeaning  # the dtype is that of the cheaper way
        return jacobian(f)(x)

    return found


def jacobian(f: Any) -> Any:
    """Row by row, by pullbacks."""

    def rows(x: Any) -> Any:
        y, back = rg.vjp(f, x)
        if y.dtype.name not in ("float64", "float32", "float16", "bfloat16"):
            raise NoPlainMeaning
        if not y.size:
            raise NoPlainMeaning
        units = np.eye(y.size).reshape(y.size, *y.shape)
        found = [back(rg.asarray(u, dtype=y.dtype))[0] for u in units]
        return rg.stack(found).reshape((*y.shape, *x.shape))

    return rows


def hessian(f: Any) -> Any:
    return jacobian(rg.grad(f))


def hvp(f: Any, args: Any, v: Any) -> Any:
    return rg.vjp(rg.grad(f), *args)[1](*v)


WORDS: dict[str, Any] = {
    "vmap": vmap, "scan": scan, "fori_loop": fori_loop, "while_loop": while_loop, "cond": cond,
    "jit": same, "checkpoint": same, "custom_vjp": same, "custom_jvp": same, "jacrev": jacobian,
    "jacfwd": jacfwd, "jacobian": either, "hessian": hessian, "hvp": hvp,
}  # fmt: skip
