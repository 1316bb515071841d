"""Native calls are tried out: there are none where Python lays out its objects in another way."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, ClassVar

import numpy as np

from retrograd.runtime.fast_call import (
    ARRAY,
    CONSTANT,
    DICT,
    FLOAT,
    INT,
    LIST,
    MISSED,
    SAME,
    SCALAR,
    TENSOR,
    TUPLE,
    Array,
    Caller,
    CallRecord,
    CallRoute,
    Pending,
    Put,
    Take,
)


def caller(address: int, cls: type, slot: str, form: str) -> Caller | None:
    """The native code at this address, for a class; None where it turns out not to work."""
    if (tuple.__basicsize__, list.__basicsize__) != (24, 40):
        return None
    places = _offset(cls, slot), _offset(cls, form)
    if not address or None in places:
        return None
    made = Caller(address, cls, *places)  # type: ignore[arg-type]
    return made if works(made, slot) else None


def _offset(cls: type, slot: str) -> int | None:
    """Where objects of a class have a slot: found by a look at one."""
    made: Any = object.__new__(cls)
    mark = object()
    setattr(made, slot, mark)
    words = (ctypes.c_int64 * (cls.__basicsize__ // 8)).from_address(id(made))
    found = [8 * k for k, word in enumerate(words) if word == id(mark)]
    return found[0] if len(found) == 1 else None


class _Trial:
    """A program that takes two arrays and three numbers and gives the first array back, and a new
    one; it is not run."""

    donated: ClassVar = {0: 0}
    pair = np.dtype(np.float32), (2, 3)
    numbers = np.float64, np.int64, np.float32
    inputs: ClassVar = [pair, pair, *((np.dtype(c), ()) for c in numbers)]
    outputs: ClassVar = [pair, pair]
    at_once = False

    @property
    def program(self) -> Any:
        return self


def works(caller: Caller, slot: str) -> bool:
    """Whether calls find what they should, count references as they should, and refuse others."""
    takes = [
        Take(TUPLE, 0, tuple, 2), Take(TENSOR, 2, caller.cls, 1), Take(LIST, 3, list, 2),
        Take(ARRAY, 4, np.ndarray), Take(FLOAT, 5, float),
        Take(DICT, 1, dict, 3, ("n", "s", "x")), Take(INT, 6, int), Take(SAME, 7, None),
        Take(SCALAR, 8, np.float32),
    ]  # fmt: skip
    puts = [Put(TUPLE, None, (0,)), Put(CONSTANT, "c"), Put(LIST, None, (2, 3))]
    puts.append(Put(DICT, {"u": None, "v": None}, (1, 4), ("v", "u")))
    trial: Any = _Trial()
    owner = object()
    way, route = (
        CallRecord(trial, (2, 3, 4), (0,), (), puts, 5, owner, False),
        CallRoute(caller, takes),
    )
    way.arrange(())
    route.offer([way])
    for _ in range(3):
        x: Any = np.zeros((2, 3), np.float32)
        y = np.ones((2, 3), np.float32)
        h: Any = object.__new__(caller.cls)
        setattr(h, slot, x)
        at = x.ctypes.data
        args, n = (h, [y, 0.5]), {"s": None, "x": np.float32(2.5), "n": 7}
        others: Any = [
            ((h,), n), ((h, [y, 1]), n), ((h, [y.T, 0.5]), n), ((h, [x, 0.5]), n),
            ((h, [h, 0.5]), n), (args, {**n, "n": 2**70}), (args, {**n, "x": 2.5}),
            (args, n),  # `x` is a second reference
        ]  # fmt: skip
        if any(route.serve(a, k, owner) is not MISSED for a, k in others):
            return False
        others = x = None
        gone = object()
        *before, once = [sys.getrefcount(o) for o in (h, y, owner, gone)]
        found = route.serve(args, n, gone)
        if type(found) is not Pending or not _is_right(found, (at, y, owner), slot):
            return False
        del found
        after = [sys.getrefcount(o) for o in (h, y, owner, gone)]
        if after != [*before, once + 1] or getattr(h, slot) is not gone:
            return False
    return True


def _is_right(found: Pending, given: tuple[int, Array, object], slot: str) -> bool:
    """Whether a call of the trial was answered as it should be."""
    owner, result, addresses, arrays = found
    at, y, told = given
    words = np.frombuffer(addresses, np.int64)
    start = words.ctypes.data
    (u,), c = result["u"]
    cells = [start + 8 * k for k in (9, 10, 11)]
    places = [at, y.ctypes.data, *cells, at, getattr(result["v"], slot).ctypes.data]
    return (
        (owner, c, list(result)) == (told, "c", ["u", "v"])
        and getattr(u, slot) is arrays[0]
        and [id(a) for a in arrays[1:]] == [id(y), *[id(None)] * 3]
        and words[:7].tolist() == places
        and words[10] == 7
        and (words[9:].view(np.float64)[0], words[9:].view(np.float32)[4]) == (0.5, 2.5)
    )
