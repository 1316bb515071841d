"""Boxes and balls: what they hold, and what is no region."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import DTypeError, OptionError, ShapeError

Box, ball = rg.verify.Box, rg.verify.ball


def test_ends_are_broadcast_and_promoted():
    box = Box(np.zeros((2, 3), np.float32), np.float64(1))
    assert box.shape == (2, 3)
    assert box.dtype == np.float64
    assert box.upper.tolist() == [[1] * 3] * 2
    assert Box([0.0], [1.0]).dtype == np.float32
    assert Box([0], [1]).dtype == np.int64
    assert Box(rg.zeros(2), rg.ones(2)).shape == (2,)


def test_what_is_inside():
    box = Box([0.0, -math.inf], [1.0, 0.0])
    assert [0.5, -1e30] in box
    assert [1.0, 0.0] in box
    assert [1.5, 0.0] not in box
    assert [0.5] not in box
    assert [math.nan, 0.0] not in box


@pytest.mark.parametrize(
    ("lower", "upper", "error", "words"),
    [
        ([1.0], [0.0], OptionError, "empty"),
        ([0.0, 2.0], [1.0, 1.0], OptionError, r"at \(1,\)"),
        ([math.nan], [1.0], OptionError, "NaN in lower"),
        ([0.0], [math.nan], OptionError, "NaN in upper"),
        ([0.0, 1.0], [1.0, 2.0, 3.0], ShapeError, "broadcast"),
        ([1j], [2j], DTypeError, "complex"),
        (["a"], ["b"], DTypeError, "dtype"),
        ([[1.0], [1.0, 2.0]], 3.0, ShapeError, "array"),
    ],
)
def test_what_is_no_box(lower, upper, error, words):
    with pytest.raises(error, match=words):
        Box(lower, upper)


def test_a_box_does_not_change():
    box = Box([0.0], [1.0])
    with pytest.raises(AttributeError):
        box.lower = box.upper
    with pytest.raises(ValueError, match="read-only"):
        box.lower[0] = 2
    for again in (copy.copy(box), copy.deepcopy(box), pickle.loads(pickle.dumps(box))):
        assert again.lower == box.lower
        assert again.upper == box.upper
    assert repr(box) == "Box([0.], [1.], float32)"


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_a_ball_holds_what_is_near_however_it_is_rounded(dtype):
    rng = np.random.default_rng(3)
    x = rng.normal(size=500).astype(dtype)
    for eps in (0.0, 1e-3, 0.3, 1e-20):
        box = ball(x, eps)
        for d in (-eps, eps, *rng.uniform(-eps, eps, 5)):
            wide = x.astype(np.longdouble) + np.longdouble(d)  # exact, or nearly
            y = x.astype(np.float64) + d
            assert (box.lower.astype(np.longdouble) <= wide).all()
            assert (wide <= box.upper.astype(np.longdouble)).all()
            if dtype != np.float64:
                assert y.astype(np.float32).astype(dtype) in box
        assert box.dtype == dtype
        if eps == 0:
            assert (box.lower == x).all()
            assert (box.upper == x).all()


def test_a_ball_is_no_wider_than_need_be():
    box = ball(np.array([1.0, -3.0], np.float32), 0.5)
    assert box.lower.tolist() == [0.5, -3.5]
    assert box.upper.tolist() == [1.5, -2.5]
    clipped = ball([0.0, 0.9], 0.5, clip=(0, 1))
    assert clipped.lower[0] == 0
    assert clipped.upper[1] == 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ball([0.0], -1), OptionError),
        (lambda: ball([0.0], math.nan), OptionError),
        (lambda: ball([0.0], 1, norm=0.5), OptionError),
        (lambda: ball([0.0], 1, norm=cast(Any, "inf")), OptionError),
        (lambda: ball([0.0], 1, clip=cast(Any, 3)), OptionError),
        (lambda: ball([0], 1), DTypeError),
        (lambda: ball([math.nan], 1), OptionError),
    ],
)
def test_what_is_no_ball(call, error):
    with pytest.raises(error):
        call()
