"""Symbolic sizes.

A `Dim` is a polynomial with integer coefficients in named sizes and in floor quotients of such
polynomials. It is kept in a canonical form, so equal sizes compare equal:
`2 * (N + 1) == 2 * N + 2`. Arithmetic that ends in a constant gives a plain `int`. All sizes are
non-negative integers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from retrograd.errors import ShapeError

# An atom is a name or a quotient, a monomial a sorted tuple of (atom, power), a polynomial a sorted
# tuple of (monomial, factor).
Monomial = tuple[tuple["str | Quotient", int], ...]
Terms = tuple[tuple[Monomial, int], ...]


REMEDY = "where its value decides, declare that axis as _: then each size is compiled by itself"


class SizeObserver(Protocol):
    """What is told of the questions that are asked about symbolic sizes while a function is traced:
    the answers decide what the program is, so the program assumes them."""

    def is_equal(self, left: Dim, right: Any) -> bool:
        """Whether two sizes are equal that are not for all values; False where nothing is known."""

    def is_less(self, left: int | Dim, right: int | Dim) -> bool | None:
        """Whether `left < right`, which depends on values; None where it has no answer."""

    def needs_value(self, size: Dim, why: str) -> None:
        """The value of a size was asked for, which is an error."""

    def looked_up(self, size: Dim) -> None:
        """A size was looked for in a set or a dictionary."""

    def number(self, size: Dim) -> Any:
        """A size as what floating-point numbers are computed with, None where that is an error."""


OBSERVER: ContextVar[SizeObserver | None] = ContextVar("observer", default=None)


class Quotient:
    """The atom `numerator // denominator`, where the division does not cancel."""

    __slots__ = ("_text", "denominator", "depth", "numerator")

    depth: int  # of quotients within one another

    def __init__(self, numerator: int | Dim, denominator: int | Dim) -> None:
        self.numerator = numerator
        self.denominator = denominator
        inner = [a.depth for part in (numerator, denominator) for a in _quotients(part)]
        self.depth = 1 + max(inner, default=0)
        if self.depth > DEEPEST:
            raise ShapeError(f"a symbolic size with {self.depth} quotients within one another")
        self._text = ""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Quotient)
            and self.numerator == other.numerator
            and self.denominator == other.denominator
        )

    def __hash__(self) -> int:
        return hash((self.numerator, self.denominator))

    @property
    def is_natural(self) -> bool:
        """Whether it is never negative, as far as that is seen."""
        ends = [lowest(part) for part in (self.numerator, self.denominator)]
        return all(end is not None and end >= 0 for end in ends)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        denominator = evaluate(self.denominator, sizes)
        if denominator == 0:
            raise ShapeError(f"the size {self} divides by {self.denominator}, which is zero")
        return evaluate(self.numerator, sizes) // denominator

    def __str__(self) -> str:
        if not self._text:
            self._text = f"{_operand(self.numerator)} // {_operand(self.denominator)}"
        return self._text


def _quotients(size: int | Dim) -> list[Quotient]:
    return [a for m, _ in _terms(size) for a, _ in m if isinstance(a, Quotient)]


def _operand(size: int | Dim) -> str:
    """A size as an operand of `//`: in parentheses unless it is a number or a name."""
    text = str(size)
    return text if text.isdecimal() or text.isidentifier() else f"({text})"


def _atom_text(atom: str | Quotient) -> str:
    return atom if isinstance(atom, str) else f"({atom})"


class Dim:
    """A symbolic size: `Dim("N")`, and what `+ - * // %` make of it.

    Two are equal if they are for all values of the names, so `N == 5` is False; while a function is
    traced that is an assumption of its program, and a call with an N of 5 a `ShapeError`. What is
    not known before the values are, such as `N < 5`, is an error; `N >= 0` is True. Sets and
    dictionaries look for the expression itself: `N in {5}` is False, and nothing is assumed.

    >>> n = Dim("N")
    >>> 2 * (n + 1) - n
    N + 2
    >>> (n * 12) // 4
    3*N
    >>> n - n
    0
    """

    __slots__ = ("_hash", "terms")

    terms: Terms
    _hash: int

    def __init__(self, name: str) -> None:
        if not (isinstance(name, str) and name.isidentifier()):
            raise ShapeError(f"a Dim is named by an identifier such as 'N', not {name!r}")
        self._set(((((name, 1),), 1),))

    def _set(self, terms: Terms) -> None:
        self.terms = terms
        self._hash = hash(terms)

    # -- arithmetic ---------------------------------------------------------------------------
    def __add__(self, other: int | Dim) -> int | Dim:
        if not isinstance(other, int | Dim):
            return self._with_number(operator.add, self, other)
        return _collect((*self.terms, *_terms(other)))

    def __neg__(self) -> int | Dim:
        return _collect((m, -c) for m, c in self.terms)

    def __sub__(self, other: int | Dim) -> int | Dim:
        if not isinstance(other, int | Dim):
            return self._with_number(operator.sub, self, other)
        return self + (-other)

    def __rsub__(self, other: int) -> int | Dim:
        return -self + other

    def __mul__(self, other: int | Dim) -> int | Dim:
        if not isinstance(other, int | Dim):
            return self._refuse(other)
        right = _terms(other)
        _check_terms(len(self.terms) * len(right))
        return _collect((_times(m, n), c * d) for m, c in self.terms for n, d in right)

    __radd__ = __add__
    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Any:
        return self._with_number(operator.truediv, self, other)

    def __rtruediv__(self, other: object) -> Any:
        return self._with_number(operator.truediv, other, self)

    def __pow__(self, power: int) -> int | Dim:
        if isinstance(power, int) and power >= 0:
            return product([self] * power)
        refused: int | Dim = self._refuse(power)
        return refused

    def _with_number(self, f: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        """`f(left, right)`, of a size and a number, that is no size."""
        observer, other = OBSERVER.get(), right if left is self else left
        if observer is not None and isinstance(other, int | float | Dim):
            both = [observer.number(x) if isinstance(x, Dim) else x for x in (left, right)]
            if None not in both:
                return f(*both)
        return self._refuse(other)

    def _refuse(self, other: object) -> Any:
        """What is no size is the other one's to compute with, unless it is a plain number."""
        if isinstance(other, int | float | complex | Dim):
            raise _unknown(
                self,
                f"the symbolic size {self} has no value before the call; with {other} it makes no "
                "size, but rg.asarray(x.shape[0], dtype=rg.float64) is such a size as a tensor",
            )
        return NotImplemented

    def __floordiv__(self, other: int | Dim) -> int | Dim:
        if not isinstance(other, int | Dim):
            return NotImplemented
        return _floordiv(self, other)

    def __rfloordiv__(self, other: int) -> int | Dim:
        return _floordiv(other, self)

    def __mod__(self, other: int | Dim) -> int | Dim:
        if not isinstance(other, int | Dim):
            return NotImplemented
        return self - _floordiv(self, other) * other

    def __rmod__(self, other: int) -> int | Dim:
        return other - _floordiv(other, self) * self

    # -- comparison ---------------------------------------------------------------------------
    def __eq__(self, other: object) -> bool:
        if self is other or (isinstance(other, Dim) and self.terms == other.terms):
            return True
        observer = OBSERVER.get()
        return observer is not None and observer.is_equal(self, other)

    def __hash__(self) -> int:
        observer = OBSERVER.get()
        if observer is not None:
            observer.looked_up(self)
        return self._hash

    def __bool__(self) -> bool:
        observer = OBSERVER.get()
        answer = None if observer is None else observer.is_less(0, self)
        if answer is None:
            raise _unknown(
                self, f"whether the symbolic size {self} is zero is not known before the call"
            )
        return answer

    def __lt__(self, other: int | Dim) -> bool:
        return _is_less(self, other, self, other)

    def __ge__(self, other: int | Dim) -> bool:
        return not _is_less(self, other, self, other)

    def __gt__(self, other: int | Dim) -> bool:
        return _is_less(other, self, self, other)

    def __le__(self, other: int | Dim) -> bool:
        return not _is_less(other, self, self, other)

    def __index__(self) -> int:
        raise _unknown(
            self,
            f"the symbolic size {self} has no value before the call; use it as it is, in shapes, "
            "products with tensors, and as the length of rg.arange, rg.scan or rg.fori_loop; as a "
            "tensor it is rg.asarray(x.shape[0])",
        )

    def __float__(self) -> float:
        return float(self.__index__())

    __rpow__ = _refuse

    # -- meaning ------------------------------------------------------------------------------
    @property
    def names(self) -> frozenset[str]:
        """The named sizes that occur in this expression."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom, _ in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    for part in (atom.numerator, atom.denominator):
                        found.update(part.names if isinstance(part, Dim) else ())
        return frozenset(found)

    @property
    def has_quotients(self) -> bool:
        """Whether it is no polynomial in names."""
        return bool(_quotients(self))

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The value of this size when every named size has the given value; that may be another
        symbolic size, and then the result is one."""
        total = 0
        for monomial, factor in self.terms:
            for atom, power in monomial:
                if isinstance(atom, str):
                    if atom not in sizes:
                        raise ShapeError(f"no value is known for the symbolic size {atom}")
                    value = sizes[atom]
                else:
                    value = atom.evaluate(sizes)
                for _ in range(power):
                    factor = value * factor
            total += factor
        return total

    def __str__(self) -> str:
        if len(self.terms) == 1 and self.terms[0][1] == 1:
            monomial = self.terms[0][0]
            if len(monomial) == 1 and monomial[0][1] == 1:
                return str(monomial[0][0])
        parts = []
        for monomial, factor in self.terms:
            atoms = [
                "*".join([_atom_text(atom)] * power)  # powers are small: N*N, never N**200
                for atom, power in monomial
            ]
            sign = "-" if factor < 0 else "+"
            if abs(factor) != 1 or not atoms:
                atoms.insert(0, str(abs(factor)))
            parts.append((sign, "*".join(atoms)))
        first = ("-" if parts[0][0] == "-" else "") + parts[0][1]
        return first + "".join(f" {sign} {text}" for sign, text in parts[1:])

    __repr__ = __str__


