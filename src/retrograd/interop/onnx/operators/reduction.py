"""Operators that reduce axes, sort, or run along one."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.interop.onnx.values import (
    SymbolicSizes,
    as_tensor,
    from_sizes,
    ints,
    known_sizes,
    number,
)

_REDUCTIONS: dict[str, Any] = {
    "ReduceL1": lambda x, **o: rg.sum(rg.abs(x), **o),
    "ReduceL2": lambda x, **o: rg.vector_norm(x, **o) if x.dtype.is_float else _whole_norm(x, **o),
    "ReduceLogSum": lambda x, **o: rg.log(rg.sum(x, **o)),
    "ReduceLogSumExp": lambda x, **o: rg.logsumexp(x, **o),
    "ReduceMax": lambda x, **o: _extreme(rg.amax, x, **o),
    "ReduceMean": lambda x, **o: rg.mean(x, **o),
    "ReduceMin": lambda x, **o: _extreme(rg.amin, x, **o),
    "ReduceProd": lambda x, **o: rg.prod(x, **o),
    "ReduceSum": lambda x, **o: rg.sum(x, **o),
    "ReduceSumSquare": lambda x, **o: rg.sum(rg.square(x), **o),
}


def _whole_norm(x: Any, **options: Any) -> Any:
    return rg.sqrt(rg.sum(rg.square(x), **options).astype(rg.float64)).astype(x.dtype)


def _extreme(f: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Of nothing: the least value there is, or the largest."""
    if x.dtype is rg.bool:
        whole = x.astype(rg.uint8)
        return _extreme(f, whole, axis=axis, keepdims=keepdims).astype(rg.bool)
    axes = range(x.ndim) if axis is None else axis
    if any(isinstance(x.shape[a], int) and x.shape[a] == 0 for a in axes):
        kept = {a % x.ndim for a in axes}
        shape = [1 if i in kept else d for i, d in enumerate(x.shape) if keepdims or i not in kept]
        limits = rg.finfo(x.dtype) if x.dtype.is_float else rg.iinfo(x.dtype)
        end = float("inf") if x.dtype.is_float else limits.max
        low = -float("inf") if x.dtype.is_float else limits.min
        return rg.full(tuple(shape), low if f is rg.amax else end, dtype=x.dtype)
    return f(x, axis=axis, keepdims=keepdims)


@rule(*_REDUCTIONS, sizes=True)
def reduction(call: NodeCall, x: Any, axes: Any = None) -> Any:
    """Axes are an attribute up to opset 17, and an input after (since 13 of `ReduceSum`)."""
    where = call.get("axes", None) if axes is None else ints(axes, f"the axes of {call.operator}")
    keepdims = bool(call.get("keepdims", 1))
    if not where and call.get("noop_with_empty_axes", 0):
        one = rg.reshape(x, (*x.shape, 1)) if x.ndim else rg.reshape(x, (1,))
        return _in_dtype(call.operator, one, (-1,), False)
    if isinstance(x, SymbolicSizes):
        if call.operator == "ReduceProd":
            return from_sizes(np.prod(x.array, keepdims=keepdims))
        x = x.tensor()
    axis = tuple(where) if where else None
    return _in_dtype(call.operator, x, axis, keepdims)


def _in_dtype(operator: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """The dtype of a result is that of the input."""
    if axis is None:
        axis = tuple(range(x.ndim))
    if axis == ():
        x, axis = rg.reshape(x, (1,)), (0,)
        y = _REDUCTIONS[operator](x, axis=axis, keepdims=False)
    else:
        y = _REDUCTIONS[operator](x, axis=axis, keepdims=keepdims)
    return y if y.dtype is x.dtype else y.astype(x.dtype)


@rule("ArgMax", "ArgMin")
def arg_extreme(call: NodeCall, x: Any) -> Any:
    """Of equal elements the first, or the last with `select_last_index`."""
    f = rg.argmax if call.operator == "ArgMax" else rg.argmin
    axis, keepdims = call.get("axis", 0), bool(call.get("keepdims", 1))
    if not call.get("select_last_index", 0):
        return f(x, axis=axis, keepdims=keepdims).astype(rg.int64)
    turned = f(rg.flip(x, axis=axis), axis=axis, keepdims=keepdims).astype(rg.int64)
    return x.shape[axis] - 1 - turned


@rule("CumSum", "CumProd")
def cumulative(call: NodeCall, x: Any, axis: Any) -> Any:
    where = number(axis, f"the axis of {call.operator}")
    f, unit = (rg.cumsum, 0) if call.operator == "CumSum" else (rg.cumprod, 1)
    if call.get("reverse", 0):
        x = rg.flip(x, axis=where)
    y = f(x, axis=where, dtype=x.dtype)
    if call.get("exclusive", 0):
        widths = [(0, 0)] * x.ndim
        widths[where] = (1, 0)
        cut = [slice(None)] * x.ndim
        cut[where] = slice(0, x.shape[where])
        y = rg.pad(y, widths, value=unit)[tuple(cut)]
    return rg.flip(y, axis=where) if call.get("reverse", 0) else y


@rule("TopK", sizes=True)
def top_k(call: NodeCall, x: Any, k: Any) -> Any:
    """Of equal elements the first comes first."""
    count = known_sizes(k)
    wanted = number(k, "the count of TopK") if count is None else count.item()
    found = rg.topk(
        as_tensor(x), wanted, axis=call.get("axis", -1), largest=bool(call.get("largest", 1))
    )
    return found[0], found[1].astype(rg.int64)


@rule("Hardmax")
def hardmax(call: NodeCall, x: Any) -> Any:
    axis = call.get("axis", -1)
    best = rg.argmax(x, axis=axis, keepdims=True)
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    return (rg.reshape(rg.arange(x.shape[axis]), tuple(shape)) == best).astype(x.dtype)


@rule("Softmax")
def softmax(call: NodeCall, x: Any) -> Any:
    return rg.softmax(x, axis=call.get("axis", -1))


@rule("LogSoftmax")
def log_softmax(call: NodeCall, x: Any) -> Any:
    return rg.log_softmax(x, axis=call.get("axis", -1))


@rule("LpNormalization")
def lp_normalization(call: NodeCall, x: Any) -> Any:
    """A vector of zeros stays one."""
    axis, p = call.get("axis", -1), call.get("p", 2)
    if p == 1:
        norm = rg.sum(rg.abs(x), axis=axis, keepdims=True)
    else:
        norm = rg.vector_norm(x, axis=axis, keepdims=True)
    return rg.where(norm == 0, 0, x / rg.where(norm == 0, 1, norm))
