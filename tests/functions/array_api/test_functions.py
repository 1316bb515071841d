"""Every function of the standard that is not elementwise on drawn arguments, against NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from tests.functions.array_api.inputs import (
    ALL,
    FLOATING,
    FLOATS,
    INTEGERS,
    MIXED,
    NUMERIC,
    REAL,
    Draw,
    axis_of,
    broadcasting,
    compare,
    inputs,
    shapes,
)
from tests.functions.array_api.test_names import SECTIONS
from tests.sampling import examples

BACKENDS = st.sampled_from(["reference", "llvm"])
# What is called with the namespace and the arrays, and the arguments, drawn.
Case = tuple[Callable[..., Any], list[Any]]
Make = Callable[[Draw, str], Case]
CASES: dict[str, Make] = {}
SIZES = st.integers(0, 4)


def case(names: str) -> Callable[[Make], Make]:
    def register(f: Make) -> Make:
        CASES.update(dict.fromkeys(names.split(), f))
        return f

    return register


def pick(draw: Draw, *values: Any) -> Any:
    return draw(st.sampled_from(values))


def dtype_of(m: Any, name: str) -> Any:
    return getattr(m, "bool" if name == "bool" else name)


def options(draw: Draw, **choices: Any) -> dict[str, Any]:
    """Some of the keyword arguments, each with a value drawn or given."""
    return {k: v for k, v in choices.items() if draw(st.booleans())}


# -- creation --------------------------------------------------------------------------------------
@case("arange")
def _(draw: Draw, name: str) -> Case:
    start, stop = draw(st.integers(-5, 5)), draw(st.integers(-5, 5))
    step, dtype = pick(draw, 1, -1, 2, -3, 0.5, -0.75), pick(draw, "int32", "int64", *FLOATS)
    step = step if dtype[0] == "f" else round(step) or 1
    return lambda m: m.arange(start, stop, step, dtype=dtype_of(m, dtype)), []


@case("linspace")
def _(draw: Draw, name: str) -> Case:
    start, stop, num = pick(draw, -1.5, 0, 3), pick(draw, 2.0, -4.0), draw(st.integers(0, 6))
    dtype, ends = pick(draw, *FLOATING), draw(st.booleans())
    return lambda m: m.linspace(start, stop, num, dtype=dtype_of(m, dtype), endpoint=ends), []


@case("eye")
def _(draw: Draw, name: str) -> Case:
    rows, columns, dtype = draw(SIZES), draw(st.none() | SIZES), pick(draw, *ALL)
    k = draw(st.integers(-5, 5))
    return lambda m: m.eye(rows, columns, k=k, dtype=dtype_of(m, dtype)), []


@case("ones zeros empty full ones_like zeros_like empty_like full_like")
def _(draw: Draw, name: str) -> Case:
    x, shape, dtype = draw(inputs(ALL)), draw(shapes()), pick(draw, *ALL)
    shape = pick(draw, shape, 3)
    value = [True] if name.startswith("full") else []
    if name.endswith("like"):
        keys = options(draw, dtype=dtype)
        call = lambda m, x: getattr(m, name)(
            x, *value, **{k: dtype_of(m, v) for k, v in keys.items()}
        )
    else:
        call = lambda m, x: getattr(m, name)(shape, *value, dtype=dtype_of(m, dtype))
    # Of what is empty, all but the values.
    return (lambda m, x: m.zeros_like(call(m, x)) if "empty" in name else call(m, x)), [x]


@case("asarray astype")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(["bool", "uint8", "int16", *FLOATS]))
    to = pick(draw, *[d for d in ALL if x.array.dtype.kind != "f" or d[0] != "u"])
    to = to if x.array.dtype.kind != "f" or "int8" not in to else "int32"  # a thousand is drawn
    if name == "astype":
        copy = draw(st.booleans())
        return lambda m, x: m.astype(x, dtype_of(m, to), copy=copy), [x]
    return lambda m, x: m.asarray(x, dtype=dtype_of(m, to), copy=True), [x]


@case("from_dlpack")
def _(draw: Draw, name: str) -> Case:
    return lambda m, x: m.from_dlpack(x), [draw(inputs(ALL))]


@case("meshgrid")
def _(draw: Draw, name: str) -> Case:
    dtype, keys = pick(draw, *ALL), options(draw, indexing=pick(draw, "xy", "ij"))
    xs = [draw(inputs([dtype], (draw(SIZES),))) for _ in range(draw(st.integers(1, 3)))]
    return lambda m, *xs: m.meshgrid(*xs, **keys), xs


@case("tril triu")
def _(draw: Draw, name: str) -> Case:
    k = draw(st.integers(-5, 5))
    return lambda m, x: getattr(m, name)(x, k=k), [draw(inputs(ALL, shapes(2)))]


# -- indexing, searching, sets, sorting ------------------------------------------------------------
@case("take take_along_axis")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL, shapes(1, sizes=(1, 2, 3))))
    axis = draw(axis_of(x, none=False))
    shape = list(x.array.shape)
    shape[axis] = draw(SIZES)
    index = draw(inputs(["int64", "int32"], tuple(shape) if "along" in name else (shape[axis],)))
    for part in (index.array, index.base):
        part[...] = part % x.array.shape[axis] - x.array.shape[axis] * (part % 2)
    return lambda m, x, i: getattr(m, name)(x, i, axis=axis), [x, index]


@case("argmax argmin")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(REAL, shapes(sizes=(1, 2, 3))))
    keys = options(draw, axis=draw(axis_of(x)), keepdims=True)
    return lambda m, x: getattr(m, name)(x, **keys), [x]


@case("nonzero")
def _(draw: Draw, name: str) -> Case:
    return lambda m, x: m.nonzero(x), [draw(inputs(ALL, shapes(1)))]


@case("where")
def _(draw: Draw, name: str) -> Case:
    a, b = pick(draw, *MIXED)
    first, second, third = draw(broadcasting(3))
    xs = [draw(inputs(["bool"], first)), draw(inputs([a], second)), draw(inputs([b], third))]
    return lambda m, c, x, y: m.where(c, x, y), xs


@case("searchsorted")
def _(draw: Draw, name: str) -> Case:
    dtype, side = pick(draw, *REAL), pick(draw, "left", "right")
    row, values = draw(inputs([dtype], (draw(SIZES),))), draw(inputs([dtype]))
    order = np.argsort(row.array, stable=True)
    if draw(st.booleans()):
        return lambda m, x, v: m.searchsorted(x, v, side=side, sorter=m.asarray(order)), [
            row,
            values,
        ]
    return lambda m, x, v: m.searchsorted(m.sort(x), v, side=side), [row, values]


@case("unique_all unique_counts unique_inverse unique_values")
def _(draw: Draw, name: str) -> Case:

    def call(m: Any, x: Any) -> Any:
        if m is rg:
            return getattr(rg, name)(x)
        full = np.unique_all(x)  # sorted, as `unique_values` of NumPy is not
        fields = {"unique_all": full, "unique_values": full.values}
        pairs = {"unique_counts": (full.values, full.counts)}
        return {**fields, **pairs}.get(name, (full.values, full.inverse_indices))

    return call, [draw(inputs(ALL))]


@case("sort argsort")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(REAL, shapes(1)))
    axis, down = draw(axis_of(x, none=False)), draw(st.booleans())

    def call(m: Any, x: Any) -> Any:
        if m is rg:
            return getattr(rg, name)(x, axis=axis, descending=down, stable=True)
        if not down:
            return getattr(np, name)(x, axis=axis, stable=True)
        y = getattr(np, name)(np.flip(x, axis), axis=axis, stable=True)
        return np.flip(y if name == "sort" else x.shape[axis] - 1 - y, axis)

    return call, [x]


# -- manipulation ----------------------------------------------------------------------------------
@case("broadcast_arrays")
def _(draw: Draw, name: str) -> Case:
    xs = [draw(inputs(ALL, s)) for s in draw(broadcasting(3))]
    return lambda m, *xs: m.broadcast_arrays(*xs), xs


@case("broadcast_to")
def _(draw: Draw, name: str) -> Case:
    shape = draw(shapes())
    (small,) = draw(broadcasting(1, shape))
    return lambda m, x: m.broadcast_to(x, shape), [draw(inputs(ALL, small))]


@case("concat stack")
def _(draw: Draw, name: str) -> Case:
    a, b = pick(draw, *MIXED)
    x = draw(inputs([a], shapes(1)))
    n = x.array.ndim + (name == "stack")
    axis = draw(st.none() if name == "concat" and draw(st.booleans()) else st.integers(-n, n - 1))
    shape = list(x.array.shape)
    if name == "concat" and axis is not None:
        shape[axis] = draw(SIZES)
    y = draw(inputs([b], tuple(shape)))
    return lambda m, *xs: getattr(m, name)(xs, axis=axis), [x, y, x]


@case("expand_dims")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL))
    axis = draw(st.integers(-x.array.ndim - 1, x.array.ndim))
    return lambda m, x: m.expand_dims(x, axis=axis), [x]


@case("squeeze")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL, shapes(1)))
    ones = [i for i, n in enumerate(x.array.shape) if n == 1]
    axes = tuple(i - x.array.ndim * draw(st.booleans()) for i in ones if draw(st.booleans()))
    axis = axes[0] if len(axes) == 1 and draw(st.booleans()) else axes
    return lambda m, x: m.squeeze(x, axis), [x]


@case("flip")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL))
    axis = draw(axis_of(x, several=True))
    return lambda m, x: m.flip(x, axis=axis), [x]


@case("moveaxis")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL, shapes(1)))
    n, k = x.array.ndim, draw(st.integers(1, x.array.ndim))
    source, target = (tuple(draw(st.permutations(range(n)))[:k]) for _ in range(2))
    if k == 1 and draw(st.booleans()):
        return lambda m, x: m.moveaxis(x, source[0] - n, target[0]), [x]
    return lambda m, x: m.moveaxis(x, source, target), [x]


@case("permute_dims")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL))
    axes = tuple(draw(st.permutations(range(x.array.ndim))))
    return lambda m, x: m.permute_dims(x, axes), [x]


@case("repeat")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL, shapes(1)))
    axis = draw(axis_of(x))
    size = x.array.size if axis is None else x.array.shape[axis]
    counts = [draw(st.integers(0, 3)) for _ in range(size)]
    if draw(st.booleans()):
        times = draw(st.integers(0, 3))
        return lambda m, x: m.repeat(x, times, axis=axis), [x]
    return lambda m, x: m.repeat(x, m.asarray(np.array(counts, int)), axis=axis), [x]


@case("tile")
def _(draw: Draw, name: str) -> Case:
    times = draw(shapes(0, 4, (0, 1, 2, 3)))
    return lambda m, x: m.tile(x, times), [draw(inputs(ALL, shapes(0, 2)))]


@case("reshape")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL, shapes(sizes=(1, 2, 3, 4))))
    shape = list(draw(st.permutations([*x.array.shape, 1])))
    if draw(st.booleans()):
        shape[0] = -1
    shape = [x.array.size] if draw(st.booleans()) else shape
    keys = options(draw, copy=True)
    return lambda m, x: m.reshape(x, tuple(shape), **keys), [x]


@case("roll")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL))
    axis, shift = draw(axis_of(x, several=True)), draw(st.integers(-6, 6))
    if isinstance(axis, tuple):
        return lambda m, x: m.roll(x, tuple(shift + i for i in range(len(axis))), axis=axis), [x]
    return lambda m, x: m.roll(x, shift, axis=axis), [x]


@case("unstack")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL, shapes(1)))
    axis = draw(axis_of(x, none=False))
    return lambda m, x: m.unstack(x, axis=axis), [x]


# -- statistics, utility ---------------------------------------------------------------------------
@case("all any count_nonzero")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(ALL))
    keys = options(draw, axis=draw(axis_of(x, several=True)), keepdims=True)

    def call(m: Any, x: Any) -> Any:
        y = getattr(m, name)(x, **keys)
        return y if m is rg else np.asarray(y, np.int64 if name == "count_nonzero" else bool)

    return call, [x]


@case("max min")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(REAL, shapes(sizes=(1, 2, 3)), wild=True))
    keys = options(draw, axis=draw(axis_of(x, several=True)), keepdims=True)
    return lambda m, x: getattr(m, name)(x, **keys), [x]


@case("mean std var")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(FLOATING if name == "mean" else FLOATS))
    keys = options(draw, axis=draw(axis_of(x, several=True)), keepdims=True)
    if name != "mean":
        keys |= options(draw, correction=pick(draw, 0.0, 1, 0.5))
    return lambda m, x: getattr(m, name)(x, **keys), [x]


@case("sum prod")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(NUMERIC))
    keys = options(draw, axis=draw(axis_of(x, several=True)), keepdims=True)
    to = {"f": "float64", "c": "complex128"}.get(x.array.dtype.kind, "int32")
    wide = options(draw, dtype=to)
    return lambda m, x: getattr(m, name)(
        x, **keys, **{k: dtype_of(m, v) for k, v in wide.items()}
    ), [x]


@case("cumulative_sum cumulative_prod")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(NUMERIC, shapes(1)))
    keys = {"axis": draw(axis_of(x, none=x.array.ndim == 1)), **options(draw, include_initial=True)}
    to = options(draw, dtype="complex128")
    return lambda m, x: getattr(m, name)(x, **keys, **{k: dtype_of(m, v) for k, v in to.items()}), [
        x
    ]


@case("diff")
def _(draw: Draw, name: str) -> Case:
    x = draw(inputs(NUMERIC, shapes(1)))
    axis, n = draw(axis_of(x, none=False)), draw(st.integers(0, 3))
    shape = list(x.array.shape)
    shape[axis] = draw(SIZES)
    side = draw(inputs([str(x.array.dtype)], tuple(shape)))
    ends = options(draw, prepend=True, append=True)

    def call(m: Any, x: Any, y: Any) -> Any:
        return m.diff(x, n=n, axis=axis, **dict.fromkeys(ends, y))

    return call, [x, side]


# -- products and transforms -----------------------------------------------------------------------
@case("matmul")
def _(draw: Draw, name: str) -> Case:
    a, b = pick(draw, *[p for p in MIXED if "bool" not in p])
    n, k, p = draw(SIZES), draw(SIZES), draw(SIZES)
    first, second = draw(broadcasting(2))
    left = (k,) if draw(st.booleans()) else (*first[:2], n, k)
    right = (k,) if draw(st.booleans()) else (*second[:2], k, p)
    if len(first) != len(second) or len(first) > 2:  # batches that broadcast for sure
        left, right = left[-2:], right[-2:]
    return lambda m, x, y: m.matmul(x, y), [draw(inputs([a], left)), draw(inputs([b], right))]


@case("matrix_transpose")
def _(draw: Draw, name: str) -> Case:
    return lambda m, x: m.matrix_transpose(x), [draw(inputs(ALL, shapes(2)))]


@case("tensordot")
def _(draw: Draw, name: str) -> Case:
    a, b = pick(draw, *[p for p in MIXED if "bool" not in p])
    x = draw(inputs([a], shapes(2, 3)))
    n, k = x.array.ndim, draw(st.integers(0, 2))
    mine = tuple(draw(st.permutations(range(n)))[:k])
    y = draw(inputs([b], (*(x.array.shape[i] for i in mine), draw(SIZES))))
    if draw(st.booleans()):
        y = draw(inputs([b], (*x.array.shape[n - k :], draw(SIZES))))
        return lambda m, x, y: m.tensordot(x, y, axes=k), [x, y]
    pair = (mine, tuple(range(k)))
    return lambda m, x, y: m.tensordot(x, y, axes=pair), [x, y]


@case("vecdot")
def _(draw: Draw, name: str) -> Case:
    a, b = pick(draw, *[p for p in MIXED if "bool" not in p])
    x = draw(inputs([a], shapes(1)))
    axis = draw(st.integers(-x.array.ndim, -1))
    return lambda m, x, y: m.vecdot(x, y, axis=axis), [x, draw(inputs([b], x.array.shape))]


# -- dtypes ----------------------------------------------------------------------------------------
def test_dtype_functions() -> None:
    for a, b in MIXED:
        one, two = (dtype_of(rg, name) for name in (a, b))
        assert str(rg.result_type(one, two)) == str(np.result_type(a, b))
        x = rg.zeros(2, dtype=one)
        assert str(rg.result_type(x, two)) == str(np.result_type(a, b))
        assert rg.can_cast(one, two) == rg.can_cast(x, two) == np.can_cast(a, b)
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating"]
    kinds += ["complex floating", "numeric"]
    for name in ALL:
        for kind in kinds:
            right = np.isdtype(np.dtype(name), kind)
            assert rg.isdtype(dtype_of(rg, name), kind) == right
            listed = rg.__array_namespace_info__().dtypes(kind=kind)
            assert (name in listed) == right
        assert rg.isdtype(dtype_of(rg, name), dtype_of(rg, name))
        assert rg.isdtype(dtype_of(rg, name), tuple(kinds))
    limits: list[tuple[Any, Any]] = [(rg.iinfo(dtype_of(rg, d)), np.iinfo(d)) for d in INTEGERS]
    limits += [(rg.finfo(dtype_of(rg, d)), np.finfo(d)) for d in FLOATING]
    for mine, theirs in limits:
        assert (mine.bits, mine.max, mine.min) == (theirs.bits, theirs.max, theirs.min)
        if isinstance(theirs, np.finfo):
            assert mine.eps == theirs.eps
            assert mine.smallest_normal == theirs.smallest_normal


ELSEWHERE = {
    "elementwise": "test_array_api_elementwise.py",
    "data type": "test_dtype_functions, test_dtypes.py",
    "inspection": "test_dtype_functions, test_array_api.py",
    "linalg": "test_array_api_linalg.py",
    "fft": "test_array_api_linalg.py",
}


def test_every_function_is_tested() -> None:
    wanted = {n for s, names in SECTIONS.items() if s not in ELSEWHERE for n in names}
    assert set(CASES) - {"astype"} == wanted


@pytest.mark.parametrize("name", CASES)
@examples(30)
@given(data=st.data(), backend=BACKENDS)
@pytest.mark.sample(16)
def test_function(name: str, data: st.DataObject, backend: str) -> None:
    call, xs = data.draw(st.composite(CASES[name])(name))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        right = call(np, *(x.array for x in xs))
    with rg.backend(backend):
        compare(call(rg, *(x.tensor() for x in xs)), right, (name, xs))
