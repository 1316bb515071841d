"""Each identity: it happens, and no bit of any result changes."""

import math

import pytest

import retrograd.ops.elementwise as e
from retrograd.ir import (
    DTYPES,
    Graph,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    full,
    int8,
    int32,
    int64,
    spec,
    uint8,
    uint32,
)
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Expand
from retrograd.passes import IDENTITIES, simplify
from retrograd.passes.algebra import lossless
from tests.passes.agreement import assert_kept, pairs, special_values, two_inputs

FLOATS = (float16, bfloat16, float32, float64)
INTEGERS = (int8, int32, uint32)
BOOLS = (bool_,)


def c(value, x):
    return full(value, x.type)


# (dtypes, what is written, the operations that are left)
SAME = {
    "x + -0.0": (FLOATS, lambda x, w: x + -0.0, []),
    "-0.0 + x": (FLOATS, lambda x, w: -0.0 + x, []),
    "x + 0, integers": (INTEGERS, lambda x, w: x + 0, []),
    "x + -w": (FLOATS + INTEGERS, lambda x, w: x + -w, ["sub"]),
    "-x + w": (FLOATS + INTEGERS, lambda x, w: -x + w, ["sub"]),
    "x - 0": (FLOATS + INTEGERS, lambda x, w: x - 0, []),
    "-0.0 - x": (FLOATS, lambda x, w: -0.0 - x, ["neg"]),
    "0 - x, integers": (INTEGERS, lambda x, w: 0 - x, ["neg"]),
    "x - -w": (FLOATS + INTEGERS, lambda x, w: x - -w, ["add"]),
    "x - x, integers": (INTEGERS, lambda x, w: x - x, ["constant"]),
    "x * 1": (FLOATS + INTEGERS, lambda x, w: x * 1, []),
    "1 * x": (FLOATS + INTEGERS, lambda x, w: 1 * x, []),
    "x * -1": (FLOATS, lambda x, w: x * -1, ["neg"]),
    "x * 0, integers": (INTEGERS, lambda x, w: x * 0, ["constant"]),
    "-x * -w": (FLOATS + INTEGERS, lambda x, w: -x * -w, ["mul"]),
    "-x * 3": (FLOATS, lambda x, w: -x * 3, ["constant", "mul"]),
    "-(x * 3)": (FLOATS, lambda x, w: -(x * 3), ["constant", "mul"]),
    "-(3 * x)": (FLOATS, lambda x, w: -(3 * x), ["constant", "mul"]),
    "x / 1": (FLOATS, lambda x, w: x / 1, []),
    "x / -1": (FLOATS, lambda x, w: x / -1, ["neg"]),
    "x / 8": (FLOATS, lambda x, w: x / 8, ["constant", "mul"]),
    "x / -0.25": (FLOATS, lambda x, w: x / -0.25, ["constant", "mul"]),
    "-x / -w": (FLOATS, lambda x, w: -x / -w, ["div"]),
    "-x / 3": (FLOATS, lambda x, w: -x / 3, ["constant", "div"]),
    "x // 1, integers": (INTEGERS, lambda x, w: e.floor_div(x, c(1, x)), []),
    "zmul(x, 1)": (FLOATS, lambda x, w: e.zmul(x, c(1, x)), []),
    "zmul(x, 2.5)": (FLOATS, lambda x, w: e.zmul(x, c(2.5, x)), ["constant", "mul"]),
    "zmul(-3, x)": (FLOATS, lambda x, w: e.zmul(c(-3, x), x), ["constant", "mul"]),
    "zmul(inf, x)": (FLOATS, lambda x, w: e.zmul(c(math.inf, x), x), ["constant", "mul"]),
    "zmul(0, x)": (FLOATS, lambda x, w: e.zmul(c(0, x), x), ["constant"]),
    "zmul(-0.0, x)": (FLOATS, lambda x, w: e.zmul(c(-0.0, x), x), ["constant"]),
    "zdiv(x, 1)": (FLOATS, lambda x, w: e.zdiv(x, c(1, x)), []),
    "zdiv(x, 3)": (FLOATS, lambda x, w: e.zdiv(x, c(3, x)), ["constant", "div"]),
    "zdiv(1, x)": (FLOATS, lambda x, w: e.zdiv(c(1, x), x), ["constant", "div"]),
    "zdiv(0, x)": (FLOATS, lambda x, w: e.zdiv(c(0, x), x), ["constant"]),
    "--x": (FLOATS + INTEGERS, lambda x, w: e.neg(e.neg(x)), []),
    "abs(abs(x))": (FLOATS + INTEGERS, lambda x, w: e.abs(e.abs(x)), ["abs"]),
    "abs(-x)": ((*FLOATS, int8, int32), lambda x, w: e.abs(-x), ["abs"]),
    "relu(relu(x))": (FLOATS + INTEGERS, lambda x, w: e.relu(e.relu(x)), ["relu"]),
    "x ** 0": (FLOATS + INTEGERS, lambda x, w: e.pow(x, c(0, x)), ["constant"]),
    "x ** 1, integers": (INTEGERS, lambda x, w: e.pow(x, c(1, x)), []),
    "max(x, x)": (FLOATS + INTEGERS, lambda x, w: e.max(x, x), []),
    "max(x, -inf)": (FLOATS, lambda x, w: e.max(x, c(-math.inf, x)), []),
    "min(inf, x)": (FLOATS, lambda x, w: e.min(c(math.inf, x), x), []),
    "where(true, x, w)": (FLOATS, lambda x, w: e.select(full(True, spec(x.shape, bool)), x, w), []),
    "where(x < w, x, x)": (FLOATS, lambda x, w: e.select(x < w, x, x), []),
    "where(not c, x, w)": (
        FLOATS,
        lambda x, w: e.select(e.bitwise_not(x < w), x, w),
        ["lt", "select"],
    ),
    "where(c, where(c, x, w), w)": (FLOATS, lambda x, w: twice(x < w, x, w), ["lt", "select"]),
    "where(c, true, false)": (FLOATS, lambda x, w: truth(x < w, True), ["lt"]),
    "where(c, false, true)": (FLOATS, lambda x, w: truth(x < w, False), ["lt", "bitwise_not"]),
    "x < x": (FLOATS + INTEGERS, lambda x, w: x < x, ["constant"]),
    "x == x, integers": (INTEGERS + BOOLS, lambda x, w: e.eq(x, x), ["constant"]),
    "x != x, integers": (INTEGERS + BOOLS, lambda x, w: e.ne(x, x), ["constant"]),
    "c == true": (BOOLS, lambda x, w: e.eq(x, c(True, x)), []),
    "false == c": (BOOLS, lambda x, w: e.eq(c(False, x), x), ["bitwise_not"]),
    "c != true": (BOOLS, lambda x, w: e.ne(x, c(True, x)), ["bitwise_not"]),
    "not not x": (BOOLS + INTEGERS, lambda x, w: e.bitwise_not(e.bitwise_not(x)), []),
    "not x == w": (FLOATS, lambda x, w: e.bitwise_not(e.eq(x, w)), ["ne"]),
    "not x != w": (FLOATS, lambda x, w: e.bitwise_not(e.ne(x, w)), ["eq"]),
    "x & x": (BOOLS + INTEGERS, lambda x, w: x & x, []),
    "c & true": (BOOLS, lambda x, w: x & c(True, x), []),
    "x & 0": (BOOLS + INTEGERS, lambda x, w: x & 0, ["constant"]),
    "x | 0": (BOOLS + INTEGERS, lambda x, w: x | 0, []),
    "c | true": (BOOLS, lambda x, w: x | c(True, x), ["constant"]),
    "x ^ x": (BOOLS + INTEGERS, lambda x, w: e.bitwise_xor(x, x), ["constant"]),
    "x ^ 0": (BOOLS + INTEGERS, lambda x, w: e.bitwise_xor(x, c(0, x)), []),
    "c ^ true": (BOOLS, lambda x, w: e.bitwise_xor(x, c(True, x)), ["bitwise_not"]),
    "x << 0": (INTEGERS, lambda x, w: e.shift_left(x, c(0, x)), []),
    "x >> 0": (INTEGERS, lambda x, w: e.shift_right(x, c(0, x)), []),
}

