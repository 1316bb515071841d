"""More activations as layers."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.frontend.random import Generator
from retrograd.frontend.tensor import Tensor
from retrograd.nn import functional, init
from retrograd.nn.module import Module, shown
from retrograd.nn.parameter import Parameter


class CELU(Module):
    """`max(x, 0) + min(alpha (exp(x / alpha) - 1), 0)`."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, input: Any) -> Tensor:
        return functional.celu(input, self.alpha)

    def extra_repr(self) -> str:
        return shown(self, "alpha")


class ELU(Module):
    """x above 0, `alpha (exp(x) - 1)` below."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, input: Any) -> Tensor:
        return functional.elu(input, self.alpha)

    def extra_repr(self) -> str:
        return shown(self, "alpha")


class GLU(Module):
    """One half of an axis times the sigmoid of the other."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Tensor:
        return functional.glu(input, self.dim)

    def extra_repr(self) -> str:
        return shown(self, "dim")


class Hardshrink(Module):
    """x where `|x|` is larger than lambd, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Tensor:
        return functional.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return shown(self, "lambd")


class Hardsigmoid(Module):
    """`clip(x / 6 + 1 / 2, 0, 1)`."""

    def forward(self, input: Any) -> Tensor:
        return functional.hardsigmoid(input)


class Hardswish(Module):
    """`x clip(x + 3, 0, 6) / 6`."""

    def forward(self, input: Any) -> Tensor:
        return functional.hardswish(input)


class Hardtanh(Module):
    """x between two limits."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Any) -> Tensor:
        return functional.hardtanh(input, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return shown(self, "min_val", "max_val")


class LeakyReLU(Module):
    """x above 0, `negative_slope x` below."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Tensor:
        return functional.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        return shown(self, "negative_slope")


class LogSigmoid(Module):
    """`log(sigmoid(x))`, without overflow."""

    def forward(self, input: Any) -> Tensor:
        return functional.logsigmoid(input)


class LogSoftmax(Module):
    """The logarithm of the softmax along an axis."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Tensor:
        return functional.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        return shown(self, "dim")


class Mish(Module):
    """`x tanh(softplus(x))`."""

    def forward(self, input: Any) -> Tensor:
        return functional.mish(input)


class ReLU6(Module):
    """`clip(x, 0, 6)`."""

    def forward(self, input: Any) -> Tensor:
        return functional.relu6(input)


class SELU(Module):
    """The scaled exponential linear unit; see `functional.selu`."""

    def forward(self, input: Any) -> Tensor:
        return functional.selu(input)


class Softmax(Module):
    """`exp(x)` divided by its sum along an axis."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Tensor:
        return functional.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return shown(self, "dim")


class Softmin(Module):
    """The softmax of `-x` along an axis."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Tensor:
        return functional.softmin(input, self.dim)

    def extra_repr(self) -> str:
        return shown(self, "dim")


class Softplus(Module):
    """`log(1 + exp(beta x)) / beta`, x itself where `beta x` is beyond the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Tensor:
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return shown(self, "beta", "threshold")


class Softshrink(Module):
    """x moved by lambd towards 0, at most to it."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Tensor:
        return functional.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return shown(self, "lambd")


class Softsign(Module):
    """`x / (1 + |x|)`."""

    def forward(self, input: Any) -> Tensor:
        return functional.softsign(input)


class Tanhshrink(Module):
    """`x - tanh(x)`."""

    def forward(self, input: Any) -> Tensor:
        return functional.tanhshrink(input)


class Threshold(Module):
    """x above the threshold, `value` elsewhere."""

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value

    def forward(self, input: Any) -> Tensor:
        return functional.threshold(input, self.threshold, self.value)

    def extra_repr(self) -> str:
        return shown(self, "threshold", "value")


class PReLU(Module):
    """x above 0, `weight x` below: weight is learned, one number or one for each channel, axis 1.

    >>> import retrograd as rg
    >>> rg.nn.PReLU()(rg.tensor([[-2.0, 4.0]])).tolist()
    [[-0.5, 4.0]]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = None) -> None:
        super().__init__()
        if num_parameters < 1:
            raise ShapeError(f"PReLU({num_parameters}): there is at least one parameter")
        self.num_parameters = num_parameters
        self.weight = Parameter(rg.full((num_parameters,), init, dtype=dtype or rg.float32))

    def forward(self, input: Any) -> Tensor:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """x above 0; below, x times a slope that is drawn for each element between `lower` and `upper`
    while training, and is their mean in evaluation. Draws as `Dropout` does."""

    def __init__(
        self, lower: float = 1 / 8, upper: float = 1 / 3, *, generator: Generator | None = None
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.generator = (generator or init.default_generator()).split()

    def forward(self, input: Any) -> Tensor:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.generator)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


class Softmax2d(Module):
    """The softmax over the channels of `[N, C, H, W]` or `[C, H, W]`."""

    def forward(self, input: Any) -> Tensor:
        x = rg.asarray(input)
        if x.ndim not in (3, 4):
            raise ShapeError(f"Softmax2d takes [N, C, H, W] or [C, H, W], not the shape {x.shape}")
        return functional.softmax(x, -3)
