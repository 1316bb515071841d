"""Matrix products: tiles of the result through memory that a block of threads shares.

A block of 256 threads computes 64 x 64 elements, each thread 4 x 4 of them in registers, 16 steps
at a time. Products of a result are added in the order of `ops/numerics/summation.py`, each with one
rounding, so results have the bits they have on a CPU (up to `PRODUCTS.batch` products; the totals
of more are added one after the other). Matrices whose rows and columns are evenly spaced may go to
cuBLAS instead, see `cublas.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrograd.codegen import types
from retrograd.codegen.emit.loops import Carried, emit_loops
from retrograd.codegen.op_builder import OpBuilder
from retrograd.ir import evaluate, product
from retrograd.nvptx.emit.launch import Launch, Launches, Sizes
from retrograd.nvptx.emit.module import DeviceModule
from retrograd.nvptx.emit.stacked_product import stacked
from retrograd.nvptx.emit.thread_emitter import ThreadEmitter
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.schedule.loop_nest import GemmNest, MatrixOperand

SIDE, OWN, STEPS = 64, 4, 16  # rows and columns of a tile, of a thread; steps at a time
THREADS = (SIDE // OWN) ** 2
Place = Callable[[str, str], str]  # of the element in a row and a column


def product_nest(module: DeviceModule, nest: GemmNest) -> list[Launches]:
    """A block of threads for each tile of each matrix of a stack."""
    w = module.emitter()
    _Tile(module, w, nest).write()
    name, arguments = module.kernel(w, THREADS)
    batch, m, n = product(nest.loops), nest.m.attr, nest.n.attr

    def launches(sizes: Sizes) -> list[Launch]:
        many, rows, columns = (evaluate(x, sizes) for x in (batch, m, n))
        blocks = many * -(-rows // SIDE) * -(-columns // SIDE)
        plain = stacked(nest, sizes)
        return [Launch(name, arguments, blocks * THREADS, {}, THREADS, plain)] if blocks else []

    return [launches]


class _Tile:
    """The kernel: what the threads of one block do."""

    def __init__(self, module: DeviceModule, w: ThreadEmitter, nest: GemmNest) -> None:
        self.w, self.nest = w, nest
        self.dtype = nest.output.type.dtype
        self.at = OpBuilder(w, self.dtype)
        self.kind = types.register_type(self.dtype)
        self.shared = []
        for side in "ab":
            name = f"@product.{side}.{self.dtype}"
            size = f"[{SIDE * STEPS} x {self.kind}]"
            module.declare(f"{name} = internal addrspace(3) global {size} poison, align 16")
            self.shared.append(name)

    def write(self) -> None:
        w, nest = self.w, self.nest
        m, n, self.k = (w.size(v.attr) for v in (nest.m, nest.n, nest.k))
        self.m, self.n = m, n
        block = w.new(f"zext i32 {w.register('ctaid.x')} to i64")
        self.own = w.new(f"zext i32 {w.register('tid.x')} to i64")
        across, down = (
            w.new(f"udiv i64 {w.new(f'add i64 {x}, {SIDE - 1}')}, {SIDE}") for x in (n, m)
        )
        self.column = w.new(f"mul i64 {w.new(f'urem i64 {block}, {across}')}, {SIDE}")
        block = w.new(f"udiv i64 {block}, {across}")
        self.row = w.new(f"mul i64 {w.new(f'urem i64 {block}, {down}')}, {SIDE}")
        matrix = w.new(f"udiv i64 {block}, {down}")
        sizes = [w.size(d) for d in nest.loops]
        w.fixed = dict(enumerate(w.unravel(matrix, sizes)))
        w.begin(nest)
        emit_loops(w, 0, len(nest.loops), self._matrix)

    def _matrix(self, _: Carried) -> Carried:
        w, nest = self.w, self.nest
        self.a, self.b = self._places()
        starts = w.new(f"mul nsw i64 {self.row}, {self.n}")
        start = w.new(f"add i64 {w.scalar(nest.y)}, {w.new(f'add i64 {starts}, {self.column}')}")
        self.out = w.address(nest.output, start)
        self.mine = [
            w.new(f"mul i64 {w.new(f'{op} i64 {self.own}, {SIDE // OWN}')}, {OWN}")
            for op in ("udiv", "urem")
        ]
        nothing = types.literal(-0.0, self.dtype)
        count = OWN * OWN
        loop = w.open_loop(self.k, STEPS, "0", [(self.kind, nothing)] * (3 * count))
        w.close_loop(loop, self._steps(loop.counter, loop.values))
        blocks, groups, totals = (loop.values[i * count : (i + 1) * count] for i in range(3))
        groups = self._added(groups, blocks)
        self._store(self._added(totals, groups))
        return []

    # -- where elements are -------------------------------------------------------------------
    def _places(self) -> tuple[Place, Place]:
        """Where the elements of both matrices are: by row and step, and by step and column."""
        w, nest = self.w, self.nest
        left, right = nest.spread, nest.windows
        return tuple(
            self._evenly(x, w.scalar(x.offset)) if axes is None
            else self._by_axes(axes, w.scalar(x.offset))
            for x, axes in ((nest.a, left), (nest.b, right))
        )  # type: ignore[return-value]  # fmt: skip

    def _evenly(self, x: MatrixOperand, start: str) -> Place:
        w, lead = self.w, self.w.size(x.leading.attr)

        def place(row: str, column: str) -> str:
            far, near = (column, row) if x.transposed else (row, column)
            return w.new(f"add i64 {start}, {w.new(f'add i64 {w.times(far, lead)}, {near}')}")

        return place

    def _by_axes(self, spread: Sequence[Sequence[tuple[int, int]]], start: str) -> Place:
        w = self.w

        def along(axes: Sequence[tuple[int, int]], number: str) -> str:
            index = w.unravel(number, [str(size) for size, _ in axes])
            total = "0"
            for at, (_, step) in zip(index, axes, strict=True):
                total = w.new(f"add i64 {total}, {w.times(at, str(step))}")
            return total

        def place(row: str, column: str) -> str:
            inside = w.new(f"add i64 {along(spread[0], row)}, {along(spread[1], column)}")
            return w.new(f"add i64 {start}, {inside}")

        return place

    # -- steps --------------------------------------------------------------------------------
    def _steps(self, first: str, values: list[str]) -> list[str]:
        """So many steps of all sums, and what they add up to where a block ends, or a group."""
        w, count = self.w, OWN * OWN
        w.barrier()
        self._fill(0, first)
        self._fill(1, first)
        w.barrier()
        blocks, groups, totals = (values[i * count : (i + 1) * count] for i in range(3))
        for step in range(STEPS):
            blocks = self._step(step, blocks)
        end = w.new(f"add i64 {first}, {STEPS}")
        for size in (PRODUCTS.block, PRODUCTS.group):
            full = w.new(f"icmp eq i64 {w.new(f'and i64 {end}, {size - 1}')}, 0")
            if size == PRODUCTS.block:
                blocks, groups = self._carried(full, blocks, groups)
            else:
                groups, totals = self._carried(full, groups, totals)
        return [*blocks, *groups, *totals]

    def _carried(self, full: str, low: list[str], high: list[str]) -> tuple[list[str], list[str]]:
        w, kind = self.w, self.kind
        nothing = types.literal(-0.0, self.dtype)
        added = self._added(high, low)
        more = [
            w.new(f"select i1 {full}, {kind} {x}, {kind} {y}")
            for x, y in zip(added, high, strict=True)
        ]
        left = [w.new(f"select i1 {full}, {kind} {nothing}, {kind} {x}") for x in low]
        return left, more

    def _added(self, a: list[str], b: list[str]) -> list[str]:
        return [self.at.instruction("fadd", x, y) for x, y in zip(a, b, strict=True)]

    def _fill(self, which: int, first: str) -> None:
        """Copy a part of a matrix into shared memory, by step and then by row or column; outside of
        the matrices are numbers whose product changes no sum."""
        w, nest = self.w, self.nest
        x = (nest.a, nest.b)[which]
        buffer, length = nest.buffers[which], (self.m, self.n)[which]
        start = (self.row, self.column)[which]
        outside = types.literal((-0.0, 0.0)[which], self.dtype)
        # Neighbours in memory are read by neighbouring threads.
        steps_first = x.transposed == bool(which)
        for part in range(SIDE * STEPS // THREADS):
            number = w.new(f"add i64 {self.own}, {part * THREADS}")
            size = STEPS if steps_first else SIDE
            low, high = (w.new(f"{op} i64 {number}, {size}") for op in ("urem", "udiv"))
            step, line = (low, high) if steps_first else (high, low)
            place = w.new(f"add i64 {start}, {line}")
            k = w.new(f"add i64 {first}, {step}")
            inside = [
                w.new(f"icmp slt i64 {p}, {end}") for p, end in ((place, length), (k, self.k))
            ]

            def read(k: str = k, place: str = place) -> list[str]:
                at = self.b(k, place) if which else self.a(place, k)
                return [types.load(w, w.address(buffer, at), self.dtype)]

            both = w.new(f"and i1 {inside[0]}, {inside[1]}")
            (found,) = w.either_of(both, self.kind, read, lambda: [outside])
            to = w.new(f"add i64 {w.new(f'mul i64 {step}, {SIDE}')}, {line}")
            w.line(f"store {self.kind} {found}, ptr addrspace(3) {self._shared(which, to)}")

    def _shared(self, which: int, at: str) -> str:
        return self.w.new(
            f"getelementptr {self.kind}, ptr addrspace(3) {self.shared[which]}, i64 {at}"
        )

    def _step(self, step: int, totals: list[str]) -> list[str]:
        w, found = self.w, []
        for which, start in enumerate(self.mine):
            listed = []
            for i in range(OWN):
                at = w.new(f"add i64 {start}, {step * SIDE + i}")
                listed.append(
                    w.new(f"load {self.kind}, ptr addrspace(3) {self._shared(which, at)}")
                )
            found.append(listed)
        return [
            self.at.call("fma", found[0][i], found[1][j], totals[OWN * i + j])
            for i in range(OWN)
            for j in range(OWN)
        ]

    def _store(self, totals: list[str]) -> None:
        """Write what lies within the result."""
        w = self.w
        zero = types.literal(0.0, self.dtype)
        empty = w.new(f"icmp eq i64 {self.k}, 0")
        for i in range(OWN):
            for j in range(OWN):
                row, column = (
                    w.new(f"add i64 {x}, {y}") for x, y in zip(self.mine, (i, j), strict=True)
                )
                inside = []
                for start, own, end in ((self.row, row, self.m), (self.column, column, self.n)):
                    inside.append(w.new(f"icmp slt i64 {w.new(f'add i64 {start}, {own}')}, {end}"))
                go, on = w.label(), w.label()
                w.branch(w.new(f"and i1 {inside[0]}, {inside[1]}"), go, on)
                w.start_block(go)
                at = w.new(f"add i64 {w.new(f'mul i64 {row}, {self.n}')}, {column}")
                pointer = w.new(f"getelementptr {self.kind}, ptr {self.out}, i64 {at}")
                total = totals[OWN * i + j]
                value = w.new(f"select i1 {empty}, {self.kind} {zero}, {self.kind} {total}")
                types.store(w, value, pointer, self.dtype)
                w.jump(on)
                w.start_block(on)
