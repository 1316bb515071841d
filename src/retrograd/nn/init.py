"""Initial values: tensors of a shape, drawn from a generator.

Every function takes `generator`. Without one it draws from a stream of this module, which starts
from seed 0 in every process and from n after `seed(n)`, so that a model made twice by the same
program is the same model twice.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from retrograd.errors import OptionError, ShapeError
from retrograd.frontend import creation
from retrograd.frontend.context import backend
from retrograd.frontend.random import Generator
from retrograd.frontend.tensor import Tensor
from retrograd.ir import as_shape, float32

# The nonlinearities `calculate_gain` knows, without those that take a parameter.
_GAINS = {
    "linear": 1.0,
    "identity": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 0.75,
}


def seed(n: int) -> None:
    """Start the stream that is used where no generator is given again, from seed n."""
    default_generator().load_state_dict(Generator(n).state_dict())


@functools.cache
def default_generator() -> Generator:
    """The generator that is used where none is given, made when it is first needed."""
    return Generator(0)


def constant(shape: Any, value: float, *, dtype: Any = None) -> Tensor:
    """One value everywhere."""
    return _now(creation.full(shape, value, dtype=dtype or float32))


def zeros(shape: Any, *, dtype: Any = None) -> Tensor:
    """Zeros."""
    return constant(shape, 0, dtype=dtype)


def ones(shape: Any, *, dtype: Any = None) -> Tensor:
    """Ones."""
    return constant(shape, 1, dtype=dtype)


def uniform(
    shape: Any,
    low: float = 0.0,
    high: float = 1.0,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
) -> Tensor:
    """Uniform numbers in `[low, high)`."""
    return _now(
        (generator or default_generator()).uniform(shape, low, high, dtype=dtype or float32)
    )


def normal(
    shape: Any,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
) -> Tensor:
    """Normal numbers."""
    return _now((generator or default_generator()).normal(shape, mean, std, dtype=dtype or float32))


def xavier_uniform(
    shape: Any, gain: float = 1.0, *, generator: Generator | None = None, dtype: Any = None
) -> Tensor:
    """Uniform in ±a, `a = gain * sqrt(6 / (fan_in + fan_out))` (Glorot, Bengio, 2010)."""
    a = gain * math.sqrt(6 / sum(fans(shape)))
    return uniform(shape, -a, a, generator=generator, dtype=dtype)


def xavier_normal(
    shape: Any, gain: float = 1.0, *, generator: Generator | None = None, dtype: Any = None
) -> Tensor:
    """Normal with `std = gain * sqrt(2 / (fan_in + fan_out))`."""
    std = gain * math.sqrt(2 / sum(fans(shape)))
    return normal(shape, 0.0, std, generator=generator, dtype=dtype)


def kaiming_uniform(
    shape: Any,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    generator: Generator | None = None,
    dtype: Any = None,
) -> Tensor:
    """Uniform in ±b, `b = gain * sqrt(3 / fan)` (He et al., arXiv:1502.01852). `a` is the slope of
    the leaky ReLU that follows."""
    b = calculate_gain(nonlinearity, a) * math.sqrt(3 / _fan(shape, mode))
    return uniform(shape, -b, b, generator=generator, dtype=dtype)


def kaiming_normal(
    shape: Any,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    generator: Generator | None = None,
    dtype: Any = None,
) -> Tensor:
    """Normal with `std = gain / sqrt(fan)`."""
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fan(shape, mode))
    return normal(shape, 0.0, std, generator=generator, dtype=dtype)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much a nonlinearity shrinks the standard deviation of its input, inverted; as in
    PyTorch. `param` is the slope of a leaky ReLU, 0.01 by default."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        known = ", ".join(["leaky_relu", *_GAINS])
        raise OptionError(f"the gain of {nonlinearity!r} is not known; there are {known}")
    return _GAINS[nonlinearity]


def fans(shape: Any) -> tuple[int, int]:
    """Number of inputs and of outputs of one unit of a weight `(out, in, *receptive field)`.

    >>> fans((8, 4, 3, 3))
    (36, 72)
    """
    size = as_shape(shape)
    if len(size) < 2 or not all(isinstance(d, int) for d in size):
        raise ShapeError(f"fan-in and fan-out are of a weight (out, in, ...), not of shape {size}")
    out, into, *field = (int(d) for d in size)
    return into * math.prod(field), out * math.prod(field)


def _fan(shape: Any, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise OptionError(f"mode is 'fan_in' or 'fan_out', not {mode!r}")
    return fans(shape)[mode == "fan_out"]


def _now(x: Tensor) -> Tensor:
    """Computed at once, without compiling a program for every shape there is."""
    with backend("reference"):
        return Tensor.of(x.value())
