"""What is taken for granted of symbolic sizes while a function is traced.

Which program a function becomes depends on what comparisons of sizes answer, in Python. A symbolic
size has no value then: that it equals a number is answered with False, and written down here, to be
checked in every call. Only the user's own comparisons count; ours are about structure.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from retrograd.eager.modes import Setting
from retrograd.errors import ShapeError, TraceError
from retrograd.ir import Dim, Node, Source, lowest
from retrograd.ir.dim import COMPARED, REMEDY
from retrograd.ir.source import user_source
from retrograd.ops.assume import RELATIONS, Assume

OURS = f"{__name__.partition('.')[0]}."


class ShapeGuards:
    """What a trace takes for granted of the sizes of its inputs."""

    def __init__(self, inputs: Iterable[Node]) -> None:
        self._names: frozenset[str] = frozenset().union(*(x.type.dim_names for x in inputs))
        self._around = COMPARED.get()
        self._found: dict[Assume, None] = {}  # in order

    def watching(self) -> Setting:
        """Inside of the block what is assumed is written down."""
        return Setting(COMPARED, self if self._names else self._around)

    def __call__(self, left: Dim, right: Any) -> None:
        """Of two sizes that were found different in the frame two above."""
        frame = sys._getframe(2)
        if f"{frame.f_globals.get('__name__')}.".startswith(OURS) or not _may_equal(left, right):
            return
        number = right if isinstance(right, Dim) else int(right)
        place = Source(frame.f_code, frame.f_lasti)
        why = f"the program is for {left} != {number}, as these were compared at {place}"
        if not self.take(Assume(left, "!=", number, why)):
            raise ShapeError(
                f"whether the symbolic size {left} equals {number} is not known here, nor can it "
                f"be checked in a call (at {place}); compute with both, or {REMEDY}"
            )

    def take(self, assumed: Assume) -> bool:
        """Write an assumption down, here or where the names of its sizes come from."""
        if assumed.dim_names <= self._names:
            self._found[assumed] = None
            return True
        return isinstance(self._around, ShapeGuards) and self._around.take(assumed)

    def on(self, outputs: Sequence[Node]) -> list[Node]:
        """The results of the trace, in a program that checks what was assumed."""
        if self._found and not outputs:
            (assumed, *_) = self._found
            raise TraceError(
                f"{assumed.why}; nothing is computed here that could be checked for: return a "
                "tensor, or do without jit"
            )
        found = list(outputs)
        for assumed in self._found:
            found = [assumed(y) for y in found]
        return found


def _may_equal(left: Dim, right: Any) -> bool:
    """Whether a size may have the value of another one, or of a number."""
    if not isinstance(right, Dim):
        try:
            if int(right) != right:
                return False
            right = int(right)
        except (TypeError, ValueError, OverflowError):
            return False
    ends = lowest(left - right), lowest(right - left)
    return not any(end is not None and end > 0 for end in ends)


def guard(x: Any, left: int | Dim, relation: str, right: int | Dim, why: str) -> Any:
    """A node or tensor x, for sizes of which a relation holds: `ShapeError` that says why where
    it does not, now if that is known, else in the call."""
    if isinstance(left, Dim) or isinstance(right, Dim):
        least = lowest(right - left)
        if relation == "<=" and least is not None and least >= 0:
            return x
        source = user_source()
        op = Assume(left, relation, right, why if source is None else f"{why} (at {source})")
        around = COMPARED.get()
        if isinstance(around, ShapeGuards) and around.take(op):
            return x
        return type(x)(op(x.node)) if not isinstance(x, Node) else op(x)
    if not RELATIONS[relation](left, right):
        raise ShapeError(why)
    return x
