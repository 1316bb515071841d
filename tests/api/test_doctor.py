"""`retrograd doctor`: each thing is broken, found, and where that can be, mended."""

from __future__ import annotations

import errno
import os
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.api import doctor, info
from retrograd.api.doctor import NOTE, OK, WRONG, Finding, mend
from retrograd.runtime.disk_cache import VARIABLE, DiskCache, key_of, store_at

posix = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


def found(check: Callable[..., Iterator[Finding]], *given: Any) -> list[tuple[str, str]]:
    return [(f.level, f.text) for f in check(*given)]


def wrong(check: Callable[..., Iterator[Finding]], *given: Any) -> Finding:
    """The one thing that is wrong."""
    (finding,) = [f for f in check(*given) if f.level == WRONG]
    assert finding.remedy
    return finding


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    made = store_at(str(tmp_path))
    assert made is not None
    for i in range(3):
        made.save(key_of([str(i)]), b"code" * 100)
    return made


# -- the cache -------------------------------------------------------------------------------------
def test_a_whole_cache_is_in_order(store: DiskCache) -> None:
    ((level, text),) = found(doctor.cache)
    assert level == OK
    assert "3 entries" in text


@pytest.mark.parametrize(
    ("breaks", "why"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-7]), "cut short, or changed"),
        (lambda path: path.write_bytes(path.read_bytes()[:9]), "cut short"),
        (lambda path: path.write_bytes(b"RGC0" + path.read_bytes()[4:]), "of another version"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"!"), "cut short, or changed"),
        (lambda path: path.rename(path.with_name("0" * 64)), "cut short, or changed"),
        (lambda path: path.rename(path.with_name("notes.txt")), "no entry of this cache"),
    ],
)
def test_a_broken_entry_is_found_and_removed(
    store: DiskCache, breaks: Callable[[Path], Any], why: str
) -> None:
    breaks(store.folder / key_of(["1"]))
    finding = wrong(doctor.cache)
    assert why in finding.text
    assert mend([finding]) == []
    assert found(doctor.cache)[0][0] == OK
    assert store.load(key_of(["0"])) == b"code" * 100
    assert len(os.listdir(store.folder)) == 2


def test_many_broken_entries_are_counted(store: DiskCache) -> None:
    for i in range(9):
        (store.folder / f"{i:064x}").write_bytes(b"x")
    bad = [f for f in doctor.cache() if f.level == WRONG]
    assert len(bad) == 6
    assert "4 more entries" in bad[-1].text
    assert mend(bad) == []
    assert found(doctor.cache)[0][0] == OK


@posix
def test_a_cache_that_others_may_write_to_is_refused_and_mended(store: DiskCache) -> None:
    store.folder.chmod(0o777)
    finding = wrong(doctor.cache)
    assert "others may write" in finding.text
    assert mend([finding]) == []
    assert found(doctor.cache)[0][0] == OK


@posix
def test_a_cache_of_another_user(store: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = store.folder.stat().st_uid
    if owner == 0:
        os.chown(store.folder, 12345, -1)
    else:
        monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert "another user" in wrong(doctor.cache).text


def test_a_cache_that_cannot_be_made_or_written(
    store: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **named: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", full)
    assert "No space left" in wrong(doctor.cache).text
    monkeypatch.undo()
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    assert "a file is in the way" in wrong(doctor.cache).text
    other = tmp_path / "other"
    other.mkdir()
    (other / "compiled").write_text("x")
    monkeypatch.setenv(VARIABLE, str(other))
    assert "is a file or a link" in wrong(doctor.cache).text


def test_a_disk_that_is_nearly_full_and_a_cache_that_is_off(
    store: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 5_000_000})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: usage)
    assert "5 MB are free" in wrong(doctor.cache).text
    monkeypatch.setenv(VARIABLE, "off")
    ((level, text),) = found(doctor.cache)
    assert level == NOTE
    assert "compiles anew" in text
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(doctor, "default_folder", lambda: None)
    assert "does not say" in wrong(doctor.cache).text


def test_what_cannot_be_mended_is_said(store: DiskCache) -> None:
    def fails() -> None:
        raise PermissionError(13, "Permission denied")

    (told,) = mend([Finding("cache", WRONG, "this", "that", fails)])
    assert "Permission denied" in told


# -- the installation ------------------------------------------------------------------------------
def test_several_installs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(doctor.installation)[0][0] == OK
    (tmp_path / "retrograd").mkdir()
    (tmp_path / "retrograd" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path), str(tmp_path)])
    finding = wrong(doctor.installation)
    assert str(tmp_path) in finding.text
    assert "pip uninstall" in finding.remedy


def test_several_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for v in ("0.0.1", "0.0.2"):
        folder = tmp_path / f"retrograd-{v}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: retrograd\nVersion: {v}\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert "0.0.1, 0.0.2" in wrong(doctor.installation).text


