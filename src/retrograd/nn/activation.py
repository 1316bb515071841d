"""Activations and reshapes as layers."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.frontend.tensor import Tensor
from retrograd.ir import product
from retrograd.nn import functional
from retrograd.nn.applied import Applied, InPlace
from retrograd.nn.module import Module


class ReLU(InPlace):
    """`max(x, 0)`."""

    function = staticmethod(functional.relu)


class GELU(Applied):
    """`x Phi(x)`; see `functional.gelu`."""

    function = staticmethod(functional.gelu)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate=approximate)


class Tanh(Applied):
    """The hyperbolic tangent."""

    function = staticmethod(functional.tanh)


class Sigmoid(Applied):
    """`1 / (1 + exp(-x))`."""

    function = staticmethod(functional.sigmoid)


class SiLU(InPlace):
    """`x sigmoid(x)`."""

    function = staticmethod(functional.silu)


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
