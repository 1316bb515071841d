"""Accumulation of gradients: one step of an optimizer for several batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.eager.modes import recording_grad
from retrograd.errors import ArgumentError, FormatError, ShapeError
from retrograd.functions.creation import asarray
from retrograd.functions.tensor.sparse_grad import RowSparse
from retrograd.functions.tensor.tensor import Tensor
from retrograd.optim.optimizer import Optimizer, Rate, cut, require
from retrograd.optim.parameters import learning_leaves, moved_on


class MultiSteps:
    """An optimizer that moves at every `every`-th step, by the mean of the gradients since the last
    time (their sum with `mean=False`): as one batch that is `every` times as large.

    In the stateful form gradients are summed up by `backward()`; `zero_grad()` forgets them only
    after the optimizer has moved, so that the loop is the usual one. In the pure form the state
    holds the sum. What is left where the batches end is dropped by `zero_grad(force=True)`, or
    moved by with `step(force=True)`.

    Parameters of any shape. `OptionError` for an `every` below 1.

    >>> import retrograd as rg
    >>> w = rg.tensor([3.0], requires_grad=True)
    >>> opt = rg.optim.MultiSteps(rg.optim.SGD([w], lr=0.5), every=2)
    >>> for x in (1.0, 3.0):
    ...     opt.zero_grad()
    ...     (w * x).sum().backward()
    ...     opt.step()
    >>> w.tolist()
    [2.0]
    """

    def __init__(self, optimizer: Optimizer, every: int, mean: bool = True) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"MultiSteps takes an optimizer, not {type(optimizer).__name__}")
        whole = isinstance(every, int) and not isinstance(every, bool) and every >= 1
        require(whole, "every", every, "a whole number from 1 on")
        self.optimizer, self.every, self.mean = optimizer, every, mean
        self._held = 0  # batches whose gradients are held

    # -- stateful --------------------------------------------------------------------------------
    def zero_grad(self, set_to_none: bool = True, force: bool = False) -> None:
        """Forget the gradients, unless some are held that the optimizer has yet to move by."""
        if force:
            self._held = 0
        if self._held == 0:
            self.optimizer.zero_grad(set_to_none)

    def step(self, closure: Callable[[], Any] | None = None, force: bool = False) -> Any:
        """Count one more batch; move after the last of `every`, or at once with `force`."""
        found = None
        if closure is not None:
            with recording_grad():
                found = closure()
        self._held += 1
        if self._held >= self.every or force:
            if self.mean and self._held > 1:
                self._scale(1 / self._held)
            self.optimizer.step()
            self._held = 0
        return found

    def _scale(self, factor: float) -> None:
        for group in self.optimizer.param_groups:
            for p in group["params"]:
                g: Any = p.grad
                if isinstance(g, RowSparse):
                    p.grad = RowSparse(g.rows, g.values * factor, g.shape)
                elif g is not None:
                    scaled = g * factor
                    scaled.tie(g)
                    p.grad = scaled

    @property
    def lr(self) -> Rate:
        """The optimizer's learning rate."""
        return self.optimizer.lr

    @lr.setter
    def lr(self, value: Rate) -> None:
        self.optimizer.lr = value

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The optimizer's groups."""
        return self.optimizer.param_groups

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state, and the gradients that are held."""
        grads = [p.grad for group in self.param_groups for p in group["params"]]
        kept = [
            None if g is None or not self._held else Tensor.of(np.array(g.numpy())) for g in grads
        ]
        return {**self.optimizer.state_dict(), "held": self._held, "gradients": kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the optimizer whose `state_dict()` this is stood."""
        parameters = [p for group in self.param_groups for p in group["params"]]
        if len(state.get("gradients", ())) != len(parameters) or "held" not in state:
            raise FormatError("this is no state of MultiSteps with these parameters")
        self.optimizer.load_state_dict(state)
        self._held = int(state["held"])
        for p, g in zip(parameters, state["gradients"], strict=True):
            p.grad = None if g is None else asarray(g)

    # -- pure ------------------------------------------------------------------------------------
    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first batch."""
        leaves, learns = learning_leaves(params)
        total = [rg.zeros_like(asarray(x)) for x, yes in zip(leaves, learns, strict=True) if yes]
        held = rg.zeros((), dtype=rg.int64)
        return {"held": held, "gradients": total, "optimizer": self.optimizer.init(params)}

    def update(
        self, params: Any, grads: Any, state: Mapping[str, Any], *, lr: Rate | Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Parameters and state after one more batch; the arguments are left as they are."""
        if not isinstance(state, Mapping) or "gradients" not in state:
            raise FormatError("update(): this is no state that MultiSteps.init() made")
        leaves, learns = learning_leaves(params)
        slopes, structure = pytree.flatten(grads)
        if len(slopes) != len(leaves):
            raise ShapeError(
                f"update(): the parameters have {len(leaves)} leaves, the gradients {len(slopes)}"
            )
        coming = [cut(g) for g, yes in zip(slopes, learns, strict=True) if yes]
        total = [
            cut(s) + g.astype(s.dtype) for s, g in zip(state["gradients"], coming, strict=True)
        ]
        held = cut(state["held"]) + 1

        def move(params: Any, total: list[Tensor], inner: Any) -> Any:
            whole = iter(s / self.every if self.mean else s for s in total)
            given = [next(whole) if yes else g for g, yes in zip(slopes, learns, strict=True)]
            new, after = self.optimizer.update(
                params, pytree.unflatten(structure, given), inner, lr=lr
            )
            return new, [rg.zeros_like(s) for s in total], after

        def wait(params: Any, total: list[Tensor], inner: Any) -> Any:
            return moved_on(params), total, inner

        is_last = held >= self.every
        new, total, inner = rg.cond(is_last, move, wait, params, total, state["optimizer"])
        held = rg.where(is_last, rg.zeros_like(held), held)
        return new, {"held": held, "gradients": total, "optimizer": inner}
