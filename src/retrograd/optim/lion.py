"""Lion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import retrograd as rg
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.optimizer import Common, Optimizer, Rate, Slots, decayed, require_betas


class Lion(Optimizer):
    """Lion (Chen et al., arXiv:2302.06675): steps of the size of the rate, by sign.

        p <- p - lr (sign(beta1 m + (1 - beta1) g) + weight_decay p)
        m <- beta2 m + (1 - beta2) g

    State and parameters keep their shape and dtype. `OptionError` for a negative `lr` or
    `weight_decay`, and betas outside of 0 to 1.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, -4.0], requires_grad=True)
    >>> opt = rg.optim.Lion([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [2.5, -3.5]
    """

    slots = ("exp_avg",)

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "betas": tuple(betas), "weight_decay": weight_decay}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_betas(options)

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return lr

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        lr = shared.astype(p.dtype)
        beta1, beta2 = options["betas"]
        m = slots["exp_avg"]
        p, _ = decayed(p, g, lr, options, True)
        moved = rg.sign(beta1 * m + (1 - beta1) * g)
        return p - lr * moved, {"exp_avg": beta2 * m + (1 - beta2) * g}
