"""The part of a transformer's layer that works on each position alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import retrograd as rg
from retrograd.errors import OptionError, ShapeError, nearest
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional
from retrograd.nn.layers.dropout import Dropout
from retrograd.nn.layers.linear import Linear
from retrograd.nn.module.module import Module

GATED: dict[str, Callable[..., Tensor]] = {
    "swiglu": functional.swiglu,
    "geglu": functional.geglu,
    "reglu": functional.reglu,
}
PLAIN: dict[str, Callable[..., Tensor]] = {
    "relu": rg.relu,
    "gelu": rg.gelu,
    "gelu_tanh": lambda x: rg.gelu(x, "tanh"),
    "silu": rg.silu,
}


class FeedForward(Module):
    """`down(f(gate(x), up(x)))` for a gated activation f, "swiglu" (the default), "geglu" or
    "reglu" (Shazeer, arXiv:2002.05202), as in Llama; `down(f(up(x)))` for "relu", "gelu",
    "gelu_tanh", "silu" or a function. Dropout is before the last map.

    `hidden_dim` is by default `4 dim`; for gated activations two thirds of that, which has as many
    parameters, rounded up to a multiple of `multiple_of`. Parameters: `gate_proj`, `up_proj`,
    `down_proj`, each a `Linear`.

    `[..., dim]` to the same. `ShapeError` for sizes below 1, and for an input with another last
    size, `OptionError` for another activation and a `dropout` that is no probability.

    >>> import retrograd as rg
    >>> layer = rg.nn.FeedForward(8, 16)
    >>> layer(rg.ones((2, 3, 8))).shape, [name for name, _ in layer.named_parameters()]
    ((2, 3, 8), ['gate_proj.weight', 'up_proj.weight', 'down_proj.weight'])
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int | None = None,
        activation: str | Callable[[Any], Any] = "swiglu",
        dropout: float = 0.0,
        bias: bool = False,
        multiple_of: int = 1,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        known = [*GATED, *PLAIN]
        if isinstance(activation, str) and activation not in known:
            raise OptionError(
                f"FeedForward: the activation {activation!r} is none of {', '.join(known)}, and no "
                f"function{nearest(activation, known)}"
            )
        gated = isinstance(activation, str) and activation in GATED
        if hidden_dim is None:
            least = -(-8 * dim // 3) if gated else 4 * dim
            hidden_dim = -(-least // multiple_of) * multiple_of
        if dim < 1 or hidden_dim < 1:
            raise ShapeError(f"FeedForward({dim}, {hidden_dim}): sizes are at least 1")
        self.activation = activation
        options: Any = {"bias": bias, "generator": generator, "dtype": dtype}
        self.gate_proj = Linear(dim, hidden_dim, **options) if gated else None
        self.up_proj = Linear(dim, hidden_dim, **options)
        self.down_proj = Linear(hidden_dim, dim, **options)
        self.dropout = Dropout(dropout, generator=generator) if dropout else None

    def forward(self, input: Any) -> Tensor:
        name: Any = self.activation
        if self.gate_proj is not None:
            y = GATED[name](self.gate_proj(input), self.up_proj(input))
        else:
            y = PLAIN.get(name, name)(self.up_proj(input))
        return self.down_proj(y if self.dropout is None else self.dropout(y))

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"
