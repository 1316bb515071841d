"""What `jit` of a module returns: the module, with a call that is compiled.

It is an instance of the module's class that shares its attributes, so that it is trained, saved and
printed like the module, also as part of another one. In a compiled call the module is an argument:
taken from around the function, its parameters would be looked up one by one at each call, and what
a call changes in it, running statistics or the state of a generator, would be lost.
"""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from retrograd.eager.modes import is_tracing
from retrograd.nn.module.module import Module
from retrograd.transforms.jit.jit import METHODS, Jit

OF_JIT = ("cache_stats", "forget", "named_sizes", "predicted_peak", "recompilations")
Options = tuple[Sequence[Any], Sequence[Any], Any, bool]  # those of a `Jit`, in its order

_CLASSES: WeakKeyDictionary[type[Module], type[Module]] = WeakKeyDictionary()


class _OfJit:
    """An attribute that is not the module's, unless the module has one of this name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else getattr(instance._compiled[0], self._name)


def compile_method(f: Callable[..., Any], made: Callable[..., Jit[Any, Any]], *options: Any) -> Any:
    """`jit` of a module or of a method of one; None where `f` is neither."""
    owner = f.__self__ if inspect.ismethod(f) else f
    if not isinstance(owner, Module):
        return None
    static, donate, *others = options
    moved = [[x + 1 if isinstance(x, int) and x >= 0 else x for x in n] for n in (static, donate)]
    jit = made(_on_module(f, owner), *moved, *others)
    if inspect.ismethod(f):
        return types.MethodType(jit, owner)
    plain = _plain(owner)
    compiled = object.__new__(_compiled_class(type(plain)))
    compiled.__dict__ = plain.__dict__
    compiled._compiled = jit, made, options
    return compiled


METHODS.append(compile_method)


def _on_module(f: Callable[..., Any], module: Module) -> Callable[..., Any]:
    """A method as a function whose first argument is the module."""
    method = f.__func__ if inspect.ismethod(f) else (module._uncompiled or type(module)).__call__

    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return method(self, *args, **kwargs)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    given = inspect.signature(f)
    call.__signature__ = given.replace(  # type: ignore[attr-defined]
        parameters=[own, *given.parameters.values()]
    )
    call.__name__ = getattr(f, "__name__", type(module).__name__)
    call.__qualname__ = getattr(f, "__qualname__", call.__name__)
    call.__wrapped__ = f  # type: ignore[attr-defined]
    return call


def _plain(module: Module) -> Module:
    """The same module with a call that is not compiled."""
    if module._uncompiled is None:
        return module
    plain: Module = object.__new__(module._uncompiled)
    plain.__dict__ = module.__dict__
    return plain


def _compiled_class(cls: type[Module]) -> type[Module]:
    """The class of compiled modules of a class."""
    found = _CLASSES.get(cls)
    if found is None:
        space = {
            "__slots__": ("_compiled",),
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "__call__": _call,
            "__deepcopy__": _deepcopy,
            "__reduce_ex__": _reduce,
            "_uncompiled": cls,
            **{name: _OfJit() for name in OF_JIT if not hasattr(cls, name)},
        }
        found = _CLASSES[cls] = types.new_class(
            cls.__name__, (cls,), {}, lambda own: own.update(space)
        )
    return found


def _call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    if is_tracing():  # it is part of a larger program, in which it keeps its name
        return self._uncompiled.__call__(self, *args, **kwargs)
    return self._compiled[0](_plain(self), *args, **kwargs)


def _reduce(self: Any, protocol: Any) -> Any:
    _, made, options = self._compiled
    return compile_method, (_plain(self), made, *options)


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    _, made, options = self._compiled
    copied = memo[id(self)] = compile_method(copy.deepcopy(_plain(self), memo), made, *options)
    return copied
