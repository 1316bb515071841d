"""Formulas as LLVM's text."""

import math
import struct

import llvmlite.binding as llvm
import pytest

from retrograd.scalar.machine.arithmetic import CALLED, Text, declarations, literal, symbols
from retrograd.scalar.machine.formulas import backward, forward
from retrograd.scalar.machine.opcodes import BY_NAME, OPCODES


@pytest.mark.parametrize("x", [0.0, -0.0, 0.1, -1e308, 5e-324, math.inf])
def test_a_constant_is_exact_to_the_bit(x: float) -> None:
    assert struct.pack(">d", x) == bytes.fromhex(literal(x).removeprefix("0x"))


def test_a_step_is_a_line_and_given_registers_are_used_as_they_are() -> None:
    t = Text()
    assert t.evaluate(forward(BY_NAME["sub"]), {"a": "%x", "b": "%y"}) == ["%t1"]
    assert t.lines == ["  %t1 = fsub double %x, %y"]
    assert t.evaluate(backward(BY_NAME["add"]), {"g": "%g"}) == ["%g", "%g"]
    assert len(t.lines) == 1
    (_, exponent) = t.evaluate(
        backward(BY_NAME["powc"]), {"g": "%g", "y": "%y", "a": "%a", "b": "%b"}
    )
    assert exponent is None


def test_all_formulas_are_functions_that_llvm_reads() -> None:
    lines = [declarations()]
    arguments = "double %g, double %y, double %a, double %b"
    for o in OPCODES:
        for way in (forward, backward):
            t = Text()
            found = t.evaluate(way(o), {name: f"%{name}" for name in "gyab"})
            end = next(r for r in found if r is not None)
            lines.append(f"define double @{o.name}.{way.__name__}({arguments}) {{")
            lines += [*t.lines, f"  ret double {end}", "}"]
    module = llvm.parse_assembly("\n".join(lines))
    module.verify()
    declared = {f.name for f in module.functions if f.is_declaration}
    assert {*symbols()} <= declared
    assert len(symbols()) == len(CALLED)
