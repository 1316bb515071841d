"""The smaller one of two sizes, of which names may be part."""

from __future__ import annotations

from retrograd.ir.dim import Dim, Quotient, monomial_of


def symbolic_min(a: int | Dim, b: int | Dim) -> int | Dim:
    """`min(a, b)`: one of them where it is known which, else as a size that has this value.

    For sizes, which are not negative, `a // (b + 1)` is 0 where `a <= b` and positive elsewhere;
    one divided by one more than that is 1 and 0.

    >>> n, m = Dim("N"), Dim("M")
    >>> symbolic_min(n + 1, n), symbolic_min(2 * n + m, m)
    (N, M)
    >>> [int(symbolic_min(n, m).evaluate({"N": i, "M": 3})) for i in (2, 3, 4)]
    [2, 3, 3]
    """
    if a == 0 or b == 0:
        return 0
    if at_least(a, b):
        return b
    if at_least(b, a):
        return a
    a, b = sorted((a, b), key=str)
    return b + (a - b) * (1 // (a // (b + 1) + 1))


def at_least(a: int | Dim, b: int | Dim) -> bool:
    """Whether a is never smaller than b, as far as it is known."""
    difference = a - b
    if isinstance(difference, int):
        return difference >= 0
    if all(c > 0 and all(isinstance(n, str) for n, _ in m) for m, c in difference.terms):
        return True
    if not isinstance(b, Dim):
        return False
    return any(a in pair and symbolic_min(*pair) == b for pair in _compared(b))


def _compared(size: Dim) -> list[tuple[int | Dim, int | Dim]]:
    """The pairs of sizes of which a size may be the smaller one, from the form of `symbolic_min`:
    `b + (a - b) * (1 // ...)`."""
    found = []
    for quotient in {atom for m, _ in size.terms for atom, _ in m if isinstance(atom, Quotient)}:
        if quotient.numerator == 1:
            inside, b = _split(size, quotient)
            found.append((b + inside, b))
    return found


def _split(size: Dim, atom: Quotient) -> tuple[int | Dim, int | Dim]:
    """What a factor stands before, and the rest."""
    inside: int | Dim = 0
    rest: int | Dim = size
    for monomial, factor in size.terms:
        powers = dict(monomial)
        if powers.pop(atom, 0) == 1:
            part = monomial_of(powers, factor)
            inside = inside + part
            rest = rest - part * monomial_of({atom: 1}, 1)
    return inside, rest
