"""The innermost part of a matrix product: one tile of results, in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.target import Target
from retrograd.ir import DType
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.tuning import TUNING


@dataclass(frozen=True, slots=True)
class Tile:
    """`rows` of results, each as many columns as `vectors` of `lanes` elements have."""

    rows: int
    vectors: int
    lanes: int
    dtype: DType
    fma: bool

    @staticmethod
    def of(machine: Target, dtype: DType) -> Tile:
        """As many results as leave registers for a row of the right matrix and an element of the
        left one, and, where products are rounded, for a product."""
        lanes = max(machine.width * 4 // dtype.itemsize, 2)
        rows, vectors = (8, 3) if machine.registers >= 32 else (4, 3 if machine.fma else 2)
        return Tile(rows, vectors, lanes, dtype, machine.fma)

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def stack(self) -> int:
        """Rows of a panel of the left matrix: whole vectors of whole tiles."""
        return max(self.rows, self.lanes)

    @property
    def scalar(self) -> str:
        return types.register_type(self.dtype)

    @property
    def vector(self) -> str:
        return types.register_type(self.dtype, self.lanes)

    def at(self, w: FunctionBuilder, pointer: str, offset: str | int) -> str:
        """The address of an element."""
        return w.new(f"getelementptr {self.scalar}, ptr {pointer}, i64 {offset}")

    def load(self, w: FunctionBuilder, pointer: str, mask: str | None = None) -> str:
        return types.load(w, pointer, self.dtype, self.lanes, mask)

    def store(self, w: FunctionBuilder, x: str, pointer: str, mask: str | None = None) -> None:
        types.store(w, x, pointer, self.dtype, self.lanes, mask)

    def first_lanes(self, w: FunctionBuilder, count: str) -> str:
        """A mask of so many lanes."""
        kind = types.widened("i32", self.lanes)
        short = w.new(f"trunc i64 {count} to i32")
        first = w.new(f"insertelement {kind} poison, i32 {short}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        wide = w.new(f"shufflevector {kind} {first}, {kind} poison, {zeros}")
        steps = "<" + ", ".join(f"i32 {i}" for i in range(self.lanes)) + ">"
        return w.new(f"icmp sgt {kind} {wide}, {steps}")

    def added(self, w: FunctionBuilder, x: str, y: str, total: str) -> str:
        """`total + x * y`, with one rounding where the machine can."""
        kind = self.vector
        if not self.fma:
            return w.new(f"fadd {kind} {total}, {w.new(f'fmul {kind} {x}, {y}')}")
        name = f"llvm.fma.{types.suffix(kind)}"
        w.declare(f"{kind} @{name}({kind}, {kind}, {kind})")
        return w.new(f"call {kind} @{name}({kind} {x}, {kind} {y}, {kind} {total})")


PARAMETERS = (
    "ptr noalias %a, i64 %a_row, i64 %a_step, ptr noalias %b, ptr noalias %c, i64 %c_row, i64 %k, "
    "i64 %rows, i64 %lanes, i1 %more, i64 %begun, ptr %ahead, i64 %ahead_step"
)
# Where the left matrix is spread, tables say at which offsets its rows and its columns lie.
SPREAD = PARAMETERS.replace("i64 %a_row, i64 %a_step", "ptr %a_row, ptr %a_step")


def offset(w: FunctionBuilder, table: str, number: str) -> str:
    """An entry of a table of offsets."""
    entry = w.new(f"load i32, ptr {w.new(f'getelementptr i32, ptr {table}, i64 {number}')}")
    return w.new(f"zext i32 {entry} to i64")


def tile_function(
    tile: Tile, vectors: int, w: FunctionBuilder, own: bool = False, spread: bool = False,
    there: bool = False,
) -> str:  # fmt: skip
    """The function `tileN` of N vectors: `%rows` rows of c, the last vector of each only in its
    first `%lanes` lanes, take `%k` products each, after those that they have if there are `%more`.
    Products are added up in registers, block by block, and the blocks in c; of the first one
    `%begun` steps were before.

    Rows that do not count are the last one again: they are computed twice, and stored twice. In
    each step, memory at `%ahead` is fetched for later, and `%ahead` moves on. The function
    `tileN_own` fetches it to be written to: no other core keeps a copy. What the tile itself reads
    and writes is fetched in time as well: its part of c when it begins, the panel step by step.

    The function `tileN_there` reads the right matrix where it is: `%ahead_step` bytes are from row
    to row of it, and `%ahead` is a later row.
    """
    last = w.new("sub i64 %rows, 1")
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    a, c = [tile.at(w, "%a", offset(w, "%a_row", "0")) if spread else "%a"], ["%c"]
    for i in range(1, tile.rows):
        row = w.new(f"call i64 @llvm.smin.i64(i64 {i}, i64 {last})")
        place = offset(w, "%a_row", row) if spread else w.new(f"mul i64 {row}, %a_row")
        a.append(tile.at(w, "%a", place))
        c.append(tile.at(w, "%c", w.new(f"mul i64 {row}, %c_row")))
    w.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    for row in c:  # what is written, and read before if there is more, is far away
        for v in range(vectors):
            line = tile.at(w, row, v * tile.lanes)
            w.line(f"call void @llvm.prefetch.p0(ptr {line}, i32 1, i32 3, i32 1)")
    mask = tile.first_lanes(w, "%lanes")
    masks = [None] * (vectors - 1) + [mask]
    carried = [("i64", "0"), ("ptr", "%b"), ("ptr", "%ahead"), ("i1", "%more")]
    w.declare("i64 @llvm.smax.i64(i64, i64)")
    blocks = w.open_loop(w.new("add i64 %k, %begun"), PRODUCTS.block, "0", carried)
    from_block = w.new(f"sub i64 {blocks.counter}, %begun")
    start = w.new(f"call i64 @llvm.smax.i64(i64 {from_block}, i64 0)")
    end = w.new(f"add i64 {from_block}, {PRODUCTS.block}")
    end = w.new(f"call i64 @llvm.smin.i64(i64 {end}, i64 %k)")
    *found, position, b, ahead = _steps(
        tile, a, (start, end), blocks.values, masks, w, own, spread, there
    )
    outs = [tile.at(w, row, v * tile.lanes) for row in c for v in range(vectors)]
    counted = masks * len(c)
    found = with_earlier(tile, outs, counted, found, blocks.values[3], w)
    for x, out, m in zip(found, outs, counted, strict=True):
        tile.store(w, x, out, m)
    w.close_loop(blocks, [position, b, ahead, "true"])
    w.line("ret void")
    name = f"tile{vectors}" + "_own" * own + "_there" * there
    given = SPREAD if spread else PARAMETERS
    return f"define internal void @{name}({given}) #0 {{\n{w.text()}\n}}"


def with_earlier(
    tile: Tile,
    outs: list[str],
    masks: list[str | None],
    totals: list[str],
    more: str,
    w: FunctionBuilder,
) -> list[str]:
    """The totals added to what is at their places, where there is more. All is read before anything
    is written, as a row may be there twice."""
    go_on, write, start = w.label(), w.label(), w.block
    w.branch(more, go_on, write)
    w.start_block(go_on)
    sums = [
        w.new(f"fadd {tile.vector} {tile.load(w, out, m)}, {x}")
        for out, m, x in zip(outs, masks, totals, strict=True)
    ]
    w.jump(write)
    w.start_block(write)
    return [
        w.new(f"phi {tile.vector} [ {x}, %{start} ], [ {y}, %{go_on} ]")
        for x, y in zip(totals, sums, strict=True)
    ]


def _steps(
    tile: Tile, a: list[str], steps: tuple[str, str], at: Sequence[str], masks: list[str | None],
    w: FunctionBuilder,
    own: bool, spread: bool, there: bool,
) -> list[str]:  # fmt: skip
    """The totals of these steps, and where the next one finds what it reads."""
    vectors = len(masks)
    zero = types.literal(-0.0, tile.dtype, tile.lanes)
    carried = [(tile.vector, zero)] * (len(a) * vectors)
    carried += zip(("i64", "ptr", "ptr"), at[:3], strict=True)
    loop = w.open_loop(steps[1], 1, steps[0], carried)
    *totals, position, b, ahead = loop.values
    place = offset(w, "%a_step", position) if spread else position
    seen = masks if there else [None] * vectors
    row = [tile.load(w, tile.at(w, b, v * tile.lanes), m) for v, m in enumerate(seen)]
    new = []
    for i, start in enumerate(a):
        x = types.load(w, tile.at(w, start, place), tile.dtype)
        x = types.broadcast(w, x, tile.dtype, tile.lanes)
        new += [tile.added(w, x, y, totals[i * vectors + v]) for v, y in enumerate(row)]
    w.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    if not there:
        w.line(f"call void @llvm.prefetch.p0(ptr {ahead}, i32 {int(own)}, i32 2, i32 1)")
    for v in range(vectors):  # the panel, of which the first-level cache has not all
        later = (TUNING.gemm_panel_steps * vectors + v) * tile.lanes
        soon = tile.at(w, ahead, v * tile.lanes) if there else tile.at(w, b, later)
        w.line(f"call void @llvm.prefetch.p0(ptr {soon}, i32 0, i32 3, i32 1)")
    new.append(w.new(f"add i64 {position}, {1 if spread else '%a_step'}"))
    below = w.new(f"getelementptr i8, ptr {b}, i64 %ahead_step")
    new.append(below if there else tile.at(w, b, vectors * tile.lanes))
    new.append(w.new(f"getelementptr i8, ptr {ahead}, i64 %ahead_step"))
    w.close_loop(loop, new)
    return loop.values
