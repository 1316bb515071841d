"""Products of small matrices whose sizes become known when they are there.

`rg_few_float32(count, m, n, k, a, a_row, a_step, a_next, b, b_step, b_column, b_next, c, c_row,
c_next, work)` sets `c = a b` for so many matrices, which lie `next` elements apart, of at least one
row, and one product for each result. It is to `rg_gemm_float32` what loops of a contraction's own
are to it where sizes are known: the right matrix is read where it is, if its rows are contiguous,
otherwise turned over into `work`, which has to hold it with its columns rounded up to whole
vectors. Results take their products in the same order, so the bits are the same, up to a group of
them; there are no more.
"""

from __future__ import annotations

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm.microkernel import (
    Place,
    Tile,
    opaque,
    row_at,
    row_places,
    with_earlier,
)
from retrograd.codegen.gemm.packing import pack_columns
from retrograd.codegen.target import Target
from retrograd.ir import float32, float64
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.tuning import TUNING

SMALL = {f"rg_few_{dtype}": dtype for dtype in (float32, float64)}
PARAMETERS = (
    "i64 %count, i64 %m, i64 %n, i64 %k, ptr noalias %a, i64 %a_row, i64 %a_step, i64 %a_next, "
    "ptr noalias %b, i64 %b_step, i64 %b_column, i64 %b_next, ptr noalias %c, i64 %c_row, "
    "i64 %c_next, ptr noalias %work"
)
COLUMNS = (
    "i64 %count, i64 %m, i64 %k, i64 %lanes, ptr noalias %a, i64 %a_row, i64 %a_step, i64 %a_next, "
    "ptr noalias %b, i64 %b_step, i64 %b_next, ptr noalias %c, i64 %c_row, i64 %c_next"
)


def small_text(machine: Target, name: str) -> str:
    """The module that defines one of the routines."""
    tile = Tile.of(machine, SMALL[name])
    declared: dict[str, None] = {}

    def writer() -> FunctionBuilder:
        return FunctionBuilder(lambda function: declared.update({function: None}))

    functions = [pack_columns(tile, writer()), _main(tile, name, writer())]
    for vectors, some in ((2, False), (1, False), (1, True)):
        functions += _columns(tile, vectors, some, [writer() for _ in range(4)])
    heads = [f"declare {d}" for d in declared]
    return "\n".join([*heads, *functions, "attributes #0 = { noinline nounwind }"]) + "\n"


def _main(tile: Tile, name: str, w: FunctionBuilder) -> str:
    by_rows = w.new("icmp eq i64 %b_column, 1")
    there, turn = w.label(), w.label()
    w.branch(by_rows, there, turn)
    w.start_block(there)
    right = "%b", "%b_step", "%b_next"
    _strip(tile, w, ("%a", right, "%c"), "%count", "%n")
    w.line("ret void")
    w.start_block(turn)
    _turned(tile, w)
    w.line("ret void")
    return f"define void @{name}({PARAMETERS}) #0 {{\n{w.text()}\n}}"


def _turned(tile: Tile, w: FunctionBuilder) -> None:
    """As many matrices as have room are turned over, then multiplied."""
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    w.declare("i64 @llvm.smax.i64(i64, i64)")
    wide = w.new(f"and i64 {w.new(f'add i64 %n, {tile.lanes - 1}')}, {-tile.lanes}")
    size = w.new(f"mul i64 {wide}, %k")
    some = w.new(f"call i64 @llvm.smax.i64(i64 {size}, i64 1)")
    most = w.new(f"udiv i64 {TUNING.small_gemm_elements}, {some}")
    most = w.new(f"call i64 @llvm.smax.i64(i64 {most}, i64 1)")
    groups = w.open_loop("%count", most, "0", [("ptr", "%a"), ("ptr", "%b"), ("ptr", "%c")])
    a, b, c = groups.values
    left = w.new(f"sub i64 %count, {groups.counter}")
    many = w.new(f"call i64 @llvm.smin.i64(i64 {left}, i64 {most})")
    each = w.open_loop(many, 1, "0", [("ptr", b), ("ptr", "%work")])
    at, to = each.values
    w.line(f"call void @pack_columns(ptr {to}, ptr {at}, i64 %n, i64 %k, i64 %b_column)")
    w.close_loop(each, [tile.at(w, at, "%b_next"), tile.at(w, to, size)])
    panels = w.open_loop("%n", tile.columns)
    first = panels.counter
    rest = w.new(f"sub i64 %n, {first}")
    width = w.new(f"call i64 @llvm.smin.i64(i64 {rest}, i64 {tile.columns})")
    step = w.new(f"and i64 {w.new(f'add i64 {width}, {tile.lanes - 1}')}, {-tile.lanes}")
    panel = tile.at(w, "%work", w.new(f"mul i64 {first}, %k"))
    _strip(tile, w, (a, (panel, step, size), tile.at(w, c, first)), many, width)
    w.close_loop(panels)
    a, c = (tile.at(w, x, w.new(f"mul i64 {many}, %{s}_next")) for x, s in ((a, "a"), (c, "c")))
    w.close_loop(groups, [a, each.values[0], c])


