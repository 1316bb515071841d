"""Slices by NumPy, and their gradients to the bit of those that are recorded."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import trace_buffer
from retrograd.tuning import TUNING

KEYS = [
    ((0,), (1,), (2,)),
    ((slice(0, 2),), (slice(1, 3),), (slice(None, None, -1),)),
    ((0, 1), (slice(None), 1), (..., 1)),
    ((None, 1), (slice(5, 2),), (-1, slice(None, 1))),
]


def gradient(keys, factors):
    x = rg.tensor(np.arange(6.0).reshape(3, 2) - 2, requires_grad=True)
    total = (x * 0.0).sum()
    for key, c in zip(keys, factors, strict=True):
        total = total + (x[key] * c).sum()
    total.backward()
    assert x.grad is not None
    return x.grad.numpy()


@pytest.mark.parametrize("factors", [(1.0, 0.3, -0.7), (-0.0, -0.0, -0.0), (-0.0, 2.5, -0.0)])
@pytest.mark.parametrize("keys", KEYS)
def test_gradients_have_the_bits_of_a_recording(keys, factors, monkeypatch):
    expected = gradient(keys, factors)
    monkeypatch.setattr(TUNING, "unknown_recordings", 0)
    trace_buffer.end_run()
    assert gradient(keys, factors).tobytes() == expected.tobytes()


def test_a_slice_is_a_copy(monkeypatch):
    monkeypatch.setattr(TUNING, "unknown_recordings", 0)
    data = np.arange(4.0)
    x = rg.asarray(data)
    y = x[1:3]
    data[:] = 7
    assert y.tolist() == [1, 2]
    assert rg.tensor([1, 2])[0].shape == ()
