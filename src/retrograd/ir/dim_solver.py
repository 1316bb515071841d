"""Values of named sizes, from sizes that are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
