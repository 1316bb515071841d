"""What there is on this machine to compute with: `rg.info()` and the command of that name."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from retrograd.accelerate import NAMES, is_compiled
from retrograd.backend_registry import available
from retrograd.eager.modes import num_threads

PACKAGES = (
    "numpy",
    "llvmlite",
    "scipy",
    "scipy-openblas32",
    "ml_dtypes",
    "optree",
    "safetensors",
    "click",
)


class Information(dict[str, str]):
    """Names and what they stand for, shown as lines of two columns."""

    def __repr__(self) -> str:
        return "\n".join(f"{name:<12} {text}" for name, text in self.items())


def info() -> Information:
    """Versions, backends, what records in compiled code, the processor, and threads: what a report
    of an error should begin with. A dict of texts that is shown as a table.

    >>> import retrograd as rg
    >>> rg.info()["backends"].split(", ")[:2]
    ['reference', 'llvm']
    """
    us = sys.modules[__name__.partition(".")[0]]
    usable = num_threads()
    return Information(
        retrograd=f"{us.__version__}, {os.path.dirname(str(us.__file__))}",
        python=f"{platform.python_version()}, {platform.platform()}",
        backends=", ".join(available()),
        accelerators=", ".join(f"{name} ({_recorder(name)})" for name in NAMES),
        packages=", ".join(f"{p} {_version(p)}" for p in PACKAGES),
        **_processor(),
        threads=f"{usable} of {os.cpu_count()} logical processors are used",
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _recorder(name: str) -> str:
    return "compiled" if is_compiled(name) else "python"


def _processor() -> dict[str, str]:
    # Here and not above: llvmlite is large, and not every program compiles.
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    names = sorted(name for name, there in features.items() if there)
    major, minor, patch = binding.llvm_version_info
    return {
        "llvm": f"{major}.{minor}.{patch}, {binding.get_process_triple()}",
        "processor": binding.get_host_cpu_name(),
        "features": " ".join(names),
    }
