"""Losses, and the steps of optimizers that ONNX has for training."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.errors import FormatError
from retrograd.interop.onnx.registry import NodeCall, rule

TRAINING = "ai.onnx.preview.training"


@rule("NegativeLogLikelihoodLoss")
def nll_loss(call: NodeCall, log_p: Any, target: Any, weight: Any = None) -> Any:
    """Minus the log probability of each target, weighted; a mean divides by the weights."""
    ignored, reduction = call.get("ignore_index", None), call.get("reduction", "mean")
    kept = None if ignored is None else target != ignored
    safe = target if kept is None else rg.where(kept, target, 0)
    each = -rg.take_along_axis(log_p, safe[:, None].astype(rg.int64), axis=1)[:, 0]
    if weight is not None:
        share = rg.reshape(rg.take(weight, rg.reshape(safe, (-1,))), safe.shape)
    else:
        share = rg.ones(target.shape, dtype=log_p.dtype)
    if kept is not None:
        share = rg.where(kept, share, 0)
    each = rg.where(share == 0, 0, each * share) if kept is not None else each * share
    if reduction == "none":
        return each
    return rg.sum(each) / rg.sum(share) if reduction == "mean" else rg.sum(each)


@rule("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(call: NodeCall, scores: Any, target: Any, weight: Any = None) -> Any:
    log_p = rg.log_softmax(scores, axis=1)
    return nll_loss(call, log_p, target, weight), log_p


def _groups(values: tuple[Any, ...], count: int) -> list[tuple[Any, ...]]:
    """Lists of as many tensors, one behind the other, as one tuple for each tensor."""
    n = len(values) // count
    return list(zip(*(values[i * n : (i + 1) * n] for i in range(count)), strict=True))


def _rate(call: NodeCall, r: Any, t: Any, factor: str) -> Any:
    return r / (1 + t.astype(r.dtype) * call.get(factor, 0.0))


@rule("Adagrad", domain=TRAINING)
def adagrad(call: NodeCall, r: Any, t: Any, *values: Any) -> Any:
    rate, xs, hs = _rate(call, r, t, "decay_factor"), [], []
    for x, g, h in _groups(values, 3):
        g = g + call.get("norm_coefficient", 0.0) * x
        h = h + g * g
        xs.append(x - rate * g / (rg.sqrt(h) + call.get("epsilon", 1e-6)))
        hs.append(h)
    return (*xs, *hs)


@rule("Momentum", domain=TRAINING)
def momentum(call: NodeCall, r: Any, t: Any, *values: Any) -> Any:
    xs, vs = [], []
    alpha, beta = call.get("alpha"), rg.where(t > 0, call.get("beta"), 1.0).astype(r.dtype)
    for x, g, v in _groups(values, 3):
        g = g + call.get("norm_coefficient") * x
        v = alpha * v + beta * g
        xs.append(x - r * (g + alpha * v if call.get("mode") == "nesterov" else v))
        vs.append(v)
    return (*xs, *vs)


@rule("Adam", domain=TRAINING)
def adam(call: NodeCall, r: Any, t: Any, *values: Any) -> Any:
    a, b = call.get("alpha", 0.9), call.get("beta", 0.999)
    count = t.astype(r.dtype)
    fixed = r * rg.sqrt(1 - rg.pow(b, count)) / (1 - rg.pow(a, count))
    rate = rg.where(t > 0, fixed, r)
    xs, vs, hs = [], [], []
    for x, g, v, h in _groups(values, 4):
        g = g + call.get("norm_coefficient", 0.0) * x
        v, h = a * v + (1 - a) * g, b * h + (1 - b) * g * g
        new = x - rate * v / (rg.sqrt(h) + call.get("epsilon", 1e-6))
        xs.append(new - call.get("norm_coefficient_post", 0.0) * new)
        vs.append(v)
        hs.append(h)
    return (*xs, *vs, *hs)


@rule("Gradient", domain=TRAINING)
def gradient(call: NodeCall, *inputs: Any) -> Any:
    """Of `y`, summed where it has axes, with respect to each of `xs`, at the inputs. `zs` are what
    `y` depends on besides. The nodes between are computed once more from the inputs."""
    xs, zs, y = call.get("xs"), call.get("zs", []), call.get("y")
    if len(inputs) != len(xs) + len(zs):
        raise FormatError(f"Gradient names {len(xs)} xs, {len(zs)} zs and has {len(inputs)} inputs")
    others = dict(zip(zs, inputs[len(xs) :], strict=True))

    def f(*values: Any) -> Any:
        return rg.sum(call.rerun({**others, **dict(zip(xs, values, strict=True))}, y))

    return rg.grad(f, argnums=tuple(range(len(xs))))(*inputs[: len(xs)])
