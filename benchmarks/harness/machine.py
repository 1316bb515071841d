"""What the machine is, without saying whose it is."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.harness.workload import LIBRARIES

ISA = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve")


def describe() -> dict[str, str]:
    """Processor, caches, memory, interpreter, libraries."""
    return {
        "processor": f"{_processor()}, {_cores()} cores may be used",
        "instructions": ", ".join(_instructions()) or "not told",
        "caches": ", ".join(_caches()) or "not told",
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "libraries": ", ".join(f"{n} {v}" for n, v in _versions().items()),
    }


def revision() -> str:
    """The commit of retrograd that is measured, with a + if files have changed since."""
    here = Path(__file__).parent
    try:
        commit = _git(here, "rev-parse", "--short", "HEAD")
        return commit + ("+" if _git(here, "status", "--porcelain", "--", "../../src") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(where: Path, *args: str) -> str:
    command = ["git", "-C", str(where), *args]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpuinfo(key: str) -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(rf"^{key}\s*:\s*(.*)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def _processor() -> str:
    name = _cpuinfo("model name") or platform.processor() or platform.machine()
    number = [_cpuinfo("cpu family"), _cpuinfo("model")]
    return f"{name} (family {number[0]}, model {number[1]})" if all(number) else name


def _instructions() -> list[str]:
    flags = (_cpuinfo("flags") or _cpuinfo("Features")).split()
    return [name for name in ISA if name in flags]


def _caches() -> list[str]:
    found = []
    for entry in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = (
                (entry / name).read_text(encoding="ascii").strip()
                for name in ("level", "type", "size")
            )
        except OSError:
            continue
        found.append(f"L{level}{'' if kind == 'Unified' else kind[0].lower()} {size}")
    return found


def _memory() -> str:
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return "not told"
    return f"{size / 2**30:.0f} GiB"


def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
