"""The rules of an opcode as steps."""

import math
from collections.abc import Callable

import pytest

from retrograd.ops import elementwise as el
from retrograd.scalar.machine.formulas import OpcodeFormula, backward, forward, slot
from retrograd.scalar.machine.opcodes import BY_NAME, OPCODES

FUNCTIONS: dict[str, Callable[..., float]] = {
    "mul": lambda a, b: a * b, "add": lambda a, b: a + b, "neg": lambda a: -a,
    "sub": lambda a, b: a - b, "div": lambda a, b: a / b, "zmul": lambda a, b: a * b,
    "zdiv": lambda a, b: a / b, "sin": math.sin, "cos": math.cos,
    "sech2": lambda x: 1 / math.cosh(x) ** 2,
}  # fmt: skip


def run(formula: OpcodeFormula, g: float, y: float, a: float, b: float) -> list[float | None]:
    known = {-4: g, -3: y, -2: a, -1: b}
    for i, step in enumerate(formula.steps):
        known[i] = (
            step.value
            if step.prim is None
            else FUNCTIONS[step.prim.name](*[known[k] for k in step.args])
        )
    return [None if r is None else known[r] for r in formula.results]


def test_what_is_given_has_numbers_below_0() -> None:
    assert [slot(name) for name in ("g", "y", "a", "b")] == [-4, -3, -2, -1]
    (step,) = forward(BY_NAME["sub"]).steps
    assert (step.prim, step.args) == (el.sub, (slot("a"), slot("b")))


@pytest.mark.parametrize(
    ("name", "y", "slopes"),
    [
        ("mul", 6.0, (3.0, 2.0)),
        ("div", 2 / 3, (1 / 3, -2 / 9)),
        ("sub", -1.0, (1.0, -1.0)),
        ("sin", math.sin(2), (math.cos(2),)),
        ("tanh", math.tanh(2), (1 - math.tanh(2) ** 2,)),
        ("exp", math.exp(2), (math.exp(2),)),
    ],
)
def test_contributions_are_derivatives_times_the_cotangent(
    name: str, y: float, slopes: tuple[float, ...]
) -> None:
    found = run(backward(BY_NAME[name]), 5.0, y, 2.0, 3.0)
    assert found == pytest.approx([5 * s for s in slopes], rel=1e-12)


def test_steps_are_in_order_and_each_once() -> None:
    for formula in [f(o) for o in OPCODES for f in (forward, backward)]:
        assert len(set(formula.steps)) == len(formula.steps)
        for i, step in enumerate(formula.steps):
            assert all(-4 <= k < i for k in step.args)


def test_an_operand_without_a_derivative_gets_nothing() -> None:
    assert backward(BY_NAME["powc"]).results[1] is None
    assert backward(BY_NAME["add"]).results == (slot("g"), slot("g"))
