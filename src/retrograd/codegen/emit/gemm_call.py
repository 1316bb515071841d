"""Contractions by calls of routines that multiply matrices: one for large ones, and, where sizes
are not known, one for those that turn out to be small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.emit.lane_strides import steps_of
from retrograd.codegen.emit.loops import Carried, at_start, emit_loops
from retrograd.codegen.emit.masked_products import product_of_visible
from retrograd.codegen.emit.nest_emitters import emits_nest
from retrograd.codegen.gemm.microkernel import Tile
from retrograd.codegen.gemm.split_k import join_others, over_part
from retrograd.codegen.gemm.windows import PART, parts_of_vectors
from retrograd.ir import Dim
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.passes.lowering.strided_views import FAR, FEW, FEW_FAR, NEAR, SPREAD
from retrograd.schedule.cost_model import known
from retrograd.schedule.loop_nest import GemmNest, MatrixOperand, PackNest, Spread
from retrograd.tuning import TUNING


@emits_nest(GemmNest)
def gemm(w: KernelEmitter, nest: GemmNest) -> None:
    """Calls for the matrices of a stack."""
    w.begin(nest)
    named = any(isinstance(d, Dim) for d in nest.mnk)
    if nest.windows is not None:
        _windows(w, nest, nest.windows)
        return
    if w.first or nest.spread is not None or nest.packed or not named:
        _large(w, nest)
        return
    _either(w, _are_few(w, nest), lambda: _small(w, nest), lambda: _large(w, nest))


@emits_nest(PackNest)
def pack(w: KernelEmitter, nest: PackNest) -> None:
    """A right matrix copied for products that read it again and again."""
    w.begin(nest)
    right, packed = nest.buffers
    symbol = f"rg_pack_{packed.type.dtype}"
    w.declare(f"void @{symbol}(i64, i64, ptr, i64, i64, ptr)")
    b_step, b_column = _strides(w, nest.b)
    w.line(
        f"call void @{symbol}(i64 {w.scalar(nest.n)}, i64 {w.scalar(nest.k)}, "
        f"ptr {w.address(right, w.scalar(nest.b.offset))}, i64 {b_step}, i64 {b_column}, "
        f"ptr {w.address(packed, '0')})"
    )


def _either(
    w: KernelEmitter, condition: str, yes: Callable[..., None], no: Callable[..., None]
) -> None:
    first, second, done = w.label(), w.label(), w.label()
    w.branch(condition, first, second)
    for label, write in ((first, yes), (second, no)):
        w.start_block(label)
        w.enter()  # what is known in there is not known outside
        write()
        w.leave()
        w.jump(done)
    w.start_block(done)


def _are_few(w: KernelEmitter, nest: GemmNest) -> str:
    """Whether the matrices are so small that to copy blocks of them, as the routine for large ones
    does, takes more time than it saves; much as `wants_routine` decides where sizes are known."""
    m, n, k = (w.scalar(v) for v in (nest.m, nest.n, nest.k))
    lo, hi = w.ranges.get(len(nest.loops), ("0", m))
    rows = hi if lo == "0" else w.new(f"sub i64 {hi}, {lo}")
    wide = nest.output.type.dtype.itemsize

    def less(x: str, limit: int | str) -> str:
        return w.new(f"icmp slt i64 {x}, {limit}")

    column = w.new(f"mul i64 {k}, {wide}")
    if nest.b.transposed:  # it is copied in whole vectors
        few = less(
            w.new(f"mul i64 {column}, {w.new(f'add i64 {n}, {TUNING.gemm_vector_columns}')}"), NEAR
        )
    else:
        size = w.new(f"mul i64 {column}, {n}")
        most = w.new(f"select i1 {less(size, FAR)}, i64 {FEW + 1}, i64 {FEW_FAR}")
        few = w.new(f"or i1 {less(size, NEAR)}, {less(rows, most)}")
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    least = w.new(f"call i64 @llvm.smin.i64(i64 {rows}, i64 {k})")
    few = w.new(f"and i1 {few}, {less(k, PRODUCTS.group + 1)}")
    return w.new(f"and i1 {few}, {w.new(f'icmp sgt i64 {least}, 0')}")


def _small(w: KernelEmitter, nest: GemmNest) -> None:
    """A call for all matrices along the last axis of a stack."""
    left, right, out = nest.buffers
    symbol = f"rg_few_{out.type.dtype}"
    kinds = ["i64"] * 4 + ["ptr", "i64", "i64", "i64"] * 2 + ["ptr", "i64", "i64", "ptr"]
    w.declare(f"void @{symbol}({', '.join(kinds)})")
    m, n, k = (w.scalar(v) for v in (nest.m, nest.n, nest.k))
    a_row, a_step = _strides(w, nest.a)
    b_step, b_column = _strides(w, nest.b)
    work, last = _work(w, nest), len(nest.loops) - 1
    lo, hi = w.ranges.get(len(nest.loops), ("0", ""))
    places = nest.a.offset, nest.b.offset, nest.y
    steps = steps_of(w.uses, last)
    apart = [steps[v] for v in places]
    together = last >= 0 and None not in apart
    a_next, b_next, c_next = (w.size(d) if together and d is not None else "0" for d in apart)
    if hi:
        m = w.new(f"sub i64 {hi}, {lo}")

    def call(many: str) -> None:
        starts = [w.scalar(v) for v in places]
        if hi:
            starts = [
                at if step == "0" else w.new(f"add i64 {at}, {w.new(f'mul i64 {lo}, {step}')}")
                for at, step in zip(starts, (a_row, "0", n), strict=True)
            ]
        buffers = zip((left, right, out), starts, strict=True)
        a, b, y = (f"ptr {w.address(buffer, start)}" for buffer, start in buffers)
        w.line(
            f"call void @{symbol}(i64 {many}, i64 {m}, i64 {n}, i64 {k}, {a}, i64 {a_row}, "
            f"i64 {a_step}, i64 {a_next}, {b}, i64 {b_step}, i64 {b_column}, i64 {b_next}, {y}, "
            f"i64 {n}, i64 {c_next}, ptr {work})"
        )

    def inside(_: Carried) -> Carried:
        if together:
            at_start(w, last, call)
        else:
            call("1")
        return []

    emit_loops(w, 0, last if together else len(nest.loops), inside)


def _large(w: KernelEmitter, nest: GemmNest) -> None:
    """A call for each matrix of a stack."""
    n = w.scalar(nest.n)
    lo, hi = w.ranges.get(len(nest.loops), ("0", ""))
    if nest.spread is not None:
        _spread(w, nest, nest.spread, lo, hi or w.scalar(nest.m))
        return
    a_row, a_step = _strides(w, nest.a)
    b_step, _ = _strides(w, nest.b)
    more = "false"  # whether there are sums to go on from
    if hi and w.first:  # rows are cut where groups end
        inside_group = w.new(f"and i64 {lo}, {PRODUCTS.group - 1}")
        more = w.new(f"icmp ne i64 {inside_group}, 0")
    prefetched = _prefetched(w, nest, lo, hi)
    visible = _visible(w, nest, lo) if nest.visible is not None and not w.first else "null"

    def inside(_: Carried) -> Carried:
        starts = [w.scalar(v) for v in (nest.a.offset, nest.b.offset, nest.y)]
        if hi:  # the first row of the result, or the first product of its sums
            steps = [a_step, b_step, "0"] if w.first else [a_row, "0", n]
            starts = [
                at if step == "0" else w.new(f"add i64 {at}, {w.new(f'mul i64 {lo}, {step}')}")
                for at, step in zip(starts, steps, strict=True)
            ]
        layout = f"i64 {a_row}, i64 {a_step}"

        def product(rows: str, columns: str, first: str, last: str) -> None:
            steps, here = w.new(f"sub i64 {last}, {first}"), starts
            if first != "0":
                ways = a_step, b_step, "0"
                here = [
                    w.new(f"add i64 {at}, {w.new(f'mul i64 {first}, {way}')}")
                    for at, way in zip(starts, ways, strict=True)
                ]
            sizes = rows, columns, steps
            _call(w, nest, sizes, here, layout, more, prefetched, visible=visible)

        product_of_visible(w, nest, starts, more, product)
        if w.first and known(nest.mnk[2]) > PRODUCTS.group:
            _join_others(w, nest, (lo, hi), starts[2])
        return []

    emit_loops(w, 0, len(nest.loops), inside)


def _join_others(w: KernelEmitter, nest: GemmNest, rows: tuple[str, str], start: str) -> None:
    """Where the group of products that was added to ends, add it to others."""
    m, n, k = nest.mnk
    out, (lo, hi) = nest.output, rows
    dtype = out.type.dtype
    tile = Tile.of(w.machine, dtype)
    for which in ("keep", "join"):
        w.declare(over_part(tile, which, lambda: FunctionBuilder(w.declare)))
    ends, on = w.label(), w.label()
    whole = w.new(f"icmp eq i64 {w.new(f'and i64 {hi}, {PRODUCTS.group - 1}')}, 0")
    ended = w.new(f"icmp eq i64 {hi}, {k}")
    w.branch(w.new(f"or i1 {whole}, {ended}"), ends, on)
    w.start_block(ends)
    work, before = _work(w, nest), nest.totals
    totals = w.new(f"getelementptr i8, ptr {work}, i64 {before}")

    def waiting(table: str) -> str:
        return tile.at(w, totals, w.new(f"mul i64 {table}, {m * n}"))

    part = f"ptr {w.address(out, start)}, i64 {n}, i64 {m}, i64 {n}, i64 {n}"
    join_others(w, dtype, w.new(f"udiv i64 {lo}, {PRODUCTS.group}"), ended, waiting, part)
    w.jump(on)
    w.start_block(on)


def _call(
    w: KernelEmitter, nest: GemmNest, sizes: tuple[str, str, str], starts: list[str], layout: str,
    more: str = "false", prefetched: str = "null", name: str = "rg_gemm_", visible: str = "null",
) -> None:  # fmt: skip
    """One matrix product: where the matrices start, and the layout of the left one."""
    m, n, k = sizes
    symbol = f"{name}{nest.output.type.dtype}"
    kind = layout.split()[0]  # of what says where the rows of the left matrix lie
    kinds = ["i64"] * 3 + ["ptr", kind, kind, "ptr", "i64", "i64"]
    kinds += ["ptr", "i64", "i1", "ptr", "ptr", "ptr", "ptr"]
    w.declare(f"void @{symbol}({', '.join(kinds)})")
    buffers = zip(nest.buffers, starts, strict=True)
    a, b, y = (f"ptr {w.address(buffer, start)}" for buffer, start in buffers)
    b_step, b_column = ("0", "0") if nest.packed else _strides(w, nest.b)
    work = _work(w, nest)
    w.line(
        f"call void @{symbol}(i64 {m}, i64 {n}, i64 {k}, {a}, {layout}, {b}, i64 {b_step}, "
        f"i64 {b_column}, {y}, i64 {w.scalar(nest.n)}, i1 {more}, ptr {work}, ptr {prefetched}, "
        f"ptr {'%stop' if w.polls else 'null'}, ptr {visible})"
    )


def _spread(w: KernelEmitter, nest: GemmNest, spread: Spread, lo: str, hi: str) -> None:
    """The same for a left matrix whose rows and columns are not evenly spaced. Tables of offsets
    are in the memory that the routine would copy such a matrix to, or in their own: all columns,
    and some rows."""
    rows, columns = spread
    n, k = (w.scalar(v) for v in (nest.n, nest.k))
    steps = w.new(f"getelementptr i8, ptr {_work(w, nest)}, i64 {nest.listed or 0}")
    places = w.new(f"getelementptr i32, ptr {steps}, i64 {k}")
    _all_offsets(w, columns, steps)
    some = w.open_loop(hi, SPREAD, lo)
    left = w.new(f"sub i64 {hi}, {some.counter}")
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    m = w.new(f"call i64 @llvm.smin.i64(i64 {left}, i64 {SPREAD})")
    _offsets(w, rows, places, some.counter, m)

    def inside(_: Carried) -> Carried:
        a, b, y = (w.scalar(v) for v in (nest.a.offset, nest.b.offset, nest.y))
        y = w.new(f"add i64 {y}, {w.new(f'mul i64 {some.counter}, {n}')}")
        _call(w, nest, (m, n, k), [a, b, y], f"ptr {places}, ptr {steps}", name="rg_gemm_spread_")
        return []

    emit_loops(w, 0, len(nest.loops), inside)
    w.close_loop(some)


def _windows(w: KernelEmitter, nest: GemmNest, windows: Spread) -> None:
    """The same for a right matrix of windows. Tables of offsets are at the start of the memory that
    the routine copies panels to: of the rows of that matrix, then of the vectors of its columns."""
    dtype = nest.output.type.dtype
    symbol = f"rg_gemm_windows_{dtype}"
    kinds = ["i64"] * 3 + ["ptr", "i64", "i64", "ptr", "i64", "ptr", "ptr", "i64", "ptr", "i64"]
    w.declare(f"void @{symbol}({', '.join([*kinds, 'ptr', 'ptr'])})")
    (rows, columns), (m, n, k) = windows, (w.scalar(v) for v in (nest.m, nest.n, nest.k))
    lo, hi = w.ranges.get(len(nest.loops), ("0", ""))
    if hi:
        m = w.new(f"sub i64 {hi}, {lo}")
    a_row, a_step = _strides(w, nest.a)
    steps = _work(w, nest)
    _all_offsets(w, rows, steps)
    vectors = w.new(f"getelementptr i32, ptr {steps}, i64 {k}")
    lanes = Tile.of(w.machine, dtype).lanes
    axes = _merged(columns)
    parts = parts_of_vectors(axes[-1][0], known(nest.mnk[1]), lanes)
    _vectors(w, axes, vectors, lanes, parts)
    used = 4 * (known(nest.mnk[2]) + len(PART) * parts * -(-known(nest.mnk[1]) // lanes))
    panel = w.new(f"getelementptr i8, ptr {steps}, i64 {used + -used % TUNING.cache_line_bytes}")

    def inside(_: Carried) -> Carried:
        starts = [w.scalar(v) for v in (nest.a.offset, nest.b.offset, nest.y)]
        if hi:
            starts = [
                at if step == "0" else w.new(f"add i64 {at}, {w.new(f'mul i64 {lo}, {step}')}")
                for at, step in zip(starts, (a_row, "0", n), strict=True)
            ]
        buffers = zip(nest.buffers, starts, strict=True)
        a, b, y = (f"ptr {w.address(buffer, start)}" for buffer, start in buffers)
        w.line(
            f"call void @{symbol}(i64 {m}, i64 {n}, i64 {k}, {a}, i64 {a_row}, i64 {a_step}, "
            f"{b}, i64 {axes[-1][1]}, ptr {steps}, ptr {vectors}, i64 {parts}, {y}, i64 {n}, "
            f"ptr {panel}, ptr {'%stop' if w.polls else 'null'})"
        )
        return []

    emit_loops(w, 0, len(nest.loops), inside)


def _merged(axes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sizes and strides with axes that are evenly spaced made one."""
    found: list[tuple[int, int]] = []
    for size, stride in axes:
        if found and found[-1][1] == size * stride:
            found[-1] = (found[-1][0] * size, stride)
        elif size != 1 or not found:
            found.append((size, stride))
    return found


