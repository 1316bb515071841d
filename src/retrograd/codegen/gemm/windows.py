"""Products with the windows of an image on the right, read where the image lies.

`rg_gemm_windows_float32(m, n, k, a, a_row, a_step, b, b_column, steps, vectors, parts, c, c_row,
work, stop)` sets `c = a b`, where b is *spread*: row p of it begins at `steps[p]`, and its columns
are those of rows of the image, one row after the other, each a piece of the memory in which
elements lie `b_column` apart, 1 or 2. A vector of columns may have some from each of several rows:
`parts`, at most. Of each part of each vector, `vectors` has three numbers: where the first column
of the vector would lie in a row of b, were all its columns of this part, and between which of them
the part is. Tables are of 32-bit numbers.

As many columns as a tile has are copied into a panel, some steps at a time, which stays in the
first-level cache while the rows of the left matrix pass by; so windows need not be laid out in
memory as a whole. Nor are they copied where each vector has columns of one row: then tiles read
them in the image. There are no more products in a sum than are a group
(`ops/numerics/summation.py`), and one at least. `work` has room for a panel.
"""

from __future__ import annotations

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm.microkernel import Tile, offset, with_earlier
from retrograd.codegen.target import Target
from retrograd.ir import float32, float64
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.passes.lowering.strided_views import COLUMN_STEPS
from retrograd.tuning import TUNING

WINDOWS = {f"rg_gemm_windows_{dtype}": dtype for dtype in (float32, float64)}
PARAMETERS = (
    "i64 %m, i64 %n, i64 %k, ptr noalias %a, i64 %a_row, i64 %a_step, ptr noalias %b, "
    "i64 %b_column, ptr noalias %steps, ptr noalias %vectors, i64 %parts, ptr noalias %c, "
    "i64 %c_row, ptr noalias %work, ptr %stop"
)
COPY = (
    "ptr noalias %to, i64 %wide, ptr noalias %b, ptr noalias %steps, i64 %depth, "
    "ptr noalias %vector"
)
TILE = (
    "ptr noalias %a, i64 %a_row, i64 %a_step, ptr noalias %b, ptr noalias %steps, "
    "ptr noalias %vector, ptr noalias %c, i64 %c_row, i64 %k, i64 %rows, i64 %lanes, i1 %more"
)
PART = ("offset", "first", "last")  # the numbers of a part of a vector


