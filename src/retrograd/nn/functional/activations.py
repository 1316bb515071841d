"""Activations as functions, with PyTorch's names and arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import retrograd as rg
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.broadcasting import normal_axis
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim
from retrograd.ir.source import located
from retrograd.nn import init

# Constants of self-normalizing networks (Klambauer et al., arXiv:1706.02515).
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def floating(value: Any) -> Tensor:
    """As a tensor of floats."""
    x = rg.asarray(value)
    return x if x.dtype.is_float else x.astype(rg.get_default_dtype())


def _tanh_series(count: int) -> list[float]:
    """Coefficients of `tanh(x)` from `x**3` on, in `x**2`: by `tanh' = 1 - tanh**2`."""
    found = [1.0]
    for k in range(1, count + 1):
        found.append(-sum(found[i] * found[k - 1 - i] for i in range(k)) / (2 * k + 1))
    return found[1:]


TANH = _tanh_series(22)


@located
def relu(input: Any, inplace: bool = False) -> Tensor:
    """`max(x, 0)`.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.relu(rg.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return rg.relu(input)


@located
def relu6(input: Any, inplace: bool = False) -> Tensor:
    """`min(max(x, 0), 6)`; the derivative at 0 and 6 is 0.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.relu6(rg.tensor([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """
    return rg.clip(floating(input), 0.0, 6.0)


@located
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`x` where positive, `negative_slope * x` elsewhere.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.leaky_relu(rg.tensor([-1.0, 2.0]), 0.1).tolist()
    [-0.1, 2.0]
    """
    return rg.leaky_relu(input, negative_slope)


@located
def prelu(input: Any, weight: Any) -> Tensor:
    """`x` where positive, `weight * x` elsewhere; a weight for all, or one for each channel, which
    are axis 1.

    The shape is that of the input. `ShapeError` for another number of weights.

    >>> import retrograd as rg
    >>> rg.nn.functional.prelu(rg.tensor([-1.0, 2.0]), rg.tensor(0.5)).tolist()
    [-0.5, 2.0]
    """
    x, w = floating(input), rg.asarray(weight)
    if w.ndim > 1 or (w.size != 1 and (x.ndim < 2 or w.shape[0] != x.shape[1])):
        raise ShapeError(
            f"prelu: the weight, {w.shape}, is one number or one for each channel (axis 1) of the "
            f"input, {x.shape}"
        )
    w = w.reshape((-1,) + (1,) * max(x.ndim - 2, 0)) if w.size != 1 else w.reshape(())
    return rg.where(x > 0, x, w * x)


@located
def rrelu(
    input: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """`leaky_relu` with a slope for each element, uniform between `lower` and `upper`, in training,
    and their mean elsewhere.

    Elementwise: the shape is that of the input. `DTypeError` for what is no array of numbers,
    `OptionError` for slopes that do not ascend.

    >>> import retrograd as rg
    >>> rg.nn.functional.rrelu(rg.tensor([-24.0, 2.0])).tolist()
    [-5.5, 2.0]
    """
    x = floating(input)
    check_slopes(lower, upper)
    if not training:
        return rg.leaky_relu(x, (lower + upper) / 2)
    source = generator or init.default_generator()
    return rg.where(x > 0, x, source.uniform(x.shape, lower, upper, dtype=x.dtype) * x)


def check_slopes(lower: float, upper: float) -> None:
    """An `OptionError` for limits of `rrelu` that do not ascend."""
    if not lower <= upper:
        raise OptionError(f"rrelu: the slopes are from lower={lower} to upper={upper}, in order")


@located
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`x` where positive, `alpha * (exp(x) - 1)` elsewhere.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.elu(rg.tensor([-1.0, 2.0])).tolist()
    [-0.6321, 2.0]
    """
    return rg.elu(input, alpha)


@located
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`x` where positive, `alpha * (exp(x / alpha) - 1)` elsewhere (Barron, arXiv:1704.07483); the
    second derivative at 0, of which there are two, is 0.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.celu(rg.tensor([-2.0, 1.0]), 2.0).tolist()
    [-1.2642, 1.0]
    """
    x = floating(input)
    return rg.where(x < 0, alpha * rg.expm1(x / alpha), x)


@located
def selu(input: Any, inplace: bool = False) -> Tensor:
    """`scale * elu(x, alpha)` with the constants that keep mean 0 and variance 1 (Klambauer et al.,
    arXiv:1706.02515).

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.selu(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0507]
    """
    return SELU_SCALE * rg.elu(input, SELU_ALPHA)


@located
def gelu(input: Any, approximate: str = "none") -> Tensor:
    """`x Phi(x)`; with `approximate="tanh"` the formula with tanh.

    Elementwise: the shape is that of the input. `OptionError` for another `approximate`,
    `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.gelu(rg.tensor([-1.0, 1.0])).tolist()
    [-0.1587, 0.8413]
    """
    return rg.gelu(input, approximate)


@located
def silu(input: Any, inplace: bool = False) -> Tensor:
    """`x sigmoid(x)`.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.silu(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 0.7311]
    """
    return rg.silu(input)


@located
def mish(input: Any, inplace: bool = False) -> Tensor:
    """`x tanh(softplus(x))` (Misra, arXiv:1908.08681).

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.mish(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 0.8651]
    """
    x = floating(input)
    return x * rg.tanh(rg.softplus(x))


@located
def glu(input: Any, dim: int = -1) -> Tensor:
    """`a sigmoid(b)` of the halves a and b of an axis (Dauphin et al., arXiv:1612.08083).

    `[..., 2 n]` to `[..., n]`. `ShapeError` for an odd size, `AxisError` for an axis that the input
    does not have.

    >>> import retrograd as rg
    >>> rg.nn.functional.glu(rg.tensor([3.0, 0.0])).tolist()
    [1.5]
    """
    a, b = _halves(floating(input), dim, "glu")
    return a * rg.sigmoid(b)


def _gated(input: Any, other: Any, dim: int, what: str, f: Callable[[Tensor], Tensor]) -> Tensor:
    """`f(a) b` for two arrays, or for the halves of one."""
    if other is not None:
        a, b = floating(input), rg.asarray(other)
        if a.shape != b.shape:
            raise ShapeError(f"{what}: the two inputs have one shape, not {a.shape} and {b.shape}")
    else:
        a, b = _halves(floating(input), dim, what)
    return f(a) * b


def _halves(x: Tensor, dim: int, what: str) -> Sequence[Tensor]:
    axis = normal_axis(dim, x.ndim, what)
    if not isinstance(x.shape[axis], Dim) and x.shape[axis] % 2:
        raise ShapeError(f"{what}: axis {dim} of the input, {x.shape}, must have an even size")
    return rg.split(x, 2, axis=axis)


@located
def swiglu(input: Any, other: Any = None, dim: int = -1) -> Tensor:
    """`silu(a) b` (Shazeer, arXiv:2002.05202) for two arrays, or for the halves a and b of an axis
    of one. Unlike in `glu`, it is the first that goes through the activation.

    `[..., 2 n]` to `[..., n]`, or twice `[...]` to the same. `ShapeError` for an odd size or
    different shapes, `AxisError` for an axis that the input does not have.

    >>> import retrograd as rg
    >>> rg.nn.functional.swiglu(rg.tensor([1.0, 2.0])).tolist()
    [1.4621]
    """
    return _gated(input, other, dim, "swiglu", rg.silu)


@located
def geglu(input: Any, other: Any = None, dim: int = -1, approximate: str = "none") -> Tensor:
    """`gelu(a) b` (Shazeer, arXiv:2002.05202) for two arrays, or for the halves a and b of an axis
    of one; `approximate` as in `gelu`.

    `[..., 2 n]` to `[..., n]`, or twice `[...]` to the same. `ShapeError` for an odd size or
    different shapes, `AxisError` for an axis that the input does not have.

    >>> import retrograd as rg
    >>> rg.nn.functional.geglu(rg.tensor([1.0, 2.0])).tolist()
    [1.6827]
    """
    return _gated(input, other, dim, "geglu", lambda a: rg.gelu(a, approximate))


@located
def reglu(input: Any, other: Any = None, dim: int = -1) -> Tensor:
    """`relu(a) b` (Shazeer, arXiv:2002.05202) for two arrays, or for the halves a and b of an axis
    of one.

    `[..., 2 n]` to `[..., n]`, or twice `[...]` to the same. `ShapeError` for an odd size or
    different shapes, `AxisError` for an axis that the input does not have.

    >>> import retrograd as rg
    >>> rg.nn.functional.reglu(rg.tensor([-1.0, 3.0, 2.0, 2.0])).tolist()
    [-0.0, 6.0]
    """
    return _gated(input, other, dim, "reglu", rg.relu)


@located
def sigmoid(input: Any) -> Tensor:
    """`1 / (1 + exp(-x))`.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.sigmoid(rg.tensor([0.0, 2.0])).tolist()
    [0.5, 0.8808]
    """
    return rg.sigmoid(input)


@located
def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """`relu6(x + 3) / 6`.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.hardsigmoid(rg.tensor([-3.0, 0.0])).tolist()
    [0.0, 0.5]
    """
    return relu6(floating(input) + 3.0) / 6


@located
def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """`x relu6(x + 3) / 6` (Howard et al., arXiv:1905.02244).

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.hardswish(rg.tensor([-3.0, 3.0])).tolist()
    [0.0, 3.0]
    """
    x = floating(input)
    return x * relu6(x + 3.0) / 6


@located
def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """`x` limited to the range; the derivative at its ends is 0.

    Elementwise: the shape is that of the input. `OptionError` for a range that is empty,
    `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.hardtanh(rg.tensor([-2.0, 0.5])).tolist()
    [-1.0, 0.5]
    """
    if not min_val <= max_val:
        raise OptionError(f"hardtanh: min_val, {min_val}, is not above max_val, {max_val}")
    return rg.clip(floating(input), min_val, max_val)


@located
def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """`x` where `|x| > lambd`, 0 elsewhere.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.hardshrink(rg.tensor([-0.3, 2.0])).tolist()
    [0.0, 2.0]
    """
    x = floating(input)
    return rg.where(rg.abs(x) > lambd, x, 0.0)


@located
def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """`x` moved towards 0 by lambd, but not beyond it.

    Elementwise: the shape is that of the input. `OptionError` for a negative lambd, `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.softshrink(rg.tensor([-0.3, 2.0])).tolist()
    [0.0, 1.5]
    """
    if lambd < 0:
        raise OptionError(f"softshrink: lambd is not negative, {lambd} is")
    x = floating(input)
    return rg.where(x > lambd, x - lambd, rg.where(x < -lambd, x + lambd, 0.0))


@located
def tanhshrink(input: Any) -> Tensor:
    """`x - tanh(x)`, near 0 by its series.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.tanhshrink(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 0.2384]
    """
    x = floating(input)
    near = rg.abs(x) < 0.6
    small = rg.where(near, x, 0.0)
    square, series = small * small, rg.zeros_like(x)
    for c in reversed(TANH[: 10 if x.dtype != rg.float64 else 22]):
        series = series * square - c
    return rg.where(near, small * (square * series), x - rg.tanh(x))


@located
def softsign(input: Any) -> Tensor:
    """`x / (1 + |x|)`; beyond 1 as `1 - 1 / (1 + |x|)`, whose derivative does not cancel.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.softsign(rg.tensor([1.0, -3.0])).tolist()
    [0.5, -0.75]
    """
    x = floating(input)
    size = rg.abs(x)
    r, side = rg.reciprocal(1 + size), rg.sign(x)
    return rg.where(size > 1, side - side * r, x * r)


@located
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`x` where it is above the threshold, `value` elsewhere.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.threshold(rg.tensor([0.0, 1.0]), 0.1, 20.0).tolist()
    [20.0, 1.0]
    """
    x = rg.asarray(input)
    return rg.where(x > threshold, x, value)


@located
def logsigmoid(input: Any) -> Tensor:
    """`log(sigmoid(x))`, accurate in both tails.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.logsigmoid(rg.tensor([0.0])).tolist()
    [-0.6931]
    """
    return rg.log_sigmoid(input)


@located
def tanh(input: Any) -> Tensor:
    """The hyperbolic tangent.

    Elementwise: the result has the shape of the input. Derivative: `1 - tanh(x)**2`. `DTypeError`
    for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.tanh(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 0.7616]
    """
    return rg.tanh(input)


@located
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """`log(1 + exp(beta x)) / beta`, and x where `beta x` is above the threshold.

    Elementwise: the result has the shape of the input; integers are taken as float32. `DTypeError`
    for complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.softplus(rg.tensor([0.0])).tolist()
    [0.6931]
    """
    x = floating(input)
    return rg.where(x * beta > threshold, x, rg.softplus(x * beta) / beta)


def _in_dtype(input: Any, dtype: Any) -> Any:
    return input if dtype is None else rg.asarray(input).astype(dtype)


@located
def softmax(input: Any, dim: int = -1, *, dtype: Any = None) -> Tensor:
    """`exp(x) / sum(exp(x))` along an axis, computed in `dtype` where that is given.

    The shape is that of the input. `AxisError` for an axis that it does not have, `DTypeError` for
    complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.softmax(rg.tensor([0.0, 1.0])).tolist()
    [0.2689, 0.7311]
    """
    return rg.softmax(_in_dtype(input, dtype), axis=dim)


@located
def softmin(input: Any, dim: int = -1, *, dtype: Any = None) -> Tensor:
    """`softmax(-x)`, computed in `dtype` where that is given.

    The shape is that of the input. `AxisError` for an axis that it does not have, `DTypeError` for
    complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.softmin(rg.tensor([0.0, 1.0])).tolist()
    [0.7311, 0.2689]
    """
    return rg.softmax(-floating(_in_dtype(input, dtype)), axis=dim)


@located
def log_softmax(input: Any, dim: int = -1, *, dtype: Any = None) -> Tensor:
    """`x - logsumexp(x)` along an axis, computed in `dtype` where that is given.

    The shape is that of the input. `AxisError` for an axis that it does not have, `DTypeError` for
    complex numbers.

    >>> import retrograd as rg
    >>> rg.nn.functional.log_softmax(rg.tensor([0.0, 1.0])).tolist()
    [-1.3133, -0.3133]
    """
    return rg.log_softmax(_in_dtype(input, dtype), axis=dim)


@located
def gumbel_softmax(
    logits: Any,
    tau: Any = 1.0,
    hard: bool = False,
    dim: int = -1,
    generator: Generator | None = None,
) -> Tensor:
    """`softmax((logits + g) / tau)` with Gumbel noise g: samples of a relaxed categorical variable
    (Jang, Gu, Poole, arXiv:1611.01144).

    With `hard` the result is one-hot, at the largest element, and its gradient that of the soft
    one (straight through).

    The shape is that of the logits. `OptionError` for a tau that is not positive.

    >>> import retrograd as rg
    >>> rg.nn.functional.gumbel_softmax(rg.zeros((3,)), hard=True).sum().item()
    1.0
    """
    if not isinstance(tau, Tensor) and not tau > 0:
        raise OptionError(f"gumbel_softmax: tau is positive, not {tau}")
    x = floating(logits)
    u = (generator or init.default_generator()).uniform(x.shape, dtype=rg.float64)
    noise = -rg.log(-rg.log(u + 2.0**-54)).astype(x.dtype)
    y = rg.softmax((x + noise) / tau, axis=dim)
    if not hard:
        return y
    size = y.shape[dim]
    one = rg.moveaxis(rg.one_hot(rg.argmax(y, axis=dim), size, dtype=y.dtype), -1, dim)
    return one + (y - rg.stop_gradient(y))
