"""Modes of recording, each a context: gradients on or off, the backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from retrograd.backends import find

_GRAD: ContextVar[bool] = ContextVar("grad", default=True)
_TRACING: ContextVar[bool] = ContextVar("tracing", default=False)
_BACKEND: ContextVar[str] = ContextVar("backend", default="llvm")


def grad_enabled() -> bool:
    """Whether operations are recorded for `backward()`."""
    return _GRAD.get()


@contextmanager
def no_grad() -> Iterator[None]:
    """Results of operations inside the block count as constants: no gradient flows through them.

    Also a decorator.

    >>> import retrograd as rg
    >>> x = rg.tensor(2.0, requires_grad=True)
    >>> with rg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """
    token = _GRAD.set(False)
    try:
        yield
    finally:
        _GRAD.reset(token)


def is_tracing() -> bool:
    """Whether a function is being traced into a graph that will run many times."""
    return _TRACING.get()


@contextmanager
def tracing() -> Iterator[None]:
    """What happens inside the block becomes part of a graph that runs many times."""
    token = _TRACING.set(True)
    try:
        yield
    finally:
        _TRACING.reset(token)


@contextmanager
def recording_grad() -> Iterator[None]:
    """Gradients on: what transforms do around the function they differentiate."""
    token = _GRAD.set(True)
    try:
        yield
    finally:
        _GRAD.reset(token)


def current_backend() -> str:
    """The name of the backend that evaluates tensors here and now."""
    return _BACKEND.get()


@contextmanager
def backend(name: str) -> Iterator[None]:
    """Evaluate on the named backend inside the block; `BackendError` if it is not available."""
    find(name)
    token = _BACKEND.set(name)
    try:
        yield
    finally:
        _BACKEND.reset(token)
