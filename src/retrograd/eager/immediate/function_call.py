"""Calls that have run, as the grad_fn of their results: an operation, or a slice.

A gradient goes back through calls one at a time, from the last to the first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from retrograd.eager.grad_fn import Output, full_history, next_number
from retrograd.eager.immediate.brief import hand_over_backward
from retrograd.eager.immediate.call_kind import CallKind
from retrograd.eager.immediate.slicing import SlicedGradients
from retrograd.eager.immediate_base import CallBase, CallKernel
from retrograd.eager.leaf import leaf
from retrograd.eager.trace_buffer import listed_in
from retrograd.eager.trace_cache import TraceNode
from retrograd.ir import Node, Provenance, Source, made_by, provenance
from retrograd.ir.source import user_place
from retrograd.runtime.backend import Array

Edge = Output | Node | None  # what a gradient with respect to an operand goes to


class Call(CallBase):
    """A call that has run, as the grad_fn of its results. Numbered like segments."""

    __slots__ = ()

    edges: tuple[Edge, ...]
    freed: bool  # whether backward() has gone through an operand
    number: int
    scope: str
    nodes: Any  # those of its results, if somebody has asked

    def begun(self, edges: Sequence[Edge], freed: bool) -> None:
        """Fill in what all calls have; the run that is under way lists it."""
        self.edges, self.freed, self.nodes = tuple(edges), freed, None
        self.code, self.lasti = user_place()
        self.scope = provenance().scope
        self.number = next_number()
        listed_in().enlist(self)

    @property
    def source(self) -> Source | None:
        """The user's line that it was called from."""
        return Source(self.code, self.lasti) if self.code is not None else None

    @property
    def leaves(self) -> list[Node | None]:
        """The edges as leaves."""
        return [x.leaf if isinstance(x, Output) else x for x in self.edges]

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

    def made(self, k: int) -> Node:
        """The node of output number k."""
        found: Node = self.nodes[k]
        return found

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

    __slots__ = ()

    kernel: CallKernel
    given: tuple[Array, ...]  # operands, then outputs and what is kept
    ints: tuple[int, ...]
    numbers: tuple[float, ...]

    @classmethod
    def of(
        cls, kind: CallKind, edges: Sequence[Edge], given: Sequence[Array], ints: Sequence[int],
        numbers: Sequence[float], freed: bool,
    ) -> FunctionCall:  # fmt: skip
        """A call that has run just now."""
        new = cls()
        new.begun(edges, freed)
        new.kernel, new.given = kind.kernel, tuple(given)
        new.ints, new.numbers = tuple(ints), tuple(numbers)
        return new

    @property
    def kind(self) -> CallKind:
        """What is known of calls like it."""
        found: CallKind = self.kernel.kind
        return found

    def unfold(self) -> None:
        """Make the nodes of results, unless they are there."""
        if self.nodes is not None:
            return
        values: list[Any] = [
            leaf(a) if x is None else full_history(x)
            for x, a in zip(self.leaves, self.given, strict=False)
        ]
        values += [*self.ints, *self.numbers]
        kind = self.kind
        if kind.arguments.is_traced:
            self.nodes = kind.nodes(values, self.given)
            return
        with made_by(self.made_here()), np.errstate(all="ignore"):
            result = kind.arguments.call(values)
        found: dict[TraceNode, Node] = {}
        _paired(kind.result, result, found)
        self.nodes = [found[y] for y in kind.outputs]

    def reached(self, k: int) -> list[Node]:
        """The leaves of the operands that a gradient reaches from output number k."""
        leaves = self.leaves
        found = [leaves[i] for i in self.kind.outputs[k].slots() if i < len(leaves)]
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
        more = tuple([own[k] in found for k in at])
        values = [*self.given, *[cotangents[i] for i in given]]
        values += [found[x] for k in at if (x := own[k]) in found]
        for k, g in self._pulled(given, at, more, values).items():
            found[own[k]] = g  # type: ignore[index]

    def pulled(self, given: int, to: int, more: int, values: Sequence[Array]) -> tuple[Any, ...]:
        """The gradients of operands, None where there is none, for C: from which outputs, to which
        operands, and for which of these there is one already, as masks; `values` as the program of
        `CallKind.backward` takes them."""
        at = tuple(_bits(to))
        own = tuple([bool(more >> k & 1) for k in at])
        outputs = tuple(_bits(given))
        found = self._pulled(outputs, at, own, values)
        kind = self.kind
        shapes = [a.shape for a in self.given[: len(self.edges)]] + [(n,) for n in self.ints]
        hand_over_backward(
            kind, (given, to, more), kind.backward(outputs, at, own), values,
            dict(enumerate(self.numbers)), kind.pattern.sizes(tuple(shapes)),
        )  # fmt: skip
        return tuple([found.get(k) for k in range(len(self.edges))])

    def _pulled(
        self, given: tuple[int, ...], at: tuple[int, ...], more: tuple[bool, ...],
        values: Sequence[Array],
    ) -> dict[int, Array]:  # fmt: skip
        """The gradients of operands that there are."""
        plan = self.kind.backward(given, at, more)
        numbers = dict(enumerate(self.numbers))
        if self.kind.is_sized:  # arrays of as many elements, where C has none
            values = list(values)
            for i, n in enumerate(self.ints, len(self.edges)):
                values[i] = np.empty(n, np.bool_)
        results = [] if plan.program is None else plan.program.call(values, numbers)
        found = {k: values[position] for k, position in plan.passed}
        return found | dict(zip(plan.computed, results, strict=True))