def _vectors(
    w: KernelEmitter, axes: Sequence[tuple[int, int]], table: str, lanes: int, parts: int
) -> None:
    """Write of each vector of columns, which are rows of an image one after the other, the numbers
    of its parts (`windows.py`)."""
    *outer, (length, step) = axes
    size = prod(n for n, _ in axes)
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    w.declare("i64 @llvm.smax.i64(i64, i64)")
    loop = w.open_loop(str(-(-size // lanes)))
    first = w.new(f"mul i64 {loop.counter}, {lanes}")
    end = w.new(f"call i64 @llvm.smin.i64(i64 {w.new(f'add i64 {first}, {lanes}')}, i64 {size})")
    column, entry = first, w.new(f"mul i64 {loop.counter}, {parts * len(PART)}")
    for part in range(parts):
        row, inside = (w.new(f"{op} i64 {column}, {length}") for op in ("udiv", "urem"))
        start = w.new(f"sub i64 {inside}, {w.new(f'sub i64 {column}, {first}')}")
        start = w.new(f"mul i64 {start}, {step}")
        start = w.new(f"add i64 {start}, {_place(w, outer, row)}")
        stop = w.new(f"add i64 {column}, {w.new(f'sub i64 {length}, {inside}')}")
        stop = w.new(f"call i64 @llvm.smin.i64(i64 {stop}, i64 {end})")
        stop = w.new(f"call i64 @llvm.smax.i64(i64 {stop}, i64 {column})")
        words = [start, *(w.new(f"sub i64 {x}, {first}") for x in (column, stop))]
        for i, word in enumerate(words):
            _list(w, table, w.new(f"add i64 {entry}, {part * len(PART) + i}"), word)
        column = w.new(f"call i64 @llvm.smin.i64(i64 {stop}, i64 {size - 1})")
    w.close_loop(loop)


def _all_offsets(w: KernelEmitter, axes: Sequence[tuple[int, int]], table: str) -> None:
    """Write where all rows lie, those of the last axis one after the other."""
    *outer, (length, step) = _merged(axes)
    loop = w.open_loop(str(prod(size for size, _ in outer)))
    start, first = _place(w, outer, loop.counter), w.new(f"mul i64 {loop.counter}, {length}")
    inner = w.open_loop(str(length))
    place = w.new(f"add i64 {start}, {w.new(f'mul i64 {inner.counter}, {step}')}")
    _list(w, table, w.new(f"add i64 {first}, {inner.counter}"), place)
    w.close_loop(inner)
    w.close_loop(loop)


def _offsets(
    w: KernelEmitter, axes: Sequence[tuple[int, int]], table: str, first: str, count: str
) -> None:
    """Write where so many rows lie, from the first one on."""
    loop = w.open_loop(count)
    place = _place(w, axes, w.new(f"add i64 {first}, {loop.counter}"))
    _list(w, table, loop.counter, place)
    w.close_loop(loop)


def _place(w: KernelEmitter, axes: Sequence[tuple[int, int]], number: str) -> str:
    """Where the element of this number lies, of axes of these sizes and strides."""
    place = "0"
    for i, (size, step) in reversed(list(enumerate(axes))):
        at = w.new(f"urem i64 {number}, {size}") if i else number
        place = w.new(f"add i64 {place}, {w.new(f'mul i64 {at}, {step}')}")
        number = w.new(f"udiv i64 {number}, {size}")
    return place


def _list(w: KernelEmitter, table: str, number: str, offset: str) -> None:
    """Write an entry of a table of offsets."""
    entry = w.new(f"getelementptr i32, ptr {table}, i64 {number}")
    w.line(f"store i32 {w.new(f'trunc i64 {offset} to i32')}, ptr {entry}, align 4")


def _prefetched(w: KernelEmitter, nest: GemmNest, lo: str, hi: str) -> str:
    """The table of what the routine is to fetch meanwhile: addresses and bytes, then zeros."""
    listed = nest.prefetch
    if not (listed and hi):
        return "null"
    table = w.reserve(f"[{2 * len(listed) + 2} x i64]", align=8)
    words = []
    rows = w.new(f"sub i64 {hi}, {lo}")
    w.declare("i64 @llvm.umin.i64(i64, i64)")
    for buffer, size, most in listed:
        start = w.new(f"ptrtoint ptr {w.parameter(buffer)} to i64")
        words.append(w.new(f"add i64 {start}, {w.new(f'mul i64 {lo}, {size}')}"))
        length = w.new(f"mul i64 {rows}, {size}")
        words.append(w.new(f"call i64 @llvm.umin.i64(i64 {length}, i64 {most})"))
    for k, word in enumerate([*words, "0", "0"]):
        w.line(f"store i64 {word}, ptr {w.new(f'getelementptr i64, ptr {table}, i64 {k}')}")
    return table


def _visible(w: KernelEmitter, nest: GemmNest, first: str) -> str:
    """The table that says which part of the rows from the first one on is wanted."""
    assert nest.visible is not None
    table = w.reserve("[4 x i64]", align=8)
    lower, upper = nest.visible
    limits = (lower or (0, 0)), (upper or (nest.mnk[1], 0))
    for i, (start, step) in enumerate(limits):
        at = w.size(start)
        if first != "0" and step:
            at = w.new(f"add i64 {at}, {w.new(f'mul i64 {first}, {step}')}")
        for k, word in enumerate((at, str(step))):
            place = w.new(f"getelementptr i64, ptr {table}, i64 {2 * i + k}")
            w.line(f"store i64 {word}, ptr {place}")
    return table


def _work(w: KernelEmitter, nest: GemmNest) -> str:
    assert nest.work is not None  # the plan has set it
    return w.parameter(nest.work)


def _strides(w: KernelEmitter, matrix: MatrixOperand) -> tuple[str, str]:
    """From row to row of a matrix, and from column to column."""
    _, turned, leading = matrix
    lead = w.scalar(leading)
    return ("1", lead) if turned else (lead, "1")
