"""`Module.to_onnx`: a module with its weights under their names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")


def net() -> Any:
    layers = rg.nn.Linear(3, 8), rg.nn.BatchNorm1d(8), rg.nn.Dropout(0.5), rg.nn.Linear(8, 2)
    return rg.nn.Sequential(*layers).eval()


def test_weights_have_their_names_and_values(tmp_path: Path) -> None:
    model = net()
    model.to_onnx(tmp_path / "m.onnx", rg.spec((rg.Dim("N"), 3)))
    g = rg.load_onnx(tmp_path / "m.onnx")
    state = model.state_dict()
    assert g.inputs[0].name == "input"
    unused = {"1.num_batches_tracked", "2.generator.key", "2.generator.count"}
    assert set(g.parameters()) == set(state) - unused
    for name, value in g.parameters().items():
        np.testing.assert_array_equal(value, state[name].detach().numpy())
    with rg.backend("reference"):
        for n in (1, 5):
            x = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
            np.testing.assert_array_equal(g(x).numpy(), model(x).numpy())
    x = np.ones((2, 3), np.float32)
    model(x).sum().backward()
    slope = rg.grad(lambda w: g(x, **{"0.weight": w}).sum())(state["0.weight"].detach())
    np.testing.assert_allclose(slope.numpy(), model[0].weight.grad.numpy(), rtol=1e-5)


def test_a_weight_that_is_shared_is_written_once(tmp_path: Path) -> None:
    class Tied(rg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = rg.nn.Linear(2, 2, bias=False)
            self.b = rg.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x: Any, *, twice: Any = None) -> Any:
            y = self.b(self.a(x))
            return y if twice is None else y * twice

    model = Tied()
    model.to_onnx(tmp_path / "m.onnx", rg.spec((1, 2)), twice=rg.spec(()))
    g = rg.load_onnx(tmp_path / "m.onnx")
    assert [x.name for x in g.inputs] == ["x", "twice", "a.weight"]
    x = np.ones((1, 2), np.float32)
    np.testing.assert_allclose(g(x, np.float32(2)).numpy(), 2 * model(x).detach().numpy())


def test_what_onnx_lacks_is_refused(tmp_path: Path) -> None:
    class Inverse(rg.nn.Module):
        def forward(self, x: Any) -> Any:
            return rg.linalg.inv(x)

    with pytest.raises(rg.BackendError, match="no counterpart"):
        Inverse().to_onnx(tmp_path / "m.onnx", rg.spec((2, 2)))
    assert not list(tmp_path.iterdir())
