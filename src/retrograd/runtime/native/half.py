"""Conversions between float16 and float32 for CPUs without instructions for them.

LLVM calls functions of these names there, which no library of the process need have. Integer
arithmetic rounds to nearest, ties to even; an addition of floats does it for subnormals.
"""

from __future__ import annotations

from collections.abc import Mapping

TEXT = """
define half @__truncsfhf2(float %x) #2 {
  %bits = bitcast float %x to i32
  %size = and i32 %bits, 2147483647
  %top = lshr i32 %bits, 16
  %sign = and i32 %top, 32768
  %is.nan = icmp ugt i32 %size, 2139095040
  %payload.wide = lshr i32 %size, 13
  %payload = and i32 %payload.wide, 1023
  %nan = or i32 %payload, 32256
  %special = select i1 %is.nan, i32 %nan, i32 31744
  %magnitude = bitcast i32 %size to float
  %aligned = fadd float %magnitude, 5.000000e-01
  %aligned.bits = bitcast float %aligned to i32
  %small = sub i32 %aligned.bits, 1056964608
  %last = lshr i32 %size, 13
  %odd = and i32 %last, 1
  %rebased = add i32 %size, -939520001
  %rounded = add i32 %rebased, %odd
  %normal = lshr i32 %rounded, 13
  %is.small = icmp ult i32 %size, 947912704
  %finite = select i1 %is.small, i32 %small, i32 %normal
  %is.large = icmp uge i32 %size, 1199570944
  %number = select i1 %is.large, i32 %special, i32 %finite
  %whole = or i32 %number, %sign
  %short = trunc i32 %whole to i16
  %y = bitcast i16 %short to half
  ret half %y
}
define float @__extendhfsf2(half %x) #2 {
  %short = bitcast half %x to i16
  %bits = zext i16 %short to i32
  %size = and i32 %bits, 32767
  %high = and i32 %bits, 32768
  %sign = shl i32 %high, 16
  %moved = shl i32 %size, 13
  %normal = add i32 %moved, 939524096
  %special = add i32 %normal, 939524096
  %one.more = add i32 %normal, 8388608
  %shifted = bitcast i32 %one.more to float
  %exact = fsub float %shifted, 0x3F10000000000000
  %small = bitcast float %exact to i32
  %is.small = icmp ult i32 %size, 1024
  %is.special = icmp uge i32 %size, 31744
  %finite = select i1 %is.small, i32 %small, i32 %normal
  %number = select i1 %is.special, i32 %special, i32 %finite
  %whole = or i32 %number, %sign
  %y = bitcast i32 %whole to float
  ret float %y
}
attributes #2 = { noinline nounwind willreturn memory(none) }
"""


def lacking(triple: str, features: Mapping[str, bool]) -> bool:
    """Whether LLVM calls functions for these conversions."""
    return triple.startswith("x86_64") and not features.get("f16c")
