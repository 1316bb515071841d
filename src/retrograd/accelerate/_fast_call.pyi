"""What `fast_call.c` offers; `runtime/fast_call.py` says what it means."""

from collections.abc import Sequence
from typing import Any

STAMP: str

class ArraySpecs:
    def __init__(self, rows: list[tuple[int, Any, Sequence[int], int, int]], /) -> None: ...

class Entry:
    def __init__(
        self,
        inputs: ArraySpecs,
        outputs: ArraySpecs,
        frame: int,
        program: int,
        watch: int,
        donates: bool,
        /,
    ) -> None: ...
    def enter(self, inputs: list[Any], outputs: list[Any], /) -> int: ...

class CallRecord:
    def __init__(
        self,
        given: int,
        captured: Sequence[int],
        outputs: list[Any],
        puts: list[Any],
        donors: list[tuple[int, int]],
        first: int,
        root: int,
        program: int,
        frame: int,
        watch: int,
        /,
    ) -> None: ...
    def arrange(self, specs: ArraySpecs, /) -> None: ...

class CallRoute:
    def __init__(self, takes: list[Any], /) -> None: ...
    def offer(self, records: tuple[CallRecord, ...], /) -> None: ...
    def serve(self, args: Any, kwargs: Any, gone: Any, untracked: bool = ..., /) -> Any: ...

def install(handles: type, missed: Any) -> None: ...
