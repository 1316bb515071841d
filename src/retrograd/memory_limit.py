"""How much memory a program may take."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from retrograd.errors import MemoryLimitError
from retrograd.ir import Node, TupleType, evaluate

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

UNNOTICED = 1 << 26  # bytes that are not worth asking the system for
LARGEST = 3  # arrays that an error names


def check_memory(
    needed: int,
    arrays_of: Callable[[], Iterable[tuple[int, str]]],
    sizes: Mapping[str, int],
    available: Callable[[], int | None] = lambda: available_memory(),
    where: str = "here",
) -> None:
    """`MemoryLimitError` if a call needs more memory than there is. The arrays, each with its bytes
    and what it is, are for the message; `available` tells how much there is, `where` it is."""
    if needed <= UNNOTICED:
        return
    there = available()
    if there is None or needed <= there:
        return
    largest = sorted(arrays_of(), key=lambda array: -array[0])[:LARGEST]
    lines = "".join(f"\n  {scaled(size)}: {what}" for size, what in largest)
    at = f" with the sizes {dict(sizes)}" if sizes else ""
    raise MemoryLimitError(
        f"a call{at} needs {scaled(needed)}, more than the {scaled(there)} available {where}; "
        f"compute it in parts, or with smaller sizes. The largest arrays are{lines}"
    )


def check_new(shape: Sequence[int], itemsize: int, what: str) -> None:
    """`MemoryLimitError` if one array that is to be made does not fit into memory."""
    needed = math.prod(shape) * itemsize
    there = available_memory() if needed > UNNOTICED else None
    if there is not None and needed > there:
        raise MemoryLimitError(
            f"{what} of the shape {tuple(shape)} needs {scaled(needed)}, more than the "
            f"{scaled(there)} available here"
        )


def check_result(node: Node, sizes: Mapping[str, int]) -> None:
    """The same of the result of a node that is computed by itself."""
    if not isinstance(node.type, TupleType):
        shape = [evaluate(d, sizes) for d in node.shape]
        check_new(shape, node.dtype.itemsize, f"the result of {node.op}")


def available_memory() -> int | None:
    """Bytes that can still be had: by the system, the control group and the limit of the process;
    None if nobody says."""
    known = (_of_system(), _of_group(), _of_process())
    return min((n for n in known if n is not None), default=None)


def _of_system(path: Path = Path("/proc/meminfo")) -> int | None:
    """What is free, or can be freed, and what can be moved out to disk."""
    entries = dict(line.split(":", 1) for line in _read(path).splitlines() if ":" in line)
    try:
        named = [entries[name] for name in ("MemAvailable", "SwapFree")]
        return 1024 * sum(int(text.split()[0]) for text in named)
    except (KeyError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _of_group(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The limit of a container, whatever is in use: most of that may be a cache."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        text = _read(root / name).strip()
        if text.isdecimal():
            return int(text)
    return None


def resident_memory() -> int | None:
    """Bytes of memory that this process has now; on systems that do not tell, the most it had;
    None where nobody tells.

    >>> resident_memory() > 10_000_000
    True
    """
    pages = _read(Path("/proc/self/statm")).split()
    if resource is None:
        return None
    if len(pages) > 1:
        return int(pages[1]) * resource.getpagesize()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _of_process() -> int | None:
    """What is left of the addresses that the process may use."""
    if resource is None:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    pages = _read(Path("/proc/self/statm")).split()
    used = int(pages[0]) * resource.getpagesize() if pages else 0
    return max(limit - used, 0)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeError):
        return ""


def scaled(size: int) -> str:
    """A number of bytes for people."""
    for prefix in ("", "k", "M", "G", "T", "P"):
        if size < 1000 or prefix == "P":
            break
        size /= 1000  # type: ignore[assignment]
    return f"{size:.3g} {prefix}B" if size < 1000 else f"{size:.3e} {prefix}B"
