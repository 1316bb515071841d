"""Modes under PyTorch's names: gradients on and off, threads."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Token
from typing import Any

from retrograd.coming_from.keywords import respells
from retrograd.context_setting import Setting
from retrograd.eager.modes import _GRAD, grad_enabled, no_grad, num_threads, recording_grad
from retrograd.errors import ArgumentError
from retrograd.functions.dtypes import result_type


def enable_grad(f: Callable[..., Any] | None = None) -> Any:
    """Gradients are recorded inside the block, also within `no_grad`. Also a decorator.

    Outside of `no_grad` it changes nothing; leaves that require gradients are a `GradientError` to
    change in place inside.

    >>> import retrograd as rg
    >>> x = rg.tensor(2.0, requires_grad=True)
    >>> with rg.no_grad(), rg.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """
    setting = recording_grad()
    return setting if f is None else setting(f)


def inference_mode(mode: Any = True) -> Any:
    """`no_grad`, or, with False, `enable_grad`. Also a decorator.

    What is computed inside may be used for gradients later: nothing is marked, so that the
    `GradientError` that PyTorch has for it does not come up.

    >>> import retrograd as rg
    >>> with rg.inference_mode():
    ...     y = rg.tensor(2.0, requires_grad=True) * 2
    >>> y.requires_grad
    False
    """
    if callable(mode):
        return no_grad(mode)
    return no_grad() if mode else enable_grad()


class GradSetting(Setting):
    """What `set_grad_enabled(mode)` returns: in force at once, and as a context in its block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(_GRAD, mode)
        self._made: Token[bool] | None = _GRAD.set(mode)

    def _take_back(self) -> None:
        token, self._made = self._made, None
        if token is not None:
            token.var.reset(token)

    def __enter__(self) -> None:
        self._take_back()
        super().__enter__()

    def __call__(self, f: Callable[..., Any]) -> Any:
        self._take_back()
        return super().__call__(f)


def set_grad_enabled(mode: bool) -> GradSetting:
    """Gradients on or off from here on, or in a block: `with rg.set_grad_enabled(training):`.

    A `GradientError` tells who asks for a gradient that was not recorded.

    >>> import retrograd as rg
    >>> with rg.set_grad_enabled(False):
    ...     y = rg.tensor(2.0, requires_grad=True) * 2
    >>> y.requires_grad
    False
    """
    return GradSetting(bool(mode))


def is_grad_enabled() -> bool:
    """Whether operations are recorded for `backward()`; no `GradientError`, whatever it is.

    >>> import retrograd as rg
    >>> rg.is_grad_enabled()
    True
    """
    return grad_enabled()


@respells
def set_num_threads(n: int, /) -> None:
    """The most threads that a computation may use, from here on: `num_threads(n)`.

    `OptionError` if n is no integer from 1 to 1024.

    >>> import retrograd as rg
    >>> rg.set_num_threads(rg.get_num_threads())
    """
    num_threads(n)


def get_num_threads() -> int:
    """The most threads that a computation may use: `num_threads()`; never an `OptionError`.

    >>> import retrograd as rg
    >>> rg.get_num_threads() >= 1
    True
    """
    return num_threads()


@respells
def promote_types(type1: Any, type2: Any, /) -> Any:
    """The dtype that arrays of two dtypes have together: `result_type`. `DTypeError` for what is no
    dtype.

    >>> import retrograd as rg
    >>> rg.promote_types(rg.int32, rg.float64)
    float64
    """
    return result_type(type1, type2)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """`torch.compile`: the model, or function, itself. A program that is run operation by
    operation is compiled by itself once it has returned often enough, with its gradient and its
    optimizer, and for sizes that change; so there is nothing to ask for. Also a decorator. The
    options are passed over.

    `rg.jit(f)` compiles a function at its first call, as a whole; it takes and gives values,
    without effects. `ArgumentError` for what cannot be called.

    >>> import retrograd as rg
    >>> model = rg.nn.Linear(2, 1)
    >>> rg.compile(model) is model
    True
    """
    if model is None:  # `@rg.compile(mode="max-autotune")`
        return compile
    if not callable(model):
        raise ArgumentError(f"compile takes a function or a module, not {type(model).__name__}")
    return model
