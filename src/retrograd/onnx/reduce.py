"""Reductions, contractions and convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from retrograd.ir import DType, Node, Shape, bool_, float32, int32, int64, uint8, uint32
from retrograd.onnx.elementwise import OnnxNumbers, nan
from retrograd.onnx.shape import framed, windows_of
from retrograd.onnx.writer import OnnxWriter, rule
from retrograd.ops.conv import Conv
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.pool import MaxPool, MaxPoolIndex
from retrograd.ops.reduce import (
    ArgMax,
    ArgMin,
    LogSumExp,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)


def _summed(dtype: DType) -> DType:
    """The dtype in which engines add up or multiply: of the integers, signed ones of 32 and 64
    bits. The bits of the result are those of the others, too."""
    if dtype.is_half:
        return float32
    return int64 if dtype.is_integer and dtype not in (int32, int64) else dtype


def _ordered(dtype: DType) -> DType:
    """The dtype in which engines find extrema."""
    if dtype.is_half:
        return float32
    if dtype is uint32:
        return int64
    return int32 if dtype.is_integer and dtype.itemsize == 2 else dtype


def _reduced(w: OnnxWriter, kind: str, x: str, axes: Sequence[int], keep: int = 0) -> str:
    if not axes:
        return x
    return str(w.emit(kind, x, w.ints(axes), keepdims=keep))


@rule(ReduceSum, ReduceProd)
def add_up(w: OnnxWriter, node: Node, names: list[str]) -> str:
    kind = "ReduceSum" if isinstance(node.prim, ReduceSum) else "ReduceProd"
    dtype = node.dtype
    wide = _summed(dtype)
    y = _reduced(w, kind, w.cast(names[0], dtype, wide), node.attrs["axes"])
    return w.cast(y, wide, dtype)


@rule(ReduceMax, ReduceMin)
def extremum(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """A NaN among the elements is the result; ONNX leaves that open."""
    kind = "ReduceMax" if isinstance(node.prim, ReduceMax) else "ReduceMin"
    axes, dtype = node.attrs["axes"], node.dtype
    x = OnnxNumbers(w, names[0], dtype).cast(_ordered(dtype))
    y = OnnxNumbers(w, _reduced(w, kind, x.name, axes), x.dtype)
    if dtype.is_float and axes:
        spoiled = _reduced(w, "ReduceMax", nan(x).cast(uint8).name, axes)
        y = OnnxNumbers(w, spoiled, uint8).cast(bool_).where(math.nan, y)
    return y.cast(dtype).name


@rule(ReduceAny, ReduceAll)
def logic(w: OnnxWriter, node: Node, names: list[str]) -> str:
    x = OnnxNumbers(w, names[0], bool_)
    x = ~x if isinstance(node.prim, ReduceAll) else x
    total = _reduced(w, "ReduceSum", x.cast(int64).name, node.attrs["axes"])
    y = OnnxNumbers(w, total, int64).above(0)
    return (~y).name if isinstance(node.prim, ReduceAll) else y.name


@rule(LogSumExp)
def logsumexp(w: OnnxWriter, node: Node, names: list[str]) -> str:
    axes, dtype = node.attrs["axes"], node.dtype
    x = OnnxNumbers(w, names[0], dtype)
    x = x.cast(float32) if dtype.is_half else x
    if not axes:
        return names[0]
    top = OnnxNumbers(w, _reduced(w, "ReduceMax", x.name, axes, 1), x.dtype)
    top = (top.of("IsInf", dtype=bool_) | nan(top)).where(0, top)
    total = OnnxNumbers(w, _reduced(w, "ReduceSum", (x - top).of("Exp").name, axes), x.dtype)
    return (
        (total.of("Log") + OnnxNumbers(w, w.emit("Squeeze", top.name, w.ints(axes)), x.dtype))
        .cast(dtype)
        .name
    )


@rule(ArgMax, ArgMin)
def argument(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """The first NaN counts as the extremum: where there is one, the flags are searched instead."""
    kind = "ArgMin" if isinstance(node.prim, ArgMin) else "ArgMax"
    axis, dtype = node.attrs["axis"], node.inputs[0].dtype
    x = OnnxNumbers(w, names[0], dtype)
    x = x.cast(uint8) if dtype is bool_ else x.cast(_ordered(dtype))
    y = x.of(kind, axis=axis, keepdims=0, dtype=int64)
    if not dtype.is_float:
        return y.name
    flags = nan(x).cast(int32)
    spoiled = OnnxNumbers(w, _reduced(w, "ReduceMax", flags.name, [axis]), int32).above(0)
    return spoiled.where(flags.of("ArgMax", axis=axis, keepdims=0, dtype=int64), y).name


@rule(DotGeneral)
def dot_general(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """`MatMul` where one axis is contracted and each side has one of its own, else `Einsum`."""
    a, b = node.inputs
    p = node.attrs
    dtype, wide = node.dtype, _summed(node.dtype)
    x, y = (w.cast(n, dtype, wide) for n in names)
    n = len(p["a_batch"])
    if len(p["a_contract"]) == 1 and a.type.rank == b.type.rank == n + 2:
        free = [next(i for i in range(n + 2) if i not in (*used, *contract)) for used, contract in
                ((p["a_batch"], p["a_contract"]), (p["b_batch"], p["b_contract"]))]  # fmt: skip
        x = w.transpose(x, [*p["a_batch"], free[0], *p["a_contract"]])
        y = w.transpose(y, [*p["b_batch"], *p["b_contract"], free[1]])
        return w.cast(w.emit("MatMul", x, y), wide, dtype)
    letters = iter(ascii_letters)
    left = [next(letters) for _ in range(a.type.rank)]
    right = [next(letters) for _ in range(b.type.rank)]
    for i, j in zip(
        (*p["a_batch"], *p["a_contract"]), (*p["b_batch"], *p["b_contract"]), strict=True
    ):
        right[j] = left[i]
    out = [left[i] for i in p["a_batch"]]
    out += [left[i] for i in range(a.type.rank) if i not in (*p["a_batch"], *p["a_contract"])]
    out += [right[i] for i in range(b.type.rank) if i not in (*p["b_batch"], *p["b_contract"])]
    equation = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    return w.cast(w.emit("Einsum", x, y, equation=equation), wide, dtype)


@rule(Conv)
def conv(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """Zeros between and around the elements are put there first: ONNX has them in no `Conv` of its
    own, or only as fixed numbers. Integers are multiplied window by window."""
    p, x = node.attrs, node.inputs[0]
    if not isinstance(p["groups"], int):
        raise w.refused(f"a convolution in {p['groups']} groups")
    dtype, wide = node.dtype, _summed(node.dtype)
    rank, gaps = len(p["strides"]), [d - 1 for d in p["x_dilation"]]
    zero = w.constant(np.zeros((), wide.dtype))
    value = w.cast(names[0], dtype, wide)
    weight = w.cast(names[1], dtype, wide)
    plain = not any(gaps) and all(isinstance(n, int) and n >= 0 for n in (*p["low"], *p["high"]))
    if not (plain and wide.is_float):
        none = (0, 0)
        value = framed(
            w, value, zero, x.shape, (*none, *p["low"]), (*none, *p["high"]), (*none, *gaps)
        )
    if not wide.is_float:
        y = _products(w, node, value, weight)
    else:
        y = w.emit(
            "Conv", value, weight, strides=p["strides"], dilations=p["w_dilation"],
            group=p["groups"], pads=[*p["low"], *p["high"]] if plain else [0] * (2 * rank),
        )  # fmt: skip
    return w.cast(y, wide, dtype)


def _products(w: OnnxWriter, node: Node, x: str, kernel: str) -> str:
    """A convolution without padding as a contraction of windows."""
    p, (a, b) = node.attrs, node.inputs
    rank, groups = len(p["strides"]), p["groups"]
    outs, sizes = node.shape[2:], b.shape[2:]
    own: Any = b.shape[1]
    windows = windows_of(w, x, (*outs, *sizes), p["strides"], p["w_dilation"], 2)
    windows = w.reshape(windows, (a.shape[0], groups, own, *outs, *sizes))
    kernel = w.reshape(kernel, (groups, b.shape[0] // groups, own, *sizes))
    o, k = "pqrstu"[:rank], "hijklm"[:rank]
    y = w.emit("Einsum", windows, kernel, equation=f"ngc{o}{k},gdc{k}->ngd{o}")
    return w.reshape(y, node.shape)


@rule(MaxPool, MaxPoolIndex)
def max_pool(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """`MaxPool`, of which ONNX leaves open what it makes of NaN, where that fits; else windows,
    then their maxima. An element of the padding is less than any other."""
    p, x = node.attrs, node.inputs[0]
    rank = len(p["sizes"])
    lead = x.type.rank - rank
    if isinstance(node.prim, MaxPool) and lead == 2 and x.dtype.is_float:
        return w.in_float32(x.dtype, lambda v: str(w.emit(
            "MaxPool", v, kernel_shape=p["sizes"], strides=p["strides"], dilations=p["dilations"],
            pads=[*p["low"], *p["high"]])), names[0])  # fmt: skip
    dtype = _ordered(x.dtype)
    least = -np.inf if dtype.is_float else np.iinfo(dtype.dtype).min
    outs: Shape = node.shape[lead:]
    sizes = (*outs, *p["sizes"])

    def windows(value: str, fill: Any, kind: DType) -> OnnxNumbers:
        none = (0,) * lead
        scalar = w.constant(np.asarray(fill, kind.dtype))
        wide = framed(w, value, scalar, x.shape, (*none, *p["low"]), (*none, *p["high"]),
                      (0,) * x.type.rank)  # fmt: skip
        y = windows_of(w, wide, sizes, p["strides"], p["dilations"], lead)
        return OnnxNumbers(w, w.reshape(y, (*node.shape, math.prod(p["sizes"]))), kind)

    value = OnnxNumbers(w, names[0], x.dtype).cast(dtype)
    y = windows(value.name, least, dtype)
    axis = len(node.shape)
    top = OnnxNumbers(w, _reduced(w, "ReduceMax", y.name, [axis], 1), dtype)
    best = y.equals(top)
    if dtype.is_float:
        spoiled = nan(y)
        any_nan = OnnxNumbers(
            w, _reduced(w, "ReduceMax", spoiled.cast(int32).name, [axis], 1), int32
        )
        top = any_nan.above(0).where(math.nan, top)
        best = any_nan.above(0).where(spoiled, best)
    if isinstance(node.prim, MaxPool):
        flat = OnnxNumbers(w, w.emit("Squeeze", top.name, w.ints([axis])), dtype)
        return flat.cast(x.dtype).name
    ones = w.emit("Expand", w.constant(np.int32(1)), w.shape(x.shape))
    score = best.cast(int32) * windows(ones, 0, int32)
    return score.of("ArgMax", axis=axis, keepdims=0, dtype=int64).cast(int32).name
