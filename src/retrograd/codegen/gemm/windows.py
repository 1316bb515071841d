"""Products with the windows of an image on the right, read where the image lies.

`rg_gemm_windows_float32(m, k, count, a, a_row, a_step, b, steps, vectors, c, c_row, work, stop)`
sets `c = a b`, where b is *spread*: row p of it begins at `steps[p]`, and its columns are `count`
vectors of contiguous elements, of each of which `vectors` has three numbers: where it lies in each
row of b, where in each row of c, and how many elements it has, if not all that a vector can have.
Tables are of 32-bit numbers. Each of these vectors is a part of a row of the image, at another
place for each element of the kernel, so nothing has to be laid out.

The left matrix, the weights, is copied first, into panels of as many rows as a vector has elements:
`work` has room for that. A block of the columns of a tile stays in the first-level cache while the
rows of the left matrix pass by. There are no more products in a sum than are a group
(`ops/numerics/summation.py`), and one at least.
"""

from __future__ import annotations

from dataclasses import replace

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm.microkernel import Tile, offset, with_earlier
from retrograd.codegen.gemm.packing import pack_columns, pack_rows
from retrograd.codegen.target import Target
from retrograd.ir import float32, float64
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.tuning import TUNING

WINDOWS = {f"rg_gemm_windows_{dtype}": dtype for dtype in (float32, float64)}
PARAMETERS = (
    "i64 %m, i64 %k, i64 %count, ptr noalias %a, i64 %a_row, i64 %a_step, ptr noalias %b, "
    "ptr noalias %steps, ptr noalias %vectors, ptr noalias %c, i64 %c_row, ptr noalias %work, "
    "ptr %stop"
)
TILE = (
    "ptr noalias %a, ptr noalias %b, ptr noalias %steps, ptr noalias %vectors, ptr noalias %c, "
    "i64 %c_row, i64 %k, i64 %rows, i64 %wide, i1 %more"
)
VECTOR = ("right", "result", "elements")  # the numbers of one: where it lies, and its length


def windows_text(machine: Target, name: str) -> str:
    """The module that defines one of the routines."""
    tile = Tile.of(machine, WINDOWS[name])
    declared: dict[str, None] = {}

    def writer() -> FunctionBuilder:
        return FunctionBuilder(lambda function: declared.update({function: None}))

    vectors = tile.stack // tile.lanes
    panel = replace(tile, vectors=vectors)
    functions = [pack_columns(panel, writer()), pack_rows(panel, "pack_rows", vectors, writer())]
    for vectors in range(1, tile.vectors + 1):
        functions += [_tile(tile, vectors, some, writer()) for some in (False, True)]
    functions.append(_main(tile, name, writer()))
    never = "@never = internal constant i64 0"
    heads = [never, *(f"declare {d}" for d in declared)]
    return "\n".join([*heads, *functions, "attributes #0 = { noinline nounwind }"]) + "\n"


def _main(tile: Tile, name: str, w: FunctionBuilder) -> str:
    """A few vectors of columns at a time by all rows, block after block of products."""
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    asked = w.new("icmp ne ptr %stop, null")
    stop = w.new(f"select i1 {asked}, ptr %stop, ptr @never")
    given = "ptr %work, ptr %a, i64 %m, i64 %k"
    by_columns = w.new("icmp eq i64 %a_step, 1")
    w.line_if(
        by_columns,
        f"call void @pack_columns({given}, i64 %a_row)",
        f"call void @pack_rows({given}, i64 %a_step)",
    )  # fmt: skip
    panels = w.open_loop("%count", tile.vectors)
    word = w.new(f"load atomic i64, ptr {stop} monotonic, align 8")
    over, on = w.label(), w.label()
    w.branch(w.new(f"icmp ne i64 {word}, 0"), over, on)
    w.start_block(over)
    w.line("ret void")
    w.start_block(on)
    left = w.new(f"sub i64 %count, {panels.counter}")
    entry = w.new(f"getelementptr [{len(VECTOR)} x i32], ptr %vectors, i64 {panels.counter}")
    some = w.new(f"call i64 @llvm.smin.i64(i64 {left}, i64 {tile.vectors})")
    some = _any_short(tile, entry, some, w)
    deep = w.open_loop("%k", TUNING.windows_depth)
    first = deep.counter
    kk, most = w.new(f"sub i64 %k, {first}"), TUNING.windows_depth
    kk = w.new(f"call i64 @llvm.smin.i64(i64 {kk}, i64 {most})")
    steps = w.new(f"getelementptr i32, ptr %steps, i64 {first}")
    more = w.new(f"icmp ne i64 {first}, 0")
    rows = w.open_loop("%m", tile.rows)
    i = rows.counter
    start = w.new(f"and i64 {i}, {-tile.stack}")
    inside = w.new(f"sub i64 {i}, {start}")
    c = tile.at(w, "%c", w.new(f"mul i64 {i}, %c_row"))
    wide = w.new(f"add i64 {w.new(f'sub i64 %m, {start}')}, {tile.lanes - 1}")
    wide = w.new(f"and i64 {wide}, {-tile.lanes}")
    wide = w.new(f"call i64 @llvm.smin.i64(i64 {wide}, i64 {tile.stack})")
    before = tile.at(w, "%work", w.new(f"add i64 {w.new(f'mul i64 {start}, %k')}, {inside}"))
    a = tile.at(w, before, w.new(f"mul i64 {first}, {wide}"))
    many = w.new(f"call i64 @llvm.smin.i64(i64 {w.new(f'sub i64 %m, {i}')}, i64 {tile.rows})")
    given = f"ptr {a}, ptr %b, ptr {steps}, ptr {entry}, ptr {c}, i64 %c_row, i64 {kk}, "
    given += f"i64 {many}, i64 {wide}, i1 {more}"
    end = w.label()
    for vectors in range(tile.vectors, 0, -1):
        here, fewer = w.label(), w.label()
        w.branch(w.new(f"icmp sge i64 {left}, {vectors}"), here, fewer)
        w.start_block(here)
        names = (f"call void @{kind}{vectors}({given})" for kind in ("part", "tile"))
        w.line_if(some, *names)
        w.jump(end)
        w.start_block(fewer)
    w.jump(end)
    w.start_block(end)
    w.close_loop(rows)
    w.close_loop(deep)
    w.close_loop(panels)
    w.line("ret void")
    return f"define void @{name}({PARAMETERS}) #0 {{\n{w.text()}\n}}"


