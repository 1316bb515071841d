"""Modes of recording and running, each a context: gradients on or off, the backend, threads,
subnormal numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ContextDecorator, suppress
from contextvars import ContextVar, Token
from typing import Any, TypeVar, overload
from weakref import WeakSet

from retrograd.backend_registry import FALLBACK, find, is_device
from retrograd.context_setting import Setting
from retrograd.eager.fast_path import EPOCH, compiled
from retrograd.errors import OptionError
from retrograd.ir.source import TRACED, TracedCalls
from retrograd.runtime.denormals import flush_subnormals as flush
from retrograd.runtime.threads import THREADS, checked, threads_here
from retrograd.shared import contained, members

F = TypeVar("F", bound=Callable[..., Any])
_GRAD: ContextVar[bool] = ContextVar("grad", default=True)
_TRACING: ContextVar[object | None] = ContextVar("tracing", default=None)
_HIDDEN_FROM_TAPES: ContextVar[bool] = ContextVar("unseen", default=False)
_BACKEND: ContextVar[str] = ContextVar("backend", default="llvm")
# What the transforms around this code differentiate with respect to: nodes.
_ACTIVE: ContextVar[frozenset[Any]] = ContextVar("active", default=frozenset())
# The same of functions that run meanwhile, without nodes: the tensors they were given.
_SOUGHT: ContextVar[tuple[Any, ...]] = ContextVar("sought", default=())
# The epoch in which the innermost call of a function by a transform has begun; 0: there is none.
_CALL: ContextVar[int] = ContextVar("call", default=0)
_FLUSHED: ContextVar[tuple[bool, ...]] = ContextVar("flushed", default=())  # outside of blocks


# The buffers of tapes, which record without a look at the modes here while they are open.
TAPED: WeakSet[Any] = WeakSet()


class HiddenFromTapes(Setting):
    """A setting inside of which tapes see nothing."""

    def __enter__(self) -> None:
        for buffer in members(TAPED):
            buffer.close()  # who goes on with what is there looks at the modes first
        super().__enter__()


def grad_enabled() -> bool:
    """Whether operations are recorded for `backward()`."""
    return _GRAD.get()


@overload
def no_grad(f: None = ...) -> Setting: ...
@overload
def no_grad(f: F) -> F: ...
def no_grad(f: Any = None) -> Any:
    """Results of operations inside the block count as constants: no gradient flows through them.

    Also a decorator.

    Leaves that require gradients may be changed in place inside; outside of it that is a
    `GradientError`.

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


def active() -> frozenset[Any]:
    """The nodes that the transforms around this one differentiate with respect to."""
    return _ACTIVE.get()


def sought() -> tuple[Any, ...]:
    """The tensors that transforms around this code differentiate with respect to, where the
    function runs meanwhile."""
    return _SOUGHT.get()


def seeking(handles: Sequence[Any]) -> Setting:
    """Inside the block, a transform differentiates with respect to tensors, too."""
    return Setting(_SOUGHT, (*_SOUGHT.get(), *handles))


def is_tracing() -> bool:
    """Whether a function is being traced into a graph that will run many times."""
    return _TRACING.get() is not None


def current_trace() -> object | None:
    """What is the same throughout the innermost `tracing` block, and in no other."""
    return _TRACING.get()


