"""The innermost part of recording: the slots that a lookup in C shares with Python.

What an operation leads to is in one table, `TraceNode.successors`, which `quick_dispatch.py` fills.
Where a C compiler was found at installation, `accelerate/tensor.c` has the classes of this file,
and looks operations up in that table before Python is asked.
"""

from __future__ import annotations

import functools
import itertools
import operator
import types
import weakref
from collections.abc import Callable
from contextlib import suppress
from sys import getrefcount
from threading import active_count
from typing import TYPE_CHECKING, Any, TypeVar

from retrograd.accelerate import check

try:
    from retrograd.accelerate import _tensor as compiled

    check(compiled)
except ImportError:
    compiled = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from retrograd.ir import Node

F = TypeVar("F", bound=Callable[..., Any])
MISSED = object()  # in place of a result: this has to be recorded on nodes
COMPOSITE = 3  # in place of an arity: a function on tensors that is recorded as what it calls


# The number of the last call of a function by a transform, of all threads. Handles have that of
# their making in `_epoch`: one made before a call was passed to the function, or captured by it.
EPOCH = [0]


class HandleBase:
    """The fields of a handle: see `LazyTensor`."""

    __slots__ = (
        "__weakref__",
        "_array",
        "_buffer",
        "_epoch",
        "_grad",
        "_requires_grad",
        "_state",
    )  # fmt: skip

    _state: Any
    _buffer: Any
    _epoch: int

    def _exchange(self, other: Any) -> None:
        """Stand for what another does, and have it stand for what this did."""
        for name in ("_buffer", "_array", "_requires_grad", "_state"):
            mine, its = _field(self, name), _field(other, name)
            for h, value in ((self, its), (other, mine)):
                if value is MISSED:
                    with suppress(AttributeError):
                        delattr(h, name)
                else:
                    setattr(h, name, value)
        handles = self._buffer.handles if isinstance(self._state, TraceNodeBase) else []
        if handles and handles[-1] is other and not any(h is self for h in handles):
            handles[-1] = self

    def _assign(self, cls: type, key: Any, value: Any) -> bool:
        """`state[key] = value` where the state is of a class, and nobody else has it; whether it
        was. Other threads may come in between, where there are some."""
        state: Any = self._state
        if state.__class__ is not cls or getrefcount(state) > SOLE or active_count() > 1:
            return False
        state[key] = value  # type: ignore[index]
        return True

    @property
    def _trace_node(self) -> Any:
        """What it is in its buffer; None where it is not deferred."""
        return self._state if isinstance(self._state, TraceNodeBase) else None


def _field(h: Any, name: str) -> Any:
    """A field of a handle, if it is set."""
    try:
        return object.__getattribute__(h, name)
    except AttributeError:
        return MISSED


class _Box:
    """What `HandleBase._assign` does, to count references."""

    __slots__ = ("content",)

    def __init__(self) -> None:
        self.content = object()

    def count(self) -> int:
        state = self.content
        return getrefcount(state)


SOLE = _Box().count()  # the reference count that `_assign` sees of an array that only it has


class TraceNodeBase:
    """What recording a known operation needs of a node of the trace.

    `successors` leads on: from an operation, and what it combines this with, to the result. `order`
    is that in which nodes were learned. `duplicate` is the same computation, learned later: see
    `next_in_program_order`.
    """

    __slots__ = ("duplicate", "floating", "order", "successors", "takes_numbers")

    successors: dict[Any, dict[Any, Any]]
    duplicate: Any
    order: int
    floating: bool
    takes_numbers: bool  # as arguments of a program; not bfloat16


class TraceBufferBase:
    """What recording a known operation needs of a buffer.

    `handles` lists handles strongly, so that making one costs little; that somebody else holds one
    is seen by its reference count.
    """

    __slots__ = (
        "add", "before", "every", "handles", "kept", "last", "limit", "numbers", "open", "ordered",
        "slots", "take",
    )  # fmt: skip

    limit: int  # how many handles are made before somebody asks whether to cut the recording
    last: int  # the order of what was recorded last that a gradient may go through
    ordered: bool  # it is a tape's: all that is recorded counts as what a gradient may go through
    take: Callable[[], int]  # the number of the next number
    add: Callable[[Any], None]  # list a handle that was made

    def __init__(self) -> None:
        self.open = self.ordered = False
        self.slots: dict[Node, Any] = {}  # the trace nodes of arrays
        self.numbers: dict[int, float] = {}  # by `take`; compiled, it is a list
        self.every: list[Any] = []  # that was recorded, of a tape
        self.handles: list[Any] = []  # those made since the last look
        self.kept: list[weakref.ref[Any]] = []  # handles that an earlier look left here
        self.before = 0  # how many handles were made before those that are listed
        self.last = self.limit = 0
        self.add = self.handles.append
        self.take = itertools.count().__next__

    def begin(self) -> None:
        """Record here from now on."""
        self.open = True
        self.add = self._enter if self.ordered else self.handles.append

    def end(self) -> None:
        """Record nothing here from now on. What another thread is adding at this moment is listed
        as what came before."""
        self.open = False

    def _enter(self, handle: Any) -> None:
        """List a handle on a tape, and what it was recorded as."""
        if self.ordered:
            self.every.append(handle._state)
        self.handles.append(handle)

    def made(self) -> int:
        """How many handles were made in this buffer."""
        return self.before + len(self.handles)

    def recorded(self) -> list[Any]:
        """The trace nodes of the handles made since the last call of `live_handles`; on a tape, of
        all."""
        if self.ordered:
            return list(self.every)
        return [f for h in self.handles if (f := h._trace_node) is not None]

    def live_handles(self) -> list[Any]:
        """The handles that somebody holds, in the order of their making."""
        made, self.handles = self.handles, []
        if not self.ordered:
            self.add = self.handles.append
        self.before += len(made)
        old = [h for h in [ref() for ref in self.kept] if h is not None and h._buffer is self]
        return old + [h for h in made if getrefcount(h) > ALONE and h._buffer is self]

    def stay(self, handles: list[Any]) -> None:
        """Go on listing handles that `live_handles` gave; others are in this buffer no longer."""
        self.kept = [weakref.ref(h) for h in handles]

    def numbers_from(self, number: int) -> dict[int, float]:
        """Numbers from this one on."""
        return {k: x for k, x in list(self.numbers.items()) if k >= number}


