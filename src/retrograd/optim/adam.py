"""Adam and its relatives."""

from __future__ import annotations

import math
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
    require_betas,
    require_number,
)


class Adam(Optimizer):
    """Adam (Kingma, Ba, arXiv:1412.6980).

        m <- beta1 m + (1 - beta1) g
        v <- beta2 v + (1 - beta2) g**2
        p <- p - lr m / (1 - beta1**t) / (sqrt(v / (1 - beta2**t)) + eps)

    `weight_decay * p` is added to g before, or, with `decoupled_weight_decay`, as in `AdamW`. With
    `amsgrad` (Reddi et al., 2018) the largest v so far takes the place of v.

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
        *,
        decoupled_weight_decay: bool | None = None,
        **common: Unpack[Common],
    ) -> None:
        decoupled = self.decoupled if decoupled_weight_decay is None else decoupled_weight_decay
        options = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        options |= {"amsgrad": amsgrad, "decoupled_weight_decay": decoupled}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_number(options, "eps", 0)
        require_betas(options)

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        largest = ("max_exp_avg_sq",) if options["amsgrad"] else ()
        return like(p, "exp_avg", "exp_avg_sq", *largest)

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        t = step.astype(rg.float64)
        first, second = (correction(beta, t) for beta in options["betas"])
        # The reciprocal once for all parameters: products are cheaper than quotients.
        return lr, lr / first, 1 / rg.sqrt(second)

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        lr, size, scale = (x.astype(p.dtype) for x in shared)
        p, g = decayed(p, g, lr, options, options["decoupled_weight_decay"])
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
        **common: Unpack[Common],
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **common)


class SparseAdam(Adam):
    """Adam for tables of which few rows are looked at: of gradients by rows, as
    `nn.functional.embedding(..., sparse=True)` gives them, only these rows move, and their state.
    As in PyTorch, eps is added before the correction of v, not after it:

        p <- p - lr sqrt(1 - beta2**t) / (1 - beta1**t) m / (sqrt(v) + eps)

    Other gradients move all rows. State and parameters keep their shape and dtype. `OptionError`
    as of `Adam`.

    >>> import retrograd as rg
    >>> table = rg.nn.Parameter(rg.ones((3, 2)))
    >>> opt = rg.optim.SparseAdam([table], lr=0.5)
    >>> rg.nn.functional.embedding(rg.tensor([1]), table, sparse=True).sum().backward()
    >>> opt.step()
    >>> table.tolist()
    [[1.0, 1.0], [0.5, 0.5], [1.0, 1.0]]
    """

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(params, lr, betas, eps, **common)

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        t = step.astype(rg.float64)
        first, second = (correction(beta, t) for beta in options["betas"])
        return lr, lr * rg.sqrt(second) / first, rg.ones_like(lr)


class Adamax(Optimizer):
    """Adamax, Adam by the infinity norm (Kingma, Ba, arXiv:1412.6980).

        m <- beta1 m + (1 - beta1) g
        u <- max(beta2 u, |g| + eps)
        p <- p - lr / (1 - beta1**t) m / u

    `weight_decay * p` is added to g before.

    State and parameters keep their shape and dtype. `OptionError` as of `Adam`.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.Adamax([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [2.5, 3.5]
    """

    slots = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_number(options, "eps", 0)
        require_betas(options)

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return lr / correction(options["betas"][0], step.astype(rg.float64))

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        beta1, beta2 = options["betas"]
        _, g = decayed(p, g, None, options, False)
        m = beta1 * slots["exp_avg"] + (1 - beta1) * g
        u = rg.maximum(beta2 * slots["exp_inf"], rg.abs(g) + options["eps"])
        return p - shared.astype(p.dtype) * (m / u), {"exp_avg": m, "exp_inf": u}


def correction(beta: Any, t: Tensor) -> Tensor:
    """`1 - beta**t`, what an average from zero has of a whole one; accurate near a beta of 1."""
    if isinstance(beta, Tensor):
        return 1 - beta**t
    return -rg.expm1(t * math.log(beta)) if beta else rg.ones_like(t)
