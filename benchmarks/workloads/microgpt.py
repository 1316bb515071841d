"""W1: microgpt, 4,192 parameters, one document per step, Adam.

One layer, width 16, 4 heads, RMSNorm, no biases; ten names in turn. Tensor peers compute all
positions of a document at once; `python` and `retrograd-value` are the same model in scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.workload import Session, Target, Workload, loop, needed, scanned
from benchmarks.workloads import scalar_gpt
from benchmarks.workloads.adam import eager, jax_adam, jax_state, retrograd_adam

NAMES = [
    *("emma", "olivia", "ava", "isabella", "sophia"),
    *("charlotte", "mia", "amelia", "harper", "evelyn"),
]
VOCABULARY, WIDTH, CONTEXT, HEADS = 27, 16, 16, 4
LR, BETAS = 0.01, (0.85, 0.99)
CHECKS = 20
LONGEST = max(map(len, NAMES)) + 1  # positions of a document when all are padded
IN_SCAN = 100  # steps in one call


def sequences() -> list[list[int]]:
    """The documents as tokens, each between two marks."""
    return [[26, *(ord(c) - 97 for c in name), 26] for name in NAMES]


def documents() -> list[tuple[Any, Any, Any]]:
    """Tokens, targets, and the mask that hides later positions."""
    pairs = [(np.array(s[:-1]), np.array(s[1:])) for s in sequences()]
    return [(x, y, causal(len(x))) for x, y in pairs]


def causal(n: int) -> Any:
    return np.triu(np.full((n, n), -1e9, np.float32), 1)


def padded(repeat: int) -> tuple[Any, Any, Any]:
    """Tokens, targets and weights of positions of `repeat` times ten documents, padded."""
    shape = (len(NAMES), LONGEST)
    tokens, targets = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    weights = np.zeros(shape, np.float32)
    for i, s in enumerate(sequences()):
        n = len(s) - 1
        tokens[i, :n], targets[i, :n], weights[i, :n] = s[:-1], s[1:], 1 / n
    return tuple(np.tile(a, (repeat, 1)) for a in (tokens, targets, weights))  # type: ignore[return-value]


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {
        "wte": (VOCABULARY, WIDTH), "wpe": (CONTEXT, WIDTH), "head": (VOCABULARY, WIDTH),
        **dict.fromkeys("qkvo", (WIDTH, WIDTH)),
        "up": (4 * WIDTH, WIDTH), "down": (WIDTH, 4 * WIDTH),
    }  # fmt: skip
    return {k: rng.normal(0, 0.08, s).astype(np.float32) for k, s in shapes.items()}


def model(p: Any, tokens: Any, mask: Any, norm: Any, relu: Any, softmax: Any, einsum: Any) -> Any:
    """Logits; the functions are the peer's."""
    n = tokens.shape[0]
    x = norm(p["wte"][tokens] + p["wpe"][:n])
    rest, h = x, norm(x)
    q, k, v = ((h @ p[w].T).reshape(n, HEADS, WIDTH // HEADS) for w in "qkv")
    a = softmax(einsum("ihd,jhd->hij", q, k) * (WIDTH // HEADS) ** -0.5 + mask)
    x = einsum("hij,jhd->ihd", a, v).reshape(n, WIDTH) @ p["o"].T + rest
    return (relu(norm(x) @ p["up"].T) @ p["down"].T + x) @ p["head"].T


# -- retrograd -----------------------------------------------------------------------------------
def retrograd_loss(p: Any, tokens: Any, targets: Any, mask: Any) -> Any:
    import retrograd as rg

    logits = model(p, tokens, mask, rg.rms_norm, rg.relu, rg.softmax, rg.einsum)
    return rg.nn.functional.cross_entropy(logits, targets)


def with_retrograd() -> Session:
    import retrograd as rg

    optimizer = rg.optim.Adam(lr=LR, betas=BETAS)
    step = rg.jit(retrograd_adam(retrograd_loss, optimizer), donate=("state",))
    p = {k: rg.tensor(v) for k, v in weights().items()}
    batches = [tuple(rg.tensor(a) for a in d) for d in documents()]
    return loop(step, (p, optimizer.init(p)), batches, lambda v: v.item())


def with_retrograd_eager() -> Session:
    import retrograd as rg

    p = {k: rg.tensor(v, requires_grad=True) for k, v in weights().items()}
    optimizer = rg.optim.Adam(list(p.values()), lr=LR, betas=BETAS)
    batches = [tuple(rg.tensor(a) for a in d) for d in documents()]
    return loop(eager(retrograd_loss, p, optimizer), None, batches, lambda v: v.item())


def with_retrograd_scan() -> Session:
    import retrograd as rg

    scan = needed(rg, "scan")
    mask = rg.tensor(causal(LONGEST))

    def loss(p: Any, tokens: Any, targets: Any, weight: Any) -> Any:
        logits = model(p, tokens, mask, rg.rms_norm, rg.relu, rg.softmax, rg.einsum)
        picked = rg.take_along_axis(rg.log_softmax(logits), targets[:, None], axis=1)
        return -(picked[:, 0] * weight).sum()

    optimizer = rg.optim.Adam(lr=LR, betas=BETAS)
    body = retrograd_adam(loss, optimizer)
    steps = rg.jit(lambda state, xs: scan(lambda s, x: body(s, *x), state, xs), donate=("state",))
    p = {k: rg.tensor(v) for k, v in weights().items()}
    batches = {n: tuple(map(rg.tensor, padded(n // len(NAMES)))) for n in (CHECKS, IN_SCAN)}
    return scanned(lambda s, n: steps(s, batches[n]), (p, optimizer.init(p)), CHECKS, IN_SCAN)


def with_retrograd_value() -> Session:
    import retrograd as rg

    return scalar_gpt.session(rg.Value, weights(), sequences())


def with_retrograd_value_jit() -> Session:
    import retrograd as rg

    return scalar_gpt.compiled_session(rg.Value, rg.jit, weights(), sequences())


# -- peers ---------------------------------------------------------------------------------------
def jax_logits(p: Any, tokens: Any, mask: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def norm(x: Any) -> Any:
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    return model(p, tokens, mask, norm, jax.nn.relu, jax.nn.softmax, jnp.einsum)


def jax_losses(p: Any, tokens: Any, targets: Any, mask: Any) -> Any:
    """The loss of each position."""
    import jax
    import jax.numpy as jnp

    logp = jax.nn.log_softmax(jax_logits(p, tokens, mask))
    return -jnp.take_along_axis(logp, targets[:, None], 1)[:, 0]


def with_jax() -> Session:
    import jax
    import jax.numpy as jnp

    body = jax_adam(lambda p, *d: jax_losses(p, *d).mean(), LR, BETAS)
    batches = [tuple(jnp.asarray(a) for a in d) for d in documents()]
    return loop(jax.jit(body, donate_argnums=0), jax_state(weights()), batches, float)


def with_jax_scan() -> Session:
    import jax
    import jax.numpy as jnp

    mask = jnp.asarray(causal(LONGEST))

    def loss(p: Any, tokens: Any, targets: Any, weight: Any) -> Any:
        return (jax_losses(p, tokens, targets, mask) * weight).sum()

    body = jax_adam(loss, LR, BETAS)
    steps: Callable[..., Any] = jax.jit(
        lambda state, xs: jax.lax.scan(lambda s, x: body(s, *x), state, xs), donate_argnums=0
    )
    batches = {n: tuple(map(jnp.asarray, padded(n // len(NAMES)))) for n in (CHECKS, IN_SCAN)}
    return scanned(lambda s, n: steps(s, batches[n]), jax_state(weights()), CHECKS, IN_SCAN)


def torch_loss(p: Any, tokens: Any, targets: Any, mask: Any) -> Any:
    import torch

    def norm(x: Any) -> Any:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)

    def softmax(x: Any) -> Any:
        return torch.softmax(x, -1)

    logits = model(p, tokens, mask, norm, torch.relu, softmax, torch.einsum)
    return torch.nn.functional.cross_entropy(logits, targets)


def with_torch(loss: Callable[..., Any] = torch_loss) -> Session:
    import torch

    p = {k: torch.tensor(v, requires_grad=True) for k, v in weights().items()}
    optimizer = torch.optim.Adam(p.values(), lr=LR, betas=BETAS, fused=True)
    batches = [tuple(torch.tensor(a) for a in d) for d in documents()]
    return loop(eager(loss, p, optimizer), None, batches, lambda v: v.item())


def with_torch_compile() -> Session:
    import torch

    return with_torch(torch.compile(torch_loss, dynamic=False))


def with_python() -> Session:
    return scalar_gpt.session(scalar_gpt.Value, weights(), sequences())


WORKLOAD = Workload(
    "W1",
    "microgpt, one document per step, Adam",
    {
        "retrograd": with_retrograd,
        "retrograd-eager": with_retrograd_eager,
        "retrograd-scan": with_retrograd_scan,
        "retrograd-value": with_retrograd_value,
        "retrograd-value-jit": with_retrograd_value_jit,
        "jax": with_jax,
        "jax-scan": with_jax_scan,
        "torch": with_torch,
        "torch-compile": with_torch_compile,
        "python": with_python,
    },
    checks=CHECKS,
    targets=(
        Target("retrograd", 6e-6, "jax", 112e-6),
        Target("retrograd-scan", 5e-6, "jax-scan", 41e-6),
    ),
    optional=frozenset({"torch-compile"}),
)
