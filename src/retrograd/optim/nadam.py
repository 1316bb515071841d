"""NAdam and RAdam: Adam with Nesterov's momentum, and with a rectified variance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import retrograd as rg
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.adam import correction
from retrograd.optim.optimizer import (
    Common,
    Optimizer,
    Rate,
    Slots,
    StateSlot,
    decayed,
    like,
    require_betas,
    require_number,
    scalar,
)


class NAdam(Optimizer):
    """NAdam, Adam with Nesterov's momentum (Dozat, 2016), as in PyTorch.

        mu_t = beta1 (1 - 0.96**(t momentum_decay) / 2),   M <- M mu_t
        m <- beta1 m + (1 - beta1) g
        v <- beta2 v + (1 - beta2) g**2
        d = sqrt(v / (1 - beta2**t)) + eps
        p <- p - lr ((1 - mu_t) / (1 - M) g + mu_{t+1} / (1 - M mu_{t+1}) m) / d

    `weight_decay * p` is added to g before, or p is multiplied by `1 - lr * weight_decay` with
    `decoupled_weight_decay`. M (`mu_product`) is a float32, as PyTorch keeps it unless its default
    dtype is changed.

    State and parameters keep their shape and dtype. `OptionError` for a negative `lr`, `eps`,
    `weight_decay` or `momentum_decay`, and betas outside of 0 to 1.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.NAdam([w], lr=0.0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [3.0, 4.0]
    """

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        options |= {"momentum_decay": momentum_decay}
        super().__init__(
            params, {**options, "decoupled_weight_decay": decoupled_weight_decay}, common
        )

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_number(options, "eps", 0)
        require_number(options, "momentum_decay", 0)
        require_betas(options)

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        return {"mu_product": scalar(1.0), **like(p, "exp_avg", "exp_avg_sq")}

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        t = step.astype(rg.float64)
        beta1, beta2 = options["betas"]
        rate = math.log(0.96) * options["momentum_decay"]
        mu, following = (beta1 * (1 - 0.5 * rg.exp(rate * k)) for k in (t, t + 1))
        return lr, mu, following, 1 / rg.sqrt(correction(beta2, t))

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        lr, mu, following, scale = shared
        beta1, beta2 = options["betas"]
        p, g = decayed(p, g, lr.astype(p.dtype), options, options["decoupled_weight_decay"])
        m = beta1 * slots["exp_avg"] + (1 - beta1) * g
        v = beta2 * slots["exp_avg_sq"] + (1 - beta2) * (g * g)
        product = slots["mu_product"] * mu.astype(rg.float32)
        wide = product.astype(rg.float64)
        of_g = (lr * (1 - mu) / (1 - wide)).astype(p.dtype)
        of_m = (lr * following / (1 - wide * following)).astype(p.dtype)
        size = rg.sqrt(v) * scale.astype(p.dtype) + options["eps"]
        after = {"mu_product": product, "exp_avg": m, "exp_avg_sq": v}
        return p - (of_g * g + of_m * m) / size, after


class RAdam(Optimizer):
    """RAdam, Adam with a rectified variance (Liu et al., arXiv:1908.03265), as in PyTorch.

        m <- beta1 m + (1 - beta1) g
        v <- beta2 v + (1 - beta2) g**2
        R = 2 / (1 - beta2) - 1,   r = R - 2 t beta2**t / (1 - beta2**t)
        p <- p - lr m / (1 - beta1**t) w

    where w is 1 as long as r <= 5, and then
    `sqrt((r - 4) (r - 2) R / ((R - 4) (R - 2) r)) sqrt(1 - beta2**t) / (sqrt(v) + eps)`.
    `weight_decay * p` is added to g before, or p is multiplied by `1 - lr * weight_decay` with
    `decoupled_weight_decay`.

    State and parameters keep their shape and dtype. `OptionError` as of `Adam`.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.RAdam([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [1.5, 2.0]
    """

    slots = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, {**options, "decoupled_weight_decay": decoupled_weight_decay}, common
        )

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_number(options, "eps", 0)
        require_betas(options)

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        t = step.astype(rg.float64)
        beta1, beta2 = options["betas"]
        second = correction(beta2, t)
        most = 2 / (1 - beta2) - 1
        if most <= 5:  # r never gets there
            return lr, lr / correction(beta1, t), step < 0, lr
        now = most - 2 * t * (1 - second) / second
        safe = rg.maximum(now, 5.0)
        rectified = (safe - 4) * (safe - 2) * most / ((most - 4) * (most - 2) * safe)
        return lr, lr / correction(beta1, t), now > 5, rg.sqrt(rectified * second)

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        lr, size, adapts, scale = shared
        beta1, beta2 = options["betas"]
        p, g = decayed(p, g, lr.astype(p.dtype), options, options["decoupled_weight_decay"])
        m = beta1 * slots["exp_avg"] + (1 - beta1) * g
        v = beta2 * slots["exp_avg_sq"] + (1 - beta2) * (g * g)
        adapted = scale.astype(p.dtype) / (rg.sqrt(v) + options["eps"])
        moved = size.astype(p.dtype) * m
        return p - rg.where(adapts, moved * adapted, moved), {"exp_avg": m, "exp_avg_sq": v}
