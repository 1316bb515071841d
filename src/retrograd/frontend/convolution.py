"""Convolutions over any number of axes, with PyTorch's names for their options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.frontend.broadcasting import alike, as_node, integer
from retrograd.frontend.conversion import promote
from retrograd.frontend.elementwise import ArrayLike
from retrograd.frontend.function import function
from retrograd.ir import Dim, Node, bool_
from retrograd.ops import elementwise as el
from retrograd.ops.conv import Conv
from retrograd.ops.shape import expand, reshape
from retrograd.ops.windows import full_size, span

Option = int | Sequence[int]


def per_axis(value: Any, rank: int, what: str, least: int) -> tuple[int, ...]:
    """An option as one integer for each axis that is slid along: given as such, or as one for
    all, alone or in a list."""
    given = tuple(value) if isinstance(value, tuple | list) else (value,)
    given = given * rank if len(given) == 1 else given
    if len(given) != rank:
        raise OptionError(f"{what}: one integer, or one for each of {rank} axes, not {value!r}")
    numbers = tuple(integer(v, what) for v in given)
    if any(n < least for n in numbers):
        raise OptionError(f"{what} is at least {least}, not {value!r}")
    return numbers


@function
def conv(
    x: ArrayLike,
    weight: ArrayLike,
    /,
    bias: ArrayLike | None = None,
    stride: Option = 1,
    padding: Any = 0,
    dilation: Option = 1,
    groups: int = 1,
) -> Any:
    """Convolution (strictly, cross-correlation): `[N, C, *S]` with the weight
    `[O, C / groups, *K]` gives `[N, O, *P]`, over as many axes as the weight has behind its second.

    `y[n, o, p] = bias[o] + sum over c, k of weight[o, c, k] * x[n, c, p * stride + k * dilation]`,
    x surrounded by `padding` zeros; `P = (S + 2 * padding - dilation * (K - 1) - 1) // stride + 1`.
    An x without the axis N gives a result without it. With groups, channels fall into as many
    blocks, and each block of the result sees one block of x.

    Options are one integer, or one for each axis. Padding may also be a pair (before, after) for
    each axis, `"valid"` for none, or `"same"` for a result of the size of x, which needs stride 1.
    Half precision is summed in float32.

    >>> import retrograd as rg
    >>> rg.conv(rg.ones((1, 3, 8, 8)), rg.ones((4, 3, 3, 3)), stride=2, padding=1).shape
    (1, 4, 4, 4)
    """
    given, w, rank, alone = _operands("conv", x, weight)
    strides = per_axis(stride, rank, "conv: stride", 1)
    dilations = per_axis(dilation, rank, "conv: dilation", 1)
    low, high = _padding(padding, w.shape[2:], strides, dilations)
    count = _groups("conv", groups, w.shape[0], w)
    if given.shape[1] != w.shape[1] * count:
        raise ShapeError(
            f"conv of {given.type} with the weight {w.type} and groups={count}: x has "
            f"{given.shape[1]} channels, the weight takes {w.shape[1] * count}; x is (N, C, *S), "
            "the weight (O, C / groups, *K)"
        )
    for d, k, before, after, gap in zip(
        given.shape[2:], w.shape[2:], low, high, dilations, strict=True
    ):
        wide, room = span(k, gap), full_size(d, before, after, 1)
        if not isinstance(wide - room, Dim) and wide > room:
            raise ShapeError(
                f"conv of {given.type} with the weight {w.type}: the kernel reaches over {wide} "
                f"elements of an axis that has {room}, padding included; pad more, or make the "
                "kernel or its dilation smaller"
            )
    op = Conv(strides, low, high, (1,) * rank, dilations, count)
    return _finish("conv", op(given, w), bias, alone)


@function
def conv_transpose(
    x: ArrayLike,
    weight: ArrayLike,
    /,
    bias: ArrayLike | None = None,
    stride: Option = 1,
    padding: Option = 0,
    output_padding: Option = 0,
    groups: int = 1,
    dilation: Option = 1,
) -> Any:
    """The transpose of `conv`, what its gradient does to x: `[N, C, *S]` with the weight
    `[C, O / groups, *K]` gives `[N, O, *P]`.

    Each element of x adds the kernel, times itself, to the result, `stride` apart; `padding`
    elements are then cut off on both sides. `P = (S - 1) * stride - 2 * padding +
    dilation * (K - 1) + output_padding + 1`: `output_padding`, less than the stride or the
    dilation, chooses among the sizes that `conv` takes to the same.

    >>> import retrograd as rg
    >>> rg.conv_transpose(rg.ones((1, 4, 4, 4)), rg.ones((4, 3, 2, 2)), stride=2).shape
    (1, 3, 8, 8)
    """
    given, w, rank, alone = _operands("conv_transpose", x, weight)
    strides = per_axis(stride, rank, "conv_transpose: stride", 1)
    dilations = per_axis(dilation, rank, "conv_transpose: dilation", 1)
    pads = per_axis(padding, rank, "conv_transpose: padding", 0)
    extra = per_axis(output_padding, rank, "conv_transpose: output_padding", 0)
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        raise OptionError(
            f"conv_transpose: output_padding {output_padding!r} is less than the stride {stride!r} "
            f"or the dilation {dilation!r}"
        )
    count = _groups("conv_transpose", groups, w.shape[0], w)
    if given.shape[1] != w.shape[0]:
        raise ShapeError(
            f"conv_transpose of {given.type} with the weight {w.type}: x has {given.shape[1]} "
            f"channels, the weight takes {w.shape[0]}; x is (N, C, *S), the weight "
            "(C, O / groups, *K)"
        )
    reach = [span(k, d) - 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    low = tuple(r - p for r, p in zip(reach, pads, strict=True))
    high = tuple(a + e for a, e in zip(low, extra, strict=True))
    # The weight as that of the convolution this is the transpose of, which knows its transpose.
    ones = (1,) * rank
    forward = Conv(strides, pads, pads, ones, dilations, count)
    y = Conv(ones, low, high, strides, dilations, count)(given, forward.transposed(w))
    return _finish("conv_transpose", y, bias, alone)


def _operands(what: str, x: Any, weight: Any) -> tuple[Node, Node, int, bool]:
    """x with an axis for samples, the weight in the same dtype, the number of axes to slide along,
    and whether x had no axis for samples."""
    given, w = alike(x, weight)
    if w.dtype is bool_:
        raise DTypeError(f"{what} takes numbers, not booleans; cast them first")
    rank = w.type.rank - 2
    if rank < 1:
        raise ShapeError(
            f"{what}: a weight has an axis for the channels of the result, one for those of x, and "
            f"at least one to slide along; it is {w.type}"
        )
    if given.type.rank not in (rank + 1, rank + 2):
        raise ShapeError(
            f"{what} of {given.type} with the weight {w.type}, which slides along {rank} axes: x "
            f"has {rank + 2} axes, (N, C, *S), or {rank + 1} without samples"
        )
    alone = given.type.rank == rank + 1
    if alone:
        given = reshape(given, (1, *given.shape))
    for t, sizes in ((given.type, given.shape[2:]), (w.type, w.shape[2:])):
        if any(d == 0 for d in sizes):
            raise ShapeError(f"{what}: {t} has no elements along an axis to slide along")
    return given, w, rank, alone


def _groups(what: str, groups: Any, channels: int | Dim, w: Node) -> int:
    count = integer(groups, f"{what}: groups")
    if count < 1:
        raise OptionError(f"{what}: groups is at least 1, not {count}")
    if channels // count * count != channels:
        raise ShapeError(
            f"{what}: the {channels} channels of the weight {w.type} do not divide into "
            f"groups={count}"
        )
    return count


def _padding(
    padding: Any, kernel: Sequence[int | Dim], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    rank = len(kernel)
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise OptionError(f"conv: padding is numbers, 'same' or 'valid', not {padding!r}")
        if padding == "same" and any(s != 1 for s in strides):
            raise OptionError("conv: padding='same' needs stride 1; give the padding in numbers")
        if padding == "valid":
            return (0,) * rank, (0,) * rank
        reach = [span(k, d) - 1 for k, d in zip(kernel, dilations, strict=True)]
        low = tuple(r // 2 for r in reach)
        return low, tuple(r - a for r, a in zip(reach, low, strict=True))
    if isinstance(padding, tuple | list) and any(isinstance(p, tuple | list) for p in padding):
        if len(padding) != rank:
            raise OptionError(f"conv: padding has a pair for each of {rank} axes, not {padding!r}")
        pairs = [per_axis(p, 2, "conv: padding", 0) for p in padding]
        return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    both = per_axis(padding, rank, "conv: padding", 0)
    return both, both


def _finish(what: str, y: Node, bias: Any, alone: bool) -> Node:
    """Add the bias; drop the axis of samples if there was none."""
    if bias is not None:
        b = as_node(bias, y.dtype)
        if b.shape != (y.shape[1],):
            raise ShapeError(
                f"{what}: the bias {b.type} has one number for each of {y.shape[1]} channels"
            )
        dtype = promote(y.dtype, b.dtype)
        y, b = el.cast(y, dtype), el.cast(b, dtype)
        y = y + expand(b, y.shape, [i for i in range(y.type.rank) if i != 1])
    return reshape(y, y.shape[1:]) if alone else y
