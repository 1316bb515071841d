"""Products with sums of more terms than are a group, see `ops/numerics/summation.py`.

A part of c at a time is computed group by group. The total of a group is added to what the groups
of its batch before it add up to, then waits in a table, for the next one. That of a whole batch is
added to that of its partner, if there is one already, which makes a pair, that to its own partner,
and so on, and waits in another table. So what waits are totals of 1, 2, 4 batches: the digits of
the binary number that counts them say which there are.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm.microkernel import Tile
from retrograd.ir import DType
from retrograd.ops.numerics.summation import PARTS, PRODUCTS
from retrograd.tuning import TUNING

PART = "ptr noalias %t, ptr noalias %c, i64 %c_row, i64 %rows, i64 %n, i64 %wide"


def grouped(
    tile: Tile, name: str, parameters: str, writer: Callable[[], FunctionBuilder]
) -> list[str]:
    """The routine for any number of products, and what it calls."""
    w = writer()
    listed = [p.rsplit(" ", 1) for p in parameters.replace(" noalias", "").split(", ")]
    one, many = w.label(), w.label()
    w.branch(w.new(f"icmp sle i64 %k, {PRODUCTS.group}"), one, many)
    w.start_block(one)
    w.line(f"tail call void @group({', '.join(f'{kind} {x}' for kind, x in listed)})")
    w.line("ret void")
    w.start_block(many)
    _parts(tile, listed, w)
    w.line("ret void")
    functions = [over_part(tile, which, writer) for which in ("keep", "join")]
    return [*functions, f"define void @{name}({parameters}) #0 {{\n{w.text()}\n}}"]


def _parts(tile: Tile, listed: list[list[str]], w: FunctionBuilder) -> None:
    """All parts of c, each group by group."""

    def least(x: str | int, y: str | int) -> str:
        w.declare("i64 @llvm.smin.i64(i64, i64)")
        return w.new(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    def most(x: str | int, y: str | int) -> str:
        w.declare("i64 @llvm.smax.i64(i64, i64)")
        return w.new(f"call i64 @llvm.smax.i64(i64 {x}, i64 {y})")

    def place(pointer: str, row: str, row_step: str, column: str, step: str) -> str:
        offset = w.new(f"add i64 {times(row, row_step)}, {times(column, step)}")
        return tile.at(w, pointer, offset)

    def times(x: str, y: str) -> str:
        return w.new(f"mul i64 {x}, {y}")

    def table(pointer: str, number: str) -> str:  # of offsets
        return w.new(f"getelementptr i32, ptr {pointer}, i64 {number}")

    space = TUNING.gemm_totals_bytes // tile.dtype.itemsize
    totals = w.new(f"getelementptr i8, ptr %work, i64 {TUNING.gemm_pack_bytes}")
    last = w.new(f"udiv i64 {w.new('sub i64 %k, 1')}, {PRODUCTS.group}")
    tables = w.new(f"add i64 {_digits(w, w.new(f'udiv i64 {last}, {PARTS}'))}, 1")
    room = w.new(f"udiv i64 {space}, {tables}")
    whole = w.new(f"and i64 {w.new(f'add i64 %n, {tile.lanes - 1}')}, {-tile.lanes}")
    columns = least(whole, TUNING.split_k_columns)
    height = most(w.new(f"udiv i64 {room}, {most(columns, 1)}"), 1)
    high = w.open_loop("%m", height)
    wide = w.open_loop("%n", columns)
    rows = least(height, w.new(f"sub i64 %m, {high.counter}"))
    width = least(columns, w.new(f"sub i64 %n, {wide.counter}"))
    c = place("%c", high.counter, "%c_row", wide.counter, "1")
    part = f"ptr {c}, i64 %c_row, i64 {rows}, i64 {width}, i64 {columns}"
    groups = w.open_loop("%k", PRODUCTS.group, "0", [("i64", "0")])
    first, (number,) = groups.counter, groups.values
    spread = ["ptr", "%a_row"] in listed
    new = {
        "%m": rows,
        "%n": width,
        "%k": least(w.new(f"sub i64 %k, {first}"), PRODUCTS.group),
        "%b": place("%b", first, "%b_step", wide.counter, "%b_column"),
        "%c": c,
        "%more": "false",
        "%visible": "null",
    }
    if spread:
        new |= {"%a_row": table("%a_row", high.counter), "%a_step": table("%a_step", first)}
    else:
        new["%a"] = place("%a", high.counter, "%a_row", first, "%a_step")
    w.line(f"call void @group({', '.join(f'{kind} {new.get(x, x)}' for kind, x in listed)})")

    def waiting(table: str) -> str:
        return tile.at(w, totals, times(table, room))

    join_others(w, tile.dtype, number, w.new(f"icmp eq i64 {number}, {last}"), waiting, part)
    w.close_loop(groups, [w.new(f"add i64 {number}, 1")])
    w.close_loop(wide)
    w.close_loop(high)


def join_others(
    w: FunctionBuilder,
    dtype: DType,
    number: str,
    ended: str,
    waiting: Callable[[str], str],
    part: str,
) -> None:
    """What to do with the total of a group: of the group, its number, and whether it is the last
    one; of the tables in which totals are `waiting`, where they are. `part` says where the total
    is, as arguments of `over_part`. The last one has nothing to wait for: all that is there is
    added to it."""

    def only_if(condition: str, write: Callable[[], None]) -> None:
        yes, on = w.label(), w.label()
        w.branch(condition, yes, on)
        w.start_block(yes)
        write()
        w.jump(on)
        w.start_block(on)

    def call(function: str, table: str) -> None:
        w.line(f"call void @{function}_{dtype}(ptr {waiting(table)}, {part})")

    group, batch = w.new(f"and i64 {number}, {PARTS - 1}"), w.new(f"udiv i64 {number}, {PARTS}")
    only_if(w.new(f"icmp ne i64 {group}, 0"), lambda: call("join", "0"))
    full = w.new(f"icmp eq i64 {group}, {PARTS - 1}")

    def pair_up() -> None:
        w.declare("i64 @llvm.cttz.i64(i64, i1)")
        partners = w.new(f"call i64 @llvm.cttz.i64(i64 {w.new(f'xor i64 {batch}, -1')}, i1 false)")
        pairs = w.open_loop(w.new(f"select i1 {ended}, i64 {_digits(w, batch)}, i64 {partners}"))
        digit = w.new(f"and i64 {w.new(f'lshr i64 {batch}, {pairs.counter}')}, 1")
        table = w.new(f"add i64 {pairs.counter}, 1")
        only_if(w.new(f"icmp ne i64 {digit}, 0"), lambda: call("join", table))
        w.close_loop(pairs)
        only_if(not_ended, lambda: call("keep", w.new(f"add i64 {partners}, 1")))

    not_ended, not_full = (w.new(f"xor i1 {x}, true") for x in (ended, full))
    only_if(w.new(f"or i1 {ended}, {full}"), pair_up)
    only_if(w.new(f"and i1 {not_ended}, {not_full}"), lambda: call("keep", "0"))


def _digits(w: FunctionBuilder, number: str) -> str:
    """How many binary digits a number has."""
    w.declare("i64 @llvm.ctlz.i64(i64, i1)")
    return w.new(f"sub i64 64, {w.new(f'call i64 @llvm.ctlz.i64(i64 {number}, i1 false)')}")


def over_part(tile: Tile, which: str, writer: Callable[[], FunctionBuilder]) -> str:
    """The function `keep`, which has a part of c wait in a table with rows of `%wide` elements, or
    `join`, which adds it to what waits there, and leaves the sums in c."""
    w = writer()
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    rows = w.open_loop("%rows")
    own, there = (
        tile.at(w, x, w.new(f"mul i64 {rows.counter}, {step}"))
        for x, step in (("%c", "%c_row"), ("%t", "%wide"))
    )
    columns = w.open_loop("%n", tile.lanes)
    mask = tile.first_lanes(w, w.new(f"sub i64 %n, {columns.counter}"))
    own, there = (tile.at(w, x, columns.counter) for x in (own, there))
    x = tile.load(w, own, mask)
    if which == "join":
        x = w.new(f"fadd {tile.vector} {tile.load(w, there, mask)}, {x}")
    tile.store(w, x, own if which == "join" else there, mask)
    w.close_loop(columns)
    w.close_loop(rows)
    w.line("ret void")
    return f"define internal void @{which}_{tile.dtype}({PART}) #0 {{\n{w.text()}\n}}"
