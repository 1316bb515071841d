"""Tapes record on pages: what they say is what they say on nodes, and nobody else pays for them."""

import contextlib
import gc
import random
import threading

import numpy as np
import pytest

import retrograd as rg
from retrograd.frontend import page, recall, recording, segments
from retrograd.frontend.tape import Tape


@pytest.fixture(params=["reference", "llvm"])
def on_each_backend(request):
    with rg.backend(request.param):
        yield


@pytest.fixture
def short_pages(monkeypatch):
    """Recordings are cut after a few operations."""
    monkeypatch.setattr(page, "FULL", 8)
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
            total = sum(z.sum() for z in known[-3:])
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
            return rg.sort(x) - y.astype(rg.float32)
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
    ids = {i: e for i, e in enumerate(tape)}
    assert len(ids) == len(tape)
    text = [(e.op, e.name, str(e.shape), e.parents, e.requires_grad, e.is_given) for e in tape]
    lines = [e.source and e.source.line for e in tape] if hasattr(tape[0].source, "line") else []
    middle = len(tape) // 2
    middle = next(i for i in range(middle, len(tape)) if tape[i].requires_grad)
    seed = np.ones(tape[middle].shape, tape[middle].dtype.dtype)
    values = [e.value for e in tape]
    dense = [tape.backward_dense(total), tape.backward_dense(middle, seed)]
    dense.append(tape.backward_from({total: 2.0, middle: seed}, missing="zero"))
    paged = tape.on_pages
    total.backward()
    grads = [None if x.grad is None else x.grad.numpy() for x in leaves]
    return text, lines, [values, *dense, grads], paged


def same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            assert x.dtype == y.dtype
            assert x.tobytes() == y.tobytes()


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_pages_say_what_nodes_say(seed, inside, on_each_backend, short_pages):
    program = Program(seed, 30)
    results = []
    for on_nodes in (True, False, False):
        tape = Tape()
        if on_nodes:
            tape.go_on_with_nodes()
        total, leaves = program.run(tape, inside, look=seed % 2)
        assert tape.on_pages != on_nodes
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
