"""The generator that is used where none is given, and PyTorch's functions that draw from it."""

from __future__ import annotations

import functools
import os
from typing import Any

from retrograd.coming_from.keywords import respells
from retrograd.eager.modes import current_trace
from retrograd.errors import ShapeError, TraceError
from retrograd.functions.creation import asarray, on_cpu, shape_of
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import as_dtype, float32, int64

_SEED = [0]  # that the stream was started from


@functools.cache
def default_generator() -> Generator:
    """The generator that is used where none is given, made when it is first needed.

    >>> import retrograd as rg
    >>> isinstance(rg.nn.init.default_generator(), rg.random.Generator)
    True
    """
    made = Generator(0)
    made._trace = None  # of no traced function, also where one needs it first
    return made


@respells
def manual_seed(seed: int, /) -> Generator:
    """Start the stream that is drawn from where no generator is given again, from a seed; it is 0
    until then, so that a program draws the same numbers each time.

    `DTypeError` for what is no integer from 0 on.

    >>> import retrograd as rg
    >>> _ = rg.manual_seed(7)
    >>> first = rg.rand(3)
    >>> _ = rg.manual_seed(7)
    >>> bool((first == rg.rand(3)).all())
    True
    """
    default_generator().load_state_dict(Generator(seed).state_dict())
    _SEED[0] = int(seed)
    return default_generator()


def seed() -> int:
    """Start the stream that is drawn from where no generator is given from a seed that nobody
    knows, which is returned. `OSError` where the system has no such numbers.

    >>> import retrograd as rg
    >>> isinstance(rg.seed(), int)
    True
    >>> _ = rg.manual_seed(0)
    """
    drawn = int.from_bytes(os.urandom(7), "little")
    manual_seed(drawn)
    return drawn


def initial_seed() -> int:
    """The seed that the stream was started from, where no generator is given.

    >>> import retrograd as rg
    >>> _ = rg.manual_seed(7)
    >>> rg.initial_seed()
    7
    """
    return _SEED[0]


def get_rng_state() -> Tensor:
    """The state of the stream that is drawn from where no generator is given; see `set_rng_state`.

    Three uint32, of the shape `[3]`.

    >>> import retrograd as rg
    >>> rg.get_rng_state().shape
    (3,)
    """
    state = default_generator().state_dict()
    return asarray([*state["key"].tolist(), state["count"].item()], dtype="uint32")


@respells
def set_rng_state(new_state: Any, /) -> None:
    """Go on from a state that `get_rng_state` gave. `ShapeError` for anything but three numbers.

    >>> import retrograd as rg
    >>> state = rg.get_rng_state()
    >>> first = rg.rand(3)
    >>> rg.set_rng_state(state)
    >>> bool((first == rg.rand(3)).all())
    True
    """
    numbers = asarray(new_state, dtype="uint32").numpy()
    if numbers.shape != (3,):
        raise ShapeError(f"the state of a generator is three numbers, not {numbers.shape}")
    default_generator().load_state_dict({"key": numbers[:2], "count": numbers[2]})


def source(what: str, generator: Generator | None = None) -> Generator:
    """A generator that was given, or the one of the process, which is not for traced functions."""
    if generator is not None:
        return generator
    if current_trace() is not None:
        raise TraceError(
            f"rg.{what} inside jit, or inside of a loop, would draw the same numbers in every call "
            "or step: pass a generator as an argument of the function, g = rg.random.Generator(0), "
            f"and say rg.{what}(..., generator=g)"
        )
    return default_generator()


def _made(x: Tensor, requires_grad: bool) -> Tensor:
    return x.detach().requires_grad_() if requires_grad else x


