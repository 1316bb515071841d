"""Muon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.optimizer import (
    Common,
    Optimizer,
    Rate,
    Slots,
    StateSlot,
    like,
    require,
    require_number,
)


class Muon(Optimizer):
    """Muon, momentum made orthogonal by Newton and Schulz (Jordan et al., 2024), for matrices, as
    in PyTorch.

        b <- momentum b + (1 - momentum) g
        u = orthogonal((1 - momentum) g + momentum b)   or, without nesterov, of b
        p <- (1 - lr weight_decay) p - ratio lr u

    `orthogonal` divides by the Frobenius norm and then takes `ns_steps` steps
    `x <- a x + (b x x^T + c (x x^T)**2) x` with `ns_coefficients` (a, b, c), after which all
    singular values are near 1. The ratio is `sqrt(max(1, n / m))` of a matrix `[n, m]`, and
    `0.2 sqrt(max(n, m))` with `adjust_lr_fn="match_rms_adamw"`. PyTorch takes these steps in
    bfloat16; here they are taken in the parameter's dtype, in float32 at least.

    Other parameters need another optimizer: `ShapeError` for what is no matrix. `OptionError` for
    options out of range, `DTypeError` for complex parameters.

    >>> import retrograd as rg
    >>> w = rg.tensor([[3.0, 0.0], [0.0, 4.0]], requires_grad=True)
    >>> opt = rg.optim.Muon([w], lr=0.1, weight_decay=0.0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> bool(w[0, 0] < 3 and w[1, 1] < 4 and w[0, 1] == 0)
    True
    """

    elementwise = False

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        **common: Unpack[Common],
    ) -> None:
        options: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum}
        options |= {"nesterov": nesterov, "ns_coefficients": tuple(ns_coefficients)}
        options |= {"eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_number(options, "momentum", 0)
        require_number(options, "eps", 0)
        steps, adjusts = options["ns_steps"], options["adjust_lr_fn"]
        require(isinstance(steps, int) and 0 <= steps < 100, "ns_steps", steps, "from 0 to 99")
        numbers = options["ns_coefficients"]
        require(len(numbers) == 3, "ns_coefficients", numbers, "three numbers")
        known = (None, "original", "match_rms_adamw")
        require(adjusts in known, "adjust_lr_fn", adjusts, "'original' or 'match_rms_adamw'")

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        if p.ndim != 2:
            raise ShapeError(
                f"Muon is for matrices, and got a parameter of the shape {p.shape}; give such "
                "parameters to another optimizer, such as AdamW"
            )
        return like(p, "momentum_buffer")

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return lr

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        momentum = options["momentum"]
        b = momentum * slots["momentum_buffer"] + (1 - momentum) * g
        u = (1 - momentum) * g + momentum * b if options["nesterov"] else b
        n, m = p.shape
        matches = options["adjust_lr_fn"] == "match_rms_adamw"
        ratio = 0.2 * math.sqrt(max(n, m)) if matches else math.sqrt(max(1, n / max(m, 1)))
        lr = shared.astype(p.dtype)
        if p.size:
            u = orthogonal(u, options)
        return p - (lr * options["weight_decay"]) * p - (lr * ratio) * u, {"momentum_buffer": b}


def orthogonal(x: Tensor, options: Mapping[str, Any]) -> Tensor:
    """The matrix with the same singular vectors, and singular values near 1, by Newton and
    Schulz."""
    a, b, c = options["ns_coefficients"]
    dtype = x.dtype
    tall = x.shape[0] > x.shape[1]
    x = x.astype(rg.float64 if dtype == rg.float64 else rg.float32)
    x = x.T if tall else x
    x = x / rg.maximum(rg.sqrt((x * x).sum()), options["eps"])
    for _ in range(options["ns_steps"]):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return (x.T if tall else x).astype(dtype)