class MovedCall(Call):
    """A call that only moves elements: Python goes back through it."""

    __slots__ = ()

    @abstractmethod
    def totals(self, slices: SlicedGradients, g: Array, so_far: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of operands: of what has come so far, or None, and what comes from here;
        where that is an ellipsis nobody asks."""

    def backward(
        self, cotangents: Mapping[int, Array], asks: Callable[[Node], bool],
        found: dict[Node, Array], slices: SlicedGradients,
    ) -> None:  # fmt: skip
        """The same as of other calls."""
        for k, x in enumerate(self.leaves):  # one by one: some may be the same
            if x is not None and asks(x):
                so_far: list[Any] = [Ellipsis] * len(self.edges)
                so_far[k] = found.get(x)
                found[x] = self.totals(slices, cotangents[0], so_far)[k]

    def reached(self, k: int) -> list[Node]:
        """The leaves of operands that a gradient may go to."""
        return self.arrays


class SliceCall(MovedCall):
    """`x[key]` by numbers and slices."""

    __slots__ = ("f", "key")

    f: Callable[..., Any]
    key: Any

    @classmethod
    def of(cls, f: Callable[..., Any], x: Output | Node, key: Any, freed: bool) -> SliceCall:
        """A slice that was taken just now."""
        new = cls()
        new.begun([x], freed)
        new.f, new.key = f, key
        return new

    def unfold(self) -> None:
        """Make the node of the result, unless it is there."""
        if self.nodes is not None:
            return
        with made_by(self.made_here()):
            self.nodes = [self.f(full_history(self.arrays[0]), self.key)]

    def totals(self, slices: SlicedGradients, g: Array, so_far: Sequence[Any]) -> tuple[Any, ...]:
        """The gradient of what is indexed."""
        (before,) = so_far
        if before is Ellipsis:
            return (before,)
        x: Any = self.edges[0]
        array = x.array if isinstance(x, Output) else x.prim.array
        return (slices.add(x, array.shape, before, g, self.key),)


class JoinCall(MovedCall):
    """Many arrays joined along an axis that they have, or a new one (`is_new`)."""

    __slots__ = ("axis", "f", "is_new")

    f: Callable[..., Any]
    axis: int
    is_new: bool
    given: tuple[Array, ...]  # the operands

    @classmethod
    def of(
        cls, f: Callable[..., Any], edges: Sequence[Edge], given: Sequence[Array], axis: int,
        is_new: bool, freed: bool,
    ) -> JoinCall:  # fmt: skip
        """Arrays that were joined just now; the axis is counted from the front."""
        new = cls()
        new.begun(edges, freed)
        new.f, new.axis, new.is_new, new.given = f, axis, is_new, tuple(given)
        return new

    def unfold(self) -> None:
        """Make the node of the result, unless it is there."""
        if self.nodes is not None:
            return
        values = [
            leaf(a) if x is None else full_history(x)
            for x, a in zip(self.leaves, self.given, strict=True)
        ]
        with made_by(self.made_here()):
            self.nodes = [self.f(values, self.axis)]

    def totals(self, slices: SlicedGradients, g: Array, so_far: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of what was joined. Those of the same array are added up one by one."""
        found: list[Any] = []
        last: dict[int, Array] = {}  # by edge
        end, rows = 0, np.moveaxis(g, self.axis, 0)
        for edge, a, before in zip(self.edges, self.given, so_far, strict=True):
            start, end = end, end + (1 if self.is_new else a.shape[self.axis])
            if before is Ellipsis:
                found.append(before)
                continue
            own = rows[start] if self.is_new else np.moveaxis(rows[start:end], 0, self.axis)
            before = last.get(id(edge), before)
            total = np.array(own, order="C") if before is None else np.asarray(before + own)
            last[id(edge)] = total
            found.append(total)
        return tuple(found)


def _bits(mask: int) -> list[int]:
    """The numbers that a mask stands for."""
    return [k for k in range(mask.bit_length()) if mask >> k & 1]


def _paired(structure: Any, result: Any, found: dict[TraceNode, Node]) -> None:
    """Which node a trace node of a result has become."""
    if isinstance(structure, TraceNode):
        found.setdefault(structure, result)
    elif isinstance(structure, tuple):
        for a, b in zip(structure[1], result, strict=True):
            _paired(a, b, found)
