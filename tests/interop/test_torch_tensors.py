"""from_torch, to_torch: the same numbers, dtypes and memory."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import retrograd as rg

DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.torch
@pytest.mark.parametrize("name", DTYPES)
def test_numbers_dtypes_and_memory_stay(torch: Any, name: str) -> None:
    t = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, name))
    x = rg.from_torch(t)
    assert x.dtype is getattr(rg, name)
    assert x.shape == (2, 3)
    np.testing.assert_array_equal(x.numpy().astype(np.complex128), t.to(torch.complex128).numpy())
    back = rg.to_torch(x)
    assert back.dtype is t.dtype
    assert back.data_ptr() == t.data_ptr()
    own = rg.to_torch(x, copy=True)
    assert own.data_ptr() != t.data_ptr()
    assert torch.equal(own.to(torch.complex128), t.to(torch.complex128))
    turned = rg.from_torch(t.T)
    np.testing.assert_array_equal(turned.numpy(), x.numpy().T)
    assert rg.to_torch(rg.zeros((0, 2), dtype=x.dtype)).shape == (0, 2)


@pytest.mark.torch
def test_memory_is_shared_and_what_was_recorded_keeps_what_it_had(torch: Any) -> None:
    t = torch.zeros(3)
    x, own = rg.from_torch(t), rg.from_torch(t, copy=True)
    before = x + 1
    t += 5
    assert (x.tolist(), own.tolist(), before.tolist()) == ([5.0] * 3, [0.0] * 3, [1.0] * 3)
    y = rg.arange(3.0)
    w = rg.tensor([2.0, 2.0, 2.0], requires_grad=True)
    loss = (w * y).sum()
    rg.to_torch(y).add_(10)
    assert y.tolist() == [10.0, 11.0, 12.0]
    loss.backward()
    assert w.grad.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.torch
def test_trees_and_values_that_pytorch_has_in_other_ways(torch: Any) -> None:
    net = torch.nn.Linear(2, 1)
    state = rg.from_torch(net.state_dict())
    assert {k: v.shape for k, v in state.items()} == {"weight": (1, 2), "bias": (1,)}
    back = rg.to_torch({"p": state, "n": 3})
    assert back["n"] == 3
    assert torch.equal(back["p"]["weight"], net.weight.detach())
    z = torch.tensor([1 + 2j, 3 - 1j])
    assert rg.from_torch(z.conj()).tolist() == [1 - 2j, 3 + 1j]
    assert rg.from_torch(z.conj().imag).tolist() == [-2.0, 1.0]
    assert rg.from_torch(torch.ones(1).expand(3)).tolist() == [1.0] * 3
    assert rg.to_torch(np.arange(3)[::-1]).tolist() == [2, 1, 0]
    assert rg.from_torch(torch.tensor(2.5)).item() == 2.5


@pytest.mark.torch
def test_what_cannot_cross_says_what_to_do(torch: Any) -> None:
    t = torch.ones(2, requires_grad=True)
    with pytest.raises(rg.GradientError, match=r"x\.detach\(\), or use rg\.interop\.as_torch"):
        rg.from_torch(t)
    assert rg.from_torch(t.detach()).tolist() == [1.0, 1.0]
    with pytest.raises(rg.BackendError, match=r"on meta; pass x\.cpu\(\)"):
        rg.from_torch(torch.ones(2, device="meta"))
    with pytest.raises(rg.DTypeError, match=r"x\.to_dense\(\)"):
        rg.from_torch(torch.eye(2).to_sparse())
    with pytest.raises(rg.DTypeError, match="float8"):
        rg.from_torch(torch.zeros(2, dtype=torch.float8_e5m2))
    with pytest.raises(rg.ArgumentError, match=r"takes a torch\.Tensor"):
        rg.from_torch([1.0])
    with pytest.raises(rg.ArgumentError, match="takes a tensor"):
        rg.to_torch([1.0])
    with pytest.raises(rg.GradientError, match="detach"):
        rg.to_torch(rg.ones(2).requires_grad_())
    with pytest.raises(rg.TraceError, match="a number is needed"):
        rg.jit(rg.to_torch)(rg.ones(2))
    with pytest.raises(rg.GradientError, match="detach"):
        rg.grad(lambda x: rg.from_torch(rg.to_torch(x)).sum())(rg.ones(2))


def test_an_absent_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "jax"):
        monkeypatch.setitem(sys.modules, name, None)
    for f, name in (
        (rg.from_torch, "torch"), (rg.to_torch, "torch"), (rg.from_jax, "jax"), (rg.to_jax, "jax"),
        (rg.interop.as_torch, "torch"), (rg.interop.wrap_torch, "torch"),
        (rg.interop.as_jax, "jax"), (rg.interop.wrap_jax, "jax"),
    ):  # fmt: skip
        with pytest.raises(rg.BackendError, match=f"pip install {name}"):
            f(rg.sin)
