"""Layers that learn their sizes from the first input."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.errors import ShapeError, TraceError

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...], tuple[Any, ...]]] = [
    ("Linear", (4,), {"bias": False}, (2, 5, 3), (3, 4)),
    *((f"Conv{r}d", (4, 3), {"padding": 1}, (2, 6, *(5,) * r), (6, 4, 3)) for r in (1, 2, 3)),
    ("Conv2d", (4, (2, 3)), {"groups": 2}, (6, 5, 5), (6, 4, (2, 3))),
    *((f"ConvTranspose{r}d", (4, 3), {"stride": 2}, (2, 6, *(3,) * r), (6, 4, 3))
      for r in (1, 2, 3)),
    ("BatchNorm1d", (1e-3,), {}, (5, 3), (3, 1e-3)),
    *((f"BatchNorm{r}d", (), {"momentum": None}, (2, 3, *(4,) * r), (3,)) for r in (1, 2, 3)),
    *((f"InstanceNorm{r}d", (), {"affine": True, "track_running_stats": True},
       (2, 3, *(4,) * r), (3,)) for r in (1, 2, 3)),
    ("InstanceNorm1d", (), {"track_running_stats": False, "affine": True}, (3, 4), (3,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "options", "shape", "plain"), CASES)
def test_becomes_the_layer_that_fits(
    name: str, given: Any, options: Any, shape: tuple[int, ...], plain: Any
) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    nn.init.seed(3)
    lazy: Any = getattr(nn, f"Lazy{name}")(*given, **options)
    y = lazy(x)
    nn.init.seed(3)
    ready = getattr(nn, name)(*plain, **options)
    np.testing.assert_array_equal(y.numpy(), ready(x).numpy())
    assert type(lazy) is type(ready)
    assert repr(lazy) == repr(ready)
    mine, theirs = lazy.state_dict(), ready.state_dict()
    assert list(mine) == list(theirs)
    for k in mine:
        np.testing.assert_array_equal(mine[k].numpy(), theirs[k].numpy())
    rg.sum(lazy(x) ** 2).backward()
    assert all(p.grad is not None for p in lazy.parameters())


def model() -> Any:
    return nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))


def test_nobody_misses_the_parameters_to_come() -> None:
    m = model()
    x = rg.ones((2, 3, 5, 5))
    for use in (
        lambda: list(m.parameters()),
        lambda: m.state_dict(),
        lambda: m.load_state_dict({}),
        lambda: m.to(rg.float64),
        lambda: optim.SGD(m, lr=0.1),
        lambda: rg.jit(lambda m, x: m(x))(m, x),
        lambda: rg.grad(lambda m: m(x).sum())(m),
    ):
        with pytest.raises(ShapeError, match=r"LazyConv2d at \[0\] .* call the model once"):
            use()
    with pytest.raises(ShapeError, match="LazyLinear has no parameters"):
        list(nn.LazyLinear(3).parameters())
    m(x)
    assert len(list(m.parameters())) == 6
    assert rg.jit(lambda m, x: m(x))(m, x).shape == (2, 2)


def test_evaluation_and_pickles() -> None:
    m = pickle.loads(pickle.dumps(model().eval()))
    assert "LazyConv2d(4, 3" in repr(m)
    m(rg.ones((2, 3, 5, 5)))
    assert not any(part.training for part in m.modules())
    assert m[1].num_batches_tracked.item() == 0


def test_shapes_without_a_size() -> None:
    with pytest.raises(ShapeError, match=r"LazyConv2d: .* no axis -3"):
        nn.LazyConv2d(4, 3)(rg.ones((5, 5)))
    for layer in (nn.LazyLinear(2), nn.LazyBatchNorm1d()):
        with pytest.raises(TraceError, match=r"Lazy.* cannot be inside jit"):
            rg.jit(lambda x, layer=layer: layer(x))(rg.ones((2, 3)))


@pytest.mark.torch
def test_against_torch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    for name, given, options, shape, _ in CASES[:-1]:  # PyTorch takes no instance without a batch
        theirs = getattr(torch.nn, f"Lazy{name}")(*given, **options)
        theirs(torch.ones(shape))
        lazy: Any = getattr(nn, f"Lazy{name}")(*given, **options)
        lazy(rg.ones(shape))
        found = {k: v.shape for k, v in lazy.state_dict().items()}
        assert found == {k: tuple(v.shape) for k, v in theirs.state_dict().items()}
