"""Products of small matrices whose sizes become known when they are there.

`rg_few_float32(count, m, n, k, a, a_row, a_step, a_next, b, b_step, b_column, b_next, c, c_row,
c_next, work)` sets `c = a b` for so many matrices, which lie `next` elements apart, of at least one
row, and one product for each result. It is to `rg_gemm_float32` what loops of a contraction's own are to it
where sizes are known: the right matrix is read where it is, if its rows are contiguous, otherwise
turned over into `work`, which has to hold it with its columns rounded up to whole vectors. Results
take their products one after the other, so the bits are the same.
"""

from __future__ import annotations

from retrograd.backends.llvm import types
from retrograd.backends.llvm.machine import Machine
from retrograd.backends.llvm.product.panels import pack_columns
from retrograd.backends.llvm.product.tile import Tile
from retrograd.backends.llvm.writer import Writer
from retrograd.ir import float32, float64

SMALL = {f"rg_few_{dtype}": dtype for dtype in (float32, float64)}
PARAMETERS = (
    "i64 %count, i64 %m, i64 %n, i64 %k, ptr noalias %a, i64 %a_row, i64 %a_step, i64 %a_next, "
    "ptr noalias %b, i64 %b_step, i64 %b_column, i64 %b_next, ptr noalias %c, i64 %c_row, "
    "i64 %c_next, ptr noalias %work"
)
COLUMNS = (
    "ptr noalias %a, i64 %a_row, i64 %a_step, ptr noalias %b, i64 %b_step, ptr noalias %c, "
    "i64 %c_row, i64 %m, i64 %k, i64 %lanes"
)
ROWS = 8  # sums side by side that take no longer than one waits for the next product


def small_text(machine: Machine, name: str) -> str:
    """The module that defines one of the routines."""
    tile = Tile.of(machine, SMALL[name])
    declared: dict[str, None] = {}

    def writer() -> Writer:
        return Writer(lambda function: declared.update({function: None}))

    functions = [pack_columns(tile, writer()), _main(tile, name, writer())]
    for vectors, some in ((2, False), (1, False), (1, True)):
        functions += _columns(tile, vectors, some, [writer() for _ in range(3)])
    heads = [f"declare {d}" for d in declared]
    return "\n".join([*heads, *functions, "attributes #0 = { noinline nounwind }"]) + "\n"


def _main(tile: Tile, name: str, w: Writer) -> str:
    by_rows = w.new("icmp eq i64 %b_column, 1")
    step = w.new(f"select i1 {by_rows}, i64 %n, i64 {tile.columns}")
    each = w.open_loop("%count", 1, "0", [("ptr", "%a"), ("ptr", "%b"), ("ptr", "%c")])
    a, b, c = each.values
    turn, go = w.label(), w.label()
    w.branch(by_rows, go, turn)
    w.start_block(turn)
    w.line(f"call void @pack_columns(ptr %work, ptr {b}, i64 %n, i64 %k, i64 %b_column)")
    w.jump(go)
    w.start_block(go)
    panels = w.open_loop("%n", step)
    first = panels.counter
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    left = w.new(f"sub i64 %n, {first}")
    width = w.new(f"call i64 @llvm.smin.i64(i64 {left}, i64 {step})")
    wide = w.new(f"and i64 {w.new(f'add i64 {width}, {tile.lanes - 1}')}, {-tile.lanes}")
    panel = tile.at(w, "%work", w.new(f"mul i64 {first}, %k"))
    right = w.new(f"select i1 {by_rows}, ptr {b}, ptr {panel}")
    b_step = w.new(f"select i1 {by_rows}, i64 %b_step, i64 {wide}")
    _panel(tile, w, (a, right, tile.at(w, c, first)), b_step, width)
    w.close_loop(panels)
    moved = [tile.at(w, x, f"%{s}_next") for x, s in zip((a, b, c), "abc", strict=True)]
    w.close_loop(each, moved)
    w.line("ret void")
    return f"define void @{name}({PARAMETERS}) #0 {{\n{w.text()}\n}}"


def _panel(tile: Tile, w: Writer, at: tuple[str, str, str], b_step: str, width: str) -> None:
    """All rows by so many columns: two vectors at a time, then one, then a part of one."""
    a, b, c = at

    def call(function: str, first: str, lanes: str | int) -> None:
        right, out = tile.at(w, b, first), tile.at(w, c, first)
        w.line(
            f"call void @{function}(ptr {a}, i64 %a_row, i64 %a_step, ptr {right}, i64 {b_step}, "
            f"ptr {out}, i64 %c_row, i64 %m, i64 %k, i64 {lanes})"
        )

    even = w.new(f"and i64 {width}, {-2 * tile.lanes}")
    pairs = w.open_loop(even, 2 * tile.lanes)
    call("columns2", pairs.counter, 0)
    w.close_loop(pairs)
    rest = w.new(f"and i64 {width}, {tile.lanes}")
    last = w.new(f"or i64 {even}, {rest}")
    part = w.new(f"and i64 {width}, {tile.lanes - 1}")
    for count, function, first in ((rest, "columns1", even), (part, "some_columns", last)):
        some, on = w.label(), w.label()
        w.branch(w.new(f"icmp ne i64 {count}, 0"), some, on)
        w.start_block(some)
        call(function, first, count)
        w.jump(on)
        w.start_block(on)


