"""`Tape`: entries, every form of gradient, and what is refused."""

import numpy as np
import pytest

import retrograd as rg


@pytest.fixture(autouse=True)
def on_reference():
    with rg.backend("reference"):
        yield


def worked_example():
    tape = rg.Tape()
    a, b, d = (tape.leaf(v, name=n) for v, n in ((2.0, "a"), (3.0, "b"), (1.0, "d")))
    return tape, rg.relu(a * b + d)


def plain(gradients):
    return [None if g is None else g.item() for g in gradients]


def test_entries_are_open_to_inspection():
    tape, f = worked_example()
    assert [e.op for e in tape] == ["input", "input", "input", "mul", "add", "relu"]
    assert [e.parents for e in tape] == [(), (), (), (0, 1), (3, 2), (4,)]
    assert [e.name for e in tape][:3] == ["a", "b", "d"]
    assert [e.value.item() for e in tape] == [2, 3, 1, 6, 7, 7]
    assert tape[-1].node is f.node
    assert len(tape) == 6
    with pytest.raises(IndexError, match="6 entries"):
        tape[6]


def test_every_form_of_gradient():
    tape, f = worked_example()
    dense = [3, 2, 1, 1, 1, 1]
    assert plain(tape.backward_dense(f)) == dense
    assert plain(tape.backward_dense(f)) == dense  # fresh each time
    assert {i: g.item() for i, g in tape.backward_sparse(3).items()} == {0: 3, 1: 2, 3: 1}
    assert plain(tape.backward_total(3)) == [3, 2, 0, 1, 0, 0]
    assert plain(tape.backward_dense(f, seed=10.0)) == [30, 20, 10, 10, 10, 10]
    both = tape.backward_from({3: 1.0, f: 10.0}, missing="zero")
    assert plain(both) == [33, 22, 10, 11, 10, 10]
    assert set(tape.backward_from({3: 1.0}, missing="omit")) == {0, 1, 3}
    with pytest.raises(rg.OptionError, match="missing"):
        tape.backward_from({3: 1.0}, missing="maybe")


def test_frozen_entries():
    tape = rg.Tape()
    x, c = tape.leaf([1.0, 2.0]), tape.leaf([3.0, 4.0], requires_grad=False)
    y = (x * c).sum() + (c * c).sum()
    flags = {e.op + str(e.id): e.requires_grad for e in tape}
    assert flags["input1"] is False
    dense = tape.backward_dense(y)
    assert dense[1] is None
    assert dense[0].tolist() == [3, 4]
    assert tape.backward_total(y)[1].tolist() == [0, 0]


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


def test_the_context_records_everything_inside():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    with rg.Tape() as tape:
        y = (x * 2).sum()
    outside = rg.ones(2) * 3
    assert tape[len(tape) - 1].node is y.node
    recorded = len(tape)
    assert outside.tolist() == [3, 3]
    assert len(tape) == recorded


def test_a_tape_is_a_graph():
    tape, _ = worked_example()
    g = tape.graph()
    assert g(2.0, 3.0, 1.0).item() == 7
    assert [x.item() for x in g.gradient()(2.0, 3.0, 1.0)] == [3, 2, 1]


def test_a_failed_operation_leaves_the_tape_as_it_was():
    tape = rg.Tape()
    x = tape.leaf([1.0, 2.0])
    with pytest.raises(rg.ShapeError):
        x + rg.ones(3)
    assert len(tape) == 1


def test_stale_and_foreign_handles():
    tape, other = rg.Tape(), rg.Tape()
    x, z = tape.leaf(1.0), other.leaf(2.0)
    y = x * 2
    with pytest.raises(rg.StaleTapeError, match="two tapes"):
        x * z
    with pytest.raises(rg.StaleTapeError, match="not on this tape"):
        other.backward_dense(y)
    with pytest.raises(rg.StaleTapeError, match="no id"):
        tape.backward_dense(99)
    tape.reset()
    assert len(tape) == 0
    with pytest.raises(rg.StaleTapeError, match="reset"):
        y + 1
    with pytest.raises(rg.StaleTapeError, match="reset"):
        tape.backward_dense(y)
    fresh = tape.leaf(5.0)
    assert plain(tape.backward_dense(fresh * fresh))[0] == 10


def test_seeds_are_checked():
    tape = rg.Tape()
    y = tape.leaf([1.0, 2.0]) * 3
    with pytest.raises(rg.GradientError, match="scalar"):
        tape.backward_dense(y)
    with pytest.raises(rg.ShapeError, match="seed of entry"):
        tape.backward_dense(y, seed=np.ones(3, np.float32))
    with pytest.raises(rg.GradientError, match="i64"):
        tape.leaf(3)
