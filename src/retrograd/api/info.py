"""What there is on this machine to compute with: `rg.info()` and the command of that name."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from retrograd.accelerate import NAMES, is_compiled
from retrograd.backend_registry import ENGINES, available, lacking
from retrograd.codegen.target import level_reached
from retrograd.eager.modes import num_threads
from retrograd.errors import BackendError
from retrograd.runtime import native
from retrograd.runtime.disk_cache import OFF, VARIABLE, current_store, default_folder
from retrograd.runtime.openblas import configuration
from retrograd.runtime.threads import processors

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
# The extras of pyproject.toml that users install: packages, and what they are for.
EXTRAS = {
    "pictures": (("vl-convert-python",), "to_png, to_pdf, pictures of plots"),
    "scipy": (("scipy",), "rg.linalg and rg.special against SciPy, sparse matrices"),
    "wgpu": (("wgpu",), "the backend wgpu: GPUs by Vulkan, Metal or DX12"),
    "xla": (("jax",), "the backend xla: meshes of devices, processes, TPUs"),
    "cuda": (("cuda-bindings",), "the backend cuda: NVIDIA's GPUs"),
    "gnn": (("networkx", "scipy"), "graphs from NetworkX, `retrograd train graph`"),
    "tensorboard": (("tensorboard",), "fit(tensorboard=True)"),
    "onnx": (("onnx",), "graphs and models as ONNX"),
    "text": (("tokenizers",), "tokenizers of Hugging Face"),
    "verify": (("mpmath", "sympy", "scipy"), "rg.verify.rules, rg.verify.certify: more digits"),
    "data": (("pyarrow", "pillow"), "tables in Parquet, images"),
}
VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "JAX_PLATFORMS",
)


class Information(dict[str, str]):
    """Names and what they stand for, shown as lines of two columns."""

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}} {text}" for name, text in self.items())

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self, indent=2, ensure_ascii=False)


def info() -> Information:
    """Versions, backends and why one is missing, what records in compiled code, the processor,
    threads, BLAS, the native runtime, the cache of compiled code, extras, and the environment
    variables that count: what a report of an error should begin with. A dict of texts that is shown
    as a table; `to_json()` for programs.

    >>> import retrograd as rg
    >>> rg.info()["backends"].split(", ")[:2]
    ['reference', 'llvm']
    """
    us = sys.modules[__name__.partition(".")[0]]
    usable = num_threads()
    missing = {name: lacking(name) for name in ENGINES}
    return Information(
        retrograd=f"{us.__version__}, {os.path.dirname(str(us.__file__))}",
        python=f"{platform.python_version()} ({platform.python_implementation()}), "
        f"{sys.executable or 'embedded'}",
        platform=f"{platform.platform()}, {platform.machine()}",
        backends=", ".join(available()),
        unavailable="; ".join(f"{k}: {v}" for k, v in missing.items() if v) or "none",
        accelerators=", ".join(f"{name} ({_recorder(name)})" for name in NAMES),
        packages=", ".join(f"{p} {version_of(p) or 'missing'}" for p in PACKAGES),
        extras=", ".join(f"{name} ({_extra(name)})" for name in EXTRAS),
        **_processor(),
        threads=f"{usable} of {os.cpu_count()} logical processors are used, {processors()} may be",
        blas=f"{_blas()}; NumPy's {_numpy_blas()}",
        native=_native(),
        cache=_cache(),
        environment=", ".join(f"{k}={v}" for k, v in _environment().items()) or "nothing set",
    )


def version_of(package: str) -> str | None:
    """The version that is installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _extra(name: str) -> str:
    found = [(p, version_of(p)) for p in EXTRAS[name][0]]
    missing = [p for p, v in found if v is None]
    return f"no {' and '.join(missing)}" if missing else " ".join(f"{p} {v}" for p, v in found)


def _recorder(name: str) -> str:
    return "compiled" if is_compiled(name) else "python"


def _processor() -> dict[str, str]:
    # Here and not above: llvmlite is large, and not every program compiles.
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    names = sorted(name for name, there in features.items() if there)
    major, minor, patch = binding.llvm_version_info
    level = level_reached(features)
    return {
        "llvm": f"{major}.{minor}.{patch}, {binding.get_process_triple()}",
        "processor": f"{binding.get_host_cpu_name()}{f', {level}' if level else ''}",
        "features": " ".join(names),
    }


def _blas() -> str:
    try:
        return configuration()
    except (BackendError, OSError) as error:
        return f"missing: {error}"


def _numpy_blas() -> str:
    found: Any = np.show_config(mode="dicts")
    blas = found.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _native() -> str:
    from llvmlite import binding

    name = native.platform_name(binding.get_process_triple())
    try:
        return f"{name}, {len(native.addresses())} functions loaded"
    except BackendError as error:
        return f"{name}: {error}"


def _cache() -> str:
    named = os.environ.get(VARIABLE)
    if named is not None and named.strip().lower() in OFF:
        return f"none: {VARIABLE}={named}"
    store = current_store()
    if store is None:
        return f"none: {named or default_folder()} cannot be used; `retrograd doctor` says why"
    count, size = store.size()
    return f"{store.folder}: {count} entries, {size / 1e6:.1f} of {store.limit / 1e6:.0f} MB"


def _environment() -> dict[str, str]:
    """Environment variables that change what is computed with."""
    ours = sorted(k for k in os.environ if k.startswith("RETROGRAD_"))
    return {k: os.environ[k] for k in (*ours, *VARIABLES) if k in os.environ}
