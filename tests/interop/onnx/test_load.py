"""`rg.load_onnx`: names, sizes, parameters, and files that are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg

onnx: Any = pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")
from retrograd.interop.onnx import graph_of  # noqa: E402

F32, I64 = 1, 7
TRAINING = "ai.onnx.preview.training"
W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
Described = tuple[str, int, Sequence[Any]]


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    return onnx.helper.make_node(operator, inputs, outputs, **attributes)


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Described],
    outputs: Sequence[str] = ("y",),
    opset: int = 21,
    **weights: Any,
) -> Any:
    h = onnx.helper
    graph = h.make_graph(
        list(nodes), "g", [h.make_tensor_value_info(*x) for x in inputs],
        [h.make_empty_tensor_value_info(y) for y in outputs],
        [onnx.numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()],
    )  # fmt: skip
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)])


def linear() -> Any:
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Tanh", ["h"], ["y"])]
    return model(nodes, [("x", F32, ["batch", 3])], w=W)


def test_sizes_keep_their_names_and_weights_are_parameters(tmp_path: Path) -> None:
    onnx.save(linear(), tmp_path / "m.onnx")
    g = rg.load_onnx(tmp_path / "m.onnx")
    assert [x.name for x in g.inputs] == ["x", "w"]
    assert str(g.inputs[0].shape) == "(batch, 3)"
    for n in (1, 4):
        x = np.ones((n, 3), np.float32)
        np.testing.assert_allclose(g(x).numpy(), np.tanh(x @ W), rtol=1e-6)
    x = np.ones((4, 3), np.float32)
    expected = x.T @ (1 - np.tanh(x @ W) ** 2)
    found = rg.grad(lambda w: g(x, w=w).sum())(W)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    d = g.gradient(wrt="w")
    np.testing.assert_allclose(d(x, W, np.ones((4, 2), np.float32)).numpy(), expected, rtol=1e-5)
    assert str(rg.load_onnx(tmp_path / "m.onnx", dims={"batch": 7}).inputs[0].shape) == "(7, 3)"


@pytest.mark.slow
def test_fine_tuned_and_exported_again(tmp_path: Path) -> None:
    onnx.save(linear(), tmp_path / "m.onnx")
    g = rg.load_onnx(tmp_path / "m.onnx")
    x, goal = np.eye(3, dtype=np.float32), np.full((3, 2), 0.25, np.float32)
    w = rg.nn.Parameter(rg.asarray(W))
    optimizer = rg.optim.Adam([w], lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        loss = ((g(x, w=w) - goal) ** 2).sum()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3
    tuned = g.with_parameters({"w": w})
    tuned.to_onnx(tmp_path / "again.onnx")
    again = rg.load_onnx(tmp_path / "again.onnx")
    assert [x.name for x in again.inputs] == ["x", "w"]
    expected = g(x, w=w.detach()).numpy()
    np.testing.assert_array_equal(again(x).numpy(), expected)
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    session = runtime.InferenceSession(
        str(tmp_path / "again.onnx"), providers=["CPUExecutionProvider"]
    )
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(expected, goal, atol=0.05)


def test_shapes_that_a_model_computes_stay_symbolic() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Gather", ["s", "one"], ["t"]),
        node("Mul", ["n", "t"], ["nt"]),
        node("Unsqueeze", ["nt", "axis"], ["nt1"]),
        node("Concat", ["nt1", "rest"], ["shape"], axis=0),
        node("Reshape", ["x", "shape"], ["flat"]),
        node("Cast", ["nt"], ["count"], to=F32),
        node("Div", ["flat", "count"], ["y"]),
    ]
    one: dict[str, Any] = {
        "zero": np.int64(0),
        "one": np.int64(1),
        "axis": np.array([0], np.int64),
        "rest": np.array([-1], np.int64),
    }
    g = graph_of(model(nodes, [("x", F32, ["N", "T", 2, 2])], **one), "m")
    assert str(g.outputs[0].shape) == "(N*T, 4)"
    for n, t in ((2, 3), (1, 1), (5, 2)):
        x = np.random.default_rng(0).normal(size=(n, t, 2, 2)).astype(np.float32)
        np.testing.assert_allclose(g(x).numpy(), x.reshape(n * t, 4) / np.float32(n * t), rtol=1e-6)


def test_values_that_decide_shapes_are_asked_for() -> None:
    m = model([node("Reshape", ["x", "s"], ["y"])], [("x", F32, [6]), ("s", I64, [2])])
    with pytest.raises(rg.TraceError, match=r"Reshape that makes 'y' needs the shape.*values="):
        graph_of(m, "m")
    assert graph_of(m, "m", {"s": [2, 3]})(np.ones(6, np.float32)).shape == (2, 3)
    with pytest.raises(rg.ArgumentError, match="has no input 'z'"):
        graph_of(m, "m", {"z": [2, 3]})


def branches(*values: float) -> list[Any]:
    h = onnx.helper
    return [
        h.make_graph(
            [node("Constant", [], ["c"], value_float=v), node("Mul", ["x", "c"], ["r"])],
            "b", [], [h.make_empty_tensor_value_info("r")],
        )
        for v in values
    ]  # fmt: skip


def test_choices_and_loops_stand_in_the_graph() -> None:
    then, other = branches(2.0, -1.0)
    m = model(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        [("x", F32, [2]), ("c", 9, [])],
    )
    g, x = graph_of(m, "m"), np.array([1, 3], np.float32)
    assert g(x, True).tolist() == [2, 6]
    assert g(x, False).tolist() == [-1, -3]
    assert rg.grad(lambda x: g(x, True).sum())(x).tolist() == [2, 2]
    h = onnx.helper
    body = h.make_graph(
        [
            node("Mul", ["v", "v"], ["w"]),
            node("ReduceSum", ["w"], ["t"], keepdims=0),
            node("Less", ["t", "limit"], ["again"]),
        ],
        "body",
        [h.make_empty_tensor_value_info(n) for n in ("i", "go", "v")],
        [h.make_empty_tensor_value_info(n) for n in ("again", "w")],
    )
    loop = model(
        [node("Loop", ["", "go", "x"], ["y"], body=body)],
        [("x", F32, [2])], go=np.bool_(True), limit=np.float32(100),
    )  # fmt: skip
    g = graph_of(loop, "m")
    assert g(np.array([1, 2], np.float32)).tolist() == [1, 256]
    counted = model(
        [node("Loop", ["n", "", "x"], ["y"], body=body)],
        [("x", F32, [2]), ("n", I64, [])], limit=np.float32(1e30),
    )  # fmt: skip
    g = graph_of(counted, "m")
    assert [g(np.array([1, 2], np.float32), n).tolist()[1] for n in (0, 1, 3)] == [2, 4, 256]


def test_weights_of_few_bits_are_read_where_they_are_dequantized() -> None:
    q = onnx.helper.make_tensor("q", onnx.TensorProto.INT4, [4], [-8, 7, 0, 1])
    nodes = [node("DequantizeLinear", ["q", "s"], ["w"]), node("Add", ["x", "w"], ["y"])]
    m = model(nodes, [("x", F32, [4])], s=np.float32(0.5))
    m.graph.initializer.append(q)
    assert graph_of(m, "m")(np.zeros(4, np.float32)).tolist() == [-4, 3.5, 0, 0.5]
    m.graph.node[0].op_type = "Sub"
    with pytest.raises(rg.BackendError, match=r"Sub is given numbers of dtype int4") as error:
        graph_of(m, "m")
    assert "at Sub that makes 'w'" in error.value.__notes__[0]


def test_parts_of_a_sequence_are_outputs() -> None:
    m = model([node("SplitToSequence", ["x"], ["y"], axis=0)], [("x", F32, [2, 3])])
    g = graph_of(m, "m")
    assert [y.name for y in g.outputs] == ["y_0", "y_1"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert [y.tolist() for y in g(x)] == [[[0, 1, 2]], [[3, 4, 5]]]


def test_a_sequence_that_is_an_input_is_given_its_parts() -> None:
    h = onnx.helper
    m = model([node("ConcatFromSequence", ["s"], ["y"], axis=0)], [])
    m.graph.input.append(h.make_tensor_sequence_value_info("s", F32, None))
    with pytest.raises(rg.BackendError, match="'s' of kind sequence_type"):
        graph_of(m, "m")
    parts = [np.ones(2, np.float32), np.zeros(1, np.float32)]
    assert graph_of(m, "m", {"s": parts})().tolist() == [1, 1, 0]


def test_gradients_that_a_model_asks_for() -> None:
    """y = x^2 w; its gradient, and that of the gradient, at another place."""
    nodes = [
        node("Mul", ["x", "x"], ["q"]),
        node("Mul", ["q", "w"], ["y"]),
        node("Gradient", ["at", "w"], ["dx", "dw"], domain=TRAINING, xs=["x", "w"], y="y"),
        node("Gradient", ["x"], ["ddx"], domain=TRAINING, xs=["at"], y="dx"),
    ]
    m = model(nodes, [(n, F32, [2]) for n in ("x", "w", "at")], outputs=("dx", "dw", "ddx"))
    m.opset_import.append(onnx.helper.make_opsetid(TRAINING, 1))
    x, w, at = np.array([1, 2], np.float32), np.array([3, 5], np.float32), np.array([4, 6])
    dx, dw, ddx = graph_of(m, "m")(x, w, at.astype(np.float32))
    assert dx.tolist() == [24, 60]
    assert dw.tolist() == [16, 36]
    assert ddx.tolist() == [6, 10]
    m.graph.node[2].input.pop()
    with pytest.raises(rg.FormatError, match="names 2 xs, 0 zs and has 1 inputs"):
        graph_of(m, "m")


def test_what_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    content = linear().SerializeToString()
    for bad in (b"", b"not a model", content[: len(content) // 2], content[:-3]):
        path.write_bytes(bad)
        with pytest.raises(rg.FormatError, match="no ONNX model"):
            rg.load_onnx(path)
    with pytest.raises(FileNotFoundError):
        rg.load_onnx(tmp_path / "none.onnx")
    with pytest.raises(rg.FormatError, match="pip install -U onnx"):
        graph_of_bytes(model([node("Relu", ["x"], ["y"])], [("x", F32, [1])], opset=999), tmp_path)


def graph_of_bytes(m: Any, folder: Path) -> Any:
    (folder / "m.onnx").write_bytes(m.SerializeToString())
    return rg.load_onnx(folder / "m.onnx")


def test_graphs_that_are_no_graphs(tmp_path: Path) -> None:
    a = [node("Add", ["x", "z"], ["y"]), node("Relu", ["y"], ["z"])]
    with pytest.raises(rg.FormatError, match=r"uses 'z' before it is made.* no cycle"):
        graph_of_bytes(model(a, [("x", F32, [1])]), tmp_path)
    twice = [node("Relu", ["x"], ["y"]), node("Tanh", ["x"], ["y"])]
    with pytest.raises(rg.FormatError, match="'y' is made twice, the second time by Tanh"):
        graph_of_bytes(model(twice, [("x", F32, [1])]), tmp_path)
    with pytest.raises(rg.FormatError, match="uses 'w', which nothing makes"):
        graph_of_bytes(model([node("Add", ["x", "w"], ["y"])], [("x", F32, [1])]), tmp_path)
    with pytest.raises(rg.FormatError, match="output 'y', which nothing makes"):
        graph_of_bytes(model([node("Relu", ["x"], ["z"])], [("x", F32, [1])]), tmp_path)
    with pytest.raises(rg.FormatError, match="no attribute 'axis'"):
        graph_of_bytes(model([node("Concat", ["x", "x"], ["y"])], [("x", F32, [1])]), tmp_path)


def test_operators_that_nothing_computes_are_told_at_once() -> None:
    strange = [
        onnx.helper.make_node("Mystery", ["x"], ["a"], domain="mine", name="first"),
        node("StringNormalizer", ["x"], ["b"]),
        onnx.helper.make_node("Mystery", ["a"], ["y"], domain="mine"),
    ]
    listed = r"mine:Mystery \(.*Mystery 'first', .*Mystery.*'y'\); StringNormalizer \(.*'b'\)"
    with pytest.raises(rg.BackendError, match=listed):
        graph_of(model(strange, [("x", F32, [1])]), "m")
    many = [onnx.helper.make_node("Mystery", ["x"], [f"y{k}"], domain="mine") for k in range(30)]
    with pytest.raises(rg.BackendError, match=r"'y7' and 22 more\)$"):
        graph_of(model([*many, node("Relu", ["x"], ["y"])], [("x", F32, [1])]), "m")
    with pytest.raises(rg.BackendError, match="the input 'x' is of dtype string"):
        graph_of(model([node("Identity", ["x"], ["y"])], [("x", 8, [1])]), "m")


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    m = linear()
    onnx.save(
        m, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    np.testing.assert_allclose(
        rg.load_onnx(tmp_path / "m.onnx")(np.ones((1, 3), np.float32)).numpy(),
        np.tanh(np.ones((1, 3), np.float32) @ W), rtol=1e-6,
    )  # fmt: skip
    outside = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    for place in ("../w.bin", "/etc/hostname"):
        outside.graph.initializer[0].external_data[0].value = place
        with pytest.raises(rg.FormatError, match="nothing else is read"):
            graph_of_bytes(outside, tmp_path)


def test_models_before_opset_13_are_converted() -> None:
    old = model([node("Clip", ["x"], ["y"], min=-1.0, max=1.0)], [("x", F32, [3])], opset=6)
    old.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", F32, [3]))
    from retrograd.interop.onnx.model import checked

    g = graph_of(checked(old, "m"), "m")
    assert g(np.array([-2, 0.5, 2], np.float32)).tolist() == [-1, 0.5, 1]


@pytest.mark.slow
def test_damaged_models_are_refused_or_read(tmp_path: Path) -> None:
    """Bytes changed at random: an error of this library, or a graph."""
    content = bytearray(linear().SerializeToString())
    rng = np.random.default_rng(0)
    for _ in range(400):
        bad = bytearray(content)
        for at in rng.integers(0, len(bad), rng.integers(1, 4)):
            bad[at] = rng.integers(256)
        (tmp_path / "m.onnx").write_bytes(bad)
        try:
            rg.load_onnx(tmp_path / "m.onnx")
        except rg.RetrogradError:
            continue


def test_positions_of_an_unknown_length() -> None:
    """As models of language have them: a part of a table, as long as the input."""
    nodes = [
        node("Shape", ["x"], ["t"], start=1, end=2),
        node("Squeeze", ["t"], ["n"]),
        node("Range", ["zero", "n", "one"], ["places"]),
        node("Gather", ["table", "places"], ["rows"]),
        node("Add", ["x", "rows"], ["y"]),
    ]
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    m = model(nodes, [("x", F32, ["B", "T", 2])], zero=np.int64(0), one=np.int64(1), table=table)
    g = graph_of(m, "m")
    for t in (1, 3, 5):
        np.testing.assert_array_equal(g(np.zeros((2, t, 2), np.float32))[1].numpy(), table[:t])
    slope = rg.grad(lambda w: g(np.zeros((2, 3, 2), np.float32), table=w).sum())(table)
    assert slope[:, 0].tolist() == [2, 2, 2, 0, 0]


def test_sizes_that_a_model_does_not_allow() -> None:
    m = model([node("Reshape", ["x", "s"], ["y"])], [("x", F32, ["N", 2])], s=np.array([3, 2]))
    with pytest.raises(rg.ShapeError) as error:
        graph_of(m, "m")
    assert "where the model is for some N only" in str(error.value.__notes__)
    assert graph_of(m, "m", dims={"N": 3})(np.zeros((3, 2), np.float32)).shape == (3, 2)


def test_parameters_that_decide_shapes_have_their_values() -> None:
    nodes = [node("Resize", ["x", "", "scales"], ["y"], mode="nearest")]
    scales = np.array([1, 1, 2, 2], np.float32)
    g = graph_of(model(nodes, [("x", F32, ["N", 1, 2, 2])], scales=scales), "m")
    assert g(np.ones((3, 1, 2, 2), np.float32)).shape == (3, 1, 4, 4)


def test_sizes_become_a_tensor_where_something_else_is_computed() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Tile", ["s", "two"], ["t"]),
        node("Pad", ["t", "widths"], ["p"]),
        node("TopK", ["p", "one"], ["y", "at"]),
    ]
    more: dict[str, Any] = {"two": np.array([2]), "widths": np.array([1, 0]), "one": np.array([1])}
    g = graph_of(model(nodes, [("x", F32, ["N", 3])], outputs=("p", "y"), **more), "m")
    padded, top = g(np.zeros((5, 3), np.float32))
    assert padded.tolist() == [0, 5, 3, 5, 3]
    assert top.tolist() == [5]
