"""Walking through the loops of a nest; maps, which are nothing else.

`emit_loop` opens one loop and lets a function write what is inside. It decides how the iterations
are gone through: one by one; several lanes at a time (`vec`), with a mask for the last ones;
several rows at a time (`tile`). Loops may carry values: the function inside gets and returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from retrograd.codegen import types
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.masked_rows import domain_of, visible_part
from retrograd.codegen.emit.nest_emitters import emits_nest
from retrograd.ir import Dim, bool_
from retrograd.schedule.cost_model import known
from retrograd.schedule.loop_nest import (
    CallNest,
    GemmNest,
    LoopNest,
    MapNest,
    RowReduction,
    SearchNest,
    SortNest,
)
from retrograd.schedule.tiling.masked_domain import MaskedDomain
from retrograd.tuning import TUNING

Carried = list[str]
Inside = Callable[[Carried], Carried]


@emits_nest(MapNest)
def mapping(w: KernelEmitter, nest: LoopNest) -> None:
    """Every element by itself."""
    w.begin(nest)

    def inside(_: Carried) -> Carried:
        _write(w, [w.vector(store.value) for store in nest.stores])
        return []

    domain = domain_of(w)
    if domain is None:
        emit_loops(w, 0, len(nest.loops), inside)
        return
    last = len(nest.loops) - 1

    def row(_: Carried) -> Carried:
        with visible_part(w, domain, w.lanes) as (start, end):
            emit_loop(w, last, inside)
        for part in (("0", start), (end, w.size(nest.loops[last]))):
            _fill(w, domain, part)
        return []

    emit_loops(w, 0, last, row)


def _write(w: KernelEmitter, values: Sequence[str]) -> None:
    """Values of all stores of a map."""
    of = dict(zip(w.nest.stores, values, strict=True))
    groups = w.in_turn if w.lanes > 1 else [[s] for group in w.in_turn for s in group]
    for store in w.alone:
        w.write(of[store], store)
    for group in groups:
        if len(group) == 1:
            w.write(of[group[0]], group[0])
        else:
            w.write_in_turn([of[s] for s in group], group)


def _fill(w: KernelEmitter, domain: MaskedDomain, part: tuple[str, str]) -> None:
    """A part of a row that a mask hides: its number, and nothing is computed."""
    nest, last = w.nest, len(w.nest.loops) - 1
    computed = w.levels[last + 1]
    places = {s.offset for s in nest.stores}
    todo = list(places)
    while todo:
        for v in todo.pop().args:
            places.add(v)
            todo.append(v)

    def inside(_: Carried) -> Carried:
        numbers = zip(nest.stores, domain.fill, strict=True)
        _write(w, [types.literal(n, store.value.dtype, w.lanes) for store, n in numbers])
        return []

    w.levels[last + 1] = [v for v in computed if v in places]
    w.ranges[last] = part
    w.in_blocks.add(last)
    emit_loop(w, last, inside)
    w.in_blocks.discard(last)
    del w.ranges[last]
    w.levels[last + 1] = computed


def emit_loops(w: KernelEmitter, first: int, last: int, inside: Inside, kinds: Sequence[str] = (),
         values: Carried | None = None) -> Carried:  # fmt: skip
    """All loops from `first` up to, not including, `last`. `kinds` are the types of what is
    carried."""
    if first == last:
        return inside(values or [])
    return emit_loop(
        w, first, lambda v: emit_loops(w, first + 1, last, inside, kinds, v), kinds, values
    )


def emit_loop(w: KernelEmitter, number: int, inside: Inside, kinds: Sequence[str] = (),
         values: Carried | None = None) -> Carried:  # fmt: skip
    """One loop of the nest."""
    if number in w.fixed:
        return _at(w, number, [w.fixed[number]], inside, values or [])
    how = _plain
    if w.team > 1 and number in (w.nest.vec, w.team_loop):
        how = _in_team
    elif number == w.nest.vec and w.lanes > 1:
        how = _lanes
    elif number == w.nest.tile and w.rows > 1:
        how = _tiled
    elif number == w.turning:
        how = transposed
    return how(w, number, inside, kinds, values or [])


def at_start(w: KernelEmitter, number: int, inside: Callable[[str], None]) -> None:
    """The first pass through a loop alone, for what goes on from there by itself; `inside` is told
    how many there are."""
    start, end = w.bounds(number)
    many = end if start == "0" else w.new(f"sub nsw i64 {end}, {start}")

    def once(_: Carried) -> Carried:
        inside(many)
        return []

    _at(w, number, [start], once, [])


def _at(w: KernelEmitter, number: int, counters: list[str], inside: Inside, v: Carried) -> Carried:
    """One pass through the inside of a loop."""
    w.counters[number] = counters
    w.enter()
    w.place(number + 1)
    result = inside(v)
    w.leave()
    return result


def at_step(w: KernelEmitter, number: int, counter: str, inside: Inside, v: Carried) -> Carried:
    """One pass through the inside of a loop that is not written as such."""
    return _at(w, number, [counter], inside, v)


def _loop(
    w: KernelEmitter, number: int, bounds: tuple[str, str], step: int, inside: Inside,
    kinds: Sequence[str], values: Carried, place: Callable[[str], str] = str,
) -> Carried:  # fmt: skip
    """Iterations at the `place` of each counter."""
    start, end = bounds
    often = 0 if number in w.in_blocks else looks(w, number)
    outer = None
    if often:  # iterations in turns, with a look before each
        turn = max(often // step, 1) * step
        outer = w.open_loop(end, turn, start, list(zip(kinds, values, strict=True)))
        look(w)
        w.declare("i64 @llvm.smin.i64(i64, i64)")
        after = w.new(f"add nsw i64 {outer.counter}, {turn}")
        start, values = outer.counter, outer.values
        end = w.new(f"call i64 @llvm.smin.i64(i64 {after}, i64 {end})")
    loop = w.open_loop(end, step, start, list(zip(kinds, values, strict=True)))
    w.close_loop(loop, _at(w, number, [place(loop.counter)], inside, loop.values))
    if outer is None:
        return loop.values
    w.close_loop(outer, loop.values)
    return outer.values


def looks(w: KernelEmitter, number: int) -> int:
    """After how many iterations of a loop to look if the run is to stop; 0 if another one does."""
    nest = w.nest
    if not w.polls or isinstance(nest, GemmNest):  # whose routine looks
        return 0
    row = nest.n.attr if isinstance(nest, SortNest | SearchNest) else 1
    inner = TUNING.poll_elements if isinstance(nest, CallNest) else known(row)
    for loop in reversed(nest.loops[number + 1 :]):
        if inner * known(loop) >= TUNING.poll_elements:
            return 0
        inner *= known(loop)
    first = number == 0 or inner * known(nest.loops[number]) >= TUNING.poll_elements
    return max(TUNING.poll_elements // max(inner, 1), 1) if first else 0


def look(w: KernelEmitter) -> None:
    """Return, if the run is to stop: whoever called this does not go on."""
    word = w.new("load atomic i64, ptr %stop monotonic, align 8")
    over, on = w.label(), w.label()
    w.branch(w.new(f"icmp ne i64 {word}, 0"), over, on)
    w.start_block(over)
    w.line("ret i64 0")
    w.start_block(on)


def _plain(
    w: KernelEmitter, number: int, inside: Inside, kinds: Sequence[str], values: Carried
) -> Carried:
    start, end = w.bounds(number)
    if start == "0" and end == "1":
        return _at(w, number, ["0"], inside, values)
    return _loop(w, number, (start, end), 1, inside, kinds, values)


def _in_team(
    w: KernelEmitter, number: int, inside: Inside, kinds: Sequence[str], values: Carried
) -> Carried:
    """The iterations that a lane would take, by the thread in its place."""
    start, end = w.bounds(number)
    first = w.new(f"add nsw i64 {start}, {w.lane}")
    return _loop(w, number, (first, end), w.team, inside, kinds, values)


def _lanes(
    w: KernelEmitter, number: int, inside: Inside, kinds: Sequence[str], values: Carried
) -> Carried:
    """Whole vectors, then what is left, under a mask; all under a mask where the text is to be
    short."""
    start, end = w.bounds(number)
    known = start == "0" and end.isdigit()
    even = known and (int(end) % w.lanes == 0 or int(end) < w.lanes)
    fits = w.multiples.get(number, 1) % w.lanes == 0
    if fits or (number in w.in_blocks and w.nest.loops[number] % w.lanes == 0):
        return _loop(w, number, (start, end), w.lanes, inside, kinds, values)
    if w.light and isinstance(w.nest, MapNest | RowReduction) and not even:
        loop = w.open_loop(end, w.lanes, start, list(zip(kinds, values, strict=True)))
        _hide(w, w.new(f"sub nsw i64 {end}, {loop.counter}"))
        new = _at(w, number, [loop.counter], inside, loop.values)
        w.mask = None
        w.close_loop(loop, new)
        return loop.values
    if known:
        whole, rest = divmod(int(end), w.lanes)
        if whole == 1:
            values = _at(w, number, ["0"], inside, values)
        elif whole:
            last = str(whole * w.lanes)
            values = _loop(w, number, ("0", last), w.lanes, inside, kinds, values)
        if rest == 1 and not isinstance(w.nest, RowReduction):
            values = _one_lane(w, number, str(whole * w.lanes), inside, values)
        elif rest:
            w.mask = "<" + ", ".join(f"i1 {int(i < rest)}" for i in range(w.lanes)) + ">"
            values = _at(w, number, [str(whole * w.lanes)], inside, values)
            w.mask = None
        return values
    length = end if start == "0" else w.new(f"sub nsw i64 {end}, {start}")
    whole_length = w.new(f"and i64 {length}, {-w.lanes}")
    last = whole_length if start == "0" else w.new(f"add nsw i64 {start}, {whole_length}")
    values = _loop(w, number, (start, last), w.lanes, inside, kinds, values)
    rest_length = w.new(f"sub nsw i64 {end}, {last}")
    return _last_lanes(w, number, last, rest_length, inside, kinds, values)


def backwards(
    w: KernelEmitter, number: int, inside: Inside, kinds: Sequence[str], values: Carried
) -> Carried:
    """Whole vectors from the end of the loop on, then what is left at its start, under a mask."""
    _, end = w.bounds(number)
    whole = w.new(f"sdiv i64 {end}, {w.lanes}") if not end.isdigit() else str(int(end) // w.lanes)

    def place(counter: str) -> str:
        passed = w.new(f"mul nsw i64 {w.new(f'add nsw i64 {counter}, 1')}, {w.lanes}")
        return w.new(f"sub nsw i64 {end}, {passed}")

    values = _loop(w, number, ("0", whole), 1, inside, kinds, values, place)
    if end.isdigit() and int(end) % w.lanes == 1:
        return _one_lane(w, number, "0", inside, values)
    done = w.new(f"mul nsw i64 {whole}, {w.lanes}")
    rest = w.new(f"sub nsw i64 {end}, {done}")
    return _last_lanes(w, number, "0", rest, inside, kinds, values)


def _one_lane(w: KernelEmitter, number: int, at: str, inside: Inside, values: Carried) -> Carried:
    """One lane is a scalar. (And LLVM 22 writes too much where a store of one lane narrows.)"""
    lanes, w.lanes = w.lanes, 1
    values = _at(w, number, [at], inside, values)
    w.lanes = lanes
    return values


def _last_lanes(
    w: KernelEmitter, number: int, at: str, rest: str, inside: Inside, kinds: Sequence[str],
    values: Carried,
) -> Carried:  # fmt: skip
    """The lanes left, if any; a reduction of a known length takes none rather than branch, but for
    one that goes block by block."""
    if values and not isinstance(w.nest.loops[number], Dim) and number not in w.in_blocks:
        return _hidden(w, number, at, rest, inside, values)
    before, go, on = w.block, w.label(), w.label()
    w.branch(w.new(f"icmp sgt i64 {rest}, 0"), go, on)
    w.start_block(go)
    if _halves(w):
        few, many = w.label(), w.label()
        half = w.lanes // 2
        w.branch(w.new(f"icmp sgt i64 {rest}, {half}"), many, few)
        w.start_block(few)
        _in_fewer_lanes(w, half, lambda: _hidden(w, number, at, rest, inside, []))
        w.jump(on)
        w.start_block(many)
    new = _hidden(w, number, at, rest, inside, values)
    after = w.block
    w.jump(on)
    w.start_block(on)
    return [
        w.new(f"phi {kind} [ {x}, %{before} ], [ {y}, %{after} ]")
        for kind, x, y in zip(kinds, values, new, strict=True)
    ]


def _halves(w: KernelEmitter) -> bool:
    """Whether few lanes are worth a vector of half the size: rows of a named length may be short,
    and what is done with them takes longer in longer vectors."""
    named = isinstance(w.nest.loops[w.nest.vec], Dim)
    return (
        named
        and isinstance(w.nest, MapNest)
        and w.lanes >= 8
        and len(w.uses) <= TUNING.short_body_values
    )


def _in_fewer_lanes(w: KernelEmitter, lanes: int, write: Callable[[], object]) -> None:
    before, known = w.lanes, w._vectors
    w.lanes, w._vectors = lanes, [{} for _ in known]
    write()
    w.lanes, w._vectors = before, known


def _hidden(
    w: KernelEmitter, number: int, at: str, rest: str, inside: Inside, values: Carried
) -> Carried:
    _hide(w, rest)
    new = _at(w, number, [at], inside, values)
    w.mask = None
    return new


def _hide(w: KernelEmitter, rest: str) -> None:
    """Have only the first lanes count, so many as are left."""
    kind = f"<{w.lanes} x i64>"
    first = w.new(f"insertelement {kind} poison, i64 {rest}, i64 0")
    wide = w.new(f"shufflevector {kind} {first}, {kind} poison, <{w.lanes} x i32> zeroinitializer")
    steps = "<" + ", ".join(f"i64 {i}" for i in range(w.lanes)) + ">"
    w.mask = w.new(f"icmp sgt {kind} {wide}, {steps}")


def _tiled(
    w: KernelEmitter, number: int, inside: Inside, kinds: Sequence[str], values: Carried
) -> Carried:
    """Several rows at a time, then those left."""
    start, end = w.bounds(number)
    assert not kinds, "rows that are reduced into one another are not independent"
    if start == "0" and end.isdigit():
        n = int(end)
        rows = -(-n // -(-n // w.rows)) if n else 1  # as even as they can be
        whole, rest = n - n % rows, n % rows
        if whole:
            _rows(w, number, ("0", str(whole)), rows, inside)
        if rest:
            _rows(w, number, (str(whole), end), rest, inside)
        return []
    if w.nest.is_contraction and not w.first and isinstance(w.nest.loops[number], Dim):
        _overlapping(w, number, (start, end), inside)
        return []
    multiple = w.multiples.get(number, 1)
    if multiple % w.rows == 0:
        _rows(w, number, (start, end), w.rows, inside)
        return []
    length = w.new(f"sub nsw i64 {end}, {start}")
    left = w.new(f"srem i64 {length}, {w.rows}")
    whole_end = w.new(f"sub nsw i64 {end}, {left}")
    _rows(w, number, (start, whole_end), w.rows, inside)
    if w.nest.is_contraction:
        _left_at_once(w, number, whole_end, end, left, w.rows, inside)
    else:
        _left_by_halves(w, number, whole_end, left, multiple, inside)
    return []


def _overlapping(w: KernelEmitter, number: int, bounds: tuple[str, str], inside: Inside) -> None:
    """Whole tiles, of which the last one has rows that another has had; or, of fewer rows than a
    tile, one of them or of half of them. Only for results that do not depend on what was there."""
    start, end = bounds
    last = w.new(f"sub nsw i64 {end}, {w.rows}")
    tiles, fewer, done = w.label(), w.label(), w.label()
    w.branch(w.new(f"icmp sge i64 {last}, {start}"), tiles, fewer)
    w.start_block(tiles)
    w.declare("i64 @llvm.smin.i64(i64, i64)")

    def place(counter: str) -> str:
        return w.new(f"call i64 @llvm.smin.i64(i64 {counter}, i64 {last})")

    w.copies = w.rows
    _loop(w, number, bounds, w.rows, inside, (), [], place)
    w.copies = 1
    w.jump(done)
    w.start_block(fewer)
    left = w.new(f"sub nsw i64 {end}, {start}")
    half = w.rows // 2
    if half:
        many, few = w.label(), w.label()
        w.branch(w.new(f"icmp sgt i64 {left}, {half}"), many, few)
        w.start_block(few)
        _left_at_once(w, number, start, end, left, half, inside)
        w.jump(done)
        w.start_block(many)
    _left_at_once(w, number, start, end, left, w.rows, inside)
    w.jump(done)
    w.start_block(done)


def _left_at_once(
    w: KernelEmitter, number: int, start: str, end: str, left: str, rows: int, inside: Inside
) -> None:
    """The rows left as one more tile, in which the last one occurs again: some products are
    computed twice, which takes less time than row by row, where each step waits for the last."""
    go, skip = w.label(), w.label()
    w.branch(w.new(f"icmp sgt i64 {left}, 0"), go, skip)
    w.start_block(go)
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    last = w.new(f"sub nsw i64 {end}, 1")
    counters = [start]
    for t in range(1, rows):
        at = w.new(f"add nsw i64 {start}, {t}")
        counters.append(w.new(f"call i64 @llvm.smin.i64(i64 {at}, i64 {last})"))
    w.copies, w.even = rows, False
    _at(w, number, counters, inside, [])
    w.copies, w.even = 1, True
    w.jump(skip)
    w.start_block(skip)


def _left_by_halves(
    w: KernelEmitter, number: int, start: str, left: str, multiple: int, inside: Inside
) -> None:
    """The rows left, a multiple of some number, in tiles of half the size, a quarter, and so on:
    what is computed for a row may take long, so none is done twice."""
    size, least = w.rows // 2, gcd(multiple, w.rows)
    while size >= least:
        part = w.new(f"and i64 {left}, {size}")
        go, skip = w.label(), w.label()
        w.branch(w.new(f"icmp ne i64 {part}, 0"), go, skip)
        w.start_block(go)
        w.copies = size
        counters = [start, *(w.new(f"add nsw i64 {start}, {t}") for t in range(1, size))]
        _at(w, number, counters, inside, [])
        w.copies = 1
        w.jump(skip)
        w.start_block(skip)
        start = w.new(f"add nsw i64 {start}, {part}")
        size //= 2


def _rows(
    w: KernelEmitter, number: int, bounds: tuple[str, str], rows: int, inside: Inside
) -> None:
    w.copies = rows
    start, end = bounds
    if start.isdigit() and end.isdigit() and int(end) - int(start) == rows:
        _at(w, number, [start], inside, [])
    else:
        _loop(w, number, bounds, rows, inside, (), [])
    w.copies = 1


def transposed(
    w: KernelEmitter, number: int, inside: Inside, kinds: Sequence[str], values: Carried
) -> Carried:
    """Several steps of a contraction at a time, whose rows are read at once; then those left."""
    start, end = w.bounds(number)
    size = w.nest.loops[number]
    if isinstance(size, Dim) or w.first or (w.mask or "<")[0] != "<":
        return _plain(w, number, inside, kinds, values)

    def steps(counter: str, carried: Carried) -> Carried:
        w.turned = {}
        w.counters[number] = [counter]
        w.enter()
        w.place(number + 1)  # what is read of rows is kept
        w.leave()
        loop = w.open_loop(str(w.at_once), 1, "0", list(zip(kinds, carried, strict=True)))
        w.step = loop.counter
        at = w.new(f"add nsw i64 {counter}, {loop.counter}")
        w.close_loop(loop, _at(w, number, [at], inside, loop.values))
        w.turned = None
        return loop.values

    if number in w.in_blocks:  # whole but for the last one
        left = w.new(f"and i64 {end}, {w.at_once - 1}") if size % w.at_once else "0"
        last = w.new(f"sub nsw i64 {end}, {left}") if size % w.at_once else end
        loop = w.open_loop(last, w.at_once, start, list(zip(kinds, values, strict=True)))
        w.close_loop(loop, steps(loop.counter, loop.values))
        if not size % w.at_once:
            return loop.values
        return _loop(w, number, (last, end), 1, inside, kinds, loop.values)
    whole = size - size % w.at_once
    if whole == w.at_once:
        values = steps("0", values)
    elif whole:
        loop = w.open_loop(str(whole), w.at_once, "0", list(zip(kinds, values, strict=True)))
        w.close_loop(loop, steps(loop.counter, loop.values))
        values = loop.values
    for k in range(whole, size):
        values = _at(w, number, [str(k)], inside, values)
    return values


def masked(w: KernelEmitter, kind: str, new: str, old: str) -> str:
    """`new` in the lanes that count, `old` in the others."""
    if w.mask is None:
        return new
    bits = types.register_type(bool_, w.lanes)
    return w.new(f"select {bits} {w.mask}, {kind} {new}, {kind} {old}")
