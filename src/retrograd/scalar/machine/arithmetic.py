"""Formulas as LLVM's text, on numbers in registers of type `double`.

Functions beyond the square root are those of the C library, so that results are the bits that
Python's own `math` gives, and a program that computed with `math.exp` before computes the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from retrograd.scalar.machine.formulas import FormulaStep, OpcodeFormula, place

CALLED = {"exp": 1, "log": 1, "sin": 1, "cos": 1, "cosh": 1, "tanh": 1, "pow": 2}
_PLAIN = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARE = {"eq": "oeq", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_INTRINSIC = {"abs": "fabs", "sqrt": "sqrt", "max": "maximum", "min": "minimum"}


def symbols() -> list[str]:
    """The functions of the C library that the text calls, as the engine knows them."""
    return [f"rg_{name}" for name in CALLED]


def declarations() -> str:
    lines = [f"declare double @rg_{f}({', '.join(['double'] * n)})" for f, n in CALLED.items()]
    lines += [f"declare double @llvm.{f}.f64(double)" for f in ("fabs", "sqrt")]
    lines += [f"declare double @llvm.{f}.f64(double, double)" for f in ("maximum", "minimum")]
    return "\n".join(lines) + "\n"


def literal(value: float) -> str:
    """A constant, exact to the bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Text:
    """Lines of a function, with fresh names for registers and blocks."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def block(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def new(self, text: str) -> str:
        self._count += 1
        name = f"%t{self._count}"
        self.line(f"{name} = {text}")
        return name

    def evaluate(self, formula: OpcodeFormula, given: Mapping[str, str]) -> list[str | None]:
        """The registers of a formula's results, from those of what is given."""
        known: dict[int, str] = {place(name): register for name, register in given.items()}
        for i, step in enumerate(formula.steps):
            known[i] = self._step(step, [known[k] for k in step.args], formula)
        return [None if r is None else known[r] for r in formula.results]

    def _step(self, step: FormulaStep, x: Sequence[str], formula: OpcodeFormula) -> str:
        if step.op == "constant":
            return literal(step.value)
        if step.op in _PLAIN:
            return self.new(f"{_PLAIN[step.op]} double {x[0]}, {x[1]}")
        if step.op in _COMPARE:
            return self.new(f"fcmp {_COMPARE[step.op]} double {x[0]}, {x[1]}")
        if step.op in CALLED:
            return self.new(f"call double @rg_{step.op}({', '.join([f'double {r}' for r in x])})")
        if step.op in _INTRINSIC:
            arguments = ", ".join([f"double {r}" for r in x])
            return self.new(f"call double @llvm.{_INTRINSIC[step.op]}.f64({arguments})")
        if step.op in ("bitwise_and", "bitwise_or"):
            return self.new(f"{step.op.removeprefix('bitwise_')} i1 {x[0]}, {x[1]}")
        if step.op == "select":
            return self.choose(x[0], x[1], x[2])
        return COMPOSED[step.op](self, *x)

    def choose(self, condition: str, yes: str, no: str) -> str:
        return self.new(f"select i1 {condition}, double {yes}, double {no}")


def _negated(t: Text, x: str) -> str:
    return t.new(f"fneg double {x}")


def _sign(t: Text, x: str) -> str:
    below = t.choose(t.new(f"fcmp olt double {x}, 0.0"), literal(-1.0), x)
    return t.choose(t.new(f"fcmp ogt double {x}, 0.0"), literal(1.0), below)


def _relu(t: Text, x: str) -> str:
    return t.choose(t.new(f"fcmp ole double {x}, 0.0"), literal(0.0), x)


def _sigmoid(t: Text, x: str) -> str:
    size = t.new(f"call double @llvm.fabs.f64(double {x})")
    e = t.new(f"call double @rg_exp(double {_negated(t, size)})")
    top = t.choose(t.new(f"fcmp oge double {x}, 0.0"), literal(1.0), e)
    return t.new(f"fdiv double {top}, {t.new(f'fadd double {e}, {literal(1.0)}')}")


def _sech2(t: Text, x: str) -> str:
    y = t.new(f"call double @rg_cosh(double {x})")
    return t.new(f"fdiv double {t.new(f'fdiv double {literal(1.0)}, {y}')}, {y}")


def _absorbing(operation: str) -> Callable[[Text, str, str], str]:
    def emit(t: Text, g: str, x: str) -> str:
        y = t.new(f"{operation} double {g}, {x}")
        return t.choose(t.new(f"fcmp oeq double {g}, 0.0"), g, y)

    return emit


COMPOSED: dict[str, Callable[..., str]] = {
    "neg": _negated,
    "sign": _sign,
    "relu": _relu,
    "sigmoid": _sigmoid,
    "sech2": _sech2,
    "zmul": _absorbing("fmul"),
    "zdiv": _absorbing("fdiv"),
}
