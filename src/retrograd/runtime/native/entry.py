"""Taking arrays apart in native code.

`bind` reads the arrays of a list where CPython and NumPy keep them, compares them with what the
program expects, and writes their addresses into the block: a few nanoseconds for an array, where
`a.ctypes.data` takes a microsecond. `enter` does so for inputs and outputs, and then runs the
program. Both run under the interpreter's lock. The places they read are part of NumPy's binary
interface; `works` tries them on a few arrays, and a Python that lays out its objects in another
way gets the slow path.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# bind(list, expected, block, count, class): 0 if all arrays fit. For each array, `expected` holds
# the address of its dtype object, its rank, flags it must have, the most references there may be
# to it, its sizes. Offsets: references 0, class 8; list items 24; array data 16, rank 24, sizes 32,
# dtype 56, flags 64.
# enter(inputs, outputs, entry): what the program returns, or -1 where an array does not fit, and
# nothing was done. The entry is a row of words, see `entry_of`.
TEXT = """
define i64 @bind(ptr %list, ptr %expected, ptr %block, i64 %count, ptr %class) {
start:
  %items.at = getelementptr i8, ptr %list, i64 24
  %items = load ptr, ptr %items.at
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k.next, %done ]
  %e = phi ptr [ %expected, %start ], [ %e.next, %done ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %array, label %good
array:
  %item = getelementptr ptr, ptr %items, i64 %k
  %a = load ptr, ptr %item
  %class.at = getelementptr i8, ptr %a, i64 8
  %own = load ptr, ptr %class.at
  %same = icmp eq ptr %own, %class
  br i1 %same, label %look, label %bad
look:
  %dtype.at = getelementptr i8, ptr %a, i64 56
  %dtype = load i64, ptr %dtype.at
  %dtype.want = load i64, ptr %e
  %dtype.ok = icmp eq i64 %dtype, %dtype.want
  %rank.at = getelementptr i8, ptr %a, i64 24
  %rank.short = load i32, ptr %rank.at
  %rank = sext i32 %rank.short to i64
  %rank.want.at = getelementptr i64, ptr %e, i64 1
  %rank.want = load i64, ptr %rank.want.at
  %rank.ok = icmp eq i64 %rank, %rank.want
  %flags.at = getelementptr i8, ptr %a, i64 64
  %flags.short = load i32, ptr %flags.at
  %flags = zext i32 %flags.short to i64
  %flags.want.at = getelementptr i64, ptr %e, i64 2
  %flags.want = load i64, ptr %flags.want.at
  %needed = and i64 %flags, %flags.want
  %flags.ok = icmp eq i64 %needed, %flags.want
  %held = load i64, ptr %a
  %most.at = getelementptr i64, ptr %e, i64 3
  %most = load i64, ptr %most.at
  %held.ok = icmp sle i64 %held, %most
  %both = and i1 %dtype.ok, %flags.ok
  %three = and i1 %both, %held.ok
  %all = and i1 %three, %rank.ok
  br i1 %all, label %shape, label %bad
shape:
  %sizes.at = getelementptr i8, ptr %a, i64 32
  %sizes = load ptr, ptr %sizes.at
  %want = getelementptr i64, ptr %e, i64 4
  br label %axis
axis:
  %i = phi i64 [ 0, %shape ], [ %i.next, %next ]
  %left = icmp slt i64 %i, %rank
  br i1 %left, label %size, label %done
size:
  %n.at = getelementptr i64, ptr %sizes, i64 %i
  %n = load i64, ptr %n.at
  %n.want.at = getelementptr i64, ptr %want, i64 %i
  %n.want = load i64, ptr %n.want.at
  %n.ok = icmp eq i64 %n, %n.want
  br i1 %n.ok, label %next, label %bad
next:
  %i.next = add i64 %i, 1
  br label %axis
done:
  %data.at = getelementptr i8, ptr %a, i64 16
  %data = load i64, ptr %data.at
  %slot = getelementptr i64, ptr %block, i64 %k
  store i64 %data, ptr %slot
  %k.next = add i64 %k, 1
  %e.next = getelementptr i64, ptr %want, i64 %rank
  br label %head
good:
  ret i64 0
bad:
  ret i64 1
}

