"""Operations on operands that are not all on one open page, for either recorder."""

from __future__ import annotations

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
        page, row = put(cls, operands, lambda page, rows: page.put(code, *rows))
        made = cls._made(page, row)
        if watching():
            look(page, row)
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
        self._set_row(*put(cls, given, lambda page, rows: page.custom(rows, number, name, slopes)))
        if watching():
            look(self._page, self._row)
    if label:
        self.label = label


def put(
    cls: Any, operands: tuple[Any, ...], write: Callable[[Any, tuple[int, ...]], int]
) -> tuple[Any, int]:
    """A page, and the row that `write` makes of the rows of operands on it; under the lock."""
    while True:
        # Where something computed is, else where this thread records.
        page: Any = None
        for x in operands:
            if isinstance(x, cls) and not x._is_leaf and x._page.stamp == OPEN:
                page = x._page
                break
        if page is None:
            page = cls._open_page()
        try:
            return page, write(page, tuple([_row(cls, page, x) for x in operands]))
        except TapeClosed:
            continue  # two operands of the same open page, which one of them closed


def _row(cls: Any, page: Any, x: Any) -> int:
    if not isinstance(x, cls):
        row: int = page.number(number_of(x))
    elif x._page is page:
        row = x._row
    else:
        row = page.attach(x) if x._is_leaf else page.import_row(x._page, x._row)
    return row


def refuse(v: Scalar) -> None:
    """What happens when somebody sets the data of a result."""
    raise GradientError(v._unsettable())
