"""Sequences of different lengths: against PyTorch, against loops over them, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import RetrogradError, ShapeError
from retrograd.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

LENGTHS = [3, 5, 1, 5, 2]
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("RNN", {"nonlinearity": "relu"}),
    ("RNN", {"num_layers": 2, "bidirectional": True}),
    ("LSTM", {"num_layers": 2, "bidirectional": True}),
    ("LSTM", {"proj_size": 2, "bias": False}),
    ("GRU", {"num_layers": 2}),
    ("GRU", {"bidirectional": True}),
]


def sequences(*shape: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, *shape)) for n in LENGTHS]


def close(found: Any, expected: Any) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, 1e-10, 1e-12)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_there_and_back(shape: tuple[int, ...], first: bool) -> None:
    given = sequences(*shape)
    padded = pad_sequence(given, first, 7.0)
    for x, n, y in zip(given, LENGTHS, unpad_sequence(padded, LENGTHS, first), strict=True):
        close(y, x)
        row = padded.numpy()[LENGTHS.index(n)] if first else padded.numpy()[:, LENGTHS.index(n)]
        assert (row[n:] == 7).all()
    packed = pack_padded_sequence(padded, LENGTHS, first, enforce_sorted=False)
    assert packed.data.shape == (sum(LENGTHS), *shape)
    assert packed.batch_sizes.tolist() == [5, 4, 3, 2, 2]
    for x, y in zip(given, unpack_sequence(packed), strict=True):
        close(y, x)
    again, lengths = pad_packed_sequence(packed, first, 7.0, total_length=6)
    assert lengths.tolist() == LENGTHS
    close(np.take(again.numpy(), range(5), axis=int(first)), padded.numpy())
    assert (np.take(again.numpy(), 5, axis=int(first)) == 7).all()


def test_padding_on_the_left() -> None:
    padded = pad_sequence(sequences(2), True, padding_side="left").numpy()
    for row, x in zip(padded, sequences(2), strict=True):
        close(row[5 - len(x) :], x)
        assert not row[: 5 - len(x)].any()


def test_a_packed_sequence_is_a_tree_with_one_leaf() -> None:
    packed = pack_sequence([rg.asarray(x) for x in sequences(2)], enforce_sorted=False)

    @rg.jit
    def doubled(p: PackedSequence) -> PackedSequence:
        return p.with_data(p.data * 2)

    twice = doubled(packed)
    close(twice.data.numpy(), 2 * packed.data.numpy())
    assert twice.batch_sizes.tolist() == packed.batch_sizes.tolist()
    close(unpack_sequence(twice)[2].numpy(), 2 * sequences(2)[2])
    slope = rg.grad(lambda p: (unpack_sequence(p)[1] ** 2).sum())(packed)
    close(unpack_sequence(slope)[1].numpy(), 2 * sequences(2)[1])
    assert not unpack_sequence(slope)[0].numpy().any()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.sample(2)
def test_recurrent_layers_against_each_sequence_alone(kind: str, options: dict[str, Any]) -> None:
    layer = getattr(nn, kind)(3, 4, **options, dtype=rg.float64)
    given = sequences(3)
    packed = pack_sequence(given, enforce_sorted=False)
    y, last = layer(packed)
    last = last if isinstance(last, tuple) else (last,)
    for i, (x, found) in enumerate(zip(given, unpack_sequence(y), strict=True)):
        expected, state = layer(x)
        close(found.numpy(), expected.numpy())
        for a, b in zip(last, state if isinstance(state, tuple) else (state,), strict=True):
            close(a[:, i].numpy(), b.numpy())


@pytest.mark.torch
@pytest.mark.parametrize("sorted_", [False, True])
@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.sample(4)
def test_against_torch(kind: str, options: dict[str, Any], sorted_: bool) -> None:
    """Outputs, last states, and the gradients of inputs, first states and parameters."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    their_pack = torch.nn.utils.rnn.pack_padded_sequence
    their_pad = torch.nn.utils.rnn.pad_packed_sequence
    layer = getattr(nn, kind)(3, 4, **options, dtype=rg.float64)
    theirs = getattr(torch.nn, kind)(3, 4, **options, dtype=torch.float64)
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in layer.state_dict().items()})
    lengths = sorted(LENGTHS, reverse=True) if sorted_ else LENGTHS
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5, 5, 3))
    count = layer.num_layers * (1 + layer.bidirectional)
    sizes = [layer.proj_size or 4, *([4] if kind == "LSTM" else [])]
    states = [rng.normal(size=(count, 5, size)) for size in sizes]
    weight = rng.normal(size=(5, 5, (layer.proj_size or 4) * (1 + layer.bidirectional)))

    def total(lib: Any, y: Any, last: Any) -> Any:
        last = last if isinstance(last, tuple) else (last,)
        return (y * weight_of(lib)).sum() + sum((h**2).sum() for h in last)

    def weight_of(lib: Any) -> Any:
        return rg.asarray(weight) if lib is rg else torch.tensor(weight)

    def loss(layer: Any, x: Any, states: Any) -> Any:
        packed = pack_padded_sequence(x, lengths, enforce_sorted=sorted_)
        y, last = layer(packed, tuple(states) if kind == "LSTM" else states[0])
        return total(rg, pad_packed_sequence(y)[0], last)

    tx = torch.tensor(x, requires_grad=True)
    ts = [torch.tensor(s, requires_grad=True) for s in states]
    packed = their_pack(tx, lengths, enforce_sorted=sorted_)
    y, last = theirs(packed, tuple(ts) if kind == "LSTM" else ts[0])
    expected = total(torch, their_pad(y)[0], last)
    expected.backward()
    value, (gl, gx, gs) = rg.value_and_grad(loss, argnums=(0, 1, 2))(layer, x, states)
    close(value.numpy(), expected.detach().numpy())
    close(gx.numpy(), tx.grad.numpy())
    for a, b in zip(gs, ts, strict=True):
        close(a.numpy(), b.grad.numpy())
    known = dict(theirs.named_parameters())
    for name, p in gl.named_parameters():
        close(p.numpy(), known[name].grad.numpy())
    mine = pack_padded_sequence(x, lengths, enforce_sorted=sorted_)
    close(mine.data.numpy(), packed.data.detach().numpy())
    assert mine.batch_sizes.tolist() == packed.batch_sizes.tolist()


