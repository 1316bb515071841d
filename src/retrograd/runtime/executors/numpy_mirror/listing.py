"""Formulas of mathematics as lists of what NumPy has to do, each step for all elements at once.

A formula is written on an `OpBuilder`, whatever that writes. The one here makes no text: a register
is a place in a list of values, and an instruction a function of NumPy with the places of its
operands. So an operation is listed in the time of its instructions, of which each takes a
microsecond, and run in that of its functions. The bits are those of compiled code, in which the
number of lanes does not matter: here there are as many as elements.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.codegen.op_builder import Emit, OpBuilder, QuadratureRule
from retrograd.codegen.types import register_type
from retrograd.ir import DType, bool_
from retrograd.runtime.executors.numpy_mirror import instructions

MANY = -1  # lanes
# How many operands, the function, the place of the result, those of operands. Without operands it
# is a function of the values.
Step = tuple[int, Callable[..., Any], int, int, int, int]
_NONE = ((0, 0, 0), (0, 0), (0,), ())
Values = list[Any]
Places = Sequence[Any]


def run(steps: Sequence[Step], values: Values) -> None:
    """One step after the other."""
    for count, f, out, a, b, c in steps:
        if count == 2:
            values[out] = f(values[a], values[b])
        elif count == 3:
            values[out] = f(values[a], values[b], values[c])
        elif count == 1:
            values[out] = f(values[a])
        else:
            f(values)


class Function:
    """What an operation, or a part of one, has to do. `calls` are those of functions of NumPy,
    `passes` the same, each times the arrays of elements that it goes through."""

    def __init__(self, body: Emit, dtype: DType, arity: int) -> None:
        w = Lister(arity)
        self._result: Any = body(Listing(w, dtype), *range(arity))
        self._values, self._steps = w.values, w.steps
        self.calls, self.passes = w.calls + 1, w.passes

    def __call__(self, *arrays: Any) -> Any:
        values = self._values.copy()
        values[: len(arrays)] = arrays
        run(self._steps, values)
        return values[self._result]


@functools.cache
def listed(name: str, body: Emit, dtype: DType, arity: int) -> Function:
    """A function that formulas have in common."""
    return Function(body, dtype, arity)


class Polynomial:
    """By Horner's rule, each step rounded once."""

    def __init__(self, coefficients: Sequence[float], dtype: DType) -> None:
        self._top, *self._rest = [constant(c, dtype) for c in reversed(coefficients)]
        self._fused = instructions.function("fma")
        self.calls = self.passes = len(self._rest)

    def __call__(self, x: Any) -> Any:
        y, fused = self._top, self._fused
        for c in self._rest:
            y = fused(x, y, c)
        return y


class Repeated:
    """Steps that are done so many times; the number is at a place."""

    def __init__(self, count: Any, steps: list[Step], first: Places, into: Places) -> None:
        self._count, self._steps = count, steps
        self._first, self._into = first, into
        self.last: Places = ()

    def __call__(self, values: Values) -> None:
        new = [values[x] for x in self._first]
        for _ in range(int(values[self._count])):
            for x, value in zip(self._into, new, strict=True):
                values[x] = value
            run(self._steps, values)
            new = [values[x] for x in self.last]
        for x, value in zip(self._into, new, strict=True):
            values[x] = value


class Either:
    """Steps of one of two ways, and where their results are."""

    def __init__(self, condition: Any, ways: list[tuple[list[Step], Places]], out: Places) -> None:
        self._condition, self._ways, self._out = condition, ways, out

    def __call__(self, values: Values) -> None:
        steps, found = self._ways[0 if values[self._condition] else 1]
        run(steps, values)
        for x, y in zip(self._out, found, strict=True):
            values[x] = values[y]


