"""What `custom_vjp` and `custom_jvp` tell differentiation: users' rules on nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.autodiff import pullback
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import ConcreteLeaf, LazyTensor, leaf
from retrograd.eager.listeners import unlisted
from retrograd.eager.modes import recording_grad
from retrograd.errors import GradientError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Graph, Node, Trait, full, reachable, substitute
from retrograd.ops.complex import conj
from retrograd.ops.control.body import is_within_body
from retrograd.ops.control.custom import CustomRule
from retrograd.ops.leaf import constant, input_node
from retrograd.passes.loops import pruned
from retrograd.tracing.scope import wanted

Maybe = Sequence[Node | None]


@dataclass(frozen=True)
class ByValue:
    """Something that rules hold, compared by value where that is possible, else by identity."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByValue) or type(self.value) is not type(other.value):
            return False
        if self.value is other.value:
            return True
        return self._plain() and repr(self.value) == repr(other.value)  # -0.0 is not 0.0

    def _plain(self) -> bool:
        return isinstance(self.value, int | float | complex | str | bytes | type(None))

    def __hash__(self) -> int:
        return hash(self.value) if self._plain() else id(self.value)


class Operands:
    """The arguments of one call: what may move, taken apart into tensors and the rest."""

    def __init__(self, name: str, what: str, fixed: Sequence[Any], moving: tuple[Any, ...]) -> None:
        self.name, self.what = name, what
        self.fixed = tuple(fixed)
        self.leaves, self.structure = pytree.flatten(moving)
        self.at = tuple(i for i, x in enumerate(self.leaves) if isinstance(x, LazyTensor))
        self.tensors: list[LazyTensor] = [self.leaves[i] for i in self.at]
        self._nodes: list[Node] | None = None

    @property
    def nodes(self) -> list[Node]:
        if self._nodes is None:
            self._nodes = [x.node for x in self.tensors]
        return self._nodes

    def filled(self, nodes: Sequence[Node]) -> tuple[Any, ...]:
        """The arguments with other nodes for the tensors."""
        leaves = list(self.leaves)
        for i, n in zip(self.at, nodes, strict=True):
            leaves[i] = Tensor(n, n.dtype.is_inexact)
        found: tuple[Any, ...] = pytree.unflatten(self.structure, leaves)
        return found


