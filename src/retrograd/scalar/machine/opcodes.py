"""What a row of a tape can be.

A row is a value that was given (a constant, a leaf, a value of another tape, the result of a user's
own operation), or an operation of the table in `ops/elementwise.py` on one or two earlier rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Derivative, Elementwise

CONSTANT, LEAF, FOREIGN, CUSTOM = range(4)  # rows whose value is given
UNWRITTEN = 255  # a row that a thread has taken and not filled in yet


@dataclass(frozen=True)
class Opcode:
    """An operation of the tape: its number, how it is written, its line of the table."""

    code: int
    name: str
    symbol: str
    prim: Elementwise
    derivatives: Sequence[Derivative]

    @property
    def arity(self) -> int:
        return len(self.derivatives)


def _listed() -> list[Opcode]:
    # `powc` is a power whose exponent is a constant, so nobody asks for the derivative by it.
    lines = [
        ("add", "+", el.add), ("sub", "-", el.sub), ("mul", "*", el.mul), ("div", "/", el.div),
        ("pow", "**", el.pow), ("powc", "**", el.pow), ("neg", "neg", el.neg),
        ("abs", "abs", el.abs), ("relu", "ReLU", el.relu), ("tanh", "tanh", el.tanh),
        ("exp", "exp", el.exp), ("log", "log", el.log), ("sigmoid", "sigmoid", el.sigmoid),
        ("sin", "sin", el.sin), ("cos", "cos", el.cos), ("sqrt", "sqrt", el.sqrt),
        ("max", "max", el.max), ("min", "min", el.min),
    ]  # fmt: skip
    return [
        Opcode(
            CUSTOM + 1 + i,
            name,
            symbol,
            prim,
            (prim.derivatives[0], None) if name == "powc" else prim.derivatives,
        )
        for i, (name, symbol, prim) in enumerate(lines)
    ]


OPCODES: tuple[Opcode, ...] = tuple(_listed())
BY_NAME: dict[str, Opcode] = {o.name: o for o in OPCODES}
# Those that are methods of a `Value`, in the order in which `value.c` has them.
METHODS = tuple([o for o in OPCODES if o.prim not in (el.max, el.min)])
NAMES: dict[int, str] = {o.code: "pow" if o.name == "powc" else o.name for o in OPCODES}

# Rows that only the trace of a function has: a number given with each call, the gradient a leaf has
# to begin with, the gradient that a way back has brought a row, a number without a gradient, the
# outcome of a comparison as 0 or 1.
NUMBER, START, GRADIENT, STOP = range(100, 104)
COMPARE: dict[str, int] = {name: 104 + i for i, name in enumerate(("lt", "le", "gt", "ge", "eq"))}
