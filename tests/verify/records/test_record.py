"""The form of a record."""

from __future__ import annotations

import numpy as np

from retrograd.ir import float16, int8
from retrograd.verify.records import RECORDS
from retrograd.verify.records.record import draw, integers, rng_for


def test_numbers_are_the_same_every_time() -> None:
    a, b = (draw(rng_for("x"), (5,), float16) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert a.dtype == np.float16
    assert {-128, 127} <= set(integers(rng_for("x"), (200,), int8).tolist())


def test_inputs_that_a_sample_is_differentiable_in() -> None:
    record = RECORDS["select"]
    (sample, *_) = record.smooth_samples()
    assert record.wrt_of(sample) == [1, 2]
    assert str(sample).startswith("select(")
