"""Calls that have run, as the grad_fn of their results: an operation, or a slice.

A gradient goes back through calls one at a time, from the last to the first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Self

import numpy as np

from retrograd.autodiff import pullback
from retrograd.eager.grad_fn import Output, full_history, next_number
from retrograd.eager.immediate.brief import hand_over_backward
from retrograd.eager.immediate.call_kind import CallKind
from retrograd.eager.immediate.slicing import SlicedGradients, sliced
from retrograd.eager.immediate_base import CallBase, CallKernel
from retrograd.eager.leaf import leaf
from retrograd.eager.trace_buffer import listed_in
from retrograd.eager.trace_cache import TraceNode
from retrograd.eager.trace_program import TraceProgram
from retrograd.ir import Node, Provenance, Source, TensorType, made_by, provenance
from retrograd.ir.source import call_itself, user_place
from retrograd.ops.leaf import input_node
from retrograd.runtime.backend import Array

Edge = Output | Node | None  # what a gradient with respect to an operand goes to


class Call(CallBase):
    """A call that has run, as the grad_fn of its results. Numbered like segments."""

    __slots__ = ()

    edges: tuple[Edge, ...]
    freed: bool  # whether backward() has gone through an operand
    number: int
    position: int  # in the run
    run: Any  # the `Run` that it was part of
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
    def called(self) -> Callable[..., Any] | None:
        """The function of the library that was called, where it is one."""
        return None

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

    @property
    @abstractmethod
    def results(self) -> int:
        """How many results a gradient may come from."""

    @abstractmethod
    def reach(self, k: int) -> list[int]:
        """The operands that a gradient reaches from output number k."""

    def reached_from(self, leading: Collection[int]) -> list[int]:
        """The results that a gradient goes from to one of these operands."""
        return [k for k in range(self.results) if any(i in leading for i in self.reach(k))]

    def reached(self, k: int) -> list[Node]:
        """The leaves of these."""
        leaves = self.leaves
        return [x for i in self.reach(k) if (x := leaves[i]) is not None]

    @abstractmethod
    def backward(
        self, cotangents: Mapping[int, Array], asks: Callable[[Node], bool],
        found: dict[Node, Array], slices: SlicedGradients,
    ) -> None:  # fmt: skip
        """Add the gradients of operands to `found`, given those of results."""

    def made_here(self) -> Provenance:
        """Where the call was, and what was called."""
        source = self.source
        if source is not None and self.called is not None:
            source = Source(source.code, source.lasti, *call_itself(self.called))
        return Provenance(self.scope, source, None)


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

    @property
    def called(self) -> Callable[..., Any]:
        """The function of the library that was called."""
        return self.kind.arguments.f

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
        if kind.arguments.is_traced or kind.interior:
            self.nodes = kind.nodes(values, self.given, self.numbers)
            return
        with made_by(self.made_here()), np.errstate(all="ignore"):
            result = kind.arguments.call(values)
        found: dict[TraceNode, Node] = {}
        _paired(kind.result, result, found)
        self.nodes = [found[y] for y in kind.outputs]

    def made(self, k: int) -> Node:
        """The node of result number k."""
        if k >= len(self.nodes):  # of what became one when its nodes had been made
            before, self.nodes = self.nodes, None
            self.unfold()
            self.nodes = [*before, *self.nodes[len(before) :]]
        return super().made(k)

    @property
    def results(self) -> int:
        """How many results a gradient may come from."""
        return len(self.kind.results)

    def reach(self, k: int) -> list[int]:
        """The operands that a gradient reaches from result number k."""
        edges, y = self.edges, self.kind.results[k]
        slots = y.slots() if y.floating else ()
        return [i for i in slots if 0 <= i < len(edges) and edges[i] is not None]

    def backward(
        self, cotangents: Mapping[int, Array], asks: Callable[[Node], bool],
        found: dict[Node, Array], slices: SlicedGradients,
    ) -> None:  # fmt: skip
        """Add the gradients of operands to `found`, given those of results."""
        given = tuple(sorted(cotangents))
        own = self.leaves
        reach = {k for i in given for k in self.reach(i)}
        at = tuple([k for k in sorted(reach) if (x := own[k]) is not None and asks(x)])
        if not at:
            return
        more = tuple([own[k] in found for k in at])
        values = [*self.given, *[cotangents[i] for i in given]]
        values += [found[x] for k in at if (x := own[k]) in found]
        for k, g in self.slopes(given, at, more, values).items():
            found[own[k]] = g  # type: ignore[index]

    def pulled(self, given: int, to: int, more: int, values: Sequence[Array]) -> tuple[Any, ...]:
        """The gradients of operands, None where there is none, for C: from which outputs, to which
        operands, and for which of these there is one already, as masks; `values` as the program of
        `CallKind.backward` takes them."""
        at = tuple(_bits(to))
        own = tuple([bool(more >> k & 1) for k in at])
        outputs = tuple(_bits(given))
        found = self.slopes(outputs, at, own, values)
        kind = self.kind
        shapes = [a.shape for a in self.given[: len(self.edges)]] + [(n,) for n in self.ints]
        hand_over_backward(
            kind, (given, to, more), kind.backward(outputs, at, own), values,
            dict(enumerate(self.numbers)), kind.pattern.sizes(tuple(shapes)),
        )  # fmt: skip
        return tuple([found.get(k) for k in range(len(self.edges))])

    def slopes(
        self, given: tuple[int, ...], at: tuple[int, ...], more: tuple[bool, ...],
        values: Sequence[Array],
    ) -> dict[int, Array]:  # fmt: skip
        """The gradients of operands that there are."""
        plan = self.kind.backward(given, at, more)
        results = [] if plan.program is None else self._run(plan.program, values)
        found = {k: values[position] for k, position in plan.passed}
        return found | dict(zip(plan.computed, results, strict=True))

    def _run(self, program: TraceProgram, values: Sequence[Array]) -> list[Array]:
        """What a program of the kind computes, given operands and what is behind them."""
        if self.kind.is_sized:  # arrays of as many elements, where C has none
            values = list(values)
            for i, n in enumerate(self.ints, len(self.edges)):
                values[i] = np.empty(n, np.bool_)
        return program.call(values, dict(enumerate(self.numbers)), self.run.site.returns)

    def inside(self, which: Sequence[int]) -> list[Array]:
        """The values of results, computed once more where they are inside."""
        outputs, before = len(self.kind.outputs), len(self.edges) + len(self.ints)
        missing = tuple([k for k in which if k >= outputs])
        found: dict[int, Array] = {}
        if missing:
            made = self._run(self.kind.inside(missing), self.given)
            found = dict(zip(missing, made, strict=True))
        return [found[k] if k >= outputs else self.given[before + k] for k in which]


class MovedCall(Call):
    """A call that only moves elements: Python goes back through it."""

    __slots__ = ()
    results = 1

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

    def reach(self, k: int) -> list[int]:
        """The operands that a gradient may go to."""
        return [i for i, edge in enumerate(self.edges) if edge is not None]


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


class ScatterCall(MovedCall):
    """The gradient of `x[key]`: a cotangent among zeros, or added to what has come so far. Its
    operands are these: that so far, if there is one, and the cotangent."""

    __slots__ = ("f", "key", "shape")

    f: Callable[..., Any]
    key: Any
    shape: tuple[int, ...]
    given: tuple[Array, ...]

    @classmethod
    def of(
        cls, f: Callable[..., Any], edges: Sequence[Edge], given: Sequence[Array], key: Any,
        shape: tuple[int, ...],
    ) -> ScatterCall:  # fmt: skip
        """The gradient with respect to an array of this shape."""
        new = cls()
        new.begun(edges, False)
        new.f, new.key, new.shape, new.given = f, key, shape, tuple(given)
        return new

    def unfold(self) -> None:
        """Make the node of the result, unless it is there."""
        if self.nodes is not None:
            return
        *so_far, g = [
            leaf(a) if x is None else full_history(x)
            for x, a in zip(self.leaves, self.given, strict=True)
        ]
        x = input_node(TensorType(g.dtype, self.shape))
        with made_by(self.made_here()):
            ends = [self.f(x, self.key), *[x] * len(so_far)]
            self.nodes = pullback(ends, [g, *so_far], [x])

    def totals(self, slices: SlicedGradients, g: Array, so_far: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of operands."""
        parts = [*[g] * (len(so_far) - 1), sliced(g, self.key)]
        found: list[Any] = []
        for k, (before, own) in enumerate(zip(so_far, parts, strict=True)):
            if k > 0 and self.edges[0] is self.edges[1]:  # the same: one by one
                before = found[0]
            is_first = before is None or before is Ellipsis
            found.append(before if before is Ellipsis else own if is_first else before + own)
        return tuple(found)


