"""Operators that work element by element."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.interop.onnx.dtypes import NARROW, dtype_of, number_of
from retrograd.interop.onnx.narrow import Narrow, rounded
from retrograd.interop.onnx.registry import NodeCall, rule, same
from retrograd.interop.onnx.values import SymbolicSizes, as_tensor, from_sizes, known, known_sizes
from retrograd.nn import functional as F

same({
    "Abs": rg.abs, "Acos": rg.acos, "Acosh": rg.acosh, "And": rg.logical_and, "Asin": rg.asin,
    "Asinh": rg.asinh, "Atan": rg.atan, "Atanh": rg.atanh, "BitwiseAnd": rg.bitwise_and,
    "BitwiseNot": rg.bitwise_invert, "BitwiseOr": rg.bitwise_or, "BitwiseXor": rg.bitwise_xor,
    "Ceil": rg.ceil, "Cos": rg.cos, "Cosh": rg.cosh, "Erf": rg.erf, "Exp": rg.exp,
    "Floor": rg.floor, "HardSwish": F.hardswish, "IsNaN": rg.isnan, "Log": rg.log, "Mish": F.mish,
    "Neg": rg.negative, "Not": rg.logical_not, "Or": rg.logical_or, "Reciprocal": rg.reciprocal,
    "Relu": rg.relu, "Round": rg.round, "Sigmoid": rg.sigmoid, "Sign": rg.sign, "Sin": rg.sin,
    "Sinh": rg.sinh, "Softplus": rg.softplus, "Softsign": F.softsign, "Sqrt": rg.sqrt,
    "Tan": rg.tan, "Tanh": rg.tanh, "Xor": rg.logical_xor,
})  # fmt: skip


@rule("Identity", sizes=True, moves=True)
def identity(_call: NodeCall, x: Any) -> Any:
    return x


def _quotient(x: Any, y: Any) -> Any:
    """Whole numbers are divided towards zero."""
    return rg.divide(x, y) if x.dtype.is_float else rg.div(x, y, rounding_mode="trunc")


def _sizes_or(objects: Any, tensors: Any) -> Any:
    """A rule for two inputs that also computes with sizes: `objects` on arrays of them."""

    def of(_call: NodeCall, x: Any, y: Any) -> Any:
        if isinstance(x, SymbolicSizes) or isinstance(y, SymbolicSizes):
            a, b = known_sizes(x), known_sizes(y)
            if a is not None and b is not None:
                return from_sizes(objects(a, b))
        return tensors(as_tensor(x), as_tensor(y))

    return of


rule("Add", sizes=True)(_sizes_or(np.add, rg.add))
rule("Sub", sizes=True)(_sizes_or(np.subtract, rg.subtract))
rule("Mul", sizes=True)(_sizes_or(np.multiply, rg.multiply))
rule("Div", sizes=True)(_sizes_or(np.floor_divide, _quotient))


def _comparison(objects: Any, tensors: Any) -> Any:
    """Whether sizes are equal or less is known where it holds for all, or for none."""

    def of(_call: NodeCall, x: Any, y: Any) -> Any:
        if isinstance(x, SymbolicSizes) or isinstance(y, SymbolicSizes):
            a, b = known_sizes(x), known_sizes(y)
            if a is not None and b is not None:
                return rg.asarray(np.asarray(objects(a, b)).astype(bool))
        return tensors(as_tensor(x), as_tensor(y))

    return of


rule("Equal", sizes=True)(_comparison(np.equal, rg.equal))
rule("Greater", sizes=True)(_comparison(np.greater, rg.greater))
rule("GreaterOrEqual", sizes=True)(_comparison(np.greater_equal, rg.greater_equal))
rule("Less", sizes=True)(_comparison(np.less, rg.less))
rule("LessOrEqual", sizes=True)(_comparison(np.less_equal, rg.less_equal))


@rule("Where", sizes=True)
def where(_call: NodeCall, condition: Any, x: Any, y: Any) -> Any:
    if isinstance(x, SymbolicSizes) or isinstance(y, SymbolicSizes):
        parts = known(condition), known_sizes(x), known_sizes(y)
        if all(part is not None for part in parts):
            return from_sizes(np.where(*parts))
    return rg.where(condition, as_tensor(x), as_tensor(y))


@rule("Pow")
def power(_call: NodeCall, x: Any, y: Any) -> Any:
    """Of the dtype of the base."""
    if x.dtype is y.dtype:
        return rg.pow(x, y)
    if x.dtype.is_float:  # an exponent of whole numbers is exact in the dtype of a float base
        return rg.pow(x, y.astype(x.dtype)) if y.dtype.is_float else rg.pow(x, y).astype(x.dtype)
    return rg.pow(x.astype(rg.float64), y.astype(rg.float64)).astype(x.dtype)


@rule("Mod", sizes=True)
def mod(call: NodeCall, x: Any, y: Any) -> Any:
    """The sign of the divisor, or of the dividend with `fmod`."""
    if isinstance(x, SymbolicSizes) or isinstance(y, SymbolicSizes):
        a, b = known_sizes(x), known_sizes(y)
        if a is not None and b is not None:
            return from_sizes(np.mod(a, b))
    f = rg.fmod if call.get("fmod", 0) else rg.remainder
    return f(as_tensor(x), as_tensor(y))


@rule("BitShift")
def bit_shift(call: NodeCall, x: Any, y: Any) -> Any:
    left = call.get("direction") == "LEFT"
    return (rg.bitwise_left_shift if left else rg.bitwise_right_shift)(x, y)


@rule("Max", "Min", sizes=True)
def extreme(call: NodeCall, *values: Any) -> Any:
    f = rg.maximum if call.operator == "Max" else rg.minimum
    return functools.reduce(f, map(as_tensor, values))


@rule("Sum")
def total(_call: NodeCall, *values: Any) -> Any:
    return functools.reduce(rg.add, values)


@rule("Mean")
def mean(_call: NodeCall, *values: Any) -> Any:
    return functools.reduce(rg.add, values) / len(values)


@rule("Clip", sizes=True)
def clip(_call: NodeCall, x: Any, low: Any = None, high: Any = None) -> Any:
    """The upper bound holds where both cannot. The gradient at a bound is 0, as everywhere here."""
    return rg.clip(as_tensor(x), low, high)


@rule("Cast", sizes=True, narrow=True)
def cast(call: NodeCall, x: Any) -> Any:
    return _cast(call, x, call.get("to"))


@rule("CastLike", sizes=True, narrow=True)
def cast_like(call: NodeCall, x: Any, like: Any) -> Any:
    like = as_tensor(like)
    return _cast(call, x, like.number if isinstance(like, Narrow) else number_of(like.dtype))


def _cast(call: NodeCall, x: Any, number: int) -> Any:
    dtype = dtype_of(number, f"the result of {call.operator}", narrow=True)
    x = x.tensor if isinstance(x, Narrow) else x
    if number in NARROW:
        saturate = bool(call.get("saturate", 1))
        return rounded(as_tensor(x), number, saturate, call.get("round_mode", "up"))
    if isinstance(x, SymbolicSizes):
        if dtype in (rg.int32, rg.int64):  # sizes stay sizes
            return x
        x = x.tensor()
    return x.astype(dtype)


@rule("BitCast")
def bit_cast(call: NodeCall, x: Any) -> Any:
    dtype = dtype_of(call.get("to"), "the result of BitCast")
    if x.dtype is dtype:
        return x
    return rg.pure_callback(
        lambda a: np.asarray(a).view(dtype.dtype), rg.spec(x.shape, dtype), rg.stop_gradient(x)
    )


@rule("LeakyRelu")
def leaky_relu(call: NodeCall, x: Any) -> Any:
    return rg.leaky_relu(x, call.get("alpha", 0.01))


@rule("PRelu")
def prelu(_call: NodeCall, x: Any, slope: Any) -> Any:
    if slope.ndim == 1 and slope.shape[0] not in (1, x.shape[-1]):  # by channels, as before opset 7
        slope = rg.reshape(slope, (1, -1, *(1,) * (x.ndim - 2)))
    return rg.where(x < 0, slope * x, x)


@rule("Elu")
def elu(call: NodeCall, x: Any) -> Any:
    alpha = call.get("alpha", 1.0)
    return rg.where(x < 0, alpha * rg.expm1(x), x)


@rule("Selu")
def selu(call: NodeCall, x: Any) -> Any:
    alpha = call.get("alpha", 1.6732631921768188)
    gamma = call.get("gamma", 1.0507010221481323)
    return gamma * rg.where(x <= 0, alpha * rg.expm1(x), x)


@rule("Celu")
def celu(call: NodeCall, x: Any) -> Any:
    alpha = call.get("alpha", 1.0)
    return rg.maximum(x, 0) + rg.minimum(alpha * rg.expm1(x / alpha), 0)


@rule("HardSigmoid")
def hard_sigmoid(call: NodeCall, x: Any) -> Any:
    return rg.clip(call.get("alpha", 0.2) * x + call.get("beta", 0.5), 0, 1)


@rule("Gelu")
def gelu(call: NodeCall, x: Any) -> Any:
    return rg.gelu(x, approximate=call.get("approximate", "none"))


@rule("Swish")
def swish(call: NodeCall, x: Any) -> Any:
    return x * rg.sigmoid(call.get("alpha", 1.0) * x)


@rule("ThresholdedRelu")
def thresholded_relu(call: NodeCall, x: Any) -> Any:
    return rg.where(x > call.get("alpha", 1.0), x, 0)


@rule("Shrink")
def shrink(call: NodeCall, x: Any) -> Any:
    bias, lambd = call.get("bias", 0.0), call.get("lambd", 0.5)
    if not x.dtype.is_float:  # whole numbers are compared and moved by whole numbers
        bias, lambd = math.floor(bias), math.floor(lambd)
    return rg.where(x < -lambd, x + bias, rg.where(x > lambd, x - bias, 0)).astype(x.dtype)


@rule("IsInf")
def is_inf(call: NodeCall, x: Any) -> Any:
    found = rg.isinf(x)
    if not call.get("detect_positive", 1):
        found &= x < 0
    if not call.get("detect_negative", 1):
        found &= x > 0
    return found
