"""Call kinds: what calls of a library function on operands of one pattern of sizes share.

A call that runs at once needs a program, and if a gradient may be asked for, another one for the
way back. Both serve all calls of a kind: the same function with the same options, on operands of
the same dtypes and of one `SizePattern`. Sizes that were seen to change have names; the others are
known to the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from retrograd.autodiff import pullback
from retrograd.eager.immediate_base import CallKernel
from retrograd.eager.modes import current_backend
from retrograd.eager.program_cache import ANY_NUMBER, LOCK, is_argument
from retrograd.eager.trace_cache import Slot, TraceNode, TraceSite, kept_for_gradient
from retrograd.eager.trace_program import TraceProgram
from retrograd.eager.weak_types import is_weak
from retrograd.errors import RetrogradError
from retrograd.ir import (
    Dim,
    DType,
    Graph,
    Node,
    Provenance,
    TensorType,
    as_dtype,
    evaluate,
    made_by,
    product,
    provenance,
    reachable,
    substitute,
)
from retrograd.ops.assume import Assume
from retrograd.ops.fft import Fft
from retrograd.ops.leaf import input_node
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.executors.tiered import node_cost
from retrograd.tuning import TUNING

Shapes = tuple[tuple[int, ...], ...]


class Unfit(Exception):
    """An argument that cannot be looked up by its value, or sizes that cannot have names."""


PLAIN = frozenset((int, bool, str, type(None), EllipsisType))


def frozen(a: Any) -> Any:
    """A value as part of a key: equal only to values that mean the same."""
    kind = a.__class__
    if kind in PLAIN:
        return kind, a
    if kind is float or kind is complex or kind is np.float64:
        return kind, repr(a)
    if kind is tuple or kind is list:
        return (kind, *[frozen(x) for x in a])
    if kind is slice:
        return kind, frozen(a.start), frozen(a.stop), frozen(a.step)
    if isinstance(a, DType | Dim | np.dtype | type):
        return a
    raise Unfit


class OperandIndex:
    """In place of a tensor among the arguments of a call: its number."""

    __slots__ = ("k",)

    def __init__(self, k: int) -> None:
        self.k = k


def filled(a: Any, values: Sequence[Any]) -> Any:
    """An argument with values in the places of operands."""
    kind = a.__class__
    if kind is OperandIndex:
        return values[a.k]
    if kind is list or kind is tuple:
        return kind([filled(x, values) for x in a])
    return a


class Arguments:
    """The arguments of a call, with operands in the places of tensors, then of whole numbers that
    may be sizes; the last operand is the number next to a tensor, where the program takes it as it
    comes (`free`)."""

    __slots__ = ("args", "f", "free", "kwargs", "which")
    is_traced = False  # whether the function is one on tensors, which is traced

    def __init__(
        self, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], free: bool = False
    ) -> None:
        self.f, self.args, self.kwargs, self.free = f, args, kwargs, free
        self.which: Sequence[int] | None = None  # tensor of each operand, where some are the same

    def call(self, values: Sequence[Any]) -> Any:
        """What the function makes of these operands."""
        if self.which is not None:
            values = [*[values[k] for k in self.which], *values[max(self.which) + 1 :]]
        args = [filled(a, values) for a in self.args]
        return self.f(*args, **{name: filled(a, values) for name, a in self.kwargs.items()})


# In a pattern, the place of a size that is made of others: ANY in accelerate/immediate.c.
ANY = -(1 << 62)


class SizePattern:
    """Shapes of operands, with a number in place of each size that changes."""

    __slots__ = ("entries", "names")

    def __init__(self, entries: list[list[int]], names: int) -> None:
        self.entries = entries  # a size, or -1 - the number of a name, or ANY
        self.names = names

    @classmethod
    def of(cls, shapes: Shapes, vary: Sequence[Sequence[bool]]) -> SizePattern:
        """The pattern of shapes of which some sizes change: equal sizes have the same number, in
        the order of their first use. 0 and 1 have none: axes of size 1 are broadcast."""
        ids: dict[int, int] = {}
        entries = [
            [
                -1 - ids.setdefault(n, len(ids)) if yes and n > 1 else n
                for n, yes in zip(shape, changes, strict=True)
            ]
            for shape, changes in zip(shapes, vary, strict=True)
        ]
        return cls(entries, len(ids))

    def then(self, types: Sequence[TensorType], at: int) -> SizePattern:
        """The same with the shapes of types, in the names of this one, before operand `at`."""
        names = {Dim(f"n{i}"): -1 - i for i in range(self.names)}
        new = [
            [names.get(d, ANY) if isinstance(d, Dim) else int(d) for d in t.shape] for t in types
        ]
        return SizePattern([*self.entries[:at], *new, *self.entries[at:]], self.names)

    def fits(self, shapes: Shapes) -> bool:
        """Whether shapes of these ranks follow it."""
        sizes = [0] * self.names
        for shape, entries in zip(shapes, self.entries, strict=True):
            for n, e in zip(shape, entries, strict=True):
                if e >= 0:
                    if n != e:
                        return False
                elif e == ANY:
                    continue
                elif sizes[-1 - e] == 0:
                    if n < 2:
                        return False
                    sizes[-1 - e] = n
                elif sizes[-1 - e] != n:
                    return False
        return True

    def sizes(self, shapes: Shapes) -> dict[str, int]:
        """What the names stand for in shapes that follow it."""
        return {
            f"n{-1 - e}": n
            for shape, entries in zip(shapes, self.entries, strict=True)
            for n, e in zip(shape, entries, strict=True)
            if ANY < e < 0
        }

    def types(self, dtypes: Sequence[Any]) -> list[TensorType]:
        """The types of operands that follow it, those without a dtype of bools."""
        dims = [Dim(f"n{i}") for i in range(self.names)]
        missing = len(self.entries) - len(dtypes)
        return [
            TensorType(as_dtype(dtype), tuple([e if e >= 0 else dims[-1 - e] for e in entries]))
            for dtype, entries in zip([*dtypes, *[np.bool_] * missing], self.entries, strict=True)
        ]


class BackwardPlan(NamedTuple):
    """Where the gradients of operands come from: some are values at hand, by operand and number,
    the others what the program computes."""

    passed: list[tuple[int, int]]
    computed: list[int]
    program: TraceProgram | None


class GraphArguments(Arguments):
    """The arguments of calls of which there is a graph alone."""

    __slots__ = ()
    is_traced = True

    def __init__(self) -> None:
        super().__init__(_no_function, (), {})


def _no_function(*values: Any) -> Any:
    """In the place of a function that nobody calls."""
    raise NotImplementedError


class PullbackKind(NamedTuple):
    """The gradient of a call as a call: its kind, which outputs are operands of it, behind those of
    the call and before the cotangents, and what is not computed but handed on."""

    kind: CallKind
    used: tuple[int, ...]
    plan: BackwardPlan


class CallKind:
    """Calls of a function on operands of these types: what they compute, and the programs."""

    __slots__ = (
        "_backward", "_forward", "_inside", "_pullbacks", "arguments", "handed_over", "inner",
        "interior", "is_sized", "kept", "kernel", "leaves", "outputs", "pattern", "result", "site", "tensors", "weight",
    )  # fmt: skip

    kernel: CallKernel
    pattern: SizePattern
    result: Any
    weight: float  # the time of a call for an element of the first operand, in nodes

    def __init__(
        self, arguments: Arguments, pattern: SizePattern, types: Sequence[TensorType], tensors: int
    ) -> None:
        self.pattern = pattern
        self.site = TraceSite()
        self.arguments, self.tensors = arguments, tensors
        self.inner: set[Dim] = set()  # sizes of what is computed, but for names
        self.handed_over: set[tuple[int, int, int]] = set()  # ways back that C knows
        self.leaves = [_operand(self.site, k, t) for k, t in enumerate(types)]
        # Whether whole numbers have names, which arrays of as many elements stand for.
        self.is_sized = any(not t.is_static for t in types[tensors:])
        self.outputs: list[TraceNode] = []  # that are computed
        self.kept: list[TraceNode] = []  # what else a gradient needs that takes long
        # What is between operands and outputs and is an operand of a pullback: more results, behind
        # the outputs, through which gradients go.
        self.interior: list[TraceNode] = []
        self._inside: dict[Any, TraceProgram] = {}
        self._forward: dict[tuple[str, bool], TraceProgram] = {}
        self._backward: dict[Any, BackwardPlan] = {}
        self._pullbacks: dict[Any, PullbackKind | None] = {}

    @classmethod
    def of(cls, arguments: Arguments, pattern: SizePattern, dtypes: Sequence[Any]) -> CallKind:
        """The kind of a call on operands of these dtypes, behind which there may be numbers."""
        tensors = len(dtypes)
        kind = cls(arguments, pattern, pattern.types(dtypes), tensors)
        with LOCK, made_by(Provenance(provenance().scope, None, None)):
            nodes: list[Any] = [x.node for x in kind.leaves[:tensors]]
            nodes += [x.type.shape[0] for x in kind.leaves[tensors:]]
            if arguments.free:
                nodes.append(ANY_NUMBER)
            kind.result = kind._entered(arguments.call(nodes))
            if arguments.free:
                kind._bind_number()
        return kind

    def _entered(self, result: Any) -> Any:
        """The structure of a result: a trace node for each tensor, pairs of a class and a list for
        tuples and lists."""
        if isinstance(result, tuple | list):
            return type(result), [self._entered(x) for x in result]
        if not isinstance(result, Node):
            return result
        if is_weak(result):
            raise Unfit
        found = self.site.trace_node(result)
        if found.slot < 0 and found not in self.outputs:
            self.outputs.append(found)
        return found

    def _bind_number(self) -> None:
        """Note which constant stands for the free number."""
        found = [n for y in self.outputs for n in y.node.inputs if is_argument(n)]
        if len(found) != 1:
            raise Unfit
        self.site.numbers[found[0]] = 0

    def check(self, sizes: Mapping[str, int]) -> None:
        """`Unfit` where it holds for some sizes only, or its bits would not be those of a program
        for these sizes: of Fourier transforms, and where a size inside is 0 or 1."""
        for node in reachable([y.node for y in self.outputs]):
            if isinstance(node.prim, Assume):
                raise Unfit
            if isinstance(node.prim, Fft) and isinstance(node.shape[node.prim.axis], Dim):
                raise Unfit
            if isinstance(node.type, TensorType):
                self.inner |= {d for d in node.shape if isinstance(d, Dim) and str(d) not in sizes}
        if not self.serves(sizes):
            raise Unfit

    def weigh(self, sizes: Mapping[str, int], elements: int) -> None:
        """Say how long calls take, by those of these sizes: so many elements in the first
        operand."""
        computed = [x for x in reachable([y.node for y in self.outputs]) if x.inputs]
        nodes = sum([node_cost(x, sizes) - 1 for x in computed])
        self.weight = nodes / max(elements, 1)
        self.kernel = kernel_of(self)

    def serves(self, sizes: Mapping[str, int]) -> bool:
        """Whether no size inside is 0 or 1."""
        return all(evaluate(d, sizes) > 1 for d in self.inner)

    @property
    def results(self) -> list[TraceNode]:
        """What a gradient may come from."""
        return [*self.outputs, *self.interior]

    @property
    def names(self) -> list[str]:
        """Sizes that have names."""
        return [f"n{i}" for i in range(self.pattern.names)]

    def forward(self, tracked: bool) -> TraceProgram:
        """The program of the outputs, and with `tracked` of what is kept for the way back."""
        key = current_backend(), tracked
        found = self._forward.get(key)
        if found is None:
            with LOCK:
                if tracked:
                    self.kept = self._kept()
                ends = [y.node for y in [*self.outputs, *(self.kept if tracked else ())]]
                known = {x.node: k for k, x in enumerate(self.leaves)}
                found = self._forward[key] = TraceProgram(self.site, ends, known)
        return found

    def _kept(self) -> list[TraceNode]:
        """What is computed between operands and outputs, takes long, and is part of the
        gradient."""
        ends = [y.node for y in self.outputs if y.floating]
        at_hand = {x.node for x in [*self.outputs, *self.leaves]}
        inside = set(reachable([y.node for y in self.outputs]))
        wanted = [x.node for x in self.leaves if x.floating]
        return [self.site.trace_node(x) for x in kept_for_gradient(ends, wanted, inside, at_hand)]

    def backward(
        self, given: tuple[int, ...], at: tuple[int, ...], more: tuple[bool, ...]
    ) -> BackwardPlan:
        """The gradient with respect to the operands `at`.

        The program takes, numbered one behind the other: operands, outputs and what is kept, the
        cotangents of the outputs `given`, and for those of `at` for which `more` says so the
        cotangent so far, to which is added."""
        key = current_backend(), given, at, more
        found = self._backward.get(key)
        if found is None:
            with LOCK:
                found = self._backward[key] = self._plan(given, at, more)
        return found

    def nodes(
        self, values: Sequence[Any], arrays: Sequence[Array], numbers: Sequence[float]
    ) -> list[Node]:
        """The nodes of the results for operands that are nodes, of the sizes of arrays."""
        inputs = [x.node for x in self.leaves]
        graph = Graph(inputs, [y.node for y in self.results])
        at_hand = [(x, a) for x, a in zip(inputs, arrays, strict=False) if a is not None]
        graph = graph.bind(bind([x for x, _ in at_hand], [a for _, a in at_hand]))
        new = zip(graph.inputs, values, strict=False)
        known = {x: v for x, v in new if isinstance(v, Node)}
        for c, k in self.site.numbers.items():
            known[c] = full(numbers[k], c.type)
        return substitute(graph.outputs, known)

    def _plan(self, given: Sequence[int], at: Sequence[int], more: Sequence[bool]) -> BackwardPlan:
        starts, found = self._pulled(given, at, more)
        values = [x.node for x in [*self.leaves, *self.outputs, *self.kept]]
        known = {node: i for i, node in enumerate([*values, *starts])}
        passed = [(k, known[g]) for k, g in found.items() if g in known]
        made = {k: g for k, g in found.items() if g not in known}
        program = TraceProgram(self.site, list(made.values()), known) if made else None
        return BackwardPlan(passed, list(made), program)

    def _pulled(
        self, given: Sequence[int], at: Sequence[int], more: Sequence[bool]
    ) -> tuple[list[Node], dict[int, Node]]:
        """Inputs for the cotangents of the outputs `given`, and for those so far of operands, and
        the gradients of operands."""
        wanted = [self.leaves[k].node for k in at]
        ends = [self.results[i].node for i in given]
        ends += [x for x, yes in zip(wanted, more, strict=True) if yes]
        starts = [input_node(y.type) for y in ends]
        parts = pullback(ends, starts, wanted)
        return starts, {k: g for k, g in zip(at, parts, strict=True) if g is not None}

    def pullback(
        self, given: tuple[int, ...], at: tuple[int, ...], more: tuple[bool, ...], shapes: Shapes
    ) -> PullbackKind | None:
        """What `backward` computes as a kind of calls of its own, through which a gradient goes;
        None where that hands on what is no operand of it. The shapes are those of operands."""
        key = given, at, more
        found = self._pullbacks.get(key, self)
        if found is self:
            with LOCK:
                found = self._pullbacks[key] = self._pullback_kind(given, at, more)
                if found is not None:
                    found.kind.weigh(self.pattern.sizes(shapes), product(shapes[0]))
        return found  # type: ignore[return-value]

    def _pullback_kind(
        self, given: Sequence[int], at: Sequence[int], more: Sequence[bool]
    ) -> PullbackKind | None:
        starts, found = self._pulled(given, at, more)
        plan = self.backward(tuple(given), tuple(at), tuple(more))
        tensors, behind = self.tensors, len([*self.leaves, *self.outputs, *self.kept])
        if any(tensors <= where < behind for _, where in plan.passed):
            return None
        made = [found[k] for k in plan.computed]
        used = self._results_in(made)
        leaves = [x.node for x in self.leaves]
        new = [*[self.results[i].node for i in used], *starts]
        operands = [*leaves[:tensors], *new, *leaves[tensors:]]
        pattern = self.pattern.then([x.type for x in new], tensors)
        kind = CallKind(
            GraphArguments(), pattern, [x.type for x in operands], tensors + len(new)
        )  # fmt: skip
        given_as = {x: y.node for x, y in zip(operands, kind.leaves, strict=True)}
        kind.computes(made, given_as, self)
        return PullbackKind(kind, used, plan)

    def _results_in(self, ends: Sequence[Node]) -> tuple[int, ...]:
        """The results that nodes of a gradient are computed from, where they meet what is computed
        here. What is inside is a result from then on: what comes of it and what goes on from there
        meet in it, as in one program."""
        leaves = {x.node for x in self.leaves}
        inside = set(leaves)
        for x in reachable([y.node for y in self.results], stop=leaves):
            if not inside.isdisjoint(x.inputs):
                inside.add(x)
        found = [
            self.site.trace_node(x)
            for x in reachable(ends, stop=inside)
            if x in inside and x not in leaves
        ]
        known = set(self.results)
        self.interior = [*self.interior, *[x for x in found if x not in known]]
        if self.interior:
            self.kernel.extend([_reach(y, len(self.leaves)) for y in self.interior])
        return tuple(sorted(map(self.results.index, found)))

    def inside(self, which: tuple[int, ...]) -> TraceProgram:
        """The program of results that are inside; it takes operands, outputs and what is kept."""
        key = current_backend(), which
        found = self._inside.get(key)
        if found is None:
            with LOCK:
                values = [x.node for x in [*self.leaves, *self.outputs, *self.kept]]
                known = {node: i for i, node in enumerate(values)}
                ends = [self.results[i].node for i in which]
                found = self._inside[key] = TraceProgram(self.site, ends, known)
        return found

    def merged(self, which: tuple[int, ...]) -> CallKind:
        """The kind of calls some of whose tensors are the same, once each: `which` has for each the
        number of the first that is the same."""
        key = ("merged", *which)
        found = self._pullbacks.get(key)
        if found is None:
            with LOCK:
                found = self._pullbacks[key] = self._merged_kind(which)
        return found  # type: ignore[no-any-return]

    def _merged_kind(self, which: Sequence[int]) -> CallKind:
        at = [k for k, first in enumerate(which) if k == first]
        own = [*at, *range(len(which), len(self.leaves))]
        pattern = SizePattern([self.pattern.entries[k] for k in own], self.pattern.names)
        kind = CallKind(
            GraphArguments(), pattern, [self.leaves[k].node.type for k in own], len(at)
        )  # fmt: skip
        new = {k: x.node for k, x in zip(own, kind.leaves, strict=True)}
        first = [*which, *own[len(at) :]]
        given_as = {x.node: new[k] for x, k in zip(self.leaves, first, strict=True)}
        kind.computes([y.node for y in self.outputs], given_as, self)
        kind.weight = self.weight
        kind.kernel = kernel_of(kind)
        return kind

    def computes(
        self, ends: Sequence[Node], given_as: Mapping[Node, Node], other: CallKind
    ) -> None:
        """Have the outputs be nodes of another kind, on the nodes of this one."""
        self.site.numbers, self.inner = other.site.numbers, other.inner
        self.outputs = [self.site.trace_node(y) for y in substitute(ends, given_as)]
        self.result = list, self.outputs


def _operand(site: TraceSite, k: int, type: TensorType) -> TraceNode:
    node = Node(Slot(type), (), type)
    made = site.leaves[k] = site.trace_nodes[node] = TraceNode(site, node, k)
    return made


def _reach(y: TraceNode, tensors: int) -> int:
    """The operands that a gradient goes to from a result, as a mask."""
    if not y.floating:
        return 0
    return sum([1 << k for k in y.slots() if 0 <= k < min(tensors, 60)])


def kernel_of(kind: CallKind) -> CallKernel:
    """What C knows of a kind: `CallKernel` in accelerate/immediate.c."""
    tensors, pattern = len(kind.leaves), kind.pattern
    reach = [_reach(y, tensors) for y in kind.outputs]
    inner = [polynomial(d, kind.names) for d in kind.inner]
    single = isinstance(kind.result, TraceNode) and kind.outputs == [kind.result]
    single = single and None not in inner and pattern.names <= 16
    floating = bool(kind.outputs) and kind.outputs[0].floating
    return CallKernel(
        kind, [e for row in pattern.entries for e in row], min(pattern.names, 16), tensors, reach,
        [] if None in inner else inner, floating, single, kind.weight,
    )  # fmt: skip


def polynomial(size: int | Dim, names: Sequence[str]) -> list[int] | None:
    """A size as C takes it: how many terms there are; of each the factor, how many powers there
    are, and of these the atoms and the exponents. An atom is the number of a name, or -1 and the
    two parts of a quotient. None where another name is in it."""
    if not isinstance(size, Dim):
        return [1, int(size), 0]
    found = [len(size.terms)]
    for monomial, factor in size.terms:
        found += [factor, len(monomial)]
        for atom, power in monomial:
            if isinstance(atom, str):
                if atom not in names:
                    return None
                found.append(names.index(atom))
            else:
                above, below = (polynomial(x, names) for x in (atom.numerator, atom.denominator))
                if above is None or below is None:
                    return None
                found += [-1, *above, *below]
            found.append(power)
    return found


# -- the kinds there are --------------------------------------------------------------------------
_BY_SHAPES: dict[Any, CallKind | None] = {}  # by call, dtypes and shapes; None: there is none
_BY_CALL: dict[Any, list[tuple[SizePattern, CallKind]]] = {}  # with names
_SEEN: dict[Any, tuple[Shapes, list[list[bool]]]] = {}  # the latest, which sizes changed


def kind_of(
    call: Any, dtypes: tuple[Any, ...], shapes: Shapes, arguments: Callable[[], Arguments]
) -> CallKind | None:
    """The kind of a call; None where it has to be recorded to find out what is wrong with it.

    `call` is the function with its options and what stands in the places of operands."""
    found = _BY_SHAPES.get((call, dtypes, shapes), _BY_SHAPES)
    if found is not _BY_SHAPES:
        return found  # type: ignore[return-value]
    with LOCK:
        found = _generalized(call, dtypes, shapes, arguments)
        if len(_BY_SHAPES) >= TUNING.remembered_calls:
            _BY_SHAPES.clear()
            if len(_BY_CALL) >= TUNING.remembered_calls:
                _BY_CALL.clear()
                _SEEN.clear()
        _BY_SHAPES[call, dtypes, shapes] = found
    return found


def _generalized(
    call: Any, dtypes: tuple[Any, ...], shapes: Shapes, arguments: Callable[[], Arguments]
) -> CallKind | None:
    """A kind that there is and serves these shapes, or a new one."""
    key = call, dtypes, tuple(map(len, shapes))
    kinds = _BY_CALL.setdefault(key, [])
    for pattern, kind in kinds:
        if pattern.fits(shapes) and kind.serves(pattern.sizes(shapes)):
            return kind
    last, vary = _SEEN.get(key, (shapes, [[False] * len(s) for s in shapes]))
    vary = [
        [yes or n != m for yes, n, m in zip(row, a, b, strict=True)]
        for row, a, b in zip(vary, shapes, last, strict=True)
    ]
    _SEEN[key] = shapes, vary
    for changes in (vary, [[False] * len(s) for s in shapes]):
        pattern = SizePattern.of(shapes, changes)
        try:
            kind = CallKind.of(arguments(), pattern, dtypes)
            if pattern.names:
                kind.check(pattern.sizes(shapes))
            kind.weigh(pattern.sizes(shapes), product(shapes[0]))
        except (RetrogradError, TypeError, ValueError, Unfit):
            continue
        if pattern.names:  # others are found by their shapes
            kinds.append((pattern, kind))
        return kind
    return None
