"""The mathematics of a node as text: what it computes, and what it passes back.

A rule is a pair of templates in which `‹0›`, `‹1›`, ... stand for the inputs, `‹y›` for the result
and `‹g›` for the cotangent of the result. A reader puts names in their places, or numbers: of
`mul(a, b)` the forward template is `‹0› * ‹1›`, and the input `a` gets `‹g› * ‹1›`. The templates
are read off the operation: its reverse rule is run on nodes, and the result written as a formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrograd.errors import RetrogradError
from retrograd.ir import Node, Provenance, TensorType, TupleType, lookup, made_by
from retrograd.viz.mathematics.formula import formula, terms

LONGEST = 25  # operations of a formula that is written out
SHOWN = 6  # names of operations listed instead

Rule = dict[str, Any]


class Rules:
    """The rules of nodes, each listed once. Calling it gives the position in the list."""

    def __init__(self) -> None:
        self.listed: list[Rule] = []
        self._known: dict[Any, int | None] = {}
        self._position: dict[tuple[Any, ...], int] = {}

    def __call__(self, node: Node) -> int | None:
        """The rule of a node; None of one without inputs, which computes nothing."""
        if not node.inputs:
            return None
        key = node.prim, tuple([x.type for x in node.inputs])
        if key not in self._known:
            self._known[key] = self._found(node)
        return self._known[key]

    def _found(self, node: Node) -> int:
        forward, back = rule_of(node)
        key = forward, *back
        if key not in self._position:
            self._position[key] = len(self.listed)
            self.listed.append({"forward": forward, "back": back})
        return self._position[key]


def rule_of(node: Node) -> tuple[str, list[str | None]]:
    """What a node computes, and what each input receives: None where nothing flows back."""
    if isinstance(node.type, TupleType):  # a loop or a choice, whose rule is as long as its body
        given = ", ".join(f"‹{i}›" for i in range(len(node.inputs)))
        told = f"the backward pass of this {node.op}"
        return f"{node.op}({given})", [told if x.type.is_inexact else None for x in node.inputs]
    with made_by(Provenance()):
        inputs = [_stand_in(x.type) for x in node.inputs]
        y = Node(node.prim, tuple(inputs), node.type)
        g = _stand_in(node.type)
        names = {x: f"‹{i}›" for i, x in enumerate(inputs)}
        forward = _written(y, names)
        try:
            parts = list(node.prim.vjp(g, y, *inputs)) if node.dtype.is_inexact else []
        except (RetrogradError, NotImplementedError):
            parts = []  # an operation that says, when asked, that it has no gradient
    known = {**names, g: "‹g›", y: "‹y›"}
    back: list[str | None] = [
        "‹g›" if isinstance(part, Mapping) else None if part is None else _written(part, known)
        for part in parts
    ]
    return forward, back or [None] * len(inputs)


def _stand_in(type: TensorType) -> Node:
    return Node(lookup("input")(type.dtype, type.shape), (), type)


def _written(node: Node, names: Mapping[Node, str]) -> str:
    """The formula, or what it is made of where it would be too long to read."""
    if terms(node, names) <= LONGEST:
        return formula(node, names, plain=True)
    seen, used, left = set(names), dict[str, None](), [node]
    while left:
        x = left.pop()
        if x not in seen:
            seen.add(x)
            used[x.op] = None
            left += x.inputs
    kept = sorted(op for op in used if op not in ("constant", "input"))
    more = ", …" if len(kept) > SHOWN else ""
    return f"made of {', '.join(kept[:SHOWN])}{more}"
