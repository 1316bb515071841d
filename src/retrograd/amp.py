"""Mixed precision: PyTorch's `torch.amp`. What computes in half precision is
`rg.nn.MixedPrecision`; here is the scale of the loss that `float16` needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import retrograd as rg
from retrograd import pytree
from retrograd.eager.lazy_tensor import evaluate
from retrograd.eager.modes import no_grad
from retrograd.errors import FormatError, GradientError, OptionError
from retrograd.functions.tensor.sparse_grad import RowSparse
from retrograd.functions.tensor.tensor import Tensor
from retrograd.lazy_import import attach as _attach
from retrograd.nn.casting import MixedPrecision, cast
from retrograd.optim.optimizer import Optimizer
from retrograd.tracing.scope import is_differentiating

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = ["GradScaler", "MixedPrecision", "cast"]


class GradScaler:
    """Multiplies the loss, so that small gradients do not become 0 in `float16`, and divides the
    gradients before the step; PyTorch's class of that name (Micikevicius et al., arXiv:1710.03740).

    A step whose gradients are infinite or NaN is left out, and the scale multiplied by
    `backoff_factor`; after `growth_interval` good steps in a row it is multiplied by
    `growth_factor`. With `enabled=False` everything passes through.

    In eager code, as in PyTorch:

        scaler.scale(loss).backward()
        scaler.unscale_(opt)  # only to clip gradients before the step
        scaler.step(opt)
        scaler.update()

    Inside `jit`, with a state that is a tree:

        state = scaler.init()
        grads = rg.grad(lambda m: scaler.scale(f(m), state))(model)
        model, opt_state, state = scaler.apply(opt, model, grads, opt_state, state)

    Tensors keep their shapes. `OptionError` for factors and an interval that make no sense,
    `GradientError` where calls are out of order.

    >>> import retrograd as rg
    >>> w = rg.tensor([1.0], requires_grad=True)
    >>> opt, scaler = rg.optim.SGD([w], lr=1.0), rg.amp.GradScaler(init_scale=4.0)
    >>> scaler.scale((w * 0.5).sum()).backward()
    >>> w.grad.tolist()
    [2.0]
    >>> scaler.step(opt)
    >>> scaler.update()
    >>> w.tolist()
    [0.5]
    """

    def __init__(
        self,
        init_scale: float | str = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if init_scale == "cpu":  # the device, which comes first in PyTorch
            init_scale = 2.0**16
        if isinstance(init_scale, str):
            raise OptionError(f"GradScaler: there is no device {init_scale!r}; leave it out")
        for name, value, ok, what in (
            ("init_scale", init_scale, init_scale > 0, "positive"),
            ("growth_factor", growth_factor, growth_factor > 1, "above 1"),
            ("backoff_factor", backoff_factor, 0 < backoff_factor < 1, "between 0 and 1"),
            ("growth_interval", growth_interval, growth_interval >= 1, "at least 1"),
        ):
            if not ok:
                raise OptionError(f"GradScaler: {name} is {what}, not {value}")
        self._scale = float(init_scale)
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._enabled = growth_interval, enabled
        self._growth_tracker = 0
        self._found: dict[int, bool] = {}  # by optimizer, whether its gradients are all finite
        self._stepped: set[int] = set()

    # -- stateful --------------------------------------------------------------------------------
    def scale(self, outputs: Any, state: Mapping[str, Any] | None = None) -> Any:
        """A loss, or a tree of tensors, times the scale: this object's, or that of a state."""
        if not self._enabled:
            return outputs
        factor = rg.asarray(self._scale if state is None else state["scale"], dtype=rg.float32)
        # A half-precision loss times 65,536 would overflow: the product is float32.
        return pytree.map(lambda x: _wide(x) * factor.astype(_wide(x).dtype), outputs)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, and see whether they are
        finite. `step` does it where it was not done, to clip them for example."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise GradientError("GradScaler: unscale_() after step(); call update() in between")
        if id(optimizer) in self._found:
            raise GradientError("GradScaler: unscale_() was called twice since the last update()")
        params = [p for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        if not params:
            raise GradientError("GradScaler: no parameter has a gradient; call backward() first")
        given = [p.grad for p in params]
        with no_grad():
            factor = 1.0 / self._scale
            grads = [(g.values if isinstance(g, RowSparse) else g) * factor for g in given]
            finite = [rg.all(rg.isfinite(g)) for g in grads]
        evaluate([*grads, *finite])
        for p, old, new in zip(params, given, grads, strict=True):
            p.grad = RowSparse(old.rows, new, old.shape) if isinstance(old, RowSparse) else new
        self._found[id(optimizer)] = all(bool(x) for x in finite)

    def step(self, optimizer: Optimizer) -> None:
        """`optimizer.step()`, unless a gradient is infinite or NaN."""
        if not self._enabled:
            optimizer.step()
            return
        if id(optimizer) in self._stepped:
            raise GradientError("GradScaler: step() was called twice since the last update()")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        if self._found[id(optimizer)]:
            optimizer.step()
        self._stepped.add(id(optimizer))

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Make the scale larger or smaller after the steps of all optimizers, or set it."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(rg.asarray(new_scale))
        elif not self._found:
            raise GradientError("GradScaler: update() before any step()")
        elif not all(self._found.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                larger = np.float32(self._scale * self._growth_factor)
                self._scale = float(larger) if np.isfinite(larger) else self._scale
                self._growth_tracker = 0
        self._found.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """The scale; 1 where it is not enabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after `growth_interval` good steps."""
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by where a gradient is not finite."""
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        """After how many good steps in a row the scale grows."""
        return self._growth_interval

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs, under PyTorch's names; empty where it is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where another one stood; `FormatError` for what is no such state."""
        if not self._enabled:
            return
        missing = [name for name in self.state_dict() if name not in state]
        if missing:
            raise FormatError(f"the state of a GradScaler has {', '.join(missing)}, not {[*state]}")
        self._scale = float(state["scale"])
        self._growth_factor = float(state["growth_factor"])
        self._backoff_factor = float(state["backoff_factor"])
        self._growth_interval = int(state["growth_interval"])
        self._growth_tracker = int(state["_growth_tracker"])

    # -- pure ------------------------------------------------------------------------------------
    def init(self) -> dict[str, Tensor]:
        """The state before the first step: scale and number of good steps in a row."""
        return {
            "scale": rg.asarray(self.get_scale(), dtype=rg.float32),
            "growth_tracker": rg.asarray(self._growth_tracker, dtype=rg.int64),
        }

    def apply(
        self,
        optimizer: Optimizer,
        params: Any,
        grads: Any,
        opt_state: Mapping[str, Any],
        state: Mapping[str, Any],
        **options: Any,
    ) -> tuple[Any, Any, dict[str, Any]]:
        """`optimizer.update` with gradients of the scaled loss: parameters, its state, and this
        one's, after a step; where a gradient is not finite, the first two as they were."""
        if not self._enabled:
            return *optimizer.update(params, grads, opt_state, **options), dict(state)
        factor = 1.0 / state["scale"]
        grads = pytree.map(lambda g: g * factor.astype(g.dtype) if _inexact(g) else g, grads)
        finite = rg.asarray(True)
        for g in pytree.flatten(grads)[0]:
            finite = finite & rg.all(rg.isfinite(g)) if _inexact(g) else finite
        new, after = optimizer.update(params, grads, opt_state, **options)
        new = pytree.map(
            lambda a, b: rg.where(finite, a, _given(b)) if _inexact(b) else a, new, params
        )
        after = pytree.map(lambda a, b: rg.where(finite, a, _given(b)), after, opt_state)
        return new, after, self._after(state, finite)

    def _after(self, state: Mapping[str, Any], finite: Tensor) -> dict[str, Any]:
        count = rg.where(finite, state["growth_tracker"] + 1, 0)
        grown = count == self._growth_interval
        larger = state["scale"] * self._growth_factor
        kept = rg.where(grown & rg.isfinite(larger), larger, state["scale"])
        scale = rg.where(finite, kept, state["scale"] * self._backoff_factor)
        return {"scale": scale, "growth_tracker": rg.where(grown, 0, count)}

    def __repr__(self) -> str:
        return f"GradScaler(scale={self.get_scale()}, enabled={self._enabled})"


def _given(x: Any) -> Tensor:
    """A tensor as a value, as `Optimizer.update` takes parameters: `backward()` does not go on to
    what it came from, transforms do."""
    x = rg.asarray(x)
    return x if is_differentiating() or not x.requires_grad else Tensor(x.node)


def _inexact(x: Any) -> bool:
    return rg.asarray(x).dtype.is_inexact


def _wide(x: Any) -> Tensor:
    t = rg.asarray(x)
    return t.astype(rg.float32) if t.dtype.is_half else t
