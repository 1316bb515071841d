"""`jit` of functions of Values: traced once for each structure, then run by the vector machine."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.errors import DTypeError, TraceError
from retrograd.scalar import Value
from retrograd.scalar.compiled_program import ScalarProgram
from retrograd.scalar.debug import watching
from retrograd.scalar.history import RowHistory
from retrograd.scalar.machine.vector_machine import can_run
from retrograd.scalar.scalar import Scalar
from retrograd.scalar.tape import LOCK, TapeClosed, current_trace
from retrograd.scalar.trace import Trace, tracing
from retrograd.scalar.trace_rows import plain, settled
from retrograd.transforms.jit.jit import TRACED_KINDS
from retrograd.transforms.jit.signature import StaticLeaf

CAPACITY = 1 << 28  # bytes of programs kept for each function; what was not used longest goes
LOOKED_AT = 20_000  # objects that a function is searched for Values through


class ScalarExecutable:
    """A program with what it takes to call it."""

    def __init__(
        self, cls: Any, f: Callable[..., Any], leaves: Sequence[Any], structure: Any
    ) -> None:
        arguments = [x for x in leaves if isinstance(x, Scalar)]
        self._check(arguments)
        given: list[Any] = []
        with tracing(f, cls._new_tape, cls._made, cls._new_trace) as trace:
            for x in leaves:
                given.append(trace.argument() if _is_number(x) else x)
            args, kwargs = pytree.unflatten(structure, given)
            result = f(*args, **kwargs)
            out, self.shape = pytree.flatten(result)
            self.kinds = [_kind(trace, y) for y in out]
        fresh = trace.fresh()
        columns = trace.columns()
        known, data, grads = trace.leaves()
        if fresh:
            columns = settled(columns, known, fresh)
            data, grads = data.copy(), grads.copy()
            data[fresh] = grads[fresh] = 0
        rows = [y._row for y, k in zip(out, self.kinds, strict=True) if k == "result"]
        # Numbers are given back as numbers, what depends on leaves as a Value with its history.
        self.histories = [
            None if plain(columns, r) else RowHistory(columns, r, known) for r in rows
        ]
        noted = [h.given for h in self.histories if h is not None]
        ends = np.concatenate([[], *noted])
        self.program = ScalarProgram(trace, columns, (known, data, grads), rows, ends, arguments)
        cuts = np.cumsum([len(x) for x in noted])[:-1]
        self.noted = np.split(self.program.noted, cuts) if noted else []
        position = {id(x): i for i, x in enumerate(leaves)}
        self.reads = [(position[id(x)], is_start) for x, _, is_start in self.program.reads]
        self.slots = [slot for _, slot, _ in self.program.reads] + self.program.numbers.tolist()
        self.writes = [(position[id(x)], slot, field) for x, slot, field in self.program.writes]
        self.returned = [position.get(id(y)) for y in out]
        self.numbers = [i for i, x in enumerate(leaves) if _is_number(x)]
        self.cls = cls
        # Nothing else of the trace is needed.
        self.fixed = [None if k == "result" else y for y, k in zip(out, self.kinds, strict=True)]
        behind = {id(x) for h in self.histories if h is not None for x in h.leaves()}
        self.instead = [(id(x), i) for i, x in enumerate(leaves) if id(x) in behind]
        self.nbytes = self.program.nbytes + sum([h.nbytes for h in self.histories if h is not None])

    def _check(self, arguments: Sequence[Any]) -> None:
        for x in arguments:
            if not x._is_leaf:
                raise TraceError(
                    f"{x!r} was given to a jit function: the gradient beyond it would be lost. "
                    "Compute it inside, or pass a leaf, Value(v.data)"
                )

    def __call__(self, leaves: Sequence[Any]) -> Any:
        program = self.program
        with LOCK:
            numbers = [leaves[i].grad if is_start else leaves[i].data for i, is_start in self.reads]
            values = program(self.slots, [*numbers, *[leaves[i] for i in self.numbers]])
            for i, slot, field in self.writes:
                setattr(leaves[i], field, float(values[slot]))
            found = iter(values[program.results].tolist())
            noted = iter([values[slots] for slots in self.noted])
        instead = {k: leaves[i] for k, i in self.instead}
        histories = iter(self.histories)
        results = []
        for kind, fixed, position in zip(self.kinds, self.fixed, self.returned, strict=True):
            if kind == "fixed":
                results.append(fixed if position is None else leaves[position])
            elif (history := next(histories)) is None:
                results.append(next(found))
            else:
                results.append(self._result(next(found), history, next(noted), instead))
        return pytree.unflatten(self.shape, results)

    def _result(self, x: float, history: RowHistory, numbers: Any, instead: dict[int, Any]) -> Any:
        """A Value of an open tape, from which a way back goes on to leaves."""
        with LOCK:
            while True:
                tape = self.cls._open_tape()
                try:
                    row = tape.custom((), x, "jit", None)
                except TapeClosed:
                    continue
                made = tape.customs[row]
                made.send = lambda g: history.send_back(g, numbers, instead)
                made.clear = lambda: history.clear(instead)
                return self.cls._made(tape, row)


class Scalars:
    """The calls of a `jit` function that are about Values."""

    def __init__(self, f: Callable[..., Any], counts: dict[str, int]) -> None:
        self._f = f
        self._counts = counts
        self._closed: Any = None  # the class of Values that the function closes over; False
        self._known: dict[Any, ScalarExecutable] = {}  # what was used last at the end

    def concern(self, leaves: Sequence[Any], arrays: tuple[type, ...]) -> bool:
        """Whether a call with these arguments is about Values."""
        if any(isinstance(x, Scalar) for x in leaves):
            return True
        if any(isinstance(x, arrays) for x in leaves):
            return False
        return self._closed_class() is not False

    def _closed_class(self) -> Any:
        if self._closed is None:
            self._closed = _class_found(self._f)
        return self._closed

    def __call__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any], structure: Any
    ) -> Any:
        if current_trace() is not None or watching() or not can_run():
            return self._f(*args, **kwargs)  # becomes part of what is being traced, or looked at
        first: dict[int, int] = {}
        keys: list[Any] = []
        for i, x in enumerate(leaves):
            if type(x) is int:
                keys.append(x)
            elif isinstance(x, Scalar):
                keys.append((type(x), first.setdefault(id(x), i)))
            else:
                keys.append("number" if _is_number(x) else _static(x))
        key = structure, tuple(keys)
        with LOCK:
            found = self._known.pop(key, None)
            if found is None:
                found = ScalarExecutable(self._class_of(leaves), self._f, leaves, structure)
                self._counts["compilations"] += 1
            self._keep(key, found)
        self._counts["calls"] += 1
        return found(leaves)

    def _keep(self, key: Any, made: ScalarExecutable) -> None:
        self._known[key] = made
        size = sum([x.nbytes for x in self._known.values()])
        for old in list(self._known)[:-1]:
            if size <= CAPACITY:
                break
            size -= self._known.pop(old).nbytes

    def _class_of(self, leaves: Sequence[Any]) -> Any:
        """The class that does the recording."""
        for x in leaves:
            if isinstance(x, Scalar):
                return type(x)._class
        return self._closed_class() or Value

    def __len__(self) -> int:
        return len(self._known)


def _is_number(x: Any) -> bool:
    return isinstance(x, float | np.floating)


def _static(x: Any) -> StaticLeaf:
    found = StaticLeaf(x)
    try:
        hash(found)
    except TypeError:
        raise DTypeError(
            f"a jit function of Values got {x!r:.80}, of type {type(x).__name__}; it takes Values, "
            "numbers and trees of these, and constants that are hashable"
        ) from None
    return found


def _kind(trace: Trace, y: Any) -> str:
    """Whether a result is computed, or something that is the same in every call."""
    if not isinstance(y, Scalar) or y._is_leaf:
        return "fixed"
    if y._tape is not trace.tape:
        raise TraceError("a Value that was computed outside of a jit function is returned by it")
    return "result"


def _class_found(f: Any) -> Any:
    """The class of a Value that can be reached from a function: by its closure, its defaults, the
    globals it names, what these hold, and the functions among them. False if there is none."""
    todo: list[Any] = [f]
    seen: set[int] = set()
    while todo and len(seen) < LOOKED_AT:
        x = todo.pop()
        if isinstance(x, Scalar):
            return type(x)._class
        if id(x) in seen or isinstance(x, str | bytes | int | float | type(None) | np.ndarray):
            continue
        seen.add(id(x))
        todo += _inside(x)
    return False


def _inside(x: Any) -> list[Any]:
    if isinstance(x, list | tuple | set | frozenset):
        return list(x)
    if isinstance(x, dict):
        return list(x.values())
    if isinstance(x, types.MethodType):
        return [x.__self__, x.__func__]
    if isinstance(x, types.FunctionType):
        cells = [c.cell_contents for c in x.__closure__ or () if _is_filled(c)]
        names = [x.__globals__[n] for n in x.__code__.co_names if n in x.__globals__]
        return [*cells, *names, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    if isinstance(x, type | types.ModuleType | types.BuiltinFunctionType):
        return []
    if hasattr(x, "__wrapped__"):
        return [x.__wrapped__]
    held = getattr(x, "__dict__", None)  # not a dict where any name is an attribute
    found = list(held.values()) if isinstance(held, dict) else []
    method = type(x).__dict__.get("__call__")  # what a module does is in its class
    return [*found, method] if isinstance(method, types.FunctionType) else found


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


TRACED_KINDS.append(Scalars)
