"""What a program takes for granted of symbolic sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from retrograd.errors import ShapeError
from retrograd.ir import Dim, Node, TensorType, declare
from retrograd.ir.dim import REMEDY
from retrograd.ops.identity import IdentityOp

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
