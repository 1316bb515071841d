"""Normalisations of activations."""

from __future__ import annotations

from typing import Any

from retrograd.frontend.tensor import Tensor
from retrograd.ir import as_shape
from retrograd.nn import functional, init
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter


class LayerNorm(Module):
    """`(x - mean) / sqrt(var + eps) * weight + bias` over the last axes, of sizes
    `normalized_shape`. weight begins as 1, bias as 0."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps = eps
        self.weight, self.bias = None, None
        if elementwise_affine:
            self.weight = Parameter(init.ones(self.normalized_shape, dtype=dtype))
            self.bias = Parameter(init.zeros(self.normalized_shape, dtype=dtype)) if bias else None

    def forward(self, input: Any) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = self.weight is not None
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"


class RMSNorm(Module):
    """`x / sqrt(mean(x**2) + eps) * weight` over the last axes, of sizes `normalized_shape`.
    weight begins as 1; eps is by default the spacing of the input's dtype at 1."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps = eps
        self.weight = None
        if elementwise_affine:
            self.weight = Parameter(init.ones(self.normalized_shape, dtype=dtype))

    def forward(self, input: Any) -> Tensor:
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        affine = self.weight is not None
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"
