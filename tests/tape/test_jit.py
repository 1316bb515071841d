"""Compiled functions while there are tapes: compiled, unless a tape is to see what they do."""

import gc

import numpy as np

import retrograd as rg
from retrograd.eager import listeners

ONE = np.ones(3, np.float32)


def made():
    """A step that differentiates by itself, compiled, and its parameters."""
    step = rg.jit(rg.value_and_grad(lambda p, x: (rg.sin(p) * x).sum()))
    p = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(3):
        step(p, ONE)
    return step, p


def test_steps_that_a_tape_has_no_part_in_stay_compiled():
    step, p = made()
    before = step.cache_stats()["calls"]
    tape = rg.Tape()
    for _ in range(4):
        value, _ = step(p, ONE)
    assert step.cache_stats()["calls"] == before + 4
    assert step.cache_stats()["compilations"] == 1
    assert len(tape) == 0
    value.backward()
    assert p.grad is not None
    np.testing.assert_allclose(p.grad.numpy(), np.cos(p.numpy()), rtol=1e-6)


def test_results_of_compiled_steps_are_inputs_of_a_tape():
    step, p = made()
    before, _ = step(p, ONE)
    tape = rg.Tape()
    after, _ = step(p, ONE)
    for value in (before, after):
        tape.reset()
        z = tape.leaf(2.0) * value
        assert [e.op for e in tape] == ["input", "input", "mul"]
        assert tape.backward_total(z)[1] == 2.0
    with rg.Tape() as block:
        z = block.leaf(2.0) * before
    assert [e.op for e in block] == ["input", "input", "mul"]
    z.backward()
    assert p.grad is not None
    np.testing.assert_allclose(p.grad.numpy(), 2 * np.cos(p.numpy()), rtol=1e-6)


def test_what_came_from_elsewhere_may_be_used_after_a_reset():
    tape = rg.Tape()
    x = rg.tensor(3.0, requires_grad=True)
    for _ in range(2):
        tape.leaf(2.0) * x
        assert [e.op for e in tape] == ["input", "input", "mul"]
        tape.reset()


def test_what_is_on_a_tape_is_recorded():
    step, _ = made()
    tape = rg.Tape()
    x = tape.leaf([1.0, 2.0, 3.0])
    value, slope = step(x, ONE)
    np.testing.assert_allclose(tape.backward_total(value)[0], np.cos(x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(tape.backward_total(slope, ONE)[0], -np.sin(x.numpy()), rtol=1e-6)


def test_frozen_leaves_and_all_that_happens_in_a_block():
    f = rg.jit(lambda a, b: rg.sin(a) * b)
    for _ in range(3):
        f(rg.ones(3), rg.ones(3))
    calls = f.cache_stats()["calls"]
    tape = rg.Tape()
    f(tape.leaf(ONE, requires_grad=False), rg.ones(3))
    assert {"sin", "mul"} <= {e.op for e in tape}
    with rg.Tape() as block:
        f(rg.ones(3), rg.ones(3))
    assert {"sin", "mul"} <= {e.op for e in block}
    assert f.cache_stats()["calls"] == calls
    f(rg.ones(3), rg.ones(3))
    assert f.cache_stats()["calls"] == calls + 1


def test_functions_that_close_over_what_is_on_a_tape():
    p = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    tape = rg.Tape()
    x = tape.leaf([1.0, 2.0, 3.0])
    f = rg.jit(rg.value_and_grad(lambda q: (q * x).sum()))
    for _ in range(3):
        value, _ = f(p)
        np.testing.assert_allclose(tape.backward_total(value)[0], p.numpy())


def test_nothing_is_left_of_a_tape_that_is_gone():
    tape = rg.Tape()
    assert tape.leaf(1.0).node.op == "input"  # from here on it is shown what is recorded
    count = len(listeners.LISTENERS)
    del tape
    gc.collect()
    assert len(listeners.LISTENERS) < count