@pytest.mark.parametrize("name", ["numpy.py", "random.py", "click/__init__.py", "retrograd.py"])
def test_a_file_that_hides_a_module(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").touch()
    assert found(doctor.shadows)[0][0] == OK
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    assert Path(name).parts[0].removesuffix(".py") in wrong(doctor.shadows).text


def test_packages_that_are_missing_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(doctor.packages)[0][0] == OK
    real = doctor.version_of
    fake = {"numpy": "1.26.4", "optree": None, "tensorboard": None}
    monkeypatch.setattr(doctor, "version_of", lambda p: fake[p] if p in fake else real(p))
    told = found(doctor.packages)
    assert (WRONG, "numpy is 1.26.4, too old") in told
    assert (WRONG, "optree is missing") in told
    assert (NOTE, "no tensorboard, which would give fit(tensorboard=True)") in told


def test_requirements_and_extras_are_those_of_pyproject() -> None:
    path = Path(__file__).parents[2] / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    pairs = [d.split(">=") for d in project["dependencies"]]
    assert dict(pairs) == doctor.REQUIRED
    extras = project["optional-dependencies"]
    for name, (packages, _) in info.EXTRAS.items():
        assert {d.partition(">")[0] for d in extras[name]} == set(packages)
    developers = {"test", "dev", "test-all", "ecosystem", "torch", "bench", "browser"}
    assert {*extras} - developers - {"docs", "site"} == {*info.EXTRAS}


def test_c_extensions_that_are_stale_missing_or_do_not_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modules = {"tensor": "other", "value": None}

    def load(name: str) -> Any:
        short = name.rpartition("_")[2]
        if short == "value":
            raise ImportError("undefined symbol")
        return type("Module", (), {"STAMP": modules.get(short, doctor.STAMP)})

    monkeypatch.setattr(doctor, "find_spec", lambda name: None if "immediate" in name else name)
    monkeypatch.setattr(doctor, "import_module", load)
    told = found(doctor.accelerators)
    assert [level for level, _ in told] == [WRONG, WRONG, NOTE]
    assert "tensor cannot be used: built from other C sources" in told[0][1]
    assert "undefined symbol" in told[1][1]
    assert "immediate not compiled" in told[2][1]
    monkeypatch.setattr(doctor, "find_spec", lambda name: name)
    monkeypatch.setattr(doctor, "NAMES", ("tensor2",))
    monkeypatch.setattr(doctor, "import_module", lambda n: type("M", (), {"STAMP": doctor.STAMP}))
    assert [level for level, _ in found(doctor.accelerators)] == [OK]


# -- the machine -----------------------------------------------------------------------------------
def test_numbers_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "processors", lambda: 4)
    assert [x for x, _ in found(doctor.threads, {})] == [OK]
    assert [x for x, _ in found(doctor.threads, {"OMP_NUM_THREADS": "4"})] == [OK]
    assert "4 threads can run" in wrong(doctor.threads, {"RETROGRAD_NUM_THREADS": "16"}).text
    assert "OMP_NUM_THREADS is 8" in wrong(doctor.threads, {"OMP_NUM_THREADS": "8"}).text
    assert "no number" in wrong(doctor.threads, {"RETROGRAD_NUM_THREADS": "all"}).text
    fight = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "4"}
    assert "contradict" in wrong(doctor.threads, fight).text
    told = found(doctor.threads, {"OMP_NUM_THREADS": "1"})
    assert told[0] == (NOTE, "OMP_NUM_THREADS=1 limits NumPy and others, not retrograd")


def test_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(level == OK for level, _ in found(doctor.processor))
    old = {"sse2": True, "sse4.2": True, "popcnt": True}
    monkeypatch.setattr(doctor.native, "platform_name", lambda triple: "x86_64-linux")
    assert "no AVX" in found(doctor.processor, old)[0][1]
    monkeypatch.setenv("RETROGRAD_CPU", "x86-64-v4")
    assert "below" in wrong(doctor.processor, old).text


def test_a_runtime_or_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise rg.BackendError("was not compiled for this")

    monkeypatch.setattr(doctor.native, "addresses", missing)
    monkeypatch.setattr(doctor, "configuration", missing)
    bad = [f.topic for f in doctor.processor() if f.level == WRONG]
    assert bad == ["native runtime", "blas"]


def test_a_thread_that_flushes_subnormal_numbers() -> None:
    assert found(doctor.subnormals)[0][0] == OK
    with rg.flush_subnormals():
        assert "count as zero" in wrong(doctor.subnormals).text
    assert found(doctor.subnormals)[0][0] == OK


# -- results ---------------------------------------------------------------------------------------
def test_a_backend_that_computes_nonsense_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.compile_graph
    off = [0.0]

    def made(graph: Any, name: str) -> Any:
        run = real(graph, "reference")

        def call(arrays: Any) -> Any:
            if name == "wgpu":
                raise RuntimeError("no device")
            return [a + np.float32(off[0] if name == "llvm" else 0) for a in run(arrays)]

        return call

    monkeypatch.setattr(doctor, "available", lambda: ["reference", "llvm", "wgpu"])
    monkeypatch.setattr(doctor, "compile_graph", made)
    monkeypatch.setattr(doctor, "lacking", lambda name: "it" if name == "cuda" else None)
    assert [x for x, _ in found(doctor.backends)] == [OK, WRONG, NOTE]
    off[0] = 1e-3
    told = found(doctor.backends)
    assert [x for x, _ in told] == [WRONG, WRONG, NOTE]
    assert "off by 0.001" in told[0][1]
    assert "no device" in told[1][1]


def test_the_small_gradient_is_right() -> None:
    graph, (x, w) = doctor.tiny_gradient()
    dx, _ = graph(x, w)
    y, e = np.tanh(x @ w), np.exp(-x * x)
    wanted = ((1 - y * y) * e) @ w.T - 2 * x * e * y
    np.testing.assert_allclose(dx.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_a_check_that_fails_does_not_end_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks() -> Iterator[Finding]:
        raise ValueError("of no use")

    monkeypatch.setattr(doctor, "CHECKS", (breaks, doctor.subnormals))
    first, second = doctor.examine()
    assert (first.level, first.topic) == (WRONG, "breaks")
    assert "of no use" in first.text
    assert second.level == OK
