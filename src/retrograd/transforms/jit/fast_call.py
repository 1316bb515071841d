"""Calls of compiled functions: from arguments to results by the shortest way.

A call that is like an earlier one (the same structure of arguments, the same kinds of leaves, the
same shapes) needs no look at types or signatures: its *site* has a function in C that finds the
arrays, and for their shapes the program, runs it and makes the result. Where anything is different,
nothing was done, and `jit` goes the long way.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.grad_fn import GradFn, JitCall, grad_fn_of
from retrograd.eager.lazy_tensor import Donated, LazyTensor
from retrograd.eager.leaf import leaf
from retrograd.errors import HistoryWarning
from retrograd.ir import Graph, Node
from retrograd.ops.identity import StopGradient
from retrograd.runtime import fast_call as native
from retrograd.runtime.backend import Array, Program, bind
from retrograd.runtime.call_route import CallRecord, CallRoute
from retrograd.runtime.device_array import resident, resides
from retrograd.runtime.executable import Executable
from retrograd.transforms.jit.dynamic_shapes import kinds_and_sizes
from retrograd.transforms.jit.pytree_codec import (
    NUMBERS,
    Fixed,
    flatten_program,
    is_plain,
    prepared,
    taking_leaves,
    unflatten_program,
)
from retrograd.transforms.jit.signature import StaticLeaf

SEVERAL = 16  # of these, from which on a new one is remembered when it comes a second time
SHAPES = 256  # combinations of shapes that a site tells apart

DEEP = 100  # calls in a row, each with results of the one before, of whose memory is warned

COMPUTED = object()  # stands for a result that is computed


class FlatArguments:
    """Arguments of one call, taken apart."""

    __slots__ = (
        "arrays", "asks", "declared", "donated", "family", "keys", "leaves", "plain", "signature",
        "sizes", "structure",
    )  # fmt: skip

    def __init__(self, arguments: Any) -> None:
        self.leaves, self.structure = pytree.flatten(arguments)
        self.keys: list[Any] = []  # of the leaves: what a program depends on
        self.donated = [False] * len(self.leaves)
        self.declared = [False] * len(self.leaves)  # whether that was said of their sizes
        self.arrays: list[Array] = []  # of the leaves that are not `StaticLeaf`
        self.asks = False  # whether a gradient may be asked for, by way of leaves
        self.signature: Any = None  # of what there is one program
        self.family: Any = None  # the same, but for sizes
        self.sizes: list[int] = []
        self.plain: Any = None  # the function traced for this very call, once that was needed

    def apart(self) -> None:
        """Find what calls have in common that differ in sizes alone, and the sizes."""
        structure, keys, backend = self.signature
        kinds, self.sizes = kinds_and_sizes(keys, self.declared)
        self.family = structure, kinds, backend

    @property
    def given(self) -> list[tuple[Any, bool]]:
        """Leaves with an array, and whether they are donated."""
        return [
            (x, gone)
            for x, key, gone in zip(self.leaves, self.keys, self.donated, strict=True)
            if not isinstance(key, StaticLeaf)
        ]

    @property
    def shapes(self) -> list[tuple[int, ...] | None]:
        """The shapes of leaves; None of those that are no array."""
        arrays = iter(self.arrays)
        return [None if isinstance(key, StaticLeaf) else next(arrays).shape for key in self.keys]

    @property
    def array_donors(self) -> list[int]:
        """The numbers of arrays that are donated."""
        kinds = LazyTensor, np.ndarray, np.generic
        return [i for i, x in self.donors if isinstance(x, kinds)]

    @property
    def donors(self) -> list[tuple[int, Any]]:
        """Donated leaves, with the numbers of their arrays."""
        return [(i, x) for i, (x, gone) in enumerate(self.given) if gone]


def is_served(program: Program) -> bool:
    """Whether there is the short way to call a program, in C."""
    return isinstance(program, Executable) and native.serves(LazyTensor.handle_class)


class CompiledFunction:
    """One compiled signature: program, what it takes from around it, structure of the result."""

    def __init__(
        self,
        program: Program,
        captured: Sequence[Any],
        structure: Any,
        fixed: Sequence[Any],
        graph: Graph,
        tracked: Sequence[bool] | None = None,
        named: bool = False,
    ) -> None:
        self.graph = graph  # as it was traced
        self._tracked = tracked  # computed results that gradients go through, where that is known
        self.named = named  # whether sizes got names without being asked to
        self.program = program
        self.captured = list(captured)  # arrays, or handles on leaves, whose value may be replaced
        self.needs_grad = any(isinstance(c, LazyTensor) for c in captured)
        self.structure = structure
        self._reach: list[int] | None = None
        self.fixed = fixed  # results that are no tensors, by position; others are `COMPUTED`

    def join(self, leaves: Sequence[Any]) -> Any:
        """The result, of its leaves."""
        return pytree.unflatten(self.structure, leaves)

    def build(self, tensors: Sequence[Any]) -> Any:
        """The result, of the tensors that were computed."""
        coming = iter(tensors)
        return self.join([next(coming) if y is COMPUTED else y for y in self.fixed])

    @property
    def _reached(self) -> list[int]:
        """For each result the inputs that a gradient reaches from it, as bits."""
        if self._reach is not None:
            return self._reach
        found = {x: 1 << i for i, x in enumerate(self.graph.inputs) if x.type.is_inexact}
        for node in self.graph.body:
            reached = 0
            if node.type.is_inexact and not isinstance(node.prim, StopGradient):
                for x in node.inputs:
                    reached |= found.get(x, 0)
            found[node] = reached
        tracked = self._tracked or [True] * len(self.graph.outputs)
        pairs = zip(self.graph.outputs, tracked, strict=True)
        self._reach = [found.get(y, 0) if goes else 0 for y, goes in pairs]
        return self._reach

    def run_differentiable(self, call: FlatArguments, name: str) -> Any:
        """The result of a call, where tensors that a gradient may be asked for know what they are
        computed from; none of that is given away. `MISSED` where nobody can ask."""
        given = [*call.given, *[(c, False) for c in self.captured]]
        asking = sum(
            1 << i
            for i, (x, gone) in enumerate(given)
            if isinstance(x, LazyTensor) and x._requires_grad and not gone
        )
        asked = [bool(reached & asking) for reached in self._reached]
        if not any(asked):
            return native.MISSED
        arrays = call.arrays + self._around()
        nodes = [_operand(x, a) for (x, _), a in zip(given, arrays, strict=True)]
        jit_call = JitCall(self.graph, nodes, bind(self.graph.inputs, arrays))
        if jit_call.depth == DEEP:
            warnings.warn(_deep(name), HistoryWarning, stacklevel=5)
        made = []
        for k, (array, yes) in enumerate(zip(resident(self.program)(arrays), asked, strict=True)):
            if yes:
                node = leaf(array)
                node.prim.grad_fn = GradFn(jit_call, k)  # type: ignore[attr-defined]
                made.append(LazyTensor.handle_class(node, True))
            else:
                made.append(LazyTensor.handle_class.dehydrated(array))
        return self.build(made)

    def _around(self) -> list[Array]:
        """The values of what the function takes from around it."""
        return [value_for(self.program, c) for c in self.captured]

    def run(self, call: FlatArguments, gone: Donated) -> Any:
        """The result of a call, whose donated tensors are gone afterwards, unless it fails."""
        return self.run_with(call.arrays, given_away(call), gone)

    def run_with(
        self, arrays: list[Any], handles: Sequence[tuple[int, LazyTensor]], gone: Any
    ) -> Any:
        """The same, of its arrays, and the tensors that are donated with the numbers of theirs."""
        arrays += self._around()
        try:
            for _, h in handles:  # first, so that nothing but the call has their arrays
                h.donate(gone)
            run = getattr(self.program, "consume", None) or resident(self.program)
            results = run(arrays)
        except BaseException:
            if arrays:  # not interrupted too late, see `Executable.enter`
                for i, h in handles:
                    h.give_back(arrays[i])
            raise
        return self.build([LazyTensor.handle_class.dehydrated(array) for array in results])


def value_for(program: Program, x: Any) -> Any:
    """The value of a captured tensor, or the array that it is, as a program takes it."""
    if not isinstance(x, LazyTensor):
        return x
    return x.value_there() if resides(program) else x.value()


def _operand(x: Any, array: Array) -> Node:
    """The node of an argument. Of what is computed by compiled functions that is a leaf, which
    knows the rest."""
    if not isinstance(x, LazyTensor):
        return leaf(np.array(array) if isinstance(x, np.ndarray) else array)
    if x._trace_node is None and grad_fn_of(x.leaf_or_node) is not None:
        return x.leaf_or_node
    return x.node


def _deep(name: str) -> str:
    return (
        f"jit: the results of {name}, which require gradients, have been its arguments {DEEP} "
        "times in a row; what each call was given is kept in memory, for a backward() through all "
        f"of them. If none is meant, name these arguments in donate, or call {name} inside "
        "rg.no_grad()"
    )


def at_hand(leaves: Sequence[Any], untracked: bool) -> bool:
    """Have tensors hold their arrays where native code looks for them; whether some did not that
    could. Those that require gradients do if the call is not tracked."""
    found = False
    for x in leaves:
        if isinstance(x, LazyTensor) and not x.has_array():
            found |= x.keep_array(untracked)
    return found


def given_away(call: FlatArguments) -> list[tuple[int, LazyTensor]]:
    """The donated tensors, with the numbers of their arrays. Those that may want a gradient stay,
    and what is no tensor is the user's: the call gets a copy."""
    handles = []
    for i, x in call.donors:
        if not isinstance(x, LazyTensor):
            call.arrays[i] = np.array(call.arrays[i])
        elif x.keep_array() or x.is_on_device():
            handles.append((i, x))
    return handles


