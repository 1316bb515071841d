"""How random graphs grow: each maker gives a node made of some that are there, and whether it is
exact (see `fuzz_graphs`); or None where it finds nothing that fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from retrograd.ir import Node, bool_, float32, float64, int32, int64, product, uint8, uint32
from retrograd.ops import elementwise
from retrograd.ops.assume import Assume
from retrograd.ops.control.draw import Draw
from retrograd.ops.conv import Conv
from retrograd.ops.elementwise import ELEMENTWISE, Elementwise, cast
from retrograd.ops.identity import Alias, StopGradient
from retrograd.ops.index import Gather, RavelIndex, ScatterAdd
from retrograd.ops.leaf import Iota
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.pool import MaxPool, MaxPoolIndex
from retrograd.ops.random import implicit_gradients
from retrograd.ops.random.threefry import RandomBits
from retrograd.ops.reduce import (
    ArgMax,
    ArgMin,
    LogSumExp,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from retrograd.ops.scan import (
    CumArgMax,
    CumArgMin,
    CumMax,
    CumMin,
    CumProd,
    CumSum,
    LinearScan,
    LogCumSumExp,
)
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from retrograd.ops.shape import Concat, Flip, Pad, Permute, Reshape, Slice, SliceSet, expand
from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from retrograd.ops.special import functions as special_ops
from retrograd.ops.special import portable, scipy_functions
from retrograd.ops.windows import Fold, Windows
from tests.runtime.fuzz_control import CONTROL
from tests.runtime.fuzz_library import library, plane

if TYPE_CHECKING:
    from tests.runtime.fuzz_graphs import Fuzz

Made = tuple[Node, bool] | None
Maker = Callable[["Fuzz"], Made]

# Continuous, of bounded slope where floats are calm.
SMOOTH = ("sin", "cos", "tanh", "sech2", "sigmoid", "erf", "erfc", "atan", "asinh", "softplus",
          "exp", "expm1", "exp2", "cosh", "sinh")  # fmt: skip
FLAT = ("abs", "neg", "relu")
TESTS = ("isnan", "isinf", "isfinite")
# Functions with poles and edges, of what keeps them away from these.
EDGED = ("log", "log2", "log10", "log1p", "acosh", "cbrt", "rsqrt")
NARROW = ("asin", "acos", "atanh", "tan")
JUMPING = ("floor", "ceil", "trunc", "round", "sign")
EXACT_EDGED = ("sqrt", "reciprocal")
EXACT_PAIRS = ("div", "zmul", "zdiv", "zzmul")
PAIRS = ("add", "sub", "mul", "max", "min")
SMOOTH_PAIRS = ("logaddexp", "hypot", "atan2")
INTEGER_PAIRS = ("floor_div", "mod", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left",
                 "shift_right", "pow")  # fmt: skip
SPECIAL = sorted(
    {
        op.name
        for module in (special_ops, implicit_gradients, portable, scipy_functions)
        for op in vars(module).values()
        if isinstance(op, Elementwise)
    }
    - {name for name in vars(elementwise) if name in ELEMENTWISE}
)
WITH_PARAMETERS = ("zeta", "bessel_j", "bessel_ie", "expn", "yn", "hyp1f1", "hyp2f1", "lpmv",
                   "hyp1f1_da", "hyp1f1_db", "hyp2f1_da", "hyp2f1_dc")  # fmt: skip
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


# -- elementwise ----------------------------------------------------------------------------------
def away(f: Fuzz, x: Node) -> Node:
    """A positive number, not close to 0."""
    return f.do("max", f.do("abs", x), f.number(0.5, x))


def unary(f: Fuzz) -> Made:
    x = f.pick()
    assert x is not None
    if x.dtype is bool_:
        return f.do("bitwise_not", x), f.known(x)
    if not x.dtype.is_float:
        name = f.r.choice(("neg", "abs", "sign", "bitwise_not", "relu"))
        return f.do(name, x), f.known(x)
    if f.r.random() < 0.2:
        if f.r.random() < 0.5:
            return f.do(f.r.choice(EDGED), away(f, x) + 1.0), False
        return f.do(f.r.choice(NARROW), f.do("sin", x) * 0.5), False
    if f.known(x) and f.r.random() < 0.5:
        if f.r.random() < 0.2:
            return f.do(f.r.choice(TESTS), x), True
        if f.r.random() < 0.2:
            return f.do(f.r.choice(EXACT_EDGED), away(f, x)), True
        return f.do(f.r.choice((*FLAT, *JUMPING)), x), True
    name = f.r.choice((*FLAT, *SMOOTH))
    return f.do(name, x), name in FLAT and f.known(x)


def special(f: Fuzz) -> Made:
    """A special function of numbers between 1/4 and 3/4. Arguments that it has no derivative in,
    such as an order, are 2."""
    x = f.pick(lambda x: x.dtype.is_float)
    if x is None:
        return None
    u = f.do("sigmoid", x) * 0.5 + 0.25
    op = ELEMENTWISE[f.r.choice(SPECIAL)]
    args = [u] * len(op.derivatives)
    if op.name in WITH_PARAMETERS:
        args[:-1] = [f.number(2, x)] * (len(args) - 1)
    return op(*args) * 0.05, False


def binary(f: Fuzz) -> Made:
    x = f.pick()
    y = x and f.pick(lambda y: y.type == x.type)
    if x is None or y is None:
        return None
    exact = f.known(x, y)
    if x.dtype is bool_:
        return f.do(f.r.choice(("bitwise_and", "bitwise_or", "bitwise_xor", "max")), x, y), exact
    if not x.dtype.is_float:
        return f.do(f.r.choice((*PAIRS, *INTEGER_PAIRS)), x, y), exact
    name = f.r.choice((*PAIRS, *PAIRS, *(EXACT_PAIRS if exact else SMOOTH_PAIRS)))
    if name in ("div", "zdiv", "atan2"):
        y = away(f, y)
    return f.do(name, x, y), exact and name not in SMOOTH_PAIRS


def signs(f: Fuzz) -> Made:
    """Of numbers: NaN has a sign, but none that counts."""
    x = f.pick(lambda x: x.dtype.is_float and f.known(x))
    y = x and f.pick(lambda y: y.type == x.type and f.known(y))
    if x is None or y is None:
        return None
    x, y = (f.do("select", f.do("eq", v, v), v, f.number(1, v)) for v in (x, y))
    name = f.r.choice(("copysign", "nextafter", "signbit"))
    return f.do(name, *([x] if name == "signbit" else [x, y])), True


def compare(f: Fuzz) -> Made:
    x = f.pick(f.known)
    y = x and f.pick(lambda y: y.type == x.type and f.known(y))
    return (f.do(f.r.choice(COMPARE), x, y), True) if x and y else None


def choose(f: Fuzz) -> Made:
    c = f.pick(lambda c: c.dtype is bool_ and f.known(c))
    x = c and f.pick(lambda x: x.shape == c.shape)
    y = x and f.pick(lambda y: y.type == x.type)
    return (f.do("select", c, x, y), f.known(x, y)) if c and x and y else None


def convert(f: Fuzz) -> Made:
    x = f.pick()
    assert x is not None
    if x.dtype.is_float and not f.known(x):
        to = f.r.choice((float32, float64))
        return cast(x, to), False
    to = f.r.choice((f.float, f.float, f.integer, float32, int32, bool_, uint8))
    if not x.dtype.is_float and x.dtype is not bool_ and to.is_half:
        return None  # rounded once by some and twice by others
    return cast(x, to), True


def leaf(f: Fuzz) -> Made:
    return f.leaf(), True


def count(f: Fuzz) -> Made:
    shape = f.shape()
    if not shape:
        return None
    return Iota(shape, f.r.randrange(len(shape)), f.r.choice((int32, int64, float32)))(), True


# -- movement -------------------------------------------------------------------------------------
def widen(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank < 3)
    if x is None:
        return None
    axis = f.r.randrange(x.type.rank + 1)
    shape = list(x.shape)
    shape.insert(axis, f.r.choice(f.sizes))
    return expand(x, tuple(shape), (axis,)), f.known(x)


def reshape(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0)
    if x is None:
        return None
    shape = list(x.shape)
    how = f.r.randrange(4)
    if how == 0 and len(shape) > 1:
        at = f.r.randrange(len(shape) - 1)
        shape[at : at + 2] = [product(shape[at : at + 2])]
    elif how == 1:
        shape = shape[::-1]
    elif how == 2:
        d = shape[-1]
        if isinstance(d, int) and d > 3 and d % 2 == 0:
            shape[-1:] = [d // 2, 2]
    else:
        shape.insert(f.r.randrange(len(shape) + 1), 1)
    return (Reshape(tuple(shape))(x), f.known(x)) if len(shape) < 5 else None


def permute(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 1)
    if x is None:
        return None
    return Permute(tuple(f.r.sample(range(x.type.rank), x.type.rank)))(x), f.known(x)


def cut(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0)
    if x is None:
        return None
    starts, stops, steps = [], [], []
    for d in x.shape:
        starts.append(f.r.choice((0, 0, 1, 2)))
        stops.append(d - f.r.choice((0, 0, 1)))
        steps.append(f.r.choice((1, 1, 2, 3)))
    return Slice(tuple(starts), tuple(stops), tuple(steps))(x), f.known(x)


def put(f: Fuzz) -> Made:
    """A block of an array, reversed, in the place that it was cut from."""
    found = cut(f)
    if found is None:
        return None
    part, known = found
    s: Any = part.prim
    return SliceSet(s.starts, s.stops, s.steps)(part.inputs[0], Flip((0,))(part)), known


def flip(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0)
    return (Flip((f.r.randrange(x.type.rank),))(x), f.known(x)) if x else None


def surround(f: Fuzz) -> Made:
    x = f.pick()
    fill = x and f.pick(lambda y: y.shape == () and y.dtype is x.dtype)
    if x is None or fill is None:
        return None
    rank = range(x.type.rank)
    low, high = (tuple(f.r.choice((0, 0, 0, 1, 2, -1)) for _ in rank) for _ in range(2))
    gaps = tuple(f.r.choice((0, 0, 0, 1, 2)) for _ in rank)
    return Pad(low, high, gaps)(x, fill), f.known(x, fill)


def join(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0)
    if x is None:
        return None
    axis = f.r.randrange(x.type.rank)
    rest = lambda y: (*y.shape[:axis], *y.shape[axis + 1 :])
    fits = lambda y: y.dtype is x.dtype and y.type.rank == x.type.rank and rest(y) == rest(x)
    parts = [x]
    for _ in range(f.r.choice((1, 1, 2, 5))):
        y = f.pick(fits)
        assert y is not None
        parts.append(y)
    return Concat(axis)(*parts), f.known(*parts)


# -- reductions and scans -------------------------------------------------------------------------
def reduce(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0)
    if x is None:
        return None
    axes = tuple(sorted(f.r.sample(range(x.type.rank), f.r.randint(0, x.type.rank))))
    if x.dtype is bool_:
        return f.r.choice((ReduceAny, ReduceAll))(axes)(x), f.known(x)
    ops = [ReduceSum, ReduceSum, ReduceProd]
    if all(f.positive(x.shape[a]) for a in axes):
        ops += [ReduceMax, ReduceMin]
    if x.dtype.is_float:
        ops.append(LogSumExp)
    op = f.r.choice(ops)
    if op is ReduceProd and x.dtype.is_float:
        x = f.do("sin", x)
        return op(axes)(x), False
    return op(axes)(x), f.known(x) and (op in (ReduceMax, ReduceMin) or not x.dtype.is_float)


def extremum(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0 and f.known(x) and x.dtype is not bool_)
    if x is None:
        return None
    axis = f.r.randrange(x.type.rank)
    if not f.positive(x.shape[axis]):
        return None
    return f.r.choice((ArgMax, ArgMin))(axis)(x), True


def running(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0 and x.dtype is not bool_)
    if x is None:
        return None
    axis, reverse = f.r.randrange(x.type.rank), f.r.random() < 0.5
    if f.known(x) and f.r.random() < 0.3:
        return f.r.choice((CumArgMax, CumArgMin))(axis, reverse)(x), True
    ops = [CumSum, CumSum, CumMax, CumMin, CumProd, LinearScan]
    op = f.r.choice([*ops, LogCumSumExp] if x.dtype.is_float else ops)
    exact = f.known(x) and (op in (CumMax, CumMin) or not x.dtype.is_float)
    bounded = f.do("sin", x) if x.dtype.is_float else x
    if op is LinearScan:
        return op(axis, reverse)(bounded, x), exact
    return op(axis, reverse)(bounded if op is CumProd else x), exact


def order(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0)
    if x is None:
        return None
    axis, down = f.r.randrange(x.type.rank), f.r.random() < 0.5
    if f.known(x) and f.r.random() < 0.4:
        count = f.r.choice((-1, -1, 0, 1 if f.positive(x.shape[axis]) else 0))
        return ArgSort(axis, down, count)(x), True
    return Sort(axis, down)(x), f.known(x)


def find(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0 and f.known(x))
    shared = 0 if x is None else f.r.choice((0, x.type.rank - 1))
    values = x and f.pick(
        lambda v: v.dtype is x.dtype and f.known(v) and v.shape[:shared] == x.shape[:shared]
    )
    if x is None or values is None:
        return None
    row = Sort(x.type.rank - 1)(x)
    if shared == 0:
        row = Sort(0)(Reshape((x.type.size,))(x))
    return SearchSorted(f.r.random() < 0.5, shared)(row, values), True


# -- gathers, scatters, contractions --------------------------------------------------------------
def positions(f: Fuzz, x: Node, axis: int, shared: int) -> Node | None:
    """An exact index along an axis of x."""
    i = f.pick(
        lambda i: i.dtype.kind in ("int", "uint") and f.known(i)
        and i.shape[:shared] == x.shape[:shared] and i.type.rank >= shared
    )  # fmt: skip
    if i is None or not f.positive(x.shape[axis]):
        return None
    i = cast(i, int64)
    return f.do("mod", i, f.length(x.shape[axis], i))


def select_rows(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0)
    if x is None:
        return None
    axis = f.r.randrange(x.type.rank)
    shared = f.r.randint(0, axis)
    i = positions(f, x, axis, shared)
    if i is None or i.type.rank + x.type.rank - shared - 1 > 4:
        return None
    if f.r.random() < 0.3:
        i = f.do("sub", i, f.length(x.shape[axis], i))  # counted from the back
    return Gather(axis, shared)(x, i), f.known(x)


def select_places(f: Fuzz) -> Made:
    """At positions on two axes, which become one."""
    x = f.pick(lambda x: x.type.rank > 1)
    if x is None:
        return None
    axis = f.r.randrange(x.type.rank - 1)
    sizes = x.shape[axis : axis + 2]
    first = positions(f, x, axis, 0)
    if first is None or not f.positive(sizes[1]) or first.type.rank + x.type.rank - 2 > 4:
        return None
    second = f.do("mod", first, f.length(sizes[1], first))
    if f.r.random() < 0.3:
        first = f.do("sub", first, f.length(sizes[0], first))  # counted from the back
    joined = Reshape((*x.shape[:axis], product(sizes), *x.shape[axis + 2 :]))(x)
    return Gather(axis)(joined, RavelIndex(sizes, axis)(first, second)), f.known(x)


def scatter(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0 and x.dtype is not bool_)
    if x is None:
        return None
    axis = f.r.randrange(x.type.rank)
    shared = f.r.randint(0, axis)
    i = positions(f, x, axis, shared)
    if i is None or i.type.rank + x.type.rank - shared - 1 > 4:
        return None
    shape = (*x.shape[:axis], *i.shape[shared:], *x.shape[axis + 1 :])
    updates = f.pick(lambda u: u.shape == shape and u.dtype is x.dtype) or Gather(axis, shared)(
        x, i
    )
    op = f.r.choice((ScatterAdd, ScatterAdd, ScatterSet, ScatterMul, ScatterMax, ScatterMin))
    exact = f.known(x, updates) and (op not in (ScatterAdd, ScatterMul) or not x.dtype.is_float)
    if op is ScatterMul and x.dtype.is_float:
        updates = f.do("sin", updates)
    return op(axis, shared)(x, i, updates), exact


def contract(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0 and x.dtype is not bool_)
    y = x and f.pick(lambda y: y.dtype is x.dtype and not set(y.shape).isdisjoint(x.shape))
    if x is None or y is None:
        return None
    pairs: list[tuple[int, int]] = []
    order = list(range(x.type.rank))
    f.r.shuffle(order)
    for i in order:
        taken = [j for _, j in pairs]
        free = [j for j, e in enumerate(y.shape) if e == x.shape[i] and j not in taken]
        if free:
            pairs.append((i, f.r.choice(free)))
    most = f.r.randint(1, len(pairs))
    batch = f.r.choice((0, 0, 1, min(2, most))) if most else 0
    used = pairs[:most]
    b, c = used[:batch], used[batch:]
    sides = [tuple(p[k] for p in side) for side in (c, b) for k in (0, 1)]
    dot = DotGeneral(*sides)(x, y)
    return (dot, f.known(x, y) and not x.dtype.is_float) if dot.type.rank < 5 else None


# -- windows --------------------------------------------------------------------------------------
def windows(f: Fuzz) -> Made:
    x = f.pick(lambda x: 0 < x.type.rank < 4 and x.dtype is not bool_)
    if x is None:
        return None
    rank = f.r.randint(1, min(2, x.type.rank))
    sizes, strides, dilations = (
        tuple(f.r.choice(c) for _ in range(rank)) for c in ((1, 2, 3), (1, 1, 2), (1, 1, 2))
    )
    y = Windows(sizes, strides, dilations)(x)
    if f.r.random() < 0.5 or y.type.rank > 5:
        z = Fold(x.shape[-rank:], strides, dilations)(y)
        return z, f.known(x) and not x.dtype.is_float
    return y, f.known(x)


def pool(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 0 and x.dtype is not bool_)
    if x is None:
        return None
    rank = f.r.randint(1, min(2, x.type.rank))
    parts = [
        tuple(f.r.choice(c) for _ in range(rank))
        for c in ((1, 2, 3), (1, 2, 3), (1, 1, 2), (0, 0, 1), (0, 1))
    ]
    if f.known(x) and f.r.random() < 0.4:
        return MaxPoolIndex(*parts)(x), True
    return MaxPool(*parts)(x), f.known(x)


def convolve(f: Fuzz) -> Made:
    x = f.pick(lambda x: x.type.rank > 2 and x.dtype is not bool_)
    w = x and f.pick(
        lambda w: w.dtype is x.dtype and w.type.rank == x.type.rank and w.shape[1] == x.shape[1]
    )
    if x is None or w is None:
        return None
    rank = x.type.rank - 2
    if f.r.random() < 0.7:
        ends = tuple(min(d, 3) if isinstance(d, int) else 1 for d in w.shape[2:])
        w = Slice((0,) * w.type.rank, (*w.shape[:2], *ends), (1,) * w.type.rank)(w)
    strides, low, high, dilated, apart = (
        tuple(f.r.choice(c) for _ in range(rank))
        for c in ((1, 1, 2), (0, 1, 2, -1), (0, 1, 2), (1, 1, 2), (1, 1, 2))
    )
    return Conv(strides, low, high, dilated, apart)(x, w), f.known(x, w) and not x.dtype.is_float


# -- others ---------------------------------------------------------------------------------------
def noise(f: Fuzz) -> Made:
    key = f.pick(lambda k: k.dtype is uint32 and k.type.rank > 0 and k.shape[-1] == 2)
    if key is None:
        return None
    if key.type.rank == 1 and f.r.random() < 0.3:
        return Draw(f.r.choice(("unit", "normal32", "logistic")), f.shape())(key), True
    bits = RandomBits(f.shape(f.r.choice((0, 1, 2))))(key)
    if f.r.random() < 0.3:
        return bits, True
    unit = f.do("shift_right", bits, f.number(8, bits))
    return cast(cast(unit, int32), float32) * 2.0**-24, True


def steer(f: Fuzz) -> Made:
    x = f.pick()
    assert x is not None
    size = f.r.choice((*x.shape, *f.sizes))
    relation, other = f.r.choice((("!=", -1), ("<=", size + 1)))
    assume = Assume(size, relation, other, "of what is always so")
    return f.r.choice((Alias(), StopGradient(), assume))(x), f.known(x)


MAKERS: tuple[Maker, ...] = (
    *[unary] * 4, *[binary] * 7, compare, choose, choose, convert, convert, leaf, count,
    *[widen] * 3, reshape, reshape, permute, permute, cut, put, flip, surround, join,
    *[reduce] * 4, extremum, running, running, order, find, select_rows, select_places,
    scatter, scatter, contract, contract, contract,
    windows, pool, convolve, convolve, noise, steer, special, special, signs, library, library,
    plane, *CONTROL,
)  # fmt: skip

# What networks are made of.
ROWS: tuple[Maker, ...] = (
    *[unary] * 3, *[binary] * 6, choose, convert, *[widen] * 4, permute, *[reduce] * 4,
    *[contract] * 4, select_rows, scatter, running, extremum, order, find, reshape, join, cut,
)  # fmt: skip
