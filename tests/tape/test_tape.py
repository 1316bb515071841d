"""`Tape`: entries, every form of gradient, and what is refused."""

import threading

import numpy as np
import pytest

import retrograd as rg
from retrograd.autodiff import Cotangents
from retrograd.ir import full, reachable
from retrograd.tape.reverse import walk
from tests.tape.worked_example import plain, worked_example

pytestmark = pytest.mark.usefixtures("reference")


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


def test_without_gradients_entries_are_frozen():
    tape = rg.Tape()
    x = tape.leaf(2.0)
    with rg.no_grad():
        c = x * x
    y = x * c
    assert not c.requires_grad
    found = tape.backward_dense(y)
    assert found[0].item() == 4
    assert all(g is None for e, g in zip(tape, found, strict=True) if not e.requires_grad)
    assert any(e.op == "stop_gradient" and not e.requires_grad for e in tape)


def test_what_nobody_asked_about_does_no_harm():
    tape = rg.Tape()
    x = tape.leaf(0.0)
    bad = 1 / x
    good = x * 3
    loose = tape.leaf(7.0)
    found = tape.backward_sparse(good)
    assert {i: g.item() for i, g in found.items()} == {0: 3, good_id(tape, good): 1}
    assert np.isinf(bad.item())
    assert tape.backward_dense(bad)[0].item() == -np.inf
    both = rg.where(x > 0, 1 / x, x * 2)
    assert tape.backward_sparse(both)[0].item() == 2
    assert tape.backward_total(good)[good_id(tape, loose)] == 0


def good_id(tape, tensor):
    return next(e.id for e in tape if e.node is tensor.node)


def test_a_finished_tape_answers_and_records_no_more():
    tape, f = worked_example()
    tape.finish()
    assert repr(tape) == "<Tape with 6 entries, finished>"
    assert plain(tape.backward_dense(f)) == [3, 2, 1, 1, 1, 1]
    for use in (lambda: f * 2, lambda: tape.leaf(1.0), tape.__enter__):
        with pytest.raises(rg.StaleTapeError, match="finished with 6 entries"):
            use()
    assert len(tape) == 6
    assert (rg.tensor(f.numpy()) * 2).item() == 14
    tape.reset()
    tape.leaf(1.0)
    assert len(tape) == 1


def test_a_tape_reads_as_text():
    tape, _ = worked_example()
    assert str(tape).splitlines()[3:] == [
        "%3: f32[] = mul(%0, %1)",
        "%4: f32[] = add(%3, %2)",
        "%5: f32[] = relu(%4)",
    ]
    assert [e.id for e in tape[1:3]] == [1, 2]
    assert tape[3].shape == ()
    assert tape[3].dtype is rg.float32
    assert "worked_example" in str(tape[3].source)


@pytest.mark.parametrize("length", [3000])
def test_long_tapes_take_no_recursion_and_no_quadratic_time(length):
    tape = rg.Tape()
    x = y = tape.leaf(1.0)
    for _ in range(length):
        y = y * 1.0001 + x
    assert len(tape) > 2 * length
    (found,) = [g for g in tape.backward_dense(y)[:1] if g is not None]
    slope, value = 0.0, 1.0
    for _ in range(length):
        slope, value = slope * 1.0001 + 1, value * 1.0001
    np.testing.assert_allclose(found, slope + value, rtol=1e-4)


def test_threads_record_on_one_tape():
    tape = rg.Tape()
    x = tape.leaf(2.0)
    results = {}

    def work(k):
        y = x
        for _ in range(20):
            y = y * 1.5 + k
        results[k] = y

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [e.id for e in tape] == list(range(len(tape)))
    assert all(p < e.id for e in tape for p in e.parents)
    for y in results.values():
        assert tape.backward_dense(y)[0].item() == pytest.approx(1.5**20)


def test_checkpoints_are_recorded_and_computed_again():
    def f(x):
        return rg.exp(rg.sin(x) * 2)

    data = np.linspace(0, 1, 3)
    tape, plain_tape = rg.Tape(), rg.Tape()
    x, z = tape.leaf(data), plain_tape.leaf(data)
    y = rg.checkpoint(f)(x).sum()
    expected = plain_tape.backward_dense(f(z).sum())[0]
    np.testing.assert_array_equal(tape.backward_dense(y)[0], expected)
    ops = [e.op for e in tape]
    assert ops.count("sin") == 1  # what the function did by itself is not recorded as well
    assert ops.index("region_in") < ops.index("sin") < ops.index("region_out")
    found = Cotangents()
    found.add(y.node, full(1, y.node.type))
    (exp,) = [v for v in walk(tape[:], dict(tape._ids), found) if v.entry.op == "exp"]
    (_, part) = exp.parts[0]
    read = {n for n in reachable([part]) if n.op == "exp"}
    assert read
    assert exp.entry.node not in read  # the rule has seen a copy, which is computed late
    assert any(n.op == "after" for n in reachable([part]))
