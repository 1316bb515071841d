"""Making tensors, and looking at what they are, under PyTorch's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.coming_from.keywords import respells
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import DTypeError
from retrograd.functions import creation
from retrograd.functions.broadcasting import as_node
from retrograd.functions.creation import asarray
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import DType, as_dtype


@respells
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of the data, sharing memory where that is possible: `asarray`.

    Shape and dtype are those of the data, unless a dtype is given. `DTypeError` for what is no
    array of numbers, `OptionError` for a device other than the CPU.

    >>> import retrograd as rg
    >>> rg.as_tensor([1, 2]).tolist()
    [1, 2]
    """
    return asarray(data, dtype=dtype, device=device)


@respells
def from_numpy(ndarray: Any, /) -> Tensor:
    """A tensor on the memory of a NumPy array: `asarray`, which says what edits of it do.

    Shape and dtype are those of the array. `DTypeError` for anything else.

    >>> import numpy as np, retrograd as rg
    >>> rg.from_numpy(np.ones(2)).tolist()
    [1.0, 1.0]
    """
    if not isinstance(ndarray, np.ndarray):
        raise DTypeError(
            f"from_numpy takes a NumPy array, not {type(ndarray).__name__}; see tensor"
        )
    return asarray(ndarray)


@respells
def scalar_tensor(s: Any, /, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A number as a tensor of the shape `[]`: `tensor`.

    `DTypeError` for a number that the dtype cannot hold.

    >>> import retrograd as rg
    >>> rg.scalar_tensor(2.0).shape
    ()
    """
    return creation.tensor(s, dtype, requires_grad)


@respells
def detach(x: Any, /) -> Tensor:
    """The same values as a constant: nothing flows back.

    Elementwise: shape and dtype stay. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.detach(rg.tensor(2.0, requires_grad=True)).requires_grad
    False
    """
    return asarray(x).detach()


@respells
def transpose(x: Any, /, *axes: Any, dim0: int | None = None, dim1: int | None = None) -> Tensor:
    """The axes reordered, reversed where none are given, as in NumPy: `transpose(x, (2, 0, 1))`; or
    two exchanged, as in PyTorch: `transpose(x, 0, 1)`.

    Sizes of the shape go with their axes. `AxisError` for an axis that x does not have,
    `OptionError` for `transpose(x, 0, 1)` of a matrix, which is x in NumPy and its transpose in
    PyTorch.

    >>> import retrograd as rg
    >>> rg.transpose(rg.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return asarray(x).transpose(*axes, dim0=dim0, dim1=dim1)


@respells
def is_tensor(obj: Any, /) -> bool:
    """Whether something is a tensor of this library.

    >>> import retrograd as rg
    >>> rg.is_tensor(rg.ones(2)), rg.is_tensor([1.0])
    (True, False)
    """
    return isinstance(obj, LazyTensor)


def _dtype(x: Any) -> DType:
    return x.dtype if isinstance(x, LazyTensor) else as_dtype(as_node(x).dtype)


@respells
def is_floating_point(x: Any, /) -> bool:
    """Whether the dtype of an array is floating. `DTypeError` for what is no array.

    >>> import retrograd as rg
    >>> rg.is_floating_point(rg.ones(2))
    True
    """
    return bool(_dtype(x).is_float)


@respells
def is_signed(x: Any, /) -> bool:
    """Whether the dtype of an array has negative numbers. `DTypeError` for what is no array.

    >>> import retrograd as rg
    >>> rg.is_signed(rg.tensor([1], dtype=rg.uint8))
    False
    """
    return _dtype(x).kind not in ("uint", "bool")


@respells
def is_same_size(x: Any, other: Any, /) -> bool:
    """Whether two arrays have one shape. `DTypeError` for what is no array.

    >>> import retrograd as rg
    >>> rg.is_same_size(rg.ones(2), rg.zeros(2))
    True
    """
    return bool(asarray(x).shape == asarray(other).shape)


@respells
def is_complex(x: Any, /) -> bool:
    """Whether the dtype of an array is complex. `DTypeError` for what is no array.

    >>> import retrograd as rg
    >>> rg.is_complex(rg.ones(2))
    False
    """
    return bool(_dtype(x).is_complex)


@respells
def numel(x: Any, /) -> int:
    """The number of elements of an array of any shape. `DTypeError` for what is no array.

    >>> import retrograd as rg
    >>> rg.numel(rg.ones((2, 3)))
    6
    """
    return asarray(x).numel()


@respells
def is_nonzero(x: Any, /) -> bool:
    """Whether the one element of an array is not zero. `ShapeError` for several.

    >>> import retrograd as rg
    >>> rg.is_nonzero(rg.tensor([2.0]))
    True
    """
    return bool(asarray(x))
