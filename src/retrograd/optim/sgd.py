"""Stochastic gradient descent, and its average."""

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
    require,
    require_number,
    scalar,
)


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
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "momentum": momentum, "dampening": dampening}
        options |= {"weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require_number(options, "momentum", 0)
        plain = options["momentum"] > 0 and options["dampening"] == 0
        require(
            plain or not options["nesterov"], "nesterov", True, "for momentum without dampening"
        )

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        return like(p, "momentum_buffer") if options["momentum"] else {}

    def keeps_rows(self, options: Mapping[str, Any]) -> bool:
        return not options["momentum"] and not options["weight_decay"]

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return lr, step == 1

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        lr, first = shared
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        momentum, dampening = options["momentum"], options["dampening"]
        if "momentum_buffer" in slots and (isinstance(momentum, Tensor) or momentum):
            b = momentum * slots["momentum_buffer"] + (1 - dampening) * g
            b = rg.where(first, g, b) if dampening else b
            slots = {"momentum_buffer": b}
            g = g + momentum * b if options["nesterov"] else b
        return p - lr.astype(p.dtype) * g, slots


class Momentum(SGD):
    """`SGD` with momentum: `b <- momentum * b + g`, `p <- p - lr * b` (Polyak, 1964).

    Parameters keep their shape and dtype. `OptionError` as of `SGD`.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.Momentum([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [2.4, 3.2]
    """

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-3,
        momentum: float = 0.9,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, **common)


class Nesterov(SGD):
    """`SGD` with Nesterov's momentum: `b <- momentum * b + g`, `p <- p - lr * (g + momentum * b)`
    (Sutskever, Martens, Dahl, Hinton, 2013).

    Parameters keep their shape and dtype. `OptionError` as of `SGD`.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.Nesterov([w], lr=0.1, momentum=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [2.1, 2.8]
    """

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-3,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(params, lr, momentum, 0.0, weight_decay, True, **common)


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak, Juditsky, 1992), as in PyTorch.

        p <- (1 - lambd eta) p - eta g
        ax <- ax + mu (p - ax)
        eta <- lr / (1 + lambd lr t)**alpha,   mu <- 1 / max(1, t - t0)

    `weight_decay * p` is added to g before. The average `ax` is part of the state; `eta` and `mu`,
    those of the next step, are float32, as PyTorch keeps them unless its default dtype is changed.

    Parameters keep their shape and dtype. `OptionError` for a negative `lr` or `weight_decay`.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.ASGD([w], lr=0.25, lambd=0.0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [1.5, 2.0]
    """

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0}
        super().__init__(params, {**options, "weight_decay": weight_decay}, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        for name in ("lambd", "alpha", "t0"):
            require_number(options, name, -float("inf"))

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        rate = options["lr"]
        rate = float(rate(0) if callable(rate) else rate)
        return {"eta": scalar(rate), "mu": scalar(1.0), **like(p, "ax")}

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        t = step.astype(rg.float64)
        eta = lr / (1 + options["lambd"] * lr * t) ** options["alpha"]
        mu = 1 / rg.maximum(t - options["t0"], 1.0)
        return eta.astype(rg.float32), mu.astype(rg.float32)

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        eta = slots["eta"].astype(rg.float64)
        p = p * (1 - options["lambd"] * eta).astype(p.dtype) - eta.astype(p.dtype) * g
        ax, mu = slots["ax"], slots["mu"].astype(p.dtype)
        ax = rg.where(mu == 1, p, ax + (p - ax) * mu)
        return p, {"eta": shared[0], "mu": shared[1], "ax": ax}