class Lister:
    """What `Listing` writes to, as if it were the writer of a function."""

    brief = False

    def __init__(self, arity: int) -> None:
        self.values: Values = [None] * arity  # constants where they are needed
        self.steps: list[Step] = []
        self.calls = self.passes = 0
        self.kinds: dict[DType, Listing] = {}
        self.width = 1  # arrays of elements that a step goes through
        self._times = 1  # that what is being written is repeated
        self._constants: dict[Any, int] = {}

    def place(self, value: Any = None) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def constant(self, value: float, dtype: DType) -> int:
        key = (value or f"{value:+.0f}"), dtype  # zeros are equal to one another
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.place(constant(value, dtype))
        return found

    def add(self, f: Callable[..., Any], *args: Any, calls: int = 1, passes: int = 1) -> Any:
        """A step, which gives one value."""
        out = self.place()
        self.calls += self._times * calls
        self.passes += self._times * passes * self.width
        assert len(args) <= 3
        self.steps.append((len(args), f, out, *args, *_NONE[len(args)]))
        return out

    def _inner(self, write: Callable[[], Places], times: int) -> tuple[list[Step], Places]:
        """Steps that are written apart, and what they give."""
        outer, self.steps = self.steps, []
        self._times *= times
        found = write()
        self._times //= times
        steps, self.steps = self.steps, outer
        return steps, found

    # -- as `Writer` ------------------------------------------------------------------------------
    def repeat(self, count: Any, carried: Sequence[tuple[Any, Any]], body: Any) -> Places:
        known = self.values[count]
        times = UNKNOWN if known is None else int(known)
        into = [self.place() for _ in carried]
        steps, last = self._inner(lambda: body(into), times)
        repeated = Repeated(count, steps, [x for _, x in carried], into)
        repeated.last = last
        self.steps.append((0, repeated, 0, 0, 0, 0))
        return into

    def either_of(self, condition: Any, kind: str, yes: Any, no: Any) -> Places:
        ways = [self._inner(write, 1) for write in (yes, no)]
        out = [self.place() for _ in ways[0][1]]
        self.steps.append((0, Either(condition, ways, out), 0, 0, 0, 0))
        return out


UNKNOWN = 3  # times that something is repeated, where the number is computed


def constant(value: float, dtype: DType) -> Any:
    """A number as an array, which functions take in less time."""
    if not dtype.is_float and dtype is not bool_:
        value = int(value)
    with np.errstate(over="ignore"):
        return np.asarray(dtype.dtype.type(value))


class Listing(OpBuilder):
    """Where a formula is listed."""

    w: Any

    def __init__(self, w: Any, dtype: DType) -> None:
        self.w = w
        self.dtype = dtype
        self.lanes = MANY
        self.scalar = self.type = register_type(dtype)
        self.bool = "i1"
        self.float = dtype.is_float
        self.signed = dtype.kind == "int"

    def of(self, dtype: DType, lanes: int | None = None) -> Listing:
        kinds = self.w.kinds
        if dtype not in kinds:
            kinds[dtype] = Listing(self.w, dtype)
        found: Listing = kinds[dtype]
        return found

    def do(self, op: str, *args: Any) -> Any:
        return self.w.add(instructions.operation(op, self.dtype), *args)

    def call(self, name: str, *args: Any, extra: str = "") -> Any:
        return self.w.add(instructions.function(name), *args)

    def libm(self, name: str, *args: Any) -> Any:
        return self.w.add(instructions.function(name), *args)

    def call_symbol(self, symbol: str, *args: Any, extra: str = "") -> Any:
        return self.w.add(instructions.refuse)

    def number(self, value: float) -> Any:
        return self.w.constant(value, self.dtype)

    def compare(self, floats: str, integers: str, a: Any, b: Any) -> Any:
        name = floats if self.float else integers
        if not self.float and name not in ("eq", "ne"):
            name = ("s" if self.signed else "u") + name
        if name == "uno" and a == b:
            name = "une"
        return self.w.add(instructions.comparison(name, self.float), a, b)

    def logic(self, op: str, a: Any, b: Any) -> Any:
        return self.w.add(instructions.operation(op, bool_), a, b)

    def choose(self, c: Any, a: Any, b: Any) -> Any:
        return self.w.add(np.where, c, a, b)

    def cast(self, how: str, x: Any, dtype: DType) -> Any:
        return self.w.add(instructions.conversion(how, dtype), x)

    def anywhere(self, c: Any) -> Any:
        return self.w.add(np.count_nonzero, c)

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        f = _polynomial(tuple(coefficients), self.dtype)
        return self.w.add(f, x, calls=f.calls, passes=f.passes)

    def lane_by_lane(self, scalar: Emit, each: Emit, args: Sequence[Any]) -> Any:
        return self.w.add(instructions.refuse)

    def function(self, name: str, body: Emit, args: Sequence[Any]) -> Any:
        f = listed(name, body, self.dtype, len(args))
        return self.w.add(f, *args, calls=f.calls, passes=f.passes)

    def integrals(self, rule: QuadratureRule, half: Any, zero: Any, point: Any) -> Any:
        w = self.w
        place = w.add(rule.places, half)
        w.width *= rule.count
        values = point(place)
        found = [w.add(rule.total, zero, value) for value in values]
        w.width //= rule.count
        return found


@functools.cache
def _polynomial(coefficients: tuple[float, ...], dtype: DType) -> Polynomial:
    return Polynomial(coefficients, dtype)
