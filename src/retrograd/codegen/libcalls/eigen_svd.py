"""Routines that iterate: eigenvalues and singular values, made of LAPACK.

What they do to memory that is in rows, where LAPACK's is in columns, is told in `lapack.py`.
"""

from __future__ import annotations

from retrograd.codegen.libcalls.builder import Emit, LibCallBuilder, Size, routine
from retrograd.ops.linalg.matrix import LEADING, NOT_FINITE


def eigen(vectors: bool) -> Emit:
    """Eigenvalues, and of `y[n + 1, n]` the rows behind them as eigenvectors, of the transpose of
    x; sizes: n, elements of workspace, real numbers of workspace."""

    def emit(w: LibCallBuilder) -> None:
        n, length, reals = w.sizes
        y, status = w.data[-1], w.status()
        x = w.at(y, n) if vectors else w.data[0]
        refuse_infinite(w, x, w.mul(n, n))
        space, values, numbers, integers = w.work_in(w.words(length), n, reals)
        if not (w.paired and vectors):
            values = y
        more: tuple[Size, ...] = (f"ptr {numbers}", reals) if w.paired else ()
        w.fortran(
            "syevd", "V" if vectors else "N", "L", n, f"ptr {x}", w.least_one(n), f"ptr {values}",
            f"ptr {space}", length, *more, f"ptr {integers}", w.add(w.mul(n, 5), 3),
            f"ptr {status}",
        )  # fmt: skip
        if values != y:
            with w.loop(n) as i:
                w.put(w.from_real(w.get(values, i, w.real)), y, i)
        if vectors:
            orient_rows(w, x, n)
        w.line(f"ret i64 {w.code(status)}")

    return emit


def orient_rows(w: LibCallBuilder, x: str, n: Size) -> None:
    """Vectors in rows, each times what `orientation` gives for it."""
    with w.loop(n) as i:
        vector = w.at(x, w.mul(i, n))
        factor = orientation(w, vector, n)
        with w.loop(n) as j:
            w.put(w.times(w.get(vector, j), factor), vector, j)


def general(vectors: bool) -> Emit:
    """Eigenvalues of the transpose of `x[n, n]`, and of `y[n + 1, n]` the rows behind them as
    eigenvectors: complex numbers. Sizes: n, elements of workspace."""

    def emit(w: LibCallBuilder) -> None:
        (x, y), (n, length) = w.data, w.sizes
        refuse_infinite(w, x, w.mul(n, n))
        status, lead = w.status(), w.least_one(n)
        space, numbers, found = w.work_in(w.words(length), w.mul(n, 2))
        with w.pairs():
            rows = w.at(y, n)
        right, half = ("V" if vectors else "N"), w.at(numbers, n)
        to = (rows if w.paired else found) if vectors else space
        values = [y] if w.paired else [numbers, half]
        last = [numbers] if w.paired else []
        w.fortran(
            "geev", "N", right, n, f"ptr {x}", lead, *[f"ptr {v}" for v in values], f"ptr {space}",
            lead, f"ptr {to}", lead, f"ptr {space}", length, *[f"ptr {v}" for v in last],
            f"ptr {status}",
        )  # fmt: skip
        if not w.paired:
            _as_complex(w, y, numbers, half, n)
            if vectors:
                _unfold(w, rows, found, half, n)
        if vectors:
            with w.pairs():
                orient_rows(w, rows, n)
        w.line(f"ret i64 {w.code(status)}")

    return emit


def _as_complex(w: LibCallBuilder, y: str, first: str, second: str, n: Size) -> None:
    """Complex numbers of their parts."""
    with w.loop(n) as i:
        a, b = w.get(first, i), w.get(second, i)
        with w.pairs():
            w.put(w.joined(a, b), y, i)


def _unfold(w: LibCallBuilder, y: str, found: str, heights: str, n: Size) -> None:
    """Complex vectors of the rows of real ones that LAPACK finds: of a pair of conjugate numbers,
    the first of which is above the real axis, they are the parts of the first one's vector."""
    zero = w.number(0)
    with w.loop(n) as i:
        height = w.get(heights, i)
        above = w.new(f"fcmp ogt {w.kind} {height}, {zero}")
        below = w.new(f"fcmp olt {w.kind} {height}, {zero}")
        before = w.sub(i, w.new(f"zext i1 {below} to i64"))
        real = w.at(found, w.mul(before, n))
        behind = w.add(before, w.new(f"zext i1 {w.new(f'or i1 {above}, {below}')} to i64"))
        imaginary = w.at(found, w.mul(behind, n))
        sign = w.select(below, w.number(-1), w.select(above, w.number(1), zero))
        with w.loop(n) as j:
            a, b = w.get(real, j), w.times(w.get(imaginary, j), sign)
            with w.pairs():
                w.put(w.joined(a, b), y, w.add(w.mul(i, n), j))


