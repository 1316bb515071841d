"""Layers, models and loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.named.case import Case, at, every, gradient_of


def _images() -> Iterator[Case]:
    from retrograd.nn import functional as F

    def conv(x: Any, w: Any) -> Any:
        return F.relu(F.conv2d(x, w, padding=1))

    def loss(x: Any, w: Any) -> Any:
        return (F.conv2d(x, w, padding=1) ** 2).sum()

    def pooled(x: Any) -> Any:
        return (F.max_pool2d(x, 2) ** 2).sum()

    batch, sides = every(1, 4, 16), every(6, 12, 28, names="H W")
    for what, shape, sizes in (
        ("batch", "N 8 14 14", batch), ("sides", "4 8 H W", sides),
    ):  # fmt: skip
        yield Case(f"convolution, {what} named", conv, (shape, "16 8 3 3"), sizes)
        yield Case(
            f"convolution and gradients, {what} named",
            gradient_of(loss, 2),
            (shape, "16 8 3 3"),
            sizes,
        )
        yield Case(f"max pooling, {what} named", lambda x: F.max_pool2d(x, 2), (shape,), sizes)
        yield Case(f"max pooling and gradient, {what} named", gradient_of(pooled), (shape,), sizes)
        yield Case(f"mean pooling, {what} named", lambda x: F.avg_pool2d(x, 2), (shape,), sizes)
        yield Case(
            f"depthwise convolution, {what} named",
            lambda x, w: F.conv2d(x, w, groups=8),
            (shape, "8 1 3 3"),
            sizes,
        )
    channels = at(C=(4, 8, 32), D=(8, 16, 32))
    yield Case("convolution, channels named", conv, ("4 C 14 14", "D C 3 3"), channels)
    yield Case(
        "convolution in one dimension, length named",
        F.conv1d,
        ("4 8 N", "16 8 5"),
        every(8, 50, 300),
    )


def _attention() -> Iterator[Case]:
    import retrograd as rg
    from retrograd.nn import functional as F

    def attend(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return (attend(q, k, v) ** 2).sum()

    def block(h: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
        b, t, c = h.shape
        a = F.layer_norm(h, (c,)) @ qkv
        parts = (a[..., j * c : (j + 1) * c] for j in range(3))
        q, k, v = (rg.swapaxes(z.reshape((b, t, 4, c // 4)), 1, 2) for z in parts)
        h = h + rg.swapaxes(attend(q, k, v), 1, 2).reshape((b, t, c)) @ out
        return ((h + F.gelu(F.layer_norm(h, (c,)) @ up) @ down) ** 2).sum()

    lengths, both = every(4, 16, 50, 128, names="T"), at(B=(1, 2, 4, 4), T=(4, 16, 50, 128))
    for what, shape, sizes in (
        ("batch", "B 4 32 16", every(1, 4, 16, names="B")),
        ("length", "2 4 T 16", lengths), ("batch and length", "B 4 T 16", both),
    ):  # fmt: skip
        yield Case(f"attention, {what} named", attend, (shape,) * 3, sizes)
        yield Case(
            f"attention and gradients, {what} named", gradient_of(loss, 3), (shape,) * 3, sizes
        )
    weights = ("64 192", "64 64", "64 256", "256 64")
    for what, shape, sizes in (
        ("batch", "B 32 64", every(1, 4, 16, names="B")),
        ("length", "2 T 64", lengths), ("batch and length", "B T 64", both),
    ):  # fmt: skip
        yield Case(
            f"block of a GPT and gradients, {what} named",
            gradient_of(block, 5),
            (shape, *weights),
            sizes,
        )


def _perceptrons() -> Iterator[Case]:
    import retrograd as rg
    from retrograd.nn import functional as F

    def loss(p: Any, q: Any, b: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(rg.tanh(x @ p + b) @ q, y)

    def step(p: Any, q: Any, b: Any, x: Any, y: Any) -> Any:
        value, slopes = rg.value_and_grad(loss, (0, 1, 2))(p, q, b, x, y)
        return value, [w - 0.1 * g for w, g in zip((p, q, b), slopes, strict=True)]

    for d, h, c in ((4, 8, 3), (20, 32, 10), (64, 128, 10)):
        yield Case(
            f"step of an MLP {d}-{h}-{c}, batch named", step,
            (f"{d} {h}", f"{h} {c}", f"{h}", f"N {d}", f"N < {c}"), every(1, 7, 32, 128),
        )  # fmt: skip
    yield Case(
        "step of an MLP, all named", step, ("D H", "H C", "H", "N D", "N < C"),
        at(N=(7, 32, 100, 128), D=(4, 20, 64, 64), H=(8, 32, 64, 128), C=(3, 10, 10, 10)),
    )  # fmt: skip


def _loops() -> Iterator[Case]:
    import retrograd as rg

    def recurrent(h: Any, w: Any, u: Any, xs: Any) -> Any:
        def body(s: Any, x: Any) -> Any:
            s = rg.tanh(s @ w + x @ u)
            return s, s

        return (rg.scan(body, h, xs)[1] ** 2).mean()

    def chain(x: Any, a: Any) -> Any:
        return rg.scan(lambda s, b: (rg.tanh(s * 1.001 + b), s), x, a)[1].sum()

    for width in (16, 64):
        shapes = (f"B {width}", f"{width} {width}", f"8 {width}", "T B 8")
        batch = every(1, 4, 16, 64, names="B")
        yield Case(f"recurrence of {width}, batch named", recurrent, (*shapes[:3], "20 B 8"), batch)
        yield Case(
            f"recurrence of {width} and gradients, batch named",
            gradient_of(recurrent, 3),
            (*shapes[:3], "20 B 8"),
            batch,
        )
        lengths = every(2, 10, 100, names="T")
        known = (f"4 {width}", *shapes[1:3], "T 4 8")
        yield Case(f"recurrence of {width}, length named", recurrent, known, lengths)
        yield Case(
            f"recurrence of {width} and gradients, length named",
            gradient_of(recurrent, 3),
            known,
            lengths,
        )
    yield Case(
        "recurrence and gradients, all named",
        gradient_of(recurrent, 3),
        ("B H", "H H", "D H", "T B D"),
        at(B=(1, 4, 16), H=(8, 16, 64), D=(3, 8, 20), T=(5, 20, 50)),
    )
    yield Case("chain of numbers, length named", chain, ("", "T"), every(3, 100, 5000, names="T"))
    yield Case("chain of vectors, width named", chain, ("N", "50 N"), every(3, 16, 100))


def _graphs() -> Iterator[Case]:
    import retrograd as rg

    def layer(h: Any, w: Any, a: Any, source: Any, target: Any) -> Any:
        m = (h @ w)[source] * a[:, None]
        return (rg.zeros((h.shape[0], w.shape[1])).at[target].add(m) ** 2).sum()

    yield Case(
        "graph convolution and gradients, nodes and edges named", gradient_of(layer, 3),
        ("N 16", "16 8", "E", "E < N", "E < N"), at(N=(5, 30, 300, 2700), E=(8, 100, 1500, 10500)),
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """All of these."""
    for kind in (
        _images,
        _attention,
        _perceptrons,
        _loops,
        _graphs,
    ):
        yield from kind()
