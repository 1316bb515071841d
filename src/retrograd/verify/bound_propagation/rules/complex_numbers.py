"""Complex numbers as rectangles: which rules go by parts, and which have one of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograd.ir import Node
from retrograd.ops.complex import Complex, Imag, Real
from retrograd.verify.bound_propagation.interval import Interval, Rectangle
from retrograd.verify.bound_propagation.propagation import rule

COMPLEX: dict[str, Callable[..., Rectangle]] = {}  # of ops that mix the parts, entered by name


def by_parts(f: Callable[..., Interval]) -> Callable[..., Any]:
    """A rule that is that of each part."""

    @functools.wraps(f)
    def of(node: Node, *given: Any) -> Any:
        if not any(isinstance(x, Rectangle) for x in given):
            return f(node, *given)
        parts = [
            [x[i] if isinstance(x, Rectangle) else x for x in given]
            for i in range(2)
        ]  # fmt: skip
        return Rectangle(*[f(node, *part) for part in parts])

    return of


def on_rectangles(name: str) -> Callable[[Callable[..., Interval]], Callable[..., Any]]:
    """A rule of real numbers, beside that of complex ones in `COMPLEX`."""

    def decorate(f: Callable[..., Interval]) -> Callable[..., Any]:
        @functools.wraps(f)
        def of(node: Node, *given: Any) -> Any:
            if any(isinstance(x, Rectangle) for x in given):
                return COMPLEX[name](node, *given)
            return f(node, *given)

        return of

    return decorate


@rule(Real)
def real(node: Node, z: Rectangle) -> Interval:
    return z.real


@rule(Imag)
def imag(node: Node, z: Rectangle) -> Interval:
    return z.imag


@rule(Complex)
def complex_(node: Node, x: Interval, y: Interval) -> Rectangle:
    return Rectangle(x, y)
