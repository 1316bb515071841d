"""Repeated calls in C: from Python's arguments to Python's results in one function.

What a call takes and gives is described by steps (`Take`, `Put`), which `accelerate/fast_call.c`
follows; `call_route.py` makes functions of them. Where no C compiler was found at
installation there is nothing of this: `serves` says no, and calls go the long way, in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.accelerate import check

try:
    from retrograd.accelerate import _fast_call as compiled

    check(compiled)
except ImportError:
    compiled = None  # type: ignore[assignment]

SAME, TUPLE, LIST, DICT, OBJECT, EQUAL, FIELD, REPEATED, DISTINCT = range(9)  # kinds of `Take`
TENSOR, ARRAY, FLOAT, INT, SCALAR = range(9, 14)  # those of leaves
CONSTANT, INSTANCE, MADE, COPY = 0, 4, 5, 6  # kinds of `Put`, with TUPLE, LIST, DICT

READABLE = 0x101  # flags of NumPy: C-contiguous and aligned
OWNED = 0x505  # also the owner of its memory, and writable
UNSHARED = 2  # references to an array that only its tensor has, while the call counts as one


class Missed:
    """What a call returns that C did not know what to do with, and did nothing."""


class Pending(tuple[Any, ...]):
    """What it returns where something is left to do: whose result it is, and the result; where the
    program is still to be run, also the addresses that it runs on, and the arrays there."""

    __slots__ = ()


MISSED: Any = Missed()
Array = np.ndarray[Any, Any]
Serve = Callable[..., Any]


class Take(NamedTuple):
    """A step that takes arguments apart: what is in a register has to be of this class, or this
    object; its `n` items go to the next free registers: of an `OBJECT` these are its attributes. Of
    a leaf, `gone` tells whether it is donated.

    Or it has to be equal to `what` (`EQUAL`), have it in the slot in `keys` (`FIELD`), or be what
    is in the register in `keys` (`REPEATED`); or those in `keys` have to be different objects
    (`DISTINCT`).
    """

    kind: int
    register: int
    what: Any
    n: int = 0
    gone: bool = False
    keys: tuple[Any, ...] = ()


class Put(NamedTuple):
    """A step that makes a part of the result, in the next register: of the contents of registers,
    under keys in a dict. `what` is a dict with these keys and maybe others, a class of tuples, or a
    constant. An object that is `MADE` is of the class `what`, with the dict in a register as its
    attributes. What is in a register is taken by the first step that uses it: others need a `COPY`
    from before."""

    kind: int
    what: Any
    items: Sequence[int] = ()
    keys: tuple[Any, ...] = ()


class OutputClass(NamedTuple):
    """An output that is a tensor of a class of its own, with a value in one of its slots."""

    cls: type
    slot: Any
    value: Any


def serves(cls: type) -> bool:
    """Whether calls with tensors of this class can be served."""
    global _served
    if compiled is None:
        return False
    if _served is not cls:
        try:
            compiled.install(cls, MISSED)
        except TypeError:  # its fields are Python's, where its own accelerator is not used
            return False
        _served = cls
    return True


_served: type | None = None


def specs_of(
    types: Sequence[tuple[np.dtype[Any], Sequence[int]]], most: Mapping[int, int] | None = None
) -> Any:
    """Arrays as an `Entry` has to find them, None where there is no such thing.

    `most` limits the references to arrays that are to be overwritten, by position; these must also
    own their memory.
    """
    if compiled is None:
        return None
    rows: list[Any] = []
    for k, (dtype, shape) in enumerate(types):
        limit = None if most is None else most.get(k)
        rule = (READABLE, sys.maxsize) if limit is None else (OWNED, limit)
        rows.append((k, dtype, shape, *rule))
    return compiled.ArraySpecs(rows)


def is_unshared(arrays: list[Array], j: int) -> bool:
    """Whether an array may be overwritten, as an `Entry` asks: nothing but the list has it."""
    if sys.getrefcount(arrays[j]) > 2 or type(arrays[j]) is not np.ndarray:
        return False
    flags = arrays[j].flags
    return bool(flags.c_contiguous and flags.aligned and flags.owndata and flags.writeable)


def entry_of(frame: int, inputs: Any, outputs: Any, run: int, watch: int, donates: bool) -> Any:
    """A program as it is run on lists of arrays: `enter(inputs, outputs)` is what it returns, or -1
    where an array is not as it has to be, or the run is to be tried out, and nothing was done.
    `run` is its address, or 0 if it is not to be run, `watch` that of its `SubnormalCount`. A run
    that `donates`, to overwrite inputs, leaves nothing in their list."""
    if compiled is None:
        return None
    return compiled.Entry(inputs, outputs, frame, run, watch, donates)
