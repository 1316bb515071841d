"""Damaged models, own ones and such as come with ONNX, in a process of little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from tests.interop.onnx.suite import cases, onnx

KINDS = (
    "loop11", "loop13_seq", "range_int32_type_negative_delta_expanded", "if_seq", "scan9_sum",
    "lstm_defaults", "gradient_of_add", "quantizelinear_int4",
    "tfidfvectorizer_tf_only_bigrams_skip0", "ai_onnx_ml_tree_ensemble_single_tree",
    "sequence_map_add_2_sequences", "roialign_aligned_true", "col2im", "einsum_batch_diagonal",
)  # fmt: skip


def corpus(folder: Path) -> list[str]:
    n = rg.Dim("N")
    net = rg.nn.Sequential(rg.nn.Linear(3, 4), rg.nn.Tanh(), rg.nn.Linear(4, 2))
    optimizer = rg.optim.AdamW(lr=0.1)
    start = {"w": rg.ones((3, 2))}

    def step(p, s, x):
        value, slopes = rg.value_and_grad(lambda p: rg.tanh(x @ p["w"]).sum())(p)
        return value, *optimizer.update(p, slopes, s)

    def loop(x):
        return rg.while_loop(lambda c: (c**2).sum() < 100.0, lambda c: c * 2 + 1, x)

    graphs = {
        "gradient": rg.trace(lambda x: net(x).sum(), rg.spec((n, 3))).gradient(),
        "step": rg.trace(step, start, optimizer.init(start), rg.spec((n, 3))),
        "loop": rg.trace(loop, rg.spec((3,))),
        "back": rg.trace(rg.grad(lambda x: loop(x).sum()), rg.spec((3,))),
        "sort": rg.trace(lambda x: rg.cumsum(rg.sort(x, axis=0), axis=0)[::-1], rg.spec((4, 3))),
    }
    for name, graph in graphs.items():
        graph.to_onnx(folder / f"{name}.onnx")
    for case in cases():
        if case.name.removeprefix("test_") in KINDS and case.model is not None:
            (folder / f"{case.name}.onnx").write_bytes(case.model.SerializeToString())
    return sorted(map(str, folder.glob("*.onnx")))


def run(folder: Path, seed: int, count: int) -> str:
    command = [sys.executable, "-m", "tests.interop.onnx.fuzz", str(seed), str(count)]
    ran = subprocess.run(
        [*command, *corpus(folder)], cwd=Path(__file__).parents[3], capture_output=True,
        text=True, timeout=580, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_damaged_models_give_a_graph_or_an_error(tmp_path: Path) -> None:
    said = run(tmp_path, 0, 120)
    assert "'run'" in said
    assert "'FormatError'" in said


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [1, 2])
def test_thousands_of_damaged_models(seed: int, tmp_path: Path) -> None:
    run(tmp_path, seed, 5000)


def test_what_is_far_too_large_is_refused(tmp_path: Path) -> None:
    """Weights, inputs and results of sizes that no memory has; nothing of them is made."""
    h = onnx.helper

    def load(m: object) -> None:
        (tmp_path / "m.onnx").write_bytes(m.SerializeToString())  # type: ignore[attr-defined]
        rg.load_onnx(tmp_path / "m.onnx")

    y = h.make_empty_tensor_value_info("y")
    huge = onnx.TensorProto(name="w", data_type=1, dims=[2**40, 2**20], raw_data=b"\0" * 8)
    with pytest.raises(rg.FormatError, match="damaged"):
        load(h.make_model(h.make_graph([h.make_node("Relu", ["w"], ["y"])], "g", [], [y], [huge])))
    shape = h.make_tensor("s", 7, [2], [2**40, 2**20])
    graph = h.make_graph([h.make_node("ConstantOfShape", ["s"], ["y"])], "g", [], [y], [shape])
    (tmp_path / "m.onnx").write_bytes(h.make_model(graph).SerializeToString())
    with pytest.raises(rg.RetrogradError):
        rg.load_onnx(tmp_path / "m.onnx")().numpy()


def test_external_data_by_a_link_or_a_folder_is_not_read(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    (inner / "folder").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(np.ones(4, np.float32).tobytes())
    (inner / "link.bin").symlink_to(tmp_path / "secret.bin")
    h = onnx.helper
    for place in ("link.bin", "folder", ".", "../secret.bin", str(tmp_path / "secret.bin"), "a\0b"):
        w = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=1)
        w.external_data.add(key="location", value=place)
        y = h.make_empty_tensor_value_info("y")
        graph = h.make_graph([h.make_node("Relu", ["w"], ["y"])], "g", [], [y], [w])
        (inner / "m.onnx").write_bytes(h.make_model(graph).SerializeToString())
        with pytest.raises((rg.FormatError, FileNotFoundError)) as error:
            rg.load_onnx(inner / "m.onnx")
        assert place == "a\0b" or "nothing else is read" in str(error.value)
