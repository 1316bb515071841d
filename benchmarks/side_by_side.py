"""Training steps beside PyTorch and JAX: forward, backward and update in float32, in one run.

    python benchmarks/side_by_side.py [--seconds S]

Two small workloads, where overhead decides: `microgpt` (one document per step, Adam; 4,192
parameters) and `moons` (an MLP 2-16-16-1 on 100 points, full batch, SGD). Each peer uses its usual
idiom: `retrograd.jit`, `jax.jit` with donated state, PyTorch eager with a fused optimizer. Peers
that are not installed are left out. All runs alternate, medians are printed, and the losses after
20 steps must agree.
"""

import argparse
import statistics
import time

import numpy as np

import retrograd as rg

NAMES = ["emma", "olivia", "ava", "isabella", "sophia", "charlotte", "mia", "amelia", "harper"]
VOCABULARY, WIDTH, CONTEXT, HEADS = 27, 16, 16, 4
STEPS = 20


def documents():
    codes = [[26, *(ord(c) - 97 for c in name), 26] for name in NAMES]
    pairs = [(np.array(c[:-1]), np.array(c[1:])) for c in codes]
    return [(x, y, np.triu(np.full((len(x), len(x)), -1e9, np.float32), 1)) for x, y in pairs]


def gpt_parameters():
    rng = np.random.default_rng(0)
    shapes = {
        "wte": (VOCABULARY, WIDTH), "wpe": (CONTEXT, WIDTH), "head": (VOCABULARY, WIDTH),
        **dict.fromkeys("qkvo", (WIDTH, WIDTH)),
        "up": (4 * WIDTH, WIDTH), "down": (WIDTH, 4 * WIDTH),
    }  # fmt: skip
    return {k: rng.normal(0, 0.08, s).astype(np.float32) for k, s in shapes.items()}


