"""Elementwise functions compiled by themselves, in any number of lanes, to be run on arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.op_builder import OpBuilder
from retrograd.codegen.program.module import heads_of, symbols_of
from retrograd.ir import DType
from retrograd.runtime.compiler import engine

Write = Callable[[OpBuilder, list[str]], str]


class Functions:
    """Functions of arrays of given dtypes; run together, element by element.

    `functions` pairs what writes a result, given the registers of the operands, with its dtype. All
    arrays have one length, a multiple of `lanes`. The operation is written for operands of `dtype`.
    """

    def __init__(
        self,
        dtype: DType,
        inputs: Sequence[DType],
        functions: Sequence[tuple[Write, DType]],
        lanes: int = 1,
    ) -> None:
        self.dtype, self.inputs, self.lanes = dtype, list(inputs), lanes
        self.results = [result for _, result in functions]
        known: dict[str, None] = {}
        parts = []
        for k, (write, result) in enumerate(functions):
            parts.append(self._function(known, k, write, result))
        self.text = "\n".join([*heads_of(known), *parts, self._run(), ATTRIBUTES])
        self._program = engine().compile(self.text, symbols_of(known))

    def _function(self, known: dict[str, None], k: int, write: Write, result: DType) -> str:
        w = FunctionBuilder(lambda d: known.update({d: None}))
        loop = w.open_loop("%n", self.lanes)

        def place(name: str, dtype: DType) -> str:
            return w.new(
                f"getelementptr {types.memory_type(dtype)}, ptr {name}, i64 {loop.counter}"
            )

        names = [
            types.load(w, place(f"%p{i}", d), d, self.lanes) for i, d in enumerate(self.inputs)
        ]
        y = write(OpBuilder(w, self.dtype, self.lanes), names)
        types.store(w, y, place("%y", result), result, self.lanes)
        w.close_loop(loop)
        w.line("ret void")
        listed = ", ".join([*(f"ptr noalias %p{i}" for i in range(len(names))), "ptr noalias %y"])
        return f"define internal void @f{k}({listed}, i64 %n) #0 {{\n{w.text()}\n}}"

    def _run(self) -> str:
        w = FunctionBuilder(lambda d: None)

        def slot(number: int, kind: str) -> str:
            at = w.new(f"getelementptr i64, ptr %block, i64 {number}")
            return w.new(f"load {kind}, ptr {at}")

        count = slot(0, "i64")
        operands = [f"ptr {slot(1 + i, 'ptr')}" for i in range(len(self.inputs))]
        for k in range(len(self.results)):
            y = f"ptr {slot(1 + len(self.inputs) + k, 'ptr')}"
            w.line(f"call void @f{k}({', '.join([*operands, y])}, i64 {count})")
        w.line("ret i64 0")
        return f"define i64 @run(ptr %block) {{\n{w.text()}\n}}"

    def __call__(self, *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
        size = arrays[0].size
        assert all(a.size == size and a.flags.c_contiguous for a in arrays)
        assert [a.dtype for a in arrays] == [d.dtype for d in self.inputs]
        assert size % self.lanes == 0
        results = [np.empty(size, d.dtype) for d in self.results]
        block = np.array([size, *(a.ctypes.data for a in (*arrays, *results))], np.int64)
        self._program.run(block.ctypes.data, 0, 1, 0)
        return results


ATTRIBUTES = """attributes #0 = { noinline nounwind }
attributes #1 = { nounwind willreturn memory(none) }"""
