"""What is wrong with an installation, and how to mend it: `retrograd doctor`.

Each check is a function that yields findings. What is wrong makes results differ, or programs slow
or fail; what is merely noted is good to know.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import stat
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.accelerate import NAMES
from retrograd.accelerate.stamp import STAMP
from retrograd.api.info import EXTRAS, version_of
from retrograd.backend_registry import ENGINES, available, compile_graph, lacking
from retrograd.codegen.target import level_asked
from retrograd.errors import OptionError, RetrogradError
from retrograd.functions import elementwise, reductions
from retrograd.graph.graph import Graph
from retrograd.graph.graph import trace as trace_graph
from retrograd.runtime import native
from retrograd.runtime.denormals import flushes
from retrograd.runtime.disk_cache import (
    ENTRIES,
    OFF,
    VARIABLE,
    DiskCache,
    default_folder,
    store_at,
)
from retrograd.runtime.openblas import configuration
from retrograd.runtime.threads import MOST_THREADS, processors
from retrograd.runtime.threads import VARIABLE as THREADS
from retrograd.tuning import TUNING

OK, NOTE, WRONG = "ok", "note", "wrong"
REQUIRED = {
    "numpy": "2.1",
    "llvmlite": "0.45",
    "scipy-openblas32": "0.3.27",
    "ml_dtypes": "0.5",
    "optree": "0.14",
    "safetensors": "0.5",
    "click": "8.2",
}
TOLERANCE = 1e-5  # of the largest number of a gradient in float32
ROOM = 1 << 26  # bytes that a disk should have free for the cache
BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Finding:
    """What a check has found: `level` is "ok", "note" or "wrong"; `fix` mends it."""

    topic: str
    level: str
    text: str
    remedy: str = ""
    fix: Callable[[], object] | None = None


def examine() -> Iterator[Finding]:
    """All findings, one after the other."""
    for check in CHECKS:
        topic = check.__name__
        try:
            found = list(check())
        except Exception as error:  # the rest can be looked at all the same
            yield Finding(topic, WRONG, f"the check failed: {type(error).__name__}: {error}")
            continue
        yield from found


# -- the installation ------------------------------------------------------------------------------
def installation() -> Iterator[Finding]:
    """Whether there is one retrograd, on a Python that it is made for."""
    here = _root()
    others = [p for p in installs(sys.path) if p != here]
    if others:
        listed = ", ".join(map(str, others))
        yield Finding(
            "installation", WRONG, f"several are on sys.path: {here} is used, and hides {listed}",
            "keep one: pip uninstall retrograd removes what is installed; take a checkout off "
            "PYTHONPATH, or start Python in another folder",
        )  # fmt: skip
    versions = sorted({d.version for d in importlib.metadata.distributions(name="retrograd")})
    if len(versions) > 1:
        yield Finding(
            "installation", WRONG, f"several versions are installed: {', '.join(versions)}",
            "pip uninstall retrograd until it says that there is none, then install it again",
        )  # fmt: skip
    if struct.calcsize("P") < 8:
        yield Finding(
            "installation", WRONG, "this Python has 32 bits, for which there is no native code",
            "install a Python of 64 bits",
        )  # fmt: skip
    if not others and len(versions) < 2:
        yield Finding("installation", OK, f"one retrograd, in {here}")


def _root() -> Path:
    return Path(__file__).resolve().parents[1]


def installs(path: list[str]) -> list[Path]:
    """The folders of packages of this name that Python would find, each once."""
    found = []
    for entry in path:
        folder = (Path(entry or os.curdir) / "retrograd").resolve()
        if (folder / "__init__.py").is_file() and folder not in found:
            found.append(folder)
    return found


def shadows() -> Iterator[Finding]:
    """Files here that Python takes for modules."""
    known = {*sys.stdlib_module_names, *REQUIRED, "scipy", "torch", "jax", "retrograd"}
    known -= {"__main__", "site", "this", "antigravity", "test", "tests"}
    here = Path.cwd()
    found = [p for p in sorted(here.glob("*.py")) if p.stem in known]
    found += [p.parent for p in sorted(here.glob("*/__init__.py")) if p.parent.name in known]
    found = [p for p in found if p.resolve() != _root()]
    for p in found:
        yield Finding(
            "shadows", WRONG,
            f"{p} hides the module {p.stem}, of which NumPy or retrograd may need the true one",
            f"give it another name, and remove {p.stem}*.pyc in __pycache__; `python -P` does not "
            "look into the folder",
        )  # fmt: skip
    if not found:
        yield Finding("shadows", OK, "no file in this folder hides a module")


def packages() -> Iterator[Finding]:
    """Whether what retrograd needs is there."""
    bad = False
    for name, least in REQUIRED.items():
        there = version_of(name)
        if there is None or _numbers(there) < _numbers(least):
            bad = True
            state = "is missing" if there is None else f"is {there}, too old"
            remedy = f"pip install '{name}>={least}'"
            yield Finding("packages", WRONG, f"{name} {state}", remedy)
    if not bad:
        yield Finding("packages", OK, f"{', '.join(REQUIRED)} are there and new enough")
    for extra, (names, what) in EXTRAS.items():
        missing = [p for p in names if version_of(p) is None]
        if missing:
            text = f"no {' and '.join(missing)}, which would give {what}"
            yield Finding("extras", NOTE, text, f"pip install 'retrograd[{extra}]'")


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with.

    >>> _numbers("2.1rc1") < _numbers("2.10")
    True
    """
    found = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
    return tuple(found)


