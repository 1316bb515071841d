"""Modes of recording, each a context: gradients on or off, the backend."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar, Token
from typing import Any

from retrograd.backends import find

_GRAD: ContextVar[bool] = ContextVar("grad", default=True)
_TRACING: ContextVar[bool] = ContextVar("tracing", default=False)
_BACKEND: ContextVar[str] = ContextVar("backend", default="llvm")
_TOKENS: ContextVar[tuple[Token[Any], ...]] = ContextVar("tokens", default=())


class Setting(ContextDecorator):
    """A context variable has a value inside a block. May be entered more than once, by several
    threads at a time; other threads do not notice. Also a decorator."""

    def __init__(self, variable: ContextVar[Any], value: Any) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        _TOKENS.set((*_TOKENS.get(), self._variable.set(self._value)))

    def __exit__(self, *failure: object) -> None:
        *others, token = _TOKENS.get()
        _TOKENS.set(tuple(others))
        self._variable.reset(token)


def grad_enabled() -> bool:
    """Whether operations are recorded for `backward()`."""
    return _GRAD.get()


def no_grad(f: Callable[..., Any] | None = None) -> Any:
    """Results of operations inside the block count as constants: no gradient flows through them.

    Also a decorator.

    >>> import retrograd as rg
    >>> x = rg.tensor(2.0, requires_grad=True)
    >>> with rg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """
    setting = Setting(_GRAD, False)
    return setting if f is None else setting(f)


def recording_grad() -> Setting:
    """Gradients on: what transforms do around the function they differentiate."""
    return Setting(_GRAD, True)


def is_tracing() -> bool:
    """Whether a function is being traced into a graph that will run many times."""
    return _TRACING.get()


def tracing() -> Setting:
    """What happens inside the block becomes part of a graph that runs many times."""
    return Setting(_TRACING, True)


def current_backend() -> str:
    """The name of the backend that evaluates tensors here and now."""
    return _BACKEND.get()


def backend(name: str) -> Setting:
    """Evaluate on the named backend inside the block; `BackendError` if it is not available.

    A value is computed where it is looked at, by the backend selected there.
    """
    find(name)
    return Setting(_BACKEND, name)
