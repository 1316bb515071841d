"""`TraceProgram`: the compiled program of a trace buffer, with where its arguments are found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.eager.program_cache import Needed, hoist_scalars, program_for, required_nodes
from retrograd.eager.trace_cache import TraceNode, TraceSite
from retrograd.errors import IndexRangeError, LinAlgError
from retrograd.ir import Node, TensorType, Trait, product
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.reduce import ReduceSum
from retrograd.runtime.backend import Array, Program
from retrograd.runtime.device_array import adopted, resident, resides
from retrograd.runtime.executors.background_compiler import BEHIND
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.runtime.executors.tiered import Patience, TieredProgram
from retrograd.runtime.paired_program import on_real
from retrograd.tuning import TUNING


class TraceProgram:
    """A program for a buffer: where its arguments are, and what it computes.

    `ends` are nodes over slots of the site; `known` are nodes whose values are at hand, with keys
    under which the caller finds them. `patience` says when the program is compiled.
    """

    __slots__ = (
        "brief", "constants", "done", "ends", "free", "known", "program", "scalars", "slots",
        "what",
    )  # fmt: skip

    def __init__(
        self,
        site: TraceSite,
        ends: Sequence[Node],
        known: Mapping[Node, Any],
        patience: Patience = Patience.NODES,
    ) -> None:
        leaves = {f.node: f for f in list(site.leaves.values())}
        self.ends = list(ends)
        what = self.what = required_nodes(ends, lambda n: n if n in known else leaves.get(n))
        what.inputs.extend(_sizing(what, known))
        free = site.numbers
        self.slots = [leaves[x].slot for x in what.inputs if x not in known]
        self.known = [known[x] for x in what.inputs if x in known]
        what.inputs.sort(key=lambda x: x in known)  # arrays of slots first; the sort is stable
        self.program: Program
        self.program, self.scalars = program_for(what, self.ends, free, patience)
        scalars = self.scalars
        # Numbers: those of the recording are looked at in every run, the others never change.
        self.free: dict[np.dtype[Any], list[tuple[int, int]]] = {}
        for i, c in enumerate(scalars):
            if c in free:
                self.free.setdefault(c.dtype.dtype, []).append((i, site.numbers[c]))
        self.constants: list[Array] = [c.prim.value for c in scalars]  # type: ignore[attr-defined]
        self.done: tuple[dict[int, float], list[Array]] = {}, self.constants
        self.brief: Any = None  # the same for C to run: see immediate/brief.py

    def compile(self) -> None:
        """Make native code of what would be interpreted at first."""
        if isinstance(self.program, TieredProgram):
            with BEHIND.held():
                self.program.compile()

    def run(
        self, arrays: Sequence[Node], known: Mapping[Any, Array], numbers: dict[int, float]
    ) -> list[Array]:
        """The values of the ends, given what is in the slots of a buffer."""
        prims: list[Any] = [arrays[k].prim for k in self.slots]
        if resides(self.program):
            for prim in prims:
                if not prim.shared:  # nobody edits it: a device may keep a copy
                    prim.array = adopted(prim.array)
        given = [prim.array for prim in prims]
        given += [known[key] for key in self.known]
        given += self._numbers(numbers)
        try:
            return resident(self.program)(given)
        except (IndexRangeError, LinAlgError):
            # The program may have been made for another line of the user's that does the same.
            graph = hoist_scalars(self.what.inputs, self.scalars, self.ends)
            on_real(graph, OpByOpExecutor)(given)
            raise

    def call(
        self, values: Sequence[Any], numbers: dict[int, float], for_now: bool = False
    ) -> list[Array]:
        """The same, where `known` are positions in a list of values, and all that is given;
        `for_now` where it soon will be part of another program."""
        given = self.arguments(values, numbers)
        if for_now and isinstance(self.program, TieredProgram):
            return self.program.for_now(given)
        return resident(self.program)(given)

    def arguments(self, values: Sequence[Any], numbers: dict[int, float]) -> list[Array]:
        """What the program takes of these."""
        given = [values[k] for k in self.known]
        if self.scalars:
            given += self._numbers(numbers)
        return given

    def _numbers(self, given: dict[int, float]) -> list[Array]:
        """The arguments that are numbers. Threads that record the same run one plan, each with
        numbers of its own: what is remembered is replaced as a whole, and looked at once."""
        done, arguments = self.done
        if done != given:
            now, arguments = given.copy(), list(arguments)
            for dtype, at in self.free.items():
                with np.errstate(all="ignore"):  # at once: one by one takes as long as the program
                    row = np.array([now[k] for _, k in at], np.float64).astype(dtype)
                for j, (i, _) in enumerate(at):
                    arguments[i] = row[j, ...]
            self.done = now, arguments
        return arguments


def _sizing(what: Needed, known: Collection[Node]) -> list[Node]:
    """What is not needed itself, but says what a name of a size that is needed stands for."""
    names = {name for n in what.order for name in (*n.type.dim_names, *n.prim.dim_names)}
    if not names:
        return []
    names -= {d for x in what.inputs for d in map(str, x.type.shape)}
    more = []
    for x in known:
        found = names.intersection(map(str, x.type.shape)) if names else ()
        if found and x not in what.inputs:
            more.append(x)
            names -= found
    return more


def co_evaluated(
    wanted: Sequence[TraceNode],
    alive: Iterable[TraceNode],
    known: Mapping[Node, Any],
    site: TraceSite,
) -> list[TraceNode]:
    """What is computed when some trace nodes are wanted, of those that somebody holds: what is on
    the way, the loss a gradient came from and the gradients of a loss, and what takes little more:
    next to nothing, as a running total, or, computed from that, a small part of its work, as the
    running statistics of a network. Else these would grow while nobody looks, or have what they are
    computed from computed twice."""
    leaves = {f.node: f for f in list(site.leaves.values())}

    def at_hand(node: Node) -> Any:
        return known.get(node) or leaves.get(node)

    outputs = dict.fromkeys(wanted)
    alive = list(alive)
    while True:
        on_the_way = set(required_nodes([f.node for f in outputs], at_hand).order)
        losses = {f.loss for f in outputs}
        new = [
            f
            for f in alive
            if f not in outputs
            and at_hand(f.node) is None
            and (f.node in on_the_way or f in losses or f.loss in outputs)
        ]
        if not new:
            break
        outputs |= dict.fromkeys(new)
    left = sum([_work(n) for n in on_the_way]) // TUNING.along_ratio
    for f in alive:
        if f not in outputs and at_hand(f.node) is None:
            more = _more(f.node, on_the_way, at_hand)
            if more is None:
                continue
            if len(more) > LITTLE or not all(_is_little(n) for n in more):
                work = sum([_work(n) for n in more])
                from_others = any(x.inputs and x in on_the_way for n in more for x in n.inputs)
                if work > left or not from_others or not all(_is_plain(n) for n in more):
                    continue
                left -= work
            on_the_way.update(more)
            outputs[f] = None
    return list(outputs)


LITTLE = 4  # operations that are computed along, if they are small


def _more(node: Node, on_the_way: set[Node], at_hand: Callable[[Node], Any]) -> list[Node] | None:
    """What else would have to be computed for a node; None if it is more than a little."""
    todo, seen = [node], {node}
    for n in todo:
        if Trait.INPUT in n.prim.traits or len(todo) > TUNING.along_nodes:
            return None
        for x in n.inputs:
            if x not in seen and x not in on_the_way and at_hand(x) is None:
                seen.add(x)
                todo.append(x)
    return todo


def _work(node: Node) -> int:
    """Elements that a node goes through at least, where they are known."""
    types = [x.type for x in (node, *node.inputs)]
    sizes = [product(t.shape) for t in types if isinstance(t, TensorType)]
    return max([n for n in sizes if isinstance(n, int)], default=0)


def _is_plain(node: Node) -> bool:
    """Whether a node cannot fail, and takes about as long as to go through its elements."""
    traits = node.prim.traits
    plain = Trait.VIEW in traits or Trait.IDENTITY in traits or Trait.CONSTANT in traits
    known = all(isinstance(x.type, TensorType) and x.type.is_static for x in (node, *node.inputs))
    return known and (plain or node.op in ELEMENTWISE or isinstance(node.prim, ReduceSum))


def _is_little(node: Node) -> bool:
    """Whether a node takes next to no time, and cannot fail."""
    sizes = [product(x.shape) for x in (node, *node.inputs)]
    small = all(isinstance(n, int) and n <= 64 for n in sizes)
    return small and (node.op in ELEMENTWISE or Trait.CONSTANT in node.prim.traits)