def _strip(
    tile: Tile,
    w: FunctionBuilder,
    at: tuple[str, tuple[str, str, str], str],
    count: str,
    width: str,
) -> None:
    """All rows of so many matrices by so many columns: two vectors at a time, then one, then a part
    of one."""
    a, (b, b_step, b_next), c = at

    def call(function: str, first: str, lanes: str | int) -> None:
        right, out = tile.at(w, b, first), tile.at(w, c, first)
        w.line(
            f"call void @{function}(i64 {count}, i64 %m, i64 %k, i64 {lanes}, ptr {a}, i64 %a_row, "
            f"i64 %a_step, i64 %a_next, ptr {right}, i64 {b_step}, i64 {b_next}, ptr {out}, "
            "i64 %c_row, i64 %c_next)"
        )

    even = w.new(f"and i64 {width}, {-2 * tile.lanes}")
    pairs = w.open_loop(even, 2 * tile.lanes)
    call("columns2", pairs.counter, 0)
    w.close_loop(pairs)
    rest = w.new(f"and i64 {width}, {tile.lanes}")
    last = w.new(f"or i64 {even}, {rest}")
    part = w.new(f"and i64 {width}, {tile.lanes - 1}")
    for some, function, first in ((rest, "columns1", even), (part, "some_columns", last)):
        go, on = w.label(), w.label()
        w.branch(w.new(f"icmp ne i64 {some}, 0"), go, on)
        w.start_block(go)
        call(function, first, some)
        w.jump(on)
        w.start_block(on)


