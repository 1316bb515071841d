"""What a program is grown from: values with samples, and the choices that templates ask for.

A template is a line with gaps, as `rg.sum({x}, axis={axes}, keepdims={flag})`. Each candidate is
run once on the reference backend; what is refused, or whose values leave all bounds, is not kept.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import retrograd as rg
from tests.programs.program import WORDS, Array, Body, Line

FLOATS = ("float64", "float32", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex128", "complex64")
KINDS = {
    "f": FLOATS, "i": INTEGERS, "b": ("bool",), "c": COMPLEX, "z": FLOATS + COMPLEX,
    "n": FLOATS + INTEGERS, "m": FLOATS + INTEGERS + COMPLEX, "w": (*INTEGERS, "bool"),
    "a": FLOATS + INTEGERS + COMPLEX + ("bool",),
}  # fmt: skip
SIZES = (1, 2, 3, 4, 5)
ODD = (0, 1, 7, 16, 17, 33, 65)
MOST = 600  # elements of a value
LARGE = 300_000  # in programs on large arrays
FIRST = ("x", "v", "q", "I", "M", "Q", "c1", "c2", "c3", "rows")  # what the other gaps are about
GAP = re.compile(r"\{(\w+)(?::(\w))?\}")


class NothingFits(Exception):
    """No value that a template could take; another is tried."""


class Failure(Exception):
    """Something that must not happen even while a program is grown."""


class Draw:
    """Values by name, and random choices about them. A body of a function has a draw of its own,
    which sees what is outside."""

    def __init__(
        self,
        rng: random.Random,
        floats: Sequence[str] = FLOATS[:1],
        others: Sequence[str] = ("int64", "bool"),
        most: int = MOST,
        outer: Draw | None = None,
        closed: bool = False,
    ) -> None:
        self.r = rng
        self.floats = list(floats)
        self.others = list(others)
        self.most = most
        self.outer = outer
        self.root: Draw = outer.root if outer else self
        self.peer: str = outer.root.peer if outer else ""  # all lines are to have words of this one
        self.samples: dict[str, Any] = dict(outer.samples) if outer and not closed else {}
        self.own: list[str] = []
        self.lines: list[Line] = []
        self.inputs: dict[str, Array] = {}
        self.count = 0
        self.is_closed = False
        self.refused: list[tuple[str, str]] = []
        self.nested = 0.0  # how likely a line is one with functions of its own

    # -- names and samples --------------------------------------------------------------------
    def fresh(self, letter: str = "v") -> str:
        self.root.count += 1
        return f"{letter}{self.root.count}"

    def parameter(self, sample: Any) -> str:
        name = self.fresh("a")
        self.samples[name] = sample
        self.own.append(name)
        return name

    def input(self, array: Array) -> str:
        root = self.root
        if self.is_closed:
            raise NothingFits
        name = root.fresh("x")
        root.inputs[name] = array
        with rg.backend("reference"):
            sample = rg.tensor(array)
        draw: Draw | None = self
        while draw is not None:
            draw.samples[name] = sample
            draw = draw.outer
        root.own.append(name)
        return name

    def keep(self, line: Line, sample: Any) -> None:
        self.lines.append(line)
        self.samples[line.name] = sample
        self.own.append(line.name)

    # -- choices ------------------------------------------------------------------------------
    def size(self) -> int:
        return self.r.choice(ODD if self.r.random() < 0.2 else SIZES)

    def shape(self, rank: int = -1) -> tuple[int, ...]:
        rank = self.r.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)) if rank < 0 else rank
        while True:
            found = tuple(self.size() for _ in range(rank))
            if np.prod(found) <= self.most:
                return found

    def dtype(self, kind: str) -> str:
        names = [n for n in (*self.floats, *self.others) if n in KINDS[kind]]
        if not names:
            raise NothingFits
        return self.r.choice(names)

    def array(self, shape: Sequence[int], dtype: str) -> Array:
        rng = np.random.default_rng(self.r.randrange(1 << 40))
        return sample_array(rng, tuple(shape), dtype)

    def pick(self, kind: str = "f", test: Callable[[Any], bool] = lambda x: True) -> str:
        """A value of a kind, rather a late one of this body; else a new input."""
        names = KINDS[kind]

        def fits(name: str) -> bool:
            x = self.samples[name]
            return x.dtype.name in names and test(x)

        found = [n for n in self.own if fits(n)]
        if not found or (self.outer and self.r.random() < 0.15):
            found += [n for n in self.samples if n not in self.own and fits(n)]
        if not found:
            raise NothingFits
        return self.r.choice(found[-4:] if self.r.random() < 0.7 else found)

    def given(self, kind: str, shape: Sequence[int], dtype: str = "") -> str:
        """A value of that shape: one that is there, or a new input."""
        shape = tuple(shape)
        if np.prod(shape) > self.most:
            raise NothingFits
        try:
            if self.r.random() < 0.7:
                return self.pick(
                    kind, lambda x: x.shape == shape and (not dtype or x.dtype.name == dtype)
                )
        except NothingFits:
            pass
        return self.input(self.array(shape, dtype or self.dtype(kind)))

    # -- gaps of templates --------------------------------------------------------------------
    def fill(self, template: str, kind: str) -> tuple[dict[str, str], tuple[str, ...]]:
        """Text for each gap of a template, and the names among it."""
        found: dict[str, str] = {}
        gaps = GAP.findall(template)
        for gap, own in sorted(gaps, key=lambda g: (g[0] not in FIRST, g[0] != "axis")):
            key = f"{gap}:{own}" if own else gap
            if key in found or gap == "it":
                continue
            found[key] = getattr(self, f"gap_{gap}")(found, own or kind)
        return found, tuple(dict.fromkeys(t for t in found.values() if t in self.samples))

    def _x(self, found: dict[str, str]) -> Any:
        return self.samples[
            next(v for k, v in found.items() if k.partition(":")[0] in FIRST and v in self.samples)
        ]

    def gap_x(self, found: dict[str, str], kind: str) -> str:
        return self.pick(kind)

    def gap_v(self, found: dict[str, str], kind: str) -> str:
        """Of at least one dimension."""
        return self.pick(kind, lambda x: x.ndim > 0)

    def gap_q(self, found: dict[str, str], kind: str) -> str:
        """Without a dimension of no elements."""
        return self.pick(kind, lambda x: x.ndim > 0 and 0 not in x.shape)

    def gap_I(self, found: dict[str, str], kind: str) -> str:
        """One dimension."""
        return self.pick(kind, lambda x: x.ndim == 1)

    def gap_M(self, found: dict[str, str], kind: str) -> str:
        """At least two dimensions."""
        return self.pick(kind, lambda x: x.ndim > 1)

    def gap_Q(self, found: dict[str, str], kind: str) -> str:
        """A square matrix, near a diagonal one, small."""
        n = self.r.choice((1, 2, 3, 4, 0))
        batch = self.r.choice(((), (), (2,), (1, 3), (0,)))
        dtype = self.dtype(kind)
        if dtype in ("float16", "bfloat16"):
            raise NothingFits
        x = self.array((*batch, n, n), dtype) * 0.15 + np.diag(np.arange(1, n + 1)).astype(dtype)
        return self.input(x.astype(dtype))

    def gap_y(self, found: dict[str, str], kind: str) -> str:
        """What can be broadcast with the first operand; sometimes a Python number."""
        x = self._x(found)
        if self.r.random() < 0.15 and kind in "fnmz":
            return self.r.choice(("2", "0.5", "-1", "3", "1.5", "True"))

        def fits(y: Any) -> bool:
            try:
                shape = np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return False
            return bool(np.prod(shape) <= self.most)

        if self.r.random() < 0.7:
            return self.pick(kind, fits)
        keep = self.r.randint(0, x.ndim)
        shape = [1 if self.r.random() < 0.3 else n for n in x.shape[x.ndim - keep :]]
        return self.given(kind, shape)

    gap_z = gap_y

    def gap_s(self, found: dict[str, str], kind: str) -> str:
        return self.given(kind, self._x(found).shape)

    def gap_S(self, found: dict[str, str], kind: str) -> str:
        """Of the same shape and dtype."""
        x = self._x(found)
        return self.given("a", x.shape, x.dtype.name)

    def gap_row(self, found: dict[str, str], kind: str) -> str:
        """Shaped as the last dimension."""
        x = self._x(found)
        return self.given("a", x.shape[-1:], x.dtype.name)

    def gap_mm(self, found: dict[str, str], kind: str) -> str:
        """What the first can be multiplied with."""
        x = self._x(found)
        batch = x.shape[:-2] if self.r.random() < 0.5 else ()
        shape = (x.shape[-1],) if self.r.random() < 0.2 else (*batch, x.shape[-1], self.size())
        return self.given("a", shape, x.dtype.name)

    def gap_axis(self, found: dict[str, str], kind: str) -> str:
        n = self._x(found).ndim
        if not n:
            raise NothingFits
        return str(self.r.randrange(-n, n))

    gap_axis2 = gap_axis

    def gap_newaxis(self, found: dict[str, str], kind: str) -> str:
        n = self._x(found).ndim
        return str(self.r.randrange(-n - 1, n + 1))

    def gap_axes(self, found: dict[str, str], kind: str) -> str:
        n = self._x(found).ndim
        if n == 0 or self.r.random() < 0.25:
            return "None"
        if self.r.random() < 0.4:
            return str(self.r.randrange(-n, n))
        return repr(tuple(self.r.sample(range(n), self.r.randint(1, n))))

    def gap_order(self, found: dict[str, str], kind: str) -> str:
        n = self._x(found).ndim
        return repr(tuple(self.r.sample(range(n), n)))

    def gap_flag(self, found: dict[str, str], kind: str) -> str:
        return str(self.r.random() < 0.4)

    gap_flag2 = gap_flag

    def gap_k(self, found: dict[str, str], kind: str) -> str:
        return str(self.r.randint(-3, 3))

    gap_k2 = gap_k

    def gap_n(self, found: dict[str, str], kind: str) -> str:
        return str(self.r.randint(1, 3))

    gap_n2 = gap_n

    def gap_n0(self, found: dict[str, str], kind: str) -> str:
        return str(self.r.randint(0, 3))

    def gap_p(self, found: dict[str, str], kind: str) -> str:
        return self.r.choice(("0.0", "1.0", "0.5", "0.3", "0.25"))

    def gap_num(self, found: dict[str, str], kind: str) -> str:
        return self.r.choice(("0.5", "-1.5", "2.0", "0.25", "1.0", "0.0"))

    def gap_int(self, found: dict[str, str], kind: str) -> str:
        return self.r.choice(("0", "1", "2", "3", "5"))

    def gap_dtype(self, found: dict[str, str], kind: str) -> str:
        return f"rg.{self.r.choice((*self.root.floats, *self.root.others))}"

    def gap_fdtype(self, found: dict[str, str], kind: str) -> str:
        return f"rg.{self.r.choice(self.root.floats)}"

    def gap_shape(self, found: dict[str, str], kind: str) -> str:
        """Another shape of as many elements."""
        x = self._x(found)
        parts = [int(n) for n in x.shape]
        self.r.shuffle(parts)
        if len(parts) > 1 and self.r.random() < 0.5:
            parts = [parts[0] * parts[1], *parts[2:]]
        if self.r.random() < 0.4:
            parts.insert(self.r.randint(0, len(parts)), 1)
        if parts and 0 not in parts and self.r.random() < 0.3:
            parts[self.r.randrange(len(parts))] = -1
        return repr(tuple(parts))

    def gap_to(self, found: dict[str, str], kind: str) -> str:
        """A shape to broadcast to."""
        x = self._x(found)
        more = [self.size()] if self.r.random() < 0.4 else []
        return repr((*more, *(self.size() if n == 1 else int(n) for n in x.shape)))

    def gap_newshape(self, found: dict[str, str], kind: str) -> str:
        return repr(self.shape())

    def gap_pads(self, found: dict[str, str], kind: str) -> str:
        x = self._x(found)
        return repr(tuple((self.r.randint(0, 2), self.r.randint(0, 2)) for _ in range(x.ndim)))

    def gap_times(self, found: dict[str, str], kind: str) -> str:
        n = self._x(found).ndim + self.r.choice((0, 0, 1, -1))
        return repr(tuple(self.r.choice((1, 1, 2, 0, 3)) for _ in range(max(n, 0))))

    def gap_positions(self, found: dict[str, str], kind: str) -> str:
        """Integers that are positions along the axis named before, else along the first one."""
        x = self._x(found)
        n = int(x.shape[int(found.get("axis", "0"))]) if x.ndim else 0
        if n == 0:
            return "rg.asarray([], dtype=rg.int64)"
        low = -n if kind == "i" else 0
        count = self.r.choice((1, 2, 3, 5))
        found_positions = [self.r.randrange(low, n) for _ in range(count)]
        return f"rg.asarray({found_positions})"

    def gap_ids(self, found: dict[str, str], kind: str) -> str:
        """A segment of four for each row, in any order."""
        x = self._x(found)
        ids = [self.r.randrange(4) for _ in range(int(x.shape[0]))]
        return f"rg.asarray({ids}, dtype=rg.int64)"

    def gap_along(self, found: dict[str, str], kind: str) -> str:
        """Positions along an axis, shaped as the first operand but there."""
        x, axis = self._x(found), int(found["axis"])
        shape = [int(n) for n in x.shape]
        n, shape[axis] = shape[axis], self.r.choice((1, 2, 3)) if shape[axis] else 0
        if n == 0 or np.prod(shape) > 60:
            raise NothingFits
        rng = np.random.default_rng(self.r.randrange(1 << 40))
        return f"rg.asarray({rng.integers(0, n, shape).tolist()}).reshape({tuple(shape)})"

    def gap_mask(self, found: dict[str, str], kind: str) -> str:
        x = self._x(found)
        return self.given("b", x.shape, "bool")

    def gap_key(self, found: dict[str, str], kind: str) -> str:
        return key_text(self.r, tuple(int(n) for n in self._x(found).shape), arrays=True)

    def gap_slices(self, found: dict[str, str], kind: str) -> str:
        return key_text(self.r, tuple(int(n) for n in self._x(found).shape), arrays=False)

    def feature(self, rank: int) -> str:
        """A batch of so many dimensions, in channels: at most two."""
        shape = (
            self.r.choice((1, 2, 3)),
            self.r.choice((1, 2)),
            *(self.r.choice((3, 4, 5, 7) if rank < 3 else (2, 3)) for _ in range(rank)),
        )
        return self.given("f", shape)

    def kernel(self, found: dict[str, str], rank: int, out_first: bool) -> str:
        x = self._c(found)
        channels, out = int(x.shape[1]), self.r.choice((1, 2, 3))
        first = (out, channels) if out_first else (channels, out)
        return self.given(
            "f", (*first, *(self.r.choice((1, 2, 3)) for _ in range(rank))), x.dtype.name
        )

    def _c(self, found: dict[str, str]) -> Any:
        return self.samples[next(v for k, v in found.items() if k[0] == "c")]

    def gap_c1(self, found: dict[str, str], kind: str) -> str:
        return self.feature(1)

    def gap_c2(self, found: dict[str, str], kind: str) -> str:
        return self.feature(2)

    def gap_c3(self, found: dict[str, str], kind: str) -> str:
        return self.feature(3)

    def gap_w3(self, found: dict[str, str], kind: str) -> str:
        return self.kernel(found, 3, True)

    def gap_w1(self, found: dict[str, str], kind: str) -> str:
        return self.kernel(found, 1, True)

    def gap_w2(self, found: dict[str, str], kind: str) -> str:
        return self.kernel(found, 2, True)

    def gap_t1(self, found: dict[str, str], kind: str) -> str:
        return self.kernel(found, 1, False)

    def gap_rows(self, found: dict[str, str], kind: str) -> str:
        return self.given("f", (self.r.choice((1, 2, 5)), self.r.choice((1, 2, 4))))

    def gap_labels(self, found: dict[str, str], kind: str) -> str:
        if "rows" not in found:  # of an embedding: any rows will do
            found["rows"] = self.gap_rows(found, kind)
        n, classes = self.samples[found["rows"]].shape
        limit = min(int(n), int(classes))
        return f"rg.asarray({[self.r.randrange(limit) for _ in range(int(n))]})"

    def gap_seed(self, found: dict[str, str], kind: str) -> str:
        return str(self.r.randrange(100))

    # -- lines --------------------------------------------------------------------------------
    def attempt(self, line: Line) -> bool:
        """Keep a line whose values are of use."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"), rg.backend("reference"):
                warnings.simplefilter("ignore")
                sample = self._run(line)
                if not isinstance(sample, rg.Tensor) or sample.dtype.name not in KINDS["a"]:
                    return False
                x = sample.numpy()
        except rg.RetrogradError as error:
            self.root.refused.append((line.text, str(error)))
            return False
        except NothingFits:
            return False
        except RecursionError:
            return False
        if x.size > self.most or x.ndim > 5:
            return False
        if x.dtype.kind not in "iub" and self.r.random() < 0.93:
            with np.errstate(all="ignore"):
                size = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
                if not np.all(size < 200):
                    return False
        with rg.backend("reference"):
            self.keep(line, rg.tensor(x))
        return True

    def _run(self, line: Line) -> Any:
        space: dict[str, Any] = {**WORDS, **self.samples}
        source = "\n".join(line.written("rg", False))
        try:
            exec(source, space)
        except rg.RetrogradError:
            raise
        except Exception as error:
            inputs = "; ".join(
                f"{n}: {self.samples[n].dtype.name}{tuple(self.samples[n].shape)}"
                for n in sorted(line.used())
                if n in self.samples
            )
            raise Failure(f"{type(error).__name__}: {error}\n{source}\n{inputs}") from error
        return space[line.name]

    def body(
        self, samples: Sequence[Any], steps: int, closed: bool = False
    ) -> tuple[Draw, list[str]]:
        """A draw of a function with such parameters, grown by some lines; one that is closed reads
        nothing from outside."""
        from tests.programs.generator import grow

        inner = Draw(self.r, self.floats, self.others, min(self.most, 150), self, closed)
        inner.is_closed = closed or self.is_closed
        names = [inner.parameter(s) for s in samples]
        grow(inner, steps)
        return inner, names

    def finished(self, parameters: Sequence[str], result: str, reads: Sequence[str]) -> Body:
        return Body(self.fresh("f"), tuple(parameters), tuple(self.lines), result, tuple(reads))


