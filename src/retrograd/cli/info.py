"""`retrograd info`: what there is on this machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import typer

import retrograd as rg
from retrograd.accelerate import NAMES, is_compiled

PACKAGES = (
    "numpy",
    "llvmlite",
    "scipy",
    "scipy-openblas32",
    "ml_dtypes",
    "optree",
    "safetensors",
    "typer",
    "rich",
)


def info() -> None:
    """Show versions, backends, what records in compiled code, the processor, threads."""
    rows = {
        "retrograd": f"{rg.__version__}, {os.path.dirname(rg.__file__)}",
        "python": f"{platform.python_version()}, {platform.platform()}",
        "backends": ", ".join(rg.backends()),
        "accelerators": ", ".join(f"{name} ({_recorder(name)})" for name in NAMES),
        "packages": ", ".join(f"{p} {_version(p)}" for p in PACKAGES),
        **_processor(),
        "threads": f"{_usable()} of {os.cpu_count()} logical processors may be used",
    }
    for name, text in rows.items():
        typer.echo(f"{name:<12} {text}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _recorder(name: str) -> str:
    return "compiled" if is_compiled(name) else "python"


def _usable() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> dict[str, str]:
    # Here and not above: importing llvmlite would slow down every other command.
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    names = sorted(name for name, there in features.items() if there)
    major, minor, patch = binding.llvm_version_info
    return {
        "llvm": f"{major}.{minor}.{patch}, {binding.get_process_triple()}",
        "processor": binding.get_host_cpu_name(),
        "features": " ".join(names),
    }
