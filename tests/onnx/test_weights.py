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
    elsewhere = tensor("w", [1.0])
    elsewhere.data_location = onnx.TensorProto.EXTERNAL
    short = tensor("w", [1.0, 2.0])
    short.raw_data = short.raw_data[:5]
    huge = tensor("w", [1.0])
    huge.dims[0] = 1 << 60
    for content, says in [
        (model(elsewhere), "lies in another file"),
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
