"""The machine in Python: the same formulas, step by step, to the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from retrograd.ir import entering
from retrograd.ops import elementwise as el
from retrograd.scalar.machine.formulas import GIVEN, OpcodeFormula, backward, forward
from retrograd.scalar.machine.opcodes import CUSTOM, OPCODES, UNWRITTEN
from retrograd.scalar.machine.tape_memory import TapeMemory

Numbers = list[Any]

# What computes a step, by the name of its op.
_STEPS: dict[str, Callable[..., Any]] = {}
_computes = entering(_STEPS)
_FORWARD = {o.code: (o.arity, forward(o)) for o in OPCODES}
_BACKWARD = {o.code: (o.arity, backward(o)) for o in OPCODES}


def run(block: TapeMemory, start: int, end: int, way: int) -> int:
    """What `machine_text.py` says."""
    return _back(block, start, end) if way else _on(block, start, end)


def derivatives(code: int, y: float, *operands: float) -> list[float]:
    """The derivative of a row by each of its operands; 0.0 where there is none."""
    _, formula = _BACKWARD[code]
    given = [*operands, math.nan][:2]
    return [0.0 if r is None else r for r in _evaluate(formula, [1.0, y, *given])]


def _on(block: TapeMemory, start: int, end: int) -> int:
    code, values = block.code, block.values
    for i in range(start, end):
        op = code[i]
        if op == UNWRITTEN:
            return i
        if op > CUSTOM:
            arity, formula = _FORWARD[op]
            b = values[block.b[i]] if arity == 2 else 0.0
            (y,) = _evaluate(formula, [0.0, 0.0, values[block.a[i]], b])
            values[i] = y
    return end


def _back(block: TapeMemory, start: int, end: int) -> int:
    code, values, grads, stamps, epoch = (
        block.code, block.values, block.grads, block.stamps, block.epoch,
    )  # fmt: skip
    found, coming = block.found, block.coming
    for i in range(start, end - 1, -1):
        if not coming:
            break
        op = code[i]
        if stamps[i] != epoch or op <= CUSTOM:
            continue
        coming -= 1
        arity, formula = _BACKWARD[op]
        rows = (block.a[i], block.b[i])[:arity]
        given = [grads[i], values[i], *[values[r] for r in rows], 0.0][:4]
        for row, g in zip(rows, _evaluate(formula, given), strict=True):
            if g is None:
                continue
            if stamps[row] == epoch:
                grads[row] += g
                continue
            stamps[row] = epoch
            grads[row] = g
            if code[row] < CUSTOM:
                block.reached[found] = row
                found += 1
            else:
                coming += 1
    block.found, block.coming = found, coming
    return coming


def _evaluate(formula: OpcodeFormula, given: Sequence[float]) -> Numbers:
    """The results of a formula; `given` in the order of `GIVEN`."""
    known: Numbers = []
    for step in formula.steps:
        if step.prim is None:
            known.append(step.value)
        else:
            args = [known[k] if k >= 0 else given[k + len(GIVEN)] for k in step.args]
            known.append(_STEPS[step.prim.name](*args))
    found = formula.results
    return [None if r is None else known[r] if r >= 0 else given[r + len(GIVEN)] for r in found]


def _ieee(f: Callable[..., float], at_fault: Callable[..., float]) -> Callable[..., float]:
    """A function of `math`, with the result of C where Python raises."""

    def call(*x: float) -> float:
        try:
            return f(*x)
        except (ValueError, OverflowError, ZeroDivisionError):
            return at_fault(*x)

    return call


def _divided(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or a != a or b != b:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _power_at_fault(a: float, b: float) -> float:
    odd = b == math.floor(b) and math.fmod(b, 2) != 0 if math.isfinite(b) else False
    if a == 0:  # a pole
        return math.copysign(math.inf, a) if odd else math.inf
    if a < 0 and b != math.floor(b):
        return math.nan
    return -math.inf if a < 0 and odd else math.inf  # an overflow


def _sigmoid(x: float) -> float:
    e = math.exp(-abs(x))
    return (1.0 if x >= 0 else e) / (1.0 + e)


_cosh = _ieee(math.cosh, lambda x: math.inf)


def _sech2(x: float) -> float:
    y = _cosh(x)  # at least 1, or NaN
    return 1.0 / y / y


def _nan_or(f: Callable[[float, float], float], a: float, b: float) -> float:
    if a != a or b != b:
        return math.nan
    if a == b == 0:
        sign = f(math.copysign(1.0, a), math.copysign(1.0, b))
        return math.copysign(0.0, sign)
    return f(a, b)


_computes(el.add)(lambda a, b: a + b)
_computes(el.sub)(lambda a, b: a - b)
_computes(el.mul)(lambda a, b: a * b)
_computes(el.div)(_divided)
_computes(el.neg)(lambda x: -x)
_computes(el.abs)(abs)
_computes(el.sign)(lambda x: 1.0 if x > 0 else -1.0 if x < 0 else x)
_computes(el.relu)(lambda x: 0.0 if x <= 0 else x)
_computes(el.sqrt)(_ieee(math.sqrt, lambda x: math.nan))
_computes(el.exp)(_ieee(math.exp, lambda x: math.inf))
_computes(el.log)(_ieee(math.log, lambda x: -math.inf if x == 0 else math.nan))
_computes(el.sin)(_ieee(math.sin, lambda x: math.nan))
_computes(el.cos)(_ieee(math.cos, lambda x: math.nan))
_computes(el.cosh)(_cosh)
_computes(el.tanh)(math.tanh)
_computes(el.pow)(_ieee(math.pow, _power_at_fault))
_computes(el.sigmoid)(_sigmoid)
_computes(el.sech2)(_sech2)
_computes(el.max)(lambda a, b: _nan_or(max, a, b))
_computes(el.min)(lambda a, b: _nan_or(min, a, b))
_computes(el.zmul)(lambda g, x: g if g == 0 else g * x)
_computes(el.zdiv)(lambda g, x: g if g == 0 else _divided(g, x))
_computes(el.eq)(lambda a, b: a == b)
_computes(el.lt)(lambda a, b: a < b)
_computes(el.le)(lambda a, b: a <= b)
_computes(el.gt)(lambda a, b: a > b)
_computes(el.ge)(lambda a, b: a >= b)
_computes(el.bitwise_and)(lambda a, b: a and b)
_computes(el.bitwise_or)(lambda a, b: a or b)
_computes(el.select)(lambda c, a, b: a if c else b)
