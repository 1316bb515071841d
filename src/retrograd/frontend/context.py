"""Modes of recording and running, each a context: gradients on or off, the backend, threads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator, suppress
from contextvars import ContextVar, Token
from typing import Any, overload

from retrograd.backends import find
from retrograd.backends.threads import THREADS, checked, threads_here

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


class ThreadSetting(Setting):
    """What `num_threads(n)` returns: in force at once, and as a context inside its block only."""

    def __init__(self, n: int) -> None:
        super().__init__(THREADS, n)
        self._made: Token[Any] | None = THREADS.set(n)

    def _take_back(self) -> None:
        """Undo the plain call, for the context to leave things as they were before it."""
        token, self._made = self._made, None
        if token is not None:
            with suppress(ValueError):  # made by another thread, which keeps it
                token.var.reset(token)

    def __enter__(self) -> None:
        self._take_back()
        super().__enter__()

    def __call__(self, f: Callable[..., Any]) -> Any:
        self._take_back()
        return super().__call__(f)


@overload
def num_threads() -> int: ...


@overload
def num_threads(n: int) -> ThreadSetting: ...


def num_threads(n: int | None = None) -> int | ThreadSetting:
    """The most threads that a computation may use; with an argument, set it.

    `rg.num_threads(4)` holds from here on, `with rg.num_threads(4):` for the block; also a
    decorator. Like all modes it concerns the Python thread that sets it, and not others. To start
    with, it is the number of processor cores at hand, or the environment variable
    RETROGRAD_NUM_THREADS. Results are the same to the bit whatever it is; small computations use
    fewer threads. May exceed the cores, which is slower.

    Raises `OptionError` if `n` is not an integer from 1 to 1024.

    >>> import retrograd as rg
    >>> with rg.num_threads(1):
    ...     print(rg.num_threads())
    1
    """
    return threads_here() if n is None else ThreadSetting(checked(n))
