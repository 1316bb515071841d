"""Values of named sizes, from sizes that are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from retrograd.ir.dim import Dim, evaluate, monomial_of


def solve(
    equations: Iterable[tuple[int | Dim, int]], sizes: Mapping[str, int] | None = None
) -> dict[str, int]:
    """The values of names for which sizes have given values: of a name by itself the first value
    it is given, of others what follows from sizes in which they occur once, as a factor of a
    summand. Names of which nothing follows are left out, and nothing is checked: where there is no
    solution, some size does not have its value under the result.

    >>> n, m = Dim("N"), Dim("M")
    >>> solve([(2 * n + 1, 7), (n * m, 12)])
    {'N': 3, 'M': 4}
    """
    found = dict(sizes or {})
    todo = [(d, value) for d, value in equations if isinstance(d, Dim)]
    todo.sort(key=lambda equation: str(equation[0]) not in equation[0].names)
    while todo:
        left = [e for e in todo if not _solve_one(*e, found)]
        if len(left) == len(todo):
            break
        todo = left
    return found


def expressed(
    values: Sequence[int], known: Sequence[tuple[int | Dim, Sequence[int]]]
) -> int | Dim | None:
    """A size that has these values, by others whose values are known in the same cases, all of them
    positive: as a multiple or a part of one, greater by a little, as a product or a sum of two,
    greater by any constant, or what one leaves of a constant. None where it is nothing of this. Of
    few cases it may be a guess.

    >>> n, m = Dim("N"), Dim("M")
    >>> known = [(n, (4, 6)), (m, (5, 3))]
    >>> [expressed(v, known) for v in ((8, 12), (5, 7), (2, 3), (20, 18), (9, 9), (1, 5))]
    [2*N, N + 1, N // 2, M*N, M + N, None]
    >>> expressed((12, 10), known[:1])
    -N + 16
    """
    first, little = values[0], 8
    near: list[int | Dim] = []
    far: list[int | Dim] = []
    left_over: list[int | Dim] = []
    for size, column in known:
        factor, part = first // column[0], column[0] // max(first, 1)
        if all(v == n * factor for v, n in zip(values, column, strict=True)):
            return size * factor
        if part > 1 and all(v == n // part for v, n in zip(values, column, strict=True)):
            return size // part
        more = first - column[0]
        if all(v == n + more for v, n in zip(values, column, strict=True)):
            (near if abs(more) <= little else far).append(size + more)
        whole = first + column[0]
        if len(set(values)) > 1 and all(
            v + n == whole for v, n in zip(values, column, strict=True)
        ):
            left_over.append(whole - size)
    if near:
        return near[0]
    for i, (a, left) in enumerate(known):
        for b, right in known[: i + 1]:
            factor = first // (left[0] * right[0])
            pairs = list(zip(values, left, right, strict=True))
            if all(v == n * m * factor for v, n, m in pairs):
                return a * b * factor
            if all(v == n + m for v, n, m in pairs):
                return a + b
    return next(iter(far + left_over), None)


def _solve_one(size: Dim, value: int, found: dict[str, int]) -> bool:
    """Add the one name of a size that is not among those found; False if there are several."""
    unknown = size.names - found.keys()
    if len(unknown) != 1:
        return not unknown
    (name,) = unknown
    slope, rest = 0, value
    for monomial, factor in size.terms:
        powers = dict(monomial)
        linear = powers.pop(name, 0)
        others = monomial_of(powers, factor)
        if linear > 1 or (isinstance(others, Dim) and name in others.names):
            return False
        amount = evaluate(others, found)
        if linear:
            slope += amount
        else:
            rest -= amount
    if slope:
        found[name] = max(rest // slope, 0)
    return bool(slope)
