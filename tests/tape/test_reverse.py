"""The reverse walk over a tape: its steps, its seeds."""

import numpy as np
import pytest

import retrograd as rg
from tests.tape.worked_example import plain, worked_example

pytestmark = pytest.mark.usefixtures("reference")


def test_the_reverse_pass_step_by_step():
    tape, f = worked_example()
    steps = list(tape.trace_backward(f))
    assert [s.entry.op for s in steps] == ["relu", "add", "mul"]
    assert [(i, a.item()) for i, a in steps[2].contributions] == [(0, 3), (1, 2)]
    assert steps[2].upstream.item() == 1


def test_an_operand_used_twice_contributes_twice():
    tape = rg.Tape()
    x = tape.leaf(3.0)
    y = x + x
    (step,) = tape.trace_backward(y)
    assert [(i, a.item()) for i, a in step.contributions] == [(0, 1), (0, 1)]
    assert step.accumulated[0].item() == 2
    assert plain(tape.backward_dense(y)) == [2, 1]


def test_steps_reach_over_constants_and_complex_numbers():
    before = rg.tensor([2.0, 5.0]) * 2
    tape = rg.Tape()
    z = tape.leaf([1 + 2j, 3 - 1j])
    y = (rg.abs(z * before) ** 2).sum()
    steps = list(tape.trace_backward(y))
    (last,) = [s for s in steps if 0 in dict(s.contributions)]
    np.testing.assert_allclose(last.accumulated[0], 2 * 16 * np.array([1 + 2j, 25 / 4 * (3 - 1j)]))
    np.testing.assert_array_equal(last.accumulated[0], tape.backward_dense(y)[0])


def test_seeds_are_checked():
    tape = rg.Tape()
    y = tape.leaf([1.0, 2.0]) * 3
    with pytest.raises(rg.GradientError, match="scalar"):
        tape.backward_dense(y)
    with pytest.raises(rg.ShapeError, match=r"seed for entry 2.*\(2,\), not \(3,\)"):
        tape.backward_dense(y, seed=np.ones(3, np.float32))
    with pytest.raises(rg.GradientError, match="i64"):
        tape.leaf(3)
    with pytest.raises(rg.DTypeError, match="must be float32, not float64"):
        tape.backward_dense(y, seed=np.ones(2))
    with pytest.raises(rg.DTypeError, match=r"the seed for entry 2"):
        tape.backward_dense(y, seed="one")
    with pytest.raises(rg.ShapeError, match="ragged"):
        tape.backward_dense(y, seed=[[1.0], [1.0, 2.0]])
    with pytest.raises(rg.OptionError, match="two seeds"):
        tape.backward_from({y: [1.0, 1.0], 2: [1.0, 1.0]})
    with pytest.raises(rg.OptionError, match="not as list"):
        tape.backward_from([y])  # type: ignore[arg-type]
    with pytest.raises(rg.StaleTapeError, match="no id"):
        tape.backward_dense(-1)
    with pytest.raises(rg.StaleTapeError, match="no id"):
        tape.backward_dense(True)
    assert tape.backward_from({}) == [None, None, None]
    assert tape.backward_dense(y, seed=[1, 2])[0].tolist() == [3, 6]  # numbers take its dtype


def test_not_a_number_as_a_seed_reaches_what_it_is_multiplied_into():
    tape = rg.Tape()
    x, w = tape.leaf([1.0, 2.0]), tape.leaf([3.0, 4.0])
    y = x * w
    found = tape.backward_dense(y, seed=[np.nan, 1.0])
    assert [str(v) for v in found[0]] == ["nan", "4.0"]
    assert [str(v) for v in found[1]] == ["nan", "2.0"]


def test_a_seed_for_a_frozen_entry_reaches_nothing():
    tape = rg.Tape()
    x, c = tape.leaf(2.0), tape.leaf(3.0, requires_grad=False)
    y = x * (c * c)
    assert tape.backward_from({2: 1.0}) == [None] * len(tape)
    assert plain(tape.backward_from({y: 1.0, c: 5.0})) == [9, None, None, 1]
