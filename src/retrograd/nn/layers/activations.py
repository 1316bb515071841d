"""More activations as layers."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import product
from retrograd.nn import functional, init
from retrograd.nn.functional.activations import check_slopes
from retrograd.nn.module.functional_module import FunctionalModule, InPlace
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter


class CELU(FunctionalModule):
    """`max(x, 0) + min(alpha (exp(x / alpha) - 1), 0)`.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.CELU(2.0)(rg.tensor([-2.0, 1.0])).tolist()
    [-1.2642, 1.0]
    """

    function = staticmethod(functional.celu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha, inplace=inplace)


class ELU(FunctionalModule):
    """x above 0, `alpha (exp(x) - 1)` below.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.ELU()(rg.tensor([-1.0, 2.0])).tolist()
    [-0.6321, 2.0]
    """

    function = staticmethod(functional.elu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha, inplace=inplace)


class GLU(FunctionalModule):
    """One half of an axis times the sigmoid of the other.

    `[..., 2 n]` to `[..., n]` along `dim`. `ShapeError` for an odd size.

    >>> import retrograd as rg
    >>> rg.nn.GLU()(rg.tensor([3.0, 0.0])).tolist()
    [1.5]
    """

    function = staticmethod(functional.glu)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class SwiGLU(FunctionalModule):
    """`silu(a) b` for the halves a and b of an axis; see `functional.swiglu`.

    `[..., 2 n]` to `[..., n]` along `dim`. `ShapeError` for an odd size.

    >>> import retrograd as rg
    >>> rg.nn.SwiGLU()(rg.tensor([1.0, 2.0])).tolist()
    [1.4621]
    """

    function = staticmethod(functional.swiglu)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class GEGLU(FunctionalModule):
    """`gelu(a) b` for the halves a and b of an axis; see `functional.geglu`.

    `[..., 2 n]` to `[..., n]` along `dim`. `ShapeError` for an odd size.

    >>> import retrograd as rg
    >>> rg.nn.GEGLU()(rg.tensor([1.0, 2.0])).tolist()
    [1.6827]
    """

    function = staticmethod(functional.geglu)

    def __init__(self, dim: int = -1, approximate: str = "none") -> None:
        super().__init__(dim=dim, approximate=approximate)


class ReGLU(FunctionalModule):
    """`relu(a) b` for the halves a and b of an axis; see `functional.reglu`.

    `[..., 2 n]` to `[..., n]` along `dim`. `ShapeError` for an odd size.

    >>> import retrograd as rg
    >>> rg.nn.ReGLU()(rg.tensor([3.0, 2.0])).tolist()
    [6.0]
    """

    function = staticmethod(functional.reglu)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Hardshrink(FunctionalModule):
    """x where `|x|` is larger than lambd, else 0.

    Elementwise: the result has the shape of the input. `DTypeError` for complex numbers and what is
    no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Hardshrink()(rg.tensor([-0.3, 2.0])).tolist()
    [0.0, 2.0]
    """

    function = staticmethod(functional.hardshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Hardsigmoid(InPlace):
    """`clip(x / 6 + 1 / 2, 0, 1)`.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Hardsigmoid()(rg.tensor([-3.0, 0.0, 3.0])).tolist()
    [0.0, 0.5, 1.0]
    """

    function = staticmethod(functional.hardsigmoid)


class Hardswish(InPlace):
    """`x clip(x + 3, 0, 6) / 6`.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Hardswish()(rg.tensor([-3.0, 0.0, 3.0])).tolist()
    [0.0, 0.0, 3.0]
    """

    function = staticmethod(functional.hardswish)


class Hardtanh(FunctionalModule):
    """x between two limits.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Hardtanh()(rg.tensor([-2.0, 0.5])).tolist()
    [-1.0, 0.5]
    """

    function = staticmethod(functional.hardtanh)

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(min_val=min_val, max_val=max_val, inplace=inplace)


class LeakyReLU(FunctionalModule):
    """x above 0, `negative_slope x` below.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.LeakyReLU(0.1)(rg.tensor([-1.0, 2.0])).tolist()
    [-0.1, 2.0]
    """

    function = staticmethod(functional.leaky_relu)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(negative_slope=negative_slope, inplace=inplace)


class LogSigmoid(FunctionalModule):
    """`log(sigmoid(x))`, without overflow.

    Elementwise: the result has the shape of the input. `DTypeError` for complex numbers and what is
    no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.LogSigmoid()(rg.tensor([0.0])).tolist()
    [-0.6931]
    """

    function = staticmethod(functional.logsigmoid)


class LogSoftmax(FunctionalModule):
    """The logarithm of the softmax along an axis.

    The shape is that of the input. `AxisError` for an axis that it does not have, `DTypeError` for
    complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.LogSoftmax()(rg.tensor([0.0, 0.0])).tolist()
    [-0.6931, -0.6931]
    """

    function = staticmethod(functional.log_softmax)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Mish(InPlace):
    """`x tanh(softplus(x))`.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Mish()(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 0.8651]
    """

    function = staticmethod(functional.mish)


class ReLU6(InPlace):
    """`clip(x, 0, 6)`.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.ReLU6()(rg.tensor([-1.0, 2.0, 9.0])).tolist()
    [0.0, 2.0, 6.0]
    """

    function = staticmethod(functional.relu6)


class SELU(InPlace):
    """The scaled exponential linear unit; see `functional.selu`.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.SELU()(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0507]
    """

    function = staticmethod(functional.selu)


class Softmax(FunctionalModule):
    """`exp(x)` divided by its sum along an axis.

    The shape is that of the input. `AxisError` for an axis that it does not have, `DTypeError` for
    complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.Softmax()(rg.tensor([0.0, 1.0])).tolist()
    [0.2689, 0.7311]
    """

    function = staticmethod(functional.softmax)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Softmin(FunctionalModule):
    """The softmax of `-x` along an axis.

    The shape is that of the input. `AxisError` for an axis that it does not have, `DTypeError` for
    complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.Softmin()(rg.tensor([0.0, 1.0])).tolist()
    [0.7311, 0.2689]
    """

    function = staticmethod(functional.softmin)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Softplus(FunctionalModule):
    """`log(1 + exp(beta x)) / beta`, x itself where `beta x` is beyond the threshold.

    Elementwise: the result has the shape of the input. `DTypeError` for complex numbers and what is
    no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Softplus()(rg.tensor([0.0])).tolist()
    [0.6931]
    """

    function = staticmethod(functional.softplus)

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


class Softshrink(FunctionalModule):
    """x moved by lambd towards 0, at most to it.

    Elementwise: the result has the shape of the input. `DTypeError` for complex numbers and what is
    no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Softshrink()(rg.tensor([-0.3, 2.0])).tolist()
    [0.0, 1.5]
    """

    function = staticmethod(functional.softshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Softsign(FunctionalModule):
    """`x / (1 + |x|)`.

    Elementwise: the result has the shape of the input. `DTypeError` for complex numbers and what is
    no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Softsign()(rg.tensor([1.0, -3.0])).tolist()
    [0.5, -0.75]
    """

    function = staticmethod(functional.softsign)


class Tanhshrink(FunctionalModule):
    """`x - tanh(x)`.

    Elementwise: the result has the shape of the input. `DTypeError` for complex numbers and what is
    no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Tanhshrink()(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 0.2384]
    """

    function = staticmethod(functional.tanhshrink)


class Threshold(FunctionalModule):
    """x above the threshold, `value` elsewhere.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Threshold(0.1, 20.0)(rg.tensor([0.0, 1.0])).tolist()
    [20.0, 1.0]
    """

    function = staticmethod(functional.threshold)

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold=threshold, value=value, inplace=inplace)


class PReLU(Module):
    """x above 0, `weight x` below: weight is learned, one number or one for each channel, axis 1.

    Elementwise: the shape stays. `ShapeError` for less than one parameter, or another number of
    them than channels.

    >>> import retrograd as rg
    >>> rg.nn.PReLU()(rg.tensor([[-2.0, 4.0]])).tolist()
    [[-0.5, 4.0]]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = None) -> None:
        super().__init__()
        if num_parameters < 1:
            raise ShapeError(f"PReLU({num_parameters}): there is at least one parameter")
        self.num_parameters = num_parameters
        self.weight = Parameter(
            rg.full((num_parameters,), init, dtype=dtype or rg.get_default_dtype())
        )

    def forward(self, input: Any) -> Tensor:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """x above 0; below, x times a slope that is drawn for each element between `lower` and `upper`
    while training, and is their mean in evaluation. Draws as `Dropout` does.

    Elementwise: the shape stays. `DTypeError` for what is no array of numbers, `OptionError` for
    slopes that do not ascend.

    >>> import retrograd as rg
    >>> rg.nn.RReLU().eval()(rg.tensor([-24.0, 2.0])).tolist()
    [-5.5, 2.0]
    """

    def __init__(
        self,
        lower: float = 1 / 8,
        upper: float = 1 / 3,
        inplace: bool = False,
        *,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        check_slopes(lower, upper)
        self.lower = lower
        self.upper = upper
        self.generator = (generator or init.default_generator()).split()

    def forward(self, input: Any) -> Tensor:
        return functional.rrelu(
            input, self.lower, self.upper, self.training, generator=self.generator
        )

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


class Softmax2d(Module):
    """The softmax over the channels of `[N, C, H, W]` or `[C, H, W]`.

    `ShapeError` for other numbers of axes.

    >>> import retrograd as rg
    >>> rg.nn.Softmax2d()(rg.ones((4, 2, 2)))[0].tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """

    def forward(self, input: Any) -> Tensor:
        x = rg.asarray(input)
        if x.ndim not in (3, 4):
            raise ShapeError(f"Softmax2d takes [N, C, H, W] or [C, H, W], not the shape {x.shape}")
        return functional.softmax(x, -3)


class ReLU(InPlace):
    """`max(x, 0)`.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.ReLU()(rg.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    function = staticmethod(functional.relu)


class GELU(FunctionalModule):
    """`x Phi(x)`; see `functional.gelu`.

    Phi is the normal distribution function. Elementwise: the result has the shape of the input.
    `OptionError` for an `approximate` other than "none" and "tanh", `DTypeError` for complex
    numbers.

    >>> import retrograd as rg
    >>> rg.nn.GELU()(rg.tensor([-1.0, 1.0])).tolist()
    [-0.1587, 0.8413]
    """

    function = staticmethod(functional.gelu)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate=approximate)


class Tanh(FunctionalModule):
    """The hyperbolic tangent.

    Elementwise: the result has the shape of the input. `DTypeError` for what is
    no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Tanh()(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 0.7616]
    """

    function = staticmethod(functional.tanh)


class Sigmoid(FunctionalModule):
    """`1 / (1 + exp(-x))`.

    Elementwise: the result has the shape of the input. `DTypeError` for complex numbers and what is
    no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.Sigmoid()(rg.tensor([0.0, 2.0])).tolist()
    [0.5, 0.8808]
    """

    function = staticmethod(functional.sigmoid)


class SiLU(InPlace):
    """`x sigmoid(x)`.

    Elementwise: the result has the shape of the input; `inplace` changes nothing. `DTypeError` for
    complex numbers and what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.SiLU()(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 0.7311]
    """

    function = staticmethod(functional.silu)


class Flatten(Module):
    """Axes `start_dim` to `end_dim` as one.

    `[N, a, b, ...]` to `[N, a b ...]`, by default. `ShapeError` where the input does not have these
    axes in this order.

    >>> import retrograd as rg
    >>> rg.nn.Flatten()(rg.ones((2, 3, 4))).shape
    (2, 12)
    """

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
