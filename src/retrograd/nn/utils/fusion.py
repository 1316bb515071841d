"""Layers in evaluation with the batch norm behind them, as one layer."""

from __future__ import annotations

import copy
from typing import Any

import retrograd as rg
from retrograd.errors import OptionError
from retrograd.nn.module.parameter import Parameter


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight `[out, in, ...]` (`[in, out, ...]` if transposed) and bias `[out]` of a convolution
    that does what one with a batch norm behind it does: `w gamma / sqrt(var + eps)` and
    `(b - mean) gamma / sqrt(var + eps) + beta`."""
    w, mean, var = rg.asarray(conv_w), rg.asarray(bn_rm), rg.asarray(bn_rv)
    b = rg.zeros_like(mean) if conv_b is None else rg.asarray(conv_b)
    gamma = rg.ones_like(mean) if bn_w is None else rg.asarray(bn_w)
    beta = rg.zeros_like(mean) if bn_b is None else rg.asarray(bn_b)
    scale = gamma * rg.rsqrt(var + bn_eps)
    at = 1 if transpose else 0
    shape = (*(1,) * at, -1, *(1,) * (w.ndim - 1 - at))
    with rg.no_grad():
        weight, bias = w * scale.reshape(shape), (b - mean) * scale + beta
    return Parameter(weight.astype(w.dtype).value()), Parameter(bias.astype(w.dtype).value())


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """The same for a linear map `[out, in]`."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution, a copy, that does what `bn(conv(x))` does in evaluation. `OptionError` while
    one of them trains, or without running statistics.

    >>> import retrograd as rg
    >>> conv, norm = rg.nn.Conv1d(2, 3, 1).eval(), rg.nn.BatchNorm1d(3).eval()
    >>> x = rg.ones((1, 2, 4))
    >>> fused = rg.nn.utils.fuse_conv_bn_eval(conv, norm)
    >>> bool(rg.abs(fused(x) - norm(conv(x))).max() < 1e-5)
    True
    """
    if conv.training or bn.training:
        raise OptionError("fuse: layers in evaluation are fused; call eval() on both first")
    if bn.running_mean is None:
        raise OptionError("fuse: a batch norm without running statistics has nothing to fuse")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear map, a copy, that does what `bn(linear(x))` does in evaluation, for `[N, C]`."""
    return fuse_conv_bn_eval(linear, bn)