@contained
def traced(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `f` returns while it is traced into a graph that will run many times."""
    with tracing():
        return f(*args, **kwargs)


def calling() -> Setting:
    """Inside the block a transform calls a function: tensors that were made before are arguments of
    it, or captured, and are not changed in place."""
    EPOCH[0] += 1
    if compiled is not None:
        compiled.set_epoch(EPOCH[0])
    return Setting(_CALL, EPOCH[0])


def call_epoch() -> int:
    """The epoch in which the innermost call of a function by a transform has begun; 0: there is
    none."""
    return _CALL.get()


class Tracing(HiddenFromTapes):
    """A setting inside of which a function is called to be traced."""

    def __enter__(self) -> None:
        super().__enter__()
        self._call, self._calls = calling(), Setting(TRACED, TracedCalls())
        self._call.__enter__()
        self._calls.__enter__()

    def __exit__(self, *failure: object) -> None:
        self._calls.__exit__(*failure)
        self._call.__exit__(*failure)
        super().__exit__(*failure)


def tracing() -> Setting:
    """What happens inside the block becomes part of a graph that runs many times."""
    return Tracing(_TRACING, object())


def is_unseen() -> bool:
    """Whether tapes are not shown what is computed here."""
    return _HIDDEN_FROM_TAPES.get()


def unseen() -> Setting:
    """Tapes are not shown what is computed inside the block."""
    return HiddenFromTapes(_HIDDEN_FROM_TAPES, True)


def current_backend() -> str:
    """The name of the backend that evaluates tensors here and now."""
    return _BACKEND.get()


def backend(name: str, *, fallback: bool = False) -> Setting:
    """Evaluate on the named backend inside the block; `BackendError` if it is not available.

    A value is computed where it is looked at, by the backend selected there. With `fallback`, the
    CPU does what a backend of a device cannot: a part of a program that is an error otherwise. That
    is the backend of the name and "+llvm", `rg.backend("wgpu+llvm")`.

    >>> import retrograd as rg
    >>> with rg.backend("reference"):
    ...     print(rg.add(1.0, 2.0).item())
    3.0
    """
    if fallback and is_device(name):
        name = name.removesuffix(FALLBACK) + FALLBACK
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
    fewer threads, and so do programs that were measured to take longer on several, as brief ones do
    where others need the processors. May exceed the cores, which is slower.

    Raises `OptionError` if `n` is not an integer from 1 to 1024.

    >>> import retrograd as rg
    >>> with rg.num_threads(1):
    ...     print(rg.num_threads())
    1
    """
    return threads_here() if n is None else ThreadSetting(checked(n))


class FlushSetting(ContextDecorator):
    """What `flush_subnormals(on)` returns: in force at once, and as a context inside its block
    only. The mode is one of the thread, not of the context that variables live in."""

    def __init__(self, on: bool) -> None:
        self._on = on
        self._before: bool | None = flush(on)

    def _take_back(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            flush(before)

    def __enter__(self) -> None:
        self._take_back()
        _FLUSHED.set((*_FLUSHED.get(), flush(self._on)))

    def __exit__(self, *failure: object) -> None:
        *others, before = _FLUSHED.get()
        _FLUSHED.set(tuple(others))
        flush(before)

    def __call__(self, f: Callable[..., Any]) -> Any:
        self._take_back()
        return super().__call__(f)


def flush_subnormals(on: bool = True) -> FlushSetting:
    """Have numbers too small to be normal count as zero: below 1.2e-38 in float32, 2.2e-308 in
    float64.

    Many processors take a hundred times longer for such numbers, which come up where probabilities
    or gradients vanish: training can become several times slower as it converges. JAX flushes them
    always, PyTorch by `torch.set_flush_denormal`. The default is to compute them as IEEE 754 says,
    and to warn once of a compiled program that they slow down (`SubnormalWarning`); `rg.profile()`
    and `Graph.explain` say which kernels meet any. `retrograd train` flushes them.

    `rg.flush_subnormals()` holds from here on, `with rg.flush_subnormals():` for the block; also a
    decorator. It concerns all arithmetic of the Python thread that sets it, NumPy's too, and the
    workers of the programs that it runs; a value is computed where it is looked at. Apart from
    numbers that are too small, results are the same to the bit.

    Raises `BackendError` on processors other than x86-64 and 64-bit ARM.

    >>> import retrograd as rg
    >>> x = rg.tensor([1e-30, 1.0], dtype=rg.float32)
    >>> with rg.flush_subnormals():
    ...     print((x * 1e-10).numpy())
    [0.e+00 1.e-10]
    """
    if not isinstance(on, bool):
        raise OptionError(f"flush_subnormals takes True or False, not {on!r}")
    return FlushSetting(on)
