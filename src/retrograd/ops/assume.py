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
from retrograd.ir import Dim, Node, Source, TensorType, Trait, declare, evaluate, lowest
from retrograd.ir.dim import OBSERVER, REMEDY
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
        self._around = OBSERVER.get()
        self.takes_all: bool = isinstance(self._around, ShapeGuards) and self._around.takes_all
        self._found: dict[Assume, None] = {}  # in order

    def watching(self) -> Setting:
        """Inside of the block what is assumed is written down."""
        return Setting(OBSERVER, self if self._names else self._around)

    def is_equal(self, left: Dim, right: Any) -> bool:
        """Whether two sizes are equal, as far as the user's code wants to know."""
        place = _asking()
        if place is None or not _may_equal(left, right):
            return False
        number = right if isinstance(right, Dim) else int(right)
        if self.decide_equal(left, number):
            return True
        why = f"the program is for {left} != {number}, as these were compared at {place}"
        if not self.take(Assume(left, "!=", number, why)):
            raise ShapeError(
                f"whether the symbolic size {left} equals {number} is not known here, nor can it "
                f"be checked in a call (at {place}); compute with both, or {REMEDY}"
            )
        return False

    def is_less(self, left: int | Dim, right: int | Dim) -> bool | None:
        """Answered by those who know an example."""
        around = self._around
        return around.is_less(left, right) if isinstance(around, ShapeGuards) else None

    def decide(self, left: int | Dim, right: int | Dim) -> bool | None:
        """The same, asked by ourselves."""
        return self._around.decide(left, right) if isinstance(self._around, ShapeGuards) else None

    def decide_equal(self, left: int | Dim, right: int | Dim) -> bool:
        """Whether the example has two sizes equal, and others may have, too."""
        around = self._around
        return isinstance(around, ShapeGuards) and around.decide_equal(left, right)

    def needs_value(self, size: Dim, why: str) -> None:
        if isinstance(self._around, ShapeGuards):
            self._around.needs_value(size, why)

    def looked_up(self, size: Dim) -> None:
        if isinstance(self._around, ShapeGuards):
            self._around.looked_up(size)

    def number(self, size: Dim) -> Any:
        return self._around.number(size) if isinstance(self._around, ShapeGuards) else None

    def take(self, assumed: Assume) -> bool:
        """Write an assumption down, here or where the names of its sizes come from."""
        around = self._around
        if isinstance(around, ShapeGuards) and around.takes_all and around.take(assumed):
            return True
        if assumed.dim_names <= self._names:
            self._found[assumed] = None
            return True
        return isinstance(around, ShapeGuards) and around.take(assumed)

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


class ExampleGuards(ShapeGuards):
    """What a trace takes for granted of names that have values, too, those of the call for which it
    is made. A question about order is answered for these, and the answer assumed. The program does
    not check what is assumed: `holds` tells for which other sizes it is right. No name has a value
    less than its `least`. `number` makes what floating-point numbers are computed with.

    There is no such program where values of sizes are `needed`: of names, with what needs them.
    What was refused last is told by `refused` likewise; it may be the cause of a failure.
    """

    def __init__(
        self, example: Mapping[str, int], least: Mapping[str, int], number: Callable[[Dim], Any]
    ) -> None:
        super().__init__(())
        # Names by those of what they are greater by than the least.
        self._above = {name: Dim(name) + n for name, n in least.items()}
        self._number = number
        self._names = frozenset(example)
        self._example = example
        self.takes_all = True
        self.needed: dict[str, str] = {}
        self.refused: dict[str, str] = {}

    def is_less(self, left: int | Dim, right: int | Dim) -> bool | None:
        return None if _asking() is None else self.decide(left, right)

    def decide(self, left: int | Dim, right: int | Dim) -> bool | None:
        names = {n for d in (left, right) if isinstance(d, Dim) for n in d.names}
        if not names <= self._names:
            return None
        answer = evaluate(left, self._example) < evaluate(right, self._example)
        low, high = (left + 1, right) if answer else (right, left)
        self._take_order(low, high)
        return answer

    def decide_equal(self, left: int | Dim, right: int | Dim) -> bool:
        distance = left - right
        if not isinstance(distance, Dim) or not distance.names <= self._names:
            return False
        if len(distance.names) == 1 and not distance.has_quotients:
            return False  # that is so for one size, which is better compiled by itself
        if evaluate(distance, self._example):
            return False
        for low, high in ((left, right), (right, left)):
            self._take_order(low, high)
        return True

    def at_least(self, least: int, sizes: Iterable[Dim]) -> None:
        """Assume that sizes, as far as they are of these names, are not less than a number."""
        for size in sizes:
            if size.names <= self._names:
                self._take_order(least, size)

    def _take_order(self, low: int | Dim, high: int | Dim) -> None:
        above: Mapping[str, Any] = self._above
        distance = lowest(evaluate(high - low, above))
        if distance is None or distance < 0:
            self.take(Assume(low, "<=", high, f"the program is for {low} <= {high}"))

    def needs_value(self, size: Dim, why: str) -> None:
        source = user_source()
        text = why if source is None else f"{why} (at {source})"
        self.refused = dict.fromkeys(sorted(size.names & self._names), text)

    def looked_up(self, size: Dim) -> None:
        place = _asking()
        if place is not None:
            text = f"the size {size} is looked for in a set or a dictionary (at {place})"
            self.needed |= dict.fromkeys(sorted(size.names & self._names), text)

    def number(self, size: Dim) -> Any:
        return self._number(size) if size.names <= self._names else None

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether all that is assumed is true for sizes."""
        return all(
            RELATIONS[a.relation](evaluate(a.left, sizes), evaluate(a.right, sizes))
            for a in self._found
        )

    def __str__(self) -> str:
        return " and ".join([f"{a.left} {a.relation} {a.right}" for a in self._found])


def _asking() -> Source | None:
    """Where the user's own code asks about a size; None where it is ours that does."""
    frame = sys._getframe(2)
    while frame.f_code not in _QUESTIONS:
        frame = frame.f_back  # type: ignore[assignment]
    asked: Any = frame.f_back
    if f"{asked.f_globals.get('__name__')}.".startswith(OURS):
        return None
    return Source(asked.f_code, asked.f_lasti)


_QUESTIONS = {
    getattr(Dim, f"__{name}__").__code__ for name in ("eq", "lt", "le", "gt", "ge", "bool", "hash")
}


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


def is_less_here(left: int | Dim, right: int | Dim) -> bool:
    """Whether `left < right`, where that is known, or else for the example for which a function is
    traced, which its program then assumes. False where there is none."""
    if not (isinstance(left, Dim) or isinstance(right, Dim)):
        return left < right
    least = lowest(left - right)
    observer = OBSERVER.get()
    if (least is not None and least >= 0) or not isinstance(observer, ShapeGuards):
        return False
    return bool(observer.decide(left, right))


def guard(x: Any, left: int | Dim, relation: str, right: int | Dim, why: str) -> Any:
    """A node or tensor x, for sizes of which a relation holds: `ShapeError` that says why where
    it does not, now if that is known, else in the call."""
    if isinstance(left, Dim) or isinstance(right, Dim):
        least = lowest(right - left)
        if relation == "<=" and least is not None and least >= 0:
            return x
        source = user_source()
        op = Assume(left, relation, right, why if source is None else f"{why} (at {source})")
        around = OBSERVER.get()
        if isinstance(around, ShapeGuards) and around.take(op):
            return x
        return type(x)(op(x.node)) if not isinstance(x, Node) else op(x)
    if not RELATIONS[relation](left, right):
        raise ShapeError(why)
    return x
