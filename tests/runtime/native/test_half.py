"""Conversions between float16 and float32 in C are those of NumPy, to the bit."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from retrograd.runtime.native import HALF, addresses
from tests.runtime.thread_programs import link

# Loops around the functions, as a half is passed in a way that ctypes does not know.
LOOPS = """
declare half @__truncsfhf2(float)
declare float @__extendhfsf2(half)

define i64 @narrow(ptr %from, ptr %to, i64 %n) {
start:
  br label %each
each:
  %k = phi i64 [ 0, %start ], [ %next, %each ]
  %x.at = getelementptr float, ptr %from, i64 %k
  %x = load float, ptr %x.at
  %y = call half @__truncsfhf2(float %x)
  %y.at = getelementptr half, ptr %to, i64 %k
  store half %y, ptr %y.at
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %each, label %done
done:
  ret i64 0
}

define i64 @widen(ptr %from, ptr %to, i64 %n) {
start:
  br label %each
each:
  %k = phi i64 [ 0, %start ], [ %next, %each ]
  %x.at = getelementptr half, ptr %from, i64 %k
  %x = load half, ptr %x.at
  %y = call float @__extendhfsf2(half %x)
  %y.at = getelementptr float, ptr %to, i64 %k
  store float %y, ptr %y.at
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %each, label %done
done:
  ret i64 0
}
"""

pytestmark = pytest.mark.skipif(
    not llvm.get_process_triple().startswith("x86_64"), reason="LLVM needs them on x86-64 alone"
)
EVERY_HALF = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def converted(name: str, x: np.ndarray, dtype: type) -> np.ndarray:
    code = link(LOOPS, ["narrow", "widen"], {f: addresses()[f] for f in HALF})
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    y: np.ndarray = np.zeros(x.shape, dtype)
    run(code[name])(x.ctypes.data, y.ctypes.data, x.size)
    return y


def test_every_half_is_widened_exactly():
    found = converted("widen", EVERY_HALF, np.float32)
    with np.errstate(invalid="ignore"):
        right = EVERY_HALF.astype(np.float32)
    nan = np.isnan(right)
    np.testing.assert_array_equal(found[~nan].view(np.uint32), right[~nan].view(np.uint32))
    assert np.isnan(found[nan]).all()


def test_floats_are_rounded_to_the_nearest_half():
    """All halves, the middle between each two, and the floats next to both."""
    halves = EVERY_HALF[np.isfinite(EVERY_HALF)].astype(np.float32)
    between = np.unique(halves)
    middle = (between[1:] + between[:-1]) / 2
    near = np.concatenate([halves, middle, [65519.996, 65520, 65536, 1e38, np.inf]])
    near = near.astype(np.float32)
    largest = np.float32(3e38)
    x = np.concatenate([near, np.nextafter(near, largest), np.nextafter(near, -largest), -near])
    found = converted("narrow", x, np.float16)
    with np.errstate(over="ignore"):
        right = x.astype(np.float16)
    np.testing.assert_array_equal(found.view(np.uint16), right.view(np.uint16))


def test_what_is_no_number_stays_none():
    found = converted("narrow", np.array([np.nan, -np.nan], np.float32), np.float16)
    assert np.isnan(found).all()