class AssignCall(MovedCall):
    """`x[key] = value` by numbers and slices, for a value of as many elements."""

    __slots__ = ("f", "key")

    f: Callable[..., Any]
    key: Any
    given: tuple[Array, ...]  # x and the value

    @classmethod
    def of(
        cls, f: Callable[..., Any], edges: Sequence[Edge], given: Sequence[Array], key: Any
    ) -> AssignCall:
        """An assignment that was made just now."""
        new = cls()
        new.begun(edges, False)
        new.f, new.key, new.given = f, key, tuple(given)
        return new

    def unfold(self) -> None:
        """Make the node of the result, unless it is there."""
        if self.nodes is not None:
            return
        x, value = [
            leaf(a) if edge is None else full_history(edge)
            for edge, a in zip(self.leaves, self.given, strict=True)
        ]
        with made_by(self.made_here()):
            self.nodes = [self.f(x, [], self.key, value, "set")]

    def totals(self, slices: SlicedGradients, g: Array, so_far: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of operands: what is replaced gets none."""
        found: list[Any] = []
        for k, before in enumerate(so_far):
            if k > 0 and self.edges[0] is self.edges[1] and before is not Ellipsis:
                before = found[0] if found[0] is not Ellipsis else before
            if before is Ellipsis:
                found.append(before)
                continue
            if k == 0:
                own = np.array(g)
                own[self.key] = 0
            else:
                own = sliced(g, self.key).reshape(self.given[1].shape)
            found.append(own if before is None else np.asarray(before + own))
        return tuple(found)


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

    def key_of(self, k: int) -> tuple[Any, ...]:
        """What selects operand `k` of the result."""
        before = (slice(None),) * self.axis
        if self.is_new:
            return (*before, k)
        sizes = [a.shape[self.axis] for a in self.given]
        return (*before, slice(sum(sizes[:k]), sum(sizes[: k + 1])))

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
