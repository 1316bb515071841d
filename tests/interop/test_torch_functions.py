"""as_torch, wrap_torch: values and derivatives are those of the same function there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.interop import as_torch, torch_functions, wrap_torch

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),  # PyTorch's own use
]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def ours(x: Any, w: Any, k: float) -> Any:
    return {"y": rg.sin(x @ w) * k, "place": x.argmax(), "cubes": (x**3).sum()}


def theirs(x: Any, w: Any, k: float) -> Any:
    return {"y": (x @ w).sin() * k, "place": x.argmax(), "cubes": (x**3).sum()}


def loss(f: Callable[..., Any]) -> Callable[..., Any]:
    def of(x: Any, w: Any) -> Any:
        found = f(x, w, 2.0)
        return (found["y"] ** 2).sum() + found["cubes"]

    return of


RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 2))


def close(found: Any, expected: Any) -> None:
    leaves = [pytree.flatten(t)[0] for t in (found, expected)]
    for a, b in zip(*leaves, strict=True):
        x, y = (v.detach().numpy() if hasattr(v, "detach") else np.asarray(v) for v in (a, b))
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_as_torch_passes_pytorchs_own_check(torch: Any) -> None:
    """First and second order, reverse and forward mode, against differences."""
    f = as_torch(ours)
    x, w = torch.tensor(X, requires_grad=True), torch.tensor(W, requires_grad=True)
    found = f(x, w, 2.0)
    close(found, theirs(x, w, 2.0))
    assert not found["place"].requires_grad
    check = torch.autograd.gradcheck
    assert check(lambda x, w: f(x, w, 2.0)["y"], (x, w), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(loss(f), (x, w))
    close(
        torch.autograd.grad(loss(f)(x, w), (x, w)), torch.autograd.grad(loss(theirs)(x, w), (x, w))
    )


def test_as_torch_under_torch_func(torch: Any) -> None:
    x, w = torch.tensor(X), torch.tensor(W)
    f = loss(as_torch(ours))
    for t in (torch.func.grad, torch.func.hessian, torch.func.jacrev, torch.func.jacfwd):
        close(t(f)(x, w), t(loss(theirs))(x, w))
    stack = torch.stack([x, 2 * x])
    close(torch.vmap(f, (0, None))(stack, w), torch.vmap(loss(theirs), (0, None))(stack, w))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "complex64", "complex128"])
def test_as_torch_dtypes(torch: Any, name: str) -> None:
    """Gradients of complex numbers follow PyTorch's convention."""
    x = torch.tensor([1.0, 3.0]).to(getattr(torch, name))
    if x.is_complex():
        x = x * (1 + 2j)
    grads = []
    for f in (as_torch(lambda x: x * x * 2 + x), lambda x: x * x * 2 + x):
        leaf = x.clone().requires_grad_()
        y = f(leaf)
        assert y.dtype is x.dtype
        y.backward(x.conj().resolve_conj())
        grads.append(leaf.grad)
    assert torch.equal(*grads)


def test_as_torch_keeps_its_memory_to_itself(torch: Any) -> None:
    """PyTorch writes to results, gradients and arguments as it likes."""
    f = as_torch(lambda x: (x, x * x))
    x = torch.ones(3, requires_grad=True)
    same, square = f(x)
    square.add_(5)
    same.mul_(0)
    square.sum().backward()
    x.grad.add_(1)
    assert x.tolist() == [1.0] * 3
    assert x.grad.tolist() == [3.0] * 3
    moved = x * 1
    y = as_torch(rg.sin)(moved)
    moved.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    z = as_torch(rg.square)(x).sum()
    x.grad = None
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad.tolist() == [4.0] * 3


