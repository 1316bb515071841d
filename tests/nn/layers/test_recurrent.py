"""Recurrent layers by their formulas in NumPy, and as steps of their cells."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit as sigmoid

import retrograd as rg
from retrograd import nn
from retrograd.nn.layers import recurrent

X = np.random.default_rng(0).normal(size=(4, 2, 3))
KINDS = ("RNN", "LSTM", "GRU")


def steps(kind: str, p: dict[str, Any], xs: Any, h: Any) -> list[Any]:
    """Outputs of one layer in one direction, from a state of zeros."""
    found, c = [], np.zeros_like(h)
    for x in xs:
        a = x @ p["weight_ih"].T + p["bias_ih"]
        b = h @ p["weight_hh"].T + p["bias_hh"]
        if kind == "RNN":
            h = np.tanh(a + b)
        elif kind == "LSTM":
            i, f, g, o = np.split(a + b, 4, axis=-1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            (ar, az, an), (br, bz, bn) = (np.split(y, 3, axis=-1) for y in (a, b))
            z, n = sigmoid(az + bz), np.tanh(an + sigmoid(ar + br) * bn)
            h = (1 - z) * n + z * h
        found.append(h)
    return found


def numbers(layer: Any, end: str) -> dict[str, Any]:
    named = {name: p.numpy() for name, p in layer.named_parameters()}
    return {n.removesuffix(end): p for n, p in named.items() if n.endswith(end)}


@pytest.mark.parametrize("kind", KINDS)
def test_both_directions_by_formulas(kind: str) -> None:
    layer = getattr(nn, kind)(3, 5, bidirectional=True).to(rg.float64)
    y, last = layer(X)
    h = np.zeros((2, 5))
    on = steps(kind, numbers(layer, "_l0"), X, h)
    back = steps(kind, numbers(layer, "_l0_reverse"), X[::-1], h)[::-1]
    np.testing.assert_allclose(y.numpy(), np.concatenate([on, back], axis=-1), rtol=1e-10)
    state = last[0] if kind == "LSTM" else last
    np.testing.assert_allclose(state.numpy(), [on[-1], back[0]], rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_its_cell_along_time(kind: str) -> None:
    layer = getattr(nn, kind)(3, 5, batch_first=True).to(rg.float64)
    cell = getattr(nn, f"{kind}Cell")(3, 5).to(rg.float64)
    cell.load_state_dict({n.removesuffix("_l0"): p for n, p in layer.state_dict().items()})
    state = None
    for x in X:
        state = cell(x, state)
    y, _ = layer(X.swapaxes(0, 1))
    h = state[0] if isinstance(state, tuple) else state
    assert h is not None
    np.testing.assert_allclose(y.numpy()[:, -1], h.numpy(), rtol=1e-10)


def test_a_projection_makes_the_state_smaller() -> None:
    y, (h, c) = nn.LSTM(3, 5, proj_size=2)(X)
    assert (y.shape, h.shape, c.shape) == ((4, 2, 2), (1, 2, 2), (1, 2, 5))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nn.GRU(3, 0), rg.ShapeError, "sizes are at least 1"),
        (lambda: nn.LSTM(3, 5, proj_size=5), rg.ShapeError, "proj_size is for LSTM, below"),
        (lambda: nn.RNN(3, 5, nonlinearity="sin"), rg.OptionError, "'tanh' or 'relu', not 'sin'"),
        (lambda: nn.LSTM(3, 5)(X[:0]), rg.ShapeError, "at least of length 1"),
        (lambda: nn.RNNCell(3, 5)(X[0], np.zeros((2, 4))), rg.ShapeError, r"\(2, 5\)"),
    ],
)
def test_refusals(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("kind", KINDS)
def test_an_eager_training_loop_finds_its_steps_again(kind: str) -> None:
    layer = getattr(nn, kind)(3, 4, num_layers=2)
    optimizer = rg.optim.SGD(layer.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        loss = (layer(rg.asarray(X.astype("f")))[0] ** 2).sum()
        loss.backward()
        optimizer.step()
        loss.item()

    for _ in range(4):
        step()
    made = []
    original = recurrent._linear

    def counted(*args: Any) -> Any:
        made.append(args)
        return original(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recurrent, "_linear", counted)
        step()
        assert not made
        rg.jit(layer)(rg.asarray(X.astype("f")))
    assert made


def test_what_is_not_there_of_packed_sequences_counts_for_nothing() -> None:
    """NaN in one sequence stays in it, though another has padding where it is read."""
    x = X.astype("f").copy()
    x[0, 0] = np.nan
    given = rg.tensor(x, requires_grad=True)
    packed = nn.utils.rnn.pack_padded_sequence(given, [4, 2])
    y, _ = nn.utils.rnn.pad_packed_sequence(nn.LSTM(3, 4)(packed)[0])
    y[:, 1].sum().backward()
    assert np.isnan(y.numpy()[:, 0]).all()
    assert np.isfinite(y.numpy()[:, 1]).all()
    assert np.isfinite(given.grad.numpy()).all()
    assert given.grad.numpy()[:2, 1].all()
    assert not given.grad.numpy()[2:, 1].any()
