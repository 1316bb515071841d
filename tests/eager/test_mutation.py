"""Arrays that the user shares with tensors and edits: an operation uses what it finds there when it
is called, whenever its result, or a gradient, is computed."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg


def made(requires_grad=True):
    data = np.ones(3, np.float32)
    return data, rg.asarray(data), rg.tensor([1.0, 2.0, 3.0], requires_grad=requires_grad)


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("recorder", [False, True])
def test_a_gradient_needs_what_an_operation_has_used(look, recorder):
    tapes = [rg.Tape()] if recorder else []  # with a tape at hand operations make nodes
    data, x, w = made()
    loss = (w * x).sum()
    if look:
        loss.item()
    data[1] = 5
    loss.backward()
    assert loss.item() == 6
    assert w.grad.tolist() == [1, 1, 1]
    assert x.tolist() == [1, 5, 1]
    del tapes


@pytest.mark.parametrize("recorder", [False, True])
def test_a_buffer_that_is_filled_anew_for_every_step(recorder):
    tapes = [rg.Tape()] if recorder else []
    data, x, w = made()
    found = []
    for k in range(4):
        data[:] = k
        w.grad = None
        (w * x * x).sum().backward()
        data[:] = 99
        found.append(w.grad.tolist())
    assert found == [[k * k] * 3 for k in range(4)]
    del tapes


def test_two_uses_with_an_edit_between():
    data, x, w = made()
    first = w * x
    data[:] = 2
    total = (first * x).sum()
    data[:] = 3
    total.backward()
    assert total.item() == 12
    assert w.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("transform", [np.flip, np.negative, lambda a: np.roll(a, 1)])
def test_edits_of_every_kind(transform):
    data = np.arange(1, 7, dtype=np.float64).reshape(2, 3)
    before = data.T.copy()
    x, w = rg.asarray(data.T), rg.tensor(np.ones((3, 2)), requires_grad=True)  # not contiguous
    loss = (w * x).sum()
    data[...] = transform(data)
    again = (w * x).sum()
    (loss + again).backward()
    np.testing.assert_array_equal(w.grad.numpy(), before + data.T)


def test_what_is_not_edited_is_copied_once():
    data, x, _ = made()
    node = x.node
    assert x.node is node
    assert not np.shares_memory(node.prim.array, data)
    data[0] = np.nan
    other = x.node
    assert other is not node
    assert x.node is other  # NaN counts by its bits


def test_copies_are_not_watched():
    data = np.ones(3, np.float32)
    w = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    copies = rg.tensor(data), rg.asarray(data, copy=True), rg.asarray(data, dtype=rg.float64)
    losses = [(w * x).sum() for x in copies] + [(w * data).sum()]
    data += 1
    for loss in losses:
        loss.backward()
    assert w.grad.tolist() == [4, 4, 4]


def test_long_recordings():
    data, x, w = made()
    y = w * 1.0
    for _ in range(3000):
        y = y * x
    loss = y.sum()
    data[0] = 2
    loss.backward()
    assert w.grad.tolist() == [1, 1, 1]


def test_constants_and_buffers_are_the_same_memory():
    data, x, _ = made()
    z = x.detach()
    y = z * 2
    data[:] = 4
    assert (y.tolist(), (z * 2).tolist()) == ([2, 2, 2], [8, 8, 8])
    module: Any = rg.nn.Module()
    module.register_buffer("data", data)
    data[:] = 5
    assert module.data.tolist() == [4, 4, 4]


def test_compiled_functions_read_when_they_are_called():
    data, x, w = made()

    @rg.jit
    def f(w):
        return (w * x).sum()

    found = []
    for k in range(5):
        data[:] = k
        found.append(f(w.detach()))
        data[:] = 99
    assert [y.item() for y in found] == [6.0 * k for k in range(5)]


def test_on_a_tape():
    data, x, _ = made()
    tape = rg.Tape()
    w = tape.leaf([1.0, 2.0, 3.0])
    y = (w * x).sum()
    assert tape.backward_dense(y)[0].tolist() == [1, 1, 1]
    data[0] = 3
    assert tape.backward_dense(y)[0].tolist() == [1, 1, 1]
    again = (w * x).sum()
    assert tape.backward_dense(again)[0].tolist() == [3, 1, 1]
