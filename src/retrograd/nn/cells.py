"""One step of recurrent layers."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg
from retrograd.errors import OptionError, ShapeError
from retrograd.frontend.random import Generator
from retrograd.frontend.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.nn.recurrent import GATES, State, gru_step, lstm_step, rnn_step


class _Cell(Module):
    kind: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if min(input_size, hidden_size) < 1:
            raise ShapeError(f"{self.kind}Cell({input_size}, {hidden_size}): sizes are at least 1")
        self.input_size = input_size
        self.hidden_size = hidden_size
        gates, bound = GATES[self.kind] * hidden_size, 1 / math.sqrt(hidden_size)

        def drawn(*shape: int) -> Parameter:
            return Parameter(init.uniform(shape, -bound, bound, generator=generator, dtype=dtype))

        self.weight_ih = drawn(gates, input_size)
        self.weight_hh = drawn(gates, hidden_size)
        self.bias_ih = drawn(gates) if bias else None
        self.bias_hh = drawn(gates) if bias else None

    def _states(self, x: Tensor, hx: Any, count: int) -> State:
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{self.kind}Cell takes [N, {self.input_size}] or [{self.input_size}], not the "
                f"shape {x.shape}"
            )
        shape = (*x.shape[:-1], self.hidden_size)
        if hx is None:
            return (rg.zeros(shape, dtype=x.dtype),) * count
        given = tuple(rg.asarray(h) for h in (hx if count > 1 else (hx,)))
        if len(given) != count or any(h.shape != shape for h in given):
            raise ShapeError(
                f"{self.kind}Cell: {count} of the shape {shape} belong to an input of {x.shape}, "
                f"not {[h.shape for h in given]}"
            )
        return given

    def _mapped(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight_ih, self.bias_ih)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, bias={self.bias_ih is not None}"


class RNNCell(_Cell):
    """One step of `RNN`: `[N, input_size]` and states `[N, hidden_size]` give new states."""

    kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, generator=generator, dtype=dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise OptionError(f"an RNN's nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Tensor:
        x = rg.asarray(input)
        state = self._states(x, hx, 1)
        w, b = self.weight_hh, self.bias_hh
        return rnn_step(self._mapped(x), state, w, b, self.nonlinearity)[0]


class LSTMCell(_Cell):
    """One step of `LSTM`: `[N, input_size]` and (h, c) give new (h, c)."""

    kind = "LSTM"

    def forward(self, input: Any, hx: Any = None) -> State:
        x = rg.asarray(input)
        return lstm_step(self._mapped(x), self._states(x, hx, 2), self.weight_hh, self.bias_hh)


class GRUCell(_Cell):
    """One step of `GRU`: `[N, input_size]` and states `[N, hidden_size]` give new states."""

    kind = "GRU"

    def forward(self, input: Any, hx: Any = None) -> Tensor:
        x = rg.asarray(input)
        return gru_step(self._mapped(x), self._states(x, hx, 1), self.weight_hh, self.bias_hh)[0]