def evaluate(size: int | Dim, sizes: Mapping[str, int]) -> int:
    """The integer value of an int or a `Dim` under the given named sizes."""
    return size.evaluate(sizes) if isinstance(size, Dim) else size


def lowest(size: int | Dim) -> int | None:
    """The least value a size can have, where no summand counts down: that for names of 0."""
    least = 0
    for monomial, factor in _terms(size):
        if not monomial:
            least += factor
        elif factor < 0 or not all(isinstance(a, str) or a.is_natural for a, _ in monomial):
            return None
    return least


def lower_bound(size: int | Dim, names: int) -> int | None:
    """What a size is never below where no name stands for less than `names`: of linear sizes, and
    of quotients of these by numbers; None of others, and where a name counts down."""
    quotients = _quotients(size)
    if not all(isinstance(a.denominator, int) and a.denominator > 0 for a in quotients):
        return None
    unit = math.prod([int(a.denominator) for a in quotients])  # of all that follows
    factors = dict.fromkeys(size.names if isinstance(size, Dim) else (), 0)
    least = 0
    for monomial, factor in _terms(size):
        inner: int | Dim = _collect([(monomial, 1)])
        scale = factor * unit
        if len(monomial) == 1 and isinstance(monomial[0][0], Quotient) and monomial[0][1] == 1:
            inner, below = monomial[0][0].numerator, int(monomial[0][0].denominator)
            scale //= below
            least -= max(scale, 0) * (below - 1)  # what the division may leave over
        for atoms, count in _terms(inner):
            if not atoms:
                least += scale * count
            elif len(atoms) == 1 and isinstance(atoms[0][0], str) and atoms[0][1] == 1:
                factors[atoms[0][0]] += scale * count
            else:
                return None
    if min(factors.values(), default=0) < 0:
        return None
    return -(-(least + names * sum(factors.values())) // unit)


def _is_less(a: int | Dim, b: int | Dim, left: int | Dim, right: object) -> bool:
    """Whether `a < b`, where that is the same for all values of the names; the error where it is
    not is about how `left` compares with `right`."""
    if isinstance(a, int | Dim) and isinstance(b, int | Dim):
        least, most = lowest(a - b), lowest(b - a)
        if least is not None and least >= 0:
            return False
        if most is not None and most > 0:
            return True
        observer = OBSERVER.get()
        answer = None if observer is None else observer.is_less(a, b)
        if answer is not None:
            return answer
    text = f"how the symbolic size {left} compares with {right} is not known before the call"
    raise _unknown(left, text)


def _unknown(size: int | Dim, text: str) -> ShapeError:
    """The error where the value of a size was asked for."""
    observer = OBSERVER.get()
    if observer is not None and isinstance(size, Dim):
        observer.needs_value(size, text)
    return ShapeError(f"{text}; {REMEDY}")


def product(sizes: Iterable[int | Dim]) -> int | Dim:
    """The product of sizes: the number of elements of a shape. What has one term, as nearly all
    have, is multiplied at once, so that the time goes with the number of factors."""
    sizes = tuple(sizes)
    if {int}.issuperset(map(type, sizes)):
        return _checked(math.prod(sizes))  # type: ignore[arg-type]
    factor, powers = 1, dict[str | Quotient, int]()
    others: list[Dim] = []
    for size in sizes:
        terms = _terms(size)
        if len(terms) > 1:
            others.append(size)  # type: ignore[arg-type]
            continue
        for monomial, c in terms or (((), 0),):
            factor = _checked(factor * c)
            for atom, power in monomial:
                powers[atom] = powers.get(atom, 0) + power
    if not factor:
        return 0
    total: int | Dim = factor
    if powers:
        monomial = tuple(sorted(powers.items(), key=lambda item: str(item[0])))
        total = _collect([(monomial, factor)])
    work = 0
    for size in others:
        work += len(size.terms) * len(_terms(total))
        _check_terms(work)
        total = size * total
    return total


def _checked(factor: int) -> int:
    if factor.bit_length() > MOST_BITS:
        raise ShapeError(f"a size is a product of more than {MOST_BITS} bits")
    return factor


def added(sizes: Iterable[int | Dim]) -> int | Dim:
    """The sum of sizes, in time that goes with the number of terms."""
    return _collect(term for size in sizes for term in _terms(size))


MOST_TERMS = 10_000  # of a product, those of its factors multiplied out included
MOST_BITS = 4096
DEEPEST = 40  # quotients within quotients


def _check_terms(count: int) -> None:
    if count > MOST_TERMS:
        raise ShapeError(
            f"a product of symbolic sizes has {count} terms to multiply out, more than {MOST_TERMS}"
        )


def _terms(value: int | Dim) -> Terms:
    if isinstance(value, Dim):
        return value.terms
    return (((), int(value)),) if value else ()


def _collect(terms: Iterable[tuple[Monomial, int]]) -> int | Dim:
    """Add equal monomials, drop zeros, sort (highest degree first); an int where none is left."""
    total: dict[Monomial, int] = {}
    for monomial, factor in terms:
        total[monomial] = total.get(monomial, 0) + factor
    kept = [(m, c) for m, c in total.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and kept[0][0] == ():
        return kept[0][1]
    kept.sort(key=lambda term: (-sum(p for _, p in term[0]), [(str(a), p) for a, p in term[0]]))
    new = object.__new__(Dim)
    new._set(tuple(kept))
    return new


def monomial_of(powers: Mapping[str | Quotient, int], factor: int) -> int | Dim:
    """Powers of names and quotients, times a factor."""
    return _collect([(tuple(powers.items()), factor)])


def _times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))


