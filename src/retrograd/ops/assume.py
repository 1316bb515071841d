"""What a program takes for granted of symbolic sizes, and the guards that write it down.

Which program a function becomes depends on what comparisons of sizes answer, in Python, while it is
traced. A symbolic size has no value then: that it equals a number is answered with False, and
written down by `ShapeGuards`, to be checked in every call by an `Assume`. Only the user's own
comparisons count; ours are about structure.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from retrograd.context_setting import Setting
from retrograd.errors import ShapeError, TraceError
from retrograd.ir import Dim, Node, Source, TensorType, Trait, declare, lowest
from retrograd.ir.dim import COMPARED, REMEDY
from retrograd.ir.source import user_source
from retrograd.ops.identity import IdentityOp

OURS = f"{__name__.partition('.')[0]}."
RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "!=": operator.ne,
    "<=": operator.le,
}


@declare
class Assume(IdentityOp):
    """Its input, in a program that is right only for sizes of which `left relation right` holds:
    others are an error, a `ShapeError`, when the program is called. The relation is `!=` or `<=`;
    `why` is the error, to which the values are added."""

    name = "assume"
    traits = IdentityOp.traits | {Trait.SIZED}
    left: int | Dim
    relation: str
    right: int | Dim
    why: str

    def bind(self, sizes: Mapping[str, int]) -> Self:
        bound: Self = super().bind(sizes)  # type: ignore[assignment]
        if isinstance(bound.left, Dim) or isinstance(bound.right, Dim):
            return bound
        pairs = zip((self.left, self.right), (bound.left, bound.right), strict=True)
        values = {str(d): n for d, n in pairs if isinstance(d, Dim)}
        values |= {name: sizes[name] for name in sorted(self.dim_names)}
        listed = ", ".join([f"{d} = {n}" for d, n in values.items()])
        return replace(bound, why=f"{self.why}; this call has {listed}") if values else bound

    def infer(self, *types: TensorType) -> TensorType:
        if self.relation not in RELATIONS:
            known = ", ".join(RELATIONS)
            raise ShapeError(f"assume of {types[0]}: the relation is one of {known}")
        self._is_known()
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        if not self._is_known():
            raise ShapeError(f"{self} is not known to hold before sizes have values")
        return arrays[0]

    def _is_known(self) -> bool:
        """Whether both sizes have values; then they must be in that relation."""
        if isinstance(self.left, Dim) or isinstance(self.right, Dim):
            return False
        if not RELATIONS[self.relation](self.left, self.right):
            raise ShapeError(f"{self.why}{f'; {REMEDY}' if self.relation == '!=' else ''}")
        return True

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (self(g),)  # the gradient is right for these sizes only, too

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None if tangents[0] is None else self(tangents[0])

    def __str__(self) -> str:
        return f"assume({self.left} {self.relation} {self.right})"

    __repr__ = __str__


def check_assumed(nodes: Iterable[Node], sizes: Mapping[str, int]) -> None:
    """`ShapeError` where sizes are not those that a graph of these nodes is right for: before any
    of its operations is refused for another reason."""
    for node in nodes:
        if isinstance(node.prim, Assume):
            node.prim.bind(sizes).infer(node.type)


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