class CacheEntry:
    """A program at known sizes, as a site calls it."""

    __slots__ = ("_donors", "_joins", "_shaped", "record", "traced")

    def __init__(self, traced: CompiledFunction, shaped: Any, site: CallSite) -> None:
        joins = not is_plain(traced.structure)
        listed = pytree.flatten([0] * len(traced.fixed))[1] if joins else traced.structure
        puts, root, classes = unflatten_program(listed, traced.fixed, COMPUTED)
        donors = [i for i, _ in site.donors]
        self.traced = traced
        self._shaped, self._joins, self._donors = shaped, joins, site.donors
        self.record = CallRecord(
            shaped, site.numbers, donors, traced.captured, puts, root, self, joins, classes
        )

    def finish(self, pending: Any, arguments: Any) -> Any:
        """What is left to do of a call: the program is run, and the result put together. Where a
        check fails, nothing was done: `MISSED`. An exception leaves things as they were, too."""
        _, result, *rest = pending
        if rest and not self._run(rest[0], rest[1], arguments):
            return native.MISSED
        return self.traced.join(result) if self._joins else result

    def _run(self, addresses: bytes, arrays: Sequence[Array], arguments: Any) -> bool:
        """Whether the program ran; otherwise what was donated is given back."""
        failed, held = 1, list(arrays)
        try:
            failed = self._shaped.run(addresses, held)
        finally:
            if failed and held:  # not interrupted too late, see `Executable.enter`
                leaves = pytree.flatten(arguments)[0]
                for i, at in self._donors:
                    if isinstance(leaves[at], LazyTensor):
                        leaves[at].give_back(arrays[i])
        return not failed


