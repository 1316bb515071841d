"""Trace buffers of a tape, while the tape is there and when it is gone."""

import gc

import pytest

import retrograd as rg
from retrograd.eager import segments, trace_buffer
from retrograd.tape import Tape


@pytest.fixture
def short_buffers(monkeypatch):
    """Recordings are cut after a few operations."""
    monkeypatch.setattr(trace_buffer, "FULL", 8)
    monkeypatch.setattr(segments, "LONGEST", 16)
    monkeypatch.setattr(segments, "REPEATS", 2)


def test_operations_that_fail_leave_a_tape_in_buffers_as_it_was():
    tape = Tape()
    x, c = tape.leaf([1.0, 2.0]), rg.tensor([1.0, 2.0, 3.0])
    with pytest.raises(rg.ShapeError):
        x + c
    assert len(tape) == 1
    assert (x * 2).tolist() == [2, 4]
    assert [e.op for e in tape] == ["input", "constant", "mul"]


def test_old_tensors_of_many_buffers_are_refused(short_buffers):
    tape = Tape()
    x = y = tape.leaf([1.0, 2.0])
    kept = []
    for _ in range(30):
        y = y * 1.5 + x
        kept.append(y)
    tape.reset()
    z = tape.leaf([1.0, 2.0])
    for old in (x, y, kept[3], kept[20]):
        for use in (lambda old=old: old * 2, lambda old=old: z * old, lambda old=old: rg.sin(old)):
            with pytest.raises(rg.StaleTapeError, match="reset"):
                use()
        with pytest.raises(rg.StaleTapeError, match="reset"):
            tape.backward_dense(old, [1.0, 1.0])
        assert old.numpy().shape == (2,)
    assert tape.backward_dense(z * 2, [1, 1])[0].tolist() == [2, 2]


@pytest.mark.slow
def test_tensors_of_a_tape_that_is_gone_are_tensors_like_others(short_buffers):
    w = rg.tensor(2.0, requires_grad=True)
    tape = Tape()
    x = y = tape.leaf(3.0)
    with tape:
        for _ in range(20):
            y = y * 0.5 + x * w
    del tape
    gc.collect()
    z = y * y + w
    z.backward()
    one, two = rg.tensor(2.0, requires_grad=True), rg.tensor(3.0, requires_grad=True)
    expected = two
    for _ in range(20):
        expected = expected * 0.5 + two * one
    expected = expected * expected + one
    expected.backward()
    assert z.item() == expected.item()
    assert (w.grad.item(), x.grad.item()) == (one.grad.item(), two.grad.item())
