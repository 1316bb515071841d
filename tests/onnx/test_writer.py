"""What grows while a model is written: nodes with their names, constants and sizes."""

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")
import onnx

from retrograd.onnx import to_bytes
from tests.onnx.evaluator import run


def test_names_scopes_and_lines_are_kept(tmp_path):
    def f(x):
        return rg.tanh(x).sum()  # the line

    rg.trace(f, rg.spec((3,))).gradient().to_onnx(tmp_path / "f.onnx")
    model = onnx.load(tmp_path / "f.onnx")
    assert [x.name for x in model.graph.input] == ["x"]
    notes = [n.doc_string for n in model.graph.node]
    assert any("test_writer.py" in text and "the line" in text for text in notes)
    assert any("gradient of tanh" in text for text in notes)


def test_an_op_without_a_counterpart_names_the_line(tmp_path):
    graph = rg.trace(lambda x: rg.special.gammaln(x), rg.spec((3,)))  # the culprit
    with pytest.raises(rg.BackendError, match=r"the op lgamma.*the culprit"):
        graph.to_onnx(tmp_path / "no.onnx")
    assert not list(tmp_path.iterdir())


def test_a_size_that_no_input_has():
    graph = rg.trace(lambda x: rg.sum(x) / x.shape[0], rg.spec((2 * rg.Dim("N"),)))
    with pytest.raises(rg.BackendError, match="the size N"):
        to_bytes(graph, {})


def test_a_constant_is_stored_once_and_zeros_of_both_signs_are_two():
    table = np.arange(3, dtype=np.float32)
    graph = rg.trace(lambda x: (x + table) * (x - table) + 0.0 - x * -0.0, rg.spec((3,)))
    model = onnx.load_from_string(to_bytes(graph, {}))
    stored = [onnx.numpy_helper.to_array(c) for c in model.graph.initializer]
    assert sum(np.array_equal(c, table) for c in stored) == 1
    assert {str(c) for c in stored if c.dtype == np.float32 and not c.shape} == {"0.0", "-0.0"}


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 3), (8, 4)])
def test_sizes_are_computed_from_the_axes_of_inputs(n, m):
    rows, columns = rg.Dim("N"), rg.Dim("M")

    def f(x):
        return rg.ones((2 * rows * columns + rows // 2 - 1,)).sum() + x.sum()

    graph = rg.trace(f, rg.spec((rows, columns)))
    (found,) = run(graph, [np.zeros((n, m), np.float32)])
    assert found == 2 * n * m + n // 2 - 1


def test_half_precision_is_computed_in_single_and_rounded_once():
    graph = rg.trace(lambda x: rg.sum(x), rg.spec((4096,), rg.float16))
    (found,) = run(graph, [np.full(4096, 1 / 3, np.float16)])
    assert found == np.float16(4096 * np.float64(np.float16(1 / 3)))
