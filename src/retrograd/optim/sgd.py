"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import retrograd as rg
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.optimizer import Optimizer, Rate, Slots, require


class SGD(Optimizer):
    """`p <- p - lr * g`, with momentum `b <- momentum * b + (1 - dampening) * g` in place of g; the
    first b is g. With `nesterov` the direction is `g + momentum * b`. `weight_decay * p` is added
    to g before all else.

    Parameters keep their shape and dtype. `OptionError` for a negative `lr` or `weight_decay`, and
    for `nesterov` without momentum.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [2.4, 3.2]
    """

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        self.slots = ("momentum_buffer",) if momentum else ()
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
            },
        )

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require(options["momentum"] >= 0, "momentum", options["momentum"], "not negative")
        plain = options["momentum"] > 0 and options["dampening"] == 0
        require(
            plain or not options["nesterov"], "nesterov", True, "for momentum without dampening"
        )
        require(
            bool(options["momentum"]) == bool(self.slots),
            "momentum",
            options["momentum"],
            "0 in all groups or in none",
        )

    def keeps_rows(self, options: Mapping[str, Any]) -> bool:
        return not self.slots and not options["weight_decay"]

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return lr, step == 1

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        lr, first = shared
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        if self.slots:
            momentum, dampening = options["momentum"], options["dampening"]
            b = momentum * slots["momentum_buffer"] + (1 - dampening) * g
            b = rg.where(first, g, b) if dampening else b
            slots = {"momentum_buffer": b}
            g = g + momentum * b if options["nesterov"] else b
        return p - lr.astype(p.dtype) * g, slots