def _any_short(tile: Tile, entry: str, count: str, w: FunctionBuilder) -> str:
    """Whether any of so many vectors has fewer elements than it can have."""
    loop = w.open_loop(count, 1, "0", [("i1", "false")])
    lanes = offset(w, entry, w.new(f"add i64 {w.new(f'mul i64 {loop.counter}, {len(VECTOR)}')}, 2"))
    short = w.new(f"icmp slt i64 {lanes}, {tile.lanes}")
    w.close_loop(loop, [w.new(f"or i1 {loop.values[0]}, {short}")])
    return loop.values[0]


def _tile(tile: Tile, vectors: int, some: bool, w: FunctionBuilder) -> str:
    """The function `tileN`: `%rows` rows of c, in N vectors of columns, or `partN`, where these may
    have fewer elements than they can have. A step of the left matrix has `%wide` elements. Of rows
    that do not count, the place is that of the last one, and what is written there is written
    before."""
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    w.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    last = w.new("sub i64 %rows, 1")
    right, outs, masks = [], [], []
    for v in range(vectors):
        right.append(tile.at(w, "%b", offset(w, "%vectors", str(len(VECTOR) * v))))
        outs.append(offset(w, "%vectors", str(len(VECTOR) * v + 1)))
        lanes = offset(w, "%vectors", str(len(VECTOR) * v + 2))
        masks.append(tile.first_lanes(w, lanes) if some else None)
    places = []
    for i in range(tile.rows):
        row = w.new(f"call i64 @llvm.smin.i64(i64 {i}, i64 {last})")
        start = tile.at(w, "%c", w.new(f"mul i64 {row}, %c_row"))
        places += [tile.at(w, start, out) for out in outs]
    for place in places:
        w.line(f"call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 3, i32 1)")
    blocks = w.open_loop("%k", PRODUCTS.block, "0", [("ptr", "%a"), ("i1", "%more")])
    end = w.new(f"add i64 {blocks.counter}, {PRODUCTS.block}")
    end = w.new(f"call i64 @llvm.smin.i64(i64 {end}, i64 %k)")
    a, more = blocks.values
    *found, a = _steps(tile, a, right, masks, (blocks.counter, end), w)
    counted = masks * tile.rows
    found = with_earlier(tile, places, counted, found, more, w)
    for x, place, m in reversed(list(zip(found, places, counted, strict=True))):
        tile.store(w, x, place, m)
    w.close_loop(blocks, [a, "true"])
    w.line("ret void")
    name = "part" if some else "tile"
    return f"define internal void @{name}{vectors}({TILE}) #0 {{\n{w.text()}\n}}"


def _steps(
    tile: Tile, a: str, right: list[str], masks: list[str | None], steps: tuple[str, str],
    w: FunctionBuilder,
) -> list[str]:  # fmt: skip
    """The totals of these steps, and where the left matrix goes on."""
    zero = types.literal(-0.0, tile.dtype, tile.lanes)
    carried = [(tile.vector, zero)] * (tile.rows * len(right)) + [("ptr", a)]
    loop = w.open_loop(steps[1], 1, steps[0], carried)
    *totals, a = loop.values
    place = offset(w, "%steps", loop.counter)
    row = [tile.load(w, tile.at(w, b, place), m) for b, m in zip(right, masks, strict=True)]
    new = []
    for i in range(tile.rows):
        x = types.load(w, tile.at(w, a, i), tile.dtype)
        x = types.broadcast(w, x, tile.dtype, tile.lanes)
        new += [tile.added(w, x, y, totals[i * len(right) + v]) for v, y in enumerate(row)]
    w.close_loop(loop, [*new, tile.at(w, a, "%wide")])
    return loop.values
