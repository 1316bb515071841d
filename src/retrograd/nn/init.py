"""Initial values: tensors of a shape, drawn from a generator.

Every function takes `generator`. Without one it draws from a stream of this module, which starts
from seed 0 in every process and from n after `seed(n)`, so that a model made twice by the same
program is the same model twice. A generator that is an argument of a function under `jit` or `vmap`
makes the values part of the program: `rg.vmap(lambda g: nn.Linear(3, 2, generator=g))(g.split(4))`
is four layers, stacked. (Not those of `trunc_normal`, `orthogonal` and `sparse`.)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from retrograd.eager.leaf import stands_for_any
from retrograd.eager.modes import backend
from retrograd.errors import OptionError, ShapeError
from retrograd.functions import creation
from retrograd.functions.random.default import default_generator, manual_seed
from retrograd.functions.random.generator import Generator
from retrograd.functions.special import ndtri
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import as_dtype, as_shape, float64
from retrograd.ir.dtype import DEFAULT
from retrograd.memory_limit import check_new

# The nonlinearities `calculate_gain` knows, without those that take a parameter.
_GAINS = {
    "linear": 1.0,
    "identity": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 0.75,
}


_SKIPPED = ContextVar("skipped", default=False)


def seed(n: int) -> None:
    """Start the stream that is used where no generator is given again, from seed n, as
    `rg.manual_seed` does.

    `DTypeError` for what is no integer from 0 on.

    >>> import retrograd as rg
    >>> rg.nn.init.seed(0)
    """
    manual_seed(n)


@contextmanager
def skip_init() -> Iterator[None]:
    """Modules made inside draw no initial values: where `uniform` or `normal` would have been
    asked, parameters are zeros. For weights that come from a file: drawing 100 million numbers
    takes seconds.

    Shapes and dtypes are as ever, and so is the `ShapeError` for a negative size. Other threads
    draw.

    >>> import retrograd as rg
    >>> with rg.nn.init.skip_init():
    ...     layer = rg.nn.Linear(2, 1)
    >>> layer.weight.tolist()
    [[0.0, 0.0]]
    """
    token = _SKIPPED.set(True)
    try:
        yield
    finally:
        _SKIPPED.reset(token)


def _untouched(shape: Any, dtype: Any) -> Tensor:
    """Zeros that need no memory until somebody writes to them."""
    size: Any = as_shape(shape)
    check_new(size, as_dtype(dtype or DEFAULT.real).itemsize, "a parameter")
    return Tensor.of(np.zeros(size, as_dtype(dtype or DEFAULT.real).dtype))


def constant(shape: Any, value: float, *, dtype: Any = None) -> Tensor:
    """One value everywhere.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for a negative size,
    `DTypeError` for a value that does not fit the dtype.

    >>> import retrograd as rg
    >>> rg.nn.init.constant((2,), 0.5).tolist()
    [0.5, 0.5]
    """
    return _now(creation.full(shape, value, dtype=dtype or DEFAULT.real))


def zeros(shape: Any, *, dtype: Any = None) -> Tensor:
    """Zeros.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for a negative size.

    >>> import retrograd as rg
    >>> rg.nn.init.zeros((2,)).tolist()
    [0.0, 0.0]
    """
    return constant(shape, 0, dtype=dtype)


def ones(shape: Any, *, dtype: Any = None) -> Tensor:
    """Ones.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for a negative size.

    >>> import retrograd as rg
    >>> rg.nn.init.ones((2,)).tolist()
    [1.0, 1.0]
    """
    return constant(shape, 1, dtype=dtype)


def uniform(
    shape: Any,
    low: float = 0.0,
    high: float = 1.0,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
) -> Tensor:
    """Uniform numbers in `[low, high)`.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for a negative size.

    >>> import retrograd as rg
    >>> rg.nn.init.uniform((2, 3)).shape
    (2, 3)
    """
    if _SKIPPED.get():
        return _untouched(shape, dtype)
    return _now(
        (generator or default_generator()).uniform(shape, low, high, dtype=dtype or DEFAULT.real)
    )


def normal(
    shape: Any,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
) -> Tensor:
    """Normal numbers.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for a negative size.

    >>> import retrograd as rg
    >>> rg.nn.init.normal((2, 3)).shape
    (2, 3)
    """
    if _SKIPPED.get():
        return _untouched(shape, dtype)
    return _now(
        (generator or default_generator()).normal(shape, mean, std, dtype=dtype or DEFAULT.real)
    )


def xavier_uniform(
    shape: Any, gain: float = 1.0, *, generator: Generator | None = None, dtype: Any = None
) -> Tensor:
    """Uniform in ±a, `a = gain * sqrt(6 / (fan_in + fan_out))` (Glorot, Bengio, 2010).

    Of the given shape, float32 unless a dtype is given. `ShapeError` for less than two axes.

    >>> import retrograd as rg
    >>> bool((abs(rg.nn.init.xavier_uniform((3, 3))) <= 1).all())
    True
    """
    a = gain * math.sqrt(6 / sum(fans(shape)))
    return uniform(shape, -a, a, generator=generator, dtype=dtype)


def xavier_normal(
    shape: Any, gain: float = 1.0, *, generator: Generator | None = None, dtype: Any = None
) -> Tensor:
    """Normal with `std = gain * sqrt(2 / (fan_in + fan_out))`.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for less than two axes.

    >>> import retrograd as rg
    >>> rg.nn.init.xavier_normal((2, 3)).shape
    (2, 3)
    """
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
    the leaky ReLU that follows.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for less than two axes,
    `OptionError` for another mode or nonlinearity.

    >>> import retrograd as rg
    >>> rg.nn.init.kaiming_uniform((2, 3)).shape
    (2, 3)
    """
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
    """Normal with `std = gain / sqrt(fan)`.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for less than two axes,
    `OptionError` for another mode or nonlinearity.

    >>> import retrograd as rg
    >>> rg.nn.init.kaiming_normal((2, 3)).shape
    (2, 3)
    """
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fan(shape, mode))
    return normal(shape, 0.0, std, generator=generator, dtype=dtype)


