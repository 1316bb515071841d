"""The matrix product: one routine for each dtype, for all sizes and layouts.

`rg_gemm_float32(m, n, k, a, a_row, a_step, b, b_step, b_column, c, c_row, more, work, soon, stop,
visible)` sets
`c[i, j] = sum over p of a[i, p] b[p, j]`, or goes on from what is in c where there is `more`: whole
blocks of products of the same group. The element `a[i, p]` lies at `i * a_row + p * a_step` and
`b[p, j]` at `p * b_step + j * b_column`. Of each matrix one of the strides is 1. The products of a
result are added up in the order of `ops/numerics/summation.py`, as in the loops that
`emit/reduce.py` writes: to the bit it depends neither on how the work is cut nor on layouts. Where
there are more products than are a group, a part of c at a time is computed (`split_k.py`).

The work is cut so that what is used again is near. A *tile* of results stays in registers: a few
rows, and as many columns as a few vectors have. The right matrix is copied, a block at a time, into
*panels* as wide as a tile, in the order in which tiles read them, unless few rows pass by, or its
own rows are short: then panels are parts of the matrix itself. A block stays in the second-level
cache while the rows of the left matrix pass by. While they do, the next block is fetched from
memory. Of the left matrix elements are read one by one, where they are, unless its columns are
contiguous and so far apart that caches, which have few places for addresses a power of two apart,
would lose them between panels: then it is copied as well. Blocks of further rows go on from what is
in c.

A right matrix that many products read, as in a loop, is copied once: `rg_pack_float32(n, k, b,
b_step, b_column, to)` copies all of its blocks to `to`, which has room for its columns rounded up
to whole vectors. That is given as `b`, with 0 for both strides.

Meanwhile what the caller is to write to next is fetched: the areas in the table `soon`, pairs of an
address and a number of bytes, then a pair of zeros. It is used up. There may be none (null).

`rg_gemm_spread_float32` multiplies a left matrix that is *spread*, as the windows of an image are:
no stride leads from each row to the next, nor from column to column. Its `a_row` and `a_step` are
tables of 32-bit offsets, and `a[i, p]` lies at `a_row[i] + a_step[p]`. It is read where it is, so
windows need not be laid out in memory. The rows of its right matrix are contiguous, and it fetches
nothing for the caller: `soon` is not looked at.

Where the word at `stop` is not 0, the routine returns with what it has: it looks from block to
block. There may be none (null).

Of row i of c only the columns from `visible[0] + i * visible[1]` on are wanted, and those before
`visible[2] + i * visible[3]`, where there is such a table (else null): a mask hides the others.
What is written there is left open. The steps are not negative.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm import skip_zeros
from retrograd.codegen.gemm.microkernel import Tile, strip_function
from retrograd.codegen.gemm.packing import pack_columns, pack_rows
from retrograd.codegen.gemm.split_k import grouped
from retrograd.codegen.target import Target
from retrograd.ir import DType, float32, float64
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.tuning import TUNING

ROUTINES = {
    f"rg_gemm_{spread}{dtype}": dtype for dtype in (float32, float64) for spread in ("", "spread_")
}
PACKS = {f"rg_pack_{dtype}": dtype for dtype in (float32, float64)}
PARAMETERS = (
    "i64 %m, i64 %n, i64 %k, ptr noalias %a, i64 %a_row, i64 %a_step, ptr noalias %b, i64 %b_step, "
    "i64 %b_column, ptr noalias %c, i64 %c_row, i1 %more, ptr noalias %work, "
    "ptr noalias %soon, ptr %stop, ptr noalias %visible"
)
SPREAD = PARAMETERS.replace("i64 %a_row, i64 %a_step", "ptr %a_row, ptr %a_step")
PACKED = "i64 %n, i64 %k, ptr noalias %b, i64 %b_step, i64 %b_column, ptr noalias %to"
UNKNOWN = 2  # whether a block of the right matrix is finite: 0, 1, or nobody has asked


def routine_text(machine: Target, name: str) -> str:
    """The module that defines one of the routines."""
    if name in PACKS:
        return _Routine(Tile.of(machine, PACKS[name]), False).pack_text(name)
    return _Routine(Tile.of(machine, ROUTINES[name]), "spread" in name).text(name)


class _Routine:
    def __init__(self, tile: Tile, spread: bool) -> None:
        self.tile = tile
        self.spread = spread  # the left matrix is
        self.stride = "ptr" if spread else "i64"  # what leads from row to row of it
        self.dtype: DType = tile.dtype
        self.space = TUNING.gemm_pack_bytes // 2 // self.dtype.itemsize  # for either matrix
        self.declarations: dict[str, None] = {}
        self.w = self._writer()

    def _writer(self) -> FunctionBuilder:
        return FunctionBuilder(lambda function: self.declarations.update({function: None}))

    def text(self, name: str) -> str:
        """Declarations and functions."""
        tile, spread, most = self.tile, self.spread, self.tile.vectors
        functions = [
            strip_function(tile, n + 1, self._writer(), spread=spread) for n in range(most)
        ]
        functions.append(pack_rows(tile, "pack_rows", most, self._writer()))
        if not spread:
            functions += [
                strip_function(tile, n + 1, self._writer(), full=True) for n in range(most)
            ]
            functions.append(strip_function(tile, most, self._writer(), full=True, own=True))
            functions.append(pack_columns(tile, self._writer()))
            functions.append(
                pack_rows(tile, "pack_left", self.tile.stack // tile.lanes, self._writer())
            )
            some = self._writer(), self._writer(), self._writer(), self._writer()
            functions += skip_zeros.functions(tile, some)
        functions.append(self._main())
        functions += grouped(tile, name, SPREAD if spread else PARAMETERS, self._writer)
        declared = [f"declare {d}" for d in self.declarations]
        attributes = "attributes #0 = { noinline nounwind }"
        never = "@never = internal constant i64 0"
        never += f"\n@all = internal constant [4 x i64] [i64 0, i64 0, i64 {1 << 60}, i64 0]"
        return "\n".join([never, *declared, *functions, attributes]) + "\n"

    def pack_text(self, name: str) -> str:
        """The same of the routine that copies a right matrix."""
        w, tile = self.w, self.tile
        functions = [
            pack_rows(tile, "pack_rows", tile.vectors, self._writer()),
            pack_columns(tile, self._writer()),
        ]
        self.by_rows = w.new("icmp eq i64 %b_column, 1")
        depth, columns = self._depth(self._usual_depth()), self.whole("%n", tile.lanes)
        deep = w.open_loop("%k", depth)
        k0 = deep.counter
        to, kk = tile.at(w, "%to", self.mul(k0, columns)), self.least(depth, self.sub("%k", k0))
        self._pack(to, self._right(k0, "0"), "%n", kk)
        w.close_loop(deep)
        w.line("ret void")
        functions.append(f"define void @{name}({PACKED}) {{\n{w.text()}\n}}")
        declared = [f"declare {d}" for d in self.declarations]
        return "\n".join([*declared, *functions, "attributes #0 = { noinline nounwind }"]) + "\n"

    # -- arithmetic of sizes ------------------------------------------------------------------
    def add(self, x: str, y: str | int) -> str:
        return self.w.new(f"add i64 {x}, {y}")

    def sub(self, x: str, y: str | int) -> str:
        return self.w.new(f"sub i64 {x}, {y}")

    def mul(self, x: str, y: str | int) -> str:
        return self.w.new(f"mul i64 {x}, {y}")

    def div(self, x: str | int, y: str | int) -> str:
        return self.w.new(f"udiv i64 {x}, {y}")

    def least(self, x: str | int, y: str | int) -> str:
        self.w.declare("i64 @llvm.smin.i64(i64, i64)")
        return self.w.new(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    def most(self, x: str | int, y: str | int) -> str:
        self.w.declare("i64 @llvm.smax.i64(i64, i64)")
        return self.w.new(f"call i64 @llvm.smax.i64(i64 {x}, i64 {y})")

    def select(self, condition: str, x: str | int, y: str | int, kind: str = "i64") -> str:
        return self.w.new(f"select i1 {condition}, {kind} {x}, {kind} {y}")

    def even(self, size: str, most: str | int) -> str:
        """The length of pieces that are as even as can be, none longer than `most`."""
        parts = self.most(self.div(self.add(size, self.sub(str(most), 1)), most), 1)
        return self.most(self.div(self.add(size, self.sub(parts, 1)), parts), 1)

    def whole(self, size: str, unit: int) -> str:
        """Rounded up to whole units, a power of two."""
        return self.w.new(f"and i64 {self.add(size, unit - 1)}, {-unit}")

    # -- the loops ----------------------------------------------------------------------------
    def _main(self) -> str:
        """The function for no more products than are a group."""
        w, tile = self.w, self.tile
        self._clear()
        asked = w.new("icmp ne ptr %stop, null")
        self.stop = self.select(asked, "%stop", "@never", "ptr")
        self._sizes()
        if not self.spread:
            self._areas()
        self.known = w.reserve("i8", align=1)
        self.wide = w.new(f"icmp sgt i64 %n, {tile.lanes}")  # else looking takes too long
        self._limits()
        deep = w.open_loop("%k", self.depth)
        self.k0 = deep.counter
        self.kk = self.least(self.depth, self.sub("%k", self.k0))
        later = w.new(f"icmp sgt i64 {self.k0}, 0")
        self.more = w.new(f"or i1 {later}, %more")
        wide = w.open_loop(self.end, self.width, self.begin)
        self.n0 = wide.counter
        self.nn = self.least(self.width, self.sub(self.end, self.n0))
        self._block()
        self._look_ahead()
        w.line(f"store i8 {UNKNOWN}, ptr {self.known}")
        self._rows()
        w.close_loop(wide)
        w.close_loop(deep)
        w.line("ret void")
        given = SPREAD if self.spread else PARAMETERS
        return f"define internal void @group({given}) #0 {{\n{w.text()}\n}}"

    def _block(self) -> None:
        """Have the block of the right matrix at hand in panels."""
        w, tile = self.w, self.tile
        self.panels = tile.at(w, "%work", self.space)
        if self.spread:
            self._pack(self.panels, self._right(self.k0, self.n0), self.nn, self.kk)
            return
        columns = self.whole("%n", tile.lanes)
        there = self.add(self.mul(self.k0, columns), self.mul(self.n0, self.kk))
        own = self.panels
        start = self._right(self.k0, self.n0)
        self.panels = self.select(self.packed, tile.at(w, "%b", there), own, "ptr")
        self.panels = self.select(self.there, start, self.panels, "ptr")
        copy, on = w.label(), w.label()
        w.branch(w.new(f"or i1 {self.packed}, {self.there}"), on, copy)
        w.start_block(copy)
        self._pack(own, start, self.nn, self.kk)
        w.jump(on)
        w.start_block(on)

    def _pack(self, to: str, start: str, columns: str, rows: str) -> None:
        """Copy a block of the right matrix into panels."""
        listed = f"ptr {to}, ptr {start}, i64 {columns}"
        by_rows = f"call void @pack_rows({listed}, i64 {rows}, i64 %b_step)"
        if self.spread:
            self.w.line(by_rows)
            return
        turned = f"call void @pack_columns({listed}, i64 {rows}, i64 %b_column)"
        self.w.line_if(self.by_rows, by_rows, turned)

    def _clear(self) -> None:
        """The sum of no products is zero."""
        w, tile = self.w, self.tile
        none, some = w.label(), w.label()
        nothing, begins = w.new("icmp eq i64 %k, 0"), w.new("xor i1 %more, true")
        w.branch(w.new(f"and i1 {nothing}, {begins}"), none, some)
        w.start_block(none)
        rows = w.open_loop("%m")
        row = tile.at(w, "%c", self.mul(rows.counter, "%c_row"))
        columns = w.open_loop("%n")
        zero = types.literal(0.0, self.dtype)
        types.store(w, zero, tile.at(w, row, columns.counter), self.dtype)
        w.close_loop(columns)
        w.close_loop(rows)
        w.line("ret void")
        w.start_block(some)

    def _sizes(self) -> None:
        """How the work is cut, and what holds of all blocks."""
        w, tile = self.w, self.tile
        self.by_rows = w.new("icmp eq i64 %b_column, 1")
        self.lead = self.mul(self.select(self.by_rows, "%b_step", "%b_column"), self.dtype.itemsize)
        usual = TUNING.gemm_depth_bytes // self.dtype.itemsize
        depth = self._usual_depth()
        if not self.spread:
            strides = w.new("or i64 %b_step, %b_column")
            self.packed = w.new(f"icmp eq i64 {strides}, 0")
            strided = w.new("icmp ne i64 %a_step, 1")
            often = w.new(f"icmp sgt i64 %n, {tile.columns}")
            far = w.new(
                f"icmp sge i64 %a_step, {TUNING.gemm_copy_stride_bytes // self.dtype.itemsize}"
            )
            self.copied = w.new(f"and i1 {strided}, {w.new(f'and i1 {often}, {far}')}")
            apart = w.new(f"icmp sgt i64 %a_step, {TUNING.cache_line_bytes // self.dtype.itemsize}")
            self.in_place = w.new(f"and i1 {apart}, {w.new(f'xor i1 {self.copied}, true')}")
            less = w.new(f"and i1 {strided}, {w.new(f'xor i1 {self.packed}, true')}")
            little = w.new(f"icmp sle i64 %m, {2 * tile.stack}")  # its columns are few lines
            little = self.select(little, usual, usual // 8)
            depth = self.select(less, self.select(often, usual // 4, little), depth)
            self.there = self._is_there()
            long = w.new(f"icmp sge i64 {self.lead}, {TUNING.gemm_near_row_bytes}")
            far = w.new(f"and i1 {self.there}, {long}")  # rows share places in the caches
            depth = self.select(far, PRODUCTS.block, depth)
        self.depth = self._depth(depth)
        width = self.mul(self.div(self.div(self.space, self.depth), tile.columns), tile.columns)
        pieces = self.even("%n", self.most(width, tile.columns))
        whole = self.div(self.add(pieces, tile.columns - 1), tile.columns)
        self.width = self.mul(whole, tile.columns)
        self.height = w.new(f"and i64 {self.div(self.space, self.depth)}, {-self.tile.stack}")

    def _is_there(self) -> str:
        """Whether the right matrix is read where it is: few rows pass by, or its rows are so near
        one another, and as vectors lie, that reading a copy would take as long."""
        w = self.w
        crowded = w.new(
            f"icmp eq i64 {w.new(f'urem i64 {self.lead}, {TUNING.gemm_near_row_bytes}')}, 0"
        )
        most = self.select(crowded, TUNING.gemm_few_crowded_rows, TUNING.gemm_few_rows)
        few = w.new(f"icmp sle i64 %m, {most}")
        place = w.new(f"or i64 {w.new('ptrtoint ptr %b to i64')}, {self.lead}")
        beside = w.new(f"and i64 {place}, {self.tile.lanes * self.dtype.itemsize - 1}")
        near = w.new(f"icmp slt i64 {self.lead}, {TUNING.gemm_near_row_bytes}")
        near = w.new(f"and i1 {near}, {w.new(f'icmp eq i64 {beside}, 0')}")
        read = w.new(f"and i1 {self.by_rows}, {w.new(f'or i1 {few}, {near}')}")
        return w.new(f"and i1 {read}, {w.new(f'xor i1 {self.packed}, true')}")

    def _usual_depth(self) -> str:
        """Rows of a block of the right matrix, where nothing asks for fewer."""
        usual = TUNING.gemm_depth_bytes // self.dtype.itemsize
        depth = self.div(self.space, self.most(self.whole("%n", self.tile.lanes), 1))
        return self.most(self.least(depth, 4 * usual), usual)

    def _depth(self, most: str) -> str:
        """The same in whole blocks of products, as even as can be."""
        depth = self.most(self.w.new(f"and i64 {most}, {-PRODUCTS.block}"), PRODUCTS.block)
        return self.whole(self.even("%k", depth), PRODUCTS.block)

    def _limits(self) -> None:
        """Between which columns anything is wanted."""
        w = self.w
        given = w.new("icmp ne ptr %visible, null")
        table = self.select(given, "%visible", "@all", "ptr")
        self.limits = [
            w.new(f"load i64, ptr {w.new(f'getelementptr i64, ptr {table}, i64 {i}')}")
            for i in range(4)
        ]
        self.begin, self.end = self._wanted("0", self.sub("%m", 1), "0", "%n")

    def _wanted(self, first: str, last: str, start: str, end: str) -> tuple[str, str]:
        """From where to where panels are wanted by these rows, of the columns from `start`, where a
        panel starts, up to `end`."""
        low = self.sub(self.add(self.limits[0], self.mul(first, self.limits[1])), start)
        high = self.sub(self.add(self.limits[2], self.mul(last, self.limits[3])), start)
        length = self.sub(end, start)
        low = self.least(self.most(low, 0), length)
        low = self.mul(self.div(low, self.tile.columns), self.tile.columns)
        return low, self.most(self.least(high, length), low)

    def _areas(self) -> None:
        """Where to look for the area that is to be fetched next."""
        w = self.w
        none = w.reserve("[2 x i64]", align=8)
        w.line(f"store [2 x i64] zeroinitializer, ptr {none}")
        self.area = w.reserve("ptr", align=8)
        asked = w.new("icmp ne ptr %soon, null")
        w.line(f"store ptr {self.select(asked, '%soon', none, 'ptr')}, ptr {self.area}")

    def _from_area(self, idle: str, count: str) -> tuple[str, str, str]:
        """Whether so many panels that are `idle` have anything to fetch of the area at hand, where,
        and how many panels do so."""
        w = self.w
        area = w.new(f"load ptr, ptr {self.area}")
        start = w.new(f"load ptr, ptr {area}")
        left_at = w.new(f"getelementptr i64, ptr {area}, i64 1")
        left = w.new(f"load i64, ptr {left_at}")
        each = self.mul(self.kk, TUNING.cache_line_bytes)
        panels = self.least(count, self.div(self.add(left, self.sub(each, 1)), each))
        taken = self.select(idle, self.least(left, self.mul(panels, each)), 0)
        rest = self.sub(left, taken)
        w.line(f"store ptr {w.new(f'getelementptr i8, ptr {start}, i64 {taken}')}, ptr {area}")
        w.line(f"store i64 {rest}, ptr {left_at}")
        after = w.new(f"getelementptr i64, ptr {area}, i64 2")
        some = w.new(f"icmp ne i64 {taken}, 0")
        over = w.new(f"and i1 {some}, {w.new(f'icmp eq i64 {rest}, 0')}")
        w.line(f"store ptr {self.select(over, after, area, 'ptr')}, ptr {self.area}")
        return some, start, panels

    def _look(self) -> None:
        """Return, if somebody wants to."""
        w = self.w
        word = w.new(f"load atomic i64, ptr {self.stop} monotonic, align 8")
        over, on = w.label(), w.label()
        w.branch(w.new(f"icmp ne i64 {word}, 0"), over, on)
        w.start_block(over)
        w.line("ret void")
        w.start_block(on)

    def _right(self, row: str, column: str) -> str:
        """The address of an element of the right matrix."""
        offset = self.add(self.mul(row, "%b_step"), self.mul(column, "%b_column"))
        return self.tile.at(self.w, "%b", offset)

    def _look_ahead(self) -> None:
        """What of the right matrix is to be fetched: the lines of the next block."""
        w = self.w
        column = self.add(self.n0, self.width)
        over = w.new(f"icmp sge i64 {column}, {self.end}")
        column = self.select(over, self.begin, column)
        row = self.select(over, self.add(self.k0, self.depth), self.k0)
        self.next = self._right(row, column)
        length = self.select(
            self.by_rows,
            self.least(self.width, self.sub(self.end, column)),
            self.least(self.depth, self.sub("%k", row)),
        )
        line = TUNING.cache_line_bytes // self.dtype.itemsize
        # A step fetches a line: where columns are contiguous, there may be fewer than steps.
        few = w.new(f"icmp slt i64 {self.mul(self.nn, 2)}, {self.kk}")
        few = w.new(f"and i1 {few}, {w.new(f'xor i1 {self.by_rows}, true')}")
        none = w.new(f"or i1 {few}, {w.new(f'icmp sge i64 {row}, %k')}")
        if not self.spread:
            none = w.new(f"or i1 {none}, {self.packed}")
            few = w.new(f"icmp sle i64 %m, {2 * self.tile.rows}")
            none = w.new(f"or i1 {none}, {w.new(f'and i1 {self.there}, {few}')}")
        self.lines = self.select(none, 0, self.div(self.add(length, line - 1), line))

    def _rows(self) -> None:
        """The rows of the left matrix by a block of the right one."""
        w, tile = self.w, self.tile
        high = w.open_loop("%m", self.height, "0", [("i64", "0")])
        self._look()
        m0, mm = high.counter, self.least(self.height, self.sub("%m", high.counter))
        left = "%a"
        if not self.spread:
            first = self.add(self.mul(m0, "%a_row"), self.mul(self.k0, "%a_step"))
            left = tile.at(w, "%a", first)
            given = f"ptr %work, ptr {left}, i64 {mm}, i64 {self.kk}, i64 %a_step"
            self.w.line_if(self.copied, f"call void @pack_left({given})", "")
        tiles = w.open_loop(mm, tile.rows, "0", [("i64", high.values[0])])
        i = tiles.counter
        c = tile.at(w, "%c", self.add(self.mul(self.add(m0, i), "%c_row"), self.n0))
        rows = self.least(tile.rows, self.sub(mm, i))
        first = self.add(m0, i)
        last = self.add(first, self.sub(rows, 1))
        self.part = self._wanted(first, last, self.n0, self.add(self.n0, self.nn))
        if self.spread:
            row = w.new(f"getelementptr i32, ptr %a_row, i64 {self.add(m0, i)}")
            step = w.new(f"getelementptr i32, ptr %a_step, i64 {self.k0}")
            done = self._columns((left, row, step), c, rows, tiles.values[0])
        else:
            done = self._steps(self._left(left, i, mm), c, rows, tiles.values[0])
        w.close_loop(tiles, [done])
        w.close_loop(high, [tiles.values[0]])

    def _left(self, left: str, i: str, mm: str) -> tuple[str, str, str]:
        """Row `i` of a block of the left matrix: its address, and the strides from there."""
        w, tile, stack = self.w, self.tile, self.tile.stack
        start = w.new(f"and i64 {i}, {-stack}")
        copy = tile.at(w, "%work", self.add(self.mul(start, self.kk), self.sub(i, start)))
        plain = tile.at(w, left, self.mul(i, "%a_row"))
        wide = self.least(self.whole(self.sub(mm, start), tile.lanes), stack)
        row = self.select(self.copied, 1, "%a_row")
        step = self.select(self.copied, wide, "%a_step")
        return self.select(self.copied, copy, plain, "ptr"), row, step

    def _steps(self, a: tuple[str, str, str], c: str, rows: str, done: str) -> str:
        """The same with the steps in which all rows have zeros left out, where that is right."""
        w = self.w
        ends, look, some, ask, fewer, all_, end = (w.label() for _ in range(7))
        w.branch(self.wide, ends, all_)
        w.start_block(ends)
        far = self.tile.at(w, a[0], self.mul(self.sub(self.kk, 1), a[2]))
        first, last = (types.load(w, x, self.dtype) for x in (a[0], far))
        kind, zero = self.tile.scalar, types.literal(0.0, self.dtype)
        ends_in_zero = [w.new(f"fcmp oeq {kind} {x}, {zero}") for x in (first, last)]
        w.branch(w.new(f"or i1 {ends_in_zero[0]}, {ends_in_zero[1]}"), look, all_)
        w.start_block(look)
        given = f"ptr {a[0]}, i64 {a[1]}, i64 {a[2]}, i64 {self.kk}, i64 {rows}"
        before = w.new(f"call i64 @first_step({given})")
        after = w.new(f"call i64 @last_step({given})")
        useful = w.new(f"icmp ne i64 {w.new(f'or i64 {before}, {after}')}, 0")
        w.branch(useful, some, all_)
        w.start_block(some)
        known = w.new(f"load i8, ptr {self.known}")
        asked, told = w.label(), w.block
        w.branch(w.new(f"icmp eq i8 {known}, {UNKNOWN}"), ask, asked)
        w.start_block(ask)
        packed = self.mul(self.whole(self.nn, self.tile.lanes), self.kk)
        rows_there = self.select(self.there, self.kk, 1)
        width = self.select(self.there, self.nn, packed)
        fine = w.new(
            f"call i1 @finite(ptr {self.panels}, i64 {rows_there}, i64 {width}, i64 %b_step)"
        )
        fresh = w.new(f"zext i1 {fine} to i8")
        w.line(f"store i8 {fresh}, ptr {self.known}")
        w.jump(asked)
        w.start_block(asked)
        finite = w.new(f"phi i8 [ {known}, %{told} ], [ {fresh}, %{ask} ]")
        w.branch(w.new(f"icmp eq i8 {finite}, 1"), fewer, all_)
        w.start_block(fewer)
        # Of zeros alone all steps are at the start, and none at the end.
        none = w.new(f"icmp uge i64 {before}, {self.kk}")
        high = self.sub(self.kk, self.select(none, 0, after))
        low = self.least(before, high)
        step = self.select(self.there, "%b_step", 0)
        w.line(
            f"call void @some_steps(ptr {a[0]}, i64 {a[1]}, i64 {a[2]}, ptr {self.panels}, "
            f"i64 {step}, ptr {c}, i64 %c_row, i64 {self.kk}, i64 {rows}, i64 {self.nn}, "
            f"i1 {self.more}, i64 {low}, i64 {high})"
        )
        w.jump(end)
        w.start_block(all_)
        more = self._columns(a, c, rows, done)
        computed = w.block
        w.jump(end)
        w.start_block(end)
        return w.new(f"phi i64 [ {done}, %{fewer} ], [ {more}, %{computed} ]")

    def _columns(self, a: tuple[str, str, str], c: str, rows: str, done: str) -> str:
        """A few rows of the left matrix by all panels. Of the next block `done` lines of each row
        are fetched; returns how many are then.

        By each panel, a tile fetches a line of each row of the next block of the right matrix, or,
        once that is there, of what the caller is to write to, if the panel is whole, or what it
        reads next itself; but by the first one, if it reads contiguous columns where they are,
        those beside them: no processor would.
        """
        w, tile = self.w, self.tile
        panels = w.open_loop(self.part[1], 1, self.part[0], [("i64", done)])
        j, done = panels.counter, panels.values[0]
        place = self.mul(j, self.kk)
        if not self.spread:
            place = self.select(self.there, j, place)
        b = tile.at(w, self.panels, place)
        wide, whole, lanes = self._next_panels(self.sub(self.nn, j))
        wanted = self.add(self.sub(self.part[1], j), tile.columns - 1)
        whole = self.least(whole, self.div(wanted, tile.columns))
        unfetched = self.most(self.sub(self.lines, done), 0)
        useful = w.new(f"icmp sgt i64 {unfetched}, 0")
        count = self.select(useful, self.least(unfetched, whole), whole)
        ahead = w.new(
            f"getelementptr i8, ptr {self.next}, i64 {self.mul(done, TUNING.cache_line_bytes)}"
        )
        b_step, b_next = self._panel_steps(wide)
        later = w.new(f"getelementptr i8, ptr {b}, i64 {self.mul(b_step, TUNING.gemm_panel_steps)}")
        ahead = self.select(useful, ahead, later, "ptr")
        step = self.select(useful, self.lead, b_step)
        further = self.select(useful, TUNING.cache_line_bytes, b_next)
        own, fetched = ("", "", ""), self.select(useful, count, 0)
        if not self.spread:
            first = w.new(f"and i1 {self.in_place}, {w.new(f'icmp eq i64 {j}, {self.part[0]}')}")
            beside = w.new(f"getelementptr i8, ptr {a[0]}, i64 {TUNING.cache_line_bytes}")
            ahead = self.select(first, beside, ahead, "ptr")
            step = self.select(first, self.mul(a[2], self.dtype.itemsize), step)
            count = self.select(first, 1, count)
            fetched = self.select(first, 0, fetched)
            idle = w.new(f"xor i1 {w.new(f'or i1 {first}, {useful}')}, true")
            idle = w.new(f"and i1 {idle}, {w.new(f'icmp eq i64 {wide}, {tile.vectors}')}")
            own = self._from_area(idle, count)
            count = self.select(own[0], own[2], count)
        panels.step = self.mul(count, self.mul(wide, tile.lanes))
        to = tile.at(w, c, j)
        end = w.label()
        for vectors in range(tile.vectors, 0, -1):
            here, fewer = w.label(), w.label()
            w.branch(w.new(f"icmp eq i64 {wide}, {vectors}"), here, fewer)
            w.start_block(here)
            self._strip(vectors, (*a, b, to, rows), (count, lanes), (ahead, step, further), own)
            w.jump(end)
            w.start_block(fewer)
        w.jump(end)
        w.start_block(end)
        w.close_loop(panels, [self.add(done, fetched)])
        return panels.values[0]

    def _panel_steps(self, wide: str) -> tuple[str, str]:
        """Bytes from row to row of a panel of so many vectors, and from one to the next."""
        size = self.dtype.itemsize
        row = self.mul(wide, self.tile.lanes * size)
        if self.spread:
            return row, self.mul(row, self.kk)
        return self.select(self.there, self.lead, row), self.select(
            self.there, row, self.mul(row, self.kk)
        )

    def _next_panels(self, left: str) -> tuple[str, str, str]:
        """Where so many columns are left: of how many vectors the next panels are, how many panels
        there are at most, and of how many columns the last vector is. Panels of a copy are as wide
        as a tile, but for the last one; of columns that are read where they are, so many and one
        vector more are as two narrower panels rather than one, which wait less."""
        w, tile = self.w, self.tile
        whole, rest = self.div(left, tile.columns), w.new(f"urem i64 {left}, {tile.columns}")
        vectors = self.div(self.add(rest, tile.lanes - 1), tile.lanes)
        if tile.vectors > 2 and not self.spread:
            little = w.new(f"icmp eq i64 {vectors}, 1")
            little = w.new(f"and i1 {self.there}, {little}")
            some = w.new(f"icmp sgt i64 {whole}, 0")
            uneven = w.new(f"and i1 {little}, {some}")
            whole = self.sub(whole, w.new(f"zext i1 {uneven} to i64"))
            vectors = self.select(uneven, 2, vectors)
        many = w.new(f"icmp sgt i64 {whole}, 0")
        wide = self.select(many, tile.vectors, vectors)
        lanes = self.sub(left, self.mul(self.sub(wide, 1), tile.lanes))
        return wide, self.most(whole, 1), self.least(lanes, tile.lanes)

    def _strip(
        self, vectors: int, at: Sequence[str], panels: tuple[str, str],
        fetched: tuple[str, str, str],
        own: tuple[str, str, str],
    ) -> None:  # fmt: skip
        """The call of a strip, of the kind that suits."""
        w, tile = self.w, self.tile
        a, a_row, a_step, b, c, rows = at
        columns = str(vectors * tile.lanes)
        b_step, b_next = columns, self.mul(columns, self.kk)
        if not self.spread:
            b_step = self.select(self.there, "%b_step", columns)
            b_next = self.select(self.there, columns, b_next)
        count, lanes = panels

        def call(name: str, count: str, ahead: str, step: str, further: str) -> str:
            return (
                f"call void @strip{vectors}{name}(ptr {a}, {self.stride} {a_row}, "
                f"{self.stride} {a_step}, ptr {b}, i64 {b_step}, i64 {b_next}, "
                f"ptr {c}, i64 %c_row, i64 {self.kk}, i64 {rows}, i64 {count}, i64 {lanes}, "
                f"i1 {self.more}, i64 0, ptr {ahead}, i64 {step}, i64 {further})"
            )

        plain = call("", count, *fetched)
        if self.spread:
            w.line(plain)
            return
        some, full, end = w.label(), w.label(), w.label()
        whole = w.new(f"icmp eq i64 {rows}, {tile.rows}")
        copied = w.new(f"xor i1 {self.there}, true")
        readable = w.new(f"or i1 {w.new(f'icmp eq i64 {lanes}, {tile.lanes}')}, {copied}")
        w.branch(w.new(f"and i1 {whole}, {readable}"), full, some)
        w.start_block(some)
        w.line(plain)
        w.jump(end)
        w.start_block(full)
        plain = call("_full", count, *fetched)
        if vectors == tile.vectors:
            line = TUNING.cache_line_bytes
            area = call("_full_own", count, own[1], str(line), self.mul(self.kk, line))
            w.line_if(own[0], area, plain)
        else:
            w.line(plain)
        w.jump(end)
        w.start_block(end)
