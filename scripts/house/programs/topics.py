"""Programs written by hand: what random ones do not reach, and what is large enough for threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.nn import functional as F
from scripts.house.programs.case import Array, Case

# Methods of a generator, and what they are given.
DRAWS: dict[str, tuple[Any, ...]] = {
    "normal": ((33, 5),), "uniform": ((33, 5),), "bits": ((33, 5),), "exponential": (2.0, (33, 5)),
    "gamma": (2.0, 1.5, (33,)), "beta": (2.0, 3.0, (33,)), "poisson": (3.0, (33,)),
    "binomial": (10, 0.3, (33,)), "permutation": (9,), "randint": (0, 9, (33,)),
}  # fmt: skip


def cases() -> Iterator[Case]:
    yield from small()
    yield from large()


def normal(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(7)
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


def small() -> Iterator[Case]:
    yield from convolutions()
    yield from networks()
    yield from loops()
    yield from graphs()
    for n in (1, 2, 3, 7, 8, 9, 15, 17, 33, 64, 129, 1000):
        yield from widths(n)


def convolutions() -> Iterator[Case]:
    image, kernel = (2, 4, 9, 10), (6, 4, 3, 3)
    named = ("N 4 H W", "6 4 3 3")
    for what, f in (
        ("plain", lambda x, w: F.conv2d(x, w)),
        ("padded", lambda x, w: F.conv2d(x, w, padding=1)),
        ("stride", lambda x, w: F.conv2d(x, w, stride=2, padding=1)),
        ("dilated", lambda x, w: F.conv2d(x, w, dilation=2)),
    ):
        yield Case(f"conv {what}", f, normal(image, kernel), named)
    yield Case("conv grouped", lambda x, w: F.conv2d(x, w, groups=2), normal(image, (6, 2, 3, 3)))
    yield Case("conv depthwise", lambda x, w: F.conv2d(x, w, groups=4), normal(image, (4, 1, 3, 3)))
    yield Case("conv transposed", lambda x, w: rg.conv_transpose(x, w, stride=2),
               normal(image, (4, 3, 3, 3)))  # fmt: skip
    yield Case("conv 1d", lambda x, w: F.conv1d(x, w, padding=2), normal((2, 3, 20), (5, 3, 5)))
    yield Case("conv 3d", lambda x, w: F.conv3d(x, w), normal((1, 2, 5, 6, 5), (3, 2, 2, 3, 2)))
    for what, g in (
        ("max", lambda x: rg.max_pool(x, 2)),
        ("max overlapping", lambda x: rg.max_pool(x, 3, stride=1, padding=1)),
        ("mean", lambda x: rg.avg_pool(x, 3, stride=2)),
        ("adaptive", lambda x: F.adaptive_avg_pool2d(x, 3)),
        ("lp", lambda x: F.lp_pool2d(x, 2.0, 2)),
    ):
        yield Case(f"pool {what}", g, normal(image))
    yield Case("interpolate", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
               normal(image))  # fmt: skip
    yield Case("unfold", lambda x: F.unfold(x, 2, stride=2), normal(image))


def networks() -> Iterator[Case]:
    def attention(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def block(h: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
        b, t, c = h.shape
        a = F.layer_norm(h, (c,)) @ qkv
        parts = (a[..., j * c : (j + 1) * c] for j in range(3))
        q, k, v = (rg.swapaxes(rg.reshape(z, (b, t, 2, c // 2)), 1, 2) for z in parts)
        h = h + rg.reshape(rg.swapaxes(attention(q, k, v), 1, 2), (b, t, c)) @ out
        return h + F.gelu(F.layer_norm(h, (c,)) @ up) @ down

    def perceptron(x: Any, w: Any, b: Any, v: Any) -> Any:
        return F.cross_entropy(rg.tanh(x @ w + b) @ v, rg.arange(6) % 3)

    yield Case("attention", attention, normal(*[(2, 2, 7, 4)] * 3), ("B 2 T 4",) * 3)
    yield Case("block of a GPT", block, normal((2, 5, 8), (8, 24), (8, 8), (8, 16), (16, 8)),
               ("B T 8", "8 24", "8 8", "8 16", "16 8"))  # fmt: skip
    yield Case("perceptron", perceptron, normal((6, 5), (5, 9), (9,), (9, 3)))
    image, row = (3, 4, 5, 5), (4,)
    yield Case("batch norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
               normal(image, row, row))  # fmt: skip
    yield Case("group norm", lambda x: F.group_norm(x, 2), normal(image))
    yield Case("layer norm", lambda x, w, b: rg.layer_norm(x, w, b), normal((6, 9), (9,), (9,)),
               ("N D", "D", "D"))  # fmt: skip
    yield Case("rms norm", lambda x, w: rg.rms_norm(x, w), normal((6, 9), (9,)), ("N D", "D"))
    for name in (
        "mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "kl_div", "pairwise_distance",
        "binary_cross_entropy_with_logits", "cosine_similarity", "cdist",
    ):  # fmt: skip
        yield Case(name, getattr(F, name), normal((6, 4), (6, 4)))


def loops() -> Iterator[Case]:
    def recurrent(h: Any, w: Any, u: Any, xs: Any) -> Any:
        def body(s: Any, x: Any) -> Any:
            s = rg.tanh(s @ w + x @ u)
            return s, s

        return rg.scan(body, h, xs)[1]

    def gated(h: Any, w: Any, xs: Any) -> Any:
        def body(s: Any, x: Any) -> Any:
            z = rg.sigmoid(rg.concat([s, x]) @ w)
            return z * s + (1 - z) * rg.tanh(x), None

        return rg.scan(body, h, xs)[0]

    def newton(x: Any) -> Any:
        def far(s: Any) -> Any:
            return rg.any(rg.abs(s * s - 2.0) > 1e-3)

        return rg.while_loop(far, lambda s: 0.5 * (s + 2.0 / s), rg.abs(x) + 1.0, max_steps=50)

    def nested(x: Any) -> Any:
        def inner(c: Any, _: Any) -> Any:
            return rg.sin(c) + 0.1, None

        return rg.scan(lambda c, r: (rg.scan(inner, c * r, None, length=3)[0], c), x[0], x)

    yield Case("recurrent", recurrent, normal((3, 4), (4, 4), (5, 4), (6, 3, 5)),
               ("N 4", "4 4", "5 4", "T N 5"))  # fmt: skip
    yield Case("gated", gated, normal((4,), (8, 4), (7, 4)))
    yield Case("newton", newton, normal((5,)))
    yield Case("nested loops", nested, normal((4, 3)))
    yield Case("vmap of a loop", rg.vmap(recurrent_sum), normal((5, 6)))
    yield Case("checkpoint", lambda x: rg.checkpoint(lambda y: rg.sin(y) * rg.exp(-y * y))(x) * x,
               normal((4, 5)))  # fmt: skip
    yield Case("jacobian", rg.jacrev(lambda y: rg.tanh(y) * y[0]), normal((5,)), orders=1)
    yield Case("hvp", lambda x, v: rg.hvp(lambda y: (rg.sin(y) * y * y[0]).sum(), x, v),
               normal((5,), (5,)), orders=1)  # fmt: skip
    yield Case("jvp", lambda x, v: rg.jvp(lambda y: rg.softmax(y) * y, (x,), (v,)),
               normal((3, 5), (3, 5)), ("N M", "N M"))  # fmt: skip


def recurrent_sum(row: Any) -> Any:
    return rg.scan(lambda c, x: (rg.tanh(c + x), c), row[0], row)[0]


def graphs() -> Iterator[Case]:
    rows = rg.tensor([0, 2, 2, 1, 4, 4, 4])

    for name in ("sum", "mean", "max", "min", "prod", "softmax"):
        reduce = getattr(rg, f"segment_{name}")
        yield Case(f"segment {name}", lambda x, f=reduce: f(x, rows, 5), normal((7, 3)))
    for name in ("add", "set", "mul", "max", "min"):
        scatter = getattr(rg, f"scatter_{name}")
        yield Case(f"scatter {name}", lambda x, y, f=scatter: f(x, rows, y), normal((5, 3), (7, 3)))
    yield Case("embedding", lambda x: F.embedding(rows, x) * 2.0, normal((5, 3)))
    yield Case("indexing", lambda x: (x[rows, :], x[1:4, ::2], x[:, rg.tensor([0, -1])]),
               normal((5, 4)))  # fmt: skip
    yield Case("mask", lambda x: x[x > 0] * 2.0, normal((5, 4)), orders=0)
    yield Case("updates", lambda x, y: x.at[rows].add(y), normal((5, 3), (7, 3)))
    integers = np.random.default_rng(2).integers(-9, 9, (4, 5))
    for name in ("sum", "prod", "max", "sort", "argsort", "unique_values", "bitwise_invert"):
        yield Case(f"integers {name}", getattr(rg, name), [integers])
    yield Case("integers cumsum", lambda x: rg.cumsum(x, axis=0), [integers])
    for name, given in DRAWS.items():
        yield Case(f"draw {name}", drawing(name, given), normal((1,)), orders=0)


def drawing(name: str, given: tuple[Any, ...]) -> Callable[..., Any]:
    """A function that draws, for which what it is given is of no matter."""
    return lambda _: getattr(rg.random.Generator(11), name)(*given)


def widths(n: int) -> Iterator[Case]:
    """The ends of vectors and blocks: sums, products and sorts along an axis of n."""

    def sums(x: Any) -> Any:
        return x.sum(), x.sum(axis=0), x.sum(axis=1), rg.mean(x * x, axis=1)

    def rows(x: Any) -> Any:
        return rg.softmax(x), rg.logsumexp(x, axis=1), rg.cumsum(x, axis=1)

    def product(x: Any, y: Any) -> Any:
        return x @ rg.matrix_transpose(y), rg.matrix_transpose(x) @ y

    def chain(x: Any) -> Any:
        return rg.exp(-x * x) * rg.sin(3.0 * x + 1.0) + x / (1.0 + x * x)

    wide = normal((3, n))
    yield Case(f"sums {n}", sums, wide, ("3 N",), orders=1)
    yield Case(f"rows {n}", rows, wide, ("3 N",), orders=1)
    yield Case(f"product {n}", product, normal((6, n), (6, n)), ("6 N", "6 N"), orders=1)
    yield Case(f"chain {n}", chain, normal((n,)), ("N",), orders=1)


def large() -> Iterator[Case]:
    many = normal((400, 500))
    programs: dict[str, tuple[Callable[..., Any], list[Array]]] = {
        "chain": (lambda x: rg.exp(-x * x) * rg.sin(x) + rg.tanh(x), many),
        "sums": (lambda x: (x.sum(), x.sum(axis=0), rg.mean(x, axis=1), rg.max(x, axis=0)), many),
        "softmax": (lambda x: rg.softmax(x, axis=-1), many),
        "layer norm": (lambda x: rg.layer_norm(x), many),
        "sort": (lambda x: rg.sort(x, axis=1), many),
        "cumsum": (lambda x: rg.cumsum(x, axis=0), many),
        "sum of all": (lambda x: (x * x).sum(), normal((300_001,))),
        "product": (lambda x, y: rg.tanh(x @ y), normal((300, 200), (200, 250))),
        "batched product": (lambda x, y: x @ y, normal((8, 60, 70), (8, 70, 50))),
        "conv": (lambda x, w: F.relu(F.conv2d(x, w, padding=1)),
                 normal((16, 8, 28, 28), (16, 8, 3, 3))),
        "pool": (lambda x: rg.max_pool(x, 2), normal((16, 16, 28, 28))),
        "attention": (lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True),
                      normal((4, 4, 64, 16), (4, 4, 64, 16))),
        "scatter": (lambda x: rg.scatter_add(rg.zeros((50, 500)), rg.arange(400) % 50, x), many),
        "solve": (lambda x: rg.linalg.solve(x @ rg.matrix_transpose(x) + 100.0 * rg.eye(90), x),
                  normal((90, 90))),
        "scan": (lambda x: rg.scan(lambda c, r: (rg.tanh(c + r), c * r), x[0], x)[1], many),
    }  # fmt: skip
    for name, (f, arrays) in programs.items():
        yield Case(f"large {name}", f, arrays, threads=True)