def trunc_normal(
    shape: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
) -> Tensor:
    """Normal numbers within `[a, b]`: the quantiles of uniform ones.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for a negative size.

    >>> import retrograd as rg
    >>> bool((abs(rg.nn.init.trunc_normal((10,))) <= 2).all())
    True
    """
    low, high = (0.5 * math.erfc((mean - end) / std / math.sqrt(2)) for end in (a, b))
    u = uniform(shape, low, high, generator=generator, dtype=float64).numpy()
    with backend("reference"):
        x = mean + std * ndtri(u).numpy()
    return Tensor.of(np.clip(x, a, b).astype(as_dtype(dtype or DEFAULT.real).dtype))


def orthogonal(
    shape: Any, gain: float = 1.0, *, generator: Generator | None = None, dtype: Any = None
) -> Tensor:
    """`gain` times orthonormal columns, or rows where there are fewer of these, of the matrix
    `(shape[0], product of the others)` (Saxe et al., arXiv:1312.6120).

    Of the given shape, float32 unless a dtype is given. `ShapeError` for less than two axes.

    >>> import retrograd as rg
    >>> q = rg.nn.init.orthogonal((2, 2))
    >>> rg.abs(rg.linalg.det(q)).item()
    1.0
    """
    size = _known("orthogonal", shape, 2)
    rows, columns = size[0], math.prod(size[1:])
    long, short = max(rows, columns), min(rows, columns)
    q, r = np.linalg.qr(normal((long, short), generator=generator, dtype=float64).numpy())
    q = q * np.where(np.diagonal(r) < 0, -1, 1)  # else some come more often than others
    kind = as_dtype(dtype or DEFAULT.real).dtype
    return Tensor.of((gain * (q.T if rows < columns else q)).reshape(size).astype(kind))


def sparse(
    shape: Any,
    sparsity: float,
    std: float = 0.01,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
) -> Tensor:
    """A normal matrix, in each column of which a part of the elements is zero.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for anything but two axes.

    >>> import retrograd as rg
    >>> rg.count_nonzero(rg.nn.init.sparse((4, 3), 0.5)).item()
    6
    """
    rows, columns = _known("sparse", shape, 2, 2)
    x = np.array(normal((rows, columns), 0.0, std, generator=generator, dtype=dtype).numpy())
    order = np.argsort(uniform((rows, columns), generator=generator).numpy(), axis=0)
    x[order[: math.ceil(sparsity * rows)], np.arange(columns)] = 0
    return Tensor.of(x)


