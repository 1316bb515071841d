"""Adagrad and Adadelta."""

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

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        **common: Unpack[Common],
    ) -> None:
        start = initial_accumulator_value
        options = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay}
        options |= {"initial_accumulator_value": start, "eps": eps}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        for name in ("lr_decay", "initial_accumulator_value", "eps"):
            require_number(options, name, 0)

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        return like(p, "sum", fill=float(options["initial_accumulator_value"]))

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


class Adadelta(Optimizer):
    """Adadelta (Zeiler, arXiv:1212.5701).

        v <- rho v + (1 - rho) g**2
        d = g sqrt(u + eps) / sqrt(v + eps)
        u <- rho u + (1 - rho) d**2
        p <- p - lr d

    `weight_decay * p` is added to g before.

    State and parameters keep their shape and dtype. `OptionError` for a negative `lr`, `eps` or
    `weight_decay`, and a `rho` outside of 0 to 1.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.Adadelta([w], rho=0.0, eps=1.0)
    >>> (w * 0.0).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [3.0, 4.0]
    """

    slots = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_number(options, "rho", 0, 1)
        require_number(options, "eps", 0)

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return lr

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        rho, eps = options["rho"], options["eps"]
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        v = rho * slots["square_avg"] + (1 - rho) * (g * g)
        u = slots["acc_delta"]
        d = rg.sqrt(u + eps) / rg.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * (d * d)
        return p - shared.astype(p.dtype) * d, {"square_avg": v, "acc_delta": u}
