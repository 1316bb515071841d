"""Random graphs of every op, of odd sizes and all dtypes, on the llvm backend: they agree with the
reference and keep to their memory; threads, and CPUs that fuse products with sums, give equal bits.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrograd.codegen.target import LEVELS, Target, level_asked
from retrograd.errors import OptionError
from retrograd.ir import REGISTRY, Dim, Graph, float16, float32, spec
from retrograd.ops.elementwise import cast
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.shape import expand
from retrograd.passes.lowering import strided_views
from retrograd.passes.lowering.complex import real_graph
from retrograd.runtime import compiler
from retrograd.runtime.executable import Executable
from retrograd.tuning import TUNING
from retrograd.verify.records import RECORDS
from tests.runtime.agreement import GuardedProgram
from tests.runtime.fuzz_checks import (
    COUNTS,
    Threaded,
    assert_agrees,
    assert_equal_bits,
    gather_threads,
)
from tests.runtime.fuzz_graphs import Fuzz
from tests.runtime.test_records import check_samples
from tests.sampling import mostly_exhaustive

NODES = 20  # in a graph, roughly


@pytest.fixture(autouse=True)
def no_store(monkeypatch):
    """Programs of other settings must not be found where programs are kept."""
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")


def each(seeds: range, check: Callable[[Fuzz, Graph, int], None]) -> None:
    """Check a graph for each seed; a failure says which."""
    for seed in seeds:
        f = Fuzz(seed, symbolic=seed % 4 == 3, rows=seed % 3 == 1)
        try:
            check(f, f.graph(NODES), seed)
        except BaseException as error:
            error.add_note(f"seed {seed} of {check.__name__}")
            raise


def blocks(count: int, size: int, more: int = 0) -> list[Any]:
    """Of seeds: so many, and more that take longer than anybody waits for."""
    found = [range(i * size, (i + 1) * size) for i in range(count + more)]
    late = [pytest.param(b, marks=pytest.mark.exhaustive) for b in found[count:]]
    return [*found[:count], *late]


def by_routine(patch: pytest.MonkeyPatch, always: bool) -> None:
    """Have contractions done by the routine for products, or never."""
    for name in strided_views.LIMITS:
        patch.setattr(strided_views, name, 0 if always else 1 << 60)


# -- agreement ------------------------------------------------------------------------------------
def agrees(f: Fuzz, graph: Graph, seed: int) -> None:
    assert_agrees(f, graph, GuardedProgram(real_graph(graph)), seed)


@pytest.mark.parametrize("seeds", blocks(12, 15), ids=str)
@pytest.mark.sample(2)
def test_random_graphs_agree_with_the_reference(seeds):
    each(seeds, agrees)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", blocks(2, 150, more=18), ids=str)
def test_thousands_of_random_graphs(seeds):
    each(range(10_000 + seeds.start, 10_000 + seeds.stop), agrees)


@pytest.mark.slow
def test_the_graphs_have_every_op():
    seen = set()
    for seed in range(1500):
        seen |= {node.op for node in Fuzz(seed, seed % 4 == 3).graph(NODES).nodes}
        if seen >= set(REGISTRY):
            break
    assert seen == set(REGISTRY)


# -- threads --------------------------------------------------------------------------------------
@pytest.fixture
def small_groups(monkeypatch):
    """Have threads share the smallest of work, in many blocks; to be called for each graph."""
    gather_threads()

    def settle(r: random.Random) -> None:
        for name, value in (
            ("parallel_grain_ns", 0), ("group_rows", r.choice((1, 2))), ("gemm_tile_rows", 1),
            ("tile_grain_ns", r.choice((1e-3, 20, 200))), ("tile_bytes", r.choice((64, 256, 4096))),
            ("row_split_bytes", r.choice((4, 16, 1 << 19))),
        ):  # fmt: skip
            monkeypatch.setattr(TUNING, name, value)
        monkeypatch.setattr(TUNING, "scatter_slice_elements", 1)
        by_routine(monkeypatch, r.random() < 0.5)

    return settle


def threads_agree(settle: Callable[[random.Random], None], shared: list[int]):
    def check(f: Fuzz, graph: Graph, seed: int) -> None:
        settle(random.Random(seed))
        found = [Threaded(real_graph(graph), n) for n in COUNTS]
        shared.append(found[0].recipe.facts.scratch)
        assert_equal_bits(f, [*found, *found], seed)  # each twice: frames are used again
        assert_agrees(f, graph, found[-1], seed)
        with pytest.MonkeyPatch.context() as usual:
            usual.setattr(TUNING, "parallel_grain_ns", 1e18)
            plain = GuardedProgram(real_graph(graph))
        assert not plain.recipe.facts.threaded
        assert_equal_bits(f, [plain, found[1]], seed)

    return check


@pytest.mark.slow
@pytest.mark.parametrize("seeds", blocks(4, 8), ids=str)
@pytest.mark.sample(1)
def test_bits_do_not_depend_on_threads(small_groups, seeds):
    shared: list[int] = []
    each(seeds, threads_agree(small_groups, shared))
    assert any(shared), "no graph had memory of the threads' own"


@pytest.mark.slow
@pytest.mark.parametrize("seeds", blocks(1, 60, more=9), ids=str)
def test_bits_of_many_graphs_do_not_depend_on_threads(small_groups, seeds):
    each(range(20_000 + seeds.start, 20_000 + seeds.stop), threads_agree(small_groups, []))


def test_rows_of_no_elements(small_groups):
    """A kernel that touches no memory takes no arguments but its rows."""
    small_groups(random.Random(0))
    x, v = input_node(spec((5, 0), float32)), input_node(spec((5,), float32))
    program = Threaded(Graph([x, v], [x + expand(v, (5, 0), (1,)), v + v]), 2)
    found = program([np.zeros((5, 0), np.float32), np.ones(5, np.float32)])
    assert found[0].shape == (5, 0)
    np.testing.assert_array_equal(found[1], np.full(5, 2, np.float32))


@pytest.mark.parametrize("n", [2, 7, 10])
@pytest.mark.parametrize("named", [True, False], ids=["symbolic", "static"])
def test_products_of_few_rows_do_not_depend_on_threads(n, named):
    """However few rows come to a thread."""
    gather_threads()
    rows = Dim("N") if named else n
    a, b = input_node(spec((rows, 512), float32)), input_node(spec((512, 512), float32))
    r = np.random.default_rng(n)
    arrays = [r.normal(size=s).astype(np.float32) for s in ((n, 512), (512, 512))]
    graph = Graph([a, b], [matmul(a, b)])
    found = {Threaded(graph, count)(arrays)[0].tobytes() for count in COUNTS}
    assert len(found) == 1


# -- other machines -------------------------------------------------------------------------------
def engines(*names: str) -> list[compiler.Compiler]:
    """For the levels of x86-64 among the names that this CPU has."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setenv("RETROGRAD_CPU", name)
            try:
                found.append(compiler.Compiler())
            except OptionError:
                continue
    return found


