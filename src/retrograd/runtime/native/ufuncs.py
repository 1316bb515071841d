"""A product and a sum, rounded once: what NumPy lacks of arithmetic, as a function of its own kind.

NumPy makes such a function, which broadcasts and checks operands like its own, from the addresses
of loops, one for each dtype. They are compiled with what all programs share, in a millisecond, so
that nothing that is interpreted waits for a compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.runtime.native.numpy_api import make_ufunc

_KINDS = (("float", "f32", np.float32), ("double", "f64", np.float64))
FUSED = tuple(f"rg_fused.{suffix}" for _, suffix, _ in _KINDS)

# The loop of `y = a * b + c`, as NumPy calls it: places, counts and steps in bytes are in arrays.
_LOOP = """declare KIND @llvm.fma.SUFFIX(KIND, KIND, KIND)
define void @rg_fused.SUFFIX(ptr %args, ptr %counts, ptr %steps, ptr %data) nounwind {
start:
  %b.at = getelementptr ptr, ptr %args, i64 1
  %c.at = getelementptr ptr, ptr %args, i64 2
  %y.at = getelementptr ptr, ptr %args, i64 3
  %a.first = load ptr, ptr %args
  %b.first = load ptr, ptr %b.at
  %c.first = load ptr, ptr %c.at
  %y.first = load ptr, ptr %y.at
  %b.step.at = getelementptr i64, ptr %steps, i64 1
  %c.step.at = getelementptr i64, ptr %steps, i64 2
  %y.step.at = getelementptr i64, ptr %steps, i64 3
  %a.step = load i64, ptr %steps
  %b.step = load i64, ptr %b.step.at
  %c.step = load i64, ptr %c.step.at
  %y.step = load i64, ptr %y.step.at
  %n = load i64, ptr %counts
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k.next, %body ]
  %a = phi ptr [ %a.first, %start ], [ %a.next, %body ]
  %b = phi ptr [ %b.first, %start ], [ %b.next, %body ]
  %c = phi ptr [ %c.first, %start ], [ %c.next, %body ]
  %y = phi ptr [ %y.first, %start ], [ %y.next, %body ]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %body, label %end
body:
  %a.value = load KIND, ptr %a
  %b.value = load KIND, ptr %b
  %c.value = load KIND, ptr %c
  %y.value = call KIND @llvm.fma.SUFFIX(KIND %a.value, KIND %b.value, KIND %c.value)
  store KIND %y.value, ptr %y
  %k.next = add i64 %k, 1
  %a.next = getelementptr i8, ptr %a, i64 %a.step
  %b.next = getelementptr i8, ptr %b, i64 %b.step
  %c.next = getelementptr i8, ptr %c, i64 %c.step
  %y.next = getelementptr i8, ptr %y, i64 %y.step
  br label %head
end:
  ret void
}
"""
TEXT = "".join([_LOOP.replace("KIND", k).replace("SUFFIX", suffix) for k, suffix, _ in _KINDS])


def fused_ufunc(addresses: Any) -> Any:
    """The function of loops that are loaded there; None where NumPy is not known well enough."""
    dtypes = [dtype for _, _, dtype in _KINDS]
    loops = [(addresses[name], dtype) for name, dtype in zip(FUSED, dtypes, strict=True)]
    return make_ufunc("fused", loops, 3)
