"""Discrete Fourier transforms: the `fft` extension of the array API standard.

With `norm="backward"` (the default) the inverse divides by n, with `"forward"` the other way does,
and with `"ortho"` both divide by the square root of n. PyTorch's `dim` is taken beside `axis` and
`axes`. Gradients are transforms too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograd.coming_from.keywords import respells
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.broadcasting import (
    as_node,
    integer,
    listed_axes,
    normal_axis,
    number,
    one_axis,
    promote_to_float,
)
from retrograd.functions.creation import asarray
from retrograd.functions.manipulation import roll
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, Node, as_dtype, float64, full, int64, symbolic_min
from retrograd.ir.dtype import DEFAULT
from retrograd.lazy_import import attach as _attach
from retrograd.memory_limit import check_new
from retrograd.ops import elementwise as el
from retrograd.ops.complex import complex_, conj, imag, real
from retrograd.ops.fft import Fft
from retrograd.ops.leaf import Iota
from retrograd.ops.shape import expand, pad, slice_axis

Sizes = Sequence[int] | None

_POWER = {None: (0.0, -1.0), "backward": (0.0, -1.0), "ortho": (-0.5, -0.5), "forward": (-1.0, 0.0)}


def _scaled(z: Node, n: int | Dim, norm: str | None, inverse: bool) -> Node:
    """A transform times its factor, `n` to a power."""
    power, real_type = _power(norm, inverse), z.type.with_dtype(z.dtype.real)
    if power == 0 or n == 1:
        return z
    if isinstance(n, Dim):
        root = number(n, float64) if power == -1 else el.sqrt(number(n, float64))
        by = expand(el.cast(1.0 / root, real_type.dtype), z.shape, tuple(range(z.type.rank)))
    else:
        by = full(float(n**power), real_type)
    return complex_(real(z) * by, imag(z) * by)


def _power(norm: str | None, inverse: bool) -> float:
    if norm not in _POWER:
        raise OptionError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    return _POWER[norm][inverse]


def _complex(x: Node) -> Node:
    x = promote_to_float(x)
    return el.cast(x, x.dtype.complex)


def _count(n: Any, what: str) -> int | Dim:
    """How many elements are asked for."""
    count = n if isinstance(n, Dim) else integer(n, f"{what}: n")
    if isinstance(count, int) and count < 1:
        raise ShapeError(f"{what}: a transform has at least one element, not {count}")
    return count


def _resized(x: Node, n: Any, axis: int, what: str) -> Node:
    """The axis cut or filled with zeros to n elements."""
    size = x.shape[axis]
    if n is None or n == size:
        return x
    count = _count(n, what)
    kept = symbolic_min(count, size)
    if kept != size:
        x = slice_axis(x, axis, 0, kept)
    high = tuple(count - kept if i == axis else 0 for i in range(x.type.rank))
    return pad(x, (0,) * x.type.rank, high)


def _transform(x: Node, n: Any, axis: Any, norm: str | None, inverse: bool, what: str) -> Node:
    x = _complex(x)
    axis = normal_axis(axis, x.type.rank, what)
    x = _resized(x, n, axis, what)
    y = Fft(axis, inverse)(x)
    return _scaled(y, x.shape[axis], norm, inverse)


def _axes(x: Node, s: Any, axes: Any, what: str) -> list[tuple[int, Any]]:
    """The axes of a transform of several, each with the size that is asked for."""
    s = (s,) if isinstance(s, int) else s
    if axes is None:
        rank = x.type.rank if s is None else len(s)
        axes = range(x.type.rank - rank, x.type.rank)
    found = listed_axes(axes, x.type.rank, what)
    sizes = [None] * len(found) if s is None else list(s)
    if len(sizes) != len(found):
        raise ShapeError(f"{what}: s has {len(sizes)} sizes for {len(found)} axes")
    return list(zip(found, sizes, strict=True))


@op_function
def fft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    *,
    dim: int | None = None,
) -> Any:
    """`y_k = sum_j exp(-2 pi i j k / n) x_j` along an axis, cut or filled with zeros to n.

    Raises `ShapeError` for an empty axis. Where its size is symbolic the transform is NumPy's.

    `[..., m]` to `[..., n]`, complex; float64 gives complex128, others complex64. `norm` is
    "backward" (the inverse divides by n), "forward" or "ortho". `OptionError` for another `norm`,
    `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.fft.fft(rg.tensor([1.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return _transform(as_node(x), n, one_axis(axis, dim, -1), norm, False, "fft")


@op_function
def ifft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    *,
    dim: int | None = None,
) -> Any:
    """The inverse of `fft`: `x_j = 1/n sum_k exp(2 pi i j k / n) y_k`.

    Shapes, dtypes, `norm` and errors are those of `fft`: `ShapeError` for an empty axis.

    >>> import retrograd as rg
    >>> rg.fft.ifft([4.0, 0.0, 0.0, 0.0]).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transform(as_node(x), n, one_axis(axis, dim, -1), norm, True, "ifft")


def _several(x: Node, s: Any, axes: Any, norm: str | None, inverse: bool, what: str) -> Node:
    for axis, n in _axes(x, s, axes, what):
        x = _transform(x, n, axis, norm, inverse, what)
    return x


@op_function
def fftn(
    x: ArrayLike,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: str | None = "backward",
    *,
    dim: Sizes = None,
) -> Any:
    """`fft` along several axes, all by default; `s` are the sizes to cut or fill to.

    `[..., *m]` to `[..., *s]`, complex. `ShapeError` for an empty axis, `AxisError` for an axis
    that x does not have, `OptionError` for an unknown `norm`.

    >>> import retrograd as rg
    >>> rg.fft.fftn([[1.0, 0.0], [0.0, 0.0]]).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _several(as_node(x), s, one_axis(axes, dim), norm, False, "fftn")


@op_function
def ifftn(
    x: ArrayLike,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: str | None = "backward",
    *,
    dim: Sizes = None,
) -> Any:
    """The inverse of `fftn`.

    Shapes and errors are those of `fftn`: `ShapeError` for an empty axis.

    >>> import retrograd as rg
    >>> rg.fft.ifftn([[1.0, 1.0], [1.0, 1.0]]).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _several(as_node(x), s, one_axis(axes, dim), norm, True, "ifftn")


@op_function
def fft2(
    x: ArrayLike,
    /,
    s: Sizes = None,
    axes: Sizes = (-2, -1),
    norm: str | None = "backward",
    *,
    dim: Sizes = None,
) -> Any:
    """`fftn` along two axes, the last by default.

    `[..., m, n]` to the same, complex. `ShapeError` for an empty axis, `AxisError` where there are
    not two axes.

    >>> import retrograd as rg
    >>> rg.fft.fft2([[1.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return _several(as_node(x), s, one_axis(axes, dim, (-2, -1)), norm, False, "fft2")


@op_function
def ifft2(
    x: ArrayLike,
    /,
    s: Sizes = None,
    axes: Sizes = (-2, -1),
    norm: str | None = "backward",
    *,
    dim: Sizes = None,
) -> Any:
    """The inverse of `fft2`.

    Shapes and errors are those of `fft2`: `ShapeError` for an empty axis.

    >>> import retrograd as rg
    >>> rg.fft.ifft2([[1.0, 1.0], [1.0, 1.0]]).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _several(as_node(x), s, one_axis(axes, dim, (-2, -1)), norm, True, "ifft2")


def _real_input(x: Node, what: str) -> Node:
    if x.dtype.is_complex:
        raise DTypeError(f"{what} takes real numbers, not {x.type}; use fft")
    return x


def _rfft(x: Node, n: Any, axis: Any, norm: str | None, what: str) -> Node:
    y = _transform(_real_input(x, what), n, axis, norm, False, what)
    axis = normal_axis(axis, y.type.rank, what)
    return slice_axis(y, axis, 0, y.shape[axis] // 2 + 1)


def _irfft(x: Node, n: Any, axis: Any, norm: str | None, what: str) -> Node:
    """The other half is the conjugate of this one, so that its terms have the same real parts:
    those here count twice, but for the ones that are their own conjugates."""
    x = _complex(x)
    axis = normal_axis(axis, x.type.rank, what)
    half = x.shape[axis]
    count = 2 * (half - 1) if n is None else _count(n, what)
    if isinstance(count, int) and count < 1:
        raise ShapeError(f"{what}: a transform has at least one element, not {count}")
    x = _resized(x, count // 2 + 1, axis, what)
    place = Iota(x.shape, axis, int64)()
    own = el.is_zero(place) | el.eq(2 * place, number(count, int64, x.shape))
    times = el.select(own, *(full(v, x.type.with_dtype(x.dtype.real)) for v in (1, 2)))
    twice = complex_(real(x) * times, imag(x) * times)
    return real(_transform(twice, count, axis, norm, True, what))


@op_function
def rfft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    *,
    dim: int | None = None,
) -> Any:
    """The first `n // 2 + 1` elements of the `fft` of real numbers; the others are conjugates.

    `[..., n]` real to `[..., n // 2 + 1]` complex. `DTypeError` for complex numbers, `ShapeError`
    for an empty axis.

    >>> import retrograd as rg
    >>> rg.fft.rfft([1.0, 0.0, 0.0, 0.0]).real.tolist()
    [1.0, 1.0, 1.0]
    """
    return _rfft(as_node(x), n, one_axis(axis, dim, -1), norm, "rfft")


@op_function
def irfft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    *,
    dim: int | None = None,
) -> Any:
    """The inverse of `rfft`, n real numbers; by default twice the size of x less 2.

    `[..., n // 2 + 1]` to `[..., n]` real. `ShapeError` for an empty axis, `AxisError` for an axis
    that x does not have.

    >>> import retrograd as rg
    >>> rg.fft.irfft([1.0, 1.0, 1.0]).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    return _irfft(as_node(x), n, one_axis(axis, dim, -1), norm, "irfft")


