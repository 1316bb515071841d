"""Operators on quantized numbers, computed as the numbers that they stand for, or as whole ones.

`QuantizeLinear` rounds, so its gradient is 0: models are fine-tuned with quantization by a rule of
their own (straight-through), not by this.
"""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.interop.onnx.dtypes import NARROW, dtype_of, number_of
from retrograd.interop.onnx.narrow import Narrow, limits, rounded, wide
from retrograd.interop.onnx.operators.conv import conv
from retrograd.interop.onnx.registry import NodeCall, rule


def _spread(v: Any, x: Any, axis: int, block: int) -> Any:
    """A scale or zero point along the elements it is for: one for all, for each place of an axis,
    or for each block of places."""
    if v.ndim == 0 or v.shape == (1,):
        return rg.reshape(v, ())
    axis %= x.ndim
    if block:
        spread = rg.repeat(v, block, axis=axis)
        cut = [slice(None)] * x.ndim
        cut[axis] = slice(0, x.shape[axis])
        return spread[tuple(cut)]
    return rg.reshape(v, tuple(-1 if i == axis else 1 for i in range(x.ndim)))


@rule("QuantizeLinear", narrow=True)
def quantize_linear(call: NodeCall, x: Any, scale: Any, zero: Any = None) -> Any:
    """round(x / scale) + zero, halves to even, kept within the dtype."""
    axis, block = call.get("axis", 1), call.get("block_size", 0)
    number = call.get("output_dtype", 0) or (2 if zero is None else _number(zero))
    dtype = dtype_of(number, "QuantizeLinear", narrow=True)
    x, scale = wide(x, "QuantizeLinear"), wide(scale, "QuantizeLinear")
    whole = x.astype(rg.float32) / _spread(scale, x, axis, block).astype(rg.float32)
    shift = 0 if zero is None else _spread(_held(zero), x, axis, block).astype(rg.float32)
    if dtype.is_float:  # float8 and float4
        return rounded(whole + shift, number, bool(call.get("saturate", 1)))
    low, high = limits(number) if number in NARROW else (rg.iinfo(dtype).min, rg.iinfo(dtype).max)
    y = rg.clip(rg.round(whole) + shift, low, high).astype(dtype)
    return Narrow(y, number) if number in NARROW else y


def _number(value: Any) -> int:
    return int(value.number) if isinstance(value, Narrow) else number_of(value.dtype)


def _held(value: Any) -> Any:
    return value.tensor if isinstance(value, Narrow) else value


@rule("DequantizeLinear", narrow=True)
def dequantize_linear(call: NodeCall, x: Any, scale: Any, zero: Any = None) -> Any:
    """(x - zero) scale, in the dtype of the scale."""
    axis, block = call.get("axis", 1), call.get("block_size", 0)
    wanted = call.get("output_dtype", 0)
    x, scale, zero = _held(x), wide(scale, "DequantizeLinear"), _held(zero)
    whole = x if x.dtype.is_float else x.astype(rg.int32)
    if zero is not None:
        whole = whole - _spread(zero, x, axis, block).astype(whole.dtype)
    dtype = rg.float64 if scale.dtype is rg.float64 else rg.float32
    y = whole.astype(dtype) * _spread(scale, x, axis, block).astype(dtype)
    return y.astype(dtype_of(wanted, "DequantizeLinear") if wanted else scale.dtype)


@rule("DynamicQuantizeLinear")
def dynamic_quantize_linear(_call: NodeCall, x: Any) -> Any:
    """To uint8, by a scale from the range of x with 0."""
    low, high = rg.minimum(rg.amin(x), 0), rg.maximum(rg.amax(x), 0)
    scale = (high - low) / 255
    safe = rg.where(scale == 0, 1, scale)
    zero = rg.clip(rg.round(-low / safe), 0, 255)
    y = rg.clip(rg.round(x / safe) + zero, 0, 255).astype(rg.uint8)
    return y, scale, zero.astype(rg.uint8)


def _columns(v: Any, rank: int) -> Any:
    """For each row of the first matrix, where there is more than one."""
    return rg.reshape(v, (-1, 1)) if v.ndim == 1 and v.shape[0] != 1 and rank >= 2 else v


@rule("MatMulInteger")
def matmul_integer(_call: NodeCall, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    left, right = a.astype(rg.int32), b.astype(rg.int32)
    if a_zero is not None:
        left = left - _columns(a_zero, a.ndim).astype(rg.int32)
    if b_zero is not None:
        right = right - b_zero.astype(rg.int32)
    return rg.matmul(left, right)


@rule("ConvInteger")
def conv_integer(call: NodeCall, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    """Whole numbers up to 2^53 are exact in float64."""
    wide = x.astype(rg.float64) - (0 if x_zero is None else x_zero.astype(rg.float64))
    kernel = w.astype(rg.float64)
    if w_zero is not None:
        shift = w_zero.astype(rg.float64)
        kernel = kernel - (rg.reshape(shift, (-1, *(1,) * (w.ndim - 1))) if shift.ndim else shift)
    return conv(call, wide, kernel).astype(rg.int32)


def _requantized(y: Any, scale: Any, zero: Any) -> Any:
    limits = rg.iinfo(zero.dtype)
    y = rg.round(y / scale) + zero.astype(y.dtype)
    return rg.clip(y, limits.min, limits.max).astype(zero.dtype)


@rule("QLinearMatMul")
def qlinear_matmul(
    _call: NodeCall,
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    scale: Any,
    zero: Any,
) -> Any:
    product = rg.matmul(
        a.astype(rg.float64) - _columns(a_zero, a.ndim).astype(rg.float64),
        b.astype(rg.float64) - b_zero.astype(rg.float64),
    )
    factor = _columns(a_scale, a.ndim).astype(rg.float64) * b_scale.astype(rg.float64)
    return _requantized(product * factor, _columns(scale, a.ndim).astype(rg.float64), zero)


@rule("QLinearConv")
def qlinear_conv(
    call: NodeCall,
    x: Any,
    x_scale: Any,
    x_zero: Any,
    w: Any,
    w_scale: Any,
    w_zero: Any,
    scale: Any,
    zero: Any,
    bias: Any = None,
) -> Any:
    rank = x.ndim - 2
    per = (-1, *(1,) * (rank + 1))
    shift = w_zero.astype(rg.float64)
    kernel = w.astype(rg.float64) - (rg.reshape(shift, per) if shift.ndim == 1 else shift)
    y = conv(call, x.astype(rg.float64) - x_zero.astype(rg.float64), kernel)
    if bias is not None:
        y = y + rg.reshape(bias.astype(rg.float64), (1, *per[:-1]))
    factor = w_scale.astype(rg.float64)
    factor = rg.reshape(factor, (1, *per[:-1])) if factor.ndim == 1 else factor
    y = y * (x_scale.astype(rg.float64) * factor)
    return _requantized(y, scale.astype(rg.float64), zero)
