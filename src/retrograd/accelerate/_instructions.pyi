"""What `instructions.c` has."""

from typing import Any

STAMP: str

def plan(
    settings: Any, code: Any, a: Any, b: Any, numbers: Any, events: Any, wanted: Any, most: int
) -> tuple[bytes, int, bytes, bytes, bytes]: ...
def reached(paths: bytes, code: Any, a: Any, b: Any, root: int) -> bytes: ...
