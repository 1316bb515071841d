"""What a graph costs, from its types alone: operations, bytes, memory.

Counts are ints where shapes are known and `Dim` expressions where they are not. They describe the
graph as it stands, each node computed on its own and stored; a backend that fuses does better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from retrograd.ir.dim import Dim, evaluate
from retrograd.ir.node import Nested, Node
from retrograd.ir.trait import Trait
from retrograd.ir.types import TensorType, TupleType

Count = int | Dim


@dataclass(frozen=True)
class Stats:
    """The cost of a graph. Sizes in bytes; `str` is a readable table."""

    name: str
    nodes: int
    inputs: int
    outputs: int
    ops: Mapping[str, int]  # how many nodes of each operation, the most frequent first
    flops: Count  # additions, products, comparisons, ...: 1 each; a contraction 2 m n k
    transcendentals: Count  # elements of exp, log, tanh, ..., not included in flops
    bytes_moved: Count  # read and written if each node were computed on its own
    input_bytes: Count
    output_bytes: Count
    constant_bytes: Count  # as stored in the graph: a splat is one element
    peak_bytes: Count  # of evaluation node by node, each value freed after its last use
    sizes: Mapping[str, int] = field(default_factory=dict)
    compiled_bytes: int | None = None  # that a call of the compiled program allocates, if known

    def __str__(self) -> str:
        title = f"graph {self.name}".rstrip()
        known = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        counts = f"{self.nodes} nodes, {self.inputs} inputs, {self.outputs} outputs"
        rows = [
            ("flops", _scaled(self.flops, "")),
            ("transcendentals", _scaled(self.transcendentals, "")),
            ("bytes moved", _scaled(self.bytes_moved, "B")),
            ("inputs", _scaled(self.input_bytes, "B")),
            ("outputs", _scaled(self.output_bytes, "B")),
            ("constants", _scaled(self.constant_bytes, "B")),
            ("peak memory", _scaled(self.peak_bytes, "B")),
            *(
                [("compiled peak", _scaled(self.compiled_bytes, "B"))]
                if self.compiled_bytes
                else []
            ),
            ("operations", ", ".join(f"{n} {op}" for op, n in self.ops.items())),
        ]
        head = f"{title}: {counts}" + (f" ({known})" if known else "")
        return "\n".join([head, *(f"  {label:<16} {text}" for label, text in rows)])


def stats(graph: Nested, sizes: Mapping[str, int] | None = None) -> Stats:
    """The cost of `graph`; with `sizes`, such as `{"N": 32}`, in numbers.

    Peak memory is exact where every size is known. Else the moment of the peak is not, and it is
    judged with every unknown size taken as 1,000; the result is the expression at that moment.
    """
    totals = {"flops": _Sum(), "transcendentals": _Sum(), "moved": _Sum(), "constants": _Sum()}
    body = graph.body
    bytes_of = _Bytes()
    for node, times in _repeated(graph):
        kind, count = _work(node)
        totals[kind].add(count * times)
        if Trait.CONSTANT in node.prim.traits:
            totals["constants"].add(node.attrs["value"].nbytes)
        elif Trait.NO_TRAFFIC not in node.prim.traits:
            for x in (node, *node.inputs):
                totals["moved"].add(bytes_of(x.type) * times)
    given, kept = _Sum(), _Sum()
    for x in graph.inputs:
        given.add(bytes_of(x.type))
    for y in graph.outputs:
        kept.add(bytes_of(y.type))
    known = dict(sizes or {})

    def value(count: Count) -> Count:
        if sizes is None or not isinstance(count, Dim):
            return count
        hidden = count.names.difference(graph.dim_names)  # known inside of operations only
        return evaluate(count, {**dict.fromkeys(hidden, 1), **known})

    return Stats(
        graph.name,
        len(graph.nodes),
        len(graph.inputs),
        len(graph.outputs),
        dict(Counter(n.op for n in body).most_common()),
        value(totals["flops"].total),
        value(totals["transcendentals"].total),
        value(totals["moved"].total),
        value(given.total),
        value(kept.total),
        value(totals["constants"].total),
        value(_peak(graph, bytes_of, known)),
        known,
    )


def _repeated(graph: Nested) -> Iterator[tuple[Node, Count]]:
    """Every computed node, and those of the graphs that operations hold, each with how often it is
    computed: in a loop of unknown length once, of two branches both."""
    todo: list[tuple[Nested, Count]] = [(graph, 1)]
    for inside, times in todo:  # which grows
        for node in inside.body:
            held = node.prim.repeated(*[x.type for x in node.inputs])
            if not held:
                yield node, times
                continue
            todo += [(g, times * steps) for g, steps in held]


def operations_by_scope(graph: Nested) -> dict[str, Count]:
    """How many operations the nodes of each scope are, those of transcendental functions included;
    what is inside of a node counts with its scope."""
    found: dict[str, _Sum] = {}
    for node in graph.body:
        total = found.setdefault(node.scope, _Sum())
        held = node.prim.repeated(*[x.type for x in node.inputs])
        if not held:
            total.add(_work(node)[1])
        for inside, steps in held:
            for inner, times in _repeated(inside):
                total.add(_work(inner)[1] * times * steps)
    return {scope: x.total for scope, x in found.items()}


class _Sum:
    """A sum of counts. Equal counts are counted first, so that a long sum of `Dim`s is linear."""

    def __init__(self) -> None:
        self._times: Counter[Count] = Counter()

    def add(self, count: Count, times: int = 1) -> None:
        self._times[count] += times

    @property
    def total(self) -> Count:
        total: Count = 0
        for count, times in self._times.items():
            total = total + count * times
        return total


class _Bytes:
    """The size in bytes of values of a type, remembered for each type."""

    def __init__(self) -> None:
        self._known: dict[TensorType, Count] = {}

    def __call__(self, type: TensorType) -> Count:
        size = self._known.get(type)
        if size is None:
            parts = type.items if isinstance(type, TupleType) else (type,)
            size = 0
            for part in parts:
                size = size + part.size * part.dtype.itemsize
            self._known[type] = size
        return size


def _work(node: Node) -> tuple[str, Count]:
    """The kind and number of operations of one node."""
    prim = node.prim
    if Trait.FREE in prim.traits:
        return "flops", 0
    kind = "transcendentals" if Trait.TRANSCENDENTAL in prim.traits else "flops"
    return kind, prim.flops(node.type, *[x.type for x in node.inputs])


def _peak(graph: Nested, bytes_of: _Bytes, sizes: Mapping[str, int]) -> Count:
    """Memory at the fullest moment of an evaluation in order, inputs and outputs included."""
    guess = {name: sizes.get(name, 1000) for name in graph.dim_names}
    weights: dict[TensorType, int] = {}

    def weight(node: Node) -> int:
        if node.type not in weights:
            weights[node.type] = evaluate(bytes_of(node.type), guess)
        return weights[node.type]

    last_use = {x: i for i, node in enumerate(graph.body) for x in node.inputs}
    kept = {*graph.inputs, *graph.outputs}
    peak = live = sum(weight(x) for x in graph.inputs)
    moment = -1
    for i, node in enumerate(graph.body):
        live += weight(node)
        if live > peak:
            peak, moment = live, i
        live -= sum(weight(x) for x in set(node.inputs) if last_use[x] == i and x not in kept)
    at_peak = _Sum()
    for x in graph.inputs:
        at_peak.add(bytes_of(x.type))
    for i, node in enumerate(graph.body[: moment + 1]):
        if i == moment or node in kept or last_use[node] >= moment:
            at_peak.add(bytes_of(node.type))
    return at_peak.total


def _scaled(count: Count, unit: str) -> str:
    """`12_345_678 B` as `12.3 MB`; expressions as they are."""
    if isinstance(count, Dim):
        return f"{count} {unit}".rstrip()
    scaled, prefix = float(count), ""
    for prefix in ("", "k", "M", "G", "T", "P"):
        if scaled < 1000 or prefix == "P":
            break
        scaled /= 1000
    return f"{scaled:.3g} {prefix}{unit}".rstrip() if prefix else f"{count} {unit}".rstrip()
