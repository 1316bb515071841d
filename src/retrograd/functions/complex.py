"""Complex numbers: parts and polar form."""

from __future__ import annotations

from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import DTypeError
from retrograd.functions.broadcasting import as_node, broadcast
from retrograd.ir import full
from retrograd.ops import complex as parts
from retrograd.ops import elementwise as el


@op_function
def real(x: ArrayLike, /) -> Any:
    """The real part, of the dtype of the parts; of real numbers themselves.

    Elementwise: the shape of x. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.real(rg.tensor([1 + 2j])).tolist()
    [1.0]
    """
    return parts.real(as_node(x))


@op_function
def imag(x: ArrayLike, /) -> Any:
    """The imaginary part, of the dtype of the parts; of real numbers zero.

    Elementwise: the shape of x. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.imag([1 + 2j]).tolist()
    [2.0]
    """
    return parts.imag(as_node(x))


@op_function
def conj(x: ArrayLike, /) -> Any:
    """The complex conjugate; of real numbers themselves.

    Elementwise: shape and dtype of x. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.conj([1 + 2j]).tolist()
    [(1-2j)]
    """
    return parts.conj(as_node(x))


@op_function
def angle(x: ArrayLike, /) -> Any:
    """The angle of complex numbers in the plane, in radians from -pi to pi.

    `angle(z) = atan2(imag(z), real(z))`. The gradient is `i z / |z|**2`, and 0 at 0.

    Elementwise: the shape of x, in the dtype of its parts. `DTypeError` for what is no array of
    numbers.

    >>> import retrograd as rg
    >>> rg.angle([1j, -1 + 0j]).tolist()
    [1.5708, 3.1416]
    """
    (x,) = broadcast(x, floating=True)
    if x.dtype.is_complex:
        return el.atan2(parts.imag(x), parts.real(x))
    return el.atan2(full(0, x.type), x)


@op_function
def make_complex(real: ArrayLike, imag: ArrayLike, /) -> Any:
    """`real + i imag`, of two real arrays: complex64, or complex128 where one is float64.

    Elementwise: the shapes broadcast, or it is a `ShapeError`. `DTypeError` for parts that are
    complex themselves.

    >>> import retrograd as rg
    >>> rg.complex(3.0, 4.0).item()
    (3+4j)
    """
    x, y = broadcast(real, imag, floating=True)
    if x.dtype.is_complex:
        raise DTypeError(f"complex takes the real and the imaginary part, not {x.dtype} numbers")
    dtype = x.dtype.complex.real
    return parts.complex_(el.cast(x, dtype), el.cast(y, dtype))
