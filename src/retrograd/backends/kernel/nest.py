"""Loop nests: what a kernel consists of, and what an emitter prints.

The loops of a nest are numbered from the outermost. Two kinds of reduction exist, and their order
of summation is part of the meaning, whatever the emitter:

- "row": the reduced axis is the innermost. Element `r` of it goes to partial result `r mod LANES`;
  elements of outer reduced axes follow one another. The partial results are combined as a tree:
  `l` with `l + LANES/2`, and so on by halves.
- "column": the innermost axis is kept. Each result takes the reduced elements one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from retrograd.backends.kernel.body import Body, Index, Value
from retrograd.backends.kernel.buffer import Buffer
from retrograd.ir import Dim, DType, Shape, product

LANES = 16  # partial results of a row reduction
STRIP = 256  # elements of the innermost axis that are handled at a time

# Instructions that are no arithmetic of the user's.
INDEXING = frozenset(
    ["loop", "size", "iadd", "isub", "imul", "idiv", "imod", "ilt", "ige", "isel", "const", "load"]
)


@dataclass(frozen=True, slots=True)
class Store:
    """Write a value to a buffer."""

    buffer: Buffer
    offset: Value
    value: Value


@dataclass(slots=True)
class Nest:
    """Loops around a body. `info` holds what only one kind needs.

    | kind | loops | what happens |
    |---|---|---|
    | map | the domain | the stores |
    | row | kept, outer reduced, strip, inner | `stores[0]` takes the reduced value |
    | column | outer kept, strip, reduced, inner | the same, at `stores[0].offset` + inner |
    | arg | kept, reduced | the same, with the position of the extremum |
    | scan | the others, scanned | `stores[0]` takes the running sum |
    | scatter | the updates | `stores[0]` adds to what is there |
    | check | the indices | `stores[0]` takes the position, or the run ends |
    | gemm | the batch | a matrix product |
    """

    kind: str
    loops: list[int | Dim]
    body: Body
    stores: list[Store] = field(default_factory=list)
    op: str = ""
    accumulator: DType | None = None
    kept: int = 0
    info: dict[str, Any] = field(default_factory=dict)


def roots(nest: Nest) -> list[Value]:
    """The values that a nest is there for."""
    found = [v for s in nest.stores for v in (s.offset, s.value)]
    for item in nest.info.values():
        if isinstance(item, Value):
            found.append(item)
        elif isinstance(item, tuple):
            found.extend(v for v in item if isinstance(v, Value))
    return found


def live(nest: Nest) -> list[Value]:
    """The values of a nest's body that are used, in order."""
    seen = set(roots(nest))
    todo = list(seen)
    while todo:
        for a in todo.pop().args:
            if a not in seen:
                seen.add(a)
                todo.append(a)
    return [v for v in nest.body.values if v in seen]


def loops_over(body: Body, domain: Shape) -> tuple[list[int | Dim], Index]:
    """A loop for each axis of the domain that is longer than 1, and the index they make."""
    loops: list[int | Dim] = []
    index = []
    for d in domain:
        if d == 1:
            index.append(body.size(0))
        else:
            index.append(body.loop(len(loops)))
            loops.append(d)
    return loops, tuple(index)


def collapse(nest: Nest) -> Nest:
    """Make one loop of a nest whose counters serve nothing but one and the same position."""
    if len(nest.loops) < 2:
        return nest
    shared = nest.stores[0].offset
    seen: set[Value] = {shared}
    todo = [v for s in nest.stores for v in (s.offset, s.value)]
    while todo:
        v = todo.pop()
        if v in seen or v.depth == 0:
            continue
        if v.op == "loop":
            return nest
        seen.add(v)
        todo.extend(v.args)
    if shared.op == "loop" or shared.depth < len(nest.loops):
        return nest
    shared.op, shared.args, shared.attr, shared.depth = "loop", (), 0, 1
    for v in seen:
        v.depth = min(v.depth, 1)
    nest.loops = [product(nest.loops)]
    return nest
