"""What the emitter needs to know of a CPU. Nothing here changes a result, except `fma`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """`width`: floats in a vector register, of which there are `registers`. `fma`: whether products
    are added with one rounding; where not, contractions round twice."""

    width: int = 16
    registers: int = 32
    fma: bool = True

    @staticmethod
    def of(features: Mapping[str, bool]) -> Machine:
        """Of the features that LLVM reports of the host."""
        has = lambda name: bool(features.get(name))  # noqa: E731
        if has("avx512f") and has("avx512vl"):
            return Machine(16, 32, True)
        if has("avx"):
            return Machine(8, 16, has("fma"))
        if has("neon"):
            return Machine(4, 32, True)
        return Machine(4, 16, has("fma"))
