"""Records of the elementwise ops: per op a function of Python numbers, and where it is smooth."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    DTYPES,
    Dim,
    TensorType,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    uint8,
)
from retrograd.lazy_import import need
from retrograd.ops.elementwise import ELEMENTWISE, Cast
from retrograd.verify.records.record import (
    BOOLS,
    FLOATS,
    INTEGERS,
    SHAPES,
    Array,
    Failure,
    Record,
    Rng,
    Sample,
    Symbolic,
    draw,
    integers,
    rng_for,
)

SMOOTH_SHAPES: tuple[tuple[int, ...], ...] = ((), (5,), (2, 0), (2, 1, 2, 2))
Span = tuple[float, float]


def near(rng: Rng, shape: tuple[int, ...], span: Span, avoid: Sequence[float] = ()) -> Array:
    """Numbers in an interval, none within 0.02 of a point to avoid."""
    x = np.asarray(rng.uniform(*span, shape))
    for point in avoid:
        x = np.where(np.abs(x - point) < 0.02, x + 0.05, x)
    return x


@dataclasses.dataclass(frozen=True)
class InMpmath:
    """A function of mpmath's numbers, as one of Python's that is right to the last bit.

    `f` gets mpmath's context, in which the digits are set, and the numbers; or is the name of one
    of its functions.
    """

    f: Callable[..., Any] | str

    def __call__(self, *xs: Any) -> Any:
        mp = need("mpmath", "the meaning of an op in more digits").mp
        with mp.workdps(40):
            if any(isinstance(x, complex) for x in xs):
                return complex(self.exact(mp, *[mp.mpc(x) for x in xs]))
            return float(self.exact(mp, *[mp.mpf(x) for x in xs]))

    def in_context(self, *xs: Any) -> Any:
        """Of mpmath's numbers, in its own context, in which digits are set."""
        return self.exact(need("mpmath", "the meaning of an op in more digits").mp, *xs)

    def exact(self, mp: Any, *xs: Any) -> Any:
        """Of mpmath's numbers, in the digits that are set."""
        return getattr(mp, self.f)(*xs) if isinstance(self.f, str) else self.f(mp, *xs)


in_mp = InMpmath


def each(f: Callable[..., Any], op: Any, *arrays: Array) -> Array:
    """Apply a function of Python numbers to each element; integers wrap."""
    dtype = op.result.dtype if op.result else arrays[-1].dtype
    y = np.empty(arrays[0].shape, dtype)
    for i in np.ndindex(y.shape):
        value = f(*[number(a[i]) for a in arrays])
        if np.issubdtype(dtype, np.integer):
            value = wrap(value, dtype)
        y[i] = value
    return y


def number(x: Any) -> Any:
    """A NumPy number as a Python number."""
    if x.dtype == np.bool_:
        return bool(x)
    if np.issubdtype(x.dtype, np.integer):
        return int(x)
    return complex(x) if np.issubdtype(x.dtype, np.complexfloating) else float(x)


def wrap(value: int, dtype: Any) -> int:
    ends = np.iinfo(dtype)
    return int((int(value) - ends.min) % (ends.max - ends.min + 1) + ends.min)


def elementwise(
    name: str,
    f: Callable[..., Any],
    spans: Sequence[Span] = ((-2, 2),),
    wrt: Sequence[int] | None = None,
    avoid: Sequence[float] = (),
    apart: bool = False,
    absolute: float = 0,
) -> Record:
    """`spans`: where to draw each input; `apart`: keep inputs from being nearly equal."""
    op = ELEMENTWISE[name]
    arity = len(op.derivatives)
    spans = tuple(spans) * (arity if len(spans) == 1 else 1)

    def floats(rng: Rng, shape: tuple[int, ...]) -> list[Array]:
        xs = [near(rng, shape, span, avoid) for span in spans]
        if apart:
            for i in range(1, arity):
                for j in range(i):
                    close = np.abs(xs[i] - xs[j]) < 0.05
                    xs[i] = np.where(close, xs[j] + 0.06 * i, xs[i])
        return [np.asarray(x) for x in xs]

    def samples() -> Iterator[Sample]:
        rng = rng_for(name)
        for dtype in DTYPES:
            if dtype.kind not in op.kinds:
                continue
            smooth = dtype in (float64, complex128)
            for shape in SMOOTH_SHAPES if smooth else ((7,),):
                if dtype.is_inexact:
                    xs = [np.asarray(x, dtype.dtype) for x in floats(rng, shape)]
                if dtype.is_complex:
                    ys = [rng.uniform(0.1, 0.9, shape) for _ in spans]
                    xs = [np.asarray(x + 1j * y, dtype.dtype) for x, y in zip(xs, ys, strict=True)]
                if not dtype.is_inexact:
                    xs = [draw(rng, (40,) if shape == (7,) else shape, dtype) for _ in range(arity)]
                yield Sample(op, tuple(xs), smooth)
        for shape in SHAPES:
            dtype = float32 if "float" in op.kinds else int32
            xs = [draw(rng, shape, dtype) for _ in range(arity)]
            if dtype is float32:
                xs = [np.asarray(x, np.float32) for x in floats(rng, shape)]
            yield Sample(op, tuple(xs))

    given = tuple(wrt if wrt is not None else (i for i, d in enumerate(op.derivatives) if d))
    n = Dim("N")
    kind = float64 if "float" in op.kinds else int32
    symbolic = Symbolic(
        op, (TensorType(kind, (n, 2)),) * arity, ({"N": 3}, {"N": 0}), *spans[0], below=3
    )
    return Record(
        name,
        samples,
        partial(each, f),
        given,
        absolute=absolute,
        failures=failures(op, arity),
        symbolic=(symbolic,),
    )