# What must stay, because the two sides differ for some value.
DIFFERENT = {
    "x + 0": (FLOATS, lambda x, w: x + 0),
    "0 - x": (FLOATS, lambda x, w: 0 - x),
    "x - -0.0": (FLOATS, lambda x, w: x - -0.0),
    "x - x": (FLOATS, lambda x, w: x - x),
    "x * 0": (FLOATS, lambda x, w: x * 0),
    "x / 3": (FLOATS, lambda x, w: x / 3),
    "x / 0": (FLOATS, lambda x, w: x / 0.0),
    "x == x": (FLOATS, lambda x, w: e.eq(x, x)),
    "abs(-x), unsigned": ((uint8, uint32), lambda x, w: e.abs(-x)),
    "x <= x": (FLOATS, lambda x, w: x <= x),
    "not x < w": (FLOATS, lambda x, w: e.bitwise_not(x < w)),
    "-(x - w)": (FLOATS, lambda x, w: -(x - w)),
    "zmul(x, -1)": (FLOATS, lambda x, w: e.zmul(x, c(-1, x))),
    "zmul(x, 0)": (FLOATS, lambda x, w: e.zmul(x, c(0, x))),
    "zmul(x, inf)": (FLOATS, lambda x, w: e.zmul(x, c(math.inf, x))),
    "zdiv(x, -2)": (FLOATS, lambda x, w: e.zdiv(x, c(-2, x))),
}