def _several_real(x: Node, s: Any, axes: Any, norm: str | None, what: str) -> Node:
    *others, (last, n) = _axes(_real_input(x, what), s, axes, what)
    x = _rfft(x, n, last, norm, what)
    for axis, n in others:
        x = _transform(x, n, axis, norm, False, what)
    return x


def _several_halves(x: Node, s: Any, axes: Any, norm: str | None, what: str) -> Node:
    *others, (last, n) = _axes(x, s, axes, what)
    for axis, size in others:
        x = _transform(x, size, axis, norm, True, what)
    return _irfft(x, n, last, norm, what)


@op_function
def rfftn(
    x: ArrayLike,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: str | None = "backward",
    *,
    dim: Sizes = None,
) -> Any:
    """`rfft` along the last of the axes, then `fft` along the others.

    The last axis becomes `n // 2 + 1` long in the shape. `DTypeError` for complex numbers,
    `ShapeError` for an empty axis.

    >>> import retrograd as rg
    >>> rg.fft.rfftn(rg.ones((4, 4))).shape
    (4, 3)
    """
    return _several_real(as_node(x), s, one_axis(axes, dim), norm, "rfftn")


@op_function
def irfftn(
    x: ArrayLike,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: str | None = "backward",
    *,
    dim: Sizes = None,
) -> Any:
    """The inverse of `rfftn`.

    The last axis becomes `2 (m - 1)` long in the shape, or as `s` says. `ShapeError` for an empty
    axis.

    >>> import retrograd as rg
    >>> rg.fft.irfftn(rg.ones((4, 3))).shape
    (4, 4)
    """
    return _several_halves(as_node(x), s, one_axis(axes, dim), norm, "irfftn")


