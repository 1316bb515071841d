"""`debug`: a block in which every operation is looked at as it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.api.nan_report import show_failure
from retrograd.context_setting import Setting
from retrograd.eager.lazy_tensor import LazyTensor, evaluate, materialize_all
from retrograd.eager.leaf import PENDING, leaf
from retrograd.eager.listeners import Listener, add_listener, drop_listener
from retrograd.eager.modes import _BACKEND, current_backend, is_tracing
from retrograd.errors import NonFiniteError, TraceError
from retrograd.ir import Node
from retrograd.runtime.executors.nan_observer import CHECKED
from retrograd.scalar.tape import close_tapes


def debug(
    f: Callable[..., Any] | None = None, *, page: str | os.PathLike[str] | None = None
) -> Any:
    """Inside `with rg.debug():` operations run one by one, at once, on the reference backend, and
    the first that gives a NaN or an infinity is a `NonFiniteError`, raised at its line.

    Forward values come first, in the order of the program, then those of the gradient. The message
    names the operation with its operands and source line, for a gradient also the operation that it
    is the derivative of, the likely cause and a remedy; the error has the `node` and the `index` of
    the first such element. Infinities that are handed on, such as a mask of -inf, are none of the
    operation's fault.

    `backward()` and functions compiled with `jit` are checked as well, and what is recorded inside
    and was not looked at is computed when the block ends. Only the thread that enters is concerned.
    Operations of `Value` are looked at in the same way, but have no page. Also a decorator. With
    `page`, a page of the explorer that opens at the node is written there.

    >>> import retrograd as rg
    >>> x = rg.tensor([4.0, 0.0], requires_grad=True)
    >>> with rg.debug():
    ...     rg.sqrt(x).sum().backward()
    Traceback (most recent call last):
    ...
    retrograd.errors.NonFiniteError: ... gives inf in 1 of 2 elements, first at [1]
    ...
    """
    setting = Debug(page)
    return setting if f is None else setting(f)


class Debug(Setting):
    """What `debug` returns."""

    def __init__(self, page: str | os.PathLike[str] | None = None) -> None:
        super().__init__(_BACKEND, CHECKED)
        self._watches: list[_Watch] = []
        self._page = page

    def __enter__(self) -> None:
        materialize_all()  # from here on operations make nodes, and show them
        close_tapes()
        self._watches.append(_Watch())
        super().__enter__()

    def __exit__(self, *failure: object) -> None:
        watch = self._watches.pop()
        found = failure[1] if len(failure) > 1 else None
        try:
            if failure[0] is None:
                watch.look()
        except NonFiniteError as error:
            found = error
            raise
        finally:
            drop_listener(watch)  # which the traceback of an error holds
            super().__exit__(*failure)
            if self._page is not None and isinstance(found, NonFiniteError) and found.node:
                show_failure(found, self._page, open=False)
                found.add_note(f"The page is in {os.fspath(self._page)}")


class _Watch(Listener):
    """Is shown every operation, as tapes are, and computes it at once."""

    def __init__(self) -> None:
        self._start = leaf(np.zeros(())).id
        add_listener(self)

    @property
    def sees_all(self) -> bool:
        """It has to compute everything."""
        return True

    def record(self, result: Node) -> None:
        """Compute a result, unless it depends on what stands for any array."""
        if current_backend() == CHECKED and not is_tracing():
            _compute(LazyTensor.handle_class(result))

    def look(self) -> None:
        """Compute what was recorded and still waits."""
        waiting = [ref() for ref in PENDING.valuerefs()]  # at once: other threads enter theirs
        for handle in sorted([h for h in waiting if h is not None], key=lambda h: h.node.id):
            if handle.node.id > self._start:
                _compute(handle)


def _compute(handle: LazyTensor) -> None:
    try:
        evaluate([handle])
    except TraceError:  # inside of vmap, say: there is no value
        return
