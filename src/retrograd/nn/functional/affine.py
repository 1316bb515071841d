"""Linear and bilinear maps as functions, with PyTorch's names and arguments."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.eager.dispatch import composite
from retrograd.errors import ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import provenance


def here() -> str:
    """Where we are, for messages: the scope of the layer."""
    scope = provenance().scope
    return f" in {scope}" if scope else ""


@composite
def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """`x @ weight.T + bias`: `[..., in]`, weight `[out, in]`, bias `[out]` give `[..., out]`; a
    weight `[in]` and a bias without axes give `[...]`.

    `ShapeError` where the last sizes of input and weight differ.

    >>> import retrograd as rg
    >>> rg.nn.functional.linear(
    ...     rg.tensor([1.0, 2.0]), rg.tensor([[3.0, 4.0]]), rg.tensor([0.5])
    ... ).tolist()
    [11.5]
    """
    x, weight = rg.asarray(input), rg.asarray(weight)
    if weight.ndim not in (1, 2) or x.ndim == 0 or x.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            f"linear{here()}: the last axis of the input, {x.shape}, must have the size that the "
            f"weight, {weight.shape}, has on its last: the weight is (out_features, in_features)"
        )
    y = x @ (weight if weight.ndim == 1 else weight.mT)
    return y if bias is None else y + bias


@composite
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """`x1^T W[k] x2 + bias[k]` along the last axes: `[..., A]`, `[..., B]`, weight `[K, A, B]`,
    bias `[K]` give `[..., K]`.

    `ShapeError` where the last sizes do not fit the weight.

    >>> import retrograd as rg
    >>> rg.nn.functional.bilinear(rg.ones((5, 2)), rg.ones((5, 3)), rg.ones((4, 2, 3))).shape
    (5, 4)
    """
    a, b, w = rg.asarray(input1), rg.asarray(input2), rg.asarray(weight)
    if w.ndim != 3 or a.shape[:-1] != b.shape[:-1] or (a.shape[-1:] + b.shape[-1:]) != w.shape[1:]:
        raise ShapeError(
            f"bilinear{here()}: inputs {a.shape} and {b.shape} need a weight (out, in1, in2) of "
            f"their last axes, not {w.shape}"
        )
    y = rg.einsum("...a,kab,...b->...k", a, w, b)
    return y if bias is None else y + bias