class CallSite:
    """Calls with arguments of one structure and kinds of leaves.

    `serve(args, kwargs, gone, untracked)` is a function for whole calls, see
    `runtime/call_route.py`: what it returns is `MISSED` where it does not know the program, and may
    be pending, see `CacheEntry.finish`.
    """

    __slots__ = (
        "_entries", "_met", "_route", "_structure", "_tasks", "_vary", "donors", "numbers", "serve",
    )  # fmt: skip

    def __init__(self, call: FlatArguments, kinds: Sequence[Any]) -> None:
        self._structure = call.structure
        leaves = list(zip(kinds, call.donated, strict=True))
        # What has to be done in Python before: position, class, function. See `prepared`.
        self._tasks = [
            (at, k, f)
            for at, (k, gone) in enumerate(leaves)
            if (f := prepared(k, gone)) is not None
        ]
        for at, _, f in self._tasks:
            leaves[at] = (np.ndarray, False) if f is np.array else (LazyTensor.handle_class, True)
        given = [(at, *x) for at, x in enumerate(leaves) if not isinstance(x[0], Fixed)]
        # Which inputs come as numbers, and which are donated, with the position among the leaves.
        self.numbers = {i for i, (_, kind, _) in enumerate(given) if kind in NUMBERS}
        self.donors = [
            (i, at) for i, (at, _, gone) in enumerate(given) if gone and i not in self.numbers
        ]
        if not self._tasks and is_plain(call.structure):
            self._route = CallRoute(flatten_program(call.structure, leaves))
            self.serve = self._route.serve
        else:
            self._route = CallRoute(taking_leaves(leaves))
            self.serve = self._prepare
        self._entries: dict[tuple[Any, ...], CacheEntry] = {}  # by all shapes
        self._met: dict[tuple[Any, ...], None] = {}  # shapes that came once
        self._vary: set[int] = set()  # arrays whose shapes are not always the same

    def _prepare(self, args: Any, kwargs: Any, gone: Any, untracked: bool = False) -> Any:
        """`serve` for trees that native code does not walk, and leaves that it does not know."""
        leaves, structure = pytree.flatten((args, kwargs))
        if structure != self._structure:
            return native.MISSED
        for at, kind, f in self._tasks:
            if type(leaves[at]) is not kind:
                return native.MISSED
            leaves[at] = f(leaves[at])
        return self._route.serve(leaves, None, gone, untracked)

    def learn(self, traced: CompiledFunction, call: FlatArguments) -> None:
        """Remember the program of a call."""
        program = traced.program
        if not isinstance(program, Executable):
            return
        shapes = tuple([a.shape for a in call.arrays])
        known = self._entries.get(shapes)
        if known is not None and known.traced is traced:
            return
        if len(self._entries) >= SEVERAL and shapes not in self._met:
            if len(self._met) >= SHAPES:
                self._met.clear()
            self._met[shapes] = None
            return
        shaped = program.shaped_for([*call.arrays, *traced.captured])
        flags = [a.flags for a in traced.captured]
        if not shaped.plain or not all(f.c_contiguous and f.aligned for f in flags):
            return
        if len(self._entries) >= SHAPES:
            self._entries = {}
        self._entries[shapes] = CacheEntry(traced, shaped, self)
        records = [e.record for e in self._entries.values()]
        first = next(iter(self._entries))
        vary = {i for i, (a, b) in enumerate(zip(first, shapes, strict=True)) if a != b}
        if len(records) == 1 or not vary <= self._vary:
            self._vary = vary if len(records) == 1 else self._vary | vary
            for record in records:
                record.arrange(self._vary)
        else:
            self._entries[shapes].record.arrange(self._vary)
        self._route.offer(records)
