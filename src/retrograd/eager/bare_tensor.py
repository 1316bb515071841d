"""Tensors that are no more than an array, and tensors that are nothing any more.

A result of `jit` is made with its array only, `_ready`: whatever else it has is filled in when
somebody asks for it. Most results of a training step just go into the next step, and nobody does.
A donated tensor has a `Donated` in that place and nothing else, so whoever asks hears of it.

`_ready` of other tensors that are constants at hand is filled in in the same way; a tensor that
changes what it stands for sets it to None.
"""

from __future__ import annotations

from contextlib import suppress
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from retrograd.eager.leaf import ConcreteLeaf
from retrograd.eager.program_cache import LOCK
from retrograd.eager.trace_buffer import NOWHERE
from retrograd.errors import DonatedError
from retrograd.ir import Node, Source
from retrograd.runtime.backend import Array

if TYPE_CHECKING:
    from retrograd.eager.lazy_tensor import LazyTensor

FIELDS = ("_form", "_grad", "_own", "_page", "_ready", "_requires_grad", "_root")
_field = object.__getattribute__


class Donated(NamedTuple):
    """What a donated tensor holds: which function took it, and where it was called."""

    function: str
    code: CodeType | None
    lasti: int

    def error(self) -> DonatedError:
        place = f", called at {Source(self.code, self.lasti)}" if self.code is not None else ""
        return DonatedError(
            f"this tensor was donated to the compiled function {self.function}{place}; its memory "
            f"may hold something else now. Use what {self.function} returned, or do not name the "
            "argument in donate"
        )


def hydrate(h: LazyTensor, name: str) -> Any:
    """An attribute of a handle that is not set: filled in, where the handle is a bare array."""
    if name not in FIELDS:
        raise AttributeError(
            f"{type(h).__name__!r} object has no attribute {name!r}", name=name, obj=h
        )
    with LOCK:
        if name == "_ready":
            h._ready = _at_hand(h)
            return h._ready
        array = _field(h, "_ready")
        if type(array) is Donated:
            raise array.error()
        if not is_bare(h):
            return _field(h, name)  # it is there by now, or was never set
        prim = ConcreteLeaf(array)
        h._grad = h._root = None
        h._requires_grad = False
        h._page = NOWHERE
        h._own = Node(prim, (), prim.type)
        h._form = None
        return _field(h, name)


def is_bare(h: LazyTensor) -> bool:
    """Whether a handle has nothing but what is in `_ready`."""
    try:
        _field(h, "_form")
    except AttributeError:
        return True
    return False


def _at_hand(h: LazyTensor) -> Array:
    """The array of a constant; AttributeError where there is none."""
    if _field(h, "_form") is None and not (
        _field(h, "_requires_grad") or _field(h, "_page").is_taped()
    ):
        prim = _field(h, "_own").prim
        if isinstance(prim, ConcreteLeaf):
            return prim.array
    raise AttributeError(name="_ready", obj=h)


def is_ready(h: LazyTensor) -> bool:
    """Whether a handle has its array in `_ready`, or what it has there says that it is gone."""
    try:
        return _field(h, "_ready") is not None
    except AttributeError:
        return False


def ready(h: LazyTensor) -> bool:
    """Whether a handle stands for an array at hand and for nothing else."""
    if h._requires_grad or h._form is not None or not isinstance(h._own.prim, ConcreteLeaf):
        return False
    if h._page.is_taped():  # a call that takes it is recorded
        return False
    h._ready = h._own.prim.array
    return True


def dehydrate(h: LazyTensor) -> None:
    """Leave of a handle that is ready its array alone. It stays a tensor at every step: without
    `_form`, which goes first, it is what `_ready` says."""
    for name in FIELDS:
        if name != "_ready":
            with suppress(AttributeError):
                delattr(h, name)
