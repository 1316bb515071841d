"""Matrix products: a workgroup for each tile of the result, by way of workgroup memory.

The invocations of a workgroup copy `DEPTH` columns of the left matrix and rows of the right one
into workgroup memory, then each multiplies its own rows and columns of these in registers. Products
are added up in blocks of `PRODUCTS.block`, whose totals are added up in memory, and groups of these
blocks are parts of their own: the error grows with the logarithm of the number of products, as on
the CPU (`ops/numerics/summation.py`). Where there are few tiles of many products, several
workgroups compute parts of the sums, too, which a second dispatch adds up, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from retrograd.ir import TensorType
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import GemmNest, MatrixOperand, Spread
from retrograd.wgpu.dispatch import Dispatch, EmitContext, emits_nest
from retrograd.wgpu.emit import epilogues
from retrograd.wgpu.emit.maps import counters_of, number_of_points
from retrograd.wgpu.scalar import Body
from retrograd.wgpu.shader_writer import ShaderWriter
from retrograd.wgpu.types import literal, register_type

DEPTH = 16  # products for which a tile is copied at a time
ENOUGH_TILES = 64  # workgroups that keep a device busy
LEAST_PART = 2 * PRODUCTS.block  # products that are worth a workgroup of their own


@dataclass(frozen=True)
class WorkgroupTile:
    """The invocations of a workgroup, side by side and one below the other, and how many rows and
    columns of the result each computes; of columns a multiple of four."""

    across: int
    down: int
    rows: int
    columns: int

    @property
    def m(self) -> int:
        return self.down * self.rows

    @property
    def n(self) -> int:
        return self.across * self.columns

    @property
    def size(self) -> int:
        return self.across * self.down


LARGE, MEDIUM = WorkgroupTile(8, 8, 8, 8), WorkgroupTile(8, 8, 4, 4)
FLAT, TALL = WorkgroupTile(16, 4, 2, 4), WorkgroupTile(2, 32, 4, 4)
SMALL = 8  # rows or columns below which a tile is as narrow


def tile_for(m: int, n: int, batch: int) -> WorkgroupTile:
    """The tile for a product of these sizes: a large one where there are enough of them."""
    if m <= SMALL:
        return FLAT
    if n <= SMALL:
        return TALL
    tiles = -(-m // LARGE.m) * -(-n // LARGE.n) * batch
    return LARGE if tiles >= ENOUGH_TILES // 4 and min(m, n) > MEDIUM.m else MEDIUM


@emits_nest(GemmNest)
def gemm(nest: GemmNest, context: EmitContext) -> list[Dispatch]:
    """A product for each matrix of a stack."""
    batch = number_of_points(nest.loops, context)
    m, n, k = (context.value(d) for d in nest.mnk)
    if 0 in (batch, m, n):
        return []
    tile = tile_for(m, n, batch)
    tiles = -(-m // tile.m) * -(-n // tile.n) * batch
    length = k
    if tiles < ENOUGH_TILES:
        length = max(-(-k * tiles // ENOUGH_TILES), LEAST_PART)
    length = min(length, PRODUCTS.group, k)
    length += -length % PRODUCTS.block
    parts = -(-k // max(length, 1))
    if parts <= 1:
        return [_ProductShader(nest, context, tile).dispatch(tiles)]
    sums = context.scratch(TensorType(nest.output.type.dtype, (parts, batch, m, n)))
    whole = _ProductShader(nest, context, tile, sums, length).dispatch(tiles * parts)
    return [whole, _sum_of_parts(nest, context, sums, parts, batch * m * n)]


class _ProductShader:
    """Writes the shader of the products, or of their parts of so many steps."""

    def __init__(
        self, nest: GemmNest, context: EmitContext, tile: WorkgroupTile, sums: Buffer | None = None,
        length: int = 0,
    ) -> None:  # fmt: skip
        self.nest, self.tile, self.sums, self.length = nest, tile, sums, length
        self.context = context
        self.w = ShaderWriter(context, tile.size)
        self.body = Body(self.w, nest)
        self.dtype = nest.output.type.dtype
        self.kind = register_type(self.dtype)
        self.zero = literal(0, self.dtype)

    def dispatch(self, groups: int) -> Dispatch:
        w, tile, body = self.w, self.tile, self.body
        kind = f"vec4<{self.kind}>"
        w.declare(f"var<workgroup> left: array<{kind}, {DEPTH * tile.m // 4}>;")
        w.declare(f"var<workgroup> right: array<{kind}, {DEPTH * tile.n // 4}>;")
        rest = self._place()
        counters_of(w, body, self.nest.loops, rest)
        body.place(len(self.nest.loops), 0)
        self.m, self.n, self.k = (w.size(d) for d in self.nest.mnk)
        if self.sums is not None:
            result = f"(part * {self._batch()} + {rest}) * {self.m} * {self.n}"
            self.start = w.new(result)
        else:
            self.start = body.position(self.nest.y)
        w.line(f"let across = {'0i' if tile.across == 1 else f'lane % {tile.across}i'};")
        w.line(f"let down = {'0i' if tile.down == 1 else f'lane / {tile.across}i'};")
        w.line(f"let row = tile_row * {tile.m}i;")
        w.line(f"let column = tile_column * {tile.n}i;")
        first, last = "0i", self.k
        if self.sums is not None:
            first = w.new(f"part * {self.length}i")
            last = w.new(f"min({first} + {self.length}i, {self.k})")
        self._accumulators(declared=True)
        w.line("var begun = false;")
        with w.loop(last, first, f"{PRODUCTS.block}i") as block:
            end = w.new(f"min({block} + {PRODUCTS.block}i, {last})")
            self._accumulators(declared=False)
            with w.loop(end, block, f"{DEPTH}i") as step:
                self._copy_left(step, end)
                self._copy_right(step, end)
                w.line("workgroupBarrier();")
                self._multiply()
                w.line("workgroupBarrier();")
            self._store()
            w.line("begun = true;")
        with w.block("if (!begun)"):
            self._store()
        if self.sums is None and (then := epilogues.of(self.context, self.nest.output)):
            self._elements(lambda at, _: then.call(w, at, w.load(self.nest.output, at)))
        return w.dispatch(groups, "gemm")

    def _batch(self) -> int:
        return number_of_points(self.nest.loops, self.context)

    def _place(self) -> str:
        """Which tile a workgroup computes, and the part of its products; of which matrix."""
        w, tile = self.w, self.tile
        m, n, _ = (w.size(d) for d in self.nest.mnk)
        w.line(f"let tiles_down = ({m} + {tile.m - 1}i) / {tile.m}i;")
        w.line(f"let tiles_across = ({n} + {tile.n - 1}i) / {tile.n}i;")
        w.line("let tile_column = group % tiles_across;")
        w.line("let tile_row = (group / tiles_across) % tiles_down;")
        rest = w.new("group / (tiles_across * tiles_down)")
        if self.sums is not None:
            w.line(f"let part = {rest} / {self._batch()}i;")
            rest = w.new(f"{rest} % {self._batch()}i")
        return rest

    def _accumulators(self, declared: bool) -> None:
        for r in range(self.tile.rows):
            for c in range(self.tile.columns // 4):
                kind = f"vec4<{self.kind}>"
                name = f"sum{r}_{c}"
                self.w.line(f"{f'var {name}: {kind}' if declared else name} = {kind}({self.zero});")

    # -- to workgroup memory -------------------------------------------------------------------
    def _copy_left(self, step: str, end: str) -> None:
        """`left[q * rows + i]` has four elements of row `i`, from column `4 q` on."""
        tile, w = self.tile, self.w
        along_rows = self.nest.a.transposed and self.nest.spread is None
        with w.loop(f"{DEPTH * tile.m // 4}i", "lane", f"{tile.size}i") as e:
            if along_rows:
                i, q = w.new(f"{e} % {tile.m}i"), w.new(f"{e} / {tile.m}i")
            else:
                q, i = w.new(f"{e} % {DEPTH // 4}i"), w.new(f"{e} / {DEPTH // 4}i")
            r, p = w.new(f"row + {i}"), w.new(f"{step} + {q} * 4i")
            four = self._four(
                f"{r} < {self.m}", p, end,
                lambda at: w.load(
                    self.nest.buffers[0], self._offset(self.nest.a, self.nest.spread, r, at)
                ),
            )  # fmt: skip
            w.line(f"left[{q} * {tile.m}i + {i}] = {four};")

    def _copy_right(self, step: str, end: str) -> None:
        """`right[p * fours + j]` has four elements of row `p`, from column `4 j` on."""
        tile, w = self.tile, self.w
        down, fours = self.nest.b.transposed and self.nest.windows is None, tile.n // 4
        with w.loop(f"{DEPTH * fours}i", "lane", f"{tile.size}i") as e:
            if down:
                p, j = w.new(f"{e} % {DEPTH}i"), w.new(f"{e} / {DEPTH}i")
            else:
                j, p = w.new(f"{e} % {fours}i"), w.new(f"{e} / {fours}i")
            c, q = w.new(f"column + {j} * 4i"), w.new(f"{step} + {p}")
            four = self._four(
                f"{q} < {end}", c, self.n,
                lambda at: w.load(
                    self.nest.buffers[1], self._offset(self.nest.b, self.nest.windows, q, at)
                ),
            )  # fmt: skip
            w.line(f"right[{p} * {fours}i + {j}] = {four};")

    def _four(self, some: str, first: str, end: str, element: Callable[[str], str]) -> str:
        """Elements of the positions from the first one on, zeros from the end on, or where there
        are none."""
        w = self.w
        x = w.variable(f"vec4<{self.kind}>", f"vec4<{self.kind}>({self.zero})")
        with w.block(f"if ({some} && {first} + 3i < {end})"):
            found = [w.new(element(f"({first} + {k}i)")) for k in range(4)]
            w.line(f"{x} = vec4<{self.kind}>({', '.join(found)});")
        with w.block(f"else if ({some})"):
            for k in range(3):
                with w.block(f"if ({first} + {k}i < {end})"):
                    w.line(f"{x}.{'xyzw'[k]} = {element(f'({first} + {k}i)')};")
        return x

    def _offset(self, x: MatrixOperand, spread: Spread | None, row: str, column: str) -> str:
        """Where an element of a matrix is."""
        start = self.body.position(x.offset)
        if spread is not None:
            rows, columns = (
                self._spread(axes, at) for axes, at in zip(spread, (row, column), strict=True)
            )
            return self.w.new(f"{start} + {rows} + {columns}")
        far, near = (column, row) if x.transposed else (row, column)
        return self.w.new(f"{start} + {far} * {self.body.position(x.leading)} + {near}")

    def _spread(self, axes: Sequence[tuple[int, int]], position: str) -> str:
        """The offset of a position along axes of these sizes and steps."""
        inner, terms = prod(size for size, _ in axes), []
        for k, (size, step) in enumerate(axes):
            inner //= size
            index = f"({position} / {inner}i)" if inner > 1 else position
            if k:
                index = f"({index} % {size}i)"
            terms.append(f"{index} * {step}i")
        return self.w.new(" + ".join(terms) or "0i")

    # -- in registers --------------------------------------------------------------------------
    def _multiply(self) -> None:
        tile, w, fours = self.tile, self.w, range(self.tile.columns // 4)
        kind = f"vec4<{self.kind}>"
        with w.loop(f"{DEPTH // 4}i") as p:
            a = w.new(f"{p} * {tile.m}i + down")
            b = w.new(f"{p} * {tile.n}i + across")
            for r in range(tile.rows):
                w.line(f"let a{r} = left[{a} + {r * tile.down}i];")
            for q, part in enumerate("xyzw"):
                for c in fours:
                    at = q * tile.n // 4 + c * tile.across
                    w.line(f"let b{q}_{c} = right[{b} + {at}i];")
                for r in range(tile.rows):
                    for c in fours:
                        x, y, total = f"{kind}(a{r}.{part})", f"b{q}_{c}", f"sum{r}_{c}"
                        product = f"fma({x}, {y}, {total})"
                        if self.kind == "f64":
                            product = f"{total} + {x} * {y}"
                        w.line(f"{total} = {product};")

    def _store(self) -> None:
        """Write the totals of a block, or add them to those of the blocks before."""
        w, out = self.w, self.nest.output if self.sums is None else self.sums

        def add(at: str, total: str) -> None:
            here = w.place(out, at)
            with w.block("if (begun)"):
                w.line(f"{here} = {here} + {total};")
            with w.block("else"):
                w.line(f"{here} = {total};")

        self._elements(add)

    def _elements(self, do: Callable[[str, str], None]) -> None:
        """Do something with the position and the total of each element of this invocation."""
        tile, w = self.tile, self.w
        for r in range(tile.rows):
            i = w.new(f"row + down + {r * tile.down}i")
            with w.block(f"if ({i} < {self.m})"):
                line = w.new(f"{self.start} + {i} * {self.n}")
                for c in range(tile.columns):
                    j = w.new(f"column + (across + {c // 4 * tile.across}i) * 4i + {c % 4}i")
                    with w.block(f"if ({j} < {self.n})"):
                        do(f"{line} + {j}", f"sum{r}_{c // 4}.{'xyzw'[c % 4]}")


def _sum_of_parts(
    nest: GemmNest, context: EmitContext, sums: Buffer, parts: int, count: int
) -> Dispatch:
    """The parts of each element one after the other; of many, the totals of `PRODUCTS.block`."""
    w = ShaderWriter(context)
    w.line(f"if (at >= {count}i) {{ return; }}")
    body = Body(w, nest)
    m, n, _ = (w.size(d) for d in nest.mnk)
    inside = w.new(f"at % ({m} * {n})")
    counters_of(w, body, nest.loops, w.new(f"at / ({m} * {n})"))
    body.place(len(nest.loops), 0)
    dtype = nest.output.type.dtype
    total = w.variable(register_type(dtype), w.load(sums, "at"))
    with w.loop(f"{parts}i", "1i", f"{PRODUCTS.block}i") as some:
        inner = w.variable(register_type(dtype), literal(-0.0, dtype))
        with w.loop(w.new(f"min({some} + {PRODUCTS.block}i, {parts}i)"), some) as part:
            w.line(f"{inner} = {inner} + {w.load(sums, f'{part} * {count}i + at')};")
        w.line(f"{total} = {total} + {inner};")
    epilogues.finish(w, nest.output, f"{body.position(nest.y)} + {inside}", total)
    return w.dispatch(-(-count // w.workgroup), "gemm")
