"""A product and a sum that are rounded once, for definitions that tests compare with."""

from __future__ import annotations

import functools

import numpy as np

from retrograd.runtime.backend import Array
from retrograd.runtime.compiler import LoadedCode
from retrograd.runtime.executable import start_compiler

KINDS = {np.dtype(np.float32): ("float", "f32"), np.dtype(np.float64): ("double", "f64")}
TEXT = """declare KIND @llvm.fma.SUFFIX(KIND, KIND, KIND)
define i64 @run(ptr %block, i64 %thread, i64 %threads, ptr %team) {
start:
  %b.at = getelementptr ptr, ptr %block, i64 1
  %c.at = getelementptr ptr, ptr %block, i64 2
  %n.at = getelementptr ptr, ptr %block, i64 3
  %a = load ptr, ptr %block
  %b = load ptr, ptr %b.at
  %c = load ptr, ptr %c.at
  %n = load i64, ptr %n.at
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %next, %body ]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %body, label %end
body:
  %x.at = getelementptr KIND, ptr %a, i64 %k
  %y.at = getelementptr KIND, ptr %b, i64 %k
  %z.at = getelementptr KIND, ptr %c, i64 %k
  %x = load KIND, ptr %x.at
  %y = load KIND, ptr %y.at
  %z = load KIND, ptr %z.at
  %found = call KIND @llvm.fma.SUFFIX(KIND %x, KIND %y, KIND %z)
  store KIND %found, ptr %z.at
  %next = add i64 %k, 1
  br label %head
end:
  ret i64 0
}
"""


@functools.cache
def _code(dtype: np.dtype[np.floating]) -> LoadedCode:
    kind, suffix = KINDS[dtype]
    return start_compiler().compile(TEXT.replace("KIND", kind).replace("SUFFIX", suffix), [])


def fused(a: Array, b: Array, c: Array) -> Array:
    """`a * b + c`, rounded once, in the shape of `c`."""
    x, y = (np.ascontiguousarray(np.broadcast_to(z, c.shape)) for z in (a, b))
    total = np.array(c, order="C")
    block = np.array([x.ctypes.data, y.ctypes.data, total.ctypes.data, total.size], np.int64)
    _code(c.dtype).run(block.ctypes.data, 0, 1, 0)
    return total
