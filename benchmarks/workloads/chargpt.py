"""W4: a GPT on characters, 4 layers, 128 wide, 4 heads, 128 positions, batch 16, AdamW.

LayerNorm with weight and bias, GELU by tanh, no other biases, a head of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Target, Workload, loop
from benchmarks.workloads.adam import eager, jax_adam, jax_state, retrograd_adam

LAYERS, WIDTH, HEADS, CONTEXT, BATCH, VOCABULARY = 4, 128, 4, 128, 16, 65
LR, DECAY = 1e-3, 0.1
MATRICES = ("qkv", "out", "up", "down", "head")  # stored [out, in]; JAX gets [in, out]


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    c = WIDTH

    def normal(*shape: int) -> Any:
        return rng.normal(0, 0.02, shape).astype(np.float32)

    def norm(name: str) -> dict[str, Any]:
        return {f"{name}.w": np.ones(c, np.float32), f"{name}.b": np.zeros(c, np.float32)}

    p = {"wte": normal(VOCABULARY, c), "wpe": normal(CONTEXT, c), "head": normal(VOCABULARY, c)}
    p |= norm("last")
    for i in range(LAYERS):
        p |= norm(f"{i}.first") | norm(f"{i}.second")
        p |= {f"{i}.qkv": normal(3 * c, c), f"{i}.out": normal(c, c)}
        p |= {f"{i}.up": normal(4 * c, c), f"{i}.down": normal(c, 4 * c)}
    return p


def batches(convert: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    text = np.random.default_rng(1).integers(0, VOCABULARY, (4, BATCH, CONTEXT + 1))
    return [(convert(t[:, :-1].copy()), convert(t[:, 1:].copy())) for t in text]


def loss_of(F: Any, swap: Callable[[Any], Any], p: Any, x: Any, y: Any) -> Any:
    """The loss with the functions that torch and retrograd both have; `swap` exchanges the axes of
    positions and heads."""
    (b, t), c = x.shape, WIDTH
    h = F.embedding(x, p["wte"]) + p["wpe"]
    for i in range(LAYERS):
        a = F.layer_norm(h, (c,), p[f"{i}.first.w"], p[f"{i}.first.b"])
        a = F.linear(a, p[f"{i}.qkv"])
        parts = (a[..., j * c : (j + 1) * c] for j in range(3))
        q, k, v = (swap(z.reshape((b, t, HEADS, c // HEADS))) for z in parts)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + F.linear(swap(a).reshape((b, t, c)), p[f"{i}.out"])
        a = F.layer_norm(h, (c,), p[f"{i}.second.w"], p[f"{i}.second.b"])
        a = F.gelu(F.linear(a, p[f"{i}.up"]), approximate="tanh")
        h = h + F.linear(a, p[f"{i}.down"])
    h = F.layer_norm(h, (c,), p["last.w"], p["last.b"])
    return F.cross_entropy(F.linear(h, p["head"]).reshape((b * t, -1)), y.reshape((-1,)))


def retrograd_loss(p: Any, x: Any, y: Any) -> Any:
    import retrograd as rg

    return loss_of(rg.nn.functional, lambda a: rg.swapaxes(a, 1, 2), p, x, y)


def with_retrograd() -> Session:
    import retrograd as rg

    optimizer = rg.optim.AdamW(lr=LR, weight_decay=DECAY)
    step = rg.jit(retrograd_adam(retrograd_loss, optimizer), donate=("state",))
    p = {k: rg.tensor(w) for k, w in weights().items()}
    return loop(step, (p, optimizer.init(p)), batches(rg.tensor), lambda v: v.item())


def with_retrograd_eager() -> Session:
    import retrograd as rg

    p = {k: rg.tensor(w, requires_grad=True) for k, w in weights().items()}
    optimizer = rg.optim.AdamW(list(p.values()), lr=LR, weight_decay=DECAY)
    return loop(eager(retrograd_loss, p, optimizer), None, batches(rg.tensor), lambda v: v.item())


def torch_loss(p: Any, x: Any, y: Any) -> Any:
    import torch

    return loss_of(torch.nn.functional, lambda a: a.transpose(1, 2), p, x, y)


def with_torch(loss: Callable[..., Any] = torch_loss) -> Session:
    import torch

    p = {k: torch.tensor(w, requires_grad=True) for k, w in weights().items()}
    optimizer = torch.optim.AdamW(p.values(), lr=LR, weight_decay=DECAY, fused=True)
    return loop(eager(loss, p, optimizer), None, batches(torch.tensor), lambda v: v.item())


def with_torch_compile() -> Session:
    import torch

    return with_torch(torch.compile(torch_loss, dynamic=False))


def jax_loss(p: Any, x: Any, y: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def norm(x: Any, name: str) -> Any:
        mean = x.mean(-1, keepdims=True)
        var = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p[f"{name}.w"] + p[f"{name}.b"]

    (b, t), c = x.shape, WIDTH
    mask = jnp.tril(jnp.ones((t, t), bool))
    h = p["wte"][x] + p["wpe"]
    for i in range(LAYERS):
        parts = jnp.split(norm(h, f"{i}.first") @ p[f"{i}.qkv"], 3, -1)
        q, k, v = (z.reshape(b, t, HEADS, c // HEADS).swapaxes(1, 2) for z in parts)
        scores = q @ k.swapaxes(2, 3) * (c // HEADS) ** -0.5
        a = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ v
        h = h + a.swapaxes(1, 2).reshape(b, t, c) @ p[f"{i}.out"]
        a = jax.nn.gelu(norm(h, f"{i}.second") @ p[f"{i}.up"], approximate=True)
        h = h + a @ p[f"{i}.down"]
    logp = jax.nn.log_softmax(norm(h, "last") @ p["head"])
    return -jnp.take_along_axis(logp, y[..., None], -1).mean()


def with_jax() -> Session:
    import jax
    import jax.numpy as jnp

    turned = {
        k: np.ascontiguousarray(w.T) if k.split(".")[-1] in MATRICES else w
        for k, w in weights().items()
    }
    step = jax.jit(jax_adam(jax_loss, LR, weight_decay=DECAY), donate_argnums=0)
    return loop(step, jax_state(turned), batches(jnp.asarray), float)


WORKLOAD = Workload(
    "W4",
    "GPT on characters, 4 layers, 128 wide, T=128, batch 16, AdamW",
    {
        "retrograd": with_retrograd,
        "retrograd-eager": with_retrograd_eager,
        "jax": with_jax,
        "torch": with_torch,
        "torch-compile": with_torch_compile,
    },
    checks=5,
    targets=(Target("retrograd", 80e-3, "torch", 107e-3),),
    optional=frozenset({"torch-compile"}),
)
