"""Shampoo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import retrograd as rg
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.optimizer import (
    Common,
    Optimizer,
    Rate,
    Slots,
    StateSlot,
    decayed,
    like,
    require_number,
)


class Shampoo(Optimizer):
    """Shampoo (Gupta, Koren, Singer, arXiv:1802.09568): a preconditioner for each axis.

        L_i <- L_i + G_i G_i^T
        u = g with each axis i multiplied by L_i**(-1 / (2 k))
        b <- momentum b + u,   p <- p - lr b

    where `G_i` is the gradient as a matrix whose rows are axis i, and k the number of axes. `L_i`
    begins as `eps` times the identity. An axis longer than `max_preconditioner_dim` is left as it
    is. `weight_decay * p` is added to g before. The roots are taken by eigenvalues, in float64 for
    float64 and in float32 otherwise.

    State: `[n, n]` for each axis of the size n. Parameters keep their shape and dtype.
    `OptionError` for options out of range, `DTypeError` for complex parameters.

    >>> import retrograd as rg
    >>> w = rg.tensor([[2.0, 0.0], [0.0, 8.0]], requires_grad=True)
    >>> opt = rg.optim.Shampoo([w], lr=0.5, eps=0.0)
    >>> (w * w / 2).sum().backward()
    >>> opt.step()
    >>> [[round(x, 4) for x in row] for row in w.tolist()]
    [[1.5, 0.0], [0.0, 7.5]]
    """

    elementwise = False

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-1,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        eps: float = 1e-4,
        max_preconditioner_dim: int = 1024,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "eps": eps}
        options |= {"max_preconditioner_dim": max_preconditioner_dim}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_number(options, "momentum", 0)
        require_number(options, "eps", 0)
        require_number(options, "max_preconditioner_dim", 0)

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        slots = like(p, "momentum_buffer") if options["momentum"] else {}
        for i in _axes(p, options):
            slots[f"preconditioner_{i}"] = StateSlot((p.shape[i],) * 2, _wide(p))
        return slots

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return lr

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        _, g = decayed(p, g, None, options, False)
        u = g = g.astype(_wide(p))
        after = {}
        for i in _axes(p, options):
            total = slots[f"preconditioner_{i}"] + _outer(g, i)
            after[f"preconditioner_{i}"] = total
            u = _along(u, _root(total, options["eps"], -1 / (2 * p.ndim)), i)
        u = u.astype(p.dtype)
        if "momentum_buffer" in slots:
            u = options["momentum"] * slots["momentum_buffer"] + u
            after["momentum_buffer"] = u
        return p - shared.astype(p.dtype) * u, after


def _wide(p: Tensor) -> Any:
    return rg.float64 if p.dtype == rg.float64 else rg.float32


def _axes(p: Tensor, options: Mapping[str, Any]) -> list[int]:
    """The axes that are preconditioned."""
    return [i for i, n in enumerate(p.shape) if 0 < n <= options["max_preconditioner_dim"]]


def _outer(g: Tensor, axis: int) -> Tensor:
    """`G G^T`, where the rows of G are an axis."""
    flat = rg.moveaxis(g, axis, 0).reshape((g.shape[axis], -1))
    return flat @ flat.T


def _along(x: Tensor, matrix: Tensor, axis: int) -> Tensor:
    """An axis multiplied by a matrix."""
    return rg.moveaxis(rg.tensordot(matrix, x, axes=((1,), (axis,))), 0, axis)


def _root(matrix: Tensor, shift: float, power: float) -> Tensor:
    """A power of a symmetric matrix, shifted by a multiple of the identity; eigenvalues that are
    not positive then count as absent."""
    values, vectors = rg.linalg.eigh(matrix)
    values = values + shift
    positive = values > 0
    powers = rg.where(positive, rg.where(positive, values, 1.0) ** power, 0.0)
    return (vectors * powers) @ vectors.T
