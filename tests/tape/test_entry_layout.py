"""Entries derived from what was recorded: found again with the program."""

import pytest

import retrograd as rg
from retrograd.eager import segments, trace_buffer
from retrograd.tape import Tape
from tests.tape.on_pages import Counted, same


@pytest.fixture
def short_buffers(monkeypatch):
    """Recordings are cut after a few operations."""
    monkeypatch.setattr(trace_buffer, "FULL", 8)
    monkeypatch.setattr(segments, "LONGEST", 16)
    monkeypatch.setattr(segments, "REPEATS", 2)


def test_a_program_that_is_recorded_again_is_found(monkeypatch, short_buffers):
    def program(tape):
        x, w = tape.leaf([1.0, 2.0], name="x"), rg.tensor([3.0, 4.0], requires_grad=True)
        y = x
        for k in range(60):
            y = rg.tanh(y * (1.1 + k) + x) * w
        return tape.backward_dense(y.sum())

    with rg.backend("reference"):
        first, _ = [program(Tape()) for _ in range(2)]
        misses = rg.cache_stats()["misses"]
        counted = Counted(monkeypatch)
        tape = Tape()
        for _ in range(3):
            same(program(tape), first)
            assert tape.is_buffered
            tape.reset()
    assert rg.cache_stats()["misses"] == misses
    buffers = 3 * 60 * 4 / 8
    assert counted.calls["_with_listeners"] <= 4 * buffers  # of arrays of a buffer, and cuts
    assert {"materialize", "registered"}.isdisjoint(counted.calls)
