"""Weight and spectral norm in NumPy, and against PyTorch."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError

U = nn.utils.parametrizations
LAYERS: dict[str, Any] = {
    "Linear": (3, 4),
    "Conv2d": (3, 4, 2),
    "ConvTranspose1d": (3, 4, 2),
}


@pytest.mark.parametrize("dim", [0, 1, None, -1])
def test_weight_norm(dim: int | None) -> None:
    m: Any = nn.Linear(3, 4, dtype=rg.float64)
    w = m.weight.numpy().copy()
    nn.utils.weight_norm(m, dim=dim)
    axes = 1 - dim if dim in (0, 1) else None
    lengths = np.sqrt((w**2).sum(axis=axes, keepdims=axes is not None))
    np.testing.assert_allclose(m.parametrizations.weight.original0.numpy(), lengths)
    np.testing.assert_allclose(m.weight.numpy(), w, rtol=1e-12)
    m.parametrizations.weight.original1.replace(5 * w)
    np.testing.assert_allclose(m.weight.numpy(), w, rtol=1e-12)
    m.weight = 2 * w
    np.testing.assert_allclose(m.parametrizations.weight.original0.numpy(), 2 * lengths)


def test_spectral_norm() -> None:
    m: Any = nn.Linear(5, 4, dtype=rg.float64, generator=rg.random.Generator(0))
    w = m.weight.numpy().copy()
    U.spectral_norm(m, n_power_iterations=2)
    for _ in range(60):
        m(np.ones(5))
    top = np.linalg.svd(w)[1][0]
    m.eval()
    np.testing.assert_allclose(m.weight.numpy(), w / top, rtol=1e-6)
    u = m.parametrizations.weight[0]._u.numpy().copy()
    m(np.ones(5))
    np.testing.assert_array_equal(m.parametrizations.weight[0]._u.numpy(), u)
    m.train()
    m(np.ones(5))
    _, after = rg.jit(lambda m, x: (m(x), m))(m, np.ones(5))
    assert after.parametrizations.weight[0]._u.shape == (4,)
    vector: Any = nn.LayerNorm(4, dtype=rg.float64)
    U.spectral_norm(vector)
    np.testing.assert_allclose(vector.weight.numpy(), 0.5)
    with pytest.raises(OptionError, match="at least one iteration"):
        U.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(OptionError, match="no parameter 'w'"):
        U.spectral_norm(nn.Linear(2, 2), "w")


@pytest.mark.torch
@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_against_torch(kind: str, norm: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    made = getattr(torch.nn, kind)(*LAYERS[kind]).double()
    theirs = getattr(torch.nn.utils.parametrizations, norm)(made)
    mine: Any = getattr(U, norm)(getattr(nn, kind)(*LAYERS[kind], dtype=rg.float64))
    mine.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    assert list(mine.state_dict()) == list(theirs.state_dict())
    rng = np.random.default_rng(0)
    axes = {"Linear": 0, "Conv2d": 2, "ConvTranspose1d": 1}[kind]
    x = rng.normal(size=(2, 3, *[5] * axes))
    for _ in range(2):  # the power iteration goes on
        expected, found = theirs(torch.tensor(x)), mine(x)
        np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)
    expected.square().sum().backward()
    (found * found).sum().backward()
    for (_, p), (_, q) in zip(mine.named_parameters(), theirs.named_parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-8, atol=1e-11)