def accelerators() -> Iterator[Finding]:
    """Whether the C extensions are those of this version."""
    missing, stale = [], {}
    for name in NAMES:
        full = f"retrograd.accelerate._{name}"
        if find_spec(full) is None:
            missing.append(name)
            continue
        try:
            stamp = getattr(import_module(full), "STAMP", None)
        except ImportError as error:
            stale[name] = str(error)
        else:
            if stamp != STAMP:
                stale[name] = "built from other C sources than those of this version"
    remedy = (
        "python setup.py build_ext --inplace in a checkout, else "
        "pip install --force-reinstall retrograd"
    )
    for name, why in stale.items():
        yield Finding("accelerators", WRONG, f"{name} cannot be used: {why}", remedy)
    if missing:
        text = f"{', '.join(missing)} not compiled: small operations take several times as long"
        yield Finding("accelerators", NOTE, text, f"with a C compiler: {remedy}")
    if not stale and not missing:
        yield Finding("accelerators", OK, f"{len(NAMES)} C extensions, of this version")


# -- the machine -----------------------------------------------------------------------------------
def processor(features: Mapping[str, bool] | None = None) -> Iterator[Finding]:
    """Whether native code can be made for this processor, and good code."""
    from llvmlite import binding

    has = dict(binding.get_host_cpu_features() if features is None else features)
    name = native.platform_name(binding.get_process_triple())
    try:
        asked = level_asked(has)
    except OptionError as error:
        yield Finding("processor", WRONG, str(error), "unset RETROGRAD_CPU")
        return
    if name.startswith("x86_64") and not has.get("avx"):
        yield Finding(
            "processor", NOTE,
            "it has no AVX: vectors hold 4 numbers rather than 8 or 16, so that large arrays take "
            "2 to 4 times as long; results are right",
            "on a virtual machine, let it have the host's CPU model",
        )  # fmt: skip
    elif not any(has.get(f) for f in ("fma", "neon")):
        yield Finding("processor", NOTE, "it has no FMA, so that bits of contractions differ")
    else:
        text = f"{binding.get_host_cpu_name()}, vectors of {_vector(has)} float32"
        yield Finding("processor", OK, text + (f", limited to {asked}" if asked else ""))
    try:
        native.addresses()
        yield Finding("native runtime", OK, f"loaded for {name}")
    except RetrogradError as error:
        yield Finding("native runtime", WRONG, str(error), "use rg.backend('reference') meanwhile")
    try:
        yield Finding("blas", OK, configuration())
    except (RetrogradError, OSError) as error:
        remedy = "pip install --force-reinstall scipy-openblas32"
        yield Finding("blas", WRONG, str(error), remedy)


def _vector(features: Mapping[str, bool]) -> int:
    if features.get("avx512f") and features.get("avx512vl"):
        return 16
    return 8 if features.get("avx") else 4


