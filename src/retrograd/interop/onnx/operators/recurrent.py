"""RNN, GRU and LSTM: one scan over time for each direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.nn import functional as F

Activation = Callable[[Any], Any]


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    a = {"leakyrelu": 0.01, "thresholdedrelu": 1.0, "elu": 1.0, "hardsigmoid": 0.2}.get(
        name.lower()
    )
    alpha = a if alpha is None else alpha
    table: dict[str, Activation] = {
        "relu": rg.relu, "tanh": rg.tanh, "sigmoid": rg.sigmoid, "softsign": F.softsign,
        "softplus": rg.softplus,
        "affine": lambda x: (1.0 if alpha is None else alpha) * x + (beta or 0.0),
        "leakyrelu": lambda x: rg.leaky_relu(x, alpha),
        "thresholdedrelu": lambda x: rg.where(x >= alpha, x, 0),
        "scaledtanh": lambda x: alpha * rg.tanh(beta * x),
        "hardsigmoid": lambda x: rg.clip(alpha * x + (0.5 if beta is None else beta), 0, 1),
        "elu": lambda x: rg.where(x < 0, alpha * rg.expm1(x), x),
    }  # fmt: skip
    if name.lower() not in table:
        raise BackendError(f"a recurrent layer with the activation {name!r}")
    return table[name.lower()]


class Directions:
    """What the three layers share: directions, lengths, layout, clipping."""

    def __init__(self, call: NodeCall, default: list[str]) -> None:
        self.call = call
        direction = call.get("direction", "forward")
        self.reversed = {"forward": [False], "reverse": [True]}.get(direction, [False, True])
        names = call.get("activations", default * len(self.reversed))
        alphas, betas = (
            list(call.get("activation_alpha", [])),
            list(call.get("activation_beta", [])),
        )
        made = []
        for name in names:  # parameters are listed for those that have one
            has_alpha = name.lower() not in ("relu", "tanh", "sigmoid", "softsign", "softplus")
            has_beta = name.lower() in ("affine", "scaledtanh", "hardsigmoid")
            alpha = alphas.pop(0) if has_alpha and alphas else None
            made.append(_activation(name, alpha, betas.pop(0) if has_beta and betas else None))
        self.activations = made
        limit = call.get("clip", None)
        self.clip: Activation = (
            (lambda x: x) if limit is None else lambda x: rg.clip(x, -limit, limit)
        )

    def of(self, direction: int) -> list[Activation]:
        count = len(self.activations) // len(self.reversed)
        return self.activations[direction * count : (direction + 1) * count]

    def run(self, x: Any, lengths: Any, states: list[Any], step_of: Callable[..., Any]) -> Any:
        """`step_of(direction)` makes a function of the states and x at one time to the states; the
        first state is the output. States are [directions, batch, hidden]."""
        batch_first = bool(self.call.get("layout", 0))
        x = rg.swapaxes(x, 0, 1) if batch_first else x
        ys, lasts = [], []
        for d, is_reversed in enumerate(self.reversed):
            here = [rg.swapaxes(s, 0, 1)[d] if batch_first else s[d] for s in states]
            last, y = self._along(x, lengths, here, step_of(d), is_reversed)
            ys.append(y)
            lasts.append(last)
        y = rg.stack(ys, axis=1)  # time, directions, batch, hidden
        ends = [rg.stack(parts) for parts in zip(*lasts, strict=True)]
        if batch_first:
            y = rg.permute_dims(y, (2, 0, 1, 3))
            ends = [rg.swapaxes(s, 0, 1) for s in ends]
        return (y, *ends)

    def _along(self, x: Any, lengths: Any, first: list[Any], step: Any, is_reversed: bool) -> Any:
        """Sequences that have ended keep their state, and give 0."""
        times = rg.arange(x.shape[0])

        def body(carry: Any, at: Any) -> Any:
            time, now = at
            new = step(carry, now)
            if lengths is None:
                return new, new[0]
            lives = (time < lengths)[:, None]
            kept = [rg.where(lives, a, b) for a, b in zip(new, carry, strict=True)]
            return kept, rg.where(lives, new[0], 0)

        return rg.scan(body, list(first), (times, x), reverse=is_reversed)


def _initial(layer: Directions, given: Any, x: Any) -> Any:
    if given is not None:
        return given
    hidden, batch_first = layer.call.get("hidden_size"), layer.call.get("layout", 0)
    batch, directions = x.shape[0 if batch_first else 1], len(layer.reversed)
    shape = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    return rg.zeros(shape, dtype=x.dtype)


def _biases(bias: Any, direction: int, gates: int, hidden: int) -> tuple[Any, Any]:
    """Of the input and of the state."""
    if bias is None:
        return 0, 0
    return bias[direction, : gates * hidden], bias[direction, gates * hidden :]


@rule("RNN")
def rnn(
    call: NodeCall, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None
) -> Any:
    layer, hidden = Directions(call, ["Tanh"]), r.shape[-1]

    def step_of(d: int) -> Any:
        (f,), (wb, rb) = layer.of(d), _biases(b, d, 1, hidden)

        def step(states: Any, now: Any) -> Any:
            return [f(layer.clip(now @ w[d].T + states[0] @ r[d].T + (wb + rb)))]

        return step

    return layer.run(x, lengths, [_initial(layer, initial, x)], step_of)


@rule("GRU")
def gru(
    call: NodeCall, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None
) -> Any:
    """Gates in the order update, reset, hidden."""
    layer, hidden = Directions(call, ["Sigmoid", "Tanh"]), r.shape[-1]
    linear_first = bool(call.get("linear_before_reset", 0))

    def step_of(d: int) -> Any:
        (f, g), (wb, rb) = layer.of(d), _biases(b, d, 3, hidden)
        inner = r[d][2 * hidden :]
        rest = rb[2 * hidden :] if b is not None else 0

        def step(states: Any, now: Any) -> Any:
            (h,) = states
            given = now @ w[d].T + wb
            gates = h @ r[d][: 2 * hidden].T + (rb[: 2 * hidden] if b is not None else 0)
            gates = f(layer.clip(given[:, : 2 * hidden] + gates))
            z, reset = gates[:, :hidden], gates[:, hidden:]
            old = reset * (h @ inner.T + rest) if linear_first else (reset * h) @ inner.T + rest
            new = g(layer.clip(given[:, 2 * hidden :] + old))
            return [(1 - z) * new + z * h]

        return step

    return layer.run(x, lengths, [_initial(layer, initial, x)], step_of)


@rule("LSTM")
def lstm(
    call: NodeCall, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None,
    cell: Any = None, peepholes: Any = None,
) -> Any:  # fmt: skip
    """Gates in the order input, output, forget, cell; peepholes input, output, forget."""
    layer, hidden = Directions(call, ["Sigmoid", "Tanh", "Tanh"]), r.shape[-1]
    coupled = bool(call.get("input_forget", 0))

    def step_of(d: int) -> Any:
        (f, g, out), (wb, rb) = layer.of(d), _biases(b, d, 4, hidden)
        p = (
            None
            if peepholes is None
            else [peepholes[d][i * hidden : (i + 1) * hidden] for i in range(3)]
        )

        def step(states: Any, now: Any) -> Any:
            h, c = states
            gates = now @ w[d].T + h @ r[d].T + (wb + rb)
            i, o, forget, new = (gates[:, k * hidden : (k + 1) * hidden] for k in range(4))
            if p is not None:
                i, forget = i + p[0] * c, forget + p[2] * c
            i = f(layer.clip(i))
            forget = 1 - i if coupled else f(layer.clip(forget))
            c = forget * c + i * g(layer.clip(new))
            o = f(layer.clip(o + p[1] * c if p is not None else o))
            return [o * out(c), c]

        return step

    states = [_initial(layer, initial, x), _initial(layer, cell, x)]
    return layer.run(x, lengths, states, step_of)
