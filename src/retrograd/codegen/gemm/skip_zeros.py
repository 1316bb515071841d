"""Products with zeros, left out where that changes no bit.

Of the probabilities of causal attention half are zeros, and lie together. A zero times a number
that is finite is a zero, and a zero added to anything but -0 changes nothing. So a few rows of the
left matrix go through the steps from the first to the last one in which any of them is not zero, if
the block of the right matrix is finite. Where a sum is -0, it takes all products. What is left out
of a block of products (`ops/numerics/summation.py`) changes at most the sign of a total that is
zero, so nothing but a sum that is -0.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm.microkernel import Tile
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.tuning import TUNING


def all_finite(tile: Tile, writer: Callable[[], FunctionBuilder]) -> str:
    """The function `all_finite`: whether rows of `%n` elements hold neither infinities nor NaN."""
    bits = f"i{8 * tile.dtype.itemsize}"

    def other(w: FunctionBuilder, x: str) -> str:
        none = w.new(f"fsub {tile.vector} {x}, {x}")  # or NaN
        return w.new(f"bitcast {tile.vector} {none} to {types.widened(bits, tile.lanes)}")

    return _none_is(tile, writer(), "all_finite", other)


def no_minus_zero(tile: Tile, writer: Callable[[], FunctionBuilder]) -> str:
    """The function `no_minus_zero`: whether no element of rows of `%n` is -0."""
    bits = f"i{8 * tile.dtype.itemsize}"
    kind = types.widened(bits, tile.lanes)
    sign = types.splat(bits, str(-(1 << (8 * tile.dtype.itemsize - 1))), tile.lanes)

    def found(w: FunctionBuilder, x: str) -> str:
        same = w.new(f"icmp eq {kind} {w.new(f'bitcast {tile.vector} {x} to {kind}')}, {sign}")
        return w.new(f"sext <{tile.lanes} x i1> {same} to {kind}")

    return _none_is(tile, writer(), "no_minus_zero", found)


def _none_is(
    tile: Tile, w: FunctionBuilder, name: str, flag: Callable[[FunctionBuilder, str], str]
) -> str:
    """Whether no element has a `flag`, a number of which any bit is set. What is not there is 0."""
    bits = f"i{8 * tile.dtype.itemsize}"
    kind = types.widened(bits, tile.lanes)
    joined = w.new("icmp eq i64 %row, %n")  # rows without gaps are one
    many = w.new(f"select i1 {joined}, i64 1, i64 %rows")
    length = w.new(f"select i1 {joined}, i64 {w.new('mul i64 %rows, %n')}, i64 %n")
    rows = w.open_loop(many, 1, "0", [(kind, "zeroinitializer")])
    start = tile.at(w, "%at", w.new(f"mul i64 {rows.counter}, %row"))
    whole = w.new(f"and i64 {length}, {-tile.lanes}")
    columns = w.open_loop(whole, tile.lanes, "0", [(kind, rows.values[0])])
    x = tile.load(w, tile.at(w, start, columns.counter))
    w.close_loop(columns, [w.new(f"or {kind} {columns.values[0]}, {flag(w, x)}")])
    mask = tile.first_lanes(w, w.new(f"sub i64 {length}, {whole}"))
    x = tile.load(w, tile.at(w, start, whole), mask)
    w.close_loop(rows, [w.new(f"or {kind} {columns.values[0]}, {flag(w, x)}")])
    reduce = f"llvm.vector.reduce.or.v{tile.lanes}{bits}"
    w.declare(f"{bits} @{reduce}({kind})")
    one = w.new(f"call {bits} @{reduce}({kind} {rows.values[0]})")
    w.line(f"ret i1 {w.new(f'icmp eq {bits} {one}, 0')}")
    given = "ptr noalias %at, i64 %rows, i64 %row, i64 %n"
    return f"define internal i1 @{name}_{tile.dtype}({given}) #0 {{\n{w.text()}\n}}"


def functions(
    tile: Tile, writers: tuple[FunctionBuilder, FunctionBuilder, FunctionBuilder, FunctionBuilder]
) -> list[str]:
    """`first_step`, `last_step`, `finite`, `some_steps`."""
    edge, far, finite, steps = writers
    return [
        _edge(tile, edge, "first_step", from_end=False),
        _edge(tile, far, "last_step", from_end=True),
        _finite(tile, finite),
        _some_steps(tile, steps),
    ]


def _edge(tile: Tile, w: FunctionBuilder, name: str, from_end: bool) -> str:
    """How many steps at the start, or at the end, find zeros in all rows of a tile; a multiple of
    `zero_scan_steps`. Either rows or steps lie side by side."""
    bits = f"i{8 * tile.dtype.itemsize}"
    beside = w.new("icmp eq i64 %a_step, 1")
    full = w.new(f"icmp eq i64 %rows, {tile.rows}")
    fits = w.new(f"or i1 {beside}, {full}")  # or there are too few rows to read as a vector
    last = w.new("sub i64 %rows, 1")
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    # One number tells, mostly: the last row's.
    step = w.new("mul i64 %a_step, " + (w.new("sub i64 %k, 1") if from_end else "0"))
    corner = w.new(f"add i64 {step}, {w.new(f'mul i64 {last}, %a_row')}")
    x = types.load(w, tile.at(w, "%a", corner), tile.dtype)
    none = w.new(f"fcmp oeq {tile.scalar} {x}, {types.literal(0.0, tile.dtype)}")
    go, leave = w.label(), w.label()
    w.branch(w.new(f"and i1 {fits}, {none}"), go, leave)
    w.start_block(leave)
    w.line("ret i64 0")
    w.start_block(go)
    turns = w.new(f"udiv i64 %k, {TUNING.zero_scan_steps}")
    loop = w.open_loop(turns)
    passed = w.new(f"mul i64 {loop.counter}, {TUNING.zero_scan_steps}")
    at = passed
    if from_end:
        at = w.new(f"sub i64 %k, {w.new(f'add i64 {passed}, {TUNING.zero_scan_steps}')}")
    start = tile.at(w, "%a", w.new(f"mul i64 {at}, %a_step"))
    by_row, by_step, told = w.label(), w.label(), w.label()
    w.branch(beside, by_row, by_step)
    found = []
    for label, count, size in (
        (by_row, tile.rows, TUNING.zero_scan_steps),
        (by_step, TUNING.zero_scan_steps, tile.rows),
    ):
        w.start_block(label)
        kind = types.widened(bits, size)
        total = types.splat(bits, "0", size)
        for i in range(count):
            if label == by_row:
                near = w.new(f"call i64 @llvm.smin.i64(i64 {i}, i64 {last})")
                place = tile.at(w, start, w.new(f"mul i64 {near}, %a_row"))
            else:
                place = tile.at(w, start, w.new(f"mul i64 {i}, %a_step"))
            x = w.new(f"load {kind}, ptr {place}, align {tile.dtype.itemsize}")
            total = w.new(f"or {kind} {total}, {x}")
        reduce = f"llvm.vector.reduce.or.v{size}{bits}"
        w.declare(f"{bits} @{reduce}({kind})")
        one = w.new(f"call {bits} @{reduce}({kind} {total})")
        sizes = w.new(f"shl {bits} {one}, 1")  # without the signs
        found.append((w.new(f"icmp ne {bits} {sizes}, 0"), w.block))
        w.jump(told)
    w.start_block(told)
    listed = ", ".join(f"[ {x}, %{block} ]" for x, block in found)
    some = w.new(f"phi i1 {listed}")
    over, on = w.label(), w.label()
    w.branch(some, over, on)
    w.start_block(over)
    w.line(f"ret i64 {passed}")
    w.start_block(on)
    w.close_loop(loop)
    w.line(f"ret i64 {w.new(f'mul i64 {turns}, {TUNING.zero_scan_steps}')}")
    parameters = "ptr %a, i64 %a_row, i64 %a_step, i64 %k, i64 %rows"
    return f"define internal i64 @{name}({parameters}) #0 {{\n{w.text()}\n}}"


def _finite(tile: Tile, w: FunctionBuilder) -> str:
    """Whether so many rows, `%step` elements apart, hold neither infinities nor NaN: zero times
    them is zero."""
    zero = types.literal(0.0, tile.dtype, tile.lanes)
    rows = w.open_loop("%rows", 1, "0", [("ptr", "%at"), (tile.vector, zero)])
    at, before = rows.values
    loop = w.open_loop("%width", tile.lanes, "0", [(tile.vector, before)])
    mask = tile.first_lanes(w, w.new(f"sub i64 %width, {loop.counter}"))
    x = tile.load(w, tile.at(w, at, loop.counter), mask)
    none = w.new(f"fsub {tile.vector} {x}, {x}")  # or NaN
    w.close_loop(loop, [w.new(f"fadd {tile.vector} {loop.values[0]}, {none}")])
    w.close_loop(rows, [tile.at(w, at, "%step"), loop.values[0]])
    total = rows.values[1]
    bad = w.new(f"fcmp uno {tile.vector} {total}, {total}")
    mask = w.new(f"bitcast <{tile.lanes} x i1> {bad} to i{tile.lanes}")
    w.line(f"ret i1 {w.new(f'icmp eq i{tile.lanes} {mask}, 0')}")
    parameters = "ptr %at, i64 %rows, i64 %width, i64 %step"
    return f"define internal i1 @finite({parameters}) #0 {{\n{w.text()}\n}}"


def _some_steps(tile: Tile, w: FunctionBuilder) -> str:
    """The rows of a tile by all panels, with `%lo` steps at the start and those from `%hi` on of
    products with zeros. The right matrix is read where it is, in rows `%b_step` apart, or, where
    that is 0, in panels."""
    there = w.new("icmp ne i64 %b_step, 0")
    depth = w.new(f"select i1 {there}, i64 1, i64 %k")
    panels = w.open_loop("%n", tile.columns)
    left = w.new(f"sub i64 %n, {panels.counter}")
    b = tile.at(w, "%b", w.new(f"mul i64 {panels.counter}, {depth}"))
    c = tile.at(w, "%c", panels.counter)
    end = w.label()
    for vectors in range(tile.vectors, 0, -1):
        lanes = w.new(f"sub i64 {left}, {(vectors - 1) * tile.lanes}")
        if vectors == tile.vectors:
            w.declare("i64 @llvm.smin.i64(i64, i64)")
            lanes = w.new(f"call i64 @llvm.smin.i64(i64 {lanes}, i64 {tile.lanes})")
        here, fewer = w.label(), w.label()
        w.branch(w.new(f"icmp sgt i64 {lanes}, 0"), here, fewer)
        w.start_block(here)
        step = w.new(f"select i1 {there}, i64 %b_step, i64 {vectors * tile.lanes}")
        _tile_steps(tile, w, vectors, (b, step, c, lanes))
        w.jump(end)
        w.start_block(fewer)
    w.jump(end)
    w.start_block(end)
    w.close_loop(panels)
    w.line("ret void")
    parameters = (
        "ptr noalias %a, i64 %a_row, i64 %a_step, ptr noalias %b, i64 %b_step, ptr noalias %c, "
        "i64 %c_row, i64 %k, i64 %rows, i64 %n, i1 %more, i64 %lo, i64 %hi"
    )
    return f"define internal void @some_steps({parameters}) #0 {{\n{w.text()}\n}}"


def _tile_steps(
    tile: Tile, w: FunctionBuilder, vectors: int, at: tuple[str, str, str, str]
) -> None:
    """One tile: from `%lo`, unless a sum is -0 there, to `%hi`, or to the end if one is -0 then."""
    b, b_step, c, lanes = at

    def call(first: str, last: str, more: str) -> None:
        a = tile.at(w, "%a", w.new(f"mul i64 {first}, %a_step"))
        right = tile.at(w, b, w.new(f"mul i64 {first}, {b_step}"))
        count = w.new(f"sub i64 {last}, {first}")
        begun = w.new(f"and i64 {first}, {PRODUCTS.block - 1}")
        w.line(
            f"call void @strip{vectors}(ptr {a}, i64 %a_row, i64 %a_step, ptr {right}, "
            f"i64 {b_step}, i64 0, ptr {c}, i64 %c_row, i64 {count}, i64 %rows, i64 1, "
            f"i64 {lanes}, i1 {more}, i64 {begun}, ptr {right}, i64 0, i64 0)"
        )

    doubt, sure = w.label(), w.label()
    here = w.block
    w.branch("%more", doubt, sure)
    w.start_block(doubt)
    negative = _holds_minus_zero(tile, w, vectors, c, lanes)
    begun = w.new(f"select i1 {negative}, i64 0, i64 %lo")
    known = w.block
    w.jump(sure)
    w.start_block(sure)
    first = w.new(f"phi i64 [ 0, %{here} ], [ {begun}, %{known} ]")
    call(first, "%hi", "%more")
    rest, done = w.label(), w.label()
    negative = _holds_minus_zero(tile, w, vectors, c, lanes)
    w.branch(negative, rest, done)
    w.start_block(rest)
    call("%hi", "%k", "true")
    w.jump(done)
    w.start_block(done)


def _holds_minus_zero(tile: Tile, w: FunctionBuilder, vectors: int, c: str, lanes: str) -> str:
    """Whether any of the results of a tile is -0."""
    bits = f"i{8 * tile.dtype.itemsize}"
    kind = types.widened(bits, tile.lanes)
    sign = types.splat(bits, str(-(1 << (8 * tile.dtype.itemsize - 1))), tile.lanes)
    one = types.literal(1.0, tile.dtype, tile.lanes)
    mask = tile.first_lanes(w, lanes)
    flags = f"<{tile.lanes} x i1>"
    rows = w.open_loop("%rows", 1, "0", [(flags, "zeroinitializer")])
    row = tile.at(w, c, w.new(f"mul i64 {rows.counter}, %c_row"))
    total = rows.values[0]
    for v in range(vectors):
        x = tile.load(w, tile.at(w, row, v * tile.lanes), mask if v == vectors - 1 else None)
        if v == vectors - 1:
            x = w.new(f"select {flags} {mask}, {tile.vector} {x}, {tile.vector} {one}")
        same = w.new(f"icmp eq {kind} {w.new(f'bitcast {tile.vector} {x} to {kind}')}, {sign}")
        total = w.new(f"or {flags} {total}, {same}")
    w.close_loop(rows, [total])
    any_ = w.new(f"bitcast {flags} {rows.values[0]} to i{tile.lanes}")
    return w.new(f"icmp ne i{tile.lanes} {any_}, 0")
