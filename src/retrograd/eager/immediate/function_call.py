"""Calls that have run, as the grad_fn of their results: an operation, or a slice.

A gradient goes back through calls one at a time, from the last to the first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from retrograd.eager.grad_fn import full_history, next_number
from retrograd.eager.immediate.call_kind import (
    CallKind,
)
from retrograd.eager.immediate.slicing import SlicedGradients
from retrograd.eager.leaf import leaf
from retrograd.eager.trace_buffer import remember
from retrograd.eager.trace_cache import TraceNode
from retrograd.ir import Node, Provenance, made_by, provenance
from retrograd.ir.source import user_source
from retrograd.runtime.backend import Array


class Call:
    """A call that has run, as the grad_fn of its results. Numbered like segments."""

    __slots__ = ("__weakref__", "freed", "leaves", "number", "scope", "source")

    def __init__(self, leaves: list[Node | None], freed: bool) -> None:
        self.leaves = leaves  # of operands that a gradient may go to
        self.freed = freed  # whether backward() has gone through an operand
        self.source = user_source()
        self.scope = provenance().scope
        self.number = next_number()
        remember(self)

    @property
    def arrays(self) -> list[Node]:
        """The leaves of operands that a gradient may go to."""
        return [x for x in self.leaves if x is not None]

    def part(self) -> Self:
        """What would have to be made."""
        return self

    def missing(self) -> list[tuple[int, int, None, Call]]:
        """Its nodes, if they were not asked for."""
        return [(self.number, 0, None, self)]

    def make(self, node: None) -> None:
        """Make its nodes."""
        self.unfold()

    @abstractmethod
    def unfold(self) -> None:
        """Make the nodes of results, unless they are there."""

    @abstractmethod
    def reached(self, k: int) -> list[Node]:
        """The leaves of the operands that a gradient reaches from output number k."""

    @abstractmethod
    def backward(
        self, cotangents: Mapping[int, Array], asks: Callable[[Node], bool],
        found: dict[Node, Array], slices: SlicedGradients,
    ) -> None:  # fmt: skip
        """Add the gradients of operands to `found`, given those of results."""

    def made_here(self) -> Provenance:
        """Where the call was."""
        return Provenance(self.scope, self.source, None)


class FunctionCall(Call):
    """A call of a library function."""

    __slots__ = ("_nodes", "given", "ints", "kind", "numbers")

    def __init__(
        self, kind: CallKind, leaves: list[Node | None], given: list[Array], ints: Sequence[int],
        numbers: dict[int, float], freed: bool,
    ) -> None:  # fmt: skip
        super().__init__(leaves, freed)
        self.kind = kind
        self.given = given  # arrays: operands, then outputs and what is kept
        self.ints = ints
        self.numbers = numbers
        self._nodes: list[Node] = []

    def unfold(self) -> None:
        """Make the nodes of results, unless they are there."""
        if self._nodes:
            return
        values: list[Any] = [
            leaf(a) if x is None else full_history(x)
            for x, a in zip(self.leaves, self.given, strict=False)
        ]
        values += [*self.ints, *self.numbers.values()]
        if self.kind.arguments.is_traced:
            self._nodes = self.kind.nodes(values, self.given)
            return
        with made_by(self.made_here()), np.errstate(all="ignore"):
            result = self.kind.arguments.call(values)
        found: dict[TraceNode, Node] = {}
        _paired(self.kind.result, result, found)
        self._nodes = [found[y] for y in self.kind.outputs]

    def made(self, k: int) -> Node:
        """The node of output number k."""
        return self._nodes[k]

    def reached(self, k: int) -> list[Node]:
        """The leaves of the operands that a gradient reaches from output number k."""
        found = [self.leaves[i] for i in self.kind.outputs[k].slots() if i < len(self.leaves)]
        return [x for x in found if x is not None]

    def backward(
        self, cotangents: Mapping[int, Array], asks: Callable[[Node], bool],
        found: dict[Node, Array], slices: SlicedGradients,
    ) -> None:  # fmt: skip
        """Add the gradients of operands to `found`, given those of results."""
        given = tuple(sorted(cotangents))
        kind, own = self.kind, self.leaves
        reach = {k for i in given for k in kind.outputs[i].slots() if k < len(own)}
        at = tuple([k for k in sorted(reach) if (x := own[k]) is not None and asks(x)])
        if not at:
            return
        plan = kind.backward(given, at, tuple([own[k] in found for k in at]))
        values = [*self.given, *[cotangents[i] for i in given]]
        values += [found[x] for k in at if (x := own[k]) in found]
        results = [] if plan.program is None else plan.program.call(values, self.numbers)
        for k, position in plan.passed:
            found[own[k]] = values[position]  # type: ignore[index]
        for k, g in zip(plan.computed, results, strict=True):
            found[own[k]] = g  # type: ignore[index]


class SliceCall(Call):
    """`x[key]` by numbers and slices."""

    __slots__ = ("_node", "f", "key")

    def __init__(self, f: Callable[..., Any], x: Node, key: Any, freed: bool) -> None:
        super().__init__([x], freed)
        self.f, self.key = f, key
        self._node: Node | None = None

    def unfold(self) -> None:
        """Make the node of the result, unless it is there."""
        if self._node is not None:
            return
        with made_by(self.made_here()):
            self._node = self.f(full_history(self.arrays[0]), self.key)

    def made(self, k: int) -> Node:
        """The node of the result."""
        assert self._node is not None
        return self._node

    def reached(self, k: int) -> list[Node]:
        """The leaf that is indexed."""
        return self.arrays

    def backward(
        self, cotangents: Mapping[int, Array], asks: Callable[[Node], bool],
        found: dict[Node, Array], slices: SlicedGradients,
    ) -> None:  # fmt: skip
        """The same as of other calls."""
        x = self.arrays[0]
        if asks(x):
            found[x] = slices.add(x, found.get(x), cotangents[0], self.key)


def _paired(structure: Any, result: Any, found: dict[TraceNode, Node]) -> None:
    """Which node a trace node of a result has become."""
    if isinstance(structure, TraceNode):
        found.setdefault(structure, result)
    elif isinstance(structure, tuple):
        for a, b in zip(structure[1], result, strict=True):
            _paired(a, b, found)