def _zero(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return np.zeros_like(x)
    return type(x)(0) if isinstance(x, bool | int | float | complex | np.generic) else x


@dataclass(frozen=True)
class RuleStructure:
    """The structure of arguments or results, with what is no tensor in it."""

    structure: Any
    leaves: tuple[ByValue, ...]  # for tensors, None
    at: tuple[int, ...]

    @staticmethod
    def of(value: Any) -> RuleStructure:
        leaves, structure = pytree.flatten(value)
        at = tuple(i for i, x in enumerate(leaves) if isinstance(x, LazyTensor))
        rest = tuple(ByValue(None if isinstance(x, LazyTensor) else x) for x in leaves)
        return RuleStructure(structure, rest, at)

    def namer(self, of: str, i: int) -> Callable[[], str]:
        """What tells how a leaf is reached, if somebody asks."""
        return lambda: of + pytree.names(self.structure)[i]

    def still(self) -> RuleStructure:
        """The same with zeros for numbers and arrays that are no tensors: their tangents."""
        return replace(self, leaves=tuple(ByValue(_zero(x.value)) for x in self.leaves))

    def filled(self, nodes: Maybe, like: Sequence[Node]) -> Any:
        """The tree with tensors for nodes, and zeros where there is none."""
        leaves = [x.value for x in self.leaves]
        for i, n, y in zip(self.at, nodes, like, strict=True):
            node = full(0, y.type) if n is None else n
            leaves[i] = Tensor(node, node.dtype.is_inexact)
        return pytree.unflatten(self.structure, leaves)


def _checked(value: Any, like: Node, what: str, name: str, path: Callable[[], str]) -> Node:
    """A cotangent or tangent that a rule returned, as a node of the type it must have."""
    node = value.node if isinstance(value, LazyTensor) else None
    if node is None:
        try:
            node = leaf(as_array(value, like.dtype).copy())
        except (TypeError, ValueError) as error:
            raise GradientError(
                f"the rule of {name} gave {value!r:.60} as the {what} of {path()}: {error}"
            ) from None
    if node.type != like.type:
        raise GradientError(
            f"the rule of {name} gave a {what} of type {node.type} for {path()}, which is "
            f"{like.type}"
        )
    return node


def _without_arrays(parts: Maybe, given: Sequence[Node], name: str) -> Maybe:
    """What a rule gave. In the body of a loop or a branch, which has inputs of its own and no
    others, arrays that the rule takes from around it are constants; what a gradient is asked for
    is an error."""
    if not is_within_body():
        return parts
    new: dict[Node, Node] = {}
    for node in reachable([p for p in parts if p is not None], set(given)):
        if node in given:
            continue
        if wanted(node) or Trait.PLACEHOLDER in node.prim.traits:
            raise GradientError(
                f"the rule of {name}, in a loop or a branch, uses a value from around it that a "
                f"gradient is asked for, or that a transform maps or traces: {node.describe()}. "
                "Pass it to the function as an argument, or take its .detach()"
            )
        if isinstance(node.prim, ConcreteLeaf):
            new[node] = constant(np.array(node.prim.array))
    if not new:
        return parts
    found = iter(substitute([p for p in parts if p is not None], {n: n for n in given} | new))
    return [None if p is None else next(found) for p in parts]


def _linear(
    parts: Maybe, placeholders: Sequence[Node], given: Sequence[Node], name: str, what: str
) -> Maybe:
    """The results of a transposed rule, which do not depend on what it was transposed in, but on
    what is given. Loops and branches may be handed what they do not read."""
    own = set(placeholders)
    ends = [p for p in parts if p is not None]
    if not own.isdisjoint(reachable(ends, stop=given)):
        ends = list(pruned(_between([*placeholders, *given], ends)).outputs)
        found = iter(ends)
        parts = [None if p is None else next(found) for p in parts]
    if not own.isdisjoint(reachable(ends, stop=given)):
        raise GradientError(
            f"the rule of {name} is not linear in its {what}s, so it cannot be used in the other "
            "mode of differentiation; give a rule for that mode"
        )
    return parts


def _between(given: Sequence[Node], ends: Sequence[Node]) -> Graph:
    """The graph from what is given, and from what else stands for values, to the ends."""
    found = reachable(ends, stop=given)
    around = [n for n in found if Trait.PLACEHOLDER in n.prim.traits]
    return Graph(list(dict.fromkeys([*given, *around])), ends)


def _transposed(outputs: Maybe, start: Maybe, wrt: Sequence[Node]) -> list[Node | None]:
    """`A^T start` for outputs that are `A wrt`. Rules work with conjugates, `pullback` does not."""
    pairs = [
        (y, conj(g)) for y, g in zip(outputs, start, strict=True) if y is not None and g is not None
    ]
    found = pullback([y for y, _ in pairs], [g for _, g in pairs], wrt)
    return [None if g is None else conj(g) for g in found]


@dataclass(frozen=True)
class ReverseRule(CustomRule):
    """The rule of `custom_vjp`. Its operands are those of the function, then residuals."""

    bwd: Callable[..., Any]
    name: str
    fixed: tuple[ByValue, ...]
    arguments: RuleStructure
    out: RuleStructure
    residuals: Any  # structure
    # For each leaf of the residuals where it comes from: an operand, a result, or what it is.
    sources: tuple[tuple[str, Any], ...]
    implicit: bool = False

    @property
    def exact(self) -> bool:
        return self.implicit

    @staticmethod
    def of(
        bwd: Callable[..., Any], operands: Operands, out: Any, leaves: Sequence[Any],
        structure: Any, results: Sequence[Node], inner: Sequence[Node], implicit: bool = False,
    ) -> ReverseRule:  # fmt: skip
        place = {n: ("operand", i) for i, n in enumerate(inner)}
        place |= {n: ("result", i) for i, n in enumerate(results) if n not in place}
        sources: list[tuple[str, Any]] = []
        extra = 0
        for x in leaves:
            if not isinstance(x, LazyTensor):
                sources.append(("value", ByValue(x)))
                continue
            if x.node not in place:
                place[x.node] = "operand", len(inner) + extra
                extra += 1
            sources.append(place[x.node])
        return ReverseRule(
            bwd, operands.name, tuple(map(ByValue, operands.fixed)),
            RuleStructure(
                operands.structure,
                tuple(ByValue(None if i in operands.at else x)
                      for i, x in enumerate(operands.leaves)),
                operands.at),
            RuleStructure.of(out), structure, tuple(sources), implicit,
        )  # fmt: skip

    def saved(
        self, leaves: Sequence[Any], results: Sequence[Node], inner: Sequence[Node]
    ) -> list[Node]:
        """The residuals that are neither arguments nor results."""
        count = len(inner)
        found: dict[int, Node] = {}
        for x, (kind, i) in zip(leaves, self.sources, strict=True):
            if kind == "operand" and i >= count:
                found[i] = x.node
        return [found[i] for i in sorted(found)]

    def vjp(self, gs: Maybe, ys: Sequence[Node], xs: Sequence[Node]) -> Maybe:
        at = {"operand": xs, "result": ys}
        leaves = [
            i.value if kind == "value" else Tensor(at[kind][i], at[kind][i].dtype.is_inexact)
            for kind, i in self.sources
        ]
        residuals = pytree.unflatten(self.residuals, leaves)
        cotangent = self.out.filled([None if g is None else conj(g) for g in gs], ys)
        with recording_grad(), unlisted():  # it may be a rule within a loop
            found = self.bwd(*[x.value for x in self.fixed], residuals, cotangent)
        given = [*xs, *ys, *[g for g in gs if g is not None]]
        parts = _without_arrays(self._parts(found, xs), given, self.name)
        return [*parts, *[None] * (len(xs) - len(parts))]

    def _parts(self, found: Any, xs: Sequence[Node]) -> list[Node | None]:
        """What `bwd` returned, for each tensor among the arguments."""
        count = self.arguments.structure.num_children
        if not isinstance(found, tuple | list) or len(found) != count:
            given = len(found) if isinstance(found, tuple | list) else type(found).__name__
            raise GradientError(
                f"the bwd of {self.name} returns a tuple of {count} cotangents, one for each "
                f"argument (None: zero), not {given}"
            )
        return _leaves_of(found, self.arguments, xs, "cotangent", self.name)

    def jvp(self, tangents: Maybe, ys: Sequence[Node], xs: Sequence[Node]) -> Maybe:
        """By transposition: `bwd` is linear in the cotangent."""
        gs = [input_node(y.type) if y.dtype.is_inexact else None for y in ys]
        wrt = [g for g in gs if g is not None]
        count = len(self.arguments.at)
        parts = self.vjp(gs, ys, xs)[:count]
        given = [*xs, *ys, *[t for t in tangents if t is not None]]
        moved = _transposed(parts, tangents[:count], wrt)
        found = iter(_linear(moved, wrt, given, self.name, "cotangent"))
        return [None if g is None else next(found) for g in gs]


def _leaves_of(
    found: Sequence[Any], form: RuleStructure, like: Sequence[Node], what: str, name: str
) -> list[Node | None]:
    """What a rule returned for each tensor of a tree, whose parts may be None for zero."""
    place = {i: k for k, i in enumerate(form.at)}
    results: list[Node | None] = [None] * len(form.at)
    start = 0
    for number, (part, other) in enumerate(zip(found, form.structure.children(), strict=True)):
        first, start = start, start + other.num_leaves
        if part is None:
            continue
        leaves, structure = pytree.flatten(part)
        if structure != other:
            raise GradientError(
                f"the rule of {name} gave a {what} of the structure {structure} for argument "
                f"{number}, which has {other}"
            )
        for i, x in enumerate(leaves, start=first):
            if i in place and like[place[i]].dtype.is_inexact:
                where = form.namer("argument ", i)
                results[place[i]] = conj(_checked(x, like[place[i]], what, name, where))
    return results


@dataclass(frozen=True)
class ForwardRule(CustomRule):
    """The rule of `custom_jvp`."""

    rule: Callable[..., Any]
    name: str
    fixed: tuple[ByValue, ...]
    arguments: RuleStructure
    out: RuleStructure

    @staticmethod
    def of(rule: Callable[..., Any], operands: Operands, out: Any) -> ForwardRule:
        arguments = RuleStructure.of(operands.filled(operands.nodes))
        fixed = tuple(map(ByValue, operands.fixed))
        return ForwardRule(rule, operands.name, fixed, arguments, RuleStructure.of(out))

    def jvp(self, tangents: Maybe, ys: Sequence[Node], xs: Sequence[Node]) -> Maybe:
        primals = self.arguments.filled(xs, xs)
        moving = self.arguments.still().filled(tangents, xs)
        with recording_grad(), unlisted():
            found = self.rule(*[x.value for x in self.fixed], primals, moving)
        if not (isinstance(found, tuple | list) and len(found) == 2):
            raise GradientError(
                f"the rule of {self.name} returns (out, tangent_out), not {type(found).__name__}"
            )
        if found[1] is None:
            return [None] * len(ys)
        leaves, structure = pytree.flatten(found[1])
        if structure != self.out.structure:
            raise GradientError(
                f"the rule of {self.name} gave a tangent of the structure {structure}, but the "
                f"output has {self.out.structure}"
            )
        parts = [
            _checked(
                leaves[i],
                y,
                "tangent",
                self.name,
                self.out.namer("the output", i),
            )
            if y.dtype.is_inexact
            else None
            for i, y in zip(self.out.at, ys, strict=True)
        ]
        given = [*xs, *ys, *[t for t in tangents if t is not None]]
        return _without_arrays(parts, given, self.name)

    def vjp(self, gs: Maybe, ys: Sequence[Node], xs: Sequence[Node]) -> Maybe:
        """By transposition: the rule is linear in the tangents."""
        ts = [input_node(x.type) if x.dtype.is_inexact else None for x in xs]
        wrt = [t for t in ts if t is not None]
        out = self.jvp(ts, ys, xs)
        given = [*xs, *ys, *[g for g in gs if g is not None]]
        found = iter(_linear(_transposed(out, gs, wrt), wrt, given, self.name, "tangent"))
        return [None if t is None else next(found) for t in ts]
