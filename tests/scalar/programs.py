"""Random scalar programs, the same for every class of values."""

import math
from dataclasses import dataclass

import numpy as np

UNARY = ("relu", "tanh", "exp", "log", "sigmoid", "sin", "cos", "sqrt", "abs", "neg")
BINARY = ("add", "sub", "mul", "div", "pow")


@dataclass
class Program:
    """Lines of an operation on earlier results; the first `leaves` results are given. An operand
    that is a float is a constant."""

    leaves: list
    lines: list

    def run(self, leaf, call):
        """All results; `leaf` makes one of a number, `call` does an operation."""
        values = [leaf(x) for x in self.leaves]
        for name, *operands in self.lines:
            values.append(call(name, [values[x] if isinstance(x, int) else x for x in operands]))
        return values


def random_program(rng, lines=12, leaves=3):
    """A program whose results stay in the domain of its operations."""
    program = Program(rng.normal(0, 1.5, leaves).round(3).tolist(), [])
    known = list(program.leaves)
    while len(program.lines) < lines:
        name = str(rng.choice(UNARY + BINARY))
        operands: list[int | float] = [
            int(rng.integers(len(known))) for _ in range(2 if name in BINARY else 1)
        ]
        if name in BINARY and rng.random() < 0.3:
            place = int(rng.integers(2))
            operands[place] = float(rng.choice([2.0, -1.0, 0.5, 3.0, round(rng.normal(), 3)]))
        numbers = [known[x] if isinstance(x, int) else x for x in operands]
        y = by_math(name, numbers)
        if y is None or not math.isfinite(y) or abs(y) > 1e4:
            continue
        if name in ("div", "pow", "log", "sqrt", "abs", "relu") and min(map(abs, numbers)) < 1e-2:
            continue
        known.append(y)
        program.lines.append((name, *operands))
    return program


def by_math(name, x):
    """The number, None outside of the domain."""
    try:
        y = {
            "relu": lambda: max(x[0], 0.0),
            "sigmoid": lambda: 1 / (1 + math.exp(-x[0])),
            "abs": lambda: abs(x[0]),
            "neg": lambda: -x[0],
            "add": lambda: x[0] + x[1],
            "sub": lambda: x[0] - x[1],
            "mul": lambda: x[0] * x[1],
            "div": lambda: x[0] / x[1],
            "pow": lambda: x[0] ** x[1] if x[0] > 0 else None,
        }.get(name, lambda: getattr(math, name)(*x))()
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return y


def on_values(name, x):
    """The operation as it is written with a Value."""
    if name in BINARY:
        return {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: a / b,
            "pow": lambda a, b: a**b,
        }[name](*x)
    return -x[0] if name == "neg" else getattr(x[0], name)()


def generators(n):
    return [np.random.default_rng(seed) for seed in range(n)]


def tanh(x, cls):
    """An operation of a user's own, as users of micrograd write it."""
    t = math.tanh(x.data)
    out = cls(t, (x,), "tanh")

    def _backward():
        x.grad += (1 - t**2) * out.grad

    out._backward = _backward
    return out
