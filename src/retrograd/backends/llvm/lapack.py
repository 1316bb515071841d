"""Routines made of LAPACK.

LAPACK's matrices lie in columns, ours in rows: what it calls a matrix is the transpose of ours. A
symmetric matrix is its own, so its lower half is what LAPACK calls the upper one; elsewhere the
rules of `kernel/linalg.py` hand over a transpose where that matters.
"""

from __future__ import annotations

from retrograd.backends.llvm.routine import Emit, Routine


def cholesky(half: str) -> Emit:
    """`y = factor(y)`, in place; sizes: n."""

    def emit(w: Routine) -> None:
        (y,), (n,) = w.data, w.sizes
        status = w.status()
        w.fortran("potrf", half, n, f"ptr {y}", w.least_one(n), f"ptr {status}")
        w.line(f"ret i64 {w.code(status)}")

    return emit


def triangular_solve(w: Routine) -> None:
    """`y = a^-1 y`, in place; sizes: n, k, and 1 or 0 for upper, transpose, unit."""
    (a, y), (n, k, *flags) = w.data, w.sizes
    with w.when(w.new(f"icmp eq i64 {flags[2]}, 0")):
        refuse_zeros(w, a, n, w.add(n, 1))
    upper, transpose, unit = (
        w.new(f"select i1 {w.new(f'icmp ne i64 {flag}, 0')}, i32 {yes}, i32 {no}")
        for flag, (yes, no) in zip(flags, ((UPPER, LOWER), (TURNED, PLAIN), (UNIT, GIVEN)),
                                   strict=True)
    )  # fmt: skip
    substitute(w, a, n, y, n, k, upper, transpose, unit)
    w.line("ret i64 0")


# What CBLAS calls its options.
ROWS, LEFT = 101, 141
PLAIN, TURNED = 111, 112
UPPER, LOWER = 121, 122
GIVEN, UNIT = 131, 132


def substitute(
    w: Routine, a: str, lead: str, y: str, n: str, k: str,
    upper: str | int, transpose: str | int, unit: str | int,
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
        f"{w.kind} {w.number(1)}", f"ptr {a}", f"i32 {lead}", f"ptr {y}",
        f"i32 {w.narrow(w.least_one(k))}",
    )  # fmt: skip
    w.jump(done)
    w.start_block(done)


def refuse_zeros(w: Routine, a: str, n: str, step: str) -> None:
    """Return the position, counted from 1, of the first zero among `a[i * step]`."""
    with w.loop(n) as i:
        zero = w.new(f"fcmp oeq {w.kind} {w.get(a, w.mul(i, step))}, {w.number(0)}")
        w.leave_if(zero, w.add(i, 1))


ROUTINES: dict[str, Emit] = {
    "cholesky_lower": cholesky("U"),
    "cholesky_upper": cholesky("L"),
    "triangular_solve": triangular_solve,
}
