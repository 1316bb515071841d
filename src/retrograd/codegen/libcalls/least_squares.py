"""Routines for least squares: factors of a matrix, and solutions by these.

See `ops/linalg/least_squares.py` for what factors are. Memory that holds a matrix in rows holds its
transpose in columns; so where LAPACK is to multiply the right side, it gets its transpose, from the
other side, and conjugates of complex numbers go in and come out.
"""

from __future__ import annotations

from retrograd.codegen.libcalls.builder import LibCallBuilder, Size, routine
from retrograd.codegen.libcalls.eigen_svd import refuse_infinite
from retrograd.codegen.libcalls.lapack import GIVEN, LOWER, ROWS, substitute
from retrograd.codegen.libcalls.matrix_functions import ADJOINT, COLUMNS, PLAIN
from retrograd.ops.linalg.least_squares import MARGIN
from retrograd.tuning import TUNING

EPSILON = {"s": 2.0**-23, "c": 2.0**-23, "d": 2.0**-52, "z": 2.0**-52}


@routine("least_factors")
def factors(w: LibCallBuilder) -> None:
    """`y[n, m + 1]`, whose rows begin with columns of x, becomes factors, for `limit`; sizes: m, n,
    elements of workspace, real numbers of workspace."""
    (limit, y), (m, n, length, reals) = w.data, w.sizes
    lead, status, count, square = w.add(m, 1), w.status(), w.mul(m, n), w.mul(n, n)
    x, u, r, last, space, s, numbers, integers = w.work_in(
        *[w.words(size) for size in (count, count, square, n, length)], n, reals
    )

    def decompose(job: str, a: str, rows: Size) -> None:
        """Singular values, and with the job "S" the vectors in `u` and, conjugated, in `r`."""
        w.fortran(
            "gesdd", job, rows, n, f"ptr {a}", w.least_one(rows), f"ptr {s}", f"ptr {u}",
            w.least_one(rows), f"ptr {r}", w.least_one(n), f"ptr {space}", length,
            *([f"ptr {numbers}"] if w.paired else []), f"ptr {integers}", f"ptr {status}",
        )  # fmt: skip
        w.leave_if(w.new(f"icmp ne i64 {w.code(status)}, 0"), w.code(status))

    def settle(sure: str) -> None:
        """Return with the factors of QR where these will do."""
        with w.leaving(w.new(f"and i1 {sure}, {whole}")), w.loop(n) as j:
            w.put(w.get(last, j), y, w.add(w.mul(j, lead), m))

    with w.loop(n) as j:
        w.copy(w.at(x, w.mul(j, m)), w.at(y, w.mul(j, lead)), m)
    w.fortran("geqrf", m, n, f"ptr {y}", w.least_one(lead), f"ptr {last}", f"ptr {space}", length,
              f"ptr {status}")  # fmt: skip
    relative = w.real_part(w.get(limit, 0))
    _take_triangle(w, r, y, lead, n)
    size = _norm(w, r, n)
    w.fortran("trtri", "U", "N", n, f"ptr {r}", w.least_one(n), f"ptr {status}")
    whole = w.new(f"icmp eq i64 {w.code(status)}, 0")
    inverse = _norm(w, r, n)
    settle(_is_far(w, size, inverse, relative))
    # What the norm of Frobenius leaves open, a closer one may tell, and if not, singular values.
    refuse_infinite(w, x, count)
    _take_triangle(w, r, y, lead, n)
    settle(_is_far(w, _closer(w, r, size, n, u, space), inverse, relative))
    decompose("N", r, n)
    least = w.get(s, w.sub(n, 1), w.real)
    cut = w.on_reals("fmul", relative, w.get(s, 0, w.real))
    settle(w.new(f"fcmp ogt {w.real} {least}, {cut}"))
    decompose("S", x, m)
    _invert(w, u, s, relative, m, n)
    _product(w, COLUMNS, PLAIN, (m, n, n), (u, m), (r, n), (y, lead))
    with w.loop(n) as j:
        row = w.at(y, w.mul(j, lead))
        _conjugate(w, row, m)
        w.put(w.number(float("nan")), row, m)
    w.line("ret i64 0")


def _is_far(w: LibCallBuilder, size: str, inverse: str, relative: str) -> str:
    """Whether `1 / inverse` is larger than the part `relative` of `size`, by a margin."""
    eps = w.real_number(EPSILON[w.letter])
    below = w.new(f"fcmp olt {w.real} {relative}, {eps}")
    margin = w.on_reals("fmul", w.select(below, eps, relative), w.real_number(MARGIN))
    part = w.on_reals("fmul", w.on_reals("fmul", size, inverse), margin)
    return w.new(f"fcmp olt {w.real} {part}, {w.real_number(1)}")


def _take_triangle(w: LibCallBuilder, r: str, y: str, lead: Size, n: Size) -> None:
    """R as columns with zeros below the diagonal."""
    with w.loop(n) as j:
        column, end = w.at(r, w.mul(j, n)), w.add(j, 1)
        w.copy(column, w.at(y, w.mul(j, lead)), end)
        with w.loop(n, end) as i:
            w.put(w.number(0), column, i)


def _norm(w: LibCallBuilder, x: str, n: Size) -> str:
    """The Frobenius norm of a square matrix."""

    def step(i: Size, total: list[str]) -> list[str]:
        element = w.get(x, i)
        for part in w.parts(element) if w.paired else (element,):
            total = [w.on_reals("fadd", total[0], w.on_reals("fmul", part, part))]
        return total

    return w.root(w.fold(0, w.mul(n, n), [(w.real, w.real_number(0))], step)[0])


