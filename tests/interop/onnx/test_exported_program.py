"""Programs of `torch.export` as graphs."""

import numpy as np
import pytest

import retrograd as rg


@pytest.mark.torch
def test_values_and_gradients_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2)
    )
    n = torch.export.Dim("n")
    program = torch.export.export(net, (torch.ones(2, 3),), dynamic_shapes=({0: n},))
    g = rg.interop.from_exported_program(program)
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    out = net(torch.from_numpy(x))
    np.testing.assert_allclose(g(x).numpy(), out.detach().numpy(), rtol=1e-5, atol=1e-6)
    (out**2).sum().backward()
    weight = net[0].weight
    found = rg.grad(lambda w: (g(x, **{"0.weight": w}) ** 2).sum())(weight.detach().numpy())
    np.testing.assert_allclose(found.numpy(), weight.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.torch
def test_anything_else() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(rg.ArgumentError, match=r"not a Linear: torch\.export\.export"):
        rg.interop.from_exported_program(torch.nn.Linear(1, 1))


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(rg.BackendError, match="from_exported_program needs torch"):
        rg.interop.from_exported_program(None)