def _columns(tile: Tile, vectors: int, some: bool, writers: list[Writer]) -> list[str]:
    """The function `columnsN`: all rows by N vectors of columns; `some_columns`: by the first
    `%lanes` of one. Where rows are left, the last tile has some that another has had; fewer rows
    than a tile are for functions of their own."""
    rows = ROWS if vectors == 1 else tile.rows
    name = "some_columns" if some else f"columns{vectors}"
    w, *others = writers
    tiles, fewer, many, few = (w.label() for _ in range(4))
    last = w.new(f"sub i64 %m, {rows}")
    w.branch(w.new(f"icmp sge i64 {last}, 0"), tiles, fewer)
    w.start_block(tiles)
    mask = tile.first_lanes(w, "%lanes") if some else None
    a_places = _places(tile, w, "%a_row", rows)
    c_places = _places(tile, w, "%c_row", rows)
    loop = w.open_loop("%m", rows)
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    first = w.new(f"call i64 @llvm.smin.i64(i64 {loop.counter}, i64 {last})")
    a, c = (tile.at(w, x, w.new(f"mul i64 {first}, {x}_row")) for x in ("%a", "%c"))
    _store(tile, w, c, c_places, _sums(tile, w, a, a_places, vectors, mask), mask)
    w.close_loop(loop)
    w.line("ret void")
    w.start_block(fewer)
    w.branch(w.new(f"icmp sgt i64 %m, {rows // 2}"), many, few)
    found = []
    given = ", ".join(p.replace("noalias ", "") for p in COLUMNS.split(", "))
    for label, count, own in zip((many, few), (rows, rows // 2), others, strict=True):
        w.start_block(label)
        w.line(f"tail call void @{name}_of_{count}({given})")
        w.line("ret void")
        found.append(_few_rows(tile, f"{name}_of_{count}", vectors, some, count, own))
    return [*found, f"define internal void @{name}({COLUMNS}) #0 {{\n{w.text()}\n}}"]


def _few_rows(tile: Tile, name: str, vectors: int, some: bool, count: int, w: Writer) -> str:
    """At most so many rows: those that are not there are the last one again."""
    mask = tile.first_lanes(w, "%lanes") if some else None
    w.declare("i64 @llvm.smin.i64(i64, i64)")

    def places(row: str) -> list[Place]:
        end = w.new(f"sub i64 {_opaque(w, '%m')}, 1")
        near = [w.new(f"call i64 @llvm.smin.i64(i64 {end}, i64 {i})") for i in range(1, count)]
        size = w.new(f"mul i64 {row}, {tile.dtype.itemsize}")
        return [("0", 1), *((_opaque(w, w.new(f"mul i64 {x}, {size}")), 1) for x in near)]

    sums = _sums(tile, w, "%a", places("%a_row"), vectors, mask)
    _store(tile, w, "%c", places("%c_row"), sums, mask)
    w.line("ret void")
    return f"define internal void @{name}({COLUMNS}) #0 {{\n{w.text()}\n}}"


Place = tuple[str, int]  # how many bytes, and how many times these


def _opaque(w: Writer, x: str) -> str:
    """A number of which LLVM does not know how it is related to others: it would make an address of
    another one in each step of a loop."""
    return w.new(f'call i64 asm "", "=r,0"(i64 {x})')


def _places(tile: Tile, w: Writer, row: str, count: int) -> list[Place]:
    """Where rows are that follow one another: a processor adds a register to an address, or two,
    four or eight times that, so that eight rows need four registers."""
    size = w.new(f"mul i64 {row}, {tile.dtype.itemsize}")
    odd = {n: _opaque(w, w.new(f"mul i64 {size}, {n}")) for n in range(1, count, 2)}
    return [("0", 1), *((odd[n // (n & -n)], n & -n) for n in range(1, count))]


def _row(w: Writer, start: str, place: Place) -> str:
    step, times = place
    return w.new(f"getelementptr i{8 * times}, ptr {start}, i64 {step}")


def _sums(
    tile: Tile, w: Writer, a: str, places: list[Place], vectors: int, mask: str | None
) -> list[str]:
    """A tile of results."""
    zero = types.literal(-0.0, tile.dtype, tile.lanes)
    carried = [(tile.vector, zero)] * (len(places) * vectors) + [("ptr", a), ("ptr", "%b")]
    loop = w.open_loop("%k", 1, "0", carried)
    *totals, at, b = loop.values
    row = [tile.load(w, tile.at(w, b, v * tile.lanes), mask) for v in range(vectors)]
    new = []
    for i, place in enumerate(places):
        x = types.load(w, _row(w, at, place), tile.dtype)
        x = types.broadcast(w, x, tile.dtype, tile.lanes)
        new += [tile.added(w, x, y, totals[i * vectors + v]) for v, y in enumerate(row)]
    new += [tile.at(w, at, "%a_step"), tile.at(w, b, "%b_step")]
    w.close_loop(loop, new)
    return loop.values[:-2]


def _store(
    tile: Tile, w: Writer, c: str, places: list[Place], sums: list[str], mask: str | None
) -> None:
    vectors = len(sums) // len(places)
    for i, place in enumerate(places):
        out = _row(w, c, place)
        for v in range(vectors):
            tile.store(w, sums[i * vectors + v], tile.at(w, out, v * tile.lanes), mask)