def narrow(width: int) -> compiler.Compiler:
    """This CPU, as if its vectors were shorter."""
    made = compiler.Compiler()
    made.machine = Target(width, 16, made.machine.fma)
    return made


def machines_agree(groups: list[list[compiler.Compiler]]):
    def check(f: Fuzz, graph: Graph, seed: int) -> None:
        for group in groups:
            made = []
            for own in group:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(compiler, "_ENGINE", own)
                    made.append(GuardedProgram(real_graph(graph)))
            if made:
                assert_agrees(f, graph, made[-1], seed)
                assert_equal_bits(f, made, seed)

    return check


@pytest.fixture(scope="module")
def machines() -> list[list[compiler.Compiler]]:
    """Those that round the sums of products alike."""
    here = compiler.Compiler()
    fused = [*engines("x86-64-v3", "x86-64-v4")] if here.machine.fma else []
    return [[here, *fused, narrow(4), narrow(2)], engines("x86-64", "x86-64-v2")]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", blocks(8, 3), ids=str)
@pytest.mark.sample(1)
def test_machines_agree(machines, seeds):
    each(seeds, machines_agree(machines))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", blocks(1, 20, more=19), ids=str)
def test_machines_agree_on_many_graphs(machines, seeds):
    each(range(30_000 + seeds.start, 30_000 + seeds.stop), machines_agree(machines))


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("part", mostly_exhaustive(range(8), 1))
def test_every_op_on_the_levels_of_x86_64(level, part, monkeypatch):
    own = engines(level)
    if not own:
        pytest.skip(f"this CPU is no {level}")
    monkeypatch.setattr(compiler, "_ENGINE", own[0])
    for name in [n for n in RECORDS if n != "input"][part::8]:
        check_samples(name, slack=4)


ALL = dict.fromkeys((f for _, needed in LEVELS.values() for f in needed), True)


@pytest.mark.parametrize("name", ["", "native", *LEVELS])
def test_levels_that_can_be_asked_for(monkeypatch, name):
    monkeypatch.setenv("RETROGRAD_CPU", name)
    assert level_asked(ALL) == ("" if name == "native" else name)


@pytest.mark.parametrize(
    ("name", "lacks", "message"),
    [("i386", "", "RETROGRAD_CPU is 'i386'; it can be native, x86-64"),
     ("x86-64-v4", "avx2", "below x86-64-v3: it has no avx2"),
     ("x86-64-v3", "sse4.2", "below x86-64-v2: it has no sse4.2")],
)  # fmt: skip
def test_levels_that_cannot(monkeypatch, name, lacks, message):
    monkeypatch.setenv("RETROGRAD_CPU", name)
    with pytest.raises(OptionError, match=message):
        level_asked(ALL | {lacks: False})


@pytest.mark.slow
def test_the_environment_chooses_the_machine():
    if not engines("x86-64"):
        pytest.skip("this CPU is no x86-64")
    code = (
        "from retrograd.runtime.compiler import engine; print(engine().machine.width);"
        "import numpy as np, retrograd as rg;"
        "print(rg.jit(lambda x: x * 3)(np.float16([1, 2])).numpy())"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "RETROGRAD_CPU": "x86-64", "PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "4\n[3. 6.]\n"


def test_float16_without_instructions_for_it(monkeypatch):
    """All of float16, and floats around its ends."""
    own = engines("x86-64")
    if not own:
        pytest.skip("this CPU is no x86-64")
    monkeypatch.setattr(compiler, "_ENGINE", own[0])
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    r = np.random.default_rng(0)
    floats = r.integers(0, 2**32, 50_000, np.uint32).view(np.float32)
    near = halves.astype(np.float32)
    with np.errstate(all="ignore"):
        edges = [near, np.nextafter(near, np.float32(0)), near * np.float32(1 + 2**-11)]
    floats = np.concatenate([floats, *edges])
    x, y = input_node(spec(halves.shape, float16)), input_node(spec(floats.shape, float32))
    program = Executable(Graph([x, y], [cast(x, float32), cast(y, float16)]))
    wide, short = program([halves, floats])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(wide, halves.astype(np.float32))
        np.testing.assert_array_equal(short, floats.astype(np.float16))