def rand(
    shape: Any = None,
    *sizes: int,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform numbers in [0, 1), of a generator or of the stream that `manual_seed` starts.

    Of the given shape, `rg.rand(2, 3)` or `rg.rand((2, 3))`; float32 unless a dtype is given. The
    numbers are not PyTorch's. `ShapeError` for a negative size, `TraceError` inside of `jit`
    without a generator.

    >>> import retrograd as rg
    >>> rg.rand(2, 3).shape
    (2, 3)
    """
    on_cpu(device)
    found = source("rand", generator)
    return _made(found.uniform(shape_of(shape, sizes, size), dtype=dtype or float32), requires_grad)


def randn(
    shape: Any = None,
    *sizes: int,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers of mean 0 and deviation 1, of a generator or of the stream that `manual_seed`
    starts.

    Of the given shape, `rg.randn(2, 3)` or `rg.randn((2, 3))`; float32 unless a dtype is given. The
    numbers are not PyTorch's. `ShapeError` for a negative size, `TraceError` inside of `jit`
    without a generator.

    >>> import retrograd as rg
    >>> rg.randn(2, 3).shape
    (2, 3)
    """
    on_cpu(device)
    found = source("randn", generator)
    return _made(found.normal(shape_of(shape, sizes, size), dtype=dtype or float32), requires_grad)


@respells
def randint(
    low: Any = None,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Integers from `low`, 0 by default, to `high - 1`: `rg.randint(10, (3,))`,
    `rg.randint(5, 10, (3,))`.

    Of the given shape; int64 unless a dtype is given, which may be a floating one. `ShapeError` for
    an empty range or without a size, `TraceError` inside of `jit` without a generator.

    >>> import retrograd as rg
    >>> bool((rg.randint(6, (9,)) < 6).all())
    True
    """
    on_cpu(device)
    if size is None and hasattr(high, "__iter__"):
        low, high, size = 0, low, high
    elif high is None or low is None:
        low, high = 0, low if high is None else high
    if size is None or high is None:
        raise ShapeError("randint needs a size: rg.randint(0, 10, (3,))")
    kind = int64 if dtype is None or as_dtype(dtype).is_inexact else dtype
    drawn = source("randint", generator).randint(low, high, tuple(size), dtype=kind)
    return drawn if kind is dtype or dtype is None else drawn.astype(dtype)


@respells
def randperm(
    n: int, /, *, generator: Generator | None = None, dtype: Any = None, device: Any = None
) -> Tensor:
    """The numbers below n in random order.

    A vector of the shape `[n]`, int64 unless a dtype is given. `ShapeError` for a negative n,
    `TraceError` inside of `jit` without a generator.

    >>> import retrograd as rg
    >>> sorted(rg.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    on_cpu(device)
    order = source("randperm", generator).permutation(n)
    return order if dtype is None else order.astype(dtype)


@respells
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
) -> Tensor:
    """Normal numbers of a mean and a deviation, which may be arrays and have gradients.

    Of the given shape, or of that which both broadcast to, in the dtype of both or the given one.
    `ShapeError` where they do not,
    `TraceError` inside of `jit` without a generator.

    >>> import retrograd as rg
    >>> rg.normal(0.0, 2.0, (3,)).shape
    (3,)
    """
    shape = (asarray(mean) + asarray(std)).shape if size is None else tuple(size)
    drawn = source("normal", generator).normal(shape, mean, std)
    return drawn if dtype is None else drawn.astype(dtype)


@respells
def bernoulli(x: Any, p: Any = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that an element says, else 0, in the dtype of x; or with `p` for all.

    The shape is that of x. `TraceError` inside of `jit` without a generator.

    >>> import retrograd as rg
    >>> rg.bernoulli(rg.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    x = asarray(x)
    drawn = source("bernoulli", generator).bernoulli(x if p is None else p, x.shape)
    return drawn.astype(x.dtype)


@respells
def poisson(x: Any, generator: Generator | None = None) -> Tensor:
    """Numbers of the Poisson distributions whose rates are the elements, in the dtype of x.

    The shape is that of x. `TraceError` inside of `jit` without a generator.

    >>> import retrograd as rg
    >>> rg.poisson(rg.zeros(2)).tolist()
    [0.0, 0.0]
    """
    x = asarray(x)
    return source("poisson", generator).poisson(x).astype(x.dtype)


@respells
def multinomial(
    x: Any, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Places drawn with probabilities in proportion to the elements of each row, int64.

    `[n]` to `[num_samples]`, `[m, n]` to `[m, num_samples]`. `ShapeError` for more places than
    there are without replacement and for other numbers of axes, `TraceError` inside of `jit`
    without a generator.

    >>> import retrograd as rg
    >>> rg.multinomial(rg.tensor([0.0, 1.0]), 2, replacement=True).tolist()
    [1, 1]
    """
    weights = asarray(x)
    if weights.ndim not in (1, 2):
        raise ShapeError(f"multinomial takes a row of weights, or several, not {weights.shape}")
    drawn, n = source("multinomial", generator), weights.shape[-1]
    if not replacement and isinstance(n, int) and num_samples > n:
        raise ShapeError(f"multinomial: {num_samples} of {n} places without replacement")
    if replacement:
        wide = weights[..., None, :].log().broadcast_to((*weights.shape[:-1], num_samples, n))
        return drawn.categorical(wide)
    keys = weights.log() + drawn.gumbel(shape=weights.shape)
    return keys.topk(num_samples, dim=-1).indices


@respells
def rand_like(x: Any, /, *, dtype: Any = None, generator: Generator | None = None) -> Tensor:
    """Uniform numbers in [0, 1) with the shape and dtype of x: see `rand`.

    `DTypeError` where the dtype is not floating.

    >>> import retrograd as rg
    >>> rg.rand_like(rg.ones(3)).shape
    (3,)
    """
    x = asarray(x)
    return rand(x.shape, dtype=dtype or x.dtype, generator=generator)


@respells
def randn_like(x: Any, /, *, dtype: Any = None, generator: Generator | None = None) -> Tensor:
    """Normal numbers with the shape and dtype of x: see `randn`.

    `DTypeError` where the dtype is not floating.

    >>> import retrograd as rg
    >>> rg.randn_like(rg.ones(3)).shape
    (3,)
    """
    x = asarray(x)
    return randn(x.shape, dtype=dtype or x.dtype, generator=generator)


@respells
def randint_like(
    x: Any,
    /,
    low: int | None = None,
    high: int | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Integers from `low`, 0 by default, to `high - 1`, with the shape and dtype of x.

    `ShapeError` for an empty range.

    >>> import retrograd as rg
    >>> rg.randint_like(rg.ones(3), 1).tolist()
    [0.0, 0.0, 0.0]
    """
    x = asarray(x)
    low, high = (low, high) if None not in (low, high) else (0, low if high is None else high)
    kind = as_dtype(dtype or x.dtype)
    drawn = randint(low, high, x.shape, generator=generator)
    return drawn.astype(kind)