def test_as_torch_arguments_and_results(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    index = torch.tensor([0, 0, 1])
    as_torch(lambda x, i, scale: (x[i] * scale).sum())(x, index, scale=3.0).backward()
    assert x.grad.tolist() == [6.0, 3.0]
    assert as_torch(lambda: rg.ones(2))().tolist() == [1.0, 1.0]
    found = as_torch(lambda x: {"one": 1, "none": None, "x": (x[:0], 2 * x)})(x)
    assert (found["one"], found["none"], found["x"][0].shape) == (1, None, (0,))
    with torch.no_grad():
        assert not as_torch(rg.sin)(x).requires_grad
    with torch.inference_mode():
        assert as_torch(rg.square)(torch.ones(1)).tolist() == [1.0]
    assert as_torch(rg.sin).__name__ == "sin"
    with pytest.raises(rg.ArgumentError, match="as_torch takes a function"):
        as_torch(3)  # type: ignore[arg-type]
    with pytest.raises(rg.BackendError, match=r"x\.cpu\(\)"):
        as_torch(rg.sin)(torch.ones(2, device="meta"))


def test_as_torch_differentiates_nothing_again(torch: Any, monkeypatch: Any) -> None:
    """A second call of the same kind finds its gradient; nothing gets to tensors of f's own."""
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    monkeypatch.delattr(torch_functions, "vjp")  # which would differentiate again
    dropout = rg.nn.Dropout(0.5)
    f = as_torch(lambda x, i, unused: (dropout(x * w)[i], x))
    for _ in range(3):
        x = torch.ones(2, requires_grad=True)
        unused = torch.ones(3, requires_grad=True)
        y, same = f(x, torch.tensor([1, 0]), unused)
        (y.sum() + same.sum()).backward(retain_graph=True)
        once = x.grad.clone()
        close(once, 1 + y.detach().flip(0))
        (y.sum() + same.sum()).backward()
        close(x.grad, 2 * once)
        assert unused.grad is None or unused.grad.tolist() == [0.0] * 3
        assert w.grad is None


def test_as_torch_in_a_module_with_an_optimizer_from_threads(torch: Any) -> None:
    """The same trajectory as PyTorch's own."""

    def train(activation: Callable[..., Any], out: list[Any]) -> None:
        torch.manual_seed(0)
        w = torch.nn.Parameter(torch.tensor(W))
        optimizer = torch.optim.Adam([w], lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            activation(torch.tensor(X) @ w).square().mean().backward()
            optimizer.step()
        out.append(w.detach())

    expected: list[Any] = []
    train(torch.tanh, expected)
    found: list[Any] = []
    f = as_torch(rg.jit(rg.tanh))
    threads = [threading.Thread(target=train, args=(f, found)) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    close(found, expected * 3)


def test_wrap_torch_under_every_transform(torch: Any) -> None:
    x, w = rg.tensor(X), rg.tensor(W)
    f = wrap_torch(theirs)
    close(f(x, w, 2.0), ours(x, w, 2.0))
    expected = rg.grad(loss(ours), (0, 1))(x, w)
    close(rg.grad(loss(f), (0, 1))(x, w), expected)
    close(rg.jit(rg.grad(loss(f), (0, 1)))(x, w), expected)
    close(rg.hessian(loss(f))(x, w), rg.hessian(loss(ours))(x, w))
    close(rg.jvp(loss(f), (x, w), (x, w)), rg.jvp(loss(ours), (x, w), (x, w)))
    stack = rg.stack([x, 2 * x])
    mapped = [rg.vmap(rg.grad(loss(g)), (0, None))(stack, w) for g in (f, ours)]
    close(*mapped)
    leaf = rg.tensor(X, requires_grad=True)
    for _ in range(3):
        loss(f)(leaf, w).backward()
    close(leaf.grad, 3 * expected[0])
    third = rg.grad(rg.grad(rg.grad(wrap_torch(torch.sin))))
    assert third(rg.tensor(0.3, rg.float64)).item() == pytest.approx(-np.cos(0.3), rel=1e-14)


def test_wrap_torch_modules_and_their_parameters(torch: Any) -> None:
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
    ).double()
    x = torch.tensor(X, requires_grad=True)
    net(x).square().sum().backward()
    f = wrap_torch(net)
    close(rg.grad(lambda x: (f(x) ** 2).sum())(rg.tensor(X)), x.grad)
    g = wrap_torch(lambda p, x: torch.func.functional_call(net, p, (x,)))
    found = rg.jit(rg.grad(lambda p: (g(p, X) ** 2).sum()))(rg.from_torch(net.state_dict()))
    close({**found}, {name: p.grad for name, p in net.named_parameters()})
    z = rg.tensor([1 + 2j, 3 - 1j])
    _, back = rg.vjp(wrap_torch(lambda z: z * z * (1 + 2j)), z)
    assert back(rg.tensor([1 + 1j, 2 - 1j]))[0].tolist() == [2 - 14j, 10 - 30j]  # PyTorch's


def test_wrap_torch_values_that_decide_shapes(torch: Any) -> None:
    f = wrap_torch(lambda x: x.nonzero())
    assert f(rg.tensor([0.0, 2.0, 3.0])).tolist() == [[1], [2]]
    assert f(rg.tensor([0.0, 2.0, 0.0])).tolist() == [[1]]
    with pytest.raises(rg.TraceError, match="without the values of its arguments"):
        rg.jit(f)(rg.ones(3))
    cut = wrap_torch(lambda x: torch.relu(x)[:0].sum() + 1)  # depends on nothing
    assert rg.grad(cut)(rg.ones(3)).tolist() == [0.0] * 3
    whole = wrap_torch(lambda x: x.argsort())
    with pytest.raises(rg.GradientError):
        rg.grad(lambda x: whole(x).sum())(rg.ones(3))
