"""The checker of certificates: integers only, nothing of the rest of retrograd, no NumPy.

A certificate says of a network (sums with constant weights, and ReLUs) and of some boxes of inputs:
*no input in the box gives an output in the unsafe set*, and brings a proof of it. This file reads
it and does the proof again in exact arithmetic. It imports the standard library alone and shares no
code with the prover, so that a mistake there does not repeat itself here:

    python -m retrograd.verify.checker FILE      or, copied anywhere:      python checker.py FILE

**The network.** Value 0 is the input, step k makes value k + 1, the last value is the output. A
step `affine` is `y = sum over terms of W v + bias`, computed in some dtype; `relu` is max(v, 0).
What a program computes in floating point is not that sum: with n products of magnitudes that add up
to m, in any order, it is off by at most `n u / (1 - n u) m` and what underflow takes away (Higham,
*Accuracy and Stability of Numerical Algorithms*, section 3.1). So a certificate holds for every y
within that distance, of the program that runs as of the one in real numbers.

**The proof.** A tree of cases: at a node an input is below or above a number, or the argument of a
ReLU is negative or positive, and each has a child. At a leaf a linear function of the input is a
lower bound of some nonnegative sum of the constraints of the unsafe set, and is positive in the
box. It is made backwards from the output: through sums exactly, through a ReLU whose argument is in
[l, u] by `a x <= relu(x) <= s (x - l)` with the slope a that the certificate gives; and for each
ReLU that the path has decided a multiple (beta) of its argument is taken away, which is of the sign
that makes the bound smaller (beta-CROWN: Wang et al., NeurIPS 2021). What is proved of the
arguments of ReLUs is made in the same way ("refine").

Numbers are strings as `float.hex` writes them, so no reader rounds them. All of the arithmetic is
of integers that stand for multiples of a power of two; where a quotient or a bound is rounded it is
rounded outward.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from fractions import Fraction
from typing import Any, NamedTuple

FORMAT, VERSION = "retrograd-certificate", 1
MAX_BYTES = 64 * 2**20
MAX_WORK = 2 * 10**10  # products of integers; a minute has some hundred million
MAX_VALUES = 2**22  # numbers that a network computes
GRID = 96  # bounds of values are multiples of 2**-GRID
SLOPE = 64  # slopes and weights of constraints are multiples of 2**-SLOPE
HEX = re.compile(r"-?0x[01](\.[0-9a-f]{1,13})?p[+-][0-9]{1,4}\Z")
# Of each dtype the unit roundoff, the largest number and the least normal one.
DTYPES: dict[str, tuple[Fraction, Fraction, Fraction]] = {
    "float64": (Fraction(1, 2**53), Fraction(2**1024 - 2**971), Fraction(1, 2**1022)),
    "float32": (Fraction(1, 2**24), Fraction(2**128 - 2**104), Fraction(1, 2**126)),
    "float16": (Fraction(1, 2**11), Fraction(65504), Fraction(1, 2**14)),
    "bfloat16": (Fraction(1, 2**8), Fraction(2**128 - 2**120), Fraction(1, 2**126)),
}


class Rejected(Exception):
    """A certificate that does not prove what it says, or is not one; the message says where."""


class AffineStep(NamedTuple):
    """`y = sum of W v + bias`: for each term its value and rows of (columns, weights)."""

    terms: list[tuple[int, list[tuple[list[int], list[int]]]]]
    bias: list[int]
    dtype: str


class ReluStep(NamedTuple):
    source: int


class ScaledNetwork(NamedTuple):
    """Steps, the size of each value, and `scale`: weights are multiples of 2**-scale."""

    steps: list[AffineStep | ReluStep]
    sizes: list[int]
    scale: int


class Row(NamedTuple):
    """`coefficients . value / 2**exponent`."""

    coefficients: list[int]
    exponent: int


class GridBox(NamedTuple):
    """A region of inputs, multiples of 2**-GRID; the ball cuts off its corners."""

    lower: list[int]
    upper: list[int]
    ball: tuple[list[int], int] | None = None  # centre and radius in the 2-norm


Bounds = tuple[list[int], list[int]]  # lower and upper, multiples of 2**-GRID
Signs = dict[tuple[int, int], int]  # (value, index) of a decided argument: -1 or 1


# Reading


def load(path: str, max_bytes: int = MAX_BYTES) -> Any:
    """The JSON in a file: at most so large, without a key given twice, NaN or infinity."""
    size = os.stat(path).st_size
    if not os.path.isfile(path):
        raise Rejected(f"{path} is not a file")
    if size > max_bytes:
        raise Rejected(f"{path} has {size} bytes, more than {max_bytes}; --max-bytes allows more")
    try:
        with open(path, encoding="utf-8") as file:
            return json.loads(
                file.read(max_bytes + 1),
                object_pairs_hook=_without_duplicates,
                parse_constant=_no_number,
                parse_float=_no_number,
            )
    except (ValueError, RecursionError) as error:
        raise Rejected(f"{path} is not the JSON of a certificate: {error}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Rejected("a key is given twice in one object")
    return found


def _no_number(text: str) -> Any:
    raise Rejected(f"the number {text[:20]} is not a string as float.hex writes it")


def fields(x: Any, where: str, *names: str, optional: tuple[str, ...] = ()) -> list[Any]:
    """The values of the keys of an object that has these and no others."""
    if not isinstance(x, dict):
        raise Rejected(f"{where} is not an object")
    for name in x:
        if name not in names and name not in optional:
            raise Rejected(f"{where} has the unknown key {name[:40]!r}")
    for name in names:
        if name not in x:
            raise Rejected(f"{where} lacks {name!r}")
    return [x.get(name) for name in (*names, *optional)]


def items(x: Any, where: str, size: int | None = None) -> list[Any]:
    """A list, of a size."""
    if not isinstance(x, list) or (size is not None and len(x) != size):
        expected = "a list" if size is None else f"a list of {size}"
        raise Rejected(f"{where} is not {expected}")
    return x


def integer(x: Any, where: str, low: int, high: int) -> int:
    """An integer, `low <= x < high`."""
    if type(x) is not int or not low <= x < high:
        raise Rejected(f"{where} is not an integer from {low} to {high - 1}")
    return x


def number(x: Any, where: str) -> Fraction:
    """A finite number, exactly."""
    if not isinstance(x, str) or not HEX.match(x):
        raise Rejected(f"{where} is not a finite number as float.hex writes it")
    try:
        return Fraction(float.fromhex(x))
    except OverflowError:
        raise Rejected(f"{where} is larger than any float64") from None


def numbers(x: Any, where: str, size: int | None = None) -> list[Fraction]:
    return [number(v, where) for v in items(x, where, size)]


def bits(values: list[Fraction]) -> int:
    """How many binary places write all of these."""
    return max((v.denominator.bit_length() - 1 for v in values), default=0)


def scaled(values: list[Fraction], places: int) -> list[int]:
    """Exactly, as multiples of 2**-places."""
    return [(v.numerator << places) // v.denominator for v in values]


def slopes_of(x: Any, where: str, size: int | None = None, high: int | None = None) -> list[int]:
    """Numbers of at least 0 that have at most SLOPE binary places."""
    values = numbers(x, where, size)
    if any(v < 0 or (high is not None and v > high) for v in values):
        raise Rejected(f"{where} is not within 0 and {high if high is not None else 'above'}")
    if bits(values) > SLOPE:
        raise Rejected(f"{where} has more than {SLOPE} binary places")
    return scaled(values, SLOPE)


def read_network(x: Any) -> ScaledNetwork:
    """The network of a certificate."""
    count, raw = fields(x, "network", "inputs", "steps")
    sizes = [integer(count, "network.inputs", 1, MAX_VALUES)]
    total = sizes[0]
    parsed: list[ReluStep | tuple[Any, list[Fraction], str]] = []
    every = [Fraction(1)]
    for k, step in enumerate(items(raw, "network.steps")):
        where = f"network.steps[{k}]"
        kind = step.get("kind") if isinstance(step, dict) else None
        if kind == "relu":
            _, source = fields(step, where, "kind", "from")
            source = integer(source, where, 0, len(sizes))
            parsed.append(ReluStep(source))
            sizes.append(sizes[source])
        elif kind == "affine":
            _, dtype, terms, bias = fields(step, where, "kind", "dtype", "terms", "bias")
            if not isinstance(dtype, str) or (dtype != "exact" and dtype not in DTYPES):
                raise Rejected(f"{where}.dtype is none of exact, {', '.join(DTYPES)}")
            shift = numbers(bias, f"{where}.bias")
            read = [_term(t, where, sizes, len(shift)) for t in items(terms, f"{where}.terms")]
            if len({source for source, _ in read}) != len(read):
                raise Rejected(f"{where} has two terms of one value")
            every += shift
            for _, rows in read:
                every += [w for _, weights in rows for w in weights]
            parsed.append((read, shift, dtype))
            sizes.append(len(shift))
        else:
            raise Rejected(f"{where}.kind is neither affine nor relu")
        total += sizes[-1]
        if total > MAX_VALUES:
            raise Rejected(f"the network computes more than {MAX_VALUES} numbers")
    scale = bits(every)
    steps = [s if isinstance(s, ReluStep) else _scaled_step(*s, scale) for s in parsed]
    return ScaledNetwork(steps, sizes, scale)


def _term(x: Any, where: str, sizes: list[int], size: int) -> Any:
    source, raw = fields(x, f"{where}.terms", "from", "rows")
    source = integer(source, f"{where}.terms.from", 0, len(sizes))
    rows = []
    for row in items(raw, f"{where}.rows", size):
        columns, weights = items(row, f"{where}.rows", 2)
        at = [integer(j, f"{where}.rows", 0, sizes[source]) for j in items(columns, where)]
        if len(set(at)) != len(at):
            raise Rejected(f"{where}.rows has a column twice in one row")
        rows.append((at, numbers(weights, f"{where}.rows", len(at))))
    return source, rows


def _scaled_step(terms: Any, bias: list[Fraction], dtype: str, scale: int) -> AffineStep:
    done = [(s, [(at, scaled(w, scale)) for at, w in rows]) for s, rows in terms]
    return AffineStep(done, scaled(bias, scale), dtype)


# Bounds of values


def floor(x: int, places: int) -> int:
    """`x / 2**places`, rounded down: what `>>` does with integers of either sign."""
    return x >> places if places >= 0 else x << -places


def ceil(x: int, places: int) -> int:
    return -((-x) >> places) if places >= 0 else x << -places


# For each value how far the program's is from the exact sum, in multiples of 2**-GRID.
Errors = list[list[int]]


class Checker:
    """One network, and how much work was done on it."""

    def __init__(self, network: ScaledNetwork, max_work: int) -> None:
        self.net = network
        self.work = 0
        self.max_work = max_work
        self.relus = [k + 1 for k, s in enumerate(network.steps) if isinstance(s, ReluStep)]

    def charge(self, products: int) -> None:
        """Count work; numbers that are longer count more."""
        self.work += products
        if self.work > self.max_work:
            raise Rejected(f"needs more than {self.max_work} products; --max-work allows more")

    def affine_bounds(self, step: AffineStep, bounds: list[Bounds]) -> tuple[Bounds, list[int]]:
        """Bounds of a sum by intervals, and how far the program may be from it."""
        scale, size = self.net.scale, len(step.bias)
        low, high = [b << GRID for b in step.bias], [b << GRID for b in step.bias]
        most = [abs(b) << GRID for b in step.bias]
        count, weight, reach = [2] * size, [0] * size, [0] * size
        for source, rows in step.terms:
            lows, highs = bounds[source]
            for i, (columns, weights) in enumerate(rows):
                self.charge(2 * len(columns))
                for j, w in zip(columns, weights, strict=True):
                    a, b = w * lows[j], w * highs[j]
                    low[i] += min(a, b)
                    high[i] += max(a, b)
                    most[i] += max(abs(a), abs(b))
                    weight[i] += abs(w)
                    reach[i] += max(abs(lows[j]), abs(highs[j]))
                count[i] += len(columns)
        errors = [0] * size
        if step.dtype != "exact":
            unit, largest, least = DTYPES[step.dtype]
            for i, n in enumerate(count):
                relative = n * unit / (1 - n * unit) if n * unit < 1 else Fraction(-1)
                one = Fraction(1, 2 ** (scale + GRID))
                size_i = most[i] * one
                lost = 2 * n + Fraction(weight[i], 2**scale) + Fraction(reach[i], 2**GRID)
                error = relative * size_i + least * lost
                if relative < 0 or size_i + error > largest:
                    raise Rejected(f"a sum in {step.dtype} may overflow or is of too many terms")
                errors[i] = ceil_of(error)
        lower = [floor(x, scale) - e for x, e in zip(low, errors, strict=True)]
        upper = [ceil(x, scale) + e for x, e in zip(high, errors, strict=True)]
        return (lower, upper), errors

    def forward(
        self, box: GridBox, known: list[Bounds | None], signs: Signs, refine: dict[int, Any]
    ) -> tuple[list[Bounds], Errors]:
        """Bounds of every value: intervals, what is known of it already, what the signs say, and
        for the arguments of ReLUs in `refine` what their linear bounds give."""
        bounds: list[Bounds] = [(box.lower, box.upper)]
        errors: Errors = [[0] * len(box.lower)]
        for k, step in enumerate(self.net.steps):
            v = k + 1
            if isinstance(step, ReluStep):
                low, high = bounds[step.source]
                new = [max(x, 0) for x in low], [max(x, 0) for x in high]
                errors.append([0] * len(low))
            else:
                new, error = self.affine_bounds(step, bounds)
                errors.append(error)
            new = meet(new, known[v])
            if v in refine:
                new = self._refined(v, new, bounds, errors, refine[v], signs, box)
            for (value, i), sign in signs.items():
                if value == v:
                    (new[0] if sign > 0 else new[1])[i] = (
                        max(new[0][i], 0) if sign > 0 else min(new[1][i], 0)
                    )
            bounds.append(new)
        return bounds, errors

    def _refined(
        self, v: int, new: Bounds, bounds: list[Bounds], errors: Errors, slopes: Any,
        signs: Signs, box: GridBox,
    ) -> Bounds:  # fmt: skip
        low, high = list(new[0]), list(new[1])
        given = [*bounds, new]
        for i in range(len(low)):
            if low[i] < 0 < high[i]:
                for sign in (1, -1):
                    row = [0] * len(low)
                    row[i] = sign
                    a, c = self.backward(v, Row(row, 0), 0, given, errors, slopes, {})
                    least = minimum(a, box) + (Fraction(c[0], 2 ** c[1]))
                    if sign > 0:
                        low[i] = max(low[i], floor_of(least))
                    else:
                        high[i] = min(high[i], -floor_of(least))
        return low, high

    def backward(
        self, v: int, row: Row, constant: int, bounds: list[Bounds], errors: Errors,
        slopes: dict[int, list[int]], betas: dict[tuple[int, int], int],
    ) -> tuple[Row, tuple[int, int]]:  # fmt: skip
        """A linear function of the input that `row . value v + constant` is not less than.

        `betas` are what is taken away of each argument: multiples of 2**-SLOPE, with their signs.
        """
        rows: list[Row | None] = [None] * (v + 1)
        rows[v] = row
        total = (constant, row.exponent)
        for k in range(v, 0, -1):
            rows[k] = with_betas(rows[k], k, self.net.sizes[k], betas)
            here, step = rows[k], self.net.steps[k - 1]
            rows[k] = None
            if here is None:
                continue
            if isinstance(step, ReluStep):
                at = bounds[step.source]
                passed, shift = relu_row(here, at, slopes.get(k))
                rows[step.source] = joined(rows[step.source], passed)
                total = plus(total, shift)
                continue
            e = here.exponent
            a = here.coefficients
            shift_by = sum(x * b for x, b in zip(a, step.bias, strict=True))
            total = plus(total, (shift_by, e + self.net.scale))
            off = sum(abs(x) * d for x, d in zip(a, errors[k], strict=True))
            total = plus(total, (-off, e + GRID))
            for source, matrix in step.terms:
                sums = [0] * self.net.sizes[source]
                for x, (columns, weights) in zip(a, matrix, strict=True):
                    if x:
                        self.charge(len(columns) * (1 + e // 1024))
                        for j, w in zip(columns, weights, strict=True):
                            sums[j] += x * w
                rows[source] = joined(rows[source], Row(sums, e + self.net.scale))
        first = with_betas(rows[0], 0, self.net.sizes[0], betas)
        return first or Row([0] * self.net.sizes[0], 0), total


def meet(a: Bounds, b: Bounds | None) -> Bounds:
    if b is None:
        return a
    return list(map(max, a[0], b[0])), list(map(min, a[1], b[1]))


def floor_of(x: Fraction) -> int:
    return (x.numerator << GRID) // x.denominator


def ceil_of(x: Fraction) -> int:
    return -((-x.numerator << GRID) // x.denominator)


def plus(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The sum of two numbers (n, e), each `n / 2**e`."""
    e = max(a[1], b[1])
    return (a[0] << (e - a[1])) + (b[0] << (e - b[1])), e