def threads(variables: Mapping[str, str] | None = None) -> Iterator[Finding]:
    """Whether the numbers of threads that are asked for fit the machine and each other."""
    given = os.environ if variables is None else variables
    usable, bad = processors(), False
    for name in (THREADS, *BLAS_THREADS):
        text = given.get(name, "").strip()
        if not text:
            continue
        first = text.split(",")[0]
        if not first.isdecimal() or not 1 <= int(first) <= MOST_THREADS:
            bad = True
            remedy = f"unset {name}, or set it to {usable}"
            yield Finding("threads", WRONG, f"{name} is {text!r}, which is no number", remedy)
        elif int(first) > usable:
            bad = True
            yield Finding(
                "threads", WRONG,
                f"{name} is {text}, and {usable} threads can run at once here, by the processors "
                "and the container's share of them: more wait for each other",
                f"unset {name}, or set it to {usable}",
            )  # fmt: skip
    values = {name: given[name].strip() for name in BLAS_THREADS if given.get(name, "").strip()}
    if len(set(values.values())) > 1:
        told = ", ".join(f"{k}={v}" for k, v in values.items())
        yield Finding(
            "threads", WRONG, f"{told} contradict each other: which one counts depends on how "
            "NumPy's BLAS was built", "set them to one number, or unset them",
        )  # fmt: skip
    elif values and not given.get(THREADS, "").strip() and not bad:
        name, value = next(iter(values.items()))
        if int(value.split(",")[0]) < usable:
            yield Finding(
                "threads", NOTE, f"{name}={value} limits NumPy and others, not retrograd",
                f"for the same here: {THREADS}={value}, or rg.num_threads({value})",
            )  # fmt: skip
    if not bad:
        yield Finding("threads", OK, f"{usable} can run at once")


def subnormals() -> Iterator[Finding]:
    """Whether numbers too small to be normal are exact, unless a library has changed that."""
    if float(np.float32(1e-30) * np.float32(1e-10)) == 0:
        yield Finding(
            "subnormals", WRONG,
            "they count as zero in this thread: a library that was built with -ffast-math, or "
            "something that ran before, has set the processor's mode, so that bits differ",
            "find it by importing one package after another; rg.flush_subnormals(False) undoes it",
        )  # fmt: skip
    else:
        more = "" if flushes() else "; this processor cannot flush them, as fit does by default"
        yield Finding("subnormals", OK, f"exact{more}")


# -- the cache -------------------------------------------------------------------------------------
def cache() -> Iterator[Finding]:
    """Whether compiled code is kept, and what is kept is whole."""
    named = os.environ.get(VARIABLE)
    if named is not None and named.strip().lower() in OFF:
        text = f"there is none, as {VARIABLE}={named} says: each process compiles anew"
        yield Finding("cache", NOTE, text, f"unset {VARIABLE}")
        return
    place = default_folder() if named is None else named
    if place is None:
        text = "the system does not say where caches are kept: each process compiles anew"
        yield Finding("cache", WRONG, text, f"set {VARIABLE} to a folder, or HOME")
        return
    folder, store = Path(place).absolute() / ENTRIES, store_at(place)
    if store is None:
        yield _refused(folder)
        return
    if unwritable := _unwritable(folder):
        remedy = f"chmod u+rwx {folder}, or set {VARIABLE} to another folder"
        text = f"{folder} cannot be written ({unwritable}): each process compiles anew"
        yield Finding("cache", WRONG, text, remedy)
    free = shutil.disk_usage(folder).free
    if free < ROOM:
        text = f"{free / 1e6:.0f} MB are free where the cache is, {folder}"
        yield Finding("cache", WRONG, text, f"free some, or set {VARIABLE} to another disk")
    yield from _entries(store)


