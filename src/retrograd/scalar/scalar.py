"""What the recorders of `Value` have in common: all that does not happen for every operation."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from retrograd import viz
from retrograd.errors import DTypeError, GradientError, HistoryWarning, TraceError
from retrograd.files import write_atomically
from retrograd.gc_paused import gc_paused
from retrograd.graph.graph import Graph
from retrograd.scalar.graph_export import to_dot, to_graph, to_svg, value_html, value_svg
from retrograd.scalar.machine import CONSTANT, CUSTOM, FOREIGN, LEAF, OPCODES
from retrograd.scalar.machine.portable import derivatives
from retrograd.scalar.operands import at_line, number_of
from retrograd.scalar.reverse import clear_gradients, run_backward
from retrograd.scalar.tape import RowHandle, current_trace

_BY_CODE = {o.code: o for o in OPCODES}
_POWC = next(o.code for o in OPCODES if o.name == "powc")


class Scalar(RowHandle):
    """A number of double precision that remembers how it was computed.

    It can be written wherever micrograd's or microgpt's `Value` stands. `+ - * / **` take Values
    and numbers on both sides; `relu tanh exp log sigmoid sin cos sqrt abs` are methods. Nothing is
    computed before somebody looks at `.data`.

    `backward()` computes the gradient of this value by everything it was computed from, at the
    numbers it was computed with: a leaf whose `.data` was set afterwards counts with its old
    number. The gradients of leaves are added to what is there, until `zero_grad()` or until they
    are set; those of computed values are new each time. Values that this one was not computed from
    keep theirs.

    Arithmetic is that of IEEE 754: `1 / 0` is an infinity and `log(-1)` is NaN, as with tensors,
    not an exception as in Python. A gradient of exactly zero stays zero whatever it is multiplied
    with. `<`, `<=`, `>`, `>=` compare numbers; `==` asks whether two handles are the same node, so
    that Values can be collected in sets. NumPy's functions of a Value are its methods: `np.tanh(v)`
    is `v.tanh()`.

    What is no number is a `DTypeError`.

    >>> import retrograd as rg
    >>> a, b = rg.Value(2.0, label="a"), rg.Value(-3.0)
    >>> c = (a * b + a**2).relu() + a
    >>> c.backward()
    >>> c.data, a.grad, b.grad
    (2.0, 1.0, 0.0)
    """

    __slots__ = ()

    data: float
    _class: Any  # the recorder's own class, of which this may be a subclass
    _new_trace: type[Any]
    _made: Callable[[Any, int], Any]
    _track: Callable[[], None]

    @property
    def _is_leaf(self) -> bool:
        """Whether this was made of a number."""
        raise NotImplementedError

    # -- the graph --------------------------------------------------------------------------------
    @property
    def _prev(self) -> tuple[Any, ...]:
        """The values this one was computed from, one for each operand."""
        if self._is_leaf:
            return ()
        tape = self._tape
        self._register()
        return tuple([self._held(tape, r) for r in _operands(tape, self._row)])

    @property
    def _children(self) -> tuple[Any, ...]:
        return self._prev

    def _held(self, tape: Any, row: int) -> Any:
        """The one handle on a row that is handed out."""
        code = tape.row(row)[0]
        if code == LEAF:
            return tape.leaf(row)
        if code == FOREIGN:
            tape, row = tape.foreign[row]
        found = tape.handles.get(row)
        if found is None:
            found = tape.handles.setdefault(row, self._made(tape, row))
            found._track()
        return found

    def _register(self) -> None:
        if not self._is_leaf:
            self._track()
            self._tape.handles.setdefault(self._row, self)

    @property
    def _op(self) -> str:
        """The operation that made this value, as micrograd writes it; empty for a leaf."""
        if self._is_leaf:
            return ""
        code, _, b = self._tape.row(self._row)
        if code == CUSTOM:
            return self._tape.customs[self._row].op
        if code == _POWC:
            return f"**{self._tape.value(b):g}"
        return _BY_CODE[code].symbol if code in _BY_CODE else ""

    @property
    def label(self: Any) -> str:
        """A name for errors and drawings."""
        return self._label if self._is_leaf else self._tape.labels.get(self._row, "")

    @label.setter
    def label(self: Any, text: str) -> None:
        if self._is_leaf:
            self._label = text
        else:
            self._tape.labels[self._row] = text
            self._register()

    @property
    def _local_grads(self) -> tuple[float, ...]:
        """The derivative of this value by each of `_prev`."""
        if self._is_leaf:
            return ()
        tape, row = self._tape, self._row
        code = tape.row(row)[0]
        if code == CUSTOM:
            return tape.customs[row].slopes or ()
        rows = _operands(tape, row)
        if not rows:
            return ()
        operands = [tape.value(r) for r in tape.row(row)[1:]][: _BY_CODE[code].arity]
        return tuple(derivatives(code, self.data, *operands)[: len(rows)])

    @property
    def _backward(self) -> Callable[[], Any]:
        """Adds to the gradients of `_prev` what this value's gradient gives them."""
        if not self._is_leaf and (custom := self._tape.customs.get(self._row)) is not None:
            if (send := custom.send) is not None:
                return lambda: send(self.grad)
            return custom.backward or self._send_back
        return self._send_back

    @_backward.setter
    def _backward(self, f: Callable[[], Any]) -> None:
        custom = None if self._is_leaf else self._tape.customs.get(self._row)
        if custom is None:
            raise GradientError(
                f"{self!r} has a gradient of its own; a `_backward` is for results of operations "
                "made by hand, as Value(data, (a, b), 'op')"
            )
        custom.backward = f

    def _send_back(self: Any) -> None:
        g = self.grad
        for x, slope in zip(self._prev, self._local_grads, strict=True):
            x.grad += slope * g if g else 0.0

    # -- as a whole -------------------------------------------------------------------------------
    def graph(self) -> Graph:
        """The history of this value as an `rg.Graph`, whose inputs are the leaves it was computed
        from, with the numbers they had; labels are names.

        >>> import retrograd as rg
        >>> x = rg.Value(3.0, label="x")
        >>> g = (x * x + 1).graph()
        >>> g().item(), g.gradient()(x=5.0).item()
        (10.0, 10.0)
        """
        return to_graph(*self._position())

    def to_dot(self) -> str:
        """The history as Graphviz text, with number and gradient of every value."""
        return to_dot(*self._position())

    def to_svg(self, path: str | os.PathLike[str] | None = None) -> str:
        """The history as a standalone picture, with number and gradient of every value; also
        written to `path` where one is given."""
        text = to_svg(*self._position())
        if path is not None:
            write_atomically(path, text.encode(), "picture")
        return text

    def to_png(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        scale: float | None = None,
        dpi: float | None = None,
        dark: bool = False,
        transparent: bool = False,
    ) -> bytes:
        """The picture of `to_svg` as PNG, also written to `path` where one is given; options as of
        `Graph.to_png`. Needs the extra `pictures`."""
        picture = self.to_svg()
        return viz.to_png(picture, path, scale=scale, dpi=dpi, dark=dark, transparent=transparent)

    def to_pdf(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        dark: bool = False,
        transparent: bool = False,
    ) -> bytes:
        """The picture of `to_svg` as a PDF page of its size; options as of `Graph.to_pdf`."""
        return viz.to_pdf(self.to_svg(), path, dark=dark, transparent=transparent)

    def show(self, path: str | os.PathLike[str] | None = None, open: bool = True) -> Path:
        """Show what this value was computed from and its backward pass, step by step with numbers,
        in the browser or in the notebook; `path` and `open` as of `Graph.show`.

        >>> import retrograd as rg
        >>> page = (rg.Value(2.0, label="a") * rg.Value(-3.0, label="b")).show(open=False)
        """
        with gc_paused():
            graph = self.graph()
        return graph.show(path=path, open=open)

    def _position(self) -> tuple[Any, int]:
        if not self._is_leaf:
            return self._tape, self._row
        tape = self._class._new_tape()
        return tape, tape.attach(self)

    # -- gradients --------------------------------------------------------------------------------
    def backward(self: Any) -> None:
        """Compute the gradient of this value by everything it was computed from."""
        if self._is_leaf:
            self.grad += 1.0
        else:
            run_backward(self._tape, self._row)

    def zero_grad(self: Any) -> None:
        """Set `.grad` of this value and of everything it was computed from to 0."""
        if self._is_leaf:
            self.grad = 0.0
        else:
            clear_gradients(self._tape, self._row)

    # -- an object like others --------------------------------------------------------------------
    def _unsettable(self) -> str:
        line = None if self._is_leaf else self._tape.lines.get(self._row)
        return (
            f"the data of {self!r} was computed by {self._op or 'nothing'}"
            f"{f' (at {line})' if line else ''}; only leaves, made by Value(number), can be set"
            f"{at_line()}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._is_leaf:
            raise GradientError(f"a copy would lose the history of {self!r}; copy Value(v.data)")
        return _restored, (type(self), self.data, self.label, self.grad)

    def __repr__(self: Any) -> str:
        label = f", label={self.label!r}" if self.label else ""
        if not self._is_leaf and self._tape.trace is not None:
            return f"Value(traced by jit{label})"
        return f"Value(data={self.data}, grad={self.grad}{label})"

    def _repr_html_(self) -> str:
        """What notebooks show: the number, its gradient, and a picture of a short history."""
        return value_html(self)

    def _repr_svg_(self) -> str | None:
        """The picture of a short history; None of a long one, and of a leaf."""
        return value_svg(self)

    def __format__(self, spec: str) -> str:
        return format(_definite(self.data), spec) if spec else repr(self)

    def __float__(self) -> float:
        number = _definite(self.data)
        warnings.warn(
            "float() of a Value is a plain number, which knows nothing of what it was computed "
            "from: its gradient would silently be zero. Write v.tanh() or np.tanh(v) in place of "
            "math.tanh(v), or v.data, if a constant is meant",
            HistoryWarning,
            stacklevel=2,
        )
        return number

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions are operators and methods of what is in arrays of objects: `np.tanh(v)`
        is `v.tanh()`."""
        if method != "__call__" or options:
            return NotImplemented
        return ufunc(*[_in_array(x, ufunc.__name__, inputs) for x in inputs])

    def __bool__(self) -> bool:
        return bool(_definite(self.data))

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        if not self._is_leaf and self._tape.trace is not None and self._tape.trace.is_outcome(self):
            return self._tape.trace.compare("eq", self, other)
        if not isinstance(other, Scalar) or self._is_leaf or other._is_leaf:
            return False
        return self._tape is other._tape and self._row == other._row

    def __hash__(self) -> int:
        return object.__hash__(self) if self._is_leaf else hash((id(self._tape), self._row))

    def __lt__(self, other: Any) -> Any:
        return _compare(operator.lt, self, other)

    def __le__(self, other: Any) -> Any:
        return _compare(operator.le, self, other)

    def __gt__(self, other: Any) -> Any:
        return _compare(operator.gt, self, other)

    def __ge__(self, other: Any) -> Any:
        return _compare(operator.ge, self, other)


def _in_array(x: Any, name: str, operands: Sequence[Any]) -> Any:
    """An operand of a function of NumPy, a Value as an array that holds it. Arrays of numbers are
    refused."""
    if isinstance(x, np.ndarray) and x.ndim and x.dtype != object:
        combined(name, x, operands)
    if not isinstance(x, Scalar):
        return x
    array = np.empty((), object)
    array[()] = x
    return array


def _compare(f: Callable[[Any, Any], bool], a: Any, b: Any) -> Any:
    trace = current_trace()
    if trace is not None:
        return trace.compare(f.__name__, *[x.data if isinstance(x, Scalar) else x for x in (a, b)])
    return f(a.data, b.data if isinstance(b, Scalar) else combined(f.__name__, b, (a, b)))


def combined(name: str, x: Any, operands: Sequence[Any]) -> float:
    """The number that `x` is among the operands of an operation; what is none is an error that
    names the operation, the Values it was to be combined with, and the line."""
    try:
        return number_of(x)
    except DTypeError as error:
        others = " and ".join([repr(v) for v in operands if isinstance(v, Scalar)])
        given = f"; asked for {name} with {others}" if others else ""
        raise DTypeError(f"{error}{given}{at_line()}") from None


def _definite(x: Any) -> float:
    if isinstance(x, Scalar):
        raise TraceError(
            "the number of a Value is not known while jit traces: it cannot decide what the "
            "function does next, nor be given to functions other than those of Value, max and min"
        )
    return float(x)


def _operands(tape: Any, row: int) -> tuple[int, ...]:
    """The rows of the operands; of a power by a constant without the constant."""
    code, a, b = tape.row(row)
    if code == CUSTOM:
        return tuple(tape.customs[row].rows)
    if code in (CONSTANT, LEAF, FOREIGN):
        return ()
    return (a,) if code == _POWC or _BY_CODE[code].arity == 1 else (a, b)


def _restored(cls: Any, data: float, label: str, grad: float) -> Any:
    made = cls(data, label=label)
    made.grad = grad
    return made


__all__ = ["DTypeError", "Scalar"]
