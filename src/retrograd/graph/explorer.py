"""Documents of graphs for the explorer: with the backward pass, its steps, values, and kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from retrograd import autodiff, viz
from retrograd.autodiff import Visit
from retrograd.errors import RetrogradError
from retrograd.ir import Graph, Node, TupleType
from retrograd.passes import optimize
from retrograd.passes.lowering.complex import real_graph
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.runtime.paired_program import real_arrays
from retrograd.schedule import planning

if TYPE_CHECKING:
    from retrograd.schedule.planning.plan import KernelPlan
    from retrograd.viz import Document

MAP_CELLS = 4096  # of the heat map of an array
ALL_CELLS = 1 << 19  # of all arrays of a page together: 1.4 MB


class NodeErrors(Protocol):
    """Rounding errors by node, as `rg.verify.rounding` finds them."""

    def by_node(self, graph: Graph) -> Mapping[Node, Any]:
        """Those of the nodes of a graph, each with a `record()` for a page."""


@dataclass
class Backward:
    """A graph that holds a backward pass: `visits` are the steps it was made by, in order, and
    `forward` the graph it is of. `note` says why there is none."""

    graph: Graph
    forward: Graph | None = None
    visits: list[Visit] = field(default_factory=list)
    outputs: list[str] | None = None
    note: str = ""


def with_backward(graph: Graph) -> Backward:
    """A forward graph together with the gradient of its first output, where that is a real scalar;
    any other graph as it is."""
    if any(n.origin is not None for n in graph.body):
        return Backward(graph)
    wanted = [x for x in graph.inputs if x.dtype.is_inexact]
    loss = graph.outputs[0] if graph.outputs else None
    if loss is None or not wanted or loss.shape != () or not loss.dtype.is_float:
        return Backward(graph)
    visits: list[Visit] = []
    try:
        back = autodiff.gradient(graph, [loss], wanted, visits.append)
    except (RetrogradError, NotImplementedError) as error:
        return Backward(graph, note=f"The backward pass is not shown: {error}")
    names = [*(y.name for y in graph.outputs), *_gradient_names(wanted, graph)]
    both = Graph(graph.inputs, [*graph.outputs, *back.outputs], graph.name)
    return Backward(both, graph, visits, names)


def again(graph: Graph, forward: Graph, ends: Sequence[Node], wanted: Sequence[Node]) -> Backward:
    """A gradient graph made once more from what it was made of, to see the steps."""
    visits: list[Visit] = []
    made = autodiff.gradient(forward, ends, wanted, visits.append)
    if made.structure() != graph.structure():
        return Backward(graph, forward)
    return Backward(made, forward, visits, _gradient_names(wanted, forward))


def _gradient_names(wanted: Sequence[Node], graph: Graph) -> list[str]:
    position = {x: i for i, x in enumerate(graph.inputs)}
    return [f"∂{x.name or f'%{position.get(x, x.id)}'}" for x in wanted]


def explorer_document(
    what: Backward,
    arrays: Sequence[Array] | None = None,
    profile: bool = False,
    rounding: NodeErrors | None = None,
) -> Document:
    """The essence of the document of a graph; given arrays for its inputs, with all values and
    gradients, with `profile` the times of the kernels as well, and with `rounding` the digits that
    nodes lose."""
    graph = what.graph
    nodes, kin = members = viz.shown(graph, what.forward)
    doc = viz.essence(graph, members, what.outputs)
    number = {n: i for i, n in enumerate(nodes)}
    number.update({n: number[twin] for n, twin in kin.same.items() if twin in number})
    _add_steps(doc, what, number)
    if what.note:
        doc["note"] = what.note
    if arrays is not None:
        doc["values"] = recorded(Graph(graph.inputs, nodes, graph.name), arrays, number)
    if profile:
        add_kernels(doc, graph, arrays)
    if rounding is not None:
        errors = rounding.by_node(graph)
        number = {**viz.body_numbers(nodes, doc["nodes"]), **number}
        cells = min(MAP_CELLS, ALL_CELLS // max(1, len(number)))
        doc["rounding"] = {
            str(number[n]): e.record(cells) for n, e in errors.items() if n in number
        }
    return doc


def _add_steps(doc: Document, what: Backward, number: Mapping[Node, int]) -> None:
    """The steps of the reverse walk, and for each node the node that holds its gradient."""
    steps: list[dict[str, Any]] = []
    records = doc["nodes"]
    for v in what.visits:
        upstream = v.upstream if isinstance(v.upstream, Node) else None  # of several results
        shown = [v.node, *(x for _, part, total in v.parts for x in (part, total))]
        if upstream is not None:
            shown.append(upstream)
        if any(x not in number for x in shown):
            continue  # of a node whose gradient nobody asked for
        here = number[v.node]
        if records[here]["gradient"] is None and upstream is not None:
            records[here]["gradient"] = number[upstream]
        parts = []
        for slot, part, total in v.parts:
            to = v.node.inputs[slot]
            if to not in number:
                continue
            parts.append([slot, number[to], number[part], number[total]])
            if not isinstance(to.type, TupleType):
                records[number[to]]["gradient"] = number[total]
        if v.node.inputs:
            steps.append(
                {
                    "node": here,
                    "upstream": None if upstream is None else number[upstream],
                    "parts": parts,
                }
            )
    if steps:
        doc["steps"] = steps


def recorded(
    graph: Graph, arrays: Sequence[Array], number: Mapping[Node, int]
) -> dict[str, dict[str, Any]]:
    """What every node of a graph computes from these inputs, in summary, by id."""
    found: dict[str, dict[str, Any]] = {}
    cells = min(MAP_CELLS, ALL_CELLS // max(1, len(number)))

    def see(node: Node, value: Array, operands: Sequence[Array]) -> None:
        if node in number and not isinstance(node.type, TupleType):
            found[str(number[node])] = viz.summary(_plain(value), cells)

    used = {x for n in graph.body for x in n.inputs}
    ends = [n for n in graph.nodes if n not in used]  # all that has to be kept to the end
    ReferenceProgram(Graph(graph.inputs, ends), see)(arrays)
    return found


def _plain(a: Array) -> Array:
    return a if a.dtype.kind in "biufc" else a.astype(np.float32)


def add_kernels(doc: Document, graph: Graph, arrays: Sequence[Array] | None) -> None:
    """The kernels the compiler makes of a graph, measured if there are arrays to run it on."""
    if arrays is None:
        plan = planning.KernelPlan(optimize(real_graph(graph)))
        sizes: dict[str, int] | None = None if graph.dim_names else {}
        put_kernels(doc, graph, plan, sizes, None)
        return
    program = Executable(real_graph(graph), timed=True, simplify=True)
    times = program.measure(real_arrays(list(arrays)))
    put_kernels(doc, graph, program.plan, bind(graph.inputs, arrays), times)


def put_kernels(
    doc: Document,
    graph: Graph,
    plan: KernelPlan,
    sizes: Mapping[str, int] | None,
    times: Sequence[float] | None,
) -> None:
    """Kernels and memory of a plan as part of a document of the graph it was made from."""
    where = _Whereabouts(graph)
    taken: set[int] = set()
    kernels = []
    for k in planning.kernel_reports(plan, sizes, times):
        ids = [i for n in k.nodes if (i := where(n, taken)) is not None]
        kernels.append(
            {
                "nodes": ids,
                "text": re.sub(r"%\d+: ", "", k.text),  # numbers of nodes inside the compiler
                "ops": k.ops,
                "bytes": k.bytes,
                "operations": k.operations,
                "least_ns": k.least,
                "ns": k.measured,
                "band": k.tile_group,
            }
        )
    doc["kernels"] = kernels
    if sizes is not None:
        arena = planning.arena_report(plan, sizes)
        lives = [
            {"name": n.name or n.op, "node": None, "first": a, "last": b, "bytes": size}
            for n, a, b, size in arena.lives
        ]
        doc["arena"] = {"times": arena.used, "peak": arena.peak, "buffers": lives}


class _Whereabouts:
    """Which node of a graph a node of its compiled form stands for: passes make nodes anew, but
    keep where they are from. Of several that may be meant, the first that is not taken."""

    def __init__(self, graph: Graph) -> None:
        self._exact: dict[Any, list[int]] = {}
        self._near: dict[Any, list[int]] = {}
        self._same = {n: i for i, n in enumerate(graph.nodes)}
        for i, n in enumerate(graph.nodes):
            if n.inputs:
                self._exact.setdefault((n.op, n.type, *_from(n)), []).append(i)
                self._near.setdefault((n.type, *_from(n)), []).append(i)

    def __call__(self, node: Node, taken: set[int]) -> int | None:
        found = self._same.get(node)
        if found is not None and found not in taken:
            taken.add(found)
            return found if node.inputs else None
        for table, key in (
            (self._exact, (node.op, node.type, *_from(node))),
            (self._near, (node.type, *_from(node))),
        ):
            for i in table.get(key, ()):
                if i not in taken:
                    taken.add(i)
                    return i
        return None


def _from(node: Node) -> tuple[Any, ...]:
    at = node.source
    return node.scope, at and at.code, at and at.lasti, node.origin is not None
