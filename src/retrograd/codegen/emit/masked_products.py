"""Matrix products of a matrix that has zeros at known places: those that a mask leaves there, see
`schedule/tiling/masked_domain.py`.

A tile of the rows of such a matrix has a range of columns in which anything may be. The routine is
called for these alone. That changes no bit where the other matrix is finite elsewhere, and no sum
is -0 (`codegen/gemm/skip_zeros.py`); both are looked at, at a small part of the cost of a product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.codegen.gemm.microkernel import Tile
from retrograd.codegen.gemm.skip_zeros import all_finite, no_minus_zero
from retrograd.ir import Dim
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.schedule.loop_nest import GemmNest, Visible

Product = Callable[[str, str, str, str], None]  # of so many rows and columns, between two steps


def product_of_visible(
    w: KernelEmitter, nest: GemmNest, starts: Sequence[str], more: str, product: Product
) -> None:
    """A `product` with what is known to be zeros left out, where anything is; `starts` are where
    the tile begins in the matrices and the result."""
    m, n, k = (w.scalar(v) for v in (nest.m, nest.n, nest.k))
    lo, hi = w.ranges.get(len(nest.loops), ("0", ""))
    tiled, turned = bool(hi) and nest.spread is None, nest.a.transposed
    at = [w.address(buffer, start) for buffer, start in zip(nest.buffers, starts, strict=True)]
    hidden, own = nest.hidden
    if tiled and not nest.packed and not nest.b.transposed and hidden and turned == bool(w.first):
        if w.first:
            _some_rows(w, nest, hidden, at, more, product)
        else:
            _some_steps(w, nest, hidden, at, product)
    elif tiled and w.first and own and not nest.b.transposed:
        _some_columns(w, nest, own, at, more, product)
    elif w.first:
        product(m, n, "0", w.new(f"sub i64 {hi}, {lo}"))
    else:
        product(w.new(f"sub i64 {hi}, {lo}") if hi else m, n, "0", k)


def _some_steps(
    w: KernelEmitter, nest: GemmNest, hidden: Visible, at: Sequence[str], product: Product
) -> None:
    """Rows of the left matrix by those steps of the products where any of them has more than
    zeros."""
    _, right, out = at
    n, k = w.scalar(nest.n), w.scalar(nest.k)
    lo, hi = w.ranges[len(nest.loops)]
    rows, lead = w.new(f"sub i64 {hi}, {lo}"), w.scalar(nest.b.leading)
    lower, upper = hidden
    end = k if upper is None else _limited(w, _at(w, upper, w.new(f"sub i64 {hi}, 1")), k)
    begin, length = "0", nest.mnk[2]
    # Sums are cut where they begin, unless groups of products would be others.
    if lower is not None and not isinstance(length, Dim) and length <= PRODUCTS.group:
        begin = w.new(f"and i64 {_limited(w, _at(w, lower, lo), end)}, {-PRODUCTS.block}")
    some = w.new(f"icmp sgt i64 {end}, {begin}")
    fewer = w.new(f"icmp slt i64 {w.new(f'sub i64 {end}, {begin}')}, {k}")
    ask, part, whole, done = (w.label() for _ in range(4))
    w.branch(w.new(f"and i1 {some}, {fewer}"), ask, whole)
    w.start_block(ask)
    tile = _declare(w, nest)
    rest = tile.at(w, right, w.new(f"mul i64 {end}, {lead}"))
    first = _call(w, nest, "all_finite", right, begin, lead, n)
    last = _call(w, nest, "all_finite", rest, w.new(f"sub i64 {k}, {end}"), lead, n)
    w.branch(w.new(f"and i1 {first}, {last}"), part, whole)
    w.start_block(part)
    product(rows, n, begin, end)
    w.branch(_call(w, nest, "no_minus_zero", out, rows, n, n), done, whole)
    w.start_block(whole)
    product(rows, n, "0", k)
    w.jump(done)
    w.start_block(done)


def _some_rows(
    w: KernelEmitter, nest: GemmNest, hidden: Visible, at: Sequence[str], more: str,
    product: Product,
) -> None:  # fmt: skip
    """Steps of products by those rows of the left matrix, turned, that have more than zeros there:
    the first ones. The others had nothing but these zeros before, too, so that their sums are
    equal, and the last one tells of all."""
    _, right, out = at
    m, n, lead = w.scalar(nest.m), w.scalar(nest.n), w.scalar(nest.b.leading)
    lo, hi = w.ranges[len(nest.loops)]
    steps = w.new(f"sub i64 {hi}, {lo}")

    def sure() -> str:
        tile = _declare(w, nest)
        last = tile.at(w, out, w.new(f"mul i64 {w.new(f'sub i64 {m}, 1')}, {n}"))
        finite = _call(w, nest, "all_finite", right, steps, lead, n)
        return w.new(f"and i1 {finite}, {_call(w, nest, 'no_minus_zero', last, '1', n, n)}")

    product(_first_ones(w, hidden, m, more, sure), n, "0", steps)


def _some_columns(
    w: KernelEmitter, nest: GemmNest, hidden: Visible, at: Sequence[str], more: str,
    product: Product,
) -> None:  # fmt: skip
    """The same of the columns of the right matrix."""
    left, _, out = at
    m, n, lead = w.scalar(nest.m), w.scalar(nest.n), w.scalar(nest.a.leading)
    lo, hi = w.ranges[len(nest.loops)]
    steps = w.new(f"sub i64 {hi}, {lo}")
    rows = (steps, lead, m) if nest.a.transposed else (m, lead, steps)

    def sure() -> str:
        tile = _declare(w, nest)
        last = tile.at(w, out, w.new(f"sub i64 {n}, 1"))
        finite = _call(w, nest, "all_finite", left, *rows)
        return w.new(f"and i1 {finite}, {_call(w, nest, 'no_minus_zero', last, m, n, '1')}")

    product(m, _first_ones(w, hidden, n, more, sure), "0", steps)


def _first_ones(
    w: KernelEmitter, hidden: Visible, count: str, more: str, sure: Callable[[], str]
) -> str:
    """How many of so many rows, or columns, have more than zeros in a tile of steps, where the
    others may be left out: there are sums already, and one may be `sure` of these."""
    _, upper = hidden
    if upper is None:
        return count
    _, hi = w.ranges[len(w.nest.loops)]
    end = _limited(w, _at(w, upper, w.new(f"sub i64 {hi}, 1")), count)
    ask, on, before = w.label(), w.label(), w.block
    w.branch(w.new(f"and i1 {more}, {w.new(f'icmp slt i64 {end}, {count}')}"), ask, on)
    w.start_block(ask)
    fewer = w.new(f"select i1 {sure()}, i64 {end}, i64 {count}")
    asked = w.block
    w.jump(on)
    w.start_block(on)
    return w.new(f"phi i64 [ {count}, %{before} ], [ {fewer}, %{asked} ]")


def _at(w: KernelEmitter, bound: tuple[int | Dim, int], row: str) -> str:
    start, step = bound
    return w.new(f"add i64 {w.size(start)}, {w.new(f'mul i64 {row}, {step}')}")


def _limited(w: KernelEmitter, x: str, most: str) -> str:
    for which, limit in (("smax", "0"), ("smin", most)):
        w.declare(f"i64 @llvm.{which}.i64(i64, i64)")
        x = w.new(f"call i64 @llvm.{which}.i64(i64 {x}, i64 {limit})")
    return x


def _declare(w: KernelEmitter, nest: GemmNest) -> Tile:
    tile = Tile.of(w.machine, nest.output.type.dtype)
    for function in (all_finite, no_minus_zero):
        w.declare(function(tile, lambda: FunctionBuilder(w.declare)))
    return tile


def _call(w: KernelEmitter, nest: GemmNest, name: str, at: str, *sizes: str) -> str:
    given = ", ".join(f"i64 {x}" for x in sizes)
    return w.new(f"call i1 @{name}_{nest.output.type.dtype}(ptr {at}, {given})")
