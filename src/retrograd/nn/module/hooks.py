"""Hooks: functions that are called with what goes into a module, comes out, and the gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.eager.backward import RemovableHandle, registered
from retrograd.eager.modes import is_tracing
from retrograd.functions.tensor.conversions import clone
from retrograd.functions.tensor.tensor import Tensor
from retrograd.transforms.custom_rules import custom_vjp


class Hooks:
    """The hooks of a module, of each kind by number; the same object in copies of the module."""

    def __init__(self) -> None:
        self.before: dict[int, tuple[Callable[..., Any], bool]] = {}
        self.after: dict[int, tuple[Callable[..., Any], bool]] = {}
        self.backward: dict[int, Callable[..., Any]] = {}

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.backward)

    def __deepcopy__(self, memo: dict[int, Any]) -> Hooks:
        new = Hooks()
        for kind in ("before", "after", "backward"):
            getattr(new, kind).update(getattr(self, kind))
        return new


def register(hooks: dict[int, Any], hook: Any, first: bool) -> RemovableHandle:
    """A hook more, after or before the others."""
    others = dict(hooks) if first else {}
    if first:
        hooks.clear()
    handle = registered(hooks, hook)
    hooks.update(others)
    return handle


def called_with_hooks(hooks: Hooks, module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """`module.forward(*args, **kwargs)` with all that its hooks do."""
    for hook, with_kwargs in list(hooks.before.values()):
        if with_kwargs:
            given = hook(module, args, kwargs)
            args, kwargs = (args, kwargs) if given is None else given
        elif (given := hook(module, args)) is not None:
            args = given if isinstance(given, tuple) else (given,)
    watch = _Watch(hooks, module) if hooks.backward else None
    if watch is not None:
        args = watch.inputs(args)
    out = module.forward(*args, **kwargs)
    for hook, with_kwargs in list(hooks.after.values()):
        given = hook(module, args, kwargs, out) if with_kwargs else hook(module, args, out)
        out = out if given is None else given
    return out if watch is None else watch.outputs(out)


class _Watch:
    """What the backward hooks of one call need: the gradients of its outputs, which come first, and
    of its inputs."""

    def __init__(self, hooks: Hooks, module: Any) -> None:
        self.hooks, self.module = hooks, module
        self.of_outputs: tuple[Any, ...] = ()
        self.places: list[int] = []  # of the inputs that have gradients
        self.count = 0

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.count = len(args)
        self.places = [i for i, x in enumerate(args) if _has_gradient(x)]
        watched = _watched([args[i] for i in self.places], self._after)
        given = dict(zip(self.places, watched, strict=True))
        return tuple(given.get(i, x) for i, x in enumerate(args))

    def outputs(self, out: Any) -> Any:
        single = not isinstance(out, tuple | list)
        parts = [out] if single else list(out)
        places = [i for i, y in enumerate(parts) if _has_gradient(y)]

        def arrived(gs: tuple[Any, ...]) -> tuple[Any, ...]:
            by_place = dict(zip(places, gs, strict=True))
            self.of_outputs = tuple(by_place.get(i) for i in range(len(parts)))
            if not self.places:
                self._changed((None,) * self.count)
            return gs

        for i, y in zip(places, _watched([parts[i] for i in places], arrived), strict=True):
            parts[i] = y
        return parts[0] if single else type(out)(parts)

    def _after(self, gs: tuple[Any, ...]) -> tuple[Any, ...]:
        by_place = dict(zip(self.places, gs, strict=True))
        found = self._changed(tuple(by_place.get(i) for i in range(self.count)))
        return tuple(found[i] for i in self.places)

    def _changed(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self.hooks.backward.values()):
            given = hook(self.module, _constants(grads), _constants(self.of_outputs))
            if given is not None:
                grads = given if isinstance(given, tuple) else (given,)
        return grads


def _has_gradient(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype.is_inexact and x.requires_grad


def _constants(gs: tuple[Any, ...]) -> tuple[Any, ...]:
    return gs if is_tracing() else tuple(g if g is None else g.detach() for g in gs)


def _watched(
    tensors: list[Any], told: Callable[[tuple[Any, ...]], tuple[Any, ...]]
) -> tuple[Any, ...]:
    """The tensors, of whose gradients a function is told, and which it may replace."""
    if not tensors:
        return ()

    def same(*xs: Any) -> tuple[Any, ...]:
        return tuple(map(clone, xs))

    rule = custom_vjp(same, lambda *xs: (same(*xs), None), lambda kept, gs: told(tuple(gs)))
    found: tuple[Any, ...] = rule(*tensors)
    return found