define i64 @enter(ptr %inputs, ptr %outputs, ptr %entry) {
start:
  %class = load ptr, ptr %entry
  %block.at = getelementptr ptr, ptr %entry, i64 1
  %block = load ptr, ptr %block.at
  %taken.at = getelementptr ptr, ptr %entry, i64 2
  %taken = load ptr, ptr %taken.at
  %given.at = getelementptr i64, ptr %entry, i64 3
  %given = load i64, ptr %given.at
  %first = call i64 @bind(ptr %inputs, ptr %taken, ptr %block, i64 %given, ptr %class)
  %fits = icmp eq i64 %first, 0
  br i1 %fits, label %results, label %bad
results:
  %made.at = getelementptr ptr, ptr %entry, i64 4
  %made = load ptr, ptr %made.at
  %count.at = getelementptr i64, ptr %entry, i64 5
  %count = load i64, ptr %count.at
  %rest = getelementptr i64, ptr %block, i64 %given
  %second = call i64 @bind(ptr %outputs, ptr %made, ptr %rest, i64 %count, ptr %class)
  %both = icmp eq i64 %second, 0
  br i1 %both, label %bound, label %bad
bound:
  %run.at = getelementptr ptr, ptr %entry, i64 6
  %run = load ptr, ptr %run.at
  %here = icmp ne ptr %run, null
  br i1 %here, label %go, label %good
go:
  %failed = call i64 %run(ptr %block, i64 0, i64 1, ptr null)
  ret i64 %failed
good:
  ret i64 0
bad:
  ret i64 -1
}
"""

Bind = Callable[[Any, int, int, int, int], int]
Enter = Callable[[Any, Any, int], int]

PROTOTYPE = ctypes.PYFUNCTYPE(
    ctypes.c_int64,
    ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
)  # fmt: skip
ENTER = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.py_object, ctypes.c_void_p)

READABLE = 0x101  # flags of NumPy: C-contiguous and aligned
OWNED = 0x505  # also the owner of its memory, and writable
NDARRAY = id(np.ndarray)
Words = np.ndarray[Any, Any]


def expected(
    types: Sequence[tuple[np.dtype[Any], Sequence[int]]], most: dict[int, int] | None = None
) -> Words:
    """What `bind` compares arrays with. The dtype objects must stay alive.

    `most` limits the references to arrays that are to be overwritten, by position; these must also
    own their memory.
    """
    found: list[int] = []
    for k, (dtype, shape) in enumerate(types):
        limit = None if most is None else most.get(k)
        rule = (READABLE, sys.maxsize) if limit is None else (OWNED, limit)
        found += [id(dtype), len(shape), *rule, *shape]
    return np.array([*found, 0], np.int64)


def entry_of(block: int, inputs: tuple[Words, int], outputs: tuple[Words, int], run: int) -> Words:
    """What `enter` is told about a program: where it runs, what it takes and gives, with counts,
    and its address, or 0 if it is not to be run."""
    (taken, given), (made, count) = inputs, outputs
    listed = [NDARRAY, block, taken.ctypes.data, given, made.ctypes.data, count, run]
    return np.array(listed, np.int64)


def usable() -> bool:
    """Whether objects are laid out as `bind` assumes, as far as the interpreter says."""
    return (
        sys.implementation.name == "cpython"
        and sys.maxsize == 2**63 - 1
        and not hasattr(sys, "gettotalrefcount")
        and getattr(sys, "_is_gil_enabled", lambda: True)()
        and object.__basicsize__ == 16
    )


def works(bind: Bind) -> bool:
    """Whether `bind` finds what it should in a few arrays, and nothing in others."""
    base = np.zeros((4, 6), np.float32)
    cases: list[tuple[np.ndarray[Any, Any], bool]] = [
        (base, True), (base[:2], False), (base.T, False), (base.astype(np.float64), False),
        (np.asfortranarray(base), False), (base[..., None], False), (base + 1, True),
    ]  # fmt: skip
    want = expected([(np.dtype(np.float32), (4, 6))])
    block = np.zeros(1, np.int64)
    for array, fits in cases:
        block[0] = 0
        got = bind([array], want.ctypes.data, block.ctypes.data, 1, NDARRAY)
        if (got == 0) != fits or (fits and int(block[0]) != array.ctypes.data):
            return False
    return _counts(bind)


def _counts(bind: Bind) -> bool:
    """Whether `bind` sees who else refers to an array, and whose memory it is."""
    want = expected([(np.dtype(np.float32), (2,))], {0: 1})
    block = np.zeros(1, np.int64)

    def fits(arrays: list[Any]) -> bool:
        return bind(arrays, want.ctypes.data, block.ctypes.data, 1, NDARRAY) == 0

    alone, shared = [np.zeros(2, np.float32)], [np.zeros(2, np.float32)]
    holder = (shared[0], shared[0][:])
    view, locked = [np.zeros(4, np.float32)[:2]], [np.zeros(2, np.float32)]
    locked[0].flags.writeable = False
    return fits(alone) and not (fits(shared) or fits(view) or fits(locked)) and len(holder) == 2
