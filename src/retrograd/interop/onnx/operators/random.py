"""Random numbers."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.interop.onnx.dtypes import dtype_of
from retrograd.interop.onnx.registry import NodeCall, rule


@rule("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli")
def random(call: NodeCall, x: Any = None) -> Any:
    """By the key of `seed` (0 where there is none): a model draws the same numbers each time."""
    number_ = call.get("dtype", None)
    dtype = dtype_of(number_, call.operator) if number_ else rg.float32 if x is None else x.dtype
    shape = tuple(call.get("shape")) if x is None else x.shape
    generator = rg.random.Generator(int(call.get("seed", 0)))
    if call.operator == "Bernoulli":
        return (generator.uniform(shape) < x).astype(dtype)
    if "Normal" in call.operator:
        y = generator.normal(shape) * call.get("scale", 1.0) + call.get("mean", 0.0)
    else:
        low, high = call.get("low", 0.0), call.get("high", 1.0)
        y = generator.uniform(shape) * (high - low) + low
    return y.astype(dtype)
