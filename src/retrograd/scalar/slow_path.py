"""The slow path of both recorders: operands that are not all on one open tape, numbers, errors, and
what a `Value` is constructed from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from retrograd.errors import DTypeError, GradientError
from retrograd.scalar.debug import look, watching
from retrograd.scalar.machine import NAMES
from retrograd.scalar.operands import at_line, children_of, number_of
from retrograd.scalar.scalar import Scalar, combined
from retrograd.scalar.tape import LOCK, OPEN, TapeClosed, current_trace


def record(cls: Any, code: int, *operands: Any) -> Any:
    """A value of the class `cls`: an operation on Values and numbers."""
    for x in operands:
        if not isinstance(x, cls):
            combined(NAMES[code], x, operands)
    with LOCK:  # until there is a handle
        tape, row = append(cls, operands, lambda tape, rows: tape.put(code, *rows))
        made = cls._made(tape, row)
        if watching():
            look(tape, row)
        return made


def construct(
    self: Any,
    data: float,
    children: Any = (),
    op: Any = "",
    label: str = "",
    *,
    _children: Any = (),
    _op: str = "",
    local_grads: Any = (),
) -> None:
    """What a `Value` is made of, as the constructors of micrograd and microgpt take it."""
    if isinstance(data, Scalar) and current_trace() is not None:
        construct(self, 0.0, label=str(label))
        self.data = data  # a number that is not known yet
        return
    try:
        number = number_of(data)
        parts = children_of(children or _children, op or _op, label, local_grads)
    except DTypeError as error:
        raise DTypeError(f"{error}{at_line()}") from None
    given, name, label, slopes = parts
    if not given:
        self._set_leaf(number, label)
        return
    cls = type(self)._class
    for x in given:
        if not isinstance(x, cls):
            raise DTypeError(f"a Value is computed from Values, not from {x!r:.80}{at_line()}")
        x._track()
    with LOCK:
        self._set_row(
            *append(cls, given, lambda tape, rows: tape.custom(rows, number, name, slopes))
        )
        if watching():
            look(self._tape, self._row)
    if label:
        self.label = label


_ITSELF, *_PARTS = inspect.signature(construct).parameters.values()
SIGNATURE = inspect.Signature(_PARTS)  # of the class


def append(
    cls: Any, operands: tuple[Any, ...], write: Callable[[Any, tuple[int, ...]], int]
) -> tuple[Any, int]:
    """A tape, and the row that `write` makes of the rows of operands on it; under the lock."""
    while True:
        # Where something computed is, else where this thread records.
        tape: Any = None
        for x in operands:
            if isinstance(x, cls) and not x._is_leaf and x._tape.stamp == OPEN:
                tape = x._tape
                break
        if tape is None:
            tape = cls._open_tape()
        try:
            return tape, write(tape, tuple([_row(cls, tape, x) for x in operands]))
        except TapeClosed:
            continue  # two operands of the same open tape, which one of them closed


def _row(cls: Any, tape: Any, x: Any) -> int:
    if not isinstance(x, cls):
        row: int = tape.number(number_of(x))
    elif x._tape is tape:
        row = x._row
    else:
        row = tape.attach(x) if x._is_leaf else tape.import_row(x._tape, x._row)
    return row


def refuse(v: Scalar) -> None:
    """What happens when somebody sets the data of a result."""
    raise GradientError(v._unsettable())
