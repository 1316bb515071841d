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
from retrograd.eager.immediate.size_pattern import Shapes, SizePattern
from retrograd.eager.immediate_base import CallKernel, compiled
from retrograd.eager.modes import current_backend
from retrograd.eager.program_cache import ANY_NUMBER, LOCK, is_argument
from retrograd.eager.trace_cache import Slot, TraceNode, TraceSite, kept_for_gradient
from retrograd.eager.trace_program import TraceProgram
from retrograd.eager.weak_types import is_weak
from retrograd.errors import RetrogradError
from retrograd.gc_paused import gc_paused
from retrograd.ir import (
    Dim,
    DType,
    Graph,
    Node,
    Provenance,
    TensorType,
    Trait,
    evaluate,
    full,
    made_by,
    product,
    provenance,
    reachable,
    substitute,
)
from retrograd.ops.assume import Assume
from retrograd.ops.leaf import input_node
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.executors.tiered import Patience, node_cost
from retrograd.tuning import TUNING

OUTPUTS = compiled.OUTPUTS if compiled is not None else 0  # of a call that C makes


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


class BackwardPlan(NamedTuple):
    """Where the gradients of operands come from: some are values at hand, by operand and number,
    the others what the program computes."""

    passed: list[tuple[int, int]]
    computed: list[int]
    program: TraceProgram | None


