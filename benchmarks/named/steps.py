"""The workloads, with the sizes of batches, sequences and graphs named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.named.case import Case, at, every


def _workloads() -> Iterator[Case]:
    import retrograd as rg
    from benchmarks.workloads import chargpt, microgpt, mlp, moons
    from retrograd.nn import functional as F

    def gpt(tokens: Any, targets: Any, mask: Any, *p: Any) -> Any:
        return microgpt.retrograd_loss(
            dict(zip(microgpt.weights(), p, strict=True)), tokens, targets, mask
        )

    def stepped(loss: Callable[..., Any], count: int) -> Callable[..., Any]:
        """A step of gradient descent for parameters that come first."""

        def step(*given: Any) -> Any:
            value, slopes = rg.value_and_grad(loss, tuple(range(count)))(*given)
            return value, [w - 0.01 * g for w, g in zip(given, slopes, strict=False)]

        return step

    def shapes(arrays: Any) -> list[str]:
        return [" ".join(map(str, a.shape)) for a in arrays]

    def w1(*given: Any) -> Any:
        return gpt(*given[-3:], *given[:-3])

    p = list(microgpt.weights().values())
    yield Case(
        "W1, length named",
        stepped(w1, len(p)),
        (*shapes(p), "N < 27", "N < 27", "N N"),
        every(3, 7, 16),
    )

    def w2(*given: Any) -> Any:
        return moons.loss_of(given[:-2], given[-2], given[-1], rg.relu)

    w2_batch = ("2 16", "16", "16 16", "16", "16 1", "1", "N 2", "N")
    w2_all = ("D H", "H", "H H", "H", "H 1", "1", "N D", "N")
    yield Case("W2, batch named", stepped(w2, 6), w2_batch, every(1, 10, 100, 1000))
    yield Case("W2, all named", stepped(w2, 6), w2_all,
               at(N=(10, 100, 100, 1000), D=(2, 2, 3, 2), H=(16, 16, 33, 16)))  # fmt: skip

    def w3(*given: Any) -> Any:
        return mlp.loss_of(F, given[:-2], given[-2], given[-1])

    yield Case(
        "W3, batch named",
        stepped(w3, 6),
        (*shapes(mlp.turned()), "N 784", "N < 10"),
        every(1, 16, 128),
    )

    names = list(chargpt.weights())

    def w4(*given: Any) -> Any:
        return chargpt.retrograd_loss(dict(zip(names, given, strict=False)), given[-2], given[-1])

    w4_shapes = shapes(chargpt.weights().values())
    short = [s if n != "wpe" else "T 128" for n, s in zip(names, w4_shapes, strict=True)]
    yield Case(
        "W4, batch named",
        stepped(w4, len(names)),
        (*w4_shapes, "B 128 < 65", "B 128 < 65"),
        every(1, 4, names="B"),
    )
    yield Case(
        "W4, batch and length named",
        stepped(w4, len(names)),
        (*short, "B T < 65", "B T < 65"),
        at(B=(2, 4), T=(16, 64)),
    )

    def lenet(*given: Any) -> Any:
        *p, x, y = given
        h = F.max_pool2d(F.relu(F.conv2d(x, p[0], p[1])), 2)
        h = F.max_pool2d(F.relu(F.conv2d(h, p[2], p[3])), 2)
        return F.cross_entropy(F.linear(h.mean((2, 3)), p[4], p[5]), y)

    net = ("32 1 5 5", "32", "64 32 5 5", "64", "10 64", "10")
    yield Case("W5, batch named", stepped(lenet, 6), (*net, "N 1 28 28", "N < 10"), every(1, 8, 32))
    yield Case(
        "W5, height and width named",
        stepped(lenet, 6),
        (*net, "8 1 H W", "8 < 10"),
        every(16, 28, 40, names="H W"),
    )
    yield Case("W5, batch, height and width named", stepped(lenet, 6), (*net, "N 1 H W", "N < 10"),
               at(N=(1, 8, 32), H=(16, 28, 28), W=(20, 28, 28)))  # fmt: skip
    yield from _gcn(stepped)


def _gcn(stepped: Callable[..., Any]) -> Iterator[Case]:
    import retrograd as rg
    from retrograd.nn import functional as F

    def loss(*given: Any) -> Any:
        *p, x, source, target, y = given

        def propagate(h: Any) -> Any:
            m = h[source] * p[4][:, None]
            return rg.zeros((x.shape[0], h.shape[1])).at[target].add(m)

        h = rg.relu(propagate(x @ p[0]) + p[1])
        return F.cross_entropy(propagate(h @ p[2]) + p[3], y)

    yield Case(
        "W6, nodes and edges named", stepped(loss, 5),
        ("200 16", "16", "16 7", "7", "E", "N 200", "E < N", "E < N", "N < 7"),
        at(N=(10, 100, 2708), E=(20, 400, 10556)),
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """All of these."""
    for kind in (_workloads,):
        yield from kind()
