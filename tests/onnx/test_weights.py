"""The initializers of ONNX models."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import FormatError
from retrograd.io import load_weights
from retrograd.onnx.weights import initializers

onnx = pytest.importorskip("onnx")


def model(*tensors):
    graph = onnx.helper.make_graph([], "g", [], [], list(tensors))
    return onnx.helper.make_model(graph)


def tensor(name, x):
    return onnx.numpy_helper.from_array(np.asarray(x), name)


def test_initializers():
    content = model(tensor("w", np.arange(6.0).reshape(2, 3)), tensor("n", np.int64(3)))
    found = initializers(content.SerializeToString(), "f")
    assert {k: v.tolist() for k, v in found.items()} == {"w": [[0, 1, 2], [3, 4, 5]], "n": 3}


def test_the_weights_of_an_exported_graph(tmp_path):
    linear = rg.nn.Linear(3, 2)
    graph = rg.trace(linear, rg.spec((1, 3)))
    graph.to_onnx(tmp_path / "a.onnx")
    found = load_weights(tmp_path / "a.onnx")
    for p in linear.parameters():
        assert any(x.shape == p.shape and (x.numpy() == p.numpy()).all() for x in found.values())


def test_what_is_refused():
    short = tensor("w", [1.0, 2.0])
    short.raw_data = short.raw_data[:5]
    huge = tensor("w", [1.0])
    huge.dims[0] = 1 << 60
    for content, says in [
        (model(tensor("w", [1.0]), tensor("w", [1.0])), "two initializers"),
        (model(short), "damaged"),
        (model(huge), "damaged"),
        (model(onnx.helper.make_tensor("w", onnx.TensorProto.STRING, [1], [b"x"])), "texts"),
    ]:
        with pytest.raises(FormatError, match=says):
            initializers(content.SerializeToString(), "f")
    whole = model(tensor("w", np.ones(100))).SerializeToString()
    with pytest.raises(FormatError, match="no ONNX model"):
        initializers(whole[:-50], "f")


def test_constants():
    def constant(name, **value):
        return onnx.helper.make_node("Constant", [], [name], **value)

    nodes = [
        constant("a", value=tensor("", np.eye(2))), constant("b", value_floats=[1.0, 2.0]),
        constant("c", value_int=3), onnx.helper.make_node("Relu", ["a"], ["y"]),
    ]  # fmt: skip
    graph = onnx.helper.make_graph(nodes, "g", [], [], [tensor("w", [1.0])])
    found = initializers(onnx.helper.make_model(graph).SerializeToString(), "f")
    wanted = {"w": [1.0], "a": [[1, 0], [0, 1]], "b": [1.0, 2.0], "c": 3}
    assert {k: v.tolist() for k, v in found.items()} == wanted
    assert found["c"].dtype == np.int64


def test_weights_in_another_file(tmp_path):
    arrays = {"w": np.arange(600.0).reshape(20, 30), "b": np.arange(7), "small": np.float32(3)}
    made = model(*[tensor(k, x) for k, x in arrays.items()])
    onnx.save_model(
        made, tmp_path / "a.onnx", save_as_external_data=True, location="a.bin", size_threshold=8
    )
    found = load_weights(tmp_path / "a.onnx")
    for k, x in arrays.items():
        np.testing.assert_array_equal(found[k].numpy(), x)
    whole = (tmp_path / "a.bin").read_bytes()
    (tmp_path / "a.bin").write_bytes(whole[:-100])
    with pytest.raises(FormatError, match=r"a\.bin.* bytes, not those .*cut"):
        load_weights(tmp_path / "a.onnx")
    (tmp_path / "a.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.bin"):
        load_weights(tmp_path / "a.onnx")


@pytest.mark.parametrize("location", ["../a.bin", "/etc/hostname", ""])
def test_no_file_elsewhere_is_read(location, tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(8))
    elsewhere = tensor("w", [1.0])
    elsewhere.ClearField("raw_data")
    elsewhere.data_location = onnx.TensorProto.EXTERNAL
    elsewhere.external_data.add(key="location", value=location)
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "a.onnx").write_bytes(model(elsewhere).SerializeToString())
    with pytest.raises(FormatError, match="not in the folder of the model"):
        load_weights(folder / "a.onnx")