def joined(a: Row | None, b: Row) -> Row:
    if a is None:
        return b
    e = max(a.exponent, b.exponent)
    left, right = e - a.exponent, e - b.exponent
    pairs = zip(a.coefficients, b.coefficients, strict=True)
    return Row([(x << left) + (y << right) for x, y in pairs], e)


def with_betas(row: Row | None, v: int, size: int, betas: dict[tuple[int, int], int]) -> Row | None:
    own = {i: x for (value, i), x in betas.items() if value == v}
    if not own:
        return row
    return joined(row, Row([-own.get(i, 0) for i in range(size)], SLOPE))


def relu_row(row: Row, argument: Bounds, slopes: list[int] | None) -> tuple[Row, tuple[int, int]]:
    """A function of the argument below `row . relu(argument)`: coefficients and a constant."""
    one = 1 << SLOPE
    out, total = [], 0
    for i, (a, low, high) in enumerate(zip(row.coefficients, *argument, strict=True)):
        if a == 0 or high <= 0:
            out.append(0)
        elif low >= 0:
            out.append(a << SLOPE)
        elif a > 0:
            if slopes is None:
                raise Rejected("a ReLU of either sign has no slopes")
            out.append(a * slopes[i])
        else:
            # The line through both ends, its slope rounded: right where it is above both.
            s = min((high << SLOPE) // (high - low), one)
            t = max(-s * low, (one - s) * high)
            out.append(a * s)
            total += a * t
    return Row(out, row.exponent + SLOPE), (total, row.exponent + SLOPE + GRID)


def minimum(row: Row, box: GridBox) -> Fraction:
    """The least of a linear function in a box, and in a ball where there is one, or less."""
    ends = zip(row.coefficients, box.lower, box.upper, strict=True)
    least = sum(a * (low if a > 0 else high) for a, low, high in ends)
    if box.ball is not None:
        centre, radius = box.ball
        size = math.isqrt(sum(a * a for a in row.coefficients)) + 1
        middle = sum(a * c for a, c in zip(row.coefficients, centre, strict=True))
        least = max(least, middle - radius * size)
    return Fraction(least, 2 ** (row.exponent + GRID))


# Claims and proofs


class UnsafeSet(NamedTuple):
    """An unsafe set: all of `coefficients . y + constant <= 0` (or `< 0`, where it is strict)."""

    region: int
    coefficients: list[list[Fraction]]
    constants: list[Fraction]
    strict: list[bool]


class Inherited(NamedTuple):
    """What a node of the tree has from those above it."""

    box: GridBox
    signs: Signs
    bounds: list[Bounds]
    errors: Errors


def read_region(x: Any, where: str, size: int) -> GridBox:
    ends = fields(x, where, "lower", "upper", optional=("ball",))
    low, high = (numbers(v, where, size) for v in ends[:2])
    if any(a > b for a, b in zip(low, high, strict=True)):
        raise Rejected(f"{where} is empty: a lower bound is above the upper one")
    # Outward on the grid: the box that is checked contains the one that is claimed.
    box = GridBox([floor_of(v) for v in low], [ceil_of(v) for v in high])
    if "ball" not in x:
        return box
    middle, extent = fields(x["ball"], where, "centre", "radius")
    centre, radius = numbers(middle, where, size), number(extent, where)
    if radius < 0 or bits(centre) > GRID:
        raise Rejected(f"{where}.ball has a negative radius, or a centre off the grid")
    return box._replace(ball=([floor_of(c) for c in centre], ceil_of(radius)))


def read_case(x: Any, where: str, regions: int, outputs: int) -> UnsafeSet:
    region, raw = fields(x, where, "region", "unsafe")
    case = UnsafeSet(integer(region, where, 0, regions), [], [], [])
    for constraint in items(raw, where):
        row, constant, strict = fields(
            constraint, f"{where}.unsafe", "coefficients", "constant", "strict"
        )
        if type(strict) is not bool:
            raise Rejected(f"{where}.unsafe.strict is not true or false")
        case.coefficients.append(numbers(row, f"{where}.unsafe", outputs))
        case.constants.append(number(constant, f"{where}.unsafe"))
        case.strict.append(strict)
    return case


def read_refine(x: Any, where: str, checker: Checker) -> dict[int, Any]:
    """For the arguments of ReLUs that get linear bounds: the slopes of the ReLUs before them."""
    found: dict[int, Any] = {}
    sources = {checker.net.steps[k - 1].source for k in checker.relus}  # type: ignore[union-attr]
    for part in items(x, where):
        value, slopes = fields(part, where, "value", "slopes")
        v = integer(value, where, 0, len(checker.net.sizes))
        if v not in sources or v in found:
            raise Rejected(f"{where} names value {v}, no ReLU's argument, or names it twice")
        found[v] = read_slopes(slopes, where, checker, v)
    return found


def read_slopes(x: Any, where: str, checker: Checker, below: int) -> dict[int, list[int]]:
    """For each ReLU before a value a list of slopes from 0 to 1."""
    relus = [k for k in checker.relus if k < below]
    given = items(x, f"{where}.slopes", len(relus))
    sizes = checker.net.sizes
    return {
        k: slopes_of(s, f"{where}.slopes", sizes[k], 1) for k, s in zip(relus, given, strict=True)
    }


def check_leaf(x: Any, where: str, case: UnsafeSet, at: Inherited, checker: Checker) -> None:
    """Is the unsafe set out of reach here?"""
    weights, slopes, betas, claimed, bias = fields(
        x, where, "weights", "slopes", "betas", "coefficients", "bias"
    )
    share = slopes_of(weights, f"{where}.weights", len(case.constants))
    last = len(checker.net.sizes) - 1
    every = [c for row in case.coefficients for c in row] + case.constants
    places = bits(every)
    row, constant = [0] * checker.net.sizes[last], 0
    for s, c, d in zip(share, case.coefficients, case.constants, strict=True):
        row = [a + s * b for a, b in zip(row, scaled(c, places), strict=True)]
        constant += s * scaled([d], places)[0]
    taken: dict[tuple[int, int], int] = {}
    for beta in items(betas, f"{where}.betas"):
        value, i, size = items(beta, f"{where}.betas", 3)
        key = (integer(value, where, 0, last + 1), integer(i, where, 0, 2**24))
        if key not in at.signs or key in taken:
            raise Rejected(f"{where}.betas names {key}, which the path does not decide, or twice")
        taken[key] = slopes_of([size], f"{where}.betas")[0] * at.signs[key]
    given = read_slopes(slopes, where, checker, last + 1)
    exact, total = checker.backward(
        last, Row(row, SLOPE + places), constant, at.bounds, at.errors, given, taken
    )
    linear = numbers(claimed, f"{where}.coefficients", checker.net.sizes[0])
    places = bits(linear)
    negative = Row([-a for a in scaled(linear, places)], places)
    lowest = number(bias, f"{where}.bias")
    slack = minimum(joined(exact, negative), at.box) + Fraction(total[0], 2 ** total[1]) - lowest
    if slack < 0:
        raise Rejected(f"{where}: its linear function is not a lower bound")
    least = minimum(Row(scaled(linear, places), places), at.box) + lowest
    open_set = any(s and strict for s, strict in zip(share, case.strict, strict=True))
    if least < 0 or (least == 0 and not open_set):
        raise Rejected(f"{where}: its linear function is not positive in the box")


def check_tree(x: Any, where: str, case: UnsafeSet, root: Inherited, checker: Checker) -> int:
    """Do the leaves cover the region, and is each proved? Returns how many there are."""
    nodes = items(x, where)
    todo: list[tuple[int, Inherited]] = [(0, root)]
    seen: set[int] = set()
    leaves = 0
    while todo:
        k, at = todo.pop()
        here = f"{where}[{k}]"
        integer(k, where, 0, len(nodes))
        if k in seen:
            raise Rejected(f"{here} is reached twice")
        seen.add(k)
        node = nodes[k]
        if isinstance(node, dict) and "refine" in node:
            refine = read_refine(node["refine"], f"{here}.refine", checker)
            node = {name: part for name, part in node.items() if name != "refine"}
            known: list[Bounds | None] = list(at.bounds)
            bounds, errors = checker.forward(at.box, known, at.signs, refine)
            at = at._replace(bounds=bounds, errors=errors)
        if isinstance(node, dict) and "leaf" in node:
            (leaf,) = fields(node, here, "leaf")
            check_leaf(leaf, f"{here}.leaf", case, at, checker)
            leaves += 1
        else:
            split, children = fields(node, here, "split", "children")
            below, above = items(children, f"{here}.children", 2)
            halves = divided(split, f"{here}.split", at, checker)
            for child, half in zip((below, above), halves, strict=True):
                todo.append((integer(child, here, k + 1, len(nodes)), half))
    if len(seen) != len(nodes):
        raise Rejected(f"{where} has nodes that nothing leads to")
    return leaves


def place(x: Any, where: str, checker: Checker) -> tuple[int, int]:
    """The argument of a ReLU: its value and the index in it."""
    v, i = items(x, where, 2)
    v = integer(v, where, 0, len(checker.net.sizes))
    return v, integer(i, where, 0, checker.net.sizes[v])


def divided(x: Any, where: str, at: Inherited, checker: Checker) -> list[Inherited]:
    """The two halves of a case; together they are all of it."""
    if isinstance(x, dict) and "input" in x:
        index, point = fields(x, where, "input", "at")
        i = integer(index, where, 0, checker.net.sizes[0])
        cut = number(point, where)
        low, high, _ = at.box
        up, down = list(low), list(high)
        up[i] = max(low[i], floor_of(cut))
        down[i] = min(high[i], ceil_of(cut))
        if down[i] < low[i] or up[i] > high[i]:
            raise Rejected(f"{where} is outside of the box")
        return [_in_box(at, at.box._replace(upper=down)), _in_box(at, at.box._replace(lower=up))]
    (argument,) = fields(x, where, "relu")
    v, i = place(argument, where, checker)
    if (v, i) in at.signs:
        raise Rejected(f"{where} decides what has been decided")
    return [_with_sign(at, v, i, -1), _with_sign(at, v, i, 1)]


def _in_box(at: Inherited, box: GridBox) -> Inherited:
    return at._replace(box=box, bounds=[(box.lower, box.upper), *at.bounds[1:]])


def _with_sign(at: Inherited, v: int, i: int, sign: int) -> Inherited:
    low, high = list(at.bounds[v][0]), list(at.bounds[v][1])
    if sign > 0:
        low[i] = max(low[i], 0)
    else:
        high[i] = min(high[i], 0)
    bounds = list(at.bounds)
    bounds[v] = (low, high)
    return at._replace(signs={**at.signs, (v, i): sign}, bounds=bounds)


def digest(x: Any) -> str:
    """SHA-256 of JSON in its canonical form."""
    text = json.dumps(x, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Summary(NamedTuple):
    """What a certificate proves."""

    inputs: int
    outputs: int
    regions: int
    cases: int
    leaves: int
    network: str  # SHA-256 of its JSON

    def __str__(self) -> str:
        return (
            f"proved: {self.cases} unsafe sets in {self.regions} regions are out of reach of a "
            f"network from {self.inputs} inputs to {self.outputs} outputs, {self.leaves} leaves; "
            f"network {self.network[:16]}"
        )


def check(certificate: Any, max_work: int = MAX_WORK) -> Summary:
    """Do the proof again; `Rejected` says where it fails."""
    form, version, raw, regions, cases, claim, refine, trees = fields(
        certificate, "certificate", "format", "version", "network", "regions", "cases", "claim",
        "bounds", "trees",
    )  # fmt: skip
    if form != FORMAT or version != VERSION or type(version) is not int:
        raise Rejected(f"not a {FORMAT} of version {VERSION}")
    try:
        if claim != digest([raw, regions, cases]):
            raise Rejected("the claim was changed: its SHA-256 is another")
    except RecursionError:
        raise Rejected("the certificate is nested too deeply") from None
    net = read_network(raw)
    checker = Checker(net, max_work)
    boxes = [
        read_region(r, f"regions[{k}]", net.sizes[0])
        for k, r in enumerate(items(regions, "regions"))
    ]
    unsafe = [
        read_case(c, f"cases[{k}]", len(boxes), net.sizes[-1])
        for k, c in enumerate(items(cases, "cases"))
    ]
    roots = []
    for k, (box, part) in enumerate(zip(boxes, items(refine, "bounds", len(boxes)), strict=True)):
        slopes = read_refine(part, f"bounds[{k}]", checker)
        bounds, errors = checker.forward(box, [None] * len(net.sizes), {}, slopes)
        roots.append(Inherited(box, {}, bounds, errors))
    leaves = 0
    for k, (case, tree) in enumerate(zip(unsafe, items(trees, "trees", len(unsafe)), strict=True)):
        leaves += check_tree(tree, f"trees[{k}]", case, roots[case.region], checker)
    return Summary(net.sizes[0], net.sizes[-1], len(boxes), len(unsafe), leaves, digest(raw))


def main(arguments: list[str]) -> int:
    """Check a file: 0 where it proves its claim, 1 where it does not, 2 for wrong usage."""
    limits = {"--max-bytes": MAX_BYTES, "--max-work": MAX_WORK}
    files: list[str] = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name in limits and equals and value.isdecimal():
            limits[name] = int(value)
        elif argument.startswith("-"):
            files.clear()
            break
        else:
            files.append(argument)
    if len(files) != 1:
        sys.stderr.write("usage: checker.py [--max-bytes=N] [--max-work=N] FILE\n")
        return 2
    try:
        found = check(load(files[0], limits["--max-bytes"]), limits["--max-work"])
    except (Rejected, OSError) as error:
        sys.stderr.write(f"rejected: {error}\n")
        return 1
    sys.stdout.write(f"{found}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
