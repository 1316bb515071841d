"""`Value`: a scalar that records, in the manner of micrograd, on the same graph and rules."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.autodiff import pullback
from retrograd.backends.reference import ReferenceProgram
from retrograd.errors import DTypeError, GradientError
from retrograd.frontend.recording import leaf
from retrograd.frontend.value_graph import value_graph
from retrograd.ir import Graph, Node, TensorType, float64, full
from retrograd.ops import elementwise as el

_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "relu": "ReLU"}


class Value:
    """A float64 number that remembers how it was computed.

    `backward()` fills in `.grad` of every value it was computed from: afresh for computed values,
    added to what is there for leaves, until `zero_grad()`.

    >>> a, b = Value(2.0, label="a"), Value(-3.0)
    >>> c = (a * b + a**2).relu() + a
    >>> c.backward()
    >>> c.data, a.grad, b.grad
    (2.0, 1.0, 0.0)
    """

    __slots__ = ("__weakref__", "_data", "_node", "_prev", "grad", "label")

    def __init__(self, data: float, label: str = "") -> None:
        if isinstance(data, Value | str | bytes) or np.ndim(data) != 0:
            raise DTypeError(f"a Value is made of a number, not of {data!r}")
        self._set(leaf(np.asarray(float(data)), label), (), float(data), label)

    def _set(self, node: Node, prev: tuple[Value, ...], data: float | None, label: str) -> None:
        self._node = node
        self._prev = prev
        self._data = data
        self.label = label
        self.grad = 0.0

    @property
    def _op(self) -> str:
        """The operation that made this value; empty for a leaf."""
        return _SYMBOLS.get(self._node.op, self._node.op) if self._prev else ""

    @property
    def data(self) -> float:
        """The number. It can be set on leaves; what was computed before keeps the old one."""
        if self._data is None:
            _compute(self)
        assert self._data is not None
        return self._data

    @data.setter
    def data(self, number: float) -> None:
        if self._prev:
            raise GradientError(
                f"the data of {self!r} was computed by {self._op}; only leaves can be set"
            )
        self._data = float(number)
        self._node = leaf(np.asarray(self._data), self.label)

    def backward(self) -> None:
        """Compute the gradient of this value with respect to everything it was computed from."""
        order = _ancestors([self])
        for v in order:
            for x, p in zip(v._node.inputs, v._prev, strict=True) if v._prev else ():
                if x is not p._node:
                    raise GradientError(
                        f"the data of {p!r} was set after {v._op} was computed from it; compute "
                        "the result again before backward()"
                    )
        _compute(self)
        nodes = [v._node for v in order]
        found = pullback([self._node], [full(1, self._node.type)], nodes)
        ends = list(dict.fromkeys(g for g in found if g is not None))
        inputs = list(dict.fromkeys(nodes))
        values = {v._node: np.asarray(v._data) for v in order}
        results = ReferenceProgram(Graph(inputs, ends))([values[n] for n in inputs])
        number = dict(zip(ends, results, strict=True))
        for v, g in zip(order, found, strict=True):
            new = 0.0 if g is None else float(number[g])
            v.grad = v.grad + new if not v._prev else new

    def zero_grad(self) -> None:
        """Set `.grad` of this value and of everything it was computed from to 0."""
        for v in _ancestors([self]):
            v.grad = 0.0

    def show(self, path: str | os.PathLike[str] | None = None, open: bool = True) -> Path:
        """Show what this value was computed from and its backward pass, step by step with numbers,
        in the browser or in the notebook; `path` and `open` as of `Graph.show`.

        >>> page = (Value(2.0, label="a") * Value(-3.0, label="b")).show(open=False)
        """
        return value_graph(self).show(path=path, open=open)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._prev:
            raise GradientError(f"a copy would lose the history of {self!r}; copy Value(v.data)")
        return _restored, (self.data, self.label, self.grad)

    def __repr__(self) -> str:
        label = f", label={self.label!r}" if self.label else ""
        return f"Value(data={self.data}, grad={self.grad}{label})"

    def __float__(self) -> float:
        return self.data

    def __bool__(self) -> bool:
        return bool(self.data)

    def __pow__(self, other: Any) -> Value:
        return _apply(el.pow, self, other)

    def __neg__(self) -> Value:
        return _apply(el.neg, self)

    def __lt__(self, other: Any) -> bool:
        return self.data < _number(other)

    def __le__(self, other: Any) -> bool:
        return self.data <= _number(other)

    def __gt__(self, other: Any) -> bool:
        return self.data > _number(other)

    def __ge__(self, other: Any) -> bool:
        return self.data >= _number(other)

    @staticmethod
    def _binary(op: el.Elementwise) -> tuple[Callable[..., Value], Callable[..., Value]]:
        return lambda a, b: _apply(op, a, b), lambda a, b: _apply(op, b, a)

    @staticmethod
    def _unary(op: el.Elementwise) -> Callable[[Value], Value]:
        def call(self: Value) -> Value:
            return _apply(op, self)

        call.__name__, call.__doc__ = op.name, f"{op.name} of this value."
        return call

    __add__, __radd__ = _binary(el.add)
    __sub__, __rsub__ = _binary(el.sub)
    __mul__, __rmul__ = _binary(el.mul)
    __truediv__, __rtruediv__ = _binary(el.div)
    __rpow__ = _binary(el.pow)[1]
    relu, tanh, exp, log = _unary(el.relu), _unary(el.tanh), _unary(el.exp), _unary(el.log)
    sigmoid, sin, cos, sqrt = _unary(el.sigmoid), _unary(el.sin), _unary(el.cos), _unary(el.sqrt)
    abs = __abs__ = _unary(el.abs)


def _restored(data: float, label: str, grad: float) -> Value:
    made = Value(data, label)
    made.grad = grad
    return made


def _number(x: Any) -> float:
    return x.data if isinstance(x, Value) else float(x)


def _apply(op: el.Elementwise, *operands: Any) -> Value:
    values = []
    for x in operands:
        if not isinstance(x, Value):
            if isinstance(x, str | bytes) or not isinstance(x, int | float | np.number):
                raise DTypeError(f"a Value combines with numbers and Values, not {x!r}")
            x = _constant(float(x))
        values.append(x)
    made = object.__new__(Value)
    made._set(op(*[v._node for v in values]), tuple(values), None, "")
    return made


def _constant(number: float) -> Value:
    made = object.__new__(Value)
    made._set(full(number, TensorType(float64, ())), (), number, "")
    return made


def _ancestors(ends: Iterable[Value], computed: bool = True) -> list[Value]:
    """The values below, inputs first; without passing computed ones if so asked."""
    found = {id(v): v for v in ends}
    todo = list(found.values())
    while todo:
        for x in todo.pop()._prev:
            if id(x) not in found and (computed or x._data is None):
                found[id(x)] = x
                todo.append(x)
    return sorted(found.values(), key=lambda v: v._node.id)


def _compute(end: Value) -> None:
    """Compute what is not yet known below a value, in order, without recursion."""
    for v in _ancestors([end], computed=False):
        if v._data is None:
            v._data = float(v._node.prim.reference(*[np.asarray(x._data) for x in v._prev]))