def _refused(folder: Path) -> Finding:
    """Why a folder cannot be the cache."""
    remedy = f"set {VARIABLE} to a folder of your own"
    try:
        found = folder.lstat()
    except OSError as error:
        above = next((p for p in folder.parents if p.exists()), folder)
        why = "a file is in the way" if above.is_file() else "it cannot be made"
        text = f"{folder}: {why} ({error.strerror}; {above} is the last that there is)"
        return Finding("cache", WRONG, f"{text}: each process compiles anew", remedy)
    if not stat.S_ISDIR(found.st_mode):
        text = f"{folder} is a file or a link, and code that is run comes from a folder of its own"
        return Finding("cache", WRONG, text, f"remove it, or {remedy}")
    if hasattr(os, "geteuid") and found.st_uid not in (os.geteuid(), 0):
        text = f"{folder} belongs to another user, whose code is not run"
        return Finding("cache", WRONG, text, remedy)
    return Finding(
        "cache", WRONG, f"others may write to {folder}, so that code in it is not run",
        f"chmod 700 {folder}", lambda: folder.chmod(0o700),
    )  # fmt: skip


def _unwritable(folder: Path) -> str:
    """Why no file can be written there; nothing where one can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(TUNING.disk_block_bytes))
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _entries(store: DiskCache) -> Iterator[Finding]:
    bad = list(store.damaged())
    for path, why in bad[:5]:
        yield Finding(
            "cache", WRONG, f"{path.name}: {why}", f"remove it: {path}", partial(_remove, path)
        )
    if rest := bad[5:]:
        yield Finding(
            "cache", WRONG, f"and {len(rest)} more entries that are damaged or foreign",
            "retrograd doctor --fix removes them", lambda: _remove(*[p for p, _ in rest]),
        )  # fmt: skip
    count, size = store.size()
    text = f"{store.folder}: {count} entries, {size / 1e6:.0f} of {store.limit / 1e6:.0f} MB"
    if size > 1.1 * store.limit:
        yield Finding("cache", NOTE, f"{text}, over its limit", "--fix trims it", store.trim)
    elif not bad:
        yield Finding("cache", OK, text)


def _remove(*paths: Path) -> None:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


# -- results ---------------------------------------------------------------------------------------
def backends() -> Iterator[Finding]:
    """A small gradient on each backend against the reference."""
    graph, arrays = tiny_gradient()
    wanted = compile_graph(graph, "reference")(arrays)
    for name in available():
        if name == "reference":
            continue
        try:
            found = compile_graph(graph, name)(arrays)
        except Exception as error:  # of an engine, which may raise anything
            text = f"{name} fails on a small gradient: {type(error).__name__}: {error}"
            yield Finding("backends", WRONG, text, _reinstall(name))
            continue
        pairs = list(zip(found, wanted, strict=True))
        off = max(float(np.max(np.abs(np.asarray(a) - b))) for a, b in pairs)
        if off <= TOLERANCE * max(float(np.max(np.abs(b))) for b in wanted):
            yield Finding("backends", OK, f"{name}: a small gradient agrees with the reference")
        else:
            text = f"{name}: a small gradient is off by {off:.3g} from the reference"
            yield Finding("backends", WRONG, text, _reinstall(name))
    for name in ENGINES:
        if reason := lacking(name):
            yield Finding("backends", NOTE, f"{name} cannot run here: {reason}")


def _reinstall(name: str) -> str:
    if name == "llvm":
        return (
            "retrograd doctor --fix for the cache, then pip install --force-reinstall llvmlite "
            "scipy-openblas32; report it if it stays"
        )
    return f"pip install --force-reinstall 'retrograd[{name}]', or another driver"


def tiny_gradient() -> tuple[Graph, list[np.ndarray[Any, Any]]]:
    """The gradient of `sum(tanh(x w) exp(-x²))`, and arrays for it."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype(np.float32) for s in ((7, 5), (5, 5))]

    def f(x: Any, w: Any) -> Any:
        return reductions.sum(elementwise.tanh(x @ w) * elementwise.exp(-x * x))

    return trace_graph(f, *arrays).gradient(), arrays


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    installation,
    shadows,
    packages,
    accelerators,
    processor,
    threads,
    subnormals,
    cache,
    backends,
)


def mend(findings: list[Finding]) -> list[str]:
    """Mend what can be; what could not, with the reason."""
    failed = []
    for finding in findings:
        if finding.fix is not None:
            try:
                finding.fix()
            except OSError as error:
                failed.append(f"{finding.text}: {error}")
    return failed
