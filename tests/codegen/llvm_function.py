"""Functions written with a `FunctionBuilder`, compiled and called with arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.program.module import heads_of, symbols_of
from retrograd.runtime.compiler import engine
from tests.codegen.math.lanes import ATTRIBUTES

Array = np.ndarray[Any, Any]
Write = Callable[[FunctionBuilder, list[str]], str | None]


def run(write: Write, *arrays: Array, functions: Iterable[str] = (), known: Any = ()) -> int:
    """Call what `write` writes, given the addresses of the arrays; its result is a register of an
    integer, or nothing. `functions` are texts that it may call, `known` what these declare."""
    return compiled(write, len(arrays), functions, known)(*arrays)


def compiled(
    write: Write, count: int, functions: Iterable[str] = (), known: Iterable[str] = ()
) -> Callable[..., int]:
    declared: dict[str, None] = dict.fromkeys(known)
    w = FunctionBuilder(lambda d: declared.setdefault(d))
    given = []
    for k in range(count):
        given.append(w.new(f"load ptr, ptr {w.new(f'getelementptr ptr, ptr %block, i64 {k}')}"))
    w.line(f"ret i64 {write(w, given) or '0'}")
    own = f"define i64 @run(ptr %block) {{\n{w.text()}\n}}"
    text = "\n".join([*heads_of(declared), *functions, own, ATTRIBUTES])
    program = engine().compile(text, symbols_of(declared))

    def call(*arrays: Array) -> int:
        assert len(arrays) == count
        block = np.array([a.ctypes.data for a in arrays], np.int64)
        return program.run(block.ctypes.data, 0, 1, 0)

    return call