def _floordiv(left: int | Dim, right: int | Dim) -> int | Dim:
    """Exact where every term divides; otherwise the multiples of the divisor, plus one quotient.

    `(a*d + r) // d == a + r // d` for all integers, so pulling out multiples is exact. Of each
    factor the whole multiples are pulled out, so `(N + 3) // 2` is `(N + 1) // 2 + 1` and nothing
    else: sizes that are the same for every N compare equal where possible.
    """
    if right == 0:
        raise ShapeError(f"division of the size {left} by zero")
    divisor = _terms(right)
    if len(divisor) != 1:
        found = _divide_exactly(left, right)
        return _quotient(left, right) if found is None else found
    (monomial, factor), exact, rest = divisor[0], [], []
    for term, coefficient in _terms(left):
        reduced = _divide(term, monomial)
        if reduced is None:
            rest.append((term, coefficient))
        else:
            exact.append((reduced, coefficient // factor))
            rest.append((term, coefficient % factor))
    remainder = _collect(rest)
    whole = _collect(exact)
    if isinstance(remainder, int) and isinstance(right, int):
        return whole + remainder // right
    return whole + _quotient(remainder, right) if remainder != 0 else whole


def _quotient(left: int | Dim, right: int | Dim) -> int | Dim:
    if isinstance(left, Dim) and isinstance(right, int):
        common = math.gcd(right, *(c for _, c in left.terms))
        if common > 1:
            left, right = _collect((m, c // common) for m, c in left.terms), right // common
    return _collect(((((Quotient(left, right), 1),), 1),))


def _divide_exactly(left: int | Dim, right: int | Dim) -> int | Dim | None:
    """The size whose product with `right` is `left`, if there is one: polynomials are divided from
    their highest terms on."""
    atoms = sorted({atom for s in (left, right) for m, _ in _terms(s) for atom, _ in m}, key=str)

    def height(term: tuple[Monomial, int]) -> tuple[int, list[int]]:
        powers = dict(term[0])
        return sum(powers.values()), [powers.get(atom, 0) for atom in atoms]

    monomial, factor = max(_terms(right), key=height)
    quotient: int | Dim = 0
    while left != 0:
        highest, amount = max(_terms(left), key=height)
        reduced = _divide(highest, monomial)
        if reduced is None or amount % factor:
            return None
        part = _collect([(reduced, amount // factor)])
        quotient, left = quotient + part, left - part * right
    return quotient


def _divide(term: Monomial, by: Monomial) -> Monomial | None:
    powers = dict(term)
    for atom, power in by:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        if left:
            powers[atom] = left
        else:
            del powers[atom]
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))