def key_text(r: random.Random, shape: tuple[int, ...], arrays: bool) -> str:
    """An index: integers, slices with any step, new axes, `...`, arrays of integers and masks."""
    parts: list[str] = []
    fancy = arrays and r.random() < 0.35
    length = r.randint(1, 3)
    for n in shape[: r.randint(0, len(shape))]:
        kind = r.random()
        if kind < 0.2 and n:
            parts.append(str(r.randrange(-n, n)))
        elif kind < 0.55 and fancy and n:
            parts.append(f"rg.asarray({[r.randrange(-n, n) for _ in range(length)]})")
        elif kind < 0.6 and fancy and n:
            parts.append(f"rg.asarray({[r.random() < 0.6 for _ in range(n)]})")
        else:
            ends = [None if r.random() < 0.4 else r.randint(-n - 1, n + 1) for _ in range(2)]
            by = r.choice(("", "", "1", "2", "-1", "-2", "3"))
            start, stop = ("" if e is None else str(e) for e in ends)
            parts.append(f"{start}:{stop}:{by}" if by else f"{start}:{stop}")
        if r.random() < 0.12:
            parts.append("None")
    if r.random() < 0.2:
        parts.insert(r.randint(0, len(parts)) if len(parts) < 1 else len(parts), "...")
    return ", ".join(parts) or "..."


def sample_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Small numbers, with zeros of both signs, ties, and the extremes of integers among them."""
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        x = np.asarray(rng.integers(max(info.min, -5), 9, shape)).astype(dtype)
        ends = np.array([info.min, info.max], dtype)
        return np.asarray(np.where(rng.random(shape) < 0.03, ends[rng.integers(0, 2, shape)], x))
    if dtype in COMPLEX:
        parts = rng.normal(0, 1, (2, *shape))
        return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)
    x = np.asarray(rng.normal(0, 1.2, shape))
    special = rng.choice([0.0, -0.0, 1.0, 0.5, -1.0], shape)
    x = np.where(rng.random(shape) < (0.15 if rng.random() < 0.4 else 0.0), special, x)
    if rng.random() < 0.02:
        x = np.where(rng.random(shape) < 0.1, rng.choice([np.nan, np.inf, -np.inf], shape), x)
    return np.asarray(x).astype(getattr(rg, dtype).dtype)
