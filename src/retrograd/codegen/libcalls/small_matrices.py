"""Factorisations of small matrices, for which calling LAPACK takes longer than the work.

Each algorithm is written once: with sizes that are numbers it comes out as straight code, with
sizes known only later as loops, of the same operations in the same order. So it gives the same
bits.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.codegen.libcalls.builder import LibCallBuilder, Size

Place = Callable[[Size, Size], Size]  # where in memory an element lies


def is_small(w: LibCallBuilder, limit: int, size: Size) -> bool | str:
    """Whether a size is within a limit: known, or a condition."""
    if isinstance(size, int):
        return size <= limit
    return w.new(f"icmp ule i64 {size}, {limit}")


def cholesky(w: LibCallBuilder, y: str, n: Size, at: Place) -> None:
    """The lower half of `y`, in place; leaves with the order of the minor that is not positive.
    Where `at` turns a complex `y`, what it turns to is conjugated: the lower half of `y^T`."""

    def rest(i: Size, j: Size) -> str:
        """`y[i, j]` less what the columns before it explain."""

        def step(p: Size, total: list[str]) -> list[str]:
            product = w.times(w.get(y, at(i, p)), w.conj(w.get(y, at(j, p))))
            return [w.minus(total[0], product)]

        return w.fold(0, j, [(w.kind, w.get(y, at(i, j)))], step)[0]

    def column(j: Size) -> None:
        square = w.real_part(rest(j, j))
        good = w.new(f"fcmp ogt {w.real} {square}, {w.real_number(0)}")
        w.leave_if(w.new(f"xor i1 {good}, true"), str(w.add(j, 1)))
        top = w.root(square)
        w.put(w.from_real(top), y, at(j, j))
        w.each(w.add(j, 1), n, lambda i: w.put(w.shrunk(rest(i, j), top), y, at(i, j)))

    w.each(0, n, column)


def lu(w: LibCallBuilder, y: str, m: Size, n: Size, order: str, exchanges: str) -> None:
    """The factors of a matrix whose columns are rows of `y`, in place, with the exchanges."""

    def at(i: Size, j: Size) -> Size:
        return w.add(w.mul(j, m), i)

    def larger(k: Size) -> Callable[[Size, list[str]], list[str]]:
        def step(i: Size, best: list[str]) -> list[str]:
            own = w.size(w.get(y, at(i, k)))
            wins = w.new(f"fcmp ogt {w.real} {own}, {best[1]}")
            row = w.new(f"select i1 {wins}, i64 {i}, i64 {best[0]}")
            return [row, w.select(wins, own, best[1])]

        return step

    def column(k: Size) -> None:
        start = [("i64", str(k)), (w.real, w.size(w.get(y, at(k, k))))]
        best, _ = w.fold(w.add(k, 1), m, start, larger(k))
        w.put(w.from_size(best), exchanges, k)
        w.swap(order, k, best)
        w.each(0, n, lambda j: w.swap(y, at(k, j), at(best, j)))
        pivot = w.get(y, at(k, k))
        zero = w.is_zero(pivot)
        divisor = w.new(f"select i1 {zero}, {w.kind} {w.number(1)}, {w.kind} {pivot}")

        def row(i: Size) -> None:
            factor = w.over(w.get(y, at(i, k)), divisor)
            w.put(factor, y, at(i, k))

            def update(j: Size) -> None:
                product = w.times(factor, w.get(y, at(k, j)))
                w.put(w.minus(w.get(y, at(i, j)), product), y, at(i, j))

            w.each(w.add(k, 1), n, update)

        w.each(w.add(k, 1), m, row)

    w.each(0, n, column)


def substitute(
    w: LibCallBuilder, a: str, at: Place, y: str, n: Size, k: Size, backward: bool, unit: bool
) -> None:
    """`y = a^-1 y` for a triangular matrix and `y[n, k]`: the lower half of `a`, or the upper one
    from the last row to the first."""

    def solve(step: Size) -> None:
        i = w.sub(w.sub(n, 1), step) if backward else step
        known = (w.add(i, 1), n) if backward else (0, i)
        pivot = "" if unit else w.get(a, at(i, i))

        def element(c: Size) -> None:
            def less(p: Size, total: list[str]) -> list[str]:
                product = w.times(w.get(a, at(i, p)), w.get(y, w.add(w.mul(p, k), c)))
                return [w.minus(total[0], product)]

            place = w.add(w.mul(i, k), c)
            (rest,) = w.fold(*known, [(w.kind, w.get(y, place))], less)
            w.put(rest if unit else w.over(rest, pivot), y, place)

        w.each(0, k, element)

    w.each(0, n, solve)
