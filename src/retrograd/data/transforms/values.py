"""Transforms of the values of arrays of any shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.data.arrays import host_array, is_array
from retrograd.data.transforms.compose import RandomTransform
from retrograd.eager.conversion import as_array
from retrograd.errors import DTypeError, IndexRangeError, OptionError, ShapeError
from retrograd.ir import as_dtype, float32

Array = np.ndarray[Any, Any]


def values(x: Any) -> Array:
    """The array of what a transform is given."""
    return host_array(x) if is_array(x) else as_array(x)


class ToDtype:
    """The values in another dtype. `DTypeError` for what are no numbers.

    >>> from retrograd.data.transforms import ToDtype
    >>> ToDtype("int32")([1.0, 2.0]).dtype
    dtype('int32')
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, x: Any) -> Array:
        return values(x).astype(self.dtype.dtype)


class ToFloat:
    """Floating values; those of integers are divided by the largest of their dtype, so that pixels
    of uint8 are from 0 to 1. `DTypeError` for a dtype that is not floating.

    >>> import numpy as np
    >>> from retrograd.data.transforms import ToFloat
    >>> ToFloat()(np.array([0, 255], np.uint8)).tolist()
    [0.0, 1.0]
    """

    def __init__(self, dtype: Any = float32, scale: bool = True) -> None:
        self.dtype = as_dtype(dtype)
        self.scale = scale
        if not self.dtype.is_float:
            raise DTypeError(f"ToFloat: the dtype is a floating one, not {self.dtype}")

    def __call__(self, x: Any) -> Array:
        given = values(x)
        made: Array = given.astype(self.dtype.dtype)
        if self.scale and given.dtype.kind in "iu":
            made /= np.iinfo(given.dtype).max
        return made


class Normalize:
    """`(x - mean) / std`, with a number for all, or one for each entry along an axis, by default
    the first of the last three: the channels of an image `[C, H, W]`; the last of a vector.

    `OptionError` for a std of 0, `ShapeError` where there are not as many entries.

    >>> from retrograd.data.transforms import Normalize
    >>> Normalize(mean=[1.0, 2.0], std=[1.0, 2.0])([2.0, 6.0]).tolist()
    [1.0, 2.0]
    """

    def __init__(self, mean: Any, std: Any, axis: int | None = None) -> None:
        self.mean = np.asarray(mean, np.float64)
        self.std = np.asarray(std, np.float64)
        self.axis = axis
        if self.mean.ndim > 1 or self.std.ndim > 1:
            raise ShapeError("Normalize: mean and std are numbers, or lists of numbers")
        if (self.std == 0).any():
            raise OptionError(f"Normalize: std is not 0, but it is {std}")

    def __call__(self, x: Any) -> Array:
        given = values(x)
        dtype = given.dtype if given.dtype.kind not in "iub" else np.dtype(np.float32)
        mean, std = (self._along(v, given) for v in (self.mean, self.std))
        return ((given - mean) / std).astype(dtype)

    def _along(self, value: Array, x: Array) -> Array:
        if value.ndim == 0:
            return value
        axis = (-3 if x.ndim >= 3 else -1) if self.axis is None else self.axis
        if not -x.ndim <= axis < x.ndim or x.shape[axis] != len(value):
            raise ShapeError(
                f"Normalize has {len(value)} numbers along axis {axis}, but the sample has the "
                f"shape {x.shape}"
            )
        shape = [1] * x.ndim
        shape[axis] = len(value)
        return value.reshape(shape)


class OneHot:
    """Numbers of classes `[...]` as vectors `[..., num_classes]` that are 1 at this place, else 0.

    `IndexRangeError` for a number that is no class.

    >>> from retrograd.data.transforms import OneHot
    >>> OneHot(3)(1).tolist()
    [0.0, 1.0, 0.0]
    """

    def __init__(self, num_classes: int, dtype: Any = float32) -> None:
        self.num_classes = num_classes
        self.dtype = as_dtype(dtype)

    def __call__(self, x: Any) -> Array:
        given = values(x)
        if given.dtype.kind not in "iu":
            raise DTypeError(f"OneHot: classes are integers, not {given.dtype}")
        wrong = given[(given < 0) | (given >= self.num_classes)]
        if wrong.size:
            raise IndexRangeError(f"OneHot: {wrong[0]} is none of {self.num_classes} classes")
        return (given[..., None] == np.arange(self.num_classes)).astype(self.dtype.dtype)


class GaussianNoise(RandomTransform):
    """`mean + std z` added, with normal z; integers become float32. `OptionError` for a
    negative std.

    >>> from retrograd.data.transforms import GaussianNoise
    >>> GaussianNoise(std=0.0)([1.0]).tolist()
    [1.0]
    """

    def __init__(self, std: float = 1.0, mean: float = 0.0, seed: int = 0) -> None:
        super().__init__(seed)
        if not std >= 0:
            raise OptionError(f"GaussianNoise: std is not negative, but it is {std}")
        self.std = std
        self.mean = mean

    def apply(self, x: Any, rng: np.random.Generator) -> Array:
        given = values(x)
        dtype = given.dtype if given.dtype.kind not in "iub" else np.dtype(np.float32)
        return (given + (self.mean + self.std * rng.standard_normal(given.shape))).astype(dtype)
