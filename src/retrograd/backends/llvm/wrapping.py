"""Making objects around arrays in native code: tensors of the results of a program.

`wrap` replaces each array of a list by a new object of a class that holds the array in one of its
slots: a tenth of what it takes Python to make and fill an object.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

# wrap(list, words): 0, or 1 and an exception. The words are the address of the class, the offset of
# its slot, the address of PyType_GenericAlloc. What the list refers to goes over to the object, so
# no reference is counted. Offsets: list size 16, list items 24.
TEXT = """
define i64 @wrap(ptr %list, ptr %words) {
start:
  %count.at = getelementptr i8, ptr %list, i64 16
  %count = load i64, ptr %count.at
  %items.at = getelementptr i8, ptr %list, i64 24
  %items = load ptr, ptr %items.at
  %class = load ptr, ptr %words
  %offset.at = getelementptr i64, ptr %words, i64 1
  %offset = load i64, ptr %offset.at
  %new.at = getelementptr i64, ptr %words, i64 2
  %new = load ptr, ptr %new.at
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k.next, %made ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %make, label %good
make:
  %object = call ptr %new(ptr %class, i64 0)
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %bad, label %made
made:
  %item = getelementptr ptr, ptr %items, i64 %k
  %array = load ptr, ptr %item
  %slot = getelementptr i8, ptr %object, i64 %offset
  store ptr %array, ptr %slot
  store ptr %object, ptr %item
  %k.next = add i64 %k, 1
  br label %head
good:
  ret i64 0
bad:
  ret i64 1
}
"""

Wrap = Callable[[list[Any]], Any]

PROTOTYPE = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_void_p)


def wrapper(address: int, cls: type, slot: str) -> Wrap | None:
    """A function that replaces the items of a list by objects of a class that hold them in a slot;
    None where that turns out not to work. The code is at the address."""
    offset = _offset(cls, slot)
    if offset is None:
        return None
    new = ctypes.cast(ctypes.pythonapi.PyType_GenericAlloc, ctypes.c_void_p).value
    words = np.array([id(cls), offset, new], np.int64)
    call, at = PROTOTYPE(address), words.ctypes.data
    # The words and the class must live as long as the function.
    wrap = lambda items, call=call, at=at, words=words, cls=cls: call(items, at)  # noqa: E731
    return wrap if _works(wrap, cls, slot) else None


def _offset(cls: type, slot: str) -> int | None:
    """Where objects of a class have a slot: found by a look at one."""
    made: Any = object.__new__(cls)
    mark = object()
    setattr(made, slot, mark)
    words = (ctypes.c_int64 * (cls.__basicsize__ // 8)).from_address(id(made))
    found = [8 * k for k, word in enumerate(words) if word == id(mark)]
    return found[0] if len(found) == 1 else None


def _works(wrap: Wrap, cls: type, slot: str) -> bool:
    arrays = [np.zeros(2), np.zeros(())]
    items: list[Any] = list(arrays)
    before = [sys.getrefcount(a) for a in arrays]
    wrap(items)
    right = all(
        type(h) is cls and getattr(h, slot) is a for h, a in zip(items, arrays, strict=True)
    )
    return right and [sys.getrefcount(a) for a in arrays] == before
