"""Elementwise functions: angles in degrees, parts of numbers, what is close, what is not finite."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from retrograd.coming_from.keywords import respells
from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import DTypeError, ShapeError
from retrograd.functions import elementwise as f
from retrograd.functions.broadcasting import (
    alike,
    as_node,
    broadcast,
    broadcast_shapes,
    broadcast_to,
    promote_to_float,
)
from retrograd.functions.complex import imag as imag_of
from retrograd.functions.complex import real as real_of
from retrograd.functions.creation import asarray
from retrograd.functions.dtypes import result_type
from retrograd.functions.reductions import all as all_of
from retrograd.ir import (
    DType,
    Node,
    TensorType,
    bool_,
    complex128,
    float32,
    float64,
    full,
    int32,
    uint8,
    uint64,
)
from retrograd.ops import elementwise as el
from retrograd.ops.complex import complex_, imag, real
from retrograd.tensor_type import Tensor


def _scaled(x: Any, factor: float) -> Node:
    node = promote_to_float(x)
    wide = el.cast(node, float32) if node.dtype.is_half else node
    return el.cast(wide * factor, node.dtype)


@op_function
def deg2rad(x: ArrayLike, /) -> Any:
    """Degrees as radians: `x pi / 180`.

    Elementwise: the shape of x; integers are taken as float32. `DTypeError` for what is no array
    of numbers.

    >>> import retrograd as rg
    >>> rg.deg2rad([180.0, 90.0]).tolist()
    [3.1416, 1.5708]
    """
    return _scaled(x, math.pi / 180)


@op_function
def rad2deg(x: ArrayLike, /) -> Any:
    """Radians as degrees: `x 180 / pi`.

    Elementwise: the shape of x; integers are taken as float32. `DTypeError` for what is no array
    of numbers.

    >>> import retrograd as rg
    >>> rg.rad2deg([0.0, rg.pi]).tolist()
    [0.0, 180.0]
    """
    return _scaled(x, 180 / math.pi)


@op_function
def fabs(x: ArrayLike, /) -> Any:
    """`|x|` in floating point; its derivative at 0 is 0.

    Elementwise: the shape of x; integers are taken as float32. `DTypeError` for complex numbers,
    whose size is `rg.abs`.

    >>> import retrograd as rg
    >>> rg.fabs([-2, 3]).tolist()
    [2.0, 3.0]
    """
    node = promote_to_float(x)
    if node.dtype.is_complex:
        raise DTypeError("fabs takes real numbers; the size of complex ones is rg.abs")
    return el.abs(node)


def _present(x1: Any, x2: Any, op: Any) -> Node:
    a, b = broadcast(x1, x2)
    if not a.dtype.is_inexact:
        return op(a, b)
    both = op(el.select(el.isnan(a), b, a), el.select(el.isnan(b), a, b))
    # A number beside a NaN would tie with itself, and share its gradient.
    return el.select(el.isnan(a), b, el.select(el.isnan(b), a, both))


@op_function
def fmax(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """The larger of both, the number where one is NaN. Ties share the gradient.

    Elementwise: the shapes broadcast, dtypes are promoted. `DTypeError` for complex numbers,
    `ShapeError` where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> rg.fmax([1.0, rg.nan], 0.5).tolist()
    [1.0, 0.5]
    """
    return _present(x1, x2, el.max)


@op_function
def fmin(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """The smaller of both, the number where one is NaN. Ties share the gradient.

    Elementwise: the shapes broadcast, dtypes are promoted. `DTypeError` for complex numbers,
    `ShapeError` where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> rg.fmin([1.0, rg.nan], 0.5).tolist()
    [0.5, 0.5]
    """
    return _present(x1, x2, el.min)


@op_function
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """The remainder of `x1 / x2` with the sign of x1, as in C; integers modulo 0 give 0.

    Elementwise: the shapes broadcast, dtypes are promoted. Derivatives: 1 and `-trunc(x1 / x2)`.
    `DTypeError` for complex numbers, `ShapeError` where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> rg.fmod([7, -7], 3).tolist()
    [1, -1]
    """
    a, b = broadcast(x1, x2)
    if a.dtype is bool_ or a.dtype.is_complex:
        raise DTypeError(f"fmod takes real numbers, not {a.dtype}")
    zero = full(0, a.type)
    if a.dtype.kind == "uint":
        return el.select(el.eq(b, zero), zero, el.mod(a, b))
    size = el.abs(b)
    low = a < 0 if a.dtype.is_integer else el.signbit(a)
    negative = el.neg(el.mod(el.select(low, el.neg(a), zero), size))
    rest = el.select(low, negative, el.mod(el.select(low, zero, a), size))
    return el.select(el.eq(b, zero), zero, rest) if a.dtype.is_integer else rest


@op_function
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """`x1 ** x2` in double precision: float64, or complex128.

    Elementwise: the shapes broadcast, or it is a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.float_power([2, 4], [-1, 0.5]).tolist()
    [0.5, 2.0]
    """
    a, b = alike(x1, x2)
    wide: DType = complex128 if a.dtype.is_complex else float64
    return f.pow(el.cast(a, wide), el.cast(b, wide))


@op_function
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """0 below 0, 1 above, x2 at 0, NaN for NaN; the derivative is that of x2 where x1 is 0.

    Elementwise: the shapes broadcast, dtypes are promoted, integers are taken as float32.
    `DTypeError` for complex numbers, `ShapeError` where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> rg.heaviside([-1.5, 0.0, 2.0], 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    a, b = broadcast(x1, x2, floating=True)
    zero = full(0, a.type)
    step = el.select(a < 0, zero, el.select(el.is_zero(a), b, full(1, a.type)))
    return el.select(el.isnan(a), full(math.nan, a.type), step)


@op_function
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """`log2(2**x1 + 2**x2)` without overflow. Derivatives: `2**(x1 - y)` and `2**(x2 - y)`.

    Elementwise: the shapes broadcast, dtypes are promoted, integers are taken as float32.
    `DTypeError` for complex numbers, `ShapeError` where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> rg.logaddexp2([3.0, 1000.0], 3.0).tolist()
    [4.0, 1000.0]
    """
    a, b = broadcast(x1, x2, floating=True)
    return f.logaddexp(_scaled(a, math.log(2)), _scaled(b, math.log(2))) / math.log(2)


@op_function
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """`x1 2**x2` for whole x2. Derivative in x1: `2**x2`; there is none in x2.

    Elementwise: the shapes broadcast, or it is a `ShapeError`; the dtype is that of x1, float32 for
    integers. `DTypeError` for an x2 that is not of integers.

    >>> import retrograd as rg
    >>> rg.ldexp([0.5, 3.0], [2, 1]).tolist()
    [2.0, 6.0]
    """
    x, n = promote_to_float(x1), as_node(x2)
    if not n.dtype.is_integer:
        raise DTypeError(f"ldexp takes integers as exponents, not {n.dtype}")
    x, n = _one_shape(x, n)
    return _shifted(x, n)


def _one_shape(*nodes: Node) -> list[Node]:
    """Nodes of any dtypes brought to one shape."""
    shape = broadcast_shapes(*(n.shape for n in nodes))
    return [broadcast_to(n, shape) for n in nodes]


def _shifted(x: Node, n: Node) -> Node:
    """`x 2**n`, in two steps, as either power may be out of range where the result is not."""
    n = el.cast(n, int32)
    half = el.floor_div(n, full(2, n.type))
    first, second = (el.exp2(el.cast(k, float64)) for k in (half, n - half))
    return el.cast(el.zmul(el.zmul(el.cast(x, float64), first), second), x.dtype)


@respells
def frexp(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """The mantissa, at least 1/2 and less than 1 in size, and the exponent, int32, of
    `x = m 2**e`; of 0, infinities and NaN the number itself and 0.

    Elementwise: both have the shape of x. Derivative of the mantissa: `2**-e`. `DTypeError` for
    complex numbers.

    >>> import retrograd as rg
    >>> [y.tolist() for y in rg.frexp([3.0, 0.0])]
    [[0.75, 0.0], [2, 0]]
    """
    mantissa, exponent = _frexp(x)
    return mantissa, exponent


@op_function_of_several
def _frexp(x: ArrayLike, /) -> tuple[Node, Node]:
    node = promote_to_float(x)
    size = el.abs(el.cast(node, float64))
    odd = el.bitwise_or(el.is_zero(size), el.bitwise_not(el.isfinite(size)))
    size = el.select(odd, full(0.5, size.type), size)
    e = el.cast(el.floor(el.log2(size)), int32) + 1  # may be off by one near powers of two
    m = _shifted(size, el.neg(e))
    e = el.select(m < 0.5, e - 1, el.select(m >= 1.0, e + 1, e))
    e = el.select(odd, full(0, e.type), e)
    return el.select(odd, node, _shifted(node, el.neg(e))), e


def modf(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """The fraction and the whole part of x, both with its sign.

    Elementwise: both have the shape of x; integers are taken as float32. Derivatives: 1 and 0.
    `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> [y.tolist() for y in rg.modf([1.5, -0.25])]
    [[0.5, -0.25], [1.0, -0.0]]
    """
    part, whole = _modf(x)
    return part, whole


@op_function_of_several
def _modf(x: ArrayLike, /) -> tuple[Node, Node]:
    node = promote_to_float(x)
    whole = el.trunc(node)
    part = el.select(el.isinf(node), full(0, node.type), node - whole)
    # -0.0 of a negative whole number
    zero = el.bitwise_and(el.is_zero(part), el.signbit(node))
    return el.select(zero, part * -1.0, part), whole


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """`x1 // x2` and `x1 % x2`.

    Elementwise: the shapes broadcast, or it is a `ShapeError`; dtypes are promoted. The first has
    the derivatives 0, the second 1 and `-floor(x1 / x2)`.

    >>> import retrograd as rg
    >>> [y.tolist() for y in rg.divmod([7, -7], 3)]
    [[2, -3], [1, 2]]
    """
    return f.floor_divide(x1, x2), f.remainder(x1, x2)


def _integers(what: str, *values: Any) -> list[Node]:
    nodes = broadcast(*values)
    if not nodes[0].dtype.is_integer:
        raise DTypeError(f"{what} takes integers, not {nodes[0].dtype}")
    return nodes


@op_function
def gcd(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """The greatest common divisor of `|x1|` and `|x2|`; that of 0 and n is n.

    Elementwise: the shapes broadcast, dtypes are promoted; there is no gradient. `DTypeError` for
    what is not of integers.

    >>> import retrograd as rg
    >>> rg.gcd([12, 7], 18).tolist()
    [6, 1]
    """
    a, b = _integers("gcd", x1, x2)
    if a.dtype.kind == "int":
        a, b = el.abs(a), el.abs(b)
    # Euclid's steps at worst shrink as Fibonacci's numbers do. From where b is 0 on, the two change
    # places, as `a mod 0` is a.
    steps = math.ceil(a.dtype.itemsize * 8 * math.log(2) / math.log((1 + math.sqrt(5)) / 2)) + 1
    for _ in range(steps):
        a, b = b, el.mod(a, b)
    return el.bitwise_or(a, b)


@op_function
def lcm(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """The least common multiple of `|x1|` and `|x2|`, 0 where one is.

    Elementwise: the shapes broadcast, dtypes are promoted; there is no gradient. `DTypeError` for
    what is not of integers.

    >>> import retrograd as rg
    >>> rg.lcm([12, 7], 18).tolist()
    [36, 126]
    """
    a, b = _integers("lcm", x1, x2)
    if a.dtype.kind == "int":
        a, b = el.abs(a), el.abs(b)
    # Integers over 0 give 0.
    return el.floor_div(a, as_node(gcd(a, b))) * b


@op_function
def bitwise_count(x: ArrayLike, /) -> Any:
    """How many bits of `|x|` are 1, as uint8.

    Elementwise: the shape of x. `DTypeError` for what is not of integers.

    >>> import retrograd as rg
    >>> rg.bitwise_count([0, 5, -8]).tolist()
    [0, 2, 1]
    """
    (a,) = _integers("bitwise_count", x)
    if a.dtype.kind == "int":
        a = el.abs(a)
    a = el.cast(a, uint64)
    if x_bits := node_bits(as_node(x)):
        a = el.bitwise_and(a, full(np.uint64(2**x_bits - 1), a.type))
    for shift, mask in (
        (1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F),
        (8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0x00000000FFFFFFFF),
    ):  # fmt: skip
        few = full(np.uint64(mask), a.type)
        high = el.shift_right(a, full(shift, a.type))
        a = el.bitwise_and(a, few) + el.bitwise_and(high, few)
    return el.cast(a, uint8)


def node_bits(x: Node) -> int:
    """The width of a signed integer, whose least value is its own negative; 0 of 64 bits."""
    return x.dtype.itemsize * 8 % 64


@op_function
def spacing(x: ArrayLike, /) -> Any:
    """The distance from x to the next number of the dtype that is larger in size, with its sign.

    Elementwise: the shape of x; the derivative is 0. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.spacing(rg.tensor([1.0])).item() == rg.finfo(rg.float32).eps
    True
    """
    node = promote_to_float(x)
    away = full(math.inf, node.type)
    size = el.abs(node)
    gap = as_node(f.nextafter(size, away)) - size
    return el.select(node < 0, el.neg(gap), gap)


@op_function
def isposinf(x: ArrayLike, /) -> Any:
    """Whether x is +inf.

    Elementwise: boolean, of the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.isposinf([1.0, rg.inf, -rg.inf]).tolist()
    [False, True, False]
    """
    node = promote_to_float(x)
    return el.bitwise_and(el.isinf(node), node > 0)


@op_function
def isneginf(x: ArrayLike, /) -> Any:
    """Whether x is -inf.

    Elementwise: boolean, of the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.isneginf([1.0, rg.inf, -rg.inf]).tolist()
    [False, False, True]
    """
    node = promote_to_float(x)
    return el.bitwise_and(el.isinf(node), node < 0)


@op_function
def isreal(x: ArrayLike, /) -> Any:
    """Whether the imaginary part is 0; so it is of all real numbers.

    Elementwise: boolean, of the shape of x. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.isreal([1 + 0j, 2j]).tolist()
    [True, False]
    """
    return el.is_zero(imag(promote_to_float(x)))


@op_function
def iscomplex(x: ArrayLike, /) -> Any:
    """Whether the imaginary part is not 0.

    Elementwise: boolean, of the shape of x. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.iscomplex([1 + 0j, 2j]).tolist()
    [False, True]
    """
    return el.bitwise_not(as_node(isreal(as_node(x))))


@op_function
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Any:
    """x with numbers in place of NaN and the infinities, which by default become the largest and
    the smallest number of the dtype; of complex numbers each part.

    Elementwise: the shape and dtype of x, which is never changed, whatever `copy` says. The
    gradient is 0 where a number was replaced. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.nan_to_num([rg.nan, rg.inf, 1.0], posinf=9.0).tolist()
    [0.0, 9.0, 1.0]
    """
    node = as_node(x)
    if not node.dtype.is_inexact:
        return node
    if node.dtype.is_complex:
        return complex_(*(_finite(p, nan, posinf, neginf) for p in (real(node), imag(node))))
    return _finite(node, nan, posinf, neginf)


def _finite(x: Node, nan: float, posinf: float | None, neginf: float | None) -> Node:
    most = float(ml_dtypes.finfo(x.dtype.dtype).max)
    high = most if posinf is None else posinf
    low = -most if neginf is None else neginf
    ends = el.select(x > 0, full(high, x.type), full(low, x.type))
    return el.select(el.isnan(x), full(nan, x.type), el.select(el.isinf(x), ends, x))


@op_function
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 1e-8,
    equal_nan: bool = False,
) -> Any:
    """Whether `|a - b| <= atol + rtol |b|`, or both are equal; two NaN are, with `equal_nan`.

    Elementwise: boolean, the shapes broadcast, or it is a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.isclose([1.0, 2.0], [1.0 + 1e-6, 2.1]).tolist()
    [True, False]
    """
    x, y = broadcast(a, b)
    same = el.eq(x, y)
    if x.dtype.is_inexact:
        finite = as_node(f.isfinite(y))
    else:
        x, y = (el.cast(n, float64) for n in (x, y))
        finite = full(True, TensorType(bool_, x.shape))
    gap, size = f.abs(x - y), f.abs(y)
    near = f.less_equal(gap, f.add(atol, f.multiply(rtol, size)))
    close = f.logical_or(f.logical_and(near, finite), same)
    if equal_nan and x.dtype.is_inexact:
        close = f.logical_or(close, f.logical_and(f.isnan(x), f.isnan(y)))
    return close


@respells
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Whether `isclose` holds everywhere: a boolean without axes.

    The shapes broadcast, or it is a `ShapeError`.

    >>> import retrograd as rg
    >>> bool(rg.allclose([1.0, 2.0], [1.0, 2.0 + 1e-6]))
    True
    """
    return all_of(isclose(a, b, rtol, atol, equal_nan))


@op_function
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Any:
    """Whether both have the same shape and the same elements: a boolean without axes. Two NaN are
    equal with `equal_nan`.

    `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> bool(rg.array_equal([1, 2], [1, 2])), bool(rg.array_equal([1, 2], [[1, 2]]))
    (True, False)
    """
    x, y = alike(a1, a2)
    if x.shape != y.shape:
        return full(False, TensorType(bool_, ()))
    return _same(x, y, equal_nan)


def _same(x: Node, y: Node, equal_nan: bool = False) -> Any:
    same = el.eq(x, y)
    if equal_nan and x.dtype.is_inexact:
        same = el.bitwise_or(same, el.bitwise_and(as_node(f.isnan(x)), as_node(f.isnan(y))))
    return all_of(same)


@op_function
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Any:
    """Whether the shapes broadcast and the elements are equal: a boolean without axes.

    `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> bool(rg.array_equiv([1, 1], [[1], [1]]))
    True
    """
    try:
        x, y = broadcast(a1, a2)
    except ShapeError:
        return full(False, TensorType(bool_, ()))
    return _same(x, y)


def isrealobj(x: Any) -> bool:
    """Whether the dtype of x is not complex, whatever its shape.

    `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.isrealobj(rg.tensor([1.0]))
    True
    """
    return not iscomplexobj(x)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of x is complex, whatever its shape.

    `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.iscomplexobj(rg.tensor([1j]))
    True
    """
    return bool(_dtype_of(x).is_complex)


def _dtype_of(x: Any) -> DType:
    found: Any = result_type(x) if not hasattr(x, "dtype") else x.dtype
    return found if isinstance(found, DType) else result_type(x)


def real_if_close(a: ArrayLike, tol: float = 100) -> Tensor:
    """The real parts, where the imaginary ones are all within `tol` machine epsilons of 0 (or
    `tol`, if that is not above 1); else a itself.

    The shape is that of a. The choice follows from values: `TraceError` in a traced function.

    >>> import retrograd as rg
    >>> rg.real_if_close(rg.tensor([1 + 1e-9j])).tolist()
    [1.0]
    """
    x = asarray(a)
    if not x.dtype.is_complex:
        return x
    limit = tol * float(np.finfo(x.dtype.dtype).eps) if tol > 1 else tol
    small = all_of(f.less(f.abs(imag_of(x)), limit))
    return real_of(x) if bool(small) else x


degrees, radians = rad2deg, deg2rad
