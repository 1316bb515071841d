"""Arrays that the user shares with tensors and edits: found by backward(), or harmless."""

import numpy as np
import pytest

import retrograd as rg


def made(requires_grad=True):
    data = np.ones(3, np.float32)
    return data, rg.asarray(data), rg.tensor([1.0, 2.0, 3.0], requires_grad=requires_grad)


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("recorder", [False, True])
def test_an_edit_of_what_a_gradient_needs_is_an_error(look, recorder):
    tapes = [rg.Tape()] if recorder else []  # with a tape at hand operations make nodes
    data, x, w = made()
    loss = (w * x).sum()
    if look:
        loss.item()
    data[1] = 5
    with pytest.raises(rg.GradientError, match=r"mul.*test_mutation.py.*loss = \(w \* x\).sum\(\)"):
        loss.backward()
    assert w.grad is None
    del tapes


def test_an_edit_of_what_no_gradient_needs_is_harmless():
    data, x, w = made()
    loss = (w + x).sum()
    data[1] = 5
    loss.backward()
    assert w.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("recorder", [False, True])
def test_a_buffer_that_is_filled_anew_for_every_step(recorder):
    tapes = [rg.Tape()] if recorder else []
    data, x, w = made()
    found = []
    for k in range(4):
        data[:] = k
        w.grad = None
        (w * x * x).sum().backward()
        data[:] = 99  # after backward() the array is the user's again
        found.append(w.grad.tolist())
    assert found == [[k * k] * 3 for k in range(4)]
    del tapes


def test_two_uses_with_an_edit_between():
    data, x, w = made()
    first = (w * x).sum()
    first.item()
    data[:] = 2
    second = (w * x).sum()
    second.backward()
    assert w.grad.tolist() == [2, 2, 2]
    with pytest.raises(rg.GradientError, match="edited"):
        first.backward()


@pytest.mark.parametrize("transform", [np.flip, np.negative, lambda a: np.roll(a, 1)])
def test_edits_of_every_kind_are_noticed(transform):
    data = np.arange(1, 7, dtype=np.float64).reshape(2, 3)
    x, w = rg.asarray(data.T), rg.tensor(np.ones((3, 2)), requires_grad=True)  # not contiguous
    loss = (w * x).sum()
    data[...] = transform(data)
    with pytest.raises(rg.GradientError, match="edited"):
        loss.backward()


def test_copies_are_not_watched():
    data = np.ones(3, np.float32)
    w = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    copies = rg.tensor(data), rg.asarray(data, copy=True), rg.asarray(data, dtype=rg.float64)
    losses = [(w * x).sum() for x in copies] + [(w * data).sum()]
    data += 1
    for loss in losses:
        loss.backward()
    assert w.grad.tolist() == [4, 4, 4]


def test_long_recordings_notice_too():
    data, x, w = made()
    y = w * 1.0
    for _ in range(3000):
        y = y * x
    loss = y.sum()
    data[0] = 2
    with pytest.raises(rg.GradientError, match="edited"):
        loss.backward()


def test_leaves_that_share_memory_get_gradients():
    data = np.ones(3, np.float32)
    x = rg.asarray(data).requires_grad_()
    loss = (x * x).sum()
    data[0] = 7
    with pytest.raises(rg.GradientError, match="edited"):
        loss.backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [14, 2, 2]


def test_what_was_computed_from_an_edited_array_counts_too():
    data, x, w = made()
    loss = (((w + x) * 2) * w).sum()
    data[0] = 5
    with pytest.raises(rg.GradientError, match=r"add.*edited"):
        loss.backward()
    tape = rg.Tape()
    v = tape.leaf([1.0, 2.0, 3.0])
    y = (((v + x) * 2) * v).sum()
    data[0] = 6
    with pytest.raises(rg.GradientError, match=r"add.*edited"):
        tape.backward_dense(y)


def test_on_a_tape():
    data, x, _ = made()
    tape = rg.Tape()
    w = tape.leaf([1.0, 2.0, 3.0])
    y = (w * x).sum()
    assert tape.backward_dense(y)[0].tolist() == [1, 1, 1]
    data[0] = 3
    for ask in (tape.backward_dense, lambda y: list(tape.trace_backward(y))):
        with pytest.raises(rg.GradientError, match="edited"):
            ask(y)
    again = (w * x).sum()
    assert tape.backward_dense(again)[0].tolist() == [3, 1, 1]
