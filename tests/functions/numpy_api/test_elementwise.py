"""Elementwise functions under NumPy's names, against NumPy over dtypes, shapes and odd numbers."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_api.sweeps import SHAPES, agree, numbers

ONE = ["deg2rad", "rad2deg", "degrees", "radians", "fabs", "frexp", "modf", "spacing", "isposinf",
       "isneginf", "isreal", "iscomplex", "nan_to_num", "isrealobj", "iscomplexobj"]  # fmt: skip
TWO = ["fmax", "fmin", "fmod", "float_power", "heaviside", "logaddexp2", "divmod", "isclose",
       "allclose", "array_equal", "array_equiv"]  # fmt: skip


@pytest.mark.parametrize("name", ONE)
@pytest.mark.sample(4)
def test_one_argument(name: str) -> None:
    for seed, shape in enumerate(SHAPES):
        for wild in (False, True):
            agree(name, numbers(seed, shape, wild=wild))
    if name not in ("deg2rad", "rad2deg", "degrees", "radians", "frexp", "modf", "spacing"):
        agree(name, numbers(5, (3,), "int64"))
    if name in ("isreal", "iscomplex", "nan_to_num"):
        agree(name, numbers(5, (9,), "complex128", wild=True))


@pytest.mark.parametrize("name", TWO)
@pytest.mark.sample(4)
def test_two_arguments(name: str) -> None:
    for seed, shape in enumerate(SHAPES):
        for wild in (False, True):
            if name in ("logaddexp2",) and wild:
                continue
            agree(name, numbers(seed, shape, wild=wild), numbers(seed + 9, shape[-1:], wild=wild))
    if name in ("fmod", "fmax", "fmin"):
        agree(name, numbers(1, (20,), "int32"), numbers(2, (20,), "int32"))
        agree(name, numbers(1, (20,), "uint8"), numbers(2, (20,), "uint8"))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64", "uint8", "uint64"])
def test_integers(dtype: str) -> None:
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    a, b = (rng.integers(max(info.min + 1, -1000), min(info.max, 1000), 50).astype(dtype)
            for _ in range(2))  # fmt: skip
    a[:3], b[:3] = [0, 0, 6], [0, 4, 0]
    agree("gcd", a, b)
    agree("gcd", np.array([info.max, 1], dtype), np.array([info.max - 1, 0], dtype))
    agree("bitwise_count", np.array([info.min, info.max, 0, 1, 5], dtype))
    agree("lcm", (a % 8).astype(dtype), (b % 8).astype(dtype))
    with pytest.raises(rg.DTypeError, match="takes integers, not"):
        rg.gcd(1.5, 2)


def test_two_steps_of_ldexp() -> None:
    x = np.array([5e-324, 1.5, 1e300, np.inf, np.nan, 0.0])
    n = np.array([1100, -1074, -2000, 3, 2, 5])
    agree("ldexp", x, n)
    mantissa, exponent = rg.frexp(rg.asarray(x))
    back = rg.ldexp(mantissa, exponent).numpy()
    np.testing.assert_array_equal(back, x)


def test_gradients_at_the_seams() -> None:
    x = rg.tensor([rg.nan, 2.0, 1.0], requires_grad=True)
    rg.fmax(x, [0.5, 2.0, 3.0]).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.5, 0.0]
    z = rg.tensor([0.0, -7.0, 7.0], requires_grad=True)
    b = rg.tensor([3.0, 3.0, -3.0], requires_grad=True)
    rg.fmod(z, b).sum().backward()
    assert z.grad is not None
    assert z.grad.tolist() == [1.0, 1.0, 1.0]
    assert b.grad is not None
    assert b.grad.tolist() == [0.0, 2.0, 2.0]
    bad = rg.tensor([rg.nan, rg.inf, 2.0], requires_grad=True)
    (rg.nan_to_num(bad) * 3).sum().backward()
    assert bad.grad is not None
    assert bad.grad.tolist() == [0.0, 0.0, 3.0]


def test_half_precision() -> None:
    for dtype in (rg.float16, rg.bfloat16):
        x = rg.tensor([1.5, -2.25, rg.inf], dtype=dtype)
        assert rg.nan_to_num(x).dtype is dtype
        assert rg.nan_to_num(x)[2].item() == rg.finfo(dtype).max
        assert rg.deg2rad(x).dtype is dtype
        assert rg.fmod(x[:2], 1).tolist() == [0.5, -0.25]


def test_real_if_close() -> None:
    x = rg.tensor([1 + 1e-20j], dtype=rg.complex128)
    assert rg.real_if_close(x).dtype is rg.float64
    assert rg.real_if_close(x + 1j).dtype is rg.complex128
    with pytest.raises(rg.TraceError):
        rg.jit(rg.real_if_close)(x)
