"""Operations and rules with a mistake in them, by its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.ir import Dim, Node, Op, TensorType
from retrograd.ops.complex import conj
from retrograd.ops.elementwise import FIELD, FLOAT, Elementwise, cos, exp, mul, sin, zmul
from retrograd.ops.identity import StopGradient
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Flip, Permute, expand

stop = StopGradient()


def planted(name: str, reference: Any, *derivatives: Any, kinds: Any = FLOAT) -> Elementwise:
    """An elementwise op that is not registered."""
    return Elementwise(name, reference, derivatives, kinds)


RIGHT = planted("right", lambda x: x * np.sin(x), lambda g, y, x: zmul(g, sin(x) + x * cos(x)))
X = np.array([0.3, -0.7, 1.1])
Z = X + 1j * np.array([0.2, 0.5, -0.4])
# By the mistake: the op, its inputs, the kind of evidence that names it, and what it says.
MISTAKES: dict[str, tuple[Op, list[Any], str, str]] = {
    "sign": (
        planted("sign", np.cos, lambda g, y, x: zmul(g, sin(x))),
        [X], "differences", "the sign is wrong",
    ),
    "factor": (
        planted("factor", np.sin, lambda g, y, x: 2 * zmul(g, cos(x))),
        [X], "differences", "it is 2 times what it should be",
    ),
    "a small factor": (
        planted("small", np.sin, lambda g, y, x: zmul(g, cos(x)) * (1 + 1e-7)),
        [X], "differences", "times what it should be",
    ),
    "a lost term": (
        planted("term", lambda x: x * np.sin(x), lambda g, y, x: zmul(g, sin(x))),
        [X], "complex step", "by the complex step",
    ),
    "swapped operands": (
        planted("swapped", np.multiply, lambda g, y, a, b: zmul(g, a),
                lambda g, y, a, b: zmul(g, b)),
        [X, X[::-1] + 3], "differences", "differs from finite differences in 3 of 3",
    ),
    "a missing conjugate": (
        planted("conjugate", lambda a: a * a, lambda g, y, x: conj(zmul(conj(g), 2 * x)),
                kinds=FIELD),
        [Z], "differences", "not",
    ),
    "the second derivative only": (
        planted("frozen", np.exp, lambda g, y, x: zmul(g, stop(exp(x)))),
        [X], "order 2", "the order 2 derivative",
    ),
    "nothing": (
        planted("nothing", np.sin, lambda g, y, x: zmul(g, 0 * x)),
        [X], "differences", "it is zero",
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, repr=False)
class Broken(Flip):
    """A flip with one rule wrong."""

    name = "broken"
    rule: str = ""

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        if self.rule == "axis":
            return (Flip((1 - self.axes[0],))(g),)
        if self.rule == "transposed":
            return (Permute((1, 0))(Flip(self.axes)(g)),)
        return (Flip(self.axes)(g),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        if t is None:
            return None
        t = Flip(self.axes)(t)
        return mul(t, t) if self.rule == "forward" else t

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        up = 0 if self.rule == "batch" else 1
        return Flip(tuple(a + up for a in self.axes))(*inputs)


@dataclasses.dataclass(frozen=True, repr=False)
class RowSum(Op):
    """The sums of rows, whose cotangent a wrong rule spreads over another axis."""

    name = "row_sum"
    traits = frozenset()
    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        return types[0].with_shape(types[0].shape[:1])

    def reference(self, *arrays: Any) -> Any:
        return np.sum(arrays[0], axis=1)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (expand(g, inputs[0].shape, (0,)),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None if tangents[0] is None else ReduceSum((1,))(tangents[0])

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return ReduceSum((2,))(inputs[0])


def custom(bwd: Any, fwd: Any = None, f: Any = None) -> Any:
    """A custom rule of `log(1 + exp(x))` with this `bwd`."""
    rule = rg.custom_vjp(f or (lambda x: rg.log1p(rg.exp(x))))
    rule.defvjp(fwd or (lambda x: (rule(x), x)), bwd)
    return rule