class CallKind:
    """Calls of a function on operands of these types: what they compute, and the programs."""

    __slots__ = (
        "_backward", "_forward", "_inside", "arguments", "handed_over", "inner", "interior",
        "is_sized", "kept", "kernel", "leaves", "merged", "multiplies", "outputs", "pattern",
        "pullbacks", "result", "sample", "site", "tensors", "weight",
    )  # fmt: skip

    kernel: CallKernel
    pattern: SizePattern
    result: Any
    multiplies: bool  # whether it takes long, and is of an expensive operation
    weight: float  # the time of a call for an element of the first operand, in nodes
    sample: Mapping[str, int]  # sizes of a call of the kind

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
        self.pullbacks: dict[Any, Any] = {}  # see pullback_kind.py
        self.merged: dict[tuple[int, ...], CallKind | None] = {}

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
        for these sizes, as where a size inside is 0 or 1."""
        for node in reachable([y.node for y in self.outputs]):
            if isinstance(node.prim, Assume):
                raise Unfit
            if isinstance(node.type, TensorType):
                types = [x.type for x in node.inputs]
                prim = node.prim
                if prim.needs_sizes(node.type, *types):
                    raise Unfit
                if prim.gradient_needs_sizes(node.type, *types):
                    raise Unfit
                self.inner |= {d for d in node.shape if isinstance(d, Dim) and str(d) not in sizes}
        if not self.serves(sizes):
            raise Unfit

    def weigh(self, sizes: Mapping[str, int], elements: int | Dim) -> None:
        """Say how long calls take, and for what, by those of these sizes: so many elements in the
        first operand."""
        computed = [x for x in reachable([y.node for y in self.outputs]) if x.inputs]
        nodes = sum([node_cost(x, sizes) - 1 for x in computed])
        self.weight, self.sample = nodes / max(int(elements), 1), sizes
        products = any(Trait.EXPENSIVE in x.prim.traits for x in computed)
        self.multiplies = nodes >= TUNING.weight_nodes and products
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
                found = self._forward[key] = TraceProgram(
                    self.site, ends, known, Patience.COMPILING
                )
        return found

    def _kept(self) -> list[TraceNode]:
        """What is computed between operands and outputs, takes long, and is part of the
        gradient."""
        ends = [y.node for y in self.outputs if y.floating]
        at_hand = {x.node for x in [*self.outputs, *self.leaves]}
        inside = set(reachable([y.node for y in self.outputs]))
        wanted = [x.node for x in self.leaves if x.floating]
        most = max([self._elements(x) for x in at_hand])
        found = kept_for_gradient(ends, wanted, inside, at_hand)
        return [
            self.site.trace_node(x)
            for x in found
            if self._elements(x) <= TUNING.interpreted_growth * most  # not scores of attention
        ]

    def _elements(self, x: Node) -> int:
        """How many there are of a node, at the sizes that the kind was made for."""
        return evaluate(x.type.size, self.sample) if x.type.dim_names <= self.sample.keys() else 0

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
            with LOCK, gc_paused():
                found = self._backward[key] = self._plan(given, at, more)
        return found

    def nodes(
        self, values: Sequence[Any], arrays: Sequence[Array], numbers: Sequence[float]
    ) -> list[Node]:
        """The nodes of the results for operands that are nodes, of the sizes of arrays."""
        inputs = [x.node for x in self.leaves]
        free = {c: full(numbers[k], c.type) for c, k in self.site.numbers.items()}
        graph = Graph(inputs, substitute([y.node for y in self.results], free))
        at_hand = [(x, a) for x, a in zip(inputs, arrays, strict=False) if a is not None]
        graph = graph.bind(bind([x for x, _ in at_hand], [a for _, a in at_hand]))
        new = zip(graph.inputs, values, strict=False)
        return substitute(graph.outputs, {x: v for x, v in new if isinstance(v, Node)})

    def _plan(self, given: Sequence[int], at: Sequence[int], more: Sequence[bool]) -> BackwardPlan:
        starts, found = self.pulled(given, at, more)
        values = [x.node for x in [*self.leaves, *self.outputs, *self.kept]]
        known = {node: i for i, node in enumerate([*values, *starts])}
        passed = [(k, known[g]) for k, g in found.items() if g in known]
        made = {k: g for k, g in found.items() if g not in known}
        program = None
        if made:
            program = TraceProgram(self.site, list(made.values()), known, Patience.COMPILING)
        return BackwardPlan(passed, list(made), program)

    def pulled(
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


def _operand(site: TraceSite, k: int, type: TensorType) -> TraceNode:
    node = Node(Slot(type), (), type)
    made = site.leaves[k] = site.trace_nodes[node] = TraceNode(site, node, k)
    return made


def reach_of(y: TraceNode, tensors: int) -> int:
    """The operands that a gradient goes to from a result, as a mask."""
    if not y.floating:
        return 0
    return sum([1 << k for k in y.slots() if 0 <= k < min(tensors, 60)])


def kernel_of(kind: CallKind) -> CallKernel:
    """What C knows of a kind: `CallKernel` in accelerate/immediate.c."""
    tensors, pattern = len(kind.leaves), kind.pattern
    reach = [reach_of(y, tensors) for y in kind.outputs]
    inner = [polynomial(d, kind.names) for d in kind.inner]
    make, order = _structure(kind)
    if None in inner or pattern.names > 16:
        order = None
    floating = sum([1 << k for k, y in enumerate(kind.outputs) if y.floating and k < OUTPUTS])
    return CallKernel(
        kind, [e for row in pattern.entries for e in row], min(pattern.names, 16), tensors, reach,
        [] if None in inner else inner, floating, make, order, kind.weight,
    )  # fmt: skip


def _structure(kind: CallKind) -> tuple[Any, list[int] | None]:
    """What makes the result of a call of a tuple of tensors, None where it is one tensor; and which
    output each of these is, None where the result is something else."""
    result = kind.result
    if len(kind.outputs) > OUTPUTS:
        return None, None
    if isinstance(result, TraceNode):
        return None, [0] if kind.outputs == [result] else None
    if not isinstance(result, tuple) or any(x not in kind.outputs for x in result[1]):
        return None, None
    made, items = result
    return getattr(made, "_make", made), [kind.outputs.index(x) for x in items]


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
_WEIGHTS: dict[Any, set[Shapes]] = {}  # of products: shapes of weights that have kinds of their own


def kind_of(
    call: Any, dtypes: tuple[Any, ...], shapes: Shapes, arguments: Callable[[], Arguments],
    weights: Sequence[int] = (),
) -> CallKind | None:  # fmt: skip
    """The kind of a call; None where it has to be recorded to find out what is wrong with it.

    `call` is the function with its options and what stands in the places of operands, `weights`
    the operands that are parameters, whose sizes never change."""
    found = _BY_SHAPES.get((call, dtypes, shapes), _BY_SHAPES)
    if found is not _BY_SHAPES:
        return found  # type: ignore[return-value]
    with LOCK, gc_paused():
        found = _generalized(call, dtypes, shapes, arguments, weights)
        if len(_BY_SHAPES) >= TUNING.remembered_calls:
            _BY_SHAPES.clear()
            if len(_BY_CALL) >= TUNING.remembered_calls:
                _BY_CALL.clear()
                _SEEN.clear()
                _WEIGHTS.clear()
        _BY_SHAPES[call, dtypes, shapes] = found
    return found


def forget() -> None:
    """Forget all kinds: what Python numbers stand for has changed."""
    with LOCK:
        for table in (_BY_SHAPES, _BY_CALL, _SEEN, _WEIGHTS):
            table.clear()
    if compiled is not None:
        compiled.clear()


def _generalized(
    call: Any, dtypes: tuple[Any, ...], shapes: Shapes, arguments: Callable[[], Arguments],
    weights: Sequence[int],
) -> CallKind | None:  # fmt: skip
    """A kind that there is and serves these shapes, or a new one."""
    key: Any = (call, dtypes, tuple(map(len, shapes)))
    own = tuple([shapes[k] for k in weights])
    known = _WEIGHTS.get(key)
    if known is not None and own and (own in known or len(known) < TUNING.weight_shapes):
        known.add(own)
        key = (*key, own)
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
        except (RetrogradError, TypeError, ValueError, OverflowError, Unfit):
            continue  # OverflowError: a number beyond 64 bits is no size
        if pattern.names:  # others are found by their shapes
            kinds.append((pattern, kind))
        elif own and known is None and kind.multiplies:
            _WEIGHTS[key] = {own}
            _SEEN[*key, own] = shapes, vary
        return kind
    return None
