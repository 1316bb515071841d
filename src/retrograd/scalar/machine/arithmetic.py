"""Formulas as LLVM's text, on numbers in registers of type `double`.

Functions beyond the square root are those of the C library, so that results are the bits that
Python's own `math` gives, and a program that computed with `math.exp` before computes the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from retrograd.ir import entering
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Elementwise
from retrograd.scalar.machine.formulas import FormulaStep, OpcodeFormula, slot

StepText = Callable[..., str]

# What writes a step, by the name of its op.
STEPS: dict[str, StepText] = {}
writes = entering(STEPS)
CALLED: dict[str, int] = {}  # functions of the C library, and how many operands they take


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
        known: dict[int, str] = {slot(name): register for name, register in given.items()}
        for i, step in enumerate(formula.steps):
            known[i] = self._step(step, [known[k] for k in step.args])
        return [None if r is None else known[r] for r in formula.results]

    def _step(self, step: FormulaStep, x: Sequence[str]) -> str:
        if step.prim is None:
            return literal(step.value)
        return STEPS[step.prim.name](self, *x)

    def choose(self, condition: str, yes: str, no: str) -> str:
        return self.new(f"select i1 {condition}, double {yes}, double {no}")


def _instruction(name: str) -> StepText:
    return lambda t, a, b: t.new(f"{name} double {a}, {b}")


def _compare(name: str) -> StepText:
    return lambda t, a, b: t.new(f"fcmp {name} double {a}, {b}")


def _logic(name: str) -> StepText:
    return lambda t, a, b: t.new(f"{name} i1 {a}, {b}")


def _function(symbol: str) -> StepText:
    def emit(t: Text, *x: str) -> str:
        return t.new(f"call double @{symbol}({', '.join([f'double {r}' for r in x])})")

    return emit


def _in_library(op: Elementwise) -> None:
    """The op is the function of the C library that has its name."""
    CALLED[op.name] = len(op.derivatives)
    writes(op)(_function(f"rg_{op.name}"))


@writes(el.neg)
def _negated(t: Text, x: str) -> str:
    return t.new(f"fneg double {x}")


@writes(el.sign)
def _sign(t: Text, x: str) -> str:
    below = t.choose(t.new(f"fcmp olt double {x}, 0.0"), literal(-1.0), x)
    return t.choose(t.new(f"fcmp ogt double {x}, 0.0"), literal(1.0), below)


@writes(el.relu)
def _relu(t: Text, x: str) -> str:
    return t.choose(t.new(f"fcmp ole double {x}, 0.0"), literal(0.0), x)


@writes(el.sigmoid)
def _sigmoid(t: Text, x: str) -> str:
    size = t.new(f"call double @llvm.fabs.f64(double {x})")
    e = t.new(f"call double @rg_exp(double {_negated(t, size)})")
    top = t.choose(t.new(f"fcmp oge double {x}, 0.0"), literal(1.0), e)
    return t.new(f"fdiv double {top}, {t.new(f'fadd double {e}, {literal(1.0)}')}")


@writes(el.sech2)
def _sech2(t: Text, x: str) -> str:
    y = t.new(f"call double @rg_cosh(double {x})")
    return t.new(f"fdiv double {t.new(f'fdiv double {literal(1.0)}, {y}')}, {y}")


def _absorbing(operation: str) -> Callable[[Text, str, str], str]:
    def emit(t: Text, g: str, x: str) -> str:
        y = t.new(f"{operation} double {g}, {x}")
        return t.choose(t.new(f"fcmp oeq double {g}, 0.0"), g, y)

    return emit


for _op in (el.exp, el.log, el.sin, el.cos, el.cosh, el.tanh, el.pow):
    _in_library(_op)
writes(el.add)(_instruction("fadd"))
writes(el.sub)(_instruction("fsub"))
writes(el.mul)(_instruction("fmul"))
writes(el.div)(_instruction("fdiv"))
writes(el.zmul)(_absorbing("fmul"))
writes(el.zdiv)(_absorbing("fdiv"))
writes(el.eq)(_compare("oeq"))
writes(el.lt)(_compare("olt"))
writes(el.le)(_compare("ole"))
writes(el.gt)(_compare("ogt"))
writes(el.ge)(_compare("oge"))
writes(el.abs)(_function("llvm.fabs.f64"))
writes(el.sqrt)(_function("llvm.sqrt.f64"))
writes(el.max)(_function("llvm.maximum.f64"))
writes(el.min)(_function("llvm.minimum.f64"))
writes(el.bitwise_and)(_logic("and"))
writes(el.bitwise_or)(_logic("or"))
writes(el.select)(Text.choose)
