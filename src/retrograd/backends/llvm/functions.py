"""Routines for functions of matrices: several factorisations and products each.

Memory that holds a matrix in rows holds its transpose in columns, as LAPACK reads it. Both
functions here of a transpose are the transpose of the function, so nothing has to be turned around.
"""

from __future__ import annotations

from retrograd.backends.llvm.lapack import infinite, singular_length
from retrograd.backends.llvm.routine import Emit, Routine, Size
from retrograd.ops.linalg.expm import PADE, REACH

COLUMNS, PLAIN = 102, 111  # what CBLAS calls its options
# Pivots in a ratio above this have an inverse that loses less than a fourth of the digits.
RATIO = {"s": 2.0**-6, "d": 2.0**-13}


def gemm(w: Routine, y: str, a: str, b: str, n: Size) -> None:
    """`y = a b` for matrices in columns."""
    size, lead = f"i32 {w.narrow(n)}", f"i32 {w.narrow(w.least_one(n))}"
    one, zero = (f"{w.kind} {w.number(v)}" for v in (1, 0))
    w.cblas("gemm", f"i32 {COLUMNS}", f"i32 {PLAIN}", f"i32 {PLAIN}", size, size, size, one,
            f"ptr {a}", lead, f"ptr {b}", lead, zero, f"ptr {y}", lead)  # fmt: skip


def magnitude(w: Routine, x: str) -> str:
    name = f"llvm.fabs.{w.dtype.code}"
    w.declare(f"{w.kind} @{name}({w.kind})")
    return w.new(f"call {w.kind} @{name}({w.kind} {x})")


def copy(w: Routine, to: str, source: str, count: Size) -> None:
    with w.loop(count) as i:
        w.put(w.get(source, i), to, i)


def combine(w: Routine, y: str, count: Size, terms: list[tuple[float, str]]) -> None:
    """`y = sum(factor * matrix)`."""
    with w.loop(count) as i:
        total = ""
        for factor, x in terms:
            part = w.times(w.number(factor), w.get(x, i))
            total = w.new(f"fadd {w.kind} {total}, {part}") if total else part
        w.put(total, y, i)


def expm(w: Routine) -> None:
    """`y = exp(y)`, in place; sizes: n."""
    (y,), (n,) = w.data, w.sizes
    square = w.mul(n, n)
    x2, x4, x6, odd, even, free = (w.at(w.work, w.mul(square, i)) for i in range(6))
    pivots = w.at(w.work, w.mul(square, 6))
    norm = _norm(w, y, n)
    finite = w.new(f"fcmp olt {w.kind} {norm}, {w.number(float('inf'))}")
    with w.leaving(w.new(f"xor i1 {finite}, true")), w.loop(square) as i:
        w.put(w.number(float("nan")), y, i)
    times, scale = _halvings(w, norm)
    with w.loop(square) as i:
        w.put(w.times(w.get(y, i), scale), y, i)
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
            old = w.get(result, at)
            w.put(w.new(f"fadd {w.kind} {old}, {w.number(PADE[parity])}"), result, at)
    gemm(w, free, y, odd, n)
    combine(w, y, square, [(1, even), (1, free)])
    combine(w, x2, square, [(1, even), (-1, free)])
    status, lead = w.status(), w.least_one(n)
    w.fortran("getrf", n, n, f"ptr {x2}", lead, f"ptr {pivots}", f"ptr {status}")
    w.fortran("getrs", "N", n, n, f"ptr {x2}", lead, f"ptr {pivots}", f"ptr {y}", lead,
              f"ptr {status}")  # fmt: skip
    with w.loop(times):
        gemm(w, free, y, y, n)
        copy(w, y, free, square)
    w.line("ret i64 0")


def _norm(w: Routine, y: str, n: Size) -> str:
    """The largest sum of magnitudes along a row of memory; NaN if there is one."""
    rows = w.open_loop(str(n), 1, "0", [(w.kind, w.number(0))])
    row = w.at(y, w.mul(rows.counter, n))

    def step(j: Size, total: list[str]) -> list[str]:
        return [w.new(f"fadd {w.kind} {total[0]}, {magnitude(w, w.get(row, j))}")]

    (total,) = w.fold(0, n, [(w.kind, w.number(0))], step)
    top = rows.values[0]
    # Neither a NaN from before nor one of this row gets lost.
    less = w.new(f"fcmp ole {w.kind} {total}, {top}")
    kept = w.new(f"fcmp uno {w.kind} {top}, {top}")
    keep = w.new(f"or i1 {less}, {kept}")
    w.close_loop(rows, [w.new(f"select i1 {keep}, {w.kind} {top}, {w.kind} {total}")])
    return rows.values[0]


