"""Activations and reshapes as layers."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.frontend.tensor import Tensor
from retrograd.ir import product
from retrograd.nn import functional
from retrograd.nn.module import Module


class ReLU(Module):
    """`max(x, 0)`."""

    def forward(self, input: Any) -> Tensor:
        return functional.relu(input)


class GELU(Module):
    """`x Phi(x)`; see `functional.gelu`."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Tensor:
        return functional.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Any) -> Tensor:
        return functional.tanh(input)


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`."""

    def forward(self, input: Any) -> Tensor:
        return functional.sigmoid(input)


class SiLU(Module):
    """`x sigmoid(x)`."""

    def forward(self, input: Any) -> Tensor:
        return functional.silu(input)


class Flatten(Module):
    """Axes `start_dim` to `end_dim` as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Tensor:
        x = rg.asarray(input)
        start, end = (d + x.ndim if d < 0 else d for d in (self.start_dim, self.end_dim))
        if not 0 <= start <= end < x.ndim:
            raise ShapeError(
                f"Flatten of axes {self.start_dim} to {self.end_dim} of the shape {x.shape}"
            )
        middle = product(x.shape[start : end + 1])
        return x.reshape((*x.shape[:start], middle, *x.shape[end + 1 :]))

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
