"""The text of kernels: what a GPU would be told, by reading it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.ir import Graph
from retrograd.nvptx.executable import DeviceProgram
from retrograd.nvptx.ptx import ptx_of
from retrograd.verify.records import RECORDS
from tests.nvptx.interpreted_device import InterpretedDevice
from tests.sampling import mostly_exhaustive, sampled

ARCHITECTURES = ["sm_75", "sm_80", "sm_90"]  # those of ptxas 13, which knows no older one


def ptx(function: Callable[..., Any], *arrays: np.ndarray, capability: int = 80) -> str:
    graph = rg.trace(function, *arrays)
    return DeviceProgram(graph, InterpretedDevice(capability)).ptx


def ptx_of_record(name: str, capability: int = 80) -> list[str]:
    found = []
    for sample in sampled(RECORDS[name].samples(), 2, name):
        nodes = sample.nodes()
        graph = Graph(nodes, [sample.op(*nodes)])
        if not any(n.dtype.is_complex for n in graph.nodes):
            found.append(DeviceProgram(graph, InterpretedDevice(capability)).ptx)
    return found


X = np.ones((64, 128), np.float32)


def test_products_and_sums_are_not_contracted() -> None:
    text = ptx(lambda x, y: x * y + x, X, X)
    assert "fma.rn" not in text
    assert "mul.rn.f32" in text
    assert "add.rn.f32" in text


def test_contractions_round_once() -> None:
    assert "fma.rn.f32" in ptx(lambda x, y: x @ y.T, X, X)


@pytest.mark.parametrize("name", ["add", "exp", "div", "sqrt", "reduce_sum", "tanh"])
@pytest.mark.sample(2)
def test_every_operation_on_floats_has_its_rounding(name: str) -> None:
    for text in ptx_of_record(name):
        assert not re.search(r"\b(add|sub|mul|fma|div|sqrt|rcp)(\.ftz)?\.f(16|32|64)\b", text)
        assert ".approx" not in text
        assert ".ftz" not in text
        assert ".full" not in text


@pytest.mark.parametrize("name", ["add", "exp", "reduce_sum", "cumsum"])
@pytest.mark.sample(2)
def test_nothing_is_on_a_stack(name: str) -> None:
    for text in ptx_of_record(name):
        assert ".local" not in text


def test_neighbouring_threads_read_neighbours() -> None:
    """The position of an element is the number of the thread times its size, and nothing else."""
    text = ptx(lambda x: x + 1, X)
    assert "ld.global.b32" in text
    assert re.search(r"shl\.b64\s+%rd\d+, %rd\d+, 2;", text)
    assert "div" not in text
    assert "rem" not in text


def test_columns_are_read_side_by_side() -> None:
    """A sum down columns has a thread for each column: from step to step a row is added."""
    text = ptx(lambda x: x.sum(0), X)
    assert re.search(r"add\.s64\s+%rd\d+, %rd\d+, 512;|\+512\]", text)


def test_rows_are_combined_by_shuffles() -> None:
    text = ptx(lambda x: x.sum(1), X)
    assert len(re.findall("shfl.sync.bfly.b32", text)) == 4
    assert "atom" not in text


def test_scatters_use_no_atomic_operations() -> None:
    for text in ptx_of_record("scatter_add"):
        assert "atom." not in text
        assert not re.search(r"^\s*red\.", text, re.MULTILINE)


def test_equal_kernels_are_one() -> None:
    def deep(x: rg.Tensor) -> rg.Tensor:
        for _ in range(4):
            x = rg.softmax(x)
        return x

    assert ptx(deep, X).count(".visible .entry") <= 8


@pytest.mark.parametrize(
    ("capability", "target"), [(70, 70), (75, 75), (80, 80), (86, 80), (90, 80), (121, 80)]
)
def test_later_devices_run_the_text_of_earlier_ones(capability: int, target: int) -> None:
    text = ptx_of("define ptx_kernel void @k() { ret void }", capability)
    assert f".target sm_{target}" in text
    assert ".version 7.0" in text


def test_old_devices_are_refused() -> None:
    with pytest.raises(BackendError, match=r"compute capability 7\.0.*has 6\.1"):
        ptx_of("", 61)


# -- the assembler ---------------------------------------------------------------------------------
def assembled(text: str, architecture: str, folder: Path) -> str:
    """What ptxas says of a text, with the memory that each kernel takes."""
    tool = shutil.which("ptxas")
    if tool is None:
        pytest.skip("there is no ptxas here: pip install nvidia-cuda-nvcc")
    path = folder / "kernels.ptx"
    path.write_text(text)
    command = [tool, f"-arch={architecture}", "-v", "-o", str(folder / "kernels.cubin"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


FEW = ["add", "reduce_sum", "cumsum", "sort", "scatter_add"]


@pytest.mark.parametrize("name", FEW[:2])
@pytest.mark.sample(1)
def test_kernels_assemble(name: str, tmp_path: Path) -> None:
    report = assembled(ptx_of_record(name, 75)[0], "sm_75", tmp_path)
    assert "0 bytes stack frame" in report


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_exhaustive([n for n in RECORDS if n != "input"], 20))
def test_all_kernels_assemble(name: str, tmp_path: Path) -> None:
    for number, text in enumerate(ptx_of_record(name, 75)):
        if number % 4 == 0:
            assembled(text, ARCHITECTURES[number // 4 % 3], tmp_path)


def test_a_product_spills_nothing(tmp_path: Path) -> None:
    big = np.ones((256, 256), np.float32)
    text = ptx(lambda x, y: x @ y, big, big, capability=75)
    assert "bar.sync" in text
    for architecture in ARCHITECTURES:
        report = assembled(text, architecture, tmp_path)
        assert "0 bytes spill stores, 0 bytes spill loads" in report
        assert "0 bytes stack frame" in report
