"""Programs of `torch.export` as graphs."""

import warnings
from typing import Any

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


def check_model(name: str) -> None:
    """Values at two sizes, and the gradient of every parameter, are those of PyTorch."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    from tests.interop.onnx.torch_models import MODELS

    torch.manual_seed(0)
    sample = MODELS[name]
    net = sample.model().eval()
    rng = np.random.default_rng(0)

    def drawn(shape: tuple[int, ...]) -> Any:
        whole = rng.integers(0, sample.words or 1, shape)
        return torch.from_numpy(whole if sample.words else rng.normal(size=shape).astype("f"))

    sizes = dict.fromkeys(range(sample.free), torch.export.Dim.AUTO)
    x = drawn(sample.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch about its own modules
        program = torch.export.export(net, (x,), dynamic_shapes=(sizes,))
    g = rg.interop.from_exported_program(program)
    parameters = dict(net.named_parameters())
    assert parameters.keys() <= {x.name for x in g.inputs}
    with rg.backend("reference"):
        for point in (x, drawn(sample.other)):
            y = net(point)
            found = g(point.numpy()).numpy()
            np.testing.assert_allclose(found, y.detach().numpy(), rtol=2e-4, atol=2e-5)
        weights = torch.randn_like(y)
        (y * weights).sum().backward()

        def f(values: Any) -> Any:
            return (g(point.numpy(), **values) * weights.numpy()).sum()

        slopes = rg.grad(f)({k: p.detach().numpy() for k, p in parameters.items()})
    for k, p in parameters.items():
        scale = 1e-2 + float(p.grad.abs().max())
        np.testing.assert_allclose(slopes[k].numpy(), p.grad.numpy(), rtol=0, atol=1e-4 * scale)


@pytest.mark.torch
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["resnet", "vit", "unet", "lstm", "gpt", "mobilenet"])
def test_models_of_the_usual_kinds(name: str) -> None:
    check_model(name)


@pytest.mark.torch
@pytest.mark.slow
def test_a_model_with_an_inner_loop() -> None:
    check_model("lstm")


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
