"""Adam and its relatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import retrograd as rg
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.optimizer import Optimizer, Rate, Slots, require


class Adam(Optimizer):
    """Adam (Kingma, Ba, arXiv:1412.6980).

        m <- beta1 m + (1 - beta1) g
        v <- beta2 v + (1 - beta2) g**2
        p <- p - lr m / (1 - beta1**t) / (sqrt(v / (1 - beta2**t)) + eps)

    `weight_decay * p` is added to g before. With `amsgrad` (Reddi et al., 2018) the largest v so
    far takes the place of v.

    State and parameters keep their shape and dtype. `OptionError` for a negative `lr`, `eps` or
    `weight_decay`, and betas outside of 0 to 1.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [2.9, 3.9]
    """

    decoupled = False

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
    ) -> None:
        self.slots = ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if amsgrad else ()))
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
            },
        )

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require(options["eps"] >= 0, "eps", options["eps"], "not negative")
        betas = options["betas"]
        require(
            len(betas) == 2 and all(0 <= b < 1 for b in betas),
            "betas",
            betas,
            "two numbers from 0 to below 1",
        )
        require(
            bool(options["amsgrad"]) == ("max_exp_avg_sq" in self.slots),
            "amsgrad",
            options["amsgrad"],
            "the same in all groups",
        )

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        t = step.astype(rg.float64)
        first, second = (_correction(beta, t) for beta in options["betas"])
        # The reciprocal once for all parameters: products are cheaper than quotients.
        return lr, lr / first, 1 / rg.sqrt(second)

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        lr, size, scale = (x.astype(p.dtype) for x in shared)
        decay = options["weight_decay"]
        if decay and self.decoupled:
            p = p - (lr * decay) * p
        elif decay:
            g = g + decay * p
        beta1, beta2 = options["betas"]
        m = beta1 * slots["exp_avg"] + (1 - beta1) * g
        v = beta2 * slots["exp_avg_sq"] + (1 - beta2) * (g * g)
        slots = {"exp_avg": m, "exp_avg_sq": v} | (
            {"max_exp_avg_sq": rg.maximum(slots["max_exp_avg_sq"], v)} if options["amsgrad"] else {}
        )
        largest = slots.get("max_exp_avg_sq", v)
        return p - size * (m / (rg.sqrt(largest) * scale + options["eps"])), slots


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov, Hutter, arXiv:1711.05101): p is first
    multiplied by `1 - lr * weight_decay`, and g stays as it is.

    State and parameters keep their shape and dtype. `OptionError` for a negative `lr`, `eps` or
    `weight_decay`, and betas outside of 0 to 1.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.AdamW([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [2.897, 3.896]
    """

    decoupled = True

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)


def _correction(beta: float, t: Tensor) -> Tensor:
    """`1 - beta**t`, accurate where beta is close to 1."""
    return -rg.expm1(t * math.log(beta)) if beta else rg.ones_like(t)