def _closer(w: LibCallBuilder, r: str, size: str, n: Size, square: str, fourth: str) -> str:
    """The norm `norm((R^H R)^2)^(1/4)`, hardly more than the largest singular value, of R, which is
    divided by `size`."""
    some = w.new(f"fcmp one {w.real} {size}, {w.real_number(0)}")
    divisor = w.select(some, size, w.real_number(1))
    with w.loop(w.mul(n, n)) as i:
        w.put(w.shrunk(w.get(r, i), divisor), r, i)
    _product(w, COLUMNS, ADJOINT, (n, n, n), (r, n), (r, n), (square, n))
    _product(w, COLUMNS, PLAIN, (n, n, n), (square, n), (square, n), (fourth, n))
    return w.on_reals("fmul", size, w.root(w.root(_norm(w, fourth, n))))


def _invert(w: LibCallBuilder, u: str, s: str, relative: str, m: Size, n: Size) -> None:
    """The columns of `u` divided by their singular values, but for those that count as zero."""
    limit = w.on_reals("fmul", relative, w.get(s, 0, w.real))
    zero, one = w.real_number(0), w.real_number(1)
    with w.loop(n) as j:
        value = w.get(s, j, w.real)
        kept = w.new(f"fcmp ogt {w.real} {value}, {limit}")
        safe = w.select(kept, value, one)
        factor = w.select(kept, w.on_reals("fdiv", one, safe), zero)
        column = w.at(u, w.mul(j, m))
        with w.loop(m) as i:
            w.put(w.scaled(w.get(column, i), factor), column, i)


def _product(
    w: LibCallBuilder, order: int, first: int, sizes: tuple[Size, Size, Size],
    a: tuple[str, Size], b: tuple[str, Size], y: tuple[str, Size],
) -> None:  # fmt: skip
    """`y[m, n] = a b` over k, for sizes (m, n, k) and matrices with their leading sizes."""
    (pa, la), (pb, lb), (py, ly) = (
        (p, f"i32 {w.narrow(w.least_one(lead))}") for p, lead in (a, b, y)
    )
    w.cblas("gemm", f"i32 {order}", f"i32 {first}", f"i32 {PLAIN}",
            *(f"i32 {w.narrow(size)}" for size in sizes), w.factor(1), f"ptr {pa}", la,
            f"ptr {pb}", lb, w.factor(0), f"ptr {py}", ly)  # fmt: skip


def _conjugate(w: LibCallBuilder, x: str, count: Size) -> None:
    if w.paired:
        with w.loop(count) as i:
            w.put(w.conj(w.get(x, i)), x, i)


def _reflect(
    w: LibCallBuilder, f: str, b: str, sizes: tuple[Size, ...], last: str, space: str, back: bool
) -> None:
    """`b[m, k]` becomes the conjugate of `Q^H` times its conjugate, or of Q times it if `back`."""
    m, n, k, length = sizes
    lead, status = w.add(m, 1), w.status()
    with w.loop(n) as j:
        w.put(w.get(f, w.add(w.mul(j, lead), m)), last, j)
    few = w.new(f"icmp slt i64 {k}, {TUNING.reflected_columns}")
    room = w.new(f"select i1 {few}, i64 {w.least_one(k)}, i64 {length}")
    way = ("C" if w.paired else "T") if back else "N"
    w.fortran("ormqr", "R", way, k, m, n, f"ptr {f}", lead, f"ptr {last}", f"ptr {b}",
              w.least_one(k), f"ptr {space}", room, f"ptr {status}")  # fmt: skip


def _inverted(w: LibCallBuilder, f: str, m: Size, n: Size) -> str:
    """Whether factors are the pseudo-inverse."""
    mark = w.real_part(w.get(f, m))
    return w.new(f"fcmp uno {w.real} {mark}, {mark}")


@routine("least_squares")
def solution(w: LibCallBuilder) -> None:
    """`y[n, k]` becomes `x^+ b` by the factors f; `b[m, k]` is overwritten. Sizes: m, n, k,
    elements of workspace."""
    (b, f, y), (m, n, k, length) = w.data, w.sizes
    lead = w.add(m, 1)
    with w.leaving(w.new(f"icmp eq i64 {n}, 0")):
        pass
    with w.leaving(_inverted(w, f, m, n)):
        _product(w, ROWS, PLAIN, (n, k, m), (f, lead), (b, k), (y, k))
    last, space = w.work_in(w.words(n))
    _conjugate(w, b, w.mul(m, k))
    _reflect(w, f, b, (m, n, k, length), last, space, False)
    w.copy(y, b, w.mul(n, k))
    substitute(w, f, lead, y, n, k, LOWER, ADJOINT, GIVEN)
    _conjugate(w, y, w.mul(n, k))
    w.line("ret i64 0")


@routine("least_squares_adjoint")
def adjoint_solution(w: LibCallBuilder) -> None:
    """`y[m, k]`, of which n rows are b and the others zero, becomes `(x^H)^+ b` by the factors f.
    Sizes: m, n, k, elements of workspace."""
    (f, y), (m, n, k, length) = w.data, w.sizes
    lead = w.add(m, 1)
    last, right, space = w.work_in(w.words(n), w.words(w.mul(n, k)))
    with w.leaving(w.new(f"icmp eq i64 {n}, 0")):
        pass
    with w.leaving(_inverted(w, f, m, n)):
        w.copy(right, y, w.mul(n, k))
        _product(w, ROWS, ADJOINT, (m, k, n), (f, lead), (right, k), (y, k))
    _conjugate(w, y, w.mul(n, k))
    substitute(w, f, lead, y, n, k, LOWER, PLAIN, GIVEN)
    _reflect(w, f, y, (m, n, k, length), last, space, True)
    _conjugate(w, y, w.mul(m, k))
    w.line("ret i64 0")
