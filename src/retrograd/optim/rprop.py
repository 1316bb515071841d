"""Rprop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import retrograd as rg
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.optimizer import Common, Optimizer, Rate, Slots, StateSlot, like, require


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller, Braun, 1993), as in PyTorch: each element has a step
    size of its own, `lr` at first, which grows by `etas[1]` while its gradient keeps its sign and
    shrinks by `etas[0]` when that changes, within `step_sizes`. The element moves by it against the
    sign of the gradient, but stays where the sign has changed.

    For gradients of all data, not of batches. State and parameters keep their shape and dtype.
    `OptionError` for a negative `lr` and for `etas` that do not shrink and grow.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> opt = rg.optim.Rprop([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [2.5, 3.5]
    """

    def __init__(
        self,
        params: Any = None,
        lr: Rate = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "etas": tuple(etas), "step_sizes": tuple(step_sizes)}
        super().__init__(params, options, common)

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        etas, sizes = options["etas"], options["step_sizes"]
        fits = len(etas) == 2 and 0 < etas[0] < 1 < etas[1]
        require(fits, "etas", etas, "a number from 0 to 1 and one above 1")
        fits = len(sizes) == 2 and 0 <= sizes[0] <= sizes[1]
        require(fits, "step_sizes", sizes, "the smallest and the largest")

    def begin(self, p: Tensor, options: Mapping[str, Any]) -> dict[str, StateSlot]:
        rate = options["lr"]
        rate = float(rate(0) if callable(rate) else rate)
        return {**like(p, "prev"), **like(p, "step_size", fill=rate)}

    def prepare(self, step: Tensor, lr: Tensor, options: Mapping[str, Any]) -> Any:
        return None

    def move(
        self, p: Tensor, g: Tensor, slots: Slots, shared: Any, options: Mapping[str, Any]
    ) -> tuple[Tensor, Slots]:
        (shrink, grow), (least, most) = options["etas"], options["step_sizes"]
        agrees = g * slots["prev"]
        size = slots["step_size"]
        size = rg.where(agrees > 0, size * grow, rg.where(agrees < 0, size * shrink, size))
        size = rg.clip(size, least, most)
        g = rg.where(agrees < 0, rg.zeros_like(g), g)
        return p - rg.sign(g) * size, {"prev": g, "step_size": size}
