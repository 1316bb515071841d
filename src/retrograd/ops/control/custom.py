"""Custom derivatives: the ops of `custom_vjp` and `custom_jvp`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from retrograd.autodiff import batched as stacked
from retrograd.errors import GradientError
from retrograd.ir import Dim, Node, Op, TensorType, TupleType, declare
from retrograd.ops.control.body import need_counts
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand

Nodes = Sequence[Node]
Maybe = Sequence[Node | None]


class CustomRule:
    """What differentiation is told of a function `y = f(x)`. A value: equal rules are the same."""

    @property
    def exact(self) -> bool:
        """Whether the derivative is that of what was computed, not of what shall be taken for it:
        then the computation, too, tells which elements depend on which."""
        return False

    def vjp(self, gs: Maybe, ys: Nodes, xs: Nodes) -> Maybe:
        """Cotangents of the operands for those of the results; None: zero."""
        raise NotImplementedError

    def jvp(self, tangents: Maybe, ys: Nodes, xs: Nodes) -> Maybe:
        """Tangents of the results for those of the operands; None: zero."""
        raise NotImplementedError


@dataclass(frozen=True)
class Batched(CustomRule):
    """The rule of each sample, for stacks of `size` samples of all results and some operands."""

    rule: CustomRule
    size: int | Dim
    flags: tuple[bool, ...]

    @property
    def exact(self) -> bool:
        return self.rule.exact

    def vjp(self, gs: Maybe, ys: Nodes, xs: Nodes) -> Maybe:
        samples: dict[Node, Node] = {}
        own = [self._sample(x, samples) if f else x for x, f in zip(xs, self.flags, strict=True)]
        parts = self.rule.vjp(self._samples(gs, samples), self._each(ys, samples), own)
        found = iter(stacked([p for p in parts if p is not None], samples, self.size))
        results: list[Node | None] = []
        for part, flag in zip(parts, self.flags, strict=True):
            if part is None:
                results.append(None)
                continue
            node, is_stack = next(found)
            node = node if is_stack else self._wide(node)
            results.append(node if flag else ReduceSum((0,))(node))  # an operand that all share
        return results

    def jvp(self, tangents: Maybe, ys: Nodes, xs: Nodes) -> Maybe:
        samples: dict[Node, Node] = {}
        own = [self._sample(x, samples) if f else x for x, f in zip(xs, self.flags, strict=True)]
        moving = [
            self._sample(t, samples) if f and t is not None else t
            for t, f in zip(tangents, self.flags, strict=True)
        ]
        parts = self.rule.jvp(moving, self._each(ys, samples), own)
        found = iter(stacked([p for p in parts if p is not None], samples, self.size))
        results: list[Node | None] = []
        for part in parts:
            if part is None:
                results.append(None)
                continue
            node, is_stack = next(found)
            results.append(node if is_stack else self._wide(node))
        return results

    def _wide(self, node: Node) -> Node:
        return expand(node, (self.size, *node.shape), (0,))

    def _sample(self, stack: Node, samples: dict[Node, Node]) -> Node:
        """What stands for one sample of a stack."""
        sample = input_node(stack.type.with_shape(stack.shape[1:]))
        samples[sample] = stack
        return sample

    def _each(self, stacks: Nodes, samples: dict[Node, Node]) -> list[Node]:
        return [self._sample(x, samples) for x in stacks]

    def _samples(self, stacks: Maybe, samples: dict[Node, Node]) -> list[Node | None]:
        return [None if x is None else self._sample(x, samples) for x in stacks]


@declare
class Custom(Op):
    """Results, computed elsewhere, of which differentiation is told that they are a function of
    operands, and how to differentiate it.

    The inputs are `count` operands x and then the results y. Derivatives with respect to x are
    those of a rule, which sees the results of this operation, so that it can be differentiated
    again; how y was computed does not matter. The text of a graph has the name of the rule only,
    and says so: what is read from it runs as before, but is not differentiated.
    """

    name = "custom"
    label: str
    count: int
    rule: CustomRule | None = None

    @property
    def remark(self) -> str:  # type: ignore[override]
        """That the text lacks the rule."""
        return "" if self.rule is None else "its derivatives are Python, and not in this text"

    @property
    def attrs(self) -> dict[str, Any]:
        return {"label": self.label, "count": self.count}

    def infer(self, *types: TensorType) -> TensorType:
        need_counts(self, len(types), count=self.count)
        return TupleType(types[self.count :])

    def reference(self, *arrays: Any) -> Any:
        return list(arrays[self.count :])

    def _known(self) -> CustomRule:
        if self.rule is None:
            raise GradientError(
                f"the derivatives of {self.label} are rules in Python, which the text of a graph "
                "does not hold; differentiate the graph before it is saved"
            )
        return self.rule

    def vjp(self, g: Any, y: Node, *inputs: Node) -> Maybe:
        """By the rule that was given."""
        parts = self._known().vjp(g, items(y), inputs[: self.count])
        return [*parts, *[None] * (len(inputs) - self.count)]

    def jvp(self, tangents: Maybe, y: Node, *inputs: Node) -> Any:
        """By the rule that was given."""
        moving = tangents[: self.count]
        if all(t is None for t in moving):
            return None
        return self._known().jvp(moving, items(y), inputs[: self.count])

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Any:
        flags = tuple(batched[: self.count])
        ys = [
            y if b else expand(y, (size, *y.shape), (0,))
            for y, b in zip(inputs[self.count :], batched[self.count :], strict=True)
        ]
        rule = None if self.rule is None else Batched(self.rule, size, flags)
        return items(Custom(self.label, self.count, rule)(*inputs[: self.count], *ys))
