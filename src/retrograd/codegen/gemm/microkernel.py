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
    "ptr noalias %a, i64 %a_row, i64 %a_step, ptr noalias %b, i64 %b_step, "
    "i64 %b_next, ptr noalias %c, i64 %c_row, i64 %k, i64 %rows, i64 %panels, i64 %lanes, "
    "i1 %more, i64 %begun, ptr %ahead, i64 %ahead_step, i64 %ahead_next"
)
# Where the left matrix is spread, tables say at which offsets its rows and its columns lie.
SPREAD = PARAMETERS.replace("i64 %a_row, i64 %a_step", "ptr %a_row, ptr %a_step")

Place = tuple[str, int]  # how many bytes, and how many times these


def offset(w: FunctionBuilder, table: str, number: str) -> str:
    """An entry of a table of offsets."""
    entry = w.new(f"load i32, ptr {w.new(f'getelementptr i32, ptr {table}, i64 {number}')}")
    return w.new(f"zext i32 {entry} to i64")


def opaque(w: FunctionBuilder, x: str) -> str:
    """A number of which LLVM does not know how it is related to others: it would make an address of
    another one in each step of a loop."""
    return w.new(f'call i64 asm "", "=r,0"(i64 {x})')


def row_places(tile: Tile, w: FunctionBuilder, row: str, count: int) -> list[Place]:
    """Where rows are that follow one another: a processor adds a register to an address, or two,
    four or eight times that, so that eight rows need four registers."""
    size = w.new(f"mul i64 {row}, {tile.dtype.itemsize}")
    odd = {n: opaque(w, w.new(f"mul i64 {size}, {n}")) for n in range(1, count, 2)}
    return [("0", 1), *((odd[n // (n & -n)], n & -n) for n in range(1, count))]


def row_at(w: FunctionBuilder, start: str, place: Place) -> str:
    """The address of a row, of that of the first one."""
    step, times = place
    return w.new(f"getelementptr i{8 * times}, ptr {start}, i64 {step}")


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps of a tile: in each one all results take one product. `a` is where the rows of the left
    matrix are. Where it is `exact`, no lane of the right one is read that does not count, which
    takes a little longer."""

    tile: Tile
    a: list[Place]
    masks: list[str | None]
    w: FunctionBuilder
    own: bool
    spread: bool
    exact: bool
    a_step: str  # bytes from column to column of the left matrix
    b_step: str  # and from row to row of a panel

    def start(self, b: str, ahead: str) -> list[tuple[str, str]]:
        """What is carried from step to step beside totals: where the step is in the left matrix,
        in the right one, in what is fetched."""
        first = ("i64", "0") if self.spread else ("ptr", "%a")
        return [first, ("ptr", b), ("ptr", ahead)]

    def all(self, count: str, at: Sequence[str]) -> tuple[list[str], list[str]]:
        """The totals of so many steps, and where the next one finds what it reads."""
        w, size = self.w, len(self.a) * len(self.masks)
        zero = types.literal(-0.0, self.tile.dtype, self.tile.lanes)
        kinds = [kind for kind, _ in self.start("", "")]
        carried = [(self.tile.vector, zero)] * size + list(zip(kinds, at, strict=True))
        loop = w.open_loop(count, 1, "0", carried)
        w.close_loop(loop, self._step(loop.values))
        return loop.values[:size], loop.values[size:]

    def _step(self, values: Sequence[str]) -> list[str]:
        tile, w, count = self.tile, self.w, len(self.masks)
        *totals, position, b, ahead = values
        left = tile.at(w, "%a", offset(w, "%a_step", position)) if self.spread else position
        seen = self.masks if self.exact else [None] * count
        row = [tile.load(w, tile.at(w, b, v * tile.lanes), m) for v, m in enumerate(seen)]
        new = []
        for i, place in enumerate(self.a):
            x = types.load(w, row_at(w, left, place), tile.dtype)
            x = types.broadcast(w, x, tile.dtype, tile.lanes)
            new += [tile.added(w, x, y, totals[i * count + v]) for v, y in enumerate(row)]
        self._fetch(b, ahead)
        if self.spread:
            new.append(w.new(f"add i64 {position}, 1"))
        else:
            new.append(w.new(f"getelementptr i8, ptr {position}, i64 {self.a_step}"))
        new.append(w.new(f"getelementptr i8, ptr {b}, i64 {self.b_step}"))
        new.append(w.new(f"getelementptr i8, ptr {ahead}, i64 %ahead_step"))
        return new

    def _fetch(self, b: str, ahead: str) -> None:
        """What is needed later: a line of what is ahead, and the panel, of which the first-level
        cache has not all. Of one vector a step has little else to do than to read: there it is left
        to the caller what is ahead."""
        w, tile, count = self.w, self.tile, len(self.masks)
        lines = [(ahead, int(self.own), 2 if count > 1 else 3)]
        later = row_at(w, b, (self.b_step, TUNING.gemm_panel_steps))
        lines += [(tile.at(w, later, v * tile.lanes), 0, 3) for v in range(count) if count > 1]
        for line, write, near in lines:
            w.line(f"call void @llvm.prefetch.p0(ptr {line}, i32 {write}, i32 {near}, i32 1)")


def strip_function(
    tile: Tile, vectors: int, w: FunctionBuilder, full: bool = False, own: bool = False,
    spread: bool = False,
) -> str:  # fmt: skip
    """The function `stripN` of N vectors: `%rows` rows of c, at most as many as a tile has, by
    `%panels` panels of the right matrix, `%b_next` elements apart. Of each row of c the last vector
    of a panel counts only in its first `%lanes` lanes; there are fewer only of the last panel. Rows
    take `%k` products each, after those that they have if there are `%more`. Products are added up
    in registers, block by block, and the blocks in c; of the first one `%begun` steps were before.

    The function `stripN_full` takes as many rows as a tile has. In that of any number, rows that do
    not count are the last one again: they are computed twice, and stored twice.

    Row p of a panel lies at `p * %b_step`, in a copy or in the matrix itself. In each step memory
    at `%ahead` is fetched for later, `%ahead_step` bytes after the last, from panel to panel
    `%ahead_next` bytes on. The function `stripN_own` fetches it to be written to: no other core
    keeps a copy. What the strip itself reads and writes is fetched in time as well: its part of c
    when a tile begins, and the panel step by step.
    """
    if full:
        a, c = (row_places(tile, w, f"%{x}_row", tile.rows) for x in "ac")
    else:
        a, c = _some_rows(tile, w, spread)
    mask = tile.first_lanes(w, "%lanes")
    masks = [None] * (vectors - 1) + [mask]
    w.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    a_step = "" if spread else w.new(f"mul i64 %a_step, {tile.dtype.itemsize}")
    b_step = str(vectors * tile.lanes * tile.dtype.itemsize)
    if not spread:  # else it is copied
        b_step = w.new(f"mul i64 %b_step, {tile.dtype.itemsize}")
    steps = _Steps(tile, a, masks, w, own, spread, not (full or spread), a_step, b_step)
    panels = w.open_loop("%panels", 1, "0", [("ptr", x) for x in ("%b", "%c", "%ahead")])
    b, to, ahead = panels.values
    outs = [tile.at(w, row_at(w, to, place), v * tile.lanes) for place in c for v in range(vectors)]
    for out in outs:  # what is written, and read before if there is more, is far away
        w.line(f"call void @llvm.prefetch.p0(ptr {out}, i32 1, i32 3, i32 1)")
    _blocks(tile, steps, (b, ahead), outs)
    w.close_loop(
        panels,
        [
            tile.at(w, b, "%b_next"),
            tile.at(w, to, vectors * tile.lanes),
            w.new(f"getelementptr i8, ptr {ahead}, i64 %ahead_next"),
        ],
    )
    w.line("ret void")
    name = f"strip{vectors}" + "_full" * full + "_own" * own
    given = SPREAD if spread else PARAMETERS
    return f"define internal void @{name}({given}) #0 {{\n{w.text()}\n}}"


def _some_rows(tile: Tile, w: FunctionBuilder, spread: bool) -> tuple[list[Place], list[Place]]:
    """Where rows of the left matrix are, and of the result, of which there may be fewer than a
    tile has: the others are the last one."""
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    last = w.new("sub i64 %rows, 1")
    size = tile.dtype.itemsize
    a: list[Place] = []
    c: list[Place] = []
    for i in range(tile.rows):
        row = w.new(f"call i64 @llvm.smin.i64(i64 {i}, i64 {last})") if i else "0"
        start = offset(w, "%a_row", row) if spread else w.new(f"mul i64 {row}, %a_row")
        a.append((w.new(f"mul i64 {start}, {size}"), 1))
        c.append((w.new(f"mul i64 {w.new(f'mul i64 {row}, %c_row')}, {size}"), 1))
    return a, c


def _blocks(tile: Tile, steps: _Steps, at: tuple[str, str], outs: list[str]) -> None:
    """All products of a tile, block after block."""
    w = steps.w
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    w.declare("i64 @llvm.smax.i64(i64, i64)")
    carried = [*steps.start(*at), ("i1", "%more")]
    blocks = w.open_loop(w.new("add i64 %k, %begun"), PRODUCTS.block, "0", carried)
    from_block = w.new(f"sub i64 {blocks.counter}, %begun")
    start = w.new(f"call i64 @llvm.smax.i64(i64 {from_block}, i64 0)")
    end = w.new(f"add i64 {from_block}, {PRODUCTS.block}")
    end = w.new(f"call i64 @llvm.smin.i64(i64 {end}, i64 %k)")
    found, places = steps.all(w.new(f"sub i64 {end}, {start}"), blocks.values[:-1])
    masks = steps.masks * (len(outs) // len(steps.masks))
    found = with_earlier(tile, outs, masks, found, blocks.values[-1], w)
    for x, out, m in zip(found, outs, masks, strict=True):
        tile.store(w, x, out, m)
    w.close_loop(blocks, [*places, "true"])


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
