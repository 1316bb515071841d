"""Subnormal numbers while training: zero where the processor can, exact elsewhere."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.train import subnormals


def half_of_the_smallest() -> float:
    with rg.backend("reference"):
        return float((rg.tensor([np.finfo(np.float32).tiny]) * 0.5).numpy()[0])


def test_small_numbers_are_zero_inside_of_the_block_alone():
    try:
        with rg.flush_subnormals():
            pass
    except BackendError:
        pytest.skip("this processor cannot")
    with subnormals.flushing():
        assert half_of_the_smallest() == 0.0
    assert half_of_the_smallest() > 0.0


def test_where_a_processor_cannot_they_stay(monkeypatch):
    def refuse() -> None:
        raise BackendError("not on this processor")

    monkeypatch.setattr(rg, "flush_subnormals", refuse)
    with subnormals.flushing():
        assert half_of_the_smallest() > 0.0
