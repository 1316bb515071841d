"""Tapes record in buffers: what they say is what they say on nodes, and nobody else pays for it."""

import contextlib
import random
import threading

import numpy as np
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


class Program:
    """A program of random operations, the same for the same seed, on some tape."""

    def __init__(self, seed, length):
        self.seed, self.length = seed, length

    def run(self, tape, inside, look):
        rng = random.Random(self.seed)
        outside = rg.tensor([0.5, 1.5, -2.0], requires_grad=True)
        constant, waiting = rg.tensor([2.0, -1.0, 0.25]), rg.ones(3)
        made = rg.tensor([1.0, 2.0, 3.0]) * 1.5
        if look:  # else it depends on the look whether they are entries again, on nodes
            made.numpy(), waiting.numpy()
        leaves = [
            tape.leaf([1.0, 2.0, 3.0], name="a"),
            tape.leaf([0.1, -0.2, 0.3]),
            tape.leaf([4.0, 5.0, 6.0], requires_grad=False),
        ]
        known = list(leaves)
        others = [outside, constant, waiting, made]
        with tape if inside else contextlib.nullcontext():
            for k in range(self.length):
                x, y = rng.choice(known[-6:] + leaves), rng.choice(known[-6:] + others)
                known.append(self.step(rng, x, y))
                if look and rng.random() < 0.2:
                    rng.choice(known).numpy()
                if rng.random() < 0.3:
                    del known[rng.randrange(len(known))]
                if k % 7 == 6:
                    known.append(tape.leaf([1.0 + k, -1.0, 0.5]))
            total = sum(z.sum() for z in known[-3:]) + (outside * leaves[0]).sum()
        return total, [outside, *leaves]

    @staticmethod
    def step(rng, x, y):
        which = rng.randrange(12)
        if which == 0:
            with rg.no_grad():
                return x * 0.5 + y
        if which == 1:
            return rg.where(x > y, x, y * 0.25)
        if which == 2:
            return rg.concat([x[:2], y[1:2]])
        if which == 3:
            return rg.stack([x, y]).sum(axis=0) * rng.choice([0.25, 0.3, 2, 0.5])
        if which == 4:
            return rg.sort(x) - y
        if which == 5:
            return x * x.detach()
        if which == 6:
            return (rg.complex(x, y) * 1j).imag
        if which == 7:
            return np.float32(2.0) * rg.sin(x) + np.array([1.0, 2.0, 3.0], np.float32)
        if which == 8:
            return +x
        return rng.choice([lambda: x * y, lambda: x - 0.125 * y, lambda: rg.tanh(x) + y])()


def found(tape, total, leaves):
    """All that a tape says."""
    assert len(list(tape)) == len(tape)
    text = [(e.op, e.name, str(e.shape), e.parents, e.requires_grad, e.is_given) for e in tape]
    lines = [e.source and e.source.line for e in tape] if hasattr(tape[0].source, "line") else []
    middle = len(tape) // 2
    middle = next(i for i in range(middle, len(tape)) if tape[i].requires_grad)
    seed = np.ones(tape[middle].shape, tape[middle].dtype.dtype)
    values = [e.value for e in tape]
    dense = [tape.backward_dense(total), tape.backward_dense(middle, seed)]
    dense.append(tape.backward_from({total: 2.0, middle: seed}, missing="zero"))
    paged = tape.is_buffered
    total.backward()
    grads = [None if x.grad is None else x.grad.numpy() for x in leaves]
    return text, lines, [values, *dense, grads], paged


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    "seed", [0, 1, 2, 3, *[pytest.param(k, marks=pytest.mark.slow) for k in range(4, 40)]]
)
def test_buffers_say_what_nodes_say(seed, inside, short_buffers):
    program = Program(seed, 24)
    results = []
    with rg.backend("reference" if seed % 4 < 2 else "llvm"):
        for on_nodes in (True, False, False):
            tape = Tape()
            if on_nodes:
                tape.go_on_with_nodes()
            total, leaves = program.run(tape, inside, look=seed % 2)
            assert tape.is_buffered != on_nodes
            results.append(found(tape, total, leaves))
            assert results[-1][3] != on_nodes
        tape.go_on_with_nodes()
        results.append((*found(tape, total, leaves)[:2], results[-1][2]))
    for text, lines, numbers, *_ in results[1:]:
        for i, (one, other) in enumerate(zip(text, results[0][0], strict=False)):
            assert one == other, (i, text[i - 2 : i + 3], results[0][0][i - 2 : i + 3])
        assert lines == results[0][1]
        for a, b in zip(numbers, results[0][2], strict=True):
            same(a, b)