def eye(shape: Any, *, dtype: Any = None) -> Tensor:
    """The identity matrix.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for anything but two axes.

    >>> import retrograd as rg
    >>> rg.nn.init.eye((2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return Tensor.of(
        np.eye(*_known("eye", shape, 2, 2), dtype=as_dtype(dtype or DEFAULT.real).dtype)
    )


def dirac(shape: Any, groups: int = 1, *, dtype: Any = None) -> Tensor:
    """The weight of a convolution that gives as many of its channels as it can unchanged; in each
    of the groups.

    Of the given shape, float32 unless a dtype is given. `ShapeError` for less than three or more
    than five axes, `OptionError` for groups that do not divide the channels.

    >>> import retrograd as rg
    >>> rg.nn.init.dirac((1, 1, 3)).tolist()
    [[[0.0, 1.0, 0.0]]]
    """
    size = _known("dirac", shape, 3, 5)
    if groups < 1 or size[0] % groups:
        raise OptionError(f"dirac: {size[0]} channels do not make {groups} groups")
    x = np.zeros(size, as_dtype(dtype or DEFAULT.real).dtype)
    each, middle = size[0] // groups, tuple(n // 2 for n in size[2:])
    for g in range(groups):
        for i in range(min(each, size[1])):
            x[(g * each + i, i, *middle)] = 1
    return Tensor.of(x)


def _known(what: str, shape: Any, least: int, most: int | None = None) -> list[int]:
    """A shape of numbers, of so many axes."""
    size = [d for d in as_shape(shape) if isinstance(d, int)]
    if len(size) != len(as_shape(shape)) or not least <= len(size) <= (most or len(size)):
        axes = f"{least}" if most == least else f"{least} to {most}" if most else f"{least} or more"
        raise ShapeError(f"{what} is for shapes of {axes} axes, not {as_shape(shape)}")
    check_new(size, 8, what)
    return size


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much a nonlinearity shrinks the standard deviation of its input, inverted; as in
    PyTorch. `param` is the slope of a leaky ReLU, 0.01 by default.

    `OptionError` for a nonlinearity that is not known.

    >>> import retrograd as rg
    >>> rg.nn.init.calculate_gain("tanh")
    1.6667
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        known = ", ".join(["leaky_relu", *_GAINS])
        raise OptionError(f"the gain of {nonlinearity!r} is not known; there are {known}")
    return _GAINS[nonlinearity]


def fans(shape: Any) -> tuple[int, int]:
    """Number of inputs and of outputs of one unit of a weight `(out, in, *receptive field)`.

    `ShapeError` for less than two axes.

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


def _in_place(
    draw: Callable[..., Tensor], arguments: str = "", shape: tuple[int, ...] = (2, 2)
) -> Callable[..., Tensor]:
    """The function of PyTorch's name, which gives a tensor such values instead of making one; the
    example of its docstring is a call with these arguments, of a parameter of this shape."""

    @functools.wraps(draw)
    def fill(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        drawn = draw(tensor.shape, *args, dtype=tensor.dtype, **kwargs)
        tensor.replace(drawn.value())
        return tensor

    fill.__name__ = fill.__qualname__ = f"{draw.__name__}_"
    call = f"rg.nn.init.{fill.__name__}(rg.nn.Parameter(rg.zeros({shape})){arguments})"
    fill.__doc__ = (
        f"Give a parameter the values of `{draw.__name__}`, in its shape and dtype; return it.\n\n"
        f"Errors are those of `{draw.__name__}`: `ShapeError` for a shape that it is not for.\n\n"
        f">>> import retrograd as rg\n>>> {call}.shape\n{shape}"
    )
    return fill


constant_ = _in_place(constant, ", 0.5")
zeros_ = _in_place(zeros)
ones_ = _in_place(ones)
uniform_ = _in_place(uniform)
normal_ = _in_place(normal)
trunc_normal_ = _in_place(trunc_normal)
xavier_uniform_ = _in_place(xavier_uniform)
xavier_normal_ = _in_place(xavier_normal)
kaiming_uniform_ = _in_place(kaiming_uniform)
kaiming_normal_ = _in_place(kaiming_normal)
orthogonal_ = _in_place(orthogonal)
sparse_ = _in_place(sparse, ", 0.5")
eye_ = _in_place(eye)
dirac_ = _in_place(dirac, shape=(2, 2, 3))


def _now(x: Tensor) -> Tensor:
    """Computed at once, without compiling a program for every shape there is; under `jit` or
    `vmap`, of a generator that is an argument there, part of the program."""
    if stands_for_any(x.node):
        return x
    with backend("reference"):
        return Tensor.of(x.value())
