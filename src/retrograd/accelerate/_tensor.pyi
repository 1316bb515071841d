"""What `tensor.c` offers; `eager/fast_path.py` says what it means."""

from collections.abc import Callable
from typing import Any

STAMP: str

class HandleBase: ...

class TraceNodeBase:
    successors: dict[Any, dict[Any, Any]]
    floating: bool
    takes_numbers: bool

class TraceBufferBase:
    slots: dict[Any, Any]
    @property
    def numbers(self) -> list[float | None]: ...
    limit: int
    @property
    def open(self) -> bool: ...
    def begin(self) -> None: ...
    def end(self) -> None: ...
    def add(self, handle: Any) -> None: ...
    def made(self) -> int: ...
    def recorded(self) -> list[Any]: ...
    def live_handles(self) -> list[Any]: ...
    def stay(self, handles: list[Any]) -> None: ...
    def take(self) -> int: ...
    def numbers_from(self, number: int) -> dict[int, float]: ...

class Function:
    def __init__(
        self,
        python: Callable[..., Any],
        arity: int,
        op: Any,
        swapped: Any = None,
        numbers: bool = False,
    ) -> None: ...
    @property
    def python(self) -> Callable[..., Any]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def install(
    handles: type,
    buffers: type,
    trace_nodes: type,
    nodes: type,
    dtypes: type,
    current: Any,
    enabled: Callable[[], bool],
    integers: dict[int, Any],
    floats: dict[str, Any],
) -> None: ...
