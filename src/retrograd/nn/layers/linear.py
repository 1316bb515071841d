"""Linear maps."""

from __future__ import annotations

import math
from typing import Any

from retrograd.errors import ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter


class Identity(Module):
    """The input itself; takes any arguments.

    Shape and dtype stay, and no input is a `ShapeError` or any other.

    >>> import retrograd as rg
    >>> rg.nn.Identity()(rg.ones((2,))).tolist()
    [1.0, 1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """`x @ weight.T + bias`: `[..., in_features]` to `[..., out_features]`.

    weight is `[out_features, in_features]`; weight and bias are uniform in ±1/sqrt(in_features).

    `ShapeError` for sizes below 1, and for an input with another last size.

    >>> import retrograd as rg
    >>> rg.nn.Linear(3, 2)(rg.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in_features < 1 or out_features < 1:
            raise ShapeError(f"Linear({in_features}, {out_features}): sizes are at least 1")
        self.in_features = in_features
        self.out_features = out_features
        shape = (out_features, in_features)
        options: Any = {"generator": generator, "dtype": dtype}
        self.weight = Parameter(init.kaiming_uniform(shape, a=math.sqrt(5), **options))
        bound = 1 / math.sqrt(in_features)
        self.bias = (
            Parameter(init.uniform((out_features,), -bound, bound, **options)) if bias else None
        )

    def forward(self, input: Any) -> Tensor:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """`x1^T W[k] x2 + bias[k]`: `[..., in1_features]` and `[..., in2_features]` to
    `[..., out_features]`. weight is `[out, in1, in2]`; weight and bias are uniform in
    ±1/sqrt(in1_features).

    `ShapeError` for sizes below 1, and for inputs with other last sizes.

    >>> import retrograd as rg
    >>> rg.nn.Bilinear(2, 3, 4)(rg.ones((5, 2)), rg.ones((5, 3))).shape
    (5, 4)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (out_features, in1_features, in2_features)
        if min(shape) < 1:
            raise ShapeError(
                f"Bilinear({in1_features}, {in2_features}, {out_features}): at least 1"
            )
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in1_features)
        options: Any = {"generator": generator, "dtype": dtype}
        self.weight = Parameter(init.uniform(shape, -bound, bound, **options))
        self.bias = (
            Parameter(init.uniform((out_features,), -bound, bound, **options)) if bias else None
        )

    def forward(self, input1: Any, input2: Any) -> Tensor:
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in1_features}, {self.in2_features}, {self.out_features}"
