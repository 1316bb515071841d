"""Dropout in its variants, with PyTorch's names and arguments."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import provenance
from retrograd.ir.source import located
from retrograd.nn import init
from retrograd.nn.functional.activations import SELU_ALPHA, SELU_SCALE


def check_probability(p: float) -> None:
    """Raise unless p is a probability."""
    if not 0 <= p <= 1:
        scope = provenance().scope
        where = f" in {scope}" if scope else ""
        raise OptionError(f"dropout{where}: p is a probability between 0 and 1, not {p}")


@located
def dropout(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Each element 0 with probability p, else divided by `1 - p`, so that the mean is kept.

    Draws from `generator`, or from the default one of `nn.init`. Not training, or with p = 0, it
    is the identity and draws nothing; with p = 1 the result is 0.

    Elementwise: the shape is that of the input. `OptionError` for a p that is no probability.

    >>> import retrograd as rg
    >>> rg.nn.functional.dropout(rg.ones((2,)), training=False).tolist()
    [1.0, 1.0]
    """
    x = rg.asarray(input)
    return _dropped(x, p, training, generator, x.shape)


def _dropped(
    x: Tensor, p: float, training: bool, generator: Generator | None, shape: Any
) -> Tensor:
    check_probability(p)
    if not training or p == 0:
        return x
    if p == 1:
        return rg.where(False, x, 0.0)
    keep = (generator or init.default_generator()).bernoulli(1 - p, shape)
    return rg.where(keep, x * (1 / (1 - p)), 0.0)


def _channels(x: Tensor, rank: int | None) -> tuple[Any, ...]:
    """The shape of one number for each channel of each sample; without samples, axis 0 are the
    channels."""
    if rank is not None and x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(
            f"dropout{rank}d: the input is [N, C, ...] or [C, ...] with {rank} axes behind, not of "
            f"shape {x.shape}"
        )
    if rank is None and x.ndim < 2:
        raise ShapeError(f"feature_alpha_dropout: the input is [N, C, ...], not {x.shape}")
    lead = 2 if rank is None or x.ndim == rank + 2 else 1
    return (*x.shape[:lead], *((1,) * (x.ndim - lead)))


@located
def dropout1d(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """`dropout` of whole channels of `[N, C, L]` or `[C, L]`.

    The shape is that of the input. `OptionError` for a p that is no probability. `ShapeError` for
    other axes.

    >>> import retrograd as rg
    >>> rg.nn.functional.dropout1d(rg.ones((2, 3, 4))).shape
    (2, 3, 4)
    """
    x = rg.asarray(input)
    return _dropped(x, p, training, generator, _channels(x, 1))


@located
def dropout2d(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """`dropout` of whole channels of `[N, C, H, W]` or `[C, H, W]` (Tompson et al.,
    arXiv:1411.4280).

    The shape is that of the input. `OptionError` for a p that is no probability. `ShapeError` for
    other axes.

    >>> import retrograd as rg
    >>> rg.nn.functional.dropout2d(rg.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """
    x = rg.asarray(input)
    return _dropped(x, p, training, generator, _channels(x, 2))


@located
def dropout3d(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """`dropout` of whole channels of `[N, C, D, H, W]` or `[C, D, H, W]`.

    The shape is that of the input. `OptionError` for a p that is no probability. `ShapeError` for
    other axes.

    >>> import retrograd as rg
    >>> rg.nn.functional.dropout3d(rg.ones((2, 3, 2, 2, 2))).shape
    (2, 3, 2, 2, 2)
    """
    x = rg.asarray(input)
    return _dropped(x, p, training, generator, _channels(x, 3))


@located
def spatial_dropout(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """`dropout` of whole channels with the channels last, `[N, ..., C]`, as Keras has it (Tompson
    et al., arXiv:1411.4280).

    The shape is that of the input. `OptionError` for a p that is no probability. `ShapeError` for
    fewer than two axes.

    >>> import retrograd as rg
    >>> rg.nn.functional.spatial_dropout(rg.ones((2, 4, 4, 3))).shape
    (2, 4, 4, 3)
    """
    x = rg.asarray(input)
    if x.ndim < 2:
        raise ShapeError(f"spatial_dropout: the input is [N, ..., C], not of shape {x.shape}")
    shape = (x.shape[0], *((1,) * (x.ndim - 2)), x.shape[-1])
    return _dropped(x, p, training, generator, shape)


@located
def alpha_dropout(
    input: Any,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Dropout to the lowest value of `selu`, scaled and shifted so that mean 0 and variance 1 are
    kept (Klambauer et al., arXiv:1706.02515).

    Elementwise: the shape is that of the input. `OptionError` for a p that is no probability.

    >>> import retrograd as rg
    >>> rg.nn.functional.alpha_dropout(rg.ones((2,))).tolist()
    [1.0, 1.0]
    """
    x = rg.asarray(input)
    return _alpha(x, p, training, generator, x.shape)


@located
def feature_alpha_dropout(
    input: Any,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """`alpha_dropout` of whole channels of `[N, C, ...]`.

    The shape is that of the input. `OptionError` for a p that is no probability.

    >>> import retrograd as rg
    >>> rg.nn.functional.feature_alpha_dropout(rg.ones((1, 2, 3))).shape
    (1, 2, 3)
    """
    x = rg.asarray(input)
    return _alpha(x, p, training, generator, _channels(x, None))


def _alpha(x: Tensor, p: float, training: bool, generator: Generator | None, shape: Any) -> Tensor:
    check_probability(p)
    if not training or p == 0:
        return x
    lowest = -SELU_ALPHA * SELU_SCALE
    if p == 1:
        return rg.where(False, x, 0.0)
    scale = 1 / math.sqrt((1 - p) * (1 + p * lowest**2))
    keep = (generator or init.default_generator()).bernoulli(1 - p, shape)
    return rg.where(keep, x, lowest) * scale - scale * p * lowest
