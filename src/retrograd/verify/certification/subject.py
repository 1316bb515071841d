"""What is certified: a function as a graph, at one sample, with the graphs of its derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from retrograd.ir import Graph, Node, apply, interpret
from retrograd.ops.elementwise import Cast
from retrograd.ops.identity import StopGradient, items
from retrograd.verify.rule_checks import Array, contract, gradients

SEED = 0  # of the weights that outputs are contracted with


@dataclass(frozen=True, eq=False)
class Subject:
    """`outputs` as a function of `inputs` at `arrays`, to be differentiated by those of `wrt`.

    `arguments` names the inputs. `frozen`: what the function itself holds fixed (`stop_gradient`)
    keeps its value where differences move the inputs; a rule that holds something fixed does not.
    """

    name: str
    inputs: Sequence[Node]
    outputs: Sequence[Node]
    arrays: Sequence[Array]
    wrt: Sequence[int]
    arguments: Sequence[str] = ()
    elementwise: bool = False
    meaning: Any = None  # of an elementwise function, on mpmath's numbers
    limit: dict[str, float] = field(default_factory=dict)

    @cached_property
    def scalars(self) -> list[Node]:
        """Contractions: of the outputs, of their gradient, of the gradient of that; grows when
        asked for more by `scalar`."""
        return [contract(self.ends, np.random.default_rng(SEED))]

    @cached_property
    def ends(self) -> list[Node]:
        """The results that are floating or complex."""
        return [y for y in self.outputs if y.type.is_inexact]

    @property
    def wanted(self) -> list[Node]:
        """The inputs that are differentiated by."""
        return [self.inputs[i] for i in self.wrt]

    def scalar(self, order: int) -> Node:
        """A real scalar of derivatives of that order, 0 for the function itself."""
        while len(self.scalars) <= order:
            rng = np.random.default_rng(SEED + len(self.scalars))
            self.scalars.append(contract(gradients(self.scalars[-1], self.wanted), rng))
        return self.scalars[order]

    def gradient(self, order: int) -> list[Array]:
        """The gradients of `scalar(order - 1)`, by the rules, in float64."""
        graph = Graph(self.inputs, gradients(self.scalar(order - 1), self.wanted))
        return [np.asarray(g) for g in self.run(graph, self.arrays)]

    @cached_property
    def held(self) -> dict[Node, Any]:
        """The values of what the function itself holds fixed."""
        stops = [
            n for n in Graph(self.inputs, self.outputs).body if isinstance(n.prim, StopGradient)
        ]
        if not stops:
            return {}
        return dict(zip(stops, self.run(Graph(self.inputs, stops), self.arrays, {}), strict=True))

    def run(
        self, graph: Graph, arrays: Sequence[Array], held: Mapping[Node, Any] | None = None
    ) -> list[Any]:
        """Evaluate by the reference meaning, in whatever precision the arrays have."""
        kept = self.held if held is None else held

        def value(node: Node, given: Sequence[Any]) -> Any:
            if node in kept:
                return kept[node]
            if isinstance(node.prim, Cast) and _is_wider(given[0], node.prim.dtype):
                return given[0]
            return apply(node, given)

        with np.errstate(all="ignore"):
            return interpret(graph, arrays, value)


def _is_wider(x: Any, dtype: Any) -> bool:
    """Whether a conversion to a dtype would lose what precise or complex evaluation has."""
    if not dtype.is_inexact:
        return False
    return bool(x.dtype.kind in "fc" and x.dtype.itemsize > dtype.itemsize)


def of_op(
    op: Any,
    arrays: Sequence[Array],
    wrt: Sequence[int],
    nodes: Sequence[Node],
    **more: Any,
) -> Subject:
    """An operation at a sample."""
    y = op(*nodes)
    ends = [y] if not hasattr(y.type, "types") else list(items(y))
    names = [f"input {i}" for i in range(len(arrays))]
    return Subject(op.name, nodes, ends, arrays, wrt, names, **more)
