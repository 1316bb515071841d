"""Maps, nests of stores alone, in as few loops as possible.

Inner loops are one where nothing tells them apart: where all positions grow, from one iteration of
the outer to the next, by as much as in all iterations of the inner one. So the rows and columns of
each image of a batch are one loop although a bias differs between its channels.
"""

from __future__ import annotations

from retrograd.ir import Dim, product
from retrograd.schedule.affine_index import AffineIndex, linear
from retrograd.schedule.loop_nest import MapNest, Store, live
from retrograd.schedule.ssa import LINEAR, ScalarBlock, SSAOp, SSAValue

Forms = dict[SSAValue, AffineIndex]


def mapping(loops: list[int | Dim], body: ScalarBlock, stores: list[Store]) -> MapNest:
    """A nest of stores over these loops."""
    nest = MapNest(loops, body, stores, kept=len(loops))
    if len(loops) > 1:
        _collapse(nest)
    nest.kept, nest.vec = len(nest.loops), len(nest.loops) - 1
    return nest


def _collapse(nest: MapNest) -> None:
    """Make one loop of the innermost ones that are alike."""
    loops, positions = nest.loops, _positions(nest)
    first = last = len(loops) - 1
    while first and all(
        p.steps.get(first - 1, 0) == p.steps.get(first, 0) * loops[first]
        for p in positions.values()
    ):
        first -= 1
    if first == last:
        return
    _rewrite(nest, positions, first, last)
    nest.loops = [*loops[:first], product(loops[first:])]


def _positions(nest: MapNest) -> Forms:
    """The linear functions of counters that anything else than such a function is made of."""
    found: Forms = {}
    known: dict[SSAValue, AffineIndex | None] = {}
    todo = [v for s in nest.stores for v in (s.offset, s.value)]
    seen = set(todo)
    while todo:
        v = todo.pop()
        if v.op in LINEAR:
            form = linear(v, known)
            if form is not None:
                found[v] = form
                continue
        fresh = [a for a in v.args if a not in seen]
        seen.update(fresh)
        todo += fresh
    return found


def _rewrite(nest: MapNest, positions: Forms, first: int, last: int) -> None:
    """Have positions count the loops from the first to the last as one, as they count the last."""
    body, new = ScalarBlock(), dict[SSAValue, SSAValue]()
    for v in live(nest):
        form = positions.get(v)
        if form is not None:
            total = body.size(form.start)
            for k in (*range(first), last):
                step = body.size(form.steps.get(k, 0))
                total = body.add(total, body.mul(body.loop(min(k, first)), step))
            new[v] = total
        elif v.op is SSAOp.CONST:
            new[v] = body.const(v.attr, v.dtype)
        elif v.op is not SSAOp.LOOP and all(a in new for a in v.args):  # else a part of a position
            new[v] = body.make(v.op, [new[a] for a in v.args], v.dtype, v.attr)
    nest.body = body
    nest.stores = [Store(s.buffer, new[s.offset], new[s.value]) for s in nest.stores]