def parts_of_vectors(length: int, size: int, lanes: int) -> int:
    """Of how many rows of the image, of so many elements, a vector of columns has some, at most."""
    firsts = range(0, size, lanes)
    return max((min(i + lanes, size) - 1) // length - i // length + 1 for i in firsts)


def _numbers_of_parts() -> range:
    return range(1, (TUNING.gemm_vector_columns - 2) // TUNING.windows_row + 3)


def windows_text(machine: Target, name: str) -> str:
    """The module that defines one of the routines."""
    tile = Tile.of(machine, WINDOWS[name])
    declared: dict[str, None] = {}

    def writer() -> FunctionBuilder:
        return FunctionBuilder(lambda function: declared.update({function: None}))

    functions = [
        _tile(tile, n + 1, there, writer()) for n in range(tile.vectors) for there in (False, True)
    ]
    for parts in _numbers_of_parts():
        functions += [_copy(tile, parts, step, writer()) for step in COLUMN_STEPS]
    functions.append(_main(tile, name, writer()))
    never = "@never = internal constant i64 0"
    heads = [never, *(f"declare {d}" for d in declared)]
    return "\n".join([*heads, *functions, "attributes #0 = { noinline nounwind }"]) + "\n"


def _main(tile: Tile, name: str, w: FunctionBuilder) -> str:
    """Some steps after the other, as many as have weights that stay near, a panel of columns at a
    time by all rows."""
    asked = w.new("icmp ne ptr %stop, null")
    stop = w.new(f"select i1 {asked}, ptr %stop, ptr @never")
    whole, dense = (w.new(f"icmp eq i64 {x}, 1") for x in ("%parts", "%b_column"))
    there = w.new(f"and i1 {whole}, {dense}")
    near = w.open_loop("%k", _near_steps(tile, w))
    end = _least(w.new(f"add i64 {near.counter}, {near.step}"), "%k", w)
    panels = w.open_loop("%n", tile.columns)
    word = w.new(f"load atomic i64, ptr {stop} monotonic, align 8")
    over, on = w.label(), w.label()
    w.branch(w.new(f"icmp ne i64 {word}, 0"), over, on)
    w.start_block(over)
    w.line("ret void")
    w.start_block(on)
    columns = _least(w.new(f"sub i64 %n, {panels.counter}"), tile.columns, w)
    many = w.new(f"udiv i64 {w.new(f'add i64 {columns}, {tile.lanes - 1}')}, {tile.lanes}")
    deep = w.open_loop(end, TUNING.windows_depth, near.counter)
    depth = _least(w.new(f"sub i64 {end}, {deep.counter}"), TUNING.windows_depth, w)
    copy, on = w.label(), w.label()
    w.branch(there, on, copy)
    w.start_block(copy)
    _panel(tile, (panels.counter, many), (deep.counter, depth), w)
    w.jump(on)
    w.start_block(on)
    _rows(tile, there, (panels.counter, columns, many), (deep.counter, depth), w)
    w.close_loop(deep)
    w.close_loop(panels)
    w.close_loop(near)
    w.line("ret void")
    return f"define void @{name}({PARAMETERS}) #0 {{\n{w.text()}\n}}"


def _near_steps(tile: Tile, w: FunctionBuilder) -> str:
    """Steps whose weights stay in the second-level cache."""
    w.declare("i64 @llvm.smax.i64(i64, i64)")
    rows = w.new("call i64 @llvm.smax.i64(i64 %m, i64 1)")
    steps = w.new(f"udiv i64 {TUNING.windows_weight_bytes // tile.dtype.itemsize}, {rows}")
    steps = w.new(f"and i64 {steps}, {-TUNING.windows_depth}")
    return w.new(f"call i64 @llvm.smax.i64(i64 {steps}, i64 {TUNING.windows_depth})")


def _least(x: str, y: str | int, w: FunctionBuilder) -> str:
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    return w.new(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")


def _rows(
    tile: Tile, there: str, columns: tuple[str, str, str], steps: tuple[str, str],
    w: FunctionBuilder,
) -> None:  # fmt: skip
    """All rows by some steps of some columns, given as the first one, how many, and vectors."""
    (column, count, many), (first, depth) = columns, steps
    others = w.new(f"mul i64 {w.new(f'sub i64 {many}, 1')}, {tile.lanes}")
    lanes = w.new(f"sub i64 {count}, {others}")
    more = w.new(f"icmp ne i64 {first}, 0")
    rows = w.open_loop("%m", tile.rows)
    place = w.new(f"add i64 {w.new(f'mul i64 {rows.counter}, %c_row')}, {column}")
    c = tile.at(w, "%c", place)
    start = tile.at(w, "%a", w.new(f"mul i64 {rows.counter}, %a_row"))
    a = tile.at(w, start, w.new(f"mul i64 {first}, %a_step"))
    here = _least(w.new(f"sub i64 %m, {rows.counter}"), tile.rows, w)
    b, vectors = w.new(f"select i1 {there}, ptr %b, ptr %work"), _vector(tile, column, w)
    given = f"ptr {a}, i64 %a_row, i64 %a_step, ptr {b}, ptr {_step(first, w)}, ptr {vectors}, "
    given += f"ptr {c}, i64 %c_row, i64 {depth}, i64 {here}, i64 {lanes}, i1 {more}"
    number = w.new(f"add i64 {w.new(f'mul i64 {many}, 2')}, {w.new(f'zext i1 {there} to i64')}")
    names = [f"tile{v}{kind}" for v in range(1, tile.vectors + 1) for kind in ("", "_there")]
    _either(w, number, {i: f"call void @{name}({given})" for i, name in enumerate(names, 2)})
    w.close_loop(rows)


def _tile(tile: Tile, vectors: int, there: bool, w: FunctionBuilder) -> str:
    """The function `tileN`: `%rows` rows of c, in N vectors of columns, the last of `%lanes`. Of
    rows that do not count, the place is that of the last one, and what is written there is written
    before. Of `tileN_there` b is the image, else a panel. Both are in the cache, so nothing is
    fetched but what is written to."""
    w.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    last = w.new("sub i64 %rows, 1")
    left, places = ["%a"], [tile.at(w, "%c", v * tile.lanes) for v in range(vectors)]
    for i in range(1, tile.rows):
        row = _least(str(i), last, w)
        left.append(tile.at(w, "%a", w.new(f"mul i64 {row}, %a_row")))
        start = tile.at(w, "%c", w.new(f"mul i64 {row}, %c_row"))
        places += [tile.at(w, start, v * tile.lanes) for v in range(vectors)]
    for place in places:
        w.line(f"call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 3, i32 1)")
    masks = [None] * (vectors - 1) + [tile.first_lanes(w, "%lanes")]
    right = [tile.at(w, "%b", v * tile.lanes) for v in range(vectors)]
    if there:
        right = [tile.at(w, "%b", _number(w, len(PART) * v)) for v in range(vectors)]
    read = list(zip(right, masks if there else [None] * vectors, strict=True))
    blocks = w.open_loop("%k", PRODUCTS.block, "0", [("i64", "0"), ("i1", "%more")])
    end = _least(w.new(f"add i64 {blocks.counter}, {PRODUCTS.block}"), "%k", w)
    position, more = blocks.values
    *found, position = _steps(tile, (left, position), read, (blocks.counter, end), there, w)
    counted = masks * tile.rows
    found = with_earlier(tile, places, counted, found, more, w)
    for x, place, mask in reversed(list(zip(found, places, counted, strict=True))):
        tile.store(w, x, place, mask)
    w.close_loop(blocks, [position, "true"])
    w.line("ret void")
    name = f"tile{vectors}" + "_there" * there
    return f"define internal void @{name}({TILE}) #0 {{\n{w.text()}\n}}"


def _steps(
    tile: Tile, left: tuple[list[str], str], right: list[tuple[str, str | None]],
    steps: tuple[str, str], there: bool, w: FunctionBuilder,
) -> list[str]:  # fmt: skip
    """The totals of these steps, and where the left matrix goes on."""
    starts, position = left
    zero = types.literal(-0.0, tile.dtype, tile.lanes)
    carried = [(tile.vector, zero)] * (tile.rows * len(right)) + [("i64", position)]
    loop = w.open_loop(steps[1], 1, steps[0], carried)
    *totals, position = loop.values
    if there:
        inside = offset(w, "%steps", loop.counter)
    else:
        inside = w.new(f"mul i64 {loop.counter}, {len(right) * tile.lanes}")
    row = [tile.load(w, tile.at(w, b, inside), mask) for b, mask in right]
    new = []
    for i, start in enumerate(starts):
        x = types.load(w, tile.at(w, start, position), tile.dtype)
        x = types.broadcast(w, x, tile.dtype, tile.lanes)
        new += [tile.added(w, x, y, totals[i * len(right) + v]) for v, y in enumerate(row)]
    w.close_loop(loop, [*new, w.new(f"add i64 {position}, %a_step")])
    return loop.values


def _either(w: FunctionBuilder, number: str, lines: dict[int, str]) -> None:
    """The line for this number; the last one for all others."""
    end, *cases = w.label(), *(w.label() for _ in lines)
    listed = " ".join(f"i64 {n}, label %{at}" for n, at in zip(lines, cases, strict=True))
    w.line(f"switch i64 {number}, label %{cases[-1]} [ {listed} ]")
    for at, line in zip(cases, lines.values(), strict=True):
        w.start_block(at)
        w.line(line)
        w.jump(end)
    w.start_block(end)


def _vector(tile: Tile, column: str, w: FunctionBuilder) -> str:
    """The entry of the vector that starts at this column."""
    number = w.new(f"udiv i64 {column}, {tile.lanes}")
    number = w.new(f"mul i64 {w.new(f'mul i64 {number}, %parts')}, {len(PART)}")
    return w.new(f"getelementptr i32, ptr %vectors, i64 {number}")


def _step(first: str, w: FunctionBuilder) -> str:
    return w.new(f"getelementptr i32, ptr %steps, i64 {first}")


def _panel(
    tile: Tile, columns: tuple[str, str], steps: tuple[str, str], w: FunctionBuilder
) -> None:
    """Copy some steps of a panel, vector by vector."""
    (column, many), (first, depth) = columns, steps
    wide = w.new(f"mul i64 {many}, {tile.lanes}")
    loop = w.open_loop(many)
    inside = w.new(f"mul i64 {loop.counter}, {tile.lanes}")
    vector = _vector(tile, w.new(f"add i64 {column}, {inside}"), w)
    to = tile.at(w, "%work", inside)
    given = f"ptr {to}, i64 {wide}, ptr %b, ptr {_step(first, w)}, i64 {depth}, ptr {vector}"
    kind = w.new(f"add i64 {w.new(f'mul i64 %parts, {len(COLUMN_STEPS)}')}, %b_column")
    lines = {
        parts * len(COLUMN_STEPS) + step: f"call void @copy{parts}_{step}({given})"
        for parts in _numbers_of_parts()
        for step in COLUMN_STEPS
    }
    _either(w, kind, lines)
    w.close_loop(loop)


def _copy(tile: Tile, parts: int, step: int, w: FunctionBuilder) -> str:
    """The function `copyP_S`: a vector of columns of P parts, in which elements lie S apart, row
    after row of `%wide` elements."""
    starts, masks = [], []
    for part in range(parts):
        at, first, last = (_number(w, len(PART) * part + i) for i in range(len(PART)))
        starts.append(tile.at(w, "%b", at))
        masks.append([_between(tile, first, last, w)])
        if step == 2:
            low, high = (w.new(f"mul i64 {x}, 2") for x in (first, last))
            high = w.new(f"sub i64 {high}, 1")
            masks[-1].append(_between(tile, low, high, w))
            low, high = (w.new(f"sub i64 {x}, {tile.lanes}") for x in (low, high))
            masks[-1].append(_between(tile, low, high, w))
    loop = w.open_loop("%depth", carried=[("ptr", "%to")])
    to, row = loop.values[0], offset(w, "%steps", loop.counter)
    x = "zeroinitializer"
    for start, mask in zip(starts, masks, strict=True):
        place = tile.at(w, start, row)
        if step == 1:
            x = _masked(tile, place, mask[0], x, w)
        else:
            x = _every_second(tile, place, mask, x, w)
    tile.store(w, x, to)
    w.close_loop(loop, [tile.at(w, to, "%wide")])
    w.line("ret void")
    return f"define internal void @copy{parts}_{step}({COPY}) #0 {{\n{w.text()}\n}}"


def _number(w: FunctionBuilder, i: int) -> str:
    """A number of a vector, which may be negative: its first column may lie before the image."""
    x = w.new(f"load i32, ptr {w.new(f'getelementptr i32, ptr %vector, i64 {i}')}")
    return w.new(f"sext i32 {x} to i64")


def _between(tile: Tile, first: str, last: str, w: FunctionBuilder) -> str:
    """A mask of the lanes from the first one on, before the last one."""
    kind = types.widened("i1", tile.lanes)
    before, up_to = tile.first_lanes(w, first), tile.first_lanes(w, last)
    return w.new(f"xor {kind} {before}, {w.new(f'or {kind} {before}, {up_to}')}")


def _masked(tile: Tile, place: str, mask: str, others: str, w: FunctionBuilder) -> str:
    """The elements there, with `others` in the lanes that the mask leaves out."""
    kind, bits = tile.vector, types.widened("i1", tile.lanes)
    name = f"llvm.masked.load.{types.suffix(kind)}.p0"
    w.declare(f"{kind} @{name}(ptr, i32, {bits}, {kind})")
    given = f"ptr {place}, i32 {tile.dtype.itemsize}, {bits} {mask}, {kind} {others}"
    return w.new(f"call {kind} @{name}({given})")


def _every_second(tile: Tile, place: str, masks: list[str], others: str, w: FunctionBuilder) -> str:
    """The same of every second element there; the last two masks are of what lies there."""
    kind = tile.vector
    halves = [
        _masked(tile, tile.at(w, place, half * tile.lanes), mask, "zeroinitializer", w)
        for half, mask in enumerate(masks[1:])
    ]
    chosen = ", ".join(f"i32 {2 * i}" for i in range(tile.lanes))
    low, high = (f"{kind} {x}" for x in halves)
    x = w.new(f"shufflevector {low}, {high}, <{tile.lanes} x i32> <{chosen}>")
    bits = types.widened("i1", tile.lanes)
    return w.new(f"select {bits} {masks[0]}, {kind} {x}, {kind} {others}")
