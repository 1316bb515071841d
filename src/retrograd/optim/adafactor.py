"""Adafactor."""

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
    like,
    require,
    require_number,
)


class Adafactor(Optimizer):
    """Adafactor (Shazeer, Stern, arXiv:1804.04235), as in PyTorch: of the second moments of a
    matrix only the means of rows and columns are kept.

        b = t**beta2_decay,   rho = min(lr, 1 / sqrt(t)),   alpha = max(eps2, rms(p)) rho
        p <- (1 - lr weight_decay) p
        r <- r + b (mean over columns of g**2 - r)
        c <- c + b (mean over rows of g**2 - c)
        v = r c / max(mean(r), eps1)
        u = g / sqrt(max(v, eps1**2))
        p <- p - alpha u / max(1, rms(u) / d)

    Of vectors and numbers v is kept itself. `eps` is (eps1, eps2), where None for eps1 is the
    spacing of the dtype's numbers at 1.

    State: `[..., n, 1]` and `[..., 1, m]` of a parameter `[..., n, m]`. Parameters keep their shape
    and dtype. `OptionError` for options out of range, `DTypeError` for complex parameters.

    >>> import retrograd as rg
    >>> opt = rg.optim.Adafactor(lr=0.5)
    >>> {k: x[0].shape for k, x in opt.init([rg.ones((3, 2))]).items() if k != "step"}
    {'row_var': (3, 1), 'col_var': (1, 2)}
    """

    elementwise = False

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "beta2_decay": beta2_decay, "eps": tuple(eps), "d": d}
        super().__init__(params, {**options, "weight_decay": weight_decay}, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        require(options["beta2_decay"] <= 0, "beta2_decay", options["beta2_decay"], "at most 0")
        eps = options["eps"]
        fits = len(eps) == 2 and (eps[0] is None or eps[0] >= 0) and eps[1] >= 0
        require(fits, "eps", eps, "two numbers that are not negative; the first may be None")
        require_number(options, "d", 1)

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        if p.ndim < 2:
            return like(p, "variance")
        *rest, n, m = p.shape
        rows, columns = StateSlot((*rest, n, 1), p.dtype), StateSlot((*rest, 1, m), p.dtype)
        return {"row_var": rows, "col_var": columns}

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        t = step.astype(rg.float64)
        return lr, t ** options["beta2_decay"], rg.minimum(lr, 1 / rg.sqrt(t))

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        if p.size == 0:
            return p, slots
        lr, weight, rate = (x.astype(p.dtype) for x in shared)
        eps1, eps2 = options["eps"]
        if eps1 is None:
            eps1 = _spacing(p)
        alpha = rg.maximum(_rms(p), eps2) * rate
        if options["weight_decay"]:
            p = p * (1 - lr * options["weight_decay"])
        squares = g * g
        if p.ndim < 2:
            v = slots["variance"] + weight * (squares - slots["variance"])
            slots = {"variance": v}
        else:
            r, c = slots["row_var"], slots["col_var"]
            r = r + weight * (squares.mean(axis=-1, keepdims=True) - r)
            c = c + weight * (squares.mean(axis=-2, keepdims=True) - c)
            slots = {"row_var": r, "col_var": c}
            v = r * c / rg.maximum(r.mean(axis=-2, keepdims=True), eps1)
        u = g / rg.sqrt(rg.maximum(v, eps1 * eps1))
        return p - alpha / rg.maximum(_rms(u) / options["d"], 1.0) * u, slots


def _rms(x: Tensor) -> Tensor:
    return rg.sqrt((x * x).sum()) / math.sqrt(x.size)


def _spacing(p: Tensor) -> float:
    return float(rg.finfo(p.dtype).eps)
