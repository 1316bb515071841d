"""Compiled code on disk: found again, never trusted blindly, never in the way."""

import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, Graph, as_dtype, spec
from retrograd.ops.elementwise import exp, mul
from retrograd.ops.index import Gather
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.runtime import (
    disk_cache,
    fingerprint,
)
from retrograd.runtime.compiler import engine
from retrograd.runtime.disk_cache import DiskCache, current_store, default_folder, key_of
from retrograd.runtime.executable import Executable
from retrograd.schedule import planning
from retrograd.tuning import TUNING

KEY, OTHER = key_of(["a"]), key_of(["b"])


@pytest.fixture
def store(tmp_path):
    return DiskCache(tmp_path)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache directory of this test, for programs compiled in this process."""
    monkeypatch.setenv(disk_cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(fingerprint, "fingerprint", lambda: "one compiler")
    return tmp_path / "compiled"


@pytest.fixture
def work(monkeypatch):
    """What was planned and compiled since."""
    done = []

    def noted(owner, name):
        f = getattr(owner, name)

        def call(*args):
            done.append(name)
            return f(*args)

        monkeypatch.setattr(owner, name, call)

    noted(planning, "KernelPlan")
    noted(type(engine()._assembler), "compile")
    return done


def small(rows=4):
    x, w = input_node(spec((rows, 3)), "x"), input_node(spec((3, 5)), "w")
    y = exp(matmul(x, w))
    return Graph([x, w], [y, ReduceSum((0, 1))(mul(y, y))])


def arrays(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


# -- the store -------------------------------------------------------------------------------------
def test_what_is_saved_is_found(store):
    assert store.load(KEY) is None
    store.save(KEY, b"content")
    store.save(OTHER, b"")
    assert DiskCache(store.folder).load(KEY) == b"content"
    assert store.load(OTHER) == b""


def test_keys_differ_where_the_parts_do():
    assert len({key_of(p) for p in (["ab"], ["a", "b"], ["", "ab"], ["a\0b"], ["ab", ""])}) == 5


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "longer", "foreign", "renamed"])
def test_damaged_entries_are_ignored_and_removed(store, harm):
    store.save(KEY, b"content" * 100)
    path = store.folder / KEY
    whole = path.read_bytes()
    flipped = bytes([whole[100] ^ 1])
    path.write_bytes({
        "flip": whole[:100] + flipped + whole[101:],
        "cut": whole[:-1],
        "empty": b"",
        "longer": whole + b"x",
        "foreign": b"\x7fELF something else altogether",
        "renamed": whole,
    }[harm])  # fmt: skip
    if harm == "renamed":
        path.rename(store.folder / OTHER)
        path = store.folder / OTHER
    assert store.load(path.name) is None
    assert not path.exists()
    store.save(path.name, b"new")
    assert store.load(path.name) == b"new"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_what_cannot_be_written_is_not_kept(store, monkeypatch, code):
    tried = []

    def fail(path, *args, **options):
        tried.append(path)
        raise OSError(code, "no")

    store.save(OTHER, b"before")
    monkeypatch.setattr(disk_cache, "write_atomically", fail)
    store.save(KEY, b"content")
    store.save(KEY, b"content")
    assert store.load(KEY) is None
    assert store.load(OTHER) == b"before"
    assert len(tried) == 1, "a full disk is not tried again for every program"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_directory_that_cannot_be_written_is_read(store):
    store.save(KEY, b"content")
    store.folder.chmod(0o500)
    try:
        store.save(OTHER, b"content")
        assert store.load(KEY) == b"content"
        assert store.load(OTHER) is None
    finally:
        store.folder.chmod(0o700)


def test_a_full_store_forgets_what_was_not_used_for_longest(store):
    keys = [key_of([str(k)]) for k in range(12)]
    for time, key in enumerate(keys):
        store.save(key, b"x")
        os.utime(store.folder / key, (10**9 + time, 10**9 + time))
    assert store.load(keys[0]) == b"x"  # used now, though it was saved first
    store.limit = 10 * TUNING.disk_block_bytes
    store.trim()
    assert {p.name for p in store.folder.iterdir()} == {keys[0], *keys[6:]}


def test_saving_keeps_the_store_within_its_limit(store):
    store.limit = 50 * TUNING.disk_block_bytes
    for k in range(400):
        store.save(key_of([str(k)]), b"x")
    assert len(list(store.folder.iterdir())) < 200  # one key in sixteen looks


def test_what_would_fill_the_store_is_not_kept(store):
    store.limit = 1600
    store.save(KEY, bytes(100))
    store.save(OTHER, bytes(101))
    assert store.load(KEY) == bytes(100)
    assert store.load(OTHER) is None


def test_files_left_unfinished_are_removed(store):
    old, new = store.folder / ".a.1.part", store.folder / ".b.2.part"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (10**9, 10**9))
    store.trim()
    assert not old.exists()
    assert new.exists(), "its writer may be at work"


def test_threads_may_save_the_same(store):
    content = os.urandom(300_000)
    together = threading.Barrier(8)

    def save():
        together.wait()
        for _ in range(20):
            store.save(KEY, content)

    threads = [threading.Thread(target=save) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert store.load(KEY) == content
    assert [p.name for p in store.folder.iterdir()] == [KEY]


# -- the directory ---------------------------------------------------------------------------------
@pytest.mark.parametrize("value", ["", "0", "off", "OFF", " off "])
def test_the_cache_can_be_switched_off(monkeypatch, value):
    monkeypatch.setenv(disk_cache.VARIABLE, value)
    assert current_store() is None


def test_the_directory_is_where_the_system_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.delenv(disk_cache.VARIABLE)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    found = default_folder() or ""
    assert Path(found).is_relative_to(tmp_path)
    assert current_store().folder == Path(found) / "compiled"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert Path(default_folder() or "").is_relative_to(tmp_path)


def test_without_a_place_nothing_is_kept(monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.setenv(disk_cache.VARIABLE, str(file / "below"))
    assert current_store() is None
    Executable(small())(arrays((4, 3), (3, 5)))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
def test_a_directory_that_others_can_write_to_is_not_used(monkeypatch, tmp_path):
    own = tmp_path / "compiled"
    monkeypatch.setenv(disk_cache.VARIABLE, str(tmp_path))
    assert current_store() is not None
    assert own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o777)
    disk_cache._store.cache_clear()
    assert current_store() is None
    own.rmdir()
    own.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    disk_cache._store.cache_clear()
    assert current_store() is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no such owners")
def test_a_directory_of_another_user_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv(disk_cache.VARIABLE, str(tmp_path))
    assert current_store() is not None
    disk_cache._store.cache_clear()
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "compiled").stat().st_uid + 1)
    found = current_store()
    assert found is None or (tmp_path / "compiled").stat().st_uid == 0


# -- programs --------------------------------------------------------------------------------------
PROGRAM = """
import sys
import numpy as np
import retrograd as rg
from retrograd.runtime import fingerprint as identity
from retrograd.runtime.assembler import Assembler
identity.fingerprint = lambda: "one compiler"  # sources may be edited while this runs
compiled = []
original = Assembler.compile
Assembler.compile = lambda self, text: compiled.append(text) or original(self, text)
step = rg.jit(rg.grad(lambda w, x: (rg.softmax(x @ w) ** 2).sum()))
rng = np.random.default_rng(0)
w, x = (rg.tensor(rng.normal(size=s).astype("f")) for s in ((7, 9), (5, 7)))
print(step(w, x).numpy().tobytes().hex())
print(len(compiled))
"""


def run(folder):
    env = {**os.environ, disk_cache.VARIABLE: str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    bits, compiled = done.stdout.split()
    assert done.stderr == ""
    return bits, int(compiled)


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    first, compiled = run(tmp_path)
    assert compiled > 0
    assert run(tmp_path) == (first, 0)
    assert run("off") == (first, compiled)


@pytest.mark.slow
def test_processes_may_start_together(tmp_path):
    found = []
    threads = [threading.Thread(target=lambda: found.append(run(tmp_path))) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({bits for bits, _ in found}) == 1
    assert run(tmp_path)[1] == 0


def test_a_known_graph_is_neither_planned_nor_compiled(folder, work):
    inputs = arrays((4, 3), (3, 5))
    first = Executable(small(), simplify=True)(inputs)
    assert work == ["KernelPlan", "compile"]
    again = Executable(small(), simplify=True)
    for a, b in zip(first, again(inputs), strict=True):
        assert a.tobytes() == b.tobytes()
    assert work == ["KernelPlan", "compile"]
    assert "dot_general" in again.explain()
    assert again.peak_bytes({}) == again.predicted_peak
    assert work == ["KernelPlan", "compile", "KernelPlan"]


def test_what_differs_is_compiled_again(folder, work, monkeypatch):
    def made(*args, **options):
        before = work.count("KernelPlan")
        Executable(*args, **options)
        return work.count("KernelPlan") - before

    graph = small()
    assert made(graph) == 1
    assert made(graph) == 0
    assert made(small(5)) == 1
    assert made(graph, timed=True) == 1
    assert made(graph, donate=[0]) == 1
    assert made(graph, simplify=True) == 1
    assert made(graph) == 0
    monkeypatch.setattr(np, "__version__", "another")
    assert made(graph) == 1
    monkeypatch.undo()
    monkeypatch.setenv(disk_cache.VARIABLE, str(folder.parent))
    monkeypatch.setattr(fingerprint, "fingerprint", lambda: "another compiler")
    assert made_here(graph) != 0


def made_here(graph):
    before = set(current_store().folder.iterdir())
    Executable(graph)
    return len(set(current_store().folder.iterdir()) - before)


@pytest.mark.parametrize("part", range(6))
def test_code_is_for_one_cpu_and_one_version_of_llvm(folder, monkeypatch, part):
    graph = small()
    assert made_here(graph) == 2
    assert made_here(graph) == 0
    other = list(engine().identity)
    other[part] += "+another"
    monkeypatch.setattr(engine(), "identity", other)
    monkeypatch.setattr(engine()._assembler, "identity", other)
    assert made_here(graph) == 2


@pytest.mark.parametrize("harm", ["damaged", "lost"])
@pytest.mark.parametrize("which", ["recipe", "object"])
def test_code_that_is_lost_is_compiled_again(folder, work, which, harm):
    inputs = arrays((4, 3), (3, 5))
    first = Executable(small())(inputs)
    key = Executable(small()).recipe.facts.object
    names = [p.name for p in folder.iterdir()]
    path = folder / (key if which == "object" else next(n for n in names if n != key))
    path.write_bytes(path.read_bytes()[:-9]) if harm == "damaged" else path.unlink()
    again = Executable(small())(inputs)
    assert work.count("KernelPlan") == 2
    for a, b in zip(first, again, strict=True):
        assert a.tobytes() == b.tobytes()
    Executable(small())
    assert work.count("KernelPlan") == 2


def test_a_cache_directory_that_vanishes_is_no_error(folder):
    Executable(small())
    shutil.rmtree(folder)
    Executable(small())(arrays((4, 3), (3, 5)))
    Executable(small(6))(arrays((6, 3), (3, 5)))


def test_symbolic_sizes(folder, work):
    x = input_node(spec((Dim("N"), Dim("M"))), "x")
    graph = Graph([x], [ReduceSum((1,))(exp(x)), x])
    programs = Executable(graph), Executable(graph)
    assert work.count("compile") == 1
    for shape in ((3, 4), (1, 20), (0, 2)):
        (a,) = arrays(shape)
        first, again = programs[0]([a]), programs[1]([a])
        assert [y.tobytes() for y in first] == [y.tobytes() for y in again]
        assert programs[0].predicted_peak == programs[1].predicted_peak
    with pytest.raises(rg.ShapeError, match=r"x.*is f32"):
        programs[1]([np.zeros(3, np.float32)])


def test_the_first_named_sizes_of_a_process_are_not_planned_again(folder, work):
    """Each program stands for a process: it knows nothing of the one before."""
    x = input_node(spec((Dim("N"), Dim("M"))), "x")
    graph = Graph([x], [ReduceSum((1,))(exp(x)), exp(ReduceSum((0,))(x))])

    def run(*shapes):
        before, program = work.count("KernelPlan"), Executable(graph)
        results = [[y.tobytes() for y in program(arrays(shape))] for shape in shapes]
        return work.count("KernelPlan") - before, results, program.predicted_peak

    first = run((3, 4))
    assert first[0] == 1
    assert run((3, 4)) == (0, *first[1:])
    other = run((3, 5))
    assert other[0] == 1
    assert run((3, 5)) == (0, *other[1:])
    entries = len(list(folder.iterdir()))
    assert run((3, 4), (3, 5), (3, 6), (3, 7))[0] == 1, "of those that follow, what is new"
    assert len(list(folder.iterdir())) == entries + 1, "which is planned from then on"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8", "bool", "uint64"])
def test_constants(folder, work, dtype):
    values = np.array([[0, 1, 1], [0, 1, 1]]).astype(as_dtype(dtype).dtype)
    none = np.zeros((0, 2), values.dtype)
    x = input_node(spec((3,)), "x")
    graph = Graph([x], [constant(values), constant(none), exp(x)])
    first, again = (Executable(graph)(arrays((3,))) for _ in range(2))
    assert work.count("KernelPlan") == 1
    for a, b in zip(first, again, strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    assert again[0].tobytes() == values.tobytes()


def test_an_index_out_of_range_names_the_node_of_this_process(folder, work):
    def graph(name):
        x, i = input_node(spec((5, 2)), "x"), input_node(spec((3,), "int64"), "i")
        return Graph([x, i], [Gather(0)(x, i).renamed(name)])

    inputs = [*arrays((5, 2)), np.array([0, 7, 1])]
    for count in (1, 2):
        program = Executable(graph("picked"))
        assert work.count("KernelPlan") == count
        with pytest.raises(rg.IndexRangeError, match=r"index 7 on axis 0 of size 5.*picked"):
            program(inputs)


def test_donated_inputs(folder, work):
    x = input_node(spec((50,)), "x")
    graph = Graph([x], [exp(x)])
    for _ in range(2):
        program = Executable(graph, donate=[0])
        assert program.donated == {0: 0}
        listed = arrays((50,))
        at = listed[0].ctypes.data
        assert program.consume(listed)[0].ctypes.data == at
    assert work.count("KernelPlan") == 1


def test_nothing_is_kept_of_graphs_that_are_not_known_by_their_text(folder, monkeypatch):
    x = input_node(spec((3,)), "x")
    monkeypatch.setattr(TUNING, "hashed_constant_bytes", 8)
    assert made_here(Graph([x], [mul(x, constant(np.ones(3, np.float32)))])) == 1  # the object
    monkeypatch.setattr(type(exp), "__module__", "users.own")
    assert made_here(Graph([x], [exp(exp(x))])) == 1


FULL = """
import os, resource, signal, sys
import numpy as np
if sys.argv[1] == "full":  # from here on every write beyond 512 bytes fails, as on a full disk
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
import retrograd as rg
f = rg.jit(lambda x: (rg.exp(x) * x).sum())
print(f(np.arange(3.0)).item())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits a process of its own")
@pytest.mark.parametrize("trouble", ["full", "a file", "nowhere"])
@pytest.mark.sample(1)
def test_a_process_that_cannot_keep_anything_compiles(tmp_path, trouble):
    """With a disk that takes no more, and with a cache that cannot be a directory. What is so small
    that the disk still took it is whole."""
    folder = tmp_path / "cache"
    if trouble == "a file":
        folder.write_text("in the way")
    if trouble == "nowhere":
        folder = Path("/proc/nothing/here")
    environment = {**os.environ, disk_cache.VARIABLE: str(folder), "PYTHONPATH": "src"}
    process = subprocess.run(
        [sys.executable, "-c", FULL, trouble],
        cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert process.stderr == ""
    assert float(process.stdout) == pytest.approx(np.exp(1) + 2 * np.exp(2))
    if trouble == "full":
        store = DiskCache(folder / "compiled")
        for path in store.folder.iterdir():
            assert path.stat().st_size <= 512
            assert store.load(path.name) is not None


def test_damaged_entries_are_told_from_whole_ones(tmp_path):
    store = DiskCache(tmp_path)
    keys = [key_of([str(i)]) for i in range(4)]
    for key in keys:
        store.save(key, b"code" * 50)
    assert list(store.damaged()) == []
    assert store.size()[0] == 4
    (tmp_path / keys[0]).write_bytes((tmp_path / keys[1]).read_bytes())  # of another key
    (tmp_path / keys[2]).write_bytes(b"RGC1")
    (tmp_path / ".unfinished.1.part").touch()
    (tmp_path / "README").touch()
    found = dict(store.damaged())
    assert {p.name for p in found} == {keys[0], keys[2], "README"}
    assert store.load(keys[0]) is None
    assert store.load(keys[1]) == b"code" * 50
    assert list(DiskCache(tmp_path / "none").damaged()) == []