def _columns(tile: Tile, vectors: int, some: bool, writers: list[FunctionBuilder]) -> list[str]:
    """The function `columnsN`: all rows by N vectors of columns; `some_columns`: by the first
    `%lanes` of one. Where rows are left, the last tile has some that another has had; fewer rows
    than a tile are for functions of their own."""
    rows = TUNING.small_gemm_rows if vectors == 1 else tile.rows
    name = "some_columns" if some else f"columns{vectors}"
    w, *others = writers
    found = [_tiles(tile, f"{name}_by_{rows}", vectors, some, rows, others.pop())]
    given = ", ".join(p.replace("noalias ", "") for p in COLUMNS.split(", "))

    def rest(function: str) -> None:
        w.line(f"tail call void @{function}({given})")
        w.line("ret void")

    enough, fewer = w.label(), w.label()
    w.branch(w.new(f"icmp sge i64 %m, {rows}"), enough, fewer)
    w.start_block(enough)
    rest(f"{name}_by_{rows}")
    w.start_block(fewer)
    many, few = w.label(), w.label()
    w.branch(w.new(f"icmp sgt i64 %m, {rows // 2}"), many, few)
    for label, count in ((many, rows), (few, rows // 2)):
        w.start_block(label)
        rest(f"{name}_of_{count}")
        found.append(_few_rows(tile, f"{name}_of_{count}", vectors, some, count, others.pop()))
    return [*found, f"define internal void @{name}({COLUMNS}) #0 {{\n{w.text()}\n}}"]


def _tiles(tile: Tile, name: str, vectors: int, some: bool, rows: int, w: FunctionBuilder) -> str:
    """Tiles of so many rows, of which there are as many."""
    last = w.new(f"sub i64 %m, {rows}")
    mask = tile.first_lanes(w, "%lanes") if some else None
    a_places = row_places(tile, w, "%a_row", rows)
    c_places = row_places(tile, w, "%c_row", rows)
    each = w.open_loop("%count", 1, "0", [("ptr", "%a"), ("ptr", "%b"), ("ptr", "%c")])
    a, b, c = each.values
    loop = w.open_loop("%m", rows)
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    first = w.new(f"call i64 @llvm.smin.i64(i64 {loop.counter}, i64 {last})")
    row, out = (tile.at(w, x, w.new(f"mul i64 {first}, %{s}_row")) for x, s in ((a, "a"), (c, "c")))
    _rows(tile, w, (row, b, out), (a_places, c_places), vectors, mask)
    w.close_loop(loop)
    w.close_loop(each, _next(tile, w, a, b, c))
    w.line("ret void")
    return f"define internal void @{name}({COLUMNS}) #0 {{\n{w.text()}\n}}"


def _few_rows(
    tile: Tile, name: str, vectors: int, some: bool, count: int, w: FunctionBuilder
) -> str:
    """At most so many rows: those that are not there are the last one again."""
    mask = tile.first_lanes(w, "%lanes") if some else None
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    end = w.new("sub i64 %m, 1")
    near = [w.new(f"call i64 @llvm.smin.i64(i64 {end}, i64 {i})") for i in range(1, count)]

    def places(row: str) -> list[Place]:
        size = w.new(f"mul i64 {row}, {tile.dtype.itemsize}")
        return [("0", 1), *((opaque(w, w.new(f"mul i64 {x}, {size}")), 1) for x in near)]

    a_places, c_places = places("%a_row"), places("%c_row")
    each = w.open_loop("%count", 1, "0", [("ptr", "%a"), ("ptr", "%b"), ("ptr", "%c")])
    a, b, c = each.values
    _rows(tile, w, (a, b, c), (a_places, c_places), vectors, mask)
    w.close_loop(each, _next(tile, w, a, b, c))
    w.line("ret void")
    return f"define internal void @{name}({COLUMNS}) #0 {{\n{w.text()}\n}}"


def _next(tile: Tile, w: FunctionBuilder, a: str, b: str, c: str) -> list[str]:
    return [tile.at(w, x, f"%{s}_next") for x, s in zip((a, b, c), "abc", strict=True)]


def _rows(
    tile: Tile, w: FunctionBuilder, at: tuple[str, str, str],
    places: tuple[list[Place], list[Place]],
    vectors: int, mask: str | None,
) -> None:  # fmt: skip
    """A tile of results, from rows of the left matrix and columns of the right one, block after
    block: what a block adds up to is added to what is there."""
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    blocks = w.open_loop(
        "%k", PRODUCTS.block, "0", [("ptr", at[0]), ("ptr", at[1]), ("i1", "false")]
    )
    left = w.new(f"sub nsw i64 %k, {blocks.counter}")
    count = w.new(f"call i64 @llvm.smin.i64(i64 {left}, i64 {PRODUCTS.block})")
    left_at, b, more = blocks.values
    *totals, left_at, b = _sums(tile, w, (left_at, b), places[0], count, vectors, mask)
    outs = [
        tile.at(w, row_at(w, at[2], place), v * tile.lanes)
        for place in places[1] for v in range(vectors)
    ]  # fmt: skip
    totals = with_earlier(tile, outs, [mask] * len(outs), totals, more, w)
    for x, out in zip(totals, outs, strict=True):
        tile.store(w, x, out, mask)
    w.close_loop(blocks, [left_at, b, "true"])


def _sums(
    tile: Tile, w: FunctionBuilder, at: tuple[str, str], places: list[Place], count: str,
    vectors: int,
    mask: str | None,
) -> list[str]:  # fmt: skip
    """What so many steps add up to, and where the next one is."""
    zero = types.literal(-0.0, tile.dtype, tile.lanes)
    carried = [(tile.vector, zero)] * (len(places) * vectors) + [("ptr", at[0]), ("ptr", at[1])]
    loop = w.open_loop(count, 1, "0", carried)
    *totals, left_at, b = loop.values
    row = [tile.load(w, tile.at(w, b, v * tile.lanes), mask) for v in range(vectors)]
    new = []
    for i, place in enumerate(places):
        x = types.load(w, row_at(w, left_at, place), tile.dtype)
        x = types.broadcast(w, x, tile.dtype, tile.lanes)
        new += [tile.added(w, x, y, totals[i * vectors + v]) for v, y in enumerate(row)]
    new += [tile.at(w, left_at, "%a_step"), tile.at(w, b, "%b_step")]
    w.close_loop(loop, new)
    return loop.values
