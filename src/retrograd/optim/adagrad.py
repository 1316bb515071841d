"""Adagrad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import retrograd as rg
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.optimizer import Optimizer, Rate, Slots, require


class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan, Singer, 2011).

        s <- s + g**2
        p <- p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)

    `weight_decay * p` is added to g before; s begins as `initial_accumulator_value`.

    Parameters keep their shape and dtype. `OptionError` for a negative `lr`, `lr_decay`, `eps` or
    `weight_decay`.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.Adagrad([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [2.5, 3.5]
    """

    slots = ("sum",)

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        start = initial_accumulator_value
        options = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay}
        super().__init__(params, {**options, "initial_accumulator_value": start, "eps": eps})

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require(options["lr_decay"] >= 0, "lr_decay", options["lr_decay"], "not negative")
        start = options["initial_accumulator_value"]
        require(start >= 0, "initial_accumulator_value", start, "not negative")
        require(options["eps"] >= 0, "eps", options["eps"], "not negative")

    def first(self, slot: str, options: Mapping[str, Any]) -> float:
        return float(options["initial_accumulator_value"])

    def keeps_rows(self, options: Mapping[str, Any]) -> bool:
        return not options["weight_decay"]

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return lr / (1 + (step.astype(rg.float64) - 1) * options["lr_decay"])

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        total = slots["sum"] + g * g
        moved = shared.astype(p.dtype) * (g / (rg.sqrt(total) + options["eps"]))
        return p - moved, {"sum": total}
