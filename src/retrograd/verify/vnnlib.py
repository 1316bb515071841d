"""VNN-LIB, the format of properties of the competition of verifiers (VNN-COMP).

The subset of SMT-LIB that its files use: `declare-const X_i Real`, `Y_i`, and `assert` of `<=` and
`>=` (`<`, `>`) between sums of variables with constant factors, combined with `and` and `or`. The
assertions describe the unsafe set: a bound of inputs is of one `X_i` alone, a constraint of outputs
of `Y_i` alone. Numbers are read as the nearest float64. Files come from strangers: their size,
their depth and the number of their cases are limited, and what is wrong is named with its line.
"""

from __future__ import annotations

import gzip
import math
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from retrograd.errors import FormatError
from retrograd.tuning import TUNING
from retrograd.verify.bound_propagation.box import Box
from retrograd.verify.property import Array, Constraint, Property, UnsafeCase

TOKEN = re.compile(r"[()]|;[^\n]*|\n|[^\S\n]+|\"[^\"\n]*\"|\|[^|\n]*\||[^\s();\"|]+|.")
NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?\Z")
VARIABLE = re.compile(r"([XY])_(\d{1,9})\Z")
DEEPEST = 100  # nested parentheses
NAMES = 2**24  # variables
# What says nothing about the set.
IGNORED = ("set-logic", "set-info", "set-option", "check-sat", "get-model", "exit")


class VnnlibToken(NamedTuple):
    text: str
    line: int


class SExpression(NamedTuple):
    """`(head part part ...)` and the line of its parenthesis."""

    parts: list[Any]
    line: int


class Atom(NamedTuple):
    """`sum of factors . variables + constant <= 0` (`< 0` where it is strict)."""

    factors: dict[tuple[str, int], float]
    constant: float
    strict: bool
    line: int


Linear = tuple[dict[tuple[str, int], float], float]
Normal = list[list[Atom]]  # a disjunction of conjunctions


class VnnlibProperty(Property):
    """A property read from a file: the cases stand in it, the shape of the input does not."""

    def __init__(self, boxes: Sequence[Box], found: Sequence[UnsafeCase], outputs: int) -> None:
        super().__init__(boxes[0], lambda *y: None)  # type: ignore[arg-type]
        self.regions = [(box,) for box in boxes]
        self.found = list(found)
        self.outputs = outputs

    def cases(self, shapes: Sequence[tuple[int, ...]]) -> list[UnsafeCase]:
        count = sum(math.prod(s) for s in shapes)
        if count != self.outputs:
            raise FormatError(
                f"the property is of {self.outputs} outputs, Y_0 to Y_{self.outputs - 1}, and the "
                f"program gives {count}"
            )
        return self.found

    def __repr__(self) -> str:
        return f"<property of VNN-LIB: {len(self.found)} cases in {len(self.regions)} boxes>"


def load_vnnlib(path: str | os.PathLike[str]) -> Property:
    """The property in a VNN-LIB file (`.gz` too), for `prove` and `attack`.

    The inputs `X_i` are those of the program, flat in row-major order, and so are the outputs
    `Y_i`. Every input has both bounds. What the file asserts is the unsafe set: the property is
    that no input gives such an output. `FormatError` names the line of what is malformed, refers to
    inputs and outputs in one comparison, or is larger or deeper than `rg.TUNING` allows.

    >>> import pathlib, tempfile, retrograd as rg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "p.vnnlib"
    >>> text = "(declare-const X_0 Real) (declare-const Y_0 Real) (assert (<= X_0 1))"
    >>> _ = path.write_text(text + "(assert (>= X_0 0)) (assert (>= Y_0 3))")
    >>> rg.verify.prove(lambda x: 2 * x, rg.verify.load_vnnlib(path)).status
    'proved'
    """
    name = os.fspath(path)
    return parse(_read(name), name)


