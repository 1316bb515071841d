"""Routines for functions of matrices: several factorisations and products each.

Memory that holds a matrix in rows holds its transpose in columns, as LAPACK reads it. The functions
here of a transpose are the transpose of the function, so nothing has to be turned around.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.codegen.libcalls.builder import LibCallBuilder, Size, routine
from retrograd.codegen.libcalls.eigen_svd import infinite
from retrograd.ops.linalg.expm import PADE, REACH

COLUMNS, PLAIN, ADJOINT = 102, 111, 113  # what CBLAS calls its options
# Pivots in a ratio above this have an inverse that loses less than a fourth of the digits.
RATIO = {"s": 2.0**-6, "c": 2.0**-6, "d": 2.0**-13, "z": 2.0**-13}


def gemm(
    w: LibCallBuilder, y: str, a: str, b: str, n: Size, first: int = PLAIN, second: int = PLAIN
) -> None:
    """`y = a b` for matrices in columns, or for their adjoints."""
    size, lead = f"i32 {w.narrow(n)}", f"i32 {w.narrow(w.least_one(n))}"
    w.cblas("gemm", f"i32 {COLUMNS}", f"i32 {first}", f"i32 {second}", size, size, size,
            w.factor(1), f"ptr {a}", lead, f"ptr {b}", lead, w.factor(0), f"ptr {y}",
            lead)  # fmt: skip


def combine(w: LibCallBuilder, y: str, count: Size, terms: list[tuple[float, str]]) -> None:
    """`y = sum(factor * matrix)`."""
    with w.loop(count) as i:
        total = ""
        for factor, x in terms:
            part = w.scaled(w.get(x, i), w.real_number(factor))
            total = w.plus(total, part) if total else part
        w.put(total, y, i)


def fill(w: LibCallBuilder, y: str, count: Size, value: float) -> None:
    with w.loop(count) as i:
        w.put(w.number(value), y, i)


@routine("expm")
def expm(w: LibCallBuilder) -> None:
    """`y = exp(y)`, in place; sizes: n."""
    (y,), (n,) = w.data, w.sizes
    square = w.mul(n, n)
    x2, x4, x6, odd, even, free, pivots = w.work_in(*[w.words(square)] * 6)
    norm = _norm(w, y, n)
    finite = w.new(f"fcmp olt {w.real} {norm}, {w.real_number(float('inf'))}")
    with w.leaving(w.new(f"xor i1 {finite}, true")):
        fill(w, y, square, float("nan"))
    times, scale = _halvings(w, norm)
    with w.loop(square) as i:
        w.put(w.scaled(w.get(y, i), scale), y, i)
    gemm(w, x2, y, y, n)
    gemm(w, x4, x2, x2, n)
    gemm(w, x6, x2, x4, n)
    for parity, result in ((1, odd), (0, even)):
        high = [(PADE[12 + parity], x6), (PADE[10 + parity], x4), (PADE[8 + parity], x2)]
        combine(w, free, square, high)
        gemm(w, result, x6, free, n)
        low = [(PADE[6 + parity], x6), (PADE[4 + parity], x4), (PADE[2 + parity], x2)]
        combine(w, result, square, [(1, result), *low])
        with w.loop(n) as i:
            at = w.mul(i, w.add(n, 1))
            w.put(w.plus(w.get(result, at), w.number(PADE[parity])), result, at)
    gemm(w, free, y, odd, n)
    combine(w, y, square, [(1, even), (1, free)])
    combine(w, x2, square, [(1, even), (-1, free)])
    status, lead = w.status(), w.least_one(n)
    w.fortran("getrf", n, n, f"ptr {x2}", lead, f"ptr {pivots}", f"ptr {status}")
    w.fortran("getrs", "N", n, n, f"ptr {x2}", lead, f"ptr {pivots}", f"ptr {y}", lead,
              f"ptr {status}")  # fmt: skip
    with w.loop(times):
        gemm(w, free, y, y, n)
        w.copy(y, free, square)
    w.line("ret i64 0")


def _norm(w: LibCallBuilder, y: str, n: Size) -> str:
    """The largest sum of magnitudes along a row of memory; NaN if there is one."""
    rows = w.open_loop(str(n), 1, "0", [(w.real, w.real_number(0))])
    row = w.at(y, w.mul(rows.counter, n))

    def step(j: Size, total: list[str]) -> list[str]:
        return [w.on_reals("fadd", total[0], w.modulus(w.get(row, j)))]

    (total,) = w.fold(0, n, [(w.real, w.real_number(0))], step)
    top = rows.values[0]
    # Neither a NaN from before nor one of this row gets lost.
    less = w.new(f"fcmp ole {w.real} {total}, {top}")
    kept = w.new(f"fcmp uno {w.real} {top}, {top}")
    w.close_loop(rows, [w.select(w.new(f"or i1 {less}, {kept}"), top, total)])
    return rows.values[0]


def _halvings(w: LibCallBuilder, norm: str) -> tuple[str, str]:
    """How often a norm has to be halved to be within reach, and the factor that does so."""
    half, one = w.real_number(0.5), w.real_number(1)
    kinds = [(w.real, norm), (w.real, one), ("i64", "0")]
    loop = w.open_loop("1200", 1, "0", kinds)
    size, scale, count = loop.values
    far = w.new(f"fcmp ogt {w.real} {size}, {w.real_number(REACH)}")
    halved = [w.select(far, w.on_reals("fmul", v, half), v) for v in (size, scale)]
    more = w.new(f"add i64 {count}, {w.new(f'zext i1 {far} to i64')}")
    w.close_loop(loop, [*halved, more])
    return loop.values[2], loop.values[1]


@routine("cofactor")
def cofactor(w: LibCallBuilder) -> None:
    """`y = det(y) y^-T`, in place, by another way where y has no inverse to speak of; sizes: n,
    elements of workspace, real numbers of workspace."""
    (y,), (n, length, reals) = w.data, w.sizes
    square = w.mul(n, n)
    room = Decomposition(w, n, length, reals)
    a = room.free
    status, lead = w.status(), w.least_one(n)
    w.copy(a, y, square)
    w.fortran("getrf", n, n, f"ptr {a}", lead, f"ptr {room.integers}", f"ptr {status}")
    value, ratio = _determinant(w, a, room.integers, n)

    def inverse() -> None:
        w.fortran("getri", n, f"ptr {a}", lead, f"ptr {room.integers}", f"ptr {room.space}", length,
                  f"ptr {status}")  # fmt: skip
        w.copy_turned(y, a, n)
        with w.loop(square) as i:
            w.put(w.times(value, w.get(y, i)), y, i)
        w.line("ret i64 0")

    def singular() -> None:
        with w.leaving(infinite(w, y, square)):
            fill(w, y, square, float("nan"))
        sign = room.decompose(y)
        with w.loop(n) as j:
            others = room.others(lambda i: w.new(f"icmp eq i64 {i}, {j}"))
            factor = w.scaled(sign, others)
            with w.loop(n) as i:
                at = w.add(w.mul(j, n), i)
                w.put(w.times(w.get(room.u, at), factor), room.u, at)
        gemm(w, y, room.u, room.v, n)
        w.line("ret i64 0")

    good = w.new(f"fcmp ogt {w.real} {ratio}, {w.real_number(RATIO[w.letter])}")
    w.either(good, inverse, singular)


@routine("cofactor_slope")
def cofactor_slope(w: LibCallBuilder) -> None:
    """The derivative of the cofactors of x along t, as `ops/linalg/determinant.py` has it; sizes as
    for `cofactor`. x is overwritten."""
    (x, t, y), (n, length, reals) = w.data, w.sizes
    square = w.mul(n, n)
    room = Decomposition(w, n, length, reals)
    wild = w.new(f"or i1 {infinite(w, x, square)}, {infinite(w, t, square)}")
    with w.leaving(wild):
        fill(w, y, square, float("nan"))
    sign = room.decompose(x, conjugate=False)
    gemm(w, y, room.u, t, n, ADJOINT)
    gemm(w, x, y, room.v, n, PLAIN, ADJOINT)  # p
    room.conjugate()
    _slope_between(w, y, x, room, n)
    gemm(w, x, room.u, y, n)
    gemm(w, y, x, room.v, n)
    with w.loop(square) as i:
        w.put(w.times(sign, w.get(y, i)), y, i)
    w.line("ret i64 0")


def _slope_between(w: LibCallBuilder, y: str, p: str, room: Decomposition, n: Size) -> None:
    """`y = diag(q diag(p)) - q * p^T`, with `q[i, j]` the product of all singular values but the
    i-th and the j-th, 0 for i = j; in columns."""
    with w.loop(n) as i:
        own = w.mul(i, w.add(n, 1))
        w.put(w.number(0), y, own)
        with w.loop(n) as j, w.when(w.new(f"icmp ne i64 {i}, {j}")):

            def either(k: Size, i: str = i, j: str = j) -> str:
                first, second = (w.new(f"icmp eq i64 {k}, {m}") for m in (i, j))
                return w.new(f"or i1 {first}, {second}")

            q = room.others(either)
            part = w.scaled(w.get(p, w.mul(j, w.add(n, 1))), q)
            w.put(w.plus(w.get(y, own), part), y, own)
            # Element (i, j) in columns, and that of the transpose of p.
            turned = w.get(p, w.add(w.mul(i, n), j))
            w.put(w.minus(w.number(0), w.scaled(turned, q)), y, w.add(w.mul(j, n), i))


class Decomposition:
    """The singular values and vectors of a square matrix in columns, in a routine's workspace."""

    def __init__(self, w: LibCallBuilder, n: Size, length: Size, reals: Size) -> None:
        self.w, self.n, self.length = w, n, length
        self.square = w.mul(n, n)
        each = w.words(self.square)
        self.free, self.u, self.v, self.space, self.s, self.reals, self.integers = w.work_in(
            each, each, each, w.words(length), n, reals
        )

    def decompose(self, x: str, conjugate: bool = True) -> str:
        """Find them, as U and V^H or the conjugates of these; x is overwritten. Returns the
        determinant of `U V^H`."""
        w, n, status = self.w, self.n, self.w.status()
        lead = w.least_one(n)
        w.fortran(
            "gesdd", "A", n, n, f"ptr {x}", lead, f"ptr {self.s}", f"ptr {self.u}", lead,
            f"ptr {self.v}", lead, f"ptr {self.space}", self.length,
            *([f"ptr {self.reals}"] if w.paired else []), f"ptr {self.integers}", f"ptr {status}",
        )  # fmt: skip
        sign = w.number(1)
        for m in (self.u, self.v):
            w.copy(self.free, m, self.square)
            w.fortran("getrf", n, n, f"ptr {self.free}", lead, f"ptr {self.integers}",
                      f"ptr {status}")  # fmt: skip
            sign = w.times(sign, _determinant(w, self.free, self.integers, n)[0])
        if conjugate:
            self.conjugate()
        return sign

    def conjugate(self) -> None:
        """Both kinds of vectors conjugated."""
        if self.w.paired:
            for m in (self.u, self.v):
                with self.w.loop(self.square) as i:
                    self.w.put(self.w.conj(self.w.get(m, i)), m, i)

    def others(self, left_out: Callable[[Size], str]) -> str:
        """The product of all singular values but some."""
        w = self.w

        def step(i: Size, total: list[str]) -> list[str]:
            one = w.real_number(1)
            factor = w.select(left_out(i), one, w.get(self.s, i, w.real))
            return [w.on_reals("fmul", total[0], factor)]

        return w.fold(0, self.n, [(w.real, w.real_number(1))], step)[0]


def _determinant(w: LibCallBuilder, a: str, pivots: str, n: Size) -> tuple[str, str]:
    """The determinant by factors, and the least pivot's part of the largest one."""

    def step(i: Size, total: list[str]) -> list[str]:
        product, least, largest = total
        pivot = w.get(a, w.mul(i, w.add(n, 1)))
        moved = w.new(f"zext i32 {w.get(pivots, i, 'i32')} to i64")
        stays = w.new(f"icmp eq i64 {moved}, {w.add(i, 1)}")
        turned = w.new(f"fneg {w.kind} {pivot}")
        signed = w.new(f"select i1 {stays}, {w.kind} {pivot}, {w.kind} {turned}")
        size = w.size(pivot)
        less = w.new(f"fcmp olt {w.real} {least}, {size}")
        more = w.new(f"fcmp ogt {w.real} {largest}, {size}")
        return [
            w.times(product, signed),
            w.select(less, least, size),
            w.select(more, largest, size),
        ]

    first = [
        (w.kind, w.number(1)),
        (w.real, w.real_number(float("inf"))),
        (w.real, w.real_number(0)),
    ]
    product, least, largest = w.fold(0, n, first, step)
    return product, w.on_reals("fdiv", least, largest)
