"""The last resort: a routine that is an op's reference meaning, run by Python.

Compiled code calls back with the text of a graph of few ops, the addresses of its operands and of
its result, and the values of the named sizes. The call takes the interpreter's lock, on the thread
that runs the kernel; other threads of the team work and wait without it. What is raised is
kept under a number, which the routine returns, and raised again when the run is over.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from typing import Any

import numpy as np

from retrograd.codegen.libcalls.builder import LibCallBuilder
from retrograd.ir import Graph, TensorType, apply, interpret
from retrograd.ops.control.pure_callback import at_hand
from retrograd.shared import trim

SYMBOL = "rg_python"  # what programs call

# python(text, length, addresses, sizes)
PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
)
KEPT = 256  # failures that wait to be raised; those of runs that ended otherwise are forgotten
_FAILURES: dict[int, BaseException] = {}
_NUMBERS = itertools.count(1)


def call(w: LibCallBuilder) -> None:
    """Write the routine that calls back."""
    text = w.key.encode()
    size = len(text)
    place = w.reserve(f"[{size} x i8]", 1)
    escaped = "".join([f"\\{b:02x}" for b in text])
    w.line(f'store [{size} x i8] c"{escaped}", ptr {place}')
    addresses = w.reserve(f"[{max(len(w.data), 1)} x ptr]", 8)
    sizes = w.reserve(f"[{max(len(w.sizes), 1)} x i64]", 8)
    for i, pointer in enumerate(w.data):
        w.put(pointer, addresses, i, "ptr")
    for i, n in enumerate(w.sizes):
        w.put(str(n), sizes, i, "i64")
    w.declare(f"i64 @{SYMBOL}(ptr, i64, ptr, ptr)")
    arguments = f"ptr {place}, i64 {size}, ptr {addresses}, ptr {sizes}"
    w.line(f"ret i64 {w.new(f'call i64 @{SYMBOL}({arguments})')}")


@functools.lru_cache(maxsize=512)
def _graph(text: bytes) -> Graph:
    return Graph.parse(text.decode())


def _called(text: int, length: int, addresses: int, sizes: int) -> int:
    try:
        graph = _graph(ctypes.string_at(text, length))
        names = graph.dim_names
        found = (ctypes.c_int64 * max(len(names), 1)).from_address(sizes)
        known = dict(zip(names, list(found), strict=False))
        types = [*(x.type for x in graph.inputs), graph.outputs[0].type]
        places = (ctypes.c_void_p * len(types)).from_address(addresses)
        arrays = [_array(a, t.bind(known)) for a, t in zip(places, types, strict=True)]
        outputs = interpret(graph, arrays[:-1], lambda node, xs: apply(at_hand(node), xs, known))
        arrays[-1][...] = outputs[0]
    except BaseException as failure:  # an exception must not cross native code
        number = next(_NUMBERS) & 0x7FFFFFFF or next(_NUMBERS)
        _FAILURES[number] = failure
        trim(_FAILURES, KEPT)
        return number
    return 0


def _array(address: int | None, type: TensorType) -> Any:
    """The array of a type that lies at an address."""
    shape = tuple(int(n) for n in type.shape)
    dtype = type.dtype.dtype
    count = int(np.prod(shape, dtype=np.int64))
    if not count or not address:
        return np.empty(shape, dtype)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype, count).reshape(shape)


_CALLBACK = PROTOTYPE(_called)  # as long as this module, thus as any program


def python_address() -> int:
    """Where compiled code calls back."""
    return int(ctypes.cast(_CALLBACK, ctypes.c_void_p).value or 0)


def failure(number: int) -> BaseException:
    """What was raised under a number."""
    found = _FAILURES.pop(number, None)
    return found or RuntimeError("a function called by a compiled program failed")