def _halvings(w: Routine, norm: str) -> tuple[str, str]:
    """How often a norm has to be halved to be within reach, and the factor that does so."""
    half, one = w.number(0.5), w.number(1)
    kinds = [(w.kind, norm), (w.kind, one), ("i64", "0")]
    loop = w.open_loop("1200", 1, "0", kinds)
    size, scale, count = loop.values
    far = w.new(f"fcmp ogt {w.kind} {size}, {w.number(REACH)}")
    halved = [
        w.new(f"select i1 {far}, {w.kind} {w.times(v, half)}, {w.kind} {v}") for v in (size, scale)
    ]
    more = w.new(f"add i64 {count}, {w.new(f'zext i1 {far} to i64')}")
    w.close_loop(loop, [*halved, more])
    return loop.values[2], loop.values[1]


def cofactor(w: Routine) -> None:
    """`y = det(y) y^-T`, in place, by another way where y has no inverse to speak of; sizes: n."""
    (y,), (n,) = w.data, w.sizes
    square = w.mul(n, n)
    a, u, v = (w.at(w.work, w.mul(square, i)) for i in range(3))
    s = w.at(w.work, w.mul(square, 3))
    space = w.at(s, n)
    length = singular_length(w, n, n, n)
    # Integers of any use lie behind all numbers, eight bytes for each of those.
    integers = w.at(w.work, w.add(w.add(w.mul(square, 3), n), length), "double")
    status, lead = w.status(), w.least_one(n)
    copy(w, a, y, square)
    w.fortran("getrf", n, n, f"ptr {a}", lead, f"ptr {integers}", f"ptr {status}")
    value, ratio = _determinant(w, a, integers, n)

    def inverse() -> None:
        w.fortran("getri", n, f"ptr {a}", lead, f"ptr {integers}", f"ptr {space}", length,
                  f"ptr {status}")  # fmt: skip
        with w.loop(n) as i, w.loop(n) as j:
            turned = w.get(a, w.add(w.mul(j, n), i))
            w.put(w.times(value, turned), y, w.add(w.mul(i, n), j))
        w.line("ret i64 0")

    def singular() -> None:
        with w.leaving(infinite(w, y, square)), w.loop(square) as i:
            w.put(w.number(float("nan")), y, i)
        w.fortran(
            "gesdd", "A", n, n, f"ptr {y}", lead, f"ptr {s}", f"ptr {u}", lead, f"ptr {v}", lead,
            f"ptr {space}", length, f"ptr {integers}", f"ptr {status}",
        )  # fmt: skip
        sign = w.number(1)
        for x in (u, v):
            copy(w, a, x, square)
            w.fortran("getrf", n, n, f"ptr {a}", lead, f"ptr {integers}", f"ptr {status}")
            sign = w.times(sign, _determinant(w, a, integers, n)[0])
        with w.loop(n) as j:

            def step(i: Size, total: list[str], j: str = j) -> list[str]:
                own = w.new(f"icmp eq i64 {i}, {j}")
                factor = w.new(f"select i1 {own}, {w.kind} {w.number(1)}, {w.kind} {w.get(s, i)}")
                return [w.times(total[0], factor)]

            (others,) = w.fold(0, n, [(w.kind, sign)], step)
            with w.loop(n) as i:
                at = w.add(w.mul(j, n), i)
                w.put(w.times(w.get(u, at), others), u, at)
        gemm(w, y, u, v, n)
        w.line("ret i64 0")

    good = w.new(f"fcmp ogt {w.kind} {ratio}, {w.number(RATIO[w.letter])}")
    w.either(good, inverse, singular)


def _determinant(w: Routine, a: str, pivots: str, n: Size) -> tuple[str, str]:
    """The determinant by factors, and the least pivot's part of the largest one."""
    one = w.number(1)

    def step(i: Size, total: list[str]) -> list[str]:
        product, least, largest = total
        pivot = w.get(a, w.mul(i, w.add(n, 1)))
        moved = w.new(f"zext i32 {w.get(pivots, i, 'i32')} to i64")
        stays = w.new(f"icmp eq i64 {moved}, {w.add(i, 1)}")
        turned = w.new(f"fneg {w.kind} {pivot}")
        signed = w.new(f"select i1 {stays}, {w.kind} {pivot}, {w.kind} {turned}")
        size = magnitude(w, pivot)
        less = w.new(f"fcmp olt {w.kind} {least}, {size}")
        more = w.new(f"fcmp ogt {w.kind} {largest}, {size}")
        return [
            w.times(product, signed),
            w.new(f"select i1 {less}, {w.kind} {least}, {w.kind} {size}"),
            w.new(f"select i1 {more}, {w.kind} {largest}, {w.kind} {size}"),
        ]

    first = [(w.kind, one), (w.kind, w.number(float("inf"))), (w.kind, w.number(0))]
    product, least, largest = w.fold(0, n, first, step)
    return product, w.over(least, largest)


ROUTINES: dict[str, Emit] = {"expm": expm, "cofactor": cofactor}
