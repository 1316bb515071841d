"""What scans and scatters have of some elements so far: a few numbers, to which those of others can
be joined."""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.ir import DType, float64
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Elementwise
from retrograd.wgpu.emit.reductions import Combination
from retrograd.wgpu.math.bits import require
from retrograd.wgpu.scalar import converted
from retrograd.wgpu.shader_writer import ShaderWriter
from retrograd.wgpu.types import literal, register_type

Words = Sequence[str]


class Total:
    """What an op makes of all elements, in numbers of the dtypes `words`."""

    def __init__(self, w: ShaderWriter, op: Elementwise, dtype: DType) -> None:
        w.need(dtype)
        self.w = w
        self.words = [dtype]
        self.how = Combination(w, op, dtype)

    def start(self) -> list[str]:
        """Of no elements."""
        return [self.how.neutral]

    def of(self, x: str, dtype: DType) -> list[str]:
        """Of one element."""
        return [converted(self.w, x, dtype, self.words[0])]

    def join(self, before: Words, after: Words) -> list[str]:
        """Of elements and those that come after them."""
        return [self.how.combine(before[0], after[0])]

    def result(self, now: Words, dtype: DType) -> str:
        """The value, in a dtype."""
        return converted(self.w, now[0], self.words[0], dtype)


class CompensatedSum(Total):
    """A sum of floats, and what was rounded off on the way."""

    def __init__(self, w: ShaderWriter, dtype: DType) -> None:
        super().__init__(w, el.add, dtype)
        self.words *= 2
        self.zero = literal(0.0, dtype)
        self.exact = require(w, f"exact_{register_type(dtype)}")

    def start(self) -> list[str]:
        return [literal(-0.0, self.words[0]), self.zero]

    def of(self, x: str, dtype: DType) -> list[str]:
        return [*super().of(x, dtype), self.zero]

    def join(self, before: Words, after: Words) -> list[str]:
        total, lost = self.two_sum(before[0], after[0])
        return [total, self.w.new(f"({before[1]} + {after[1]}) + {lost}")]

    def two_sum(self, a: str, b: str) -> tuple[str, str]:
        """The rounded sum, and what was rounded off: 0 where the sum is not finite."""
        new, exact = self.w.new, self.exact
        total = new(f"{exact}({a} + {b})")
        moved = new(f"{exact}({total} - {a})")
        lost = new(f"{exact}({a} - {exact}({total} - {moved})) + {exact}({b} - {moved})")
        return total, new(f"select({self.zero}, {lost}, {self.finite(lost)})")

    def finite(self, x: str) -> str:
        wide = self.words[0] is float64
        return f"(abs({x}) < {literal(1e300 if wide else 1e38, self.words[0])})"

    def result(self, now: Words, dtype: DType) -> str:
        total, rest = now
        value = f"select({total} + {rest}, {total}, {rest} == {self.zero})"
        return converted(self.w, value, self.words[0], dtype)


def sum_of_floats(w: ShaderWriter, dtype: DType) -> Total:
    """In twice the precision: of float32 in float64, where the device has it."""
    if w.context.facts.float64 and dtype is not float64:
        return Total(w, el.add, float64)
    return CompensatedSum(w, dtype)


def variables(w: ShaderWriter, dtypes: Sequence[DType], first: Words) -> list[str]:
    """Variables with these first values."""
    return [w.variable(register_type(d), x) for d, x in zip(dtypes, first, strict=True)]


def assign(w: ShaderWriter, names: Words, values: Words) -> None:
    """Give variables new values, which may depend on all the old ones."""
    found = [w.new(x) for x in values]
    for name, x in zip(names, found, strict=True):
        w.line(f"{name} = {x};")
