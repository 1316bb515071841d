from collections.abc import Callable, Sequence
from typing import Any

STAMP: str
OUTPUTS: int
NAMES: int
serve: Any

class Run:
    site: Any
    offered: Any
    calls: int
    work: int
    looked: int
    def __init__(self, site: Any) -> None: ...
    @property
    def what(self) -> int: ...
    def mix(self, x: int, /) -> None: ...
    def enlist(self, call: Any, /) -> None: ...
    def alive(self) -> list[Any]: ...
    def forget(self) -> None: ...

class CallBase:
    kernel: Any
    edges: Any
    given: Any
    ints: Any
    numbers: Any
    scope: Any
    code: Any
    nodes: Any
    run: Any
    number: int
    position: int
    lasti: int
    freed: bool

class OutputBase:
    array: Any
    call: Any
    where: Any
    index: int
    freed: bool

class BriefProgram:
    def __init__(self, *facts: Any) -> None: ...
    def allow(self, names: Sequence[int], offsets: Sequence[int], arena: int, how: int) -> None: ...

class CallKernel:
    kind: Any
    def __init__(self, kind: Any, *facts: Any) -> None: ...
    def forward(self, tracked: bool, program: BriefProgram) -> None: ...
    def extend(self, reach: Sequence[int], /) -> None: ...
    def backward(
        self, given: int, to: int, more: int, program: BriefProgram | None,
        passed: Sequence[int], computed: Sequence[int],
    ) -> None: ...  # fmt: skip

class Walk:
    @property
    def leaves(self) -> list[Any]: ...
    def run(self, seed: Any, asked: list[bool], slices: Any, /) -> tuple[Any, ...]: ...

def install(
    classes: tuple[type, ...],
    current: Any,
    modes: tuple[Callable[[], Any], ...],
    listeners: dict[str, Any],
    nowhere: Any,
    next_number: Callable[[], int],
    begin_run: Callable[[], bool],
    places: dict[str, int],
    backend: str,
    capacity: int,
    long_run: int,
) -> None: ...
def install_team(launcher: int, team: int, threads: Callable[[], int]) -> None: ...
def walk(root: Any, /) -> Walk | None: ...
def pull(
    call: Any, given: int, to: int, more: int, values: tuple[Any, ...], /
) -> tuple[Any, ...]: ...
def clear() -> None: ...