@op_function
def rfft2(
    x: ArrayLike,
    /,
    s: Sizes = None,
    axes: Sizes = (-2, -1),
    norm: str | None = "backward",
    *,
    dim: Sizes = None,
) -> Any:
    """`rfftn` along two axes, the last by default.

    Shapes and errors are those of `rfftn`: `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.fft.rfft2(rg.ones((4, 4))).shape
    (4, 3)
    """
    return _several_real(as_node(x), s, one_axis(axes, dim, (-2, -1)), norm, "rfft2")


@op_function
def irfft2(
    x: ArrayLike,
    /,
    s: Sizes = None,
    axes: Sizes = (-2, -1),
    norm: str | None = "backward",
    *,
    dim: Sizes = None,
) -> Any:
    """The inverse of `rfft2`.

    Shapes and errors are those of `irfftn`: `ShapeError` for an empty axis.

    >>> import retrograd as rg
    >>> rg.fft.irfft2(rg.ones((4, 3))).shape
    (4, 4)
    """
    return _several_halves(as_node(x), s, one_axis(axes, dim, (-2, -1)), norm, "irfft2")


_OTHER = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


@op_function
def hfft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    *,
    dim: int | None = None,
) -> Any:
    """The `fft` of what is half of a sequence with `x_-j = conj(x_j)`: n real numbers.

    `[..., n // 2 + 1]` complex to `[..., n]` real. `ShapeError` for an empty axis.

    >>> import retrograd as rg
    >>> rg.fft.hfft([1.0, 1.0, 1.0]).tolist()
    [4.0, 0.0, 0.0, 0.0]
    """
    return _irfft(conj(_complex(as_node(x))), n, one_axis(axis, dim, -1), _other(norm), "hfft")


