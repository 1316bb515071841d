"""Values and gradients of composite functions against PyTorch, in float64."""

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
F = torch.nn.functional
pytestmark = pytest.mark.torch

rng = np.random.default_rng(0)
X = rng.normal(size=(4, 5))
Y = rng.normal(size=(4, 5))
W = rng.normal(size=(5, 3))
V = rng.normal(size=(5,))
Q, K, U = rng.normal(size=(3, 2, 4, 3))
LABELS = np.array([0, 2, 4, 1])
TABLE = rng.normal(size=(7, 3))
MASK = np.tril(np.ones((4, 4), bool))


def attention_rg(q, k, v):
    s = q @ rg.swapaxes(k, -1, -2) / math.sqrt(3)
    return rg.softmax(rg.where(MASK, s, -math.inf)) @ v


def attention_torch(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


CASES: dict[str, Any] = {
    "mlp": (lambda x, w: rg.tanh(x @ w).sum(axis=1), lambda x, w: torch.tanh(x @ w).sum(1), [X, W]),
    "softmax": (lambda x: rg.softmax(x) ** 2, lambda x: torch.softmax(x, -1) ** 2, [X]),
    "log_softmax": (rg.log_softmax, lambda x: torch.log_softmax(x, -1), [X * 50]),
    "cross entropy": (
        lambda x: -rg.take_along_axis(rg.log_softmax(x), LABELS[:, None], axis=1).mean(),
        lambda x: F.cross_entropy(x, torch.tensor(LABELS)), [X]),
    "indexed cross entropy": (
        lambda x: -rg.log_softmax(x)[np.arange(4), LABELS].mean(),
        lambda x: F.cross_entropy(x, torch.tensor(LABELS)), [X]),
    "layer norm": (lambda x, v: rg.layer_norm(x, v, v),
        lambda x, v: F.layer_norm(x, (5,), v, v), [X, V]),
    "rms norm": (lambda x, v: rg.rms_norm(x, v), lambda x, v: F.rms_norm(x, (5,), v, 1e-5), [X, V]),
    "gelu": (rg.gelu, F.gelu, [X * 3]),
    "gelu tanh": (lambda x: rg.gelu(x, approximate="tanh"),
        lambda x: F.gelu(x, approximate="tanh"), [X]),
    "silu": (rg.silu, F.silu, [X]),
    "elu": (rg.elu, F.elu, [X]),
    "leaky relu": (rg.leaky_relu, F.leaky_relu, [X]),
    "softplus": (rg.softplus, F.softplus, [X]),
    "log sigmoid": (rg.log_sigmoid, F.logsigmoid, [X * 30]),
    "attention": (attention_rg, attention_torch, [Q, K, U]),
    "logsumexp": (lambda x: rg.logsumexp(x, axis=0), lambda x: torch.logsumexp(x, 0), [X]),
    "variance": (lambda x: rg.var(x, axis=1), lambda x: torch.var(x, 1, correction=0), [X]),
    "std": (lambda x: rg.std(x, axis=0, correction=1), lambda x: torch.std(x, 0), [X]),
    "norm": (lambda x: rg.vector_norm(x, axis=1),
        lambda x: torch.linalg.vector_norm(x, dim=1), [X]),
    "norm 3": (lambda x: rg.vector_norm(x, axis=1, ord=3),
               lambda x: torch.linalg.vector_norm(x, 3, dim=1), [X]),
    "max": (lambda x: rg.max(x, axis=1), lambda x: torch.amax(x, 1), [np.round(X)]),
    "min": (lambda x: rg.min(x, axis=0), lambda x: torch.amin(x, 0), [np.round(X)]),
    "maximum": (rg.maximum, torch.maximum, [np.round(X), np.round(Y)]),
    "prod": (lambda x: rg.prod(x, axis=1), lambda x: torch.prod(x, 1), [np.where(X > 1, 0, X)]),
    "cumsum": (lambda x: rg.cumsum(x, axis=1) ** 2, lambda x: torch.cumsum(x, 1) ** 2, [X]),
    "quotient": (lambda x, y: x / (1 + y * y), lambda x, y: x / (1 + y * y), [X, Y]),
    "power": (lambda x, y: abs(x) ** y, lambda x, y: x.abs() ** y, [X, Y]),
    "atan2": (rg.atan2, torch.atan2, [X, Y]),
    "hypot": (rg.hypot, torch.hypot, [X, Y]),
    "logaddexp": (rg.logaddexp, torch.logaddexp, [X, Y]),
    "where": (lambda x, y: rg.where(x > y, x * y, y),
        lambda x, y: torch.where(x > y, x * y, y), [X, Y]),
    "clip": (lambda x: rg.clip(x, -0.5, 0.5), lambda x: torch.clamp(x, -0.5, 0.5), [X]),
    "embedding": (lambda t: rg.take(t, LABELS, axis=0) ** 2,
        lambda t: t[torch.tensor(LABELS)] ** 2, [TABLE]),
    "broadcast": (lambda x, v: x * v + v, lambda x, v: x * v + v, [X, V]),
    "einsum": (lambda q, k: rg.einsum("bid,bjd->bij", q, k),
        lambda q, k: torch.einsum("bid,bjd->bij", q, k), [Q, K]),
    "concat": (lambda x, y: rg.concat([x, y * 2], axis=1) ** 3,
               lambda x, y: torch.cat([x, y * 2], 1) ** 3, [X, Y]),
    "slices": (lambda x: x[1:, ::2] * x[:-1, ::2], lambda x: x[1:, ::2] * x[:-1, ::2], [X]),
    "flip": (lambda x: rg.flip(x, axis=1) * x, lambda x: torch.flip(x, (1,)) * x, [X]),
    "pad": (lambda x: rg.pad(x, [(1, 0), (0, 2)]) ** 2, lambda x: F.pad(x, (0, 2, 1, 0)) ** 2, [X]),
    "tril": (lambda x: rg.tril(x @ x.T), lambda x: torch.tril(x @ x.T), [X]),
    "trigonometry": (lambda x: rg.sin(x) * rg.cos(x) / rg.cosh(x),
        lambda x: torch.sin(x) * torch.cos(x) / torch.cosh(x), [X]),
    "inverse trigonometry": (lambda x: rg.asin(rg.tanh(x)) + rg.atan(x),
        lambda x: torch.asin(torch.tanh(x)) + torch.atan(x), [X]),
    "erf": (lambda x: rg.erf(x) * rg.exp(-x), lambda x: torch.erf(x) * torch.exp(-x), [X]),
    "remainder": (lambda x, y: rg.remainder(x, y), torch.remainder, [X, Y]),
    "outer": (rg.outer, torch.outer, [V, V * 2]),
    "stacked matmul": (lambda q, k: q @ k.swapaxes(1, 2), lambda q, k: q @ k.mT, [Q, K]),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name, backend):
    ours, theirs, arrays = CASES[name]
    given = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = theirs(*given)
    seed = np.random.default_rng(1).normal(size=tuple(expected.shape))
    expected.backward(torch.tensor(seed))
    with rg.backend(backend):
        leaves = [rg.tensor(a, requires_grad=True) for a in arrays]
        y = ours(*leaves)
        y.backward(seed=seed)
        np.testing.assert_allclose(y.numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)
        for x, t in zip(leaves, given, strict=True):
            np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.filterwarnings(r"ignore:.*torch\.jit:DeprecationWarning")  # inside PyTorch itself,
@pytest.mark.filterwarnings(r"ignore:.*torch\.jit:FutureWarning")  # in some of its versions
@pytest.mark.parametrize("name", ["mlp", "softmax", "layer norm", "gelu", "attention", "logsumexp"])
def test_hessian_vector_product(name):
    ours, theirs, arrays = CASES[name]
    directions = [np.random.default_rng(2).normal(size=a.shape) for a in arrays]
    given = [torch.tensor(a) for a in arrays]
    numbers = tuple(range(len(arrays)))
    _, expected = torch.func.jvp(
        torch.func.grad(lambda *a: (theirs_math(name, theirs)(*a) ** 2).sum(), argnums=numbers),
        tuple(given), tuple(torch.tensor(d) for d in directions),
    )  # fmt: skip
    with rg.backend("reference"):
        gradient = rg.grad(lambda *a: (ours(*a) ** 2).sum(), argnums=numbers)
        _, got = rg.jvp(gradient, arrays, directions)
        for one, two in zip(got, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-8, atol=1e-10)


def theirs_math(name, f):
    """PyTorch's fused attention has no forward mode; written out it has."""
    if name != "attention":
        return f

    def written_out(q, k, v):
        s = q @ k.mT / math.sqrt(3)
        return torch.softmax(s.masked_fill(~torch.tensor(MASK), -math.inf), -1) @ v

    return written_out
