"""Operations on arrays: elementwise, rows, reductions, products, order, indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.named.case import Case, at, every, gradient_of

LENGTHS = (3, 16, 100, 1000, 30000)
SIDES = (3, 7, 16, 33, 64, 200)


def _elementwise() -> Iterator[Case]:
    import retrograd as rg

    def chain(x: Any, y: Any) -> Any:
        return rg.tanh(x * y + 0.5) - x, rg.exp(-y * y)

    def strips(x: Any, b: Any) -> Any:
        return rg.relu(x * 1.5 + b)

    yield Case("elementwise, vectors", chain, ("N", "N"), every(*LENGTHS))
    square = every(*SIDES, names="N M")
    yield Case("elementwise, matrices", chain, ("N M", "N M"), square)
    yield Case("elementwise, a row for all", strips, ("N M", "M"), square)
    yield Case("elementwise, a column for all", strips, ("N M", "N 1"), square)
    yield Case("elementwise, columns named", strips, ("64 N", "N"), every(*SIDES))
    yield Case("elementwise, turned", lambda x, y: x.T * y, ("N M", "M N"), square)
    yield Case(
        "concatenation", lambda x, y: rg.concat([x, y * 2.0], axis=1), ("N M", "N M"), square
    )
    yield Case(
        "padding and slices", lambda x: rg.pad(x, ((1, 1), (1, 1)))[:-1, 1:] + 1.0, ("N M",), square
    )


def _rows() -> Iterator[Case]:
    import retrograd as rg
    from retrograd.nn import functional as F

    def norm(x: Any, w: Any) -> Any:
        return (F.layer_norm(x, (x.shape[-1],), w) ** 3).sum()

    def entropy(x: Any, y: Any) -> Any:
        return F.cross_entropy(x, y)

    square = every(*SIDES, names="N M")
    for what, shape, sizes in (
        ("rows", "N 64", every(*SIDES)),
        ("columns", "64 N", every(*SIDES)),
        ("both", "N M", square),
    ):
        yield Case(f"softmax, {what} named", lambda x: rg.softmax(x, -1), (shape,), sizes)
        yield Case(f"softmax down, {what} named", lambda x: rg.softmax(x, 0), (shape,), sizes)
        rows, columns = shape.split()
        yield Case(
            f"layer norm and gradient, {what} named", gradient_of(norm, 2), (shape, columns), sizes
        )
        labels = f"{rows} < {columns}"
        yield Case(
            f"cross-entropy and gradient, {what} named",
            gradient_of(entropy),
            (shape, labels),
            sizes,
        )


def _reductions() -> Iterator[Case]:
    import retrograd as rg

    square, cube = every(*SIDES, names="N M"), every(3, 8, 16, 40, names="N M K")
    yield Case("sum of a vector", lambda x: x.sum(), ("N",), every(*LENGTHS))
    for axis in (0, 1):
        yield Case(f"sum, axis {axis} of 2", lambda x, a=axis: x.sum(a), ("N M",), square)
        yield Case(f"max, axis {axis} of 2", lambda x, a=axis: x.max(a), ("N M",), square)
        yield Case(f"variance, axis {axis} of 2", lambda x, a=axis: x.var(a), ("N M",), square)
    for axis in (0, 1, 2):
        yield Case(f"sum, axis {axis} of 3", lambda x, a=axis: x.sum(a), ("N M K",), cube)
    yield Case("argmax along rows", lambda x: rg.argmax(x, 1), ("N M",), square)
    yield Case("argmax down columns", lambda x: rg.argmax(x, 0), ("N M",), square)


def _products() -> Iterator[Case]:
    def dot(a: Any, b: Any) -> Any:
        return a @ b

    def loss(a: Any, b: Any) -> Any:
        return ((a @ b) ** 2).sum()

    few = every(3, 8, 16, 32, 64, 128, 512)
    for other in (16, 64, 256):
        yield Case(f"product, rows named, {other}", dot, (f"N {other}", f"{other} {other}"), few)
        yield Case(f"product, columns named, {other}", dot, (f"{other} {other}", f"{other} N"), few)
        yield Case(f"product, sums named, {other}", dot, (f"{other} N", f"N {other}"), few)
    all_ = every(3, 8, 16, 32, 64, 128, 512, names="N M K")
    yield Case("product, all named", dot, ("N K", "K M"), all_)
    yield Case("product with a transpose, all named", lambda a, b: a @ b.T, ("N K", "M K"), all_)
    yield Case("product of a transpose, all named", lambda a, b: a.T @ b, ("K N", "K M"), all_)
    yield Case("product and gradients, all named", gradient_of(loss, 2), ("N K", "K M"), all_)
    yield Case("matrix by vector, all named", dot, ("N K", "K"), every(3, 16, 64, 300, names="N K"))
    yield Case("vector by matrix, all named", dot, ("K", "K N"), every(3, 16, 64, 300, names="N K"))
    yield Case(
        "stack of 16 x 16, stack named", dot, ("S 16 16", "S 16 16"), every(3, 30, 300, names="S")
    )
    stacks = at(S=(30, 30, 30, 30, 8), N=(3, 8, 16, 33, 100))
    yield Case("stack of squares, all named", dot, ("S N N", "S N N"), stacks)
    mixed = at(S=(30, 30, 30), N=(8, 16, 33), M=(16, 8, 20), K=(4, 16, 24))
    yield Case("stack, all named", dot, ("S N K", "S K M"), mixed)
    yield Case("stack and gradients, all named", gradient_of(loss, 2), ("S N K", "S K M"), mixed)


def _ordering() -> Iterator[Case]:
    import retrograd as rg

    square = every(*SIDES, names="N M")
    yield Case("sort", lambda x: rg.sort(x, axis=1), ("N M",), square)
    yield Case("argsort", lambda x: rg.argsort(x, axis=1), ("N M",), square)
    yield Case("sort of a vector", rg.sort, ("N",), every(*LENGTHS))
    yield Case("the 3 largest", lambda x: rg.topk(x, 3), ("N M",), square)
    yield Case("cumsum along rows", lambda x: rg.cumsum(x, 1), ("N M",), square)
    yield Case("cumsum down columns", lambda x: rg.cumsum(x, 0), ("N M",), square)
    yield Case("search", lambda x, v: rg.searchsorted(rg.sort(x), v), ("N", "M"), square)


def _indexing() -> Iterator[Case]:
    import retrograd as rg
    from retrograd.nn import functional as F

    def embedded(w: Any, i: Any) -> Any:
        return (F.embedding(i, w) ** 2).sum()

    three = at(N=(3, 20, 100, 1000), V=(10, 27, 100, 5000), D=(4, 16, 32, 64))
    yield Case("gather", lambda x, i: x[i], ("V D", "N < V"), three)
    yield Case("gather of elements", lambda x, i: x[i], ("V", "N < V"), three)
    yield Case("scatter", lambda x, i, u: x.at[i].add(u), ("V D", "N < V", "N D"), three)
    yield Case("scatter of elements", lambda x, i, u: x.at[i].add(u), ("V", "N < V", "N"), three)
    yield Case("embedding and gradient", gradient_of(embedded), ("V D", "N < V"), three)
    yield Case(
        "take along rows", lambda x, i: rg.take_along_axis(x, i, 1), ("N D", "N D < D"), three
    )


def cases() -> Iterator[Case]:
    """All of these."""
    for kind in (
        _elementwise,
        _rows,
        _reductions,
        _products,
        _ordering,
        _indexing,
    ):
        yield from kind()
