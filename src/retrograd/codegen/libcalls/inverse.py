"""The routine for inverses, by the factors of `lu`."""

from __future__ import annotations

from retrograd.codegen.libcalls import small_matrices
from retrograd.codegen.libcalls.builder import LibCallBuilder, Size, routine
from retrograd.codegen.libcalls.lapack import (
    GIVEN,
    LEFT,
    LOWER,
    PLAIN,
    ROWS,
    TURNED,
    UNIT,
    UPPER,
    exchange_rows,
    place,
    refuse_zeros,
)
from retrograd.passes.lowering import linalg
from retrograd.tuning import TUNING

COLUMNS, RIGHT = 102, 142  # what CBLAS calls its options


@routine("inv", straight=True)
def inv(w: LibCallBuilder) -> None:
    """`y = a^-1` by the factors of a; sizes: n."""
    (f, _), (n,) = w.data, w.sizes
    refuse_zeros(w, f, n, w.add(n, 1))

    def large() -> None:
        if w.paired:
            by_lapack(w)
            return
        few = (
            w.new(f"icmp ult i64 {n}, {TUNING.recursive_inverse_rows}")
            if isinstance(n, str)
            else n < TUNING.recursive_inverse_rows
        )
        w.either(few, lambda: by_lapack(w), lambda: by_halves(w))

    w.either(
        small_matrices.is_small(w, TUNING.solved_matrix_rows, n), lambda: by_substitution(w), large
    )


def by_substitution(w: LibCallBuilder) -> None:
    (f, y), (n,) = w.data, w.sizes

    def row(i: Size) -> None:
        w.each(0, n, lambda j: w.put(w.number(0), y, w.add(w.mul(i, n), j)))
        w.put(w.number(1), y, w.mul(i, w.add(n, 1)))

    at = place(w, n, True)
    w.each(0, n, row)
    exchange_rows(w, f, y, n, n, back=False)
    small_matrices.substitute(w, f, at, y, n, n, False, True)
    small_matrices.substitute(w, f, at, y, n, n, True, False)
    w.line("ret i64 0")


def by_lapack(w: LibCallBuilder) -> None:
    (f, y), (n,) = w.data, w.sizes
    square, status, length = w.mul(n, n), w.status(), w.add(w.mul(n, linalg.BLOCK), 1)
    exchanges = w.at(f, w.add(square, n))
    columns, space, pivots = w.work_in(w.words(square), w.words(length))
    w.copy(columns, f, square)
    with w.loop(n) as i:
        j = w.new(f"trunc i64 {w.to_row(w.get(exchanges, i), n)} to i32")
        w.put(w.new(f"add i32 {j}, 1"), pivots, i, "i32")
    w.fortran("getri", n, f"ptr {columns}", w.least_one(n), f"ptr {pivots}", f"ptr {space}",
              length, f"ptr {status}")  # fmt: skip
    w.copy_turned(y, columns, n)
    w.line("ret i64 0")


def by_halves(w: LibCallBuilder) -> None:
    """`U^-1 L^-1`, with columns back in their order. LAPACK's `getri` has products of a matrix and
    a vector in it, which wait for memory; here all are products of matrices."""
    (f, y), (n,) = w.data, w.sizes
    square = w.mul(n, n)
    order = w.at(f, square)
    columns, row = w.work_in(square)
    w.copy(columns, f, square)
    for lower in (True, False):
        _invert(w, columns, n, lower)
    _upper_half(w, y, columns, n)
    # Rows of memory are columns: the lower half there is the upper one of the rows.
    _multiply(w, ROWS, RIGHT, UPPER, TURNED, UNIT, n, n, 1, columns, n, y)
    with w.loop(n) as i:
        given = w.at(y, w.mul(i, n))
        w.copy(row, given, n)
        with w.loop(n) as j:
            w.put(w.get(row, j), given, w.to_row(w.get(order, j), n))
    w.line("ret i64 0")


def _invert(w: LibCallBuilder, a: str, n: Size, lower: bool) -> None:
    """The inverse of a triangle in columns, in its place: blocks on the diagonal, and then what
    joins two that lie side by side, twice as large each time:
    `[[p, 0], [c, q]]^-1 = [[p^-1, 0], [-q^-1 c p^-1, q^-1]]`."""
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    status, half, unit = w.status(), LOWER if lower else UPPER, UNIT if lower else GIVEN

    def at(i: Size, j: Size) -> str:
        return w.at(a, w.add(w.mul(j, n), i))

    def least(x: Size, limit: Size) -> str:
        return w.new(f"call i64 @llvm.smin.i64(i64 {x}, i64 {limit})")

    blocks = w.open_loop(str(n), TUNING.inverse_block_rows)
    i = blocks.counter
    rows = least(w.sub(n, i), TUNING.inverse_block_rows)
    w.fortran("trtri", "L" if lower else "U", "U" if lower else "N", rows,
              f"ptr {at(i, i)}", n, f"ptr {status}")  # fmt: skip
    w.close_loop(blocks)
    # Sizes double until one is not below n: 2^40 rows are more than there are.
    doublings = w.open_loop("40", 1, "0", [("i64", str(TUNING.inverse_block_rows))])
    size = doublings.values[0]
    with w.when(w.new(f"icmp ult i64 {size}, {n}")):
        pairs = w.open_loop(str(w.sub(n, size)), w.mul(size, 2))
        i, j = pairs.counter, w.add(pairs.counter, size)
        rest = least(w.sub(n, j), size)
        first, second = at(i, i), at(j, j)
        if lower:
            between, m, k = at(j, i), rest, size
        else:
            between, m, k = at(i, j), size, rest
            first, second = second, first
        _multiply(w, COLUMNS, RIGHT, half, PLAIN, unit, m, k, -1, first, n, between)
        _multiply(w, COLUMNS, LEFT, half, PLAIN, unit, m, k, 1, second, n, between)
        w.close_loop(pairs)
    w.close_loop(doublings, [w.new(f"shl i64 {size}, 1")])


def _upper_half(w: LibCallBuilder, y: str, columns: str, n: Size) -> None:
    """The upper half of a matrix in columns, in rows, with zeros below."""
    w.copy_turned(y, columns, n)
    with w.loop(n) as i, w.loop(i) as j:
        w.put(w.number(0), y, w.add(w.mul(i, n), j))


def _multiply(
    w: LibCallBuilder, layout: int, side: int, half: int, way: int, unit: int, m: Size, k: Size,
    factor: float, a: str, lead: Size, y: str,
) -> None:  # fmt: skip
    """`y[m, k]` times a triangle and a factor, in its place."""
    options = [f"i32 {o}" for o in (layout, side, half, way, unit)]
    w.cblas("trmm", *options, f"i32 {w.narrow(m)}", f"i32 {w.narrow(k)}", w.factor(factor),
            f"ptr {a}", f"i32 {w.narrow(lead)}", f"ptr {y}", f"i32 {w.narrow(lead)}")  # fmt: skip
