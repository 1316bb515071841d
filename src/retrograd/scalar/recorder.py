"""`Value` in Python: a handle on a row of a tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.scalar.machine import BY_NAME
from retrograd.scalar.operands import number_of
from retrograd.scalar.scalar import Scalar
from retrograd.scalar.slow_path import SIGNATURE, construct, record, refuse
from retrograd.scalar.tape import (
    LOCK,
    NOWHERE,
    TRACES,
    ScalarTape,
    TapeClosed,
    current_tape,
    current_trace,
)
from retrograd.scalar.trace import Trace

new = object.__new__


def _binary(name: str) -> Callable[[Value, Any], Value]:
    code = BY_NAME[name].code

    def method(self: Value, other: Any) -> Value:
        tape = self._tape
        a = self._row
        kind = type(other)
        try:
            if kind is Value:
                if other._tape is tape:
                    b = other._row
                elif other._data is not None and tape is not NOWHERE:
                    b = tape.attach(other)
                elif self._data is not None and other._tape is not NOWHERE:
                    tape = other._tape
                    a = tape.attach(self)
                    b = other._row
                else:
                    return record(Value, code, self, other)
            elif kind is float or kind is int:
                b = tape.constants.get(other) if other or kind is int else 0
                if not b:
                    b = tape.number(other)
            else:
                return record(Value, code, self, other)
            v = new(Value)
            v._tape = tape
            tape.free = (i := tape.free) + 1
            tape.a[i] = a
            tape.b[i] = b
            tape.op[i] = code
        except TapeClosed:
            return record(Value, code, self, other)
        except IndexError:
            tape.extend(i, code, a, b)
        v._row = i
        v._data = None
        return v

    return method


def _reflected(name: str) -> Callable[[Value, Any], Value]:
    code = BY_NAME[name].code

    def method(self: Value, other: Any) -> Value:
        tape = self._tape
        kind = type(other)
        if kind is not float and kind is not int:
            return record(Value, code, other, self)
        try:
            a = tape.constants.get(other) if other or kind is int else 0
            if not a:
                a = tape.number(other)
            v = new(Value)
            v._tape = tape
            tape.free = (i := tape.free) + 1
            tape.a[i] = a
            tape.b[i] = self._row
            tape.op[i] = code
        except TapeClosed:
            return record(Value, code, other, self)
        except IndexError:
            tape.extend(i, code, a, self._row)
        v._row = i
        v._data = None
        return v

    return method


def _unary(name: str) -> Callable[[Value], Value]:
    code = BY_NAME[name].code

    def method(self: Value) -> Value:
        tape = self._tape
        try:
            v = new(Value)
            v._tape = tape
            tape.free = (i := tape.free) + 1
            tape.a[i] = self._row
            tape.op[i] = code
        except TapeClosed:
            return record(Value, code, self)
        except IndexError:
            tape.extend(i, code, self._row, 0)
        v._row = i
        v._data = None
        return v

    method.__name__, method.__doc__ = name, f"{name} of this value."
    return method


_POW, _POWC = _binary("pow"), _binary("powc")


class Value(Scalar):
    _data: Any  # a float; None of what was computed; of a compiled function's leaf its `Home`
    __doc__ = Scalar.__doc__
    __slots__ = ("_data", "_grad", "_label", "_row", "_tape")

    def __init__(self, data: Any, *args: Any, **kwargs: Any) -> None:
        if type(data) is float and not args and not kwargs:
            self._set_leaf(data, "")
        else:
            construct(self, data, *args, **kwargs)

    def _set_leaf(self, number: float, label: str) -> None:
        self._tape, self._row, self._data = NOWHERE, 0, number
        self._label, self._grad = label, 0.0

    def _set_row(self, tape: ScalarTape, row: int) -> None:
        self._tape, self._row, self._data = tape, row, None

    @property
    def data(self) -> float:
        """The number. It can be set on leaves; what was computed before keeps the old one."""
        data = self._data
        if type(data) is float and not TRACES:
            return data
        if data is None:
            return self._tape.value(self._row)
        if TRACES and (trace := current_trace()) is not None:
            return trace.data_of(self)
        return data if type(data) is float else data.data[self._row]

    @data.setter
    def data(self, number: float) -> None:
        if self._data is None:
            refuse(self)
        if TRACES and (trace := current_trace()) is not None:
            trace.set_data(self, number)
            return
        x = number if type(number) is float else number_of(number)
        if type(self._data) is float:
            self._data = x
            self._tape = NOWHERE
        else:
            self._data.data[self._row] = x

    @property
    def grad(self) -> float:
        """The gradient of what `backward()` was called on, by this value."""
        if self._data is None:
            return self._tape.grad(self._row)
        if TRACES and (trace := current_trace()) is not None:
            return trace.grad_of(self)
        return self._grad if type(self._data) is float else self._data.grads[self._row]

    @grad.setter
    def grad(self, number: float) -> None:
        if self._data is not None and TRACES and (trace := current_trace()) is not None:
            trace.set_grad_of(self, number)
            return
        g = number if type(number) is float else number_of(number)
        if self._data is None:
            with LOCK:
                self._tape.set_grad(self._row, g)
        elif type(self._data) is float:
            self._grad = g
        else:
            self._data.grads[self._row] = g

    @property
    def _home(self) -> Any:
        """The arrays in which the number of a leaf lives that compiled functions work on."""
        return None if type(self._data) is float else self._data

    def _move(self, home: Any, row: int) -> None:
        """Let the number live in arrays from now on."""
        home.data[row], home.grads[row] = self.data, self.grad
        self._tape, self._row, self._data = NOWHERE, row, home

    @property
    def _is_leaf(self) -> bool:
        return self._data is not None

    _new_tape = ScalarTape
    _new_trace = Trace
    _open_tape = staticmethod(current_tape)
    _made = staticmethod(lambda tape, row: _made(tape, row))

    def _track(self) -> None:
        """Python's own handles are known to the cyclic collector as they are."""

    def __pow__(self, other: Any) -> Value:
        if isinstance(other, Value):
            return _POW(self, other)
        return _POWC(self, other)

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("div"), _reflected("div")
    __rpow__ = _reflected("pow")
    __neg__ = _unary("neg")
    relu, tanh, exp, log = _unary("relu"), _unary("tanh"), _unary("exp"), _unary("log")
    sigmoid, sin, cos, sqrt = _unary("sigmoid"), _unary("sin"), _unary("cos"), _unary("sqrt")
    abs = __abs__ = _unary("abs")


def _made(tape: Any, row: int) -> Value:
    v = new(Value)
    v._tape = tape
    v._row = row
    v._data = None
    return v


Value._class = Value
Value.__signature__ = SIGNATURE  # type: ignore[attr-defined]