def failures(op: Any, arity: int) -> tuple[Failure, ...]:
    """Other shapes, other dtypes, and a dtype of a kind that the op does not take."""
    good = float32 if "float" in op.kinds else int32
    x, wide = TensorType(good, (2, 3)), TensorType(good, (3, 2))
    found = []
    if arity > 1:
        found.append(Failure(op, (*[x] * (arity - 1), wide), ShapeError))
        found.append(Failure(op, (*[x] * (arity - 1), x.with_shape((2,))), ShapeError))
        if {"int", "uint"} <= set(op.kinds):
            other = TensorType(uint8, (2, 3))
            found.append(Failure(op, (*[x] * (arity - 1), other), DTypeError))
        else:
            other = TensorType(float64, (2, 3))
            found.append(Failure(op, (*[x] * (arity - 1), other), DTypeError))
    kinds = (bool_, float32, int32, uint8, complex64)
    bad = [d for d in kinds if d.kind not in op.kinds]
    found += [Failure(op, (TensorType(d, (2, 3)),) * arity, DTypeError) for d in bad]
    return tuple(found)


def table(rows: dict[str, Any]) -> list[Record]:
    return [
        elementwise(name, *(row if isinstance(row, tuple) else (row,)))
        for name, row in rows.items()
    ]


UNARY = {
    "neg": operator.neg,
    "abs": (abs, [(-2, 2)], None, [0]),
    "sign": lambda x: (x > 0) - (x < 0),
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
    "reciprocal": (lambda x: 1 / x, [(-2, 2)], None, [0, 0.05, -0.05]),
    "sqrt": (in_mp("sqrt"), [(0.2, 3)]),
    "rsqrt": (in_mp(lambda mp, x: 1 / mp.sqrt(x)), [(0.2, 3)]),
    "cbrt": (in_mp(lambda mp, x: mp.sign(x) * mp.cbrt(abs(x))), [(-3, -0.2)]),
    "exp": in_mp("exp"),
    "exp2": in_mp(lambda mp, x: mp.mpf(2) ** x),
    "expm1": in_mp("expm1"),
    "log": (in_mp("log"), [(0.2, 3)]),
    "log2": (in_mp(lambda mp, x: mp.log(x, 2)), [(0.2, 3)]),
    "log10": (in_mp("log10"), [(0.2, 3)]),
    "log1p": (in_mp("log1p"), [(-0.8, 3)]),
    "sin": in_mp("sin"),
    "cos": in_mp("cos"),
    "tan": (in_mp("tan"), [(-1.3, 1.3)]),
    "asin": (in_mp("asin"), [(-0.9, 0.9)]),
    "acos": (in_mp("acos"), [(-0.9, 0.9)]),
    "atan": in_mp("atan"),
    "sinh": in_mp("sinh"),
    "cosh": in_mp("cosh"),
    "tanh": in_mp("tanh"),
    "sech2": in_mp(lambda mp, x: mp.sech(x) ** 2),
    "asinh": in_mp("asinh"),
    "acosh": (in_mp("acosh"), [(1.2, 4)]),
    "atanh": (in_mp("atanh"), [(-0.9, 0.9)]),
    "erf": in_mp("erf"),
    "erfc": in_mp("erfc"),
    "relu": (lambda x: max(x, 0), [(-2, 2)], None, [0]),
    "sigmoid": in_mp(lambda mp, x: 1 / (1 + mp.exp(-x))),
    "softplus": in_mp(lambda mp, x: mp.log1p(mp.exp(x))),
    "isnan": math.isnan,
    "signbit": lambda x: math.copysign(1, x) < 0,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
    "bitwise_not": lambda x: not x if isinstance(x, bool) else ~x,
}