def work():
    """Eager code that has nothing to do with a tape."""
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    y = w
    for _ in range(30):
        y = rg.sin(y * 1.5 + w)
    loss = y.sum()
    loss.backward()
    return loss.numpy().tobytes(), w.grad.numpy().tobytes()


@pytest.mark.usefixtures("recorded_first")
@pytest.mark.parametrize("kind", ["empty", "leaves", "recorded", "nodes", "reset", "finished"])
def test_a_tape_that_is_alive_costs_others_nothing(kind, monkeypatch):
    expected = [work() for _ in range(3)][-1]
    counted = Counted(monkeypatch)
    misses = rg.cache_stats()["misses"]
    assert work() == expected
    without = dict(counted.calls)
    tape = Tape()
    x = tape.leaf([1.0, 2.0])
    y = (x * 3).sum() if kind != "leaves" else x
    if kind == "empty":
        tape = Tape()
    elif kind == "nodes":
        assert tape[0].node is x.node
    elif kind == "reset":
        assert tape[0].node is x.node
        tape.reset()
    elif kind == "finished":
        tape.finish()
    counted.calls.clear()
    assert work() == expected
    shown = kind in ("nodes", "reset")  # it is asked where a buffer begins
    assert counted.calls == without | ({"_with_listeners": 1, "registered": 1} if shown else {})
    assert rg.cache_stats()["misses"] == misses
    assert y is not None


def test_what_a_tape_has_is_fresh_each_time():
    tape = Tape()
    x = tape.leaf([1.0, 2.0])
    y = (x * x).sum()
    first = tape.backward_dense(y)
    kept = [None if g is None else g.copy() for g in first]
    for g in first:
        if g is not None and g.flags.writeable:
            g[...] = 77
    same(tape.backward_dense(y), kept)
    assert [e.value.tolist() for e in tape][:2] == [[1, 2], [1, 4]]
    assert tape[1] is tape[1]


def test_blocks_of_two_tapes_and_what_lies_between():
    a, b = Tape(), Tape()
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    with a:
        p = w * 2
        with b:
            q = w * 3
        r = p + w
    s = w * 5
    assert [len(a), len(b)] == [4, 3]
    assert (a.is_buffered, b.is_buffered) == (True, True)
    assert a.backward_dense(r, [1, 1])[0].tolist() == [3, 3]
    assert b.backward_dense(q, [1, 1])[0].tolist() == [3, 3]
    assert s.tolist() == [5, 10]
    with pytest.raises(rg.StaleTapeError, match="two tapes"):
        p * q


def test_what_is_traced_or_differentiated_beside_a_tape():
    tape = Tape()
    x = tape.leaf([1.0, 2.0])
    y = x * 2
    f = rg.jit(lambda v: (v * 3 + y).sum())
    assert f(np.ones(2, np.float32)).item() == 12
    g = rg.grad(lambda v: (v * v * x).sum())(rg.tensor([1.0, 1.0]))
    assert g.tolist() == [2, 4]
    value = rg.vmap(lambda v: v * 2)(rg.ones((2, 2)))
    assert value.tolist() == [[2, 2], [2, 2]]
    total = (y * g).sum()
    assert tape.backward_dense(total)[0].tolist() == [8, 16]  # through g as well


def test_gradients_of_tensors_beside_those_of_the_tape():
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    before = w * w  # on no tape
    tape = Tape()
    x = tape.leaf([1.0, 2.0])
    y = (x * before * w).sum()
    assert tape.backward_sparse(y)[0].tolist() == [8, 27]
    for k in (1, 2):
        y.backward()
        assert w.grad.tolist() == [12 * k, 54 * k]
        assert x.grad.tolist() == [8 * k, 27 * k]
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]  # type: ignore[attr-defined]


def test_gradients_in_a_block_are_on_no_tape():
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    with Tape() as tape:
        y = (w * w).sum()
        count = len(tape)
        y.backward()
        y.backward()
        assert len(tape) == count
        z = w * 2
    assert len(tape) == count + 2
    assert w.grad.tolist() == [8, 12]
    assert tape.is_buffered
    assert tape.backward_dense(z, [1, 1])[0].tolist() == [2, 2]


@pytest.mark.slow
def test_threads_record_in_buffers():
    tape = Tape()
    x = tape.leaf(2.0)
    results = {}

    def work(k):
        y = x
        for _ in range(300):
            y = y * 0.99 + k
        results[k] = y

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [e.id for e in tape] == list(range(len(tape)))
    assert all(p < e.id for e in tape for p in e.parents)
    assert sum(e.op == "mul" for e in tape) == 1200
    for y in results.values():
        assert tape.backward_dense(y)[0].item() == pytest.approx(0.99**300, rel=1e-4)
