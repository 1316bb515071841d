"""Products of matrices."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.interop.onnx.registry import NodeCall, rule

rule("MatMul")(lambda _call, a, b: rg.matmul(a, b))
rule("Det")(lambda _call, x: rg.linalg.det(x))


@rule("Gemm")
def gemm(call: NodeCall, a: Any, b: Any, c: Any = None) -> Any:
    """alpha A B + beta C."""
    a = a.T if call.get("transA", 0) else a
    b = b.T if call.get("transB", 0) else b
    y = rg.matmul(a, b)
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    if alpha != 1.0:
        y = (alpha * y).astype(a.dtype)
    if c is not None:
        y += c if beta == 1.0 else (beta * c).astype(a.dtype)
    return y


@rule("Einsum")
def einsum(call: NodeCall, *operands: Any) -> Any:
    return rg.einsum(call.get("equation").replace(" ", ""), *operands)
