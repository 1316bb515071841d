"""Random numbers of models: their laws, and that they are the same each time."""

from typing import Any

import numpy as np
import pytest

from retrograd.interop.onnx import graph_of
from tests.interop.onnx.test_load import F32, model, node


def drawn(nodes: Any, inputs: Any = (), *arrays: Any, **weights: Any) -> Any:
    m = model(nodes, inputs, **weights)
    first, again = (graph_of(m, "m")(*arrays).numpy() for _ in range(2))
    np.testing.assert_array_equal(first, again)
    return first


@pytest.mark.parametrize("like", [False, True])
def test_moments(like: bool) -> None:
    given = ["x"] if like else []
    more: dict[str, Any] = {} if like else {"shape": [40, 50]}
    x: dict[str, Any] = {"x": np.zeros((40, 50), np.float32)} if like else {}
    suffix = "Like" if like else ""
    normal = node(f"RandomNormal{suffix}", given, ["y"], mean=2.0, scale=3.0, seed=1.0, **more)
    y = drawn([normal], **x)
    assert y.shape == (40, 50)
    assert abs(y.mean() - 2) < 0.3
    assert abs(y.std() - 3) < 0.2
    uniform = node(f"RandomUniform{suffix}", given, ["y"], low=-1.0, high=2.0, seed=1.0, **more)
    z = drawn([uniform], **x)
    assert -1 <= z.min() < -0.9
    assert 1.9 < z.max() < 2
    other = node(f"RandomUniform{suffix}", given, ["y"], low=-1.0, high=2.0, seed=2.0, **more)
    assert (z != drawn([other], **x)).any()


def test_bernoulli() -> None:
    p = np.full((40, 50), 0.25, np.float32)
    y = drawn([node("Bernoulli", ["x"], ["y"], seed=1.0)], [("x", F32, [40, 50])], p)
    assert set(np.unique(y)) == {0, 1}
    assert abs(y.mean() - 0.25) < 0.04


def test_dropout_in_training() -> None:
    nodes = [node("Dropout", ["x", "r", "t"], ["y"], seed=3)]
    weights: dict[str, Any] = {"r": np.float32(0.5), "t": np.bool_(True)}
    y = drawn(nodes, [("x", F32, [40, 50])], np.ones((40, 50), np.float32), **weights)
    assert set(np.unique(y)) == {0, 2}
    assert abs(y.mean() - 1) < 0.1