def twice(condition, x, w):
    return e.select(condition, e.select(condition, x, w), w)


def truth(condition, value):
    type = spec(condition.shape, bool)
    return e.select(condition, full(value, type), full(not value, type))


def cases(table):
    return [
        pytest.param(d, *rest, id=f"{name}, {d}") for name, (ds, *rest) in table.items() for d in ds
    ]


@pytest.mark.parametrize(("dtype", "written", "left"), cases(SAME))
def test_identity(dtype, written, left):
    arrays = pairs(dtype)
    x, w = two_inputs(dtype, arrays[0].size)
    g = assert_kept(simplify, Graph([x, w], [written(x, w)]), arrays)
    assert sorted(n.op for n in g.body) == sorted(left)


@pytest.mark.parametrize(("dtype", "written"), cases(DIFFERENT))
def test_what_is_not_an_identity_stays(dtype, written):
    x, w = two_inputs(dtype, 4)
    g = Graph([x, w], [written(x, w)])
    assert simplify(g) is g


def test_power_of_one():
    """To the bit, but for numbers so small that NumPy's vectorised power may give up on them."""
    x, w = two_inputs(float32, 3)
    assert simplify(Graph([x, w], [e.pow(x, full(1, x.type))])).outputs == (x,)


def test_a_planted_wrong_rule_is_caught(monkeypatch):
    planted = [lambda y, a, b: a if b.op == "constant" else None]
    monkeypatch.setitem(IDENTITIES, "add", planted)
    arrays = pairs(float32)
    x, w = two_inputs(float32, arrays[0].size)
    with pytest.raises(AssertionError, match="became"):
        assert_kept(simplify, Graph([x, w], [x + 0]), arrays)


def casts(source, target):
    return target.is_complex or not source.is_complex or target is bool_


@pytest.mark.parametrize("source", DTYPES, ids=str)
@pytest.mark.parametrize("middle", DTYPES, ids=str)
@pytest.mark.sample(30)
def test_casts_by_way_of_a_wider_dtype(source, middle):
    values = special_values(source)
    x = input_node(spec(values.shape, source))
    for target in DTYPES:
        if not (casts(source, middle) and casts(middle, target)):
            continue
        y = e.cast(e.Cast(middle)(x), target)
        g = assert_kept(simplify, Graph([x], [y]), [values])
        known = not (source.is_integer and target.is_integer) and not middle.is_complex
        if known and not target.is_complex and lossless(source, middle):
            assert len(g.body) <= 1


def test_lossless_means_it_comes_back():
    for source, target in [(int32, float64), (bool_, float16), (uint8, float16), (uint8, int32)]:
        assert lossless(source, target)
    for source, target in [(int32, float32), (int64, float64), (float16, bfloat16), (int8, uint8)]:
        assert not lossless(source, target)


def test_computed_before_it_is_repeated():
    x, s = input_node(spec((4,)), "x"), input_node(spec(()), "s")
    wide = Expand((100, 4), (0,))(x)
    everywhere = Expand((100, 4), (0, 1))(s)
    y = e.exp(wide * 2 + everywhere)
    g = simplify(Graph([x, s], [y]))
    assert g.outputs[0].op == "expand"
    assert all(n.shape in ((), (4,)) for n in g.body[:-1])


def test_what_is_repeated_otherwise_is_left_alone():
    x, w = input_node(spec((4,)), "x"), input_node(spec((100,)), "w")
    y = Expand((100, 4), (0,))(x) * Expand((100, 4), (1,))(w)
    g = Graph([x, w], [y])
    assert simplify(g) is g
