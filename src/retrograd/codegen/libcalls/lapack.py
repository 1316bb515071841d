"""Routines made of LAPACK.

LAPACK's matrices lie in columns, ours in rows: what it calls a matrix is the transpose of ours. A
symmetric matrix is its own, so its lower half is what LAPACK calls the upper one; elsewhere the
rules of `passes/lowering/linalg.py` hand over a transpose where that matters.
"""

from __future__ import annotations

import itertools

from retrograd.codegen.libcalls import small_matrices
from retrograd.codegen.libcalls.builder import Emit, LibCallBuilder, Size, routine
from retrograd.tuning import TUNING


def cholesky(upper: bool) -> Emit:
    """`y = factor(y)`, in place; sizes: n."""

    def emit(w: LibCallBuilder) -> None:
        (y,), (n,) = w.data, w.sizes

        def small() -> None:
            small_matrices.cholesky(w, y, n, place(w, n, upper))
            w.line("ret i64 0")

        def large() -> None:
            status, half = w.status(), "L" if upper else "U"
            w.fortran("potrf", half, n, f"ptr {y}", w.least_one(n), f"ptr {status}")
            w.line(f"ret i64 {w.code(status)}")

        w.either(small_matrices.is_small(w, TUNING.factored_matrix_rows, n), small, large)

    return emit


def triangular_solve(upper: bool, transpose: bool, unit: bool) -> Emit:
    """`y = a^-1 y` or `a^-T y`, in place; sizes: n, k."""

    def emit(w: LibCallBuilder) -> None:
        (a, y), (n, k) = w.data, w.sizes
        if not unit:
            refuse_zeros(w, a, n, w.add(n, 1))

        def small() -> None:
            small_matrices.substitute(
                w, a, place(w, n, transpose), y, n, k, upper != transpose, unit
            )
            w.line("ret i64 0")

        def large() -> None:
            half, turned, given = (
                UPPER if upper else LOWER,
                TURNED if transpose else PLAIN,
                UNIT if unit else GIVEN,
            )
            substitute(w, a, n, y, n, k, half, turned, given)
            w.line("ret i64 0")

        w.either(small_matrices.is_small(w, TUNING.solved_matrix_rows, n), small, large)

    return emit


def place(w: LibCallBuilder, n: Size, turned: bool) -> small_matrices.Place:
    """Where the elements of a matrix of n columns, or of its transpose, lie."""
    if turned:
        return lambda i, j: w.add(w.mul(j, n), i)
    return lambda i, j: w.add(w.mul(i, n), j)


# What CBLAS calls its options.
ROWS, LEFT = 101, 141
PLAIN, TURNED = 111, 112
UPPER, LOWER = 121, 122
GIVEN, UNIT = 131, 132


def substitute(
    w: LibCallBuilder, a: str, lead: Size, y: str, n: Size, k: Size,
    upper: int, transpose: int, unit: int,
) -> None:  # fmt: skip
    """`y = a^-1 y` for the triangular matrix `a` with rows of `lead` elements and `y[n, k]`."""
    lead = w.narrow(w.least_one(lead))
    options = [f"i32 {o}" for o in (upper, transpose, unit)]
    alone, many, done = w.label(), w.label(), w.label()
    w.branch(w.new(f"icmp eq i64 {k}, 1"), alone, many)
    w.start_block(alone)
    w.cblas("trsv", f"i32 {ROWS}", *options, f"i32 {w.narrow(n)}", f"ptr {a}", f"i32 {lead}",
            f"ptr {y}", "i32 1")  # fmt: skip
    w.jump(done)
    w.start_block(many)
    w.cblas(
        "trsm", f"i32 {ROWS}", f"i32 {LEFT}", *options, f"i32 {w.narrow(n)}", f"i32 {w.narrow(k)}",
        w.factor(1), f"ptr {a}", f"i32 {lead}", f"ptr {y}",
        f"i32 {w.narrow(w.least_one(k))}",
    )  # fmt: skip
    w.jump(done)
    w.start_block(done)


def refuse_zeros(w: LibCallBuilder, a: str, n: Size, step: Size) -> None:
    """Return the position, counted from 1, of the first zero among `a[i * step]`."""

    def look(i: Size) -> None:
        w.leave_if(w.is_zero(w.get(a, w.mul(i, step))), str(w.add(i, 1)))

    w.each(0, n, look)