@op_function
def ihfft(
    x: ArrayLike,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    *,
    dim: int | None = None,
) -> Any:
    """The inverse of `hfft`.

    `[..., n]` real to `[..., n // 2 + 1]` complex. `DTypeError` for complex numbers, `ShapeError`
    for an empty axis.

    >>> import retrograd as rg
    >>> rg.fft.ihfft([4.0, 0.0, 0.0, 0.0]).real.tolist()
    [1.0, 1.0, 1.0]
    """
    return conj(_rfft(as_node(x), n, one_axis(axis, dim, -1), _other(norm), "ihfft"))


def _other(norm: str | None) -> str:
    _power(norm, False)
    return _OTHER[norm]


@respells
def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of an `fft`, in cycles for each unit of the spacing d.

    A vector of the shape `[n]`, float32 unless a dtype is given: `0, 1, ..., -2, -1`, divided by `n
    d`. `ShapeError` for n below 1.

    >>> import retrograd as rg
    >>> rg.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


@respells
def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of an `rfft`.

    A vector of the shape `[n // 2 + 1]`, float32 unless a dtype is given. `ShapeError` for n below
    1.

    >>> import retrograd as rg
    >>> rg.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(f: Any, n: Any, d: Any, dtype: Any, device: Any) -> Tensor:
    count = n if isinstance(n, Dim) else integer(n, "fftfreq: n")
    if isinstance(count, int) and count < 1:
        raise ShapeError(f"fftfreq: a transform has at least one element, not {count}")
    kind = as_dtype(dtype or DEFAULT.real)
    if not kind.is_float:
        raise DTypeError(f"frequencies are floating numbers, not {kind}")
    if isinstance(count, Dim):
        return _symbolic_frequencies(count, float(d), f is np.fft.rfftfreq, kind)
    check_new((count,), 8, "fftfreq")
    return asarray(f(count, float(d)).astype(kind.dtype), device=device)


@op_function
def _symbolic_frequencies(n: Dim, d: float, half: bool, kind: Any) -> Any:
    """The first half counts up from 0, the second from -n // 2."""
    shape = (n // 2 + 1 if half else n,)
    place = Iota(shape, 0, int64)()
    if not half:
        second = el.ge(place, number((n + 1) // 2, int64, shape))
        place = el.select(second, place - number(n, int64, shape), place)
    unit = 1.0 / (number(n, float64) * d)
    return el.cast(el.cast(place, float64) * expand(unit, shape, (0,)), kind)


def _shifts(x: Any, axes: Any, inverse: bool) -> Any:
    rank = x.ndim
    found = listed_axes(range(rank) if axes is None else axes, rank, "fftshift")
    steps = [x.shape[i] // 2 for i in found]
    return roll(x, tuple(-(s) if inverse else s for s in steps), axis=found)


@respells
def fftshift(
    x: ArrayLike,
    /,
    axes: int | Sequence[int] | None = None,
    *,
    dim: int | Sequence[int] | None = None,
) -> Tensor:
    """Move the element of frequency 0 to the middle.

    Shape and dtype stay; all axes by default. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.fft.fftshift([0, 1, -2, -1]).tolist()
    [-2, -1, 0, 1]
    """
    return _shifts(asarray(x), one_axis(axes, dim), False)


@respells
def ifftshift(
    x: ArrayLike,
    /,
    axes: int | Sequence[int] | None = None,
    *,
    dim: int | Sequence[int] | None = None,
) -> Tensor:
    """The inverse of `fftshift`.

    Shape and dtype stay; all axes by default. `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.fft.ifftshift([-2, -1, 0, 1]).tolist()
    [0, 1, -2, -1]
    """
    return _shifts(asarray(x), one_axis(axes, dim), True)


if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
