"""The arithmetic of an opcode as a short list of steps, read off the table of rules.

A rule is a function on nodes; called with four inputs, the cotangent `g`, the result `y` and the
operands `a` and `b`, it builds the nodes that compute a derivative. These, in order and each once,
are the steps that the machine does, in native code or in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from retrograd.ir import Node, TensorType, bool_, float64
from retrograd.ops.elementwise import Elementwise
from retrograd.ops.leaf import Constant, input_node
from retrograd.scalar.machine.opcodes import OPCODES, Opcode

GIVEN = ("g", "y", "a", "b")


@dataclass(frozen=True)
class FormulaStep:
    """One operation on earlier steps. Arguments are numbers of steps; -1 to -4 stand for `b`, `a`,
    `y` and `g`. A constant, of no operation, has its value and no arguments."""

    prim: Elementwise | None
    args: tuple[int, ...] = ()
    value: float = 0.0
    boolean: bool = False


@dataclass(frozen=True)
class OpcodeFormula:
    """Steps, and which of them are the results; None for an operand that gets nothing."""

    steps: tuple[FormulaStep, ...]
    results: tuple[int | None, ...]


def slot(name: str) -> int:
    """The number that stands for what is given."""
    return GIVEN.index(name) - len(GIVEN)


@cache
def forward(opcode: Opcode) -> OpcodeFormula:
    """The value of a row, from `a` and `b`."""
    x = _inputs()
    return _formula([opcode.prim(*[x[n] for n in "ab"[: opcode.arity]])], x)


@cache
def backward(opcode: Opcode) -> OpcodeFormula:
    """What a row contributes to the cotangents of its operands."""
    x = _inputs()
    operands = [x[n] for n in "ab"[: opcode.arity]]
    found = [d(x["g"], x["y"], *operands) if d else None for d in opcode.derivatives]
    return _formula(found, x)


def _inputs() -> dict[str, Node]:
    return {name: input_node(TensorType(float64, ()), name) for name in GIVEN}


def _formula(results: list[Node | None], given: dict[str, Node]) -> OpcodeFormula:
    slots: dict[Node, int] = {x: slot(name) for name, x in given.items()}
    known: dict[FormulaStep, int] = {}
    steps: list[FormulaStep] = []
    for node in _in_order([r for r in results if r is not None]):
        if node not in slots:
            step = _step(node, slots)
            if step not in known:
                known[step] = len(steps)
                steps.append(step)
            slots[node] = known[step]
    return OpcodeFormula(tuple(steps), tuple([None if r is None else slots[r] for r in results]))


def _in_order(ends: list[Node]) -> list[Node]:
    found, todo = set(ends), list(ends)
    while todo:
        for x in todo.pop().inputs:
            if x not in found:
                found.add(x)
                todo.append(x)
    return sorted(found, key=lambda n: n.id)


def _step(node: Node, slots: dict[Node, int]) -> FormulaStep:
    if isinstance(node.prim, Constant):
        return FormulaStep(None, (), float(node.prim.value))
    assert isinstance(node.prim, Elementwise)
    return FormulaStep(
        node.prim, tuple([slots[x] for x in node.inputs]), boolean=node.dtype is bool_
    )


__all__ = ["GIVEN", "OPCODES", "OpcodeFormula", "FormulaStep", "backward", "forward", "slot"]
