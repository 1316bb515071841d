"""Programs of which some operations run on the CPU: those that the GPU has no shader for.

The graph is cut into stages. A node belongs to the first stage after those of what it is computed
from; stages of the GPU and of the CPU take turns. Each is a graph of its own, and what goes from
one stage of the GPU to a later one stays there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from retrograd.errors import BackendError
from retrograd.ir import Graph, Node, Trait, TupleType
from retrograd.ir.graph import reachable
from retrograd.ops.identity import Item
from retrograd.ops.leaf import input_node
from retrograd.passes import prepared
from retrograd.runtime.backend import Array, Program, bind
from retrograd.runtime.device_array import host, resident
from retrograd.runtime.executable import Executable
from retrograd.wgpu.executable import WgpuProgram, status_of
from retrograd.wgpu.plan import ShaderPlan
from retrograd.wgpu.specialization import Specialization


def lacking(graph: Graph) -> BackendError | None:
    """What the GPU has no shader for: the error that names it; None where it runs the graph."""
    try:
        plan = ShaderPlan(graph)
        status = status_of(plan)
        # Of sizes that are not known, any will do: which shaders there are depends on ops alone.
        Specialization(plan, status, dict.fromkeys(names_in(graph), 2), dry=True)
    except BackendError as error:
        return error
    return None


def names_in(graph: Graph) -> set[str]:
    """The names of sizes in types and attributes."""
    return set(graph.dim_names).union(*(n.prim.dim_names for n in graph.nodes))


def apart(inputs: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    """A part of a graph on inputs of its own, so that no pass sees what they are computed from."""
    new = {x: input_node(x.type, x.name) for x in inputs}
    fresh = list(new.values())
    for node in reachable(outputs, stop=new.keys()):
        if node not in new:
            new[node] = node.rebuilt([new[x] for x in node.inputs], None)
    return Graph(fresh, [new[y] for y in outputs])


@dataclass(frozen=True)
class GraphStage:
    """A part of a graph, on the GPU or on the CPU: the nodes it is given, and those it computes."""

    given: Sequence[Node]
    made: Sequence[Node]
    program: Program


class StagedProgram:
    """Runs a graph in stages."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        whole = prepared(graph, True)
        self._inputs = dict(zip(graph.inputs, whole.inputs, strict=True))
        self._outputs = whole.outputs
        self.stages = stages(whole)
        self._last: dict[Node, int] = {}  # the last stage that reads a value
        for k, stage in enumerate(self.stages):
            self._last |= dict.fromkeys(stage.given, k)
        self._last |= dict.fromkeys(self._outputs, len(self.stages))

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        return [host(y) for y in self.resident(arrays)]

    def resident(self, arrays: Sequence[Any]) -> list[Any]:
        """The same, of arrays and as arrays that may be on the device."""
        bind(self.graph.inputs, arrays)
        values: dict[Node, Any] = dict(zip(self._inputs.values(), arrays, strict=True))
        for k, stage in enumerate(self.stages):
            given = [values[x] for x in stage.given]
            if not hasattr(stage.program, "resident"):
                given = [host(a) for a in given]
            found = resident(stage.program)(given)
            values |= zip(stage.made, found, strict=True)
            for x in [x for x in values if self._last.get(x, -1) <= k]:
                del values[x]
        results = [values[y] for y in self._outputs]
        given_back = {id(a) for a in arrays}
        return [host(y).copy() if id(y) in given_back else y for y in results]


def stages(graph: Graph) -> list[GraphStage]:
    """The parts of a graph in order."""
    known: dict[Any, bool] = {}
    ends = set(graph.outputs)
    number: dict[Node, int] = dict.fromkeys(graph.inputs, -1)  # even ones are the GPU's
    for node in graph.body:
        before = [number[x] for x in node.inputs]
        if isinstance(node.prim, Item):
            number[node] = before[0]
            continue
        if Trait.FREE in node.prim.traits and not node.inputs:
            # A constant is part of each stage that reads it.
            number[node] = 0 if node in ends else -1
            continue
        odd = 0 if _runs(node, known) else 1
        number[node] = max((n + (n % 2 != odd) for n in before if n >= 0), default=odd)
    left = set(graph.outputs)  # what a later stage reads, or is a result
    for node in graph.body:
        left |= {x for x in node.inputs if number[x] != number[node]}
    made = []
    for k in range(max(number.values(), default=-1) + 1):
        own = [n for n in graph.body if number[n] == k]
        wanted = [n for n in own if n in left]
        if wanted:
            given = _boundary(wanted, number, k, set(graph.inputs))
            part = apart(given, wanted)
            if telling := _telling(part, given, graph):
                given = [*given, *telling]
                part = apart(given, wanted)
            made.append(GraphStage(given, wanted, Executable(part) if k % 2 else WgpuProgram(part)))
    return made


def _boundary(
    wanted: Sequence[Node], number: dict[Node, int], k: int, given: set[Node]
) -> list[Node]:
    """What a stage takes from others."""
    inputs: dict[Node, None] = {}
    seen, todo = set(wanted), list(wanted)
    while todo:
        node = todo.pop()
        for x in node.inputs:
            if x in seen:
                continue
            seen.add(x)
            if x in given or (number[x] != k and number[x] >= 0):
                inputs[x] = None
            else:
                todo.append(x)
    return list(inputs)


def _telling(part: Graph, given: Sequence[Node], graph: Graph) -> list[Node]:
    """Inputs of a graph that say what names of sizes stand for that a part needs, and is not told
    by what it is given."""
    missing = names_in(part) - {str(d) for x in given for d in x.shape}
    found = []
    for x in graph.inputs:
        if told := missing.intersection(map(str, x.shape)):
            found.append(x)
            missing -= told
    return [x for x in found if x not in given]


def _runs(node: Node, known: dict[Any, bool]) -> bool:
    """Whether the GPU has shaders for a node."""
    key = node.prim, *[x.type for x in node.inputs]
    try:
        found = known.get(key)
    except TypeError:  # of an op that cannot be hashed
        return _alone(node)
    if found is None:
        found = known[key] = _alone(node)
    return found


def _alone(node: Node) -> bool:
    inputs = list(dict.fromkeys(node.inputs))
    if isinstance(node.type, TupleType):
        ends = [Item(i)(node) for i in range(len(node.type.items))]
        return lacking(apart(inputs, ends)) is None
    return lacking(apart(inputs, [node])) is None