def test_errors() -> None:
    x = np.zeros((4, 2, 3))
    packed = pack_padded_sequence(x, [4, 2])
    cases: list[tuple[Any, str]] = [
        (lambda: pack_padded_sequence(x, [2, 4]), "lengths fall"),
        (lambda: pack_padded_sequence(x, [4, 0]), "between 1 and 4"),
        (lambda: pack_padded_sequence(x, [5, 2]), "between 1 and 4"),
        (lambda: pack_padded_sequence(x, [4]), "each of 2"),
        (lambda: pack_padded_sequence(x, [4.0, 2.0]), "integer length"),
        (lambda: pack_padded_sequence(x[0, 0], [3]), r"takes \[L, N"),
        (lambda: pack_padded_sequence(x[:, :0], []), "at least one|integer"),
        (lambda: pad_packed_sequence(packed, total_length=3), "below 4"),
        (lambda: pad_sequence([]), "not none"),
        (lambda: pad_sequence([x, x[0]]), "length only"),
        (lambda: pad_sequence([x, x.astype("f")]), "one dtype"),
        (lambda: pad_sequence([x], padding_side="up"), "padding_side"),
        (lambda: nn.GRU(2, 4)(packed), "elements of size 2"),
        (lambda: nn.GRU(3, 4)(packed, np.zeros((1, 3, 4))), "belong to"),
    ]
    for call, words in cases:
        with pytest.raises(RetrogradError, match=words):
            call()
    with pytest.raises(ShapeError, match="GRU"):
        nn.GRU(3, 4)(packed, np.zeros((2, 2, 4)))


@pytest.mark.torch
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32, np.bool_])
def test_pad_sequence(dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    given = [np.array(x, dtype) for x in ([1, 2, 3], [4], [])]
    for first, value in itertools.product([False, True], [{}, 0, 0.0, -1, 2.0]):
        options: dict[str, Any] = {"batch_first": first}
        if value != {}:
            options["padding_value"] = value
        expected = torch.nn.utils.rnn.pad_sequence([torch.tensor(x) for x in given], **options)
        if dtype is np.bool_ and options.get("padding_value", 0) not in (0, 1):
            continue
        got = nn.utils.rnn.pad_sequence(given, **options)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)