def _read(name: str) -> str:
    most = TUNING.property_bytes
    if os.path.getsize(name) > most:
        raise FormatError(f"{name} has more than {most} bytes")
    try:
        with (gzip.open if name.endswith(".gz") else open)(name, "rb") as file:
            data = file.read(most + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FormatError(f"{name} is damaged: {error}") from None
    if len(data) > most:
        raise FormatError(f"{name} has more than {most} bytes once it is unpacked")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{name} is not UTF-8 text: {error}") from None


def parse(text: str, name: str = "the text") -> Property:
    """The property in a text of VNN-LIB."""
    return _VnnlibReader(name).read(text)


class _VnnlibReader:
    """One file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared: set[tuple[str, int]] = set()

    def error(self, line: int, what: str) -> FormatError:
        return FormatError(f"{self.name}, line {line}: {what}")

    def read(self, text: str) -> Property:
        asserted: list[Normal] = []
        for command in self.commands(text):
            head = command.parts[0] if command.parts else None
            if not isinstance(head, VnnlibToken):
                raise self.error(command.line, "a command begins with its name")
            if head.text == "declare-const" or head.text == "declare-fun":
                self.declare(command)
            elif head.text == "assert":
                if len(command.parts) != 2:
                    raise self.error(command.line, "assert takes one formula")
                asserted.append(self.formula(command.parts[1]))
            elif head.text not in IGNORED:
                raise self.error(head.line, f"the command {head.text[:40]!r} is not known here")
        return self.made(asserted)

    def commands(self, text: str) -> Iterator[SExpression]:
        """The terms that stand in no other."""
        stack: list[SExpression] = []
        for word in self.words(text):
            if word.text == "(":
                stack.append(SExpression([], word.line))
                if len(stack) > DEEPEST:
                    raise self.error(word.line, f"parentheses nested more than {DEEPEST} deep")
            elif word.text == ")":
                if not stack:
                    raise self.error(word.line, "a parenthesis is closed that was not opened")
                term = stack.pop()
                if not stack:
                    yield term
                else:
                    stack[-1].parts.append(term)
            elif not stack:
                raise self.error(word.line, f"{word.text[:40]!r} stands outside of a command")
            else:
                stack[-1].parts.append(word)
        if stack:
            raise self.error(stack[-1].line, "a parenthesis is opened that is not closed")

    def words(self, text: str) -> Iterator[VnnlibToken]:
        line = 1
        for match in TOKEN.finditer(text):
            found = match.group()
            if found == "\n":
                line += 1
            elif found[0] != ";" and not found.isspace():
                yield VnnlibToken(found, line)

    def declare(self, command: SExpression) -> None:
        words = [p.text for p in command.parts if isinstance(p, VnnlibToken)]
        constant = words[0] == "declare-const" and len(words) == len(command.parts) == 3
        function = words[0] == "declare-fun" and len(words) == 3 and len(command.parts) == 4
        if function:
            function = isinstance(command.parts[2], SExpression) and not command.parts[2].parts
        match = VARIABLE.match(words[1]) if len(words) == 3 else None
        if not (constant or function) or words[-1] != "Real" or match is None:
            raise self.error(
                command.line, "a declaration is (declare-const X_0 Real), of X_i or of Y_i"
            )
        key = match[1], int(match[2])
        if key in self.declared:
            raise self.error(command.line, f"{words[1]} is declared twice")
        if len(self.declared) >= NAMES:
            raise self.error(command.line, f"more than {NAMES} variables")
        self.declared.add(key)

    def formula(self, x: SExpression | VnnlibToken) -> Normal:
        """Its disjunctive normal form."""
        if isinstance(x, VnnlibToken) or not x.parts or not isinstance(x.parts[0], VnnlibToken):
            raise self.error(x.line, "a formula is (<= a b), (>= a b), (and ...) or (or ...)")
        head, rest = x.parts[0].text, x.parts[1:]
        if head in ("<=", ">=", "<", ">"):
            if len(rest) != 2:
                raise self.error(x.line, f"{head} compares two terms, not {len(rest)}")
            left, right = (self.linear(t) for t in rest)
            if head[0] == ">":
                left, right = right, left
            factors, constant = _plus(left, right, -1.0)
            return [[Atom(factors, constant, len(head) == 1, x.line)]]
        if head not in ("and", "or"):
            raise self.error(x.line, f"{head[:40]!r} is none of <=, >=, <, >, and, or")
        parts = [self.formula(part) for part in rest]
        if head == "or":
            return [case for part in parts for case in part]
        return self.multiplied(parts, x.line)

    def multiplied(self, parts: Sequence[Normal], line: int) -> Normal:
        single = [atom for part in parts if len(part) == 1 for atom in part[0]]
        many = [part for part in parts if len(part) != 1]
        if math.prod(map(len, many)) > TUNING.property_cases:
            raise self.error(line, f"more than {TUNING.property_cases} cases once multiplied out")
        return [single + [atom for case in chosen for atom in case] for chosen in product(*many)]

    def linear(self, x: SExpression | VnnlibToken) -> Linear:
        """A sum of variables with factors, and a constant."""
        if isinstance(x, VnnlibToken):
            match = VARIABLE.match(x.text)
            if match is None:
                return {}, self.number(x)
            key = match[1], int(match[2])
            if key not in self.declared:
                raise self.error(x.line, f"{x.text} is not declared")
            return {key: 1.0}, 0.0
        head = x.parts[0].text if x.parts and isinstance(x.parts[0], VnnlibToken) else ""
        if head not in ("+", "-", "*") or len(x.parts) < 2:
            raise self.error(x.line, "a term is a number, a variable, or (+ ...), (- ...), (* ...)")
        parts = [self.linear(part) for part in x.parts[1:]]
        total = parts[0]
        if head == "-" and len(parts) == 1:
            return _plus(({}, 0.0), total, -1.0)
        for part in parts[1:]:
            if head != "*":
                total = _plus(total, part, 1.0 if head == "+" else -1.0)
            elif total[0] and part[0]:
                raise self.error(x.line, "a product of two variables is not linear")
            else:
                (factors, c), k = (total, part[1]) if not part[0] else (part, total[1])
                total = {v: a * k for v, a in factors.items()}, c * k
        if not all(map(math.isfinite, (*total[0].values(), total[1]))):
            raise self.error(x.line, "a number that is not finite")
        return total

    def number(self, x: VnnlibToken) -> float:
        value = float(x.text) if NUMBER.match(x.text) else math.nan
        if not math.isfinite(value):
            raise self.error(x.line, f"{x.text[:40]!r} is neither a finite number nor a variable")
        return value

    def made(self, asserted: Sequence[Normal]) -> Property:
        counts = {}
        for kind, what in (("X", "input"), ("Y", "output")):
            found = sorted(i for k, i in self.declared if k == kind)
            if not found or found != list(range(len(found))):
                raise FormatError(
                    f"{self.name}: the {what}s are {kind}_0 to {kind}_n without a gap, and there "
                    "is at least one"
                )
            counts[kind] = len(found)
        everywhere = [part[0] for part in asserted if len(part) == 1]
        choices = self.multiplied([p for p in asserted if len(p) != 1], 1)
        base = self.bounded(counts["X"], [a for part in everywhere for a in part], None)
        shared = [a for part in everywhere for a in part if _kind(a) == "Y"]
        boxes: dict[bytes, int] = {}
        regions: list[Box] = []
        cases: list[UnsafeCase] = []
        for case in choices:
            ends = self.bounded(counts["X"], case, base)
            if (ends[0] > ends[1]).any():
                if len(choices) > 1:
                    continue  # alternatives that exclude each other
                i = int(np.argmax(ends[0] > ends[1]))
                raise FormatError(
                    f"{self.name}: no X_{i} is at least {ends[0][i]} and at most {ends[1][i]}"
                )
            missing = np.flatnonzero(~np.isfinite(ends).all(axis=0))
            if len(missing):
                raise FormatError(f"{self.name}: X_{missing[0]} lacks a bound on one side")
            key = ends.tobytes()
            if key not in boxes:
                boxes[key] = len(regions)
                regions.append(Box(ends[0], ends[1]))
            atoms = [*shared, *(a for a in case if _kind(a) == "Y")]
            cases.append(UnsafeCase(boxes[key], tuple(_constraint(a, counts["Y"]) for a in atoms)))
        if not regions:
            raise FormatError(f"{self.name}: its assertions exclude each other for every input")
        return VnnlibProperty(regions, cases, counts["Y"])

    def bounded(self, size: int, atoms: Sequence[Atom], base: Array | None) -> Array:
        """Lower and upper bounds of all inputs, [2, inputs]."""
        if base is None:
            base = np.stack([np.full(size, -np.inf), np.full(size, np.inf)])
        ends = base.copy()
        for atom in atoms:
            kind = _kind(atom)
            if kind == "Y":
                continue
            used = [(i, a) for (_, i), a in atom.factors.items() if a]
            if kind == "XY" or len(used) > 1:
                raise self.error(
                    atom.line, "a comparison is of one input with a number, or of outputs alone"
                )
            if not used:
                if atom.constant > 0 or (atom.strict and atom.constant == 0):
                    ends[0], ends[1] = np.inf, -np.inf  # what is false excludes every input
                continue
            i, a = used[0]
            bound = -atom.constant / a
            if a > 0:
                ends[1, i] = min(ends[1, i], bound)
            else:
                ends[0, i] = max(ends[0, i], bound)
        return ends


def _kind(atom: Atom) -> str:
    """Whether an atom is of inputs, of outputs, or of both; of none it counts as of inputs."""
    kinds = {kind for (kind, _), a in atom.factors.items() if a}
    return "".join(sorted(kinds)) or "X"


def _constraint(atom: Atom, outputs: int) -> Constraint:
    row = np.zeros(outputs)
    for (_, i), a in atom.factors.items():
        row[i] = a
    return Constraint(row, atom.constant, atom.strict)


def _plus(a: Linear, b: Linear, sign: float) -> Linear:
    factors = dict(a[0])
    for key, value in b[0].items():
        factors[key] = factors.get(key, 0.0) + sign * value
    return factors, a[1] + sign * b[1]
