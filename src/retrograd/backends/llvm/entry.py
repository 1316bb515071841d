"""Taking arrays apart in native code.

`bind` reads the arrays of a list where CPython and NumPy keep them, compares them with what the
program expects, and writes their addresses into the block: a few nanoseconds for an array, where
`a.ctypes.data` takes a microsecond. It runs under the interpreter's lock. The places it reads are
part of NumPy's binary interface; `works` tries them on a few arrays, and a Python that lays out its
objects in another way gets the slow path.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# bind(list, expected, block, count): 0 if all arrays fit. For each array, `expected` holds the
# address of its dtype object, its rank, its sizes. Offsets: list items 24; array data 16, rank 24,
# sizes 32, dtype 56, flags 64, of which 0x101 are "C-contiguous" and "aligned".
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
  %flags.at = getelementptr i8, ptr %a, i64 64
  %flags = load i32, ptr %flags.at
  %needed = and i32 %flags, 257
  %flags.ok = icmp eq i32 %needed, 257
  %rank.at = getelementptr i8, ptr %a, i64 24
  %rank.short = load i32, ptr %rank.at
  %rank = sext i32 %rank.short to i64
  %rank.want.at = getelementptr i64, ptr %e, i64 1
  %rank.want = load i64, ptr %rank.want.at
  %rank.ok = icmp eq i64 %rank, %rank.want
  %both = and i1 %dtype.ok, %flags.ok
  %all = and i1 %both, %rank.ok
  br i1 %all, label %shape, label %bad
shape:
  %sizes.at = getelementptr i8, ptr %a, i64 32
  %sizes = load ptr, ptr %sizes.at
  %want = getelementptr i64, ptr %e, i64 2
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
"""

Bind = Callable[[Any, int, int, int, int], int]

PROTOTYPE = ctypes.PYFUNCTYPE(
    ctypes.c_int64,
    ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
)  # fmt: skip


def expected(types: Sequence[tuple[np.dtype[Any], Sequence[int]]]) -> np.ndarray[Any, Any]:
    """What `bind` compares arrays with. The dtype objects must stay alive."""
    found: list[int] = []
    for dtype, shape in types:
        found += [id(dtype), len(shape), *shape]
    return np.array([*found, 0], np.int64)


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
        got = bind([array], want.ctypes.data, block.ctypes.data, 1, id(np.ndarray))
        if (got == 0) != fits or (fits and int(block[0]) != array.ctypes.data):
            return False
    return True