def refuse_infinite(w: LibCallBuilder, x: str, count: Size) -> None:
    """Return where not all elements are finite: no iteration would end well."""
    w.leave_if(infinite(w, x, count), str(NOT_FINITE))


def infinite(w: LibCallBuilder, x: str, count: Size) -> str:
    """Whether there are NaN or infinities among so many elements."""

    def step(i: Size, total: list[str]) -> list[str]:
        none = w.scaled(w.get(x, i), w.real_number(0))  # or NaN
        return [w.plus(total[0], none)]

    (total,) = w.fold(0, count, [(w.kind, w.number(0))], step)
    size = w.size(total)
    return w.new(f"fcmp uno {w.real} {size}, {size}")


def orientation(w: LibCallBuilder, vector: str, n: Size) -> str:
    """The element of size 1 that makes positive the first component that is at least `LEADING`
    times the largest: 1 or -1 for real vectors."""
    one = w.number(1)
    over = w.open_loop(str(n), 1, "0", [(w.real, w.real_number(0))])
    top, own = over.values[0], w.modulus(w.get(vector, over.counter))
    larger = w.new(f"fcmp ogt {w.real} {own}, {top}")
    w.close_loop(over, [w.select(larger, own, top)])
    limit = w.on_reals("fmul", over.values[0], w.real_number(LEADING))
    # From the last to the first, so that the first one stays.
    back = w.open_loop(str(n), 1, "0", [(w.kind, one)])
    x = w.get(vector, w.sub(w.sub(n, 1), back.counter))
    leads = w.new(f"fcmp oge {w.real} {w.modulus(x)}, {limit}")
    w.close_loop(back, [w.new(f"select i1 {leads}, {w.kind} {x}, {w.kind} {back.values[0]}")])
    chosen = back.values[0]
    if not w.paired:
        negative = w.new(f"fcmp olt {w.kind} {chosen}, {w.number(0)}")
        return w.select(negative, w.number(-1), one)
    size = w.modulus(chosen)
    none = w.new(f"fcmp oeq {w.real} {size}, {w.real_number(0)}")
    turned = w.shrunk(w.conj(chosen), w.select(none, w.real_number(1), size))
    return w.new(f"select i1 {none}, {w.kind} {one}, {w.kind} {turned}")


@routine("svd")
def svd(w: LibCallBuilder) -> None:
    """`y[1 + m + n, k]` becomes s, U and V of the transpose of `x[n, m]`; sizes: m, n, k, elements
    of workspace, real numbers of workspace."""
    (x, y), (m, n, k, length, reals) = w.data, w.sizes
    status = w.status()
    refuse_infinite(w, x, w.mul(m, n))
    turned, space, values, numbers, integers = w.work_in(
        w.words(w.mul(m, k)), w.words(length), k, reals
    )
    if not w.paired:
        values = y
    u, v = w.at(y, k), w.at(y, w.mul(w.add(m, 1), k))
    w.fortran(
        "gesdd", "S", m, n, f"ptr {x}", w.least_one(m), f"ptr {values}", f"ptr {turned}",
        w.least_one(m), f"ptr {v}", w.least_one(k), f"ptr {space}", length,
        *([f"ptr {numbers}"] if w.paired else []), f"ptr {integers}", f"ptr {status}",
    )  # fmt: skip
    with w.loop(k) as j:
        if w.paired:
            w.put(w.from_real(w.get(values, j, w.real)), y, j)
        vector = w.at(turned, w.mul(j, m))
        factor = orientation(w, vector, m)
        with w.loop(m) as i:
            w.put(w.times(w.get(vector, i), factor), u, w.add(w.mul(i, k), j))
        with w.loop(n) as i:
            at = w.add(w.mul(i, k), j)
            w.put(w.times(w.conj(w.get(v, at)), factor), v, at)
    w.line(f"ret i64 {w.code(status)}")


@routine("svdvals")
def svdvals(w: LibCallBuilder) -> None:
    """`y[k]` becomes the singular values of `x[n, m]`; sizes as for `svd`."""
    (x, y), (m, n, _, length, reals) = w.data, w.sizes
    refuse_infinite(w, x, w.mul(m, n))
    status = w.status()
    space, numbers, integers = w.work_in(w.words(length), reals)
    w.fortran(
        "gesdd", "N", m, n, f"ptr {x}", w.least_one(m), f"ptr {y}", f"ptr {x}", w.least_one(m),
        f"ptr {x}", w.least_one(m), f"ptr {space}", length,
        *([f"ptr {numbers}"] if w.paired else []), f"ptr {integers}", f"ptr {status}",
    )  # fmt: skip
    w.line(f"ret i64 {w.code(status)}")


routine("eigh")(eigen(True))
routine("eigvalsh")(eigen(False))
routine("eig")(general(True))
routine("eigvals")(general(False))
