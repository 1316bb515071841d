"""How much memory there is, and what is refused. That programs keep to it is tested in
`tests/runtime/test_memory_limit.py`."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from retrograd import memory_limit
from retrograd.errors import MemoryLimitError
from retrograd.ir import Dim, spec
from retrograd.memory_limit import check_memory, check_new, check_result
from retrograd.ops.elementwise import exp
from retrograd.ops.leaf import input_node

ROOT = Path(__file__).parents[1]


def test_the_largest_arrays_are_named(monkeypatch):
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 10**8)
    arrays = [(10, "w"), (3 * 10**7, "x"), (10**8, "y"), (2 * 10**7, "z")]
    check_memory(10**8, lambda: arrays, {})
    with pytest.raises(MemoryLimitError, match=r"needs 150 MB.*100 MB available") as caught:
        check_memory(15 * 10**7, lambda: arrays, {"N": 7})
    assert str(caught.value).splitlines()[1:] == ["  100 MB: y", "  30 MB: x", "  20 MB: z"]
    assert "with the sizes {'N': 7}" in str(caught.value)


def test_small_needs_and_systems_that_say_nothing_are_not_refused(monkeypatch):
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 0)
    check_memory(memory_limit.UNNOTICED, list, {})
    check_new((0, 10**12), 8, "nothing")
    monkeypatch.setattr(memory_limit, "available_memory", lambda: None)
    check_memory(10**18, list, {})
    check_new((10**18,), 8, "all")


def test_one_new_array_is_refused_by_its_shape(monkeypatch):
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 10**9 - 1)
    with pytest.raises(MemoryLimitError, match=r"a table of the shape \(1000, 250000\) needs 1 GB"):
        check_new((1000, 250_000), 4, "a table")
    node = exp(input_node(spec((Dim("N"), 1000), np.float32)))
    check_result(node, {"N": 249_999})
    with pytest.raises(MemoryLimitError, match=r"the result of exp .*\(250000, 1000\)"):
        check_result(node, {"N": 250_000})


def test_what_a_system_says_about_its_memory(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 3 kB\nSwapFree: 2 kB\n")
    assert memory_limit._of_system(tmp_path / "meminfo") == 5 * 1024
    assert memory_limit._of_group(tmp_path) is None
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_limit._of_group(tmp_path) is None
    (tmp_path / "memory.max").write_text("4096\n")
    assert memory_limit._of_group(tmp_path) == 4096
    here = memory_limit.available_memory()
    assert here is None or here > 1 << 20
    assert [memory_limit.scaled(n) for n in (12, 12_340, 10**13)] == ["12 B", "12.3 kB", "10 TB"]


@pytest.mark.slow
def test_the_limit_of_addresses():
    resource = pytest.importorskip("resource")
    code = (
        "import resource; from retrograd import memory_limit as limits;"
        "before = limits._of_process();"
        f"resource.setrlimit(resource.RLIMIT_AS, (2**36, {resource.RLIM_INFINITY}));"
        "assert before is None; assert 2**34 < limits._of_process() < 2**36"
    )
    here = {**os.environ, "PYTHONPATH": "src"}
    subprocess.run([sys.executable, "-c", code], check=True, env=here, cwd=ROOT)