def gpt(p, tokens, mask, norm, relu, softmax, einsum):
    """Logits of the microgpt model; the functions are the peer's."""
    n = tokens.shape[0]
    x = norm(p["wte"][tokens] + p["wpe"][:n])
    rest, h = x, norm(x)
    q, k, v = ((h @ p[w].T).reshape(n, HEADS, WIDTH // HEADS) for w in "qkv")
    a = softmax(einsum("ihd,jhd->hij", q, k) * (WIDTH // HEADS) ** -0.5 + mask)
    x = einsum("hij,jhd->ihd", a, v).reshape(n, WIDTH) @ p["o"].T + rest
    return (relu(norm(x) @ p["up"].T) @ p["down"].T + x) @ p["head"].T


def adam(tree_map, sqrt, state, gradient):
    p, m, s, t = state
    t = t + 1
    m = tree_map(lambda m, g: 0.85 * m + 0.15 * g, m, gradient)
    s = tree_map(lambda s, g: 0.99 * s + 0.01 * g * g, s, gradient)
    one, two = 1 - 0.85**t, 1 - 0.99**t
    p = tree_map(lambda p, m, s: p - 0.01 * (m / one) / (sqrt(s / two) + 1e-8), p, m, s)
    return p, m, s, t


def gpt_retrograd():
    def loss(p, tokens, targets, mask):
        logits = gpt(p, tokens, mask, rg.rms_norm, rg.relu, rg.softmax, rg.einsum)
        return rg.nn.functional.cross_entropy(logits, targets)

    @rg.jit
    def step(state, *document):
        value, gradient = rg.value_and_grad(loss)(state[0], *document)
        return adam(rg.tree.map, rg.sqrt, state, gradient), value

    p = {k: rg.tensor(v) for k, v in gpt_parameters().items()}
    zeros = {k: rg.zeros(v.shape) for k, v in p.items()}
    return stepper(step, (p, zeros, zeros, rg.tensor(0.0)), documents(), lambda v: v.item())


def stepper(step, state, batches, number):
    """A function that runs one step on the next batch and returns the loss, and one that waits."""
    box = [state, 0]

    def run():
        box[0], value = step(box[0], *batches[box[1] % len(batches)])
        box[1] += 1
        return value

    return run, number


def gpt_jax():
    import jax
    import jax.numpy as jnp

    def norm(x):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def loss(p, tokens, targets, mask):
        logits = gpt(p, tokens, mask, norm, jax.nn.relu, jax.nn.softmax, jnp.einsum)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[:, None], 1).mean()

    def step(state, *document):
        value, gradient = jax.value_and_grad(loss)(state[0], *document)
        return adam(jax.tree.map, jnp.sqrt, state, gradient), value

    p = jax.tree.map(jnp.asarray, gpt_parameters())
    state = (p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), jnp.zeros(()))
    batches = [tuple(jnp.asarray(a) for a in d) for d in documents()]
    return stepper(jax.jit(step, donate_argnums=0), state, batches, float)


def gpt_torch():
    import torch

    F = torch.nn.functional

    def norm(x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)

    p = {k: torch.tensor(v, requires_grad=True) for k, v in gpt_parameters().items()}
    optimizer = torch.optim.Adam(p.values(), lr=0.01, betas=(0.85, 0.99), fused=True)

    def step(state, tokens, targets, mask):
        logits = gpt(
            p, tokens, mask, norm, torch.relu, lambda x: torch.softmax(x, -1), torch.einsum
        )
        loss = F.cross_entropy(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return state, loss

    batches = [tuple(torch.tensor(a) for a in d) for d in documents()]
    return stepper(step, None, batches, lambda v: v.item())


def moons():
    """Two interleaved half circles, labels -1 and 1, and the weights of an MLP 2-16-16-1."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, np.pi, 100)
    side = np.repeat([0, 1], 50)
    x = np.where(side, 1 - np.cos(angle), np.cos(angle))
    y = np.where(side, 0.5 - np.sin(angle), np.sin(angle))
    points = (np.stack([x, y], 1) + rng.normal(0, 0.1, (100, 2))).astype(np.float32)
    weights = [rng.uniform(-1, 1, s).astype(np.float32) for s in ((2, 16), (16, 16), (16, 1))]
    layers = [(w, np.zeros(w.shape[1], np.float32)) for w in weights]
    return points, (2 * side - 1).astype(np.float32), layers


def hinge(layers, x, y, relu):
    h = x
    for i, (w, b) in enumerate(layers):
        h = h @ w + b
        h = relu(h) if i < 2 else h
    penalty = sum((w * w).sum() + (b * b).sum() for w, b in layers)
    return relu(1 - y * h[:, 0]).mean() + 1e-4 * penalty


def moons_functional(transform, relu, tree_map, convert, jit, number):
    x, y, layers = moons()

    def step(layers, x, y):
        value, gradient = transform(lambda p: hinge(p, x, y, relu))(layers)
        return tree_map(lambda p, g: p - 0.01 * g, layers, gradient), value

    return stepper(jit(step), tree_map(convert, layers), [(convert(x), convert(y))], number)


def moons_retrograd():
    return moons_functional(
        rg.value_and_grad, rg.relu, rg.tree.map, rg.tensor, rg.jit, lambda v: v.item()
    )


def moons_jax():
    import jax
    import jax.numpy as jnp

    jit = lambda f: jax.jit(f, donate_argnums=0)  # noqa: E731
    return moons_functional(jax.value_and_grad, jax.nn.relu, jax.tree.map, jnp.asarray, jit, float)


def moons_torch():
    import torch

    x, y, layers = moons()
    p = [tuple(torch.tensor(a, requires_grad=True) for a in layer) for layer in layers]
    optimizer = torch.optim.SGD([a for layer in p for a in layer], lr=0.01, fused=True)

    def step(state, x, y):
        loss = hinge(p, x, y, torch.relu)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return state, loss

    return stepper(step, None, [(torch.tensor(x), torch.tensor(y))], lambda v: v.item())


WORKLOADS = {
    "microgpt": {"retrograd": gpt_retrograd, "jax": gpt_jax, "torch": gpt_torch},
    "moons": {"retrograd": moons_retrograd, "jax": moons_jax, "torch": moons_torch},
}


def measure(workload, peers, seconds):
    runs, losses, first = {}, {}, {}
    for name, make in peers.items():
        try:
            run, number = make()
        except ImportError:
            continue
        start = time.perf_counter()
        number(run())
        first[name] = time.perf_counter() - start
        for _ in range(STEPS - 2):
            run()
        losses[name] = number(run())
        runs[name] = (run, number)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(7):
        for name, (run, number) in runs.items():
            times[name].append(per_step(run, number, seconds / 7))
    for name in runs:
        micro = statistics.median(times[name]) * 1e6
        print(f"{workload:10} {name:10} {micro:9.1f} us/step   first step {first[name]:5.2f} s   "
              f"loss {losses[name]:.5f}")  # fmt: skip
    spread = max(losses.values()) - min(losses.values())
    assert spread < 1e-4, f"{workload}: the losses differ by {spread}"


def per_step(run, number, seconds):
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(10):
            value = run()
        steps += 10
    number(value)
    return (time.perf_counter() - start) / steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4, help="per workload and peer")
    seconds = parser.parse_args().seconds
    for workload, peers in WORKLOADS.items():
        measure(workload, peers, seconds)


if __name__ == "__main__":
    main()