@routine("lu", straight=True)
def lu(w: LibCallBuilder) -> None:
    """The transpose of `y[n + 2, m]` holds x, and then L and U; sizes: m, n."""
    (y,), (m, n) = w.data, w.sizes
    order = w.at(y, w.mul(m, n))
    exchanges = w.at(order, m)

    def start(i: Size) -> None:
        w.put(w.from_size(i), order, i)
        w.put(w.number(0), exchanges, i)

    def small() -> None:
        w.each(0, m, start)
        small_matrices.lu(w, y, m, n, order, exchanges)
        w.line("ret i64 0")

    def large() -> None:
        status = w.status()
        # What it says is which pivot is zero: that is in the factors.
        w.fortran("getrf", m, n, f"ptr {y}", w.least_one(m), f"ptr {w.work}", f"ptr {status}")
        w.each(0, m, start)
        with w.loop(n) as i:
            j = w.sub(w.new(f"zext i32 {w.get(w.work, i, 'i32')} to i64"), 1)
            w.put(w.from_size(j), exchanges, i)
            w.swap(order, i, j)
        w.line("ret i64 0")

    w.either(small_matrices.is_small(w, TUNING.factored_matrix_rows, m), small, large)


def solve(transpose: bool) -> Emit:
    """`y = a^-1 y` or `a^-T y` by the factors of a, in place; sizes: n, k."""

    def emit(w: LibCallBuilder) -> None:
        (f, y), (n, k) = w.data, w.sizes
        refuse_zeros(w, f, n, w.add(n, 1))
        # In memory lie U^T below the diagonal and on it, L^T above.
        at = place(w, n, not transpose)
        if not transpose:
            exchange_rows(w, f, y, n, k, back=False)

        def small() -> None:
            small_matrices.substitute(w, f, at, y, n, k, False, not transpose)
            small_matrices.substitute(w, f, at, y, n, k, True, transpose)
            end()

        def large() -> None:
            way = PLAIN if transpose else TURNED
            for half, unit in ((LOWER, GIVEN), (UPPER, UNIT))[:: 1 if transpose else -1]:
                substitute(w, f, n, y, n, k, half, way, unit)
            end()

        def end() -> None:
            if transpose:
                exchange_rows(w, f, y, n, k, back=True)
            w.line("ret i64 0")

        w.either(small_matrices.is_small(w, TUNING.solved_matrix_rows, n), small, large)

    return emit


def exchange_rows(w: LibCallBuilder, f: str, y: str, n: Size, k: Size, back: bool) -> None:
    """The rows of `y[n, k]` in the order of the factors, or back in their own."""
    exchanges = w.at(f, w.mul(n, w.add(n, 1)))

    def step(number: Size) -> None:
        i = w.sub(w.sub(n, 1), number) if back else number
        j = w.to_row(w.get(exchanges, i), n)
        one, two = w.at(y, w.mul(i, k)), w.at(y, w.mul(j, k))

        def element(c: Size) -> None:
            a, b = w.get(one, c), w.get(two, c)
            w.put(b, one, c)
            w.put(a, two, c)

        with w.when(w.new(f"icmp ne i64 {i}, {j}")):
            w.each(0, k, element)

    w.each(0, n, step)


@routine("qr")
def qr(w: LibCallBuilder) -> None:
    """Rows of `y[n, m + n]` begin with columns of x, then of Q, and end with R; sizes: m, n,
    elements of workspace."""
    (y,), (m, n, length) = w.data, w.sizes
    lead, status = w.add(m, n), w.status()
    factors, space = w.work_in(w.words(n))
    reach = w.least_one(lead)
    w.fortran("geqrf", m, n, f"ptr {y}", reach, f"ptr {factors}", f"ptr {space}", length,
              f"ptr {status}")  # fmt: skip
    with w.loop(n) as i:
        row = w.add(w.mul(i, lead), m)
        with w.loop(n, i) as j:
            w.put(w.get(y, w.add(w.mul(j, lead), i)), y, w.add(row, j))
    w.fortran("orgqr", m, n, n, f"ptr {y}", reach, f"ptr {factors}", f"ptr {space}", length,
              f"ptr {status}")  # fmt: skip
    w.line("ret i64 0")


@routine("complete")
def complete(w: LibCallBuilder) -> None:
    """The first k rows of `y[m, m]` hold orthonormal vectors; the others become more of them.
    Sizes: m, k, elements of workspace."""
    (y,), (m, k, length) = w.data, w.sizes
    status, reach = w.status(), w.least_one(m)
    factors, space = w.work_in(w.words(k))
    w.fortran("geqrf", m, k, f"ptr {y}", reach, f"ptr {factors}", f"ptr {space}", length,
              f"ptr {status}")  # fmt: skip
    w.fortran("orgqr", m, m, k, f"ptr {y}", reach, f"ptr {factors}", f"ptr {space}", length,
              f"ptr {status}")  # fmt: skip
    w.line("ret i64 0")


routine("cholesky_lower", straight=True)(cholesky(False))
routine("cholesky_upper", straight=True)(cholesky(True))
routine("solve", straight=True)(solve(False))
routine("solve_transposed", straight=True)(solve(True))
for _options in itertools.product((0, 1), repeat=3):
    _name = "triangular_solve_{}{}{}".format(*_options)
    routine(_name, straight=True)(triangular_solve(*map(bool, _options)))