def _count_alone() -> int:
    """The reference count that `live_handles` sees of a handle that only the buffer holds."""
    made = [object()]
    return [getrefcount(h) for h in made if getrefcount(h)][0]  # noqa: RUF015 - as `live_handles` does


ALONE = _count_alone()


class Operation:
    """A library function of one or two arrays, as a key of `TraceNode.successors`; the same
    function with its operands exchanged is another."""

    __slots__ = ("function", "numbers", "swapped")

    def __init__(self, function: Callable[..., Any], numbers: bool, swapped: bool = False) -> None:
        self.function = function  # on nodes
        self.numbers = numbers  # whether what it does is the same whatever the value of a number
        self.swapped = swapped


class NumberKey:
    """A number that is part of a trace node, as a key of `TraceNode.successors`; see
    `number_key`."""

    __slots__ = ()


INTEGERS: dict[Any, NumberKey] = {}  # by value
FLOATS: dict[Any, NumberKey] = {}  # by text
KEYS = 10_000  # of each; beyond, all are forgotten, and trace nodes that they led to are made again


def number_key(value: float) -> NumberKey:
    """The key of a number: by value, but 1, 1.0 and True are equal, and so are 0.0 and -0.0."""
    whole = value.__class__ is int
    table, key = (INTEGERS if whole else FLOATS), (value if whole else repr(value))
    found = table.get(key)
    if found is None:
        if len(table) >= KEYS:
            table.clear()
        found = table.setdefault(key, NumberKey())
    return found


def with_native_twin(complete: F, arity: int, op: Any, swapped: Operation | None = None) -> F:
    """A function with the lookup in C in front of it, where it is compiled: of an operation that
    was recorded before it makes the handle, for all else it calls `complete`.

    It is of one or two arrays, and then `op` is an operation, and `swapped` the same with its
    operands exchanged, where the first may be a number; or (`arity` 0) one of a tensor and options
    that calls `lookup_call`, and `op` the function on nodes.
    """
    if compiled is None:
        return complete
    numbers = isinstance(op, Operation) and op.numbers
    twin = compiled.Function(complete, arity, op, swapped, numbers)
    return functools.wraps(complete)(twin)  # type: ignore[return-value]


def install(
    handles: type,
    buffers: type,
    trace_nodes: type,
    nodes: type,
    dtypes: type,
    current: Any,
    enabled: Any,
) -> None:
    """Tell the compiled recorder of the classes there are, of what has the buffer of a thread, and
    of what says whether gradients are on. It takes the arithmetic operators of `handles` in its
    hands."""
    if compiled is not None:
        compiled.install(
            handles, buffers, trace_nodes, nodes, dtypes, current, enabled, INTEGERS, FLOATS
        )
        return
    for name in vars(operator):  # those that Python has, of what the class has
        plain = f"__{name[3:]}"
        if name.startswith("__i") and plain in vars(handles):
            setattr(handles, name, changed(getattr(handles, plain)))


def changed(operation: Callable[..., Any]) -> Callable[..., Any]:
    """`x += y` for `x + y`: see `functions/tensor/inplace.py`."""

    def change(self: Any, other: Any) -> Any:
        return self._change(operation, other)

    return change


FUNCTIONS: tuple[type, ...] = (types.FunctionType,)  # what `with_native_twin` returns

if compiled is not None:
    FUNCTIONS = types.FunctionType, compiled.Function
    if not TYPE_CHECKING:
        HandleBase, TraceNodeBase, TraceBufferBase = (
            compiled.HandleBase,
            compiled.TraceNodeBase,
            compiled.TraceBufferBase,
        )
