"""The harness itself: each kind of wrong rule is caught by the check that is there to catch it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from retrograd.errors import GradientError
from retrograd.ir import Dim, Node, TensorType, float64
from retrograd.ops.elementwise import FLOAT, NUMBER, Elementwise, cos, exp, mul, sin, zmul
from retrograd.ops.identity import StopGradient
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Flip
from retrograd.verify import rule_checks as rules
from retrograd.verify.rule_checks import RuleError

X = np.array([0.3, -0.7, 1.1])
A, B = X, np.array([0.9, 0.4, -1.2])


def planted(name: str, reference: Any, *derivatives: Any) -> Elementwise:
    """An elementwise op that is not registered."""
    return Elementwise(name, reference, derivatives, FLOAT)


stop = StopGradient()
RIGHT = planted("right", lambda x: x * np.sin(x), lambda g, y, x: zmul(g, sin(x) + x * cos(x)))
WRONG = {
    "factor": planted("factor", np.sin, lambda g, y, x: 2 * zmul(g, cos(x))),
    "sign": planted("sign", np.cos, lambda g, y, x: zmul(g, sin(x))),
    "term": planted("term", lambda x: x * np.sin(x), lambda g, y, x: zmul(g, sin(x))),
    "small": planted("small", np.sin, lambda g, y, x: zmul(g, cos(x)) * (1 + 1e-5)),
    "constant": planted("constant", np.sin, lambda g, y, x: cos(x)),
    "square": planted("square", np.sin, lambda g, y, x: zmul(g, g) * cos(x)),
}
WRONG_PAIR = {
    "swapped": planted(
        "swapped", np.multiply, lambda g, y, a, b: zmul(g, a), lambda g, y, a, b: zmul(g, b)
    ),
    "one side": planted(
        "side", np.multiply, lambda g, y, a, b: zmul(g, b), lambda g, y, a, b: zmul(g, a + a)
    ),
}


def test_a_right_rule_passes() -> None:
    rules.check_result(RIGHT, [X])
    for order in (1, 2, 3):
        rules.check_gradient(RIGHT, [X], [0], order)
    rules.check_tangent(RIGHT, [X], [0])
    rules.check_batch(RIGHT, [X])


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_derivative_is_caught(kind: str) -> None:
    with pytest.raises(RuleError, match=kind):
        rules.check_gradient(WRONG[kind], [X], [0])
    with pytest.raises(RuleError, match=kind):
        rules.check_tangent(WRONG[kind], [X], [0])


@pytest.mark.parametrize("kind", WRONG_PAIR)
def test_a_wrong_derivative_of_one_input_is_caught(kind: str) -> None:
    with pytest.raises(RuleError):
        rules.check_gradient(WRONG_PAIR[kind], [A, B], [0, 1])
    with pytest.raises(RuleError):
        rules.check_tangent(WRONG_PAIR[kind], [A, B], [0, 1])


def test_a_derivative_wrong_in_second_order_only_is_caught() -> None:
    frozen = planted("frozen", np.exp, lambda g, y, x: zmul(g, stop(exp(x))))
    rules.check_gradient(frozen, [X], [0], order=1)
    with pytest.raises(RuleError, match="order 2"):
        rules.check_gradient(frozen, [X], [0], order=2)
    with pytest.raises(RuleError, match="tangent"):
        rules.check_tangent(frozen, [X], [0])


def test_a_missing_derivative_is_caught() -> None:
    silent = planted("silent", np.sin, None)
    with pytest.raises(RuleError, match="depends"):
        rules.check_gradient(silent, [X], [0])
    with pytest.raises(RuleError, match="no tangent"):
        rules.check_tangent(silent, [X], [0])


def test_a_derivative_that_should_not_be_there_is_caught() -> None:
    with pytest.raises(RuleError, match="depends"):
        rules.check_gradient(RIGHT, [X], [])


@dataclasses.dataclass(frozen=True, repr=False)
class Broken(Flip):
    """A flip with one rule wrong."""

    name = "broken"
    rule: str = ""

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        return x.with_shape((*x.shape, 1)) if self.rule == "infer" else x

    def reference(self, *arrays: Any) -> Any:
        y = super().reference(*arrays)
        return y.astype(np.float32) if self.rule == "dtype" else y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        twice = self.rule == "symbolic" and not g.type.is_static
        narrow = self.rule == "shape"
        g = ReduceSum((0,))(g) if narrow else Flip(self.axes)(g)
        return (g + g if twice else g,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        if t is None or self.rule == "no jvp":
            return None
        t = Flip(self.axes)(t)
        return mul(t, t) if self.rule == "jvp" else t

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        if self.rule == "batch type":
            return ReduceSum((0,))(inputs[0])
        up = 0 if self.rule == "batch" else 1
        return Flip(tuple(a + up for a in self.axes))(*inputs)


ARRAY = np.arange(6.0).reshape(2, 3)


def test_the_unbroken_op_passes() -> None:
    op = Broken((0,))
    rules.check_result(op, [ARRAY])
    rules.check_gradient(op, [ARRAY], [0], 2)
    rules.check_tangent(op, [ARRAY], [0])
    rules.check_batch(op, [ARRAY])
    rules.check_symbolic(op, [TensorType(float64, (Dim("N"),))], {"N": 3}, lambda t: X, [0])


@pytest.mark.parametrize("rule", ["infer", "dtype"])
def test_a_value_of_another_type_is_caught(rule: str) -> None:
    with pytest.raises(RuleError, match="was inferred"):
        rules.check_result(Broken((0,), rule), [ARRAY])


@pytest.mark.parametrize("rule", ["jvp", "no jvp"])
def test_a_forward_rule_alone_wrong_is_caught(rule: str) -> None:
    op = Broken((0,), rule)
    rules.check_gradient(op, [ARRAY], [0])
    with pytest.raises(RuleError, match="tangent"):
        rules.check_tangent(op, [ARRAY], [0])


def test_a_cotangent_of_another_type_is_caught() -> None:
    with pytest.raises(GradientError, match=r"reverse rule of broken gave f64\[3\]"):
        rules.check_gradient(Broken((0,), "shape"), [ARRAY], [0])


@pytest.mark.parametrize("rule", ["batch", "batch type"])
def test_a_wrong_batching_rule_is_caught(rule: str) -> None:
    with pytest.raises(RuleError, match="batch"):
        rules.check_batch(Broken((0,), rule), [ARRAY])


def test_a_rule_wrong_for_symbolic_sizes_only_is_caught() -> None:
    op = Broken((0,), "symbolic")
    rules.check_gradient(op, [X], [0])
    with pytest.raises(RuleError, match="N"):
        rules.check_symbolic(op, [TensorType(float64, (Dim("N"),))], {"N": 3}, lambda t: X, [0])


def test_compare_sees_small_differences_and_kinds_of_infinity() -> None:
    rules.compare("equal", [1.0, np.nan, np.inf], [1.0, np.nan, np.inf])
    for found in ([1.0, 2.0], [1.0 + 1e-5], [np.nan], [np.inf]):
        with pytest.raises(RuleError):
            rules.compare("different", found, [1.0])
    with pytest.raises(RuleError):
        rules.compare("signs", [np.inf], [-np.inf])


def test_integers_pass_without_derivatives() -> None:
    op = Elementwise("twice", lambda x: x + x, (lambda g, y, x: g + g,), NUMBER)
    rules.check_result(op, [np.arange(3)])
    rules.check_gradient(op, [np.arange(3)], [])
