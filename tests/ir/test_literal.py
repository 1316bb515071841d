import contextlib
import math
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrograd.errors import FormatError
from retrograd.ir import DTYPES, Dim, spec
from retrograd.ir.literal import LiteralReader, quote, show, unquote

N = Dim("N")

PLAIN = [
    (True, "true"),
    (None, "none"),
    (-3, "-3"),
    (10**30, "1" + "0" * 30),
    (0.1, "0.1"),
    (-0.0, "-0.0"),
    (math.inf, "inf"),
    (-math.inf, "-inf"),
    (1e-300, "1e-300"),
    ((), "()"),
    ((1,), "(1,)"),
    ((1, (2, N), "a"), '(1, (2, N), "a")'),
    (2 * N + 1, "2*N + 1"),
    ((N + 1) // 2 * 3, "3*((N + 1) // 2)"),
    (spec((N, 3)), "f32[N, 3]"),
    (DTYPES[0], "b1"),
    (Dim("f32"), "`f32`"),
    (Dim("inf") + Dim("true") * 2, "`inf` + 2*`true`"),
    (np.asarray(np.float32(0.1)), "f32(0.1)"),
    (np.array([[1, 2], [3, 4]]), "i64[2, 2](1, 2, 3, 4)"),
    (np.array([True, False]), "b1[2](true, false)"),
    (np.zeros((0, 2), np.float32), "f32[0, 2]()"),
    (np.array([0.1, -0.0, np.nan], ml_dtypes.bfloat16), "bf16[3](0.100097656, -0.0, nan)"),
]


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(("value", "text"), PLAIN, ids=[t for _, t in PLAIN])
def test_written_as_and_read_back(value, text):
    assert show(value) == text
    reader = LiteralReader(text)
    assert same(value, reader.value())
    assert reader.rest == ""


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (5, 7), (0, 4)], ids=str)
@pytest.mark.sample(10)
def test_arrays_of_any_bits_survive(dtype, shape):
    rng = np.random.default_rng(7)
    for _ in range(20):
        count = math.prod(shape)
        if dtype.kind == "bool":
            array = np.asarray(rng.random(shape) < 0.5)
        else:
            array = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype.dtype).reshape(shape)
        back = LiteralReader(show(array)).value()
        assert same(array, back)


@given(st.floats(width=32, allow_nan=True))
def test_float32_survives(x):
    array = np.asarray(x, np.float32)
    assert same(array, LiteralReader(show(array)).value())


@given(st.floats(allow_nan=False))
def test_float_survives(x):
    assert same(x, LiteralReader(show(x)).value())


@given(st.text(st.characters()))
def test_any_string_survives_on_one_line(text):
    quoted = quote(text)
    assert quoted.isprintable()
    assert unquote(quoted) == text
    assert LiteralReader(quoted).value() == text


def test_surrogates_stay_apart():
    text = "\ud83d\ude00"
    assert unquote(quote(text)) == text


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "expected a value, found the end of the line"),
        ("(1, 2", "expected ',' or '\\)', found the end of the line"),
        ("(1 2)", "expected ',' or '\\)'"),
        ("1 // 0", "expected a size: .*by zero"),
        ("1.5 + 2", "expected an integer or a symbolic size, found 1.5"),
        ("f32[-1]", "not negative"),
        ("f32[f32]", "expected an integer or a symbolic size, found f32"),
        ("f32[2](1.0)", "expected 2 elements, found 1"),
        ("f32[N](1.0)", "definite shape"),
        ("u8(256)", "expected an element of uint8, found '256'"),
        ("f32(1_0)", "expected an element of float32"),
        ("f32(0x123)", "expected an element of float32"),
        ("b1(1)", "expected an element of bool"),
        ('f32[20]("AAAA")', "expected 80 bytes of base64, found 3"),
        ('f32[20]("!")', "expected base64"),
        ("f32[99999999999999](1.0)", "expected 99999999999999 elements"),
        ('"\\q"', "found '..q'"),
        ('"\\u{110000}"', "expected one of"),
        ("`1`", "expected '`'"),
        ("(" * 5000, "brackets within one another"),
        ("f32[" * 5000, "brackets within one another"),
        ("-" * 5000, "expected a value"),
    ],
)
def test_damage_is_told(text, match):
    with pytest.raises(FormatError, match=match):
        LiteralReader(text).value()


@pytest.mark.parametrize("value", [[1], {1}, 1j, np.array(["a"], object), np.float32(1)])
def test_what_has_no_text_is_an_error(value):
    with pytest.raises((FormatError, TypeError)):
        show(value)


@given(st.text('()[]{},=+-*/"`@#%:;. N12e3xftruinoe_\\', max_size=30))
def test_reading_anything_fails_only_as_a_format_error(text):
    with contextlib.suppress(FormatError):
        LiteralReader(text).value()
