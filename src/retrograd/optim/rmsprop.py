"""RMSprop."""

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
    like,
    require_number,
)


class RMSprop(Optimizer):
    """RMSprop (Hinton, 2012), as in PyTorch.

        v <- alpha v + (1 - alpha) g**2
        a = sqrt(v) + eps
        p <- p - lr g / a

    With `momentum`: `b <- momentum b + g / a`, `p <- p - lr b`. With `centered` (Graves,
    arXiv:1308.0850): `a = sqrt(v - u**2) + eps`, where u is the moving average of g.
    `weight_decay * p` is added to g before.

    State and parameters keep their shape and dtype. `OptionError` for a negative option.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.RMSprop([w], lr=0.1, alpha=0.75, eps=0.0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [2.8, 3.8]
    """

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps}
        options |= {"centered": centered, "weight_decay": weight_decay}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        for name in ("alpha", "eps", "momentum"):
            require_number(options, name, 0)

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        buffer = ("momentum_buffer",) if options["momentum"] else ()
        average = ("grad_avg",) if options["centered"] else ()
        return like(p, "square_avg", *buffer, *average)

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return lr

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        alpha = options["alpha"]
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        v = alpha * slots["square_avg"] + (1 - alpha) * (g * g)
        after, spread = {"square_avg": v}, v
        if options["centered"]:
            u = alpha * slots["grad_avg"] + (1 - alpha) * g
            after["grad_avg"], spread = u, v - u * u
        moved = g / (rg.sqrt(spread) + options["eps"])
        if "momentum_buffer" in slots:
            moved = options["momentum"] * slots["momentum_buffer"] + moved
            after["momentum_buffer"] = moved
        return p - shared.astype(p.dtype) * moved, after