def _shift(x: int, count: int, bits: int) -> int:
    return x << count if 0 <= count < bits else 0


def _integer_pow(a: int, b: int) -> int:
    """Exponents may be huge, and every integer dtype has at most 64 bits."""
    return 0 if b < 0 else pow(a, b, 1 << 64)


BINARY = {
    "zmul": lambda a, b: 0 if a == 0 else a * b,
    "zzmul": lambda a, b: 0 if a == 0 or b == 0 else a * b,
    "zdiv": (lambda a, b: 0 if a == 0 else a / b, [(-2, 2), (0.3, 2)]),
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": (operator.truediv, [(-2, 2), (0.3, 2)]),
    "floor_div": (lambda a, b: a // b if b else 0, [(-2, 2), (0.3, 2)], ()),
    "mod": (lambda a, b: a % b if b else a, [(1.1, 1.8), (0.55, 0.95)], (0, 1), [1]),
    "pow": (
        lambda a, b: _integer_pow(a, b) if isinstance(a, int) else in_mp("power")(a, b),
        [(0.3, 2), (-2, 2)],
    ),
    "logaddexp": (
        in_mp(lambda mp, a, b: mp.log(mp.exp(a) + mp.exp(b))),
        [(-2, 2)],
        None,
        (),
        False,
        2,  # near 0 it cancels
    ),
    "hypot": (in_mp("hypot"), [(0.2, 2), (-2, 2)]),
    "atan2": (in_mp("atan2"), [(0.2, 2), (-2, 2)]),
    "copysign": (math.copysign, [(-2, 2)], None, [0]),
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "max": (max, [(-2, 2)], None, (), True),
    "min": (min, [(-2, 2)], None, (), True),
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}


def select_samples() -> Iterator[Sample]:
    rng, op = rng_for("select"), ELEMENTWISE["select"]
    for dtype in DTYPES:
        c = draw(rng, (7,), BOOLS[0])
        smooth = dtype in (float64, complex128)
        yield Sample(op, (c, draw(rng, (7,), dtype), draw(rng, (7,), dtype)), smooth)
    for shape in SHAPES:
        c = draw(rng, shape, BOOLS[0])
        yield Sample(op, (c, draw(rng, shape, float64), draw(rng, shape, float64)), True)


def shift_samples(name: str) -> Iterator[Sample]:
    rng, op = rng_for(name), ELEMENTWISE[name]
    for dtype in INTEGERS:
        bits = 8 * dtype.itemsize
        counts = np.array([0, 1, bits - 1, bits, bits + 1, 2 * bits, 3, bits // 2] * 5)
        if dtype.kind == "int":
            counts[::6] = -1
        yield Sample(op, (integers(rng, (40,), dtype), counts.astype(dtype.dtype)))
    for shape in SHAPES:
        yield Sample(op, (integers(rng, shape, int32), np.full(shape, 3, np.int32)))


def shifted(op: Any, a: Array, b: Array) -> Array:
    bits = 8 * a.dtype.itemsize
    if op.name == "shift_left":
        return each(lambda x, n: _shift(x, n, bits), op, a, b)
    return each(lambda x, n: x >> n if n >= 0 else (-1 if x < 0 else 0), op, a, b)


def next_samples() -> Iterator[Sample]:
    rng, op = rng_for("nextafter"), ELEMENTWISE["nextafter"]
    for dtype in FLOATS:
        info = ml_dtypes.finfo(dtype.dtype)
        tiny = float(info.smallest_subnormal)
        odd = [math.nan, math.inf, 0.0, tiny, 3 * tiny, float(info.tiny), float(info.max), 1.0, 1.5]
        ends = np.array([s * x for x in odd for s in (1, -1)]).astype(dtype.dtype)
        a, b = np.meshgrid(ends, ends)
        yield Sample(op, (a, b))
        yield Sample(op, (draw(rng, (40,), dtype), draw(rng, (40,), dtype)))
    yield Sample(op, (rng.uniform(-1, 1, (2, 3)), rng.uniform(2, 3, (2, 3))), smooth=True)
    for shape in SHAPES:
        yield Sample(op, (draw(rng, shape, float32), draw(rng, shape, float32)))


def next_number(op: Any, a: Array, b: Array) -> Array:
    """By counting: with the sign taken off, the bits of floats are ordered like the floats."""
    whole = np.dtype(f"i{a.dtype.itemsize}")
    lowest = np.iinfo(whole).min
    y = np.empty_like(a)
    for i in np.ndindex(a.shape):
        x, to = float(a[i]), float(b[i])
        if math.isnan(x) or math.isnan(to) or x == to:
            y[i] = x + to if x != to else b[i]
            continue
        bits = int(a[i].view(whole))
        place = bits if bits >= 0 else lowest - bits
        place += 1 if to > x else -1
        # Between the first positive and the first negative number stand two zeros.
        back = place if place > 0 or (place == 0 and x > 0) else lowest - place
        y[i] = np.array(back, whole).view(a.dtype)
    return y


def to_dtype(op: Any, x: Array) -> Array:
    """A conversion in Python numbers."""
    kind, dtype = op.dtype.kind, op.dtype.dtype
    y = np.empty(x.shape, dtype)
    for i in np.ndindex(x.shape):
        v = number(x[i])
        if kind == "bool":
            y[i] = v != 0
        elif kind == "complex":
            y[i] = v
        elif kind == "float":
            with np.errstate(over="ignore"):
                y[i] = np.float32(v) if dtype.itemsize == 2 else v
        elif isinstance(v, float):
            ends = np.iinfo(dtype)
            inside = 0 if math.isnan(v) else max(min(v, ends.max), ends.min)
            y[i] = min(int(inside), ends.max)
        else:
            y[i] = wrap(v, dtype)
    return y


def cast_samples() -> Iterator[Sample]:
    rng = rng_for("cast")
    odd = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -1.5, 127.9, 255.5, 300, 3e9, -3e9, 1e19]
    for source in DTYPES:
        x = draw(rng, (12,), source)
        if source.is_float:
            with np.errstate(over="ignore"):
                x = np.concatenate([x, np.array(odd).astype(source.dtype)])
        for target in DTYPES:
            if not source.is_complex or target.is_complex or target is bool_:
                wide = source in (float64, complex128) and target is complex128
                yield Sample(Cast(target), (np.clip(np.nan_to_num(x), -9, 9) if wide else x,), wide)
    for shape in SHAPES:
        yield Sample(Cast(float64), (draw(rng, shape, float64),), True)
        yield Sample(Cast(float32), (draw(rng, shape, float64),))


def records() -> list[Record]:
    c, n = TensorType(bool_, (2, 3)), Dim("N")
    x, wide = TensorType(float32, (2, 3)), TensorType(float32, (3, 2))
    select = ELEMENTWISE["select"]
    double = TensorType(float64, (n, 2))
    special = [
        Record(
            "select",
            select_samples,
            lambda op, c, a, b: each(lambda c, a, b: a if c else b, op, c, a, b),
            (1, 2),
            failures=(
                Failure(select, (x, x, x), DTypeError),
                Failure(select, (c.with_shape((2,)), x, x), ShapeError),
                Failure(select, (c, x, wide), ShapeError),
                Failure(select, (c, x, x.with_dtype(float64)), DTypeError),
            ),
            symbolic=(
                Symbolic(
                    select,
                    (TensorType(bool_, (n, 2)), double, double),
                    ({"N": 3}, {"N": 0}),
                ),
            ),
        ),
        elementwise(
            "clamp",
            lambda x, lo, hi: min(max(x, lo), hi),
            [(-2, 2), (-1, 0), (0.1, 1)],
            (0, 1, 2),
            (),
            True,
        ),
        Record(
            "cast",
            cast_samples,
            to_dtype,
            (0,),
            failures=(Failure(Cast(float32), (TensorType(complex64, (2,)),), DTypeError),),
            symbolic=(Symbolic(Cast(float64), (double,), ({"N": 3}, {"N": 0})),),
        ),
    ]
    following = ELEMENTWISE["nextafter"]
    special.append(
        Record(
            "nextafter",
            next_samples,
            next_number,
            (0,),
            failures=failures(following, 2),
            symbolic=(Symbolic(following, (double, double), ({"N": 3}, {"N": 0})),),
        )
    )
    for name in ("shift_left", "shift_right"):
        op = ELEMENTWISE[name]
        kind = TensorType(int32, (n,))
        special.append(
            Record(
                name,
                partial(shift_samples, name),
                shifted,
                failures=failures(op, 2),
                symbolic=(Symbolic(op, (kind, kind), ({"N": 3}, {"N": 0}), below=4),),
            )
        )
    return [*table(UNARY), *table(BINARY), *special]
