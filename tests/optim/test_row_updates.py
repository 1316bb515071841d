"""Steps of tables of which few rows were looked at, inside of programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.optim import row_updates

N = 400
OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda: optim.SGD(lr=0.1),
    "schedule": lambda: optim.SGD(lr=lambda count: 0.1 / (1 + count)),
    "Adagrad": lambda: optim.Adagrad(lr=0.1, lr_decay=0.01),
}
DENSE: dict[str, Any] = {
    "momentum": lambda: optim.SGD(lr=0.1, momentum=0.9),
    "weight_decay": lambda: optim.SGD(lr=0.1, weight_decay=0.1),
    "Adagrad with weight_decay": lambda: optim.Adagrad(lr=0.1, weight_decay=0.1),
    "Adam": lambda: optim.Adam(lr=0.1),
}


def one_lookup(tables: Any, index: Any) -> Any:
    return (tables[0][index] ** 3).sum()


def negative_indices(tables: Any, index: Any) -> Any:
    return (rg.take(tables[0], rg.where(index % 2 == 0, index, index - N), axis=0) ** 3).sum()


def two_lookups(tables: Any, index: Any) -> Any:
    first = nn.functional.embedding(index.reshape((2, -1)), tables[0], padding_idx=3, sparse=True)
    second = nn.functional.embedding(index[::2], tables[0])
    return (first * second[0]).sum() + (second**2).sum()


LOSSES = [one_lookup, negative_indices, two_lookups]


def table(dtype: Any = np.float32) -> Any:
    return np.random.default_rng(1).normal(size=(N, 3)).astype(dtype)


def batches() -> list[Any]:
    found = [np.random.default_rng(s).integers(0, 9, 40) for s in range(3)]
    return [*found, np.arange(40), np.zeros(40, np.int64)]


def stepped(opt: Any, loss: Any, compiled: bool, start: Any) -> Any:
    def step(tables: Any, state: Any, index: Any) -> Any:
        return opt.update(tables, rg.grad(lambda t: loss(t, index))(tables), state)

    if compiled:
        step = rg.jit(step, donate=("tables", "state"))
    tables = [rg.tensor(start.copy())]
    state = opt.init(tables)
    for index in batches():
        tables, state = step(tables, state, rg.tensor(index))
    slots = [x.numpy() for k in opt.slots for x in state[k]]
    return [tables[0].numpy(), *slots]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", [*OPTIMIZERS, *DENSE])
def test_steps_have_the_bits_of_the_whole_table(name: str, loss: Any) -> None:
    opt = {**OPTIMIZERS, **DENSE}[name]()
    whole = stepped(opt, loss, False, table())
    for got, expected in zip(stepped(opt, loss, True, table()), whole, strict=True):
        np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_a_large_table_make_nothing_of_its_size(
    name: str, loss: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even numbers of rows: then positions are put in order. The bits stay."""
    monkeypatch.setattr(row_updates.TUNING, "byte_ns", 1e6)
    opt = OPTIMIZERS[name]()
    whole = stepped(opt, loss, False, table())
    for got, expected in zip(stepped(opt, loss, True, table()), whole, strict=True):
        np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32))
    assert sizes_of(opt, loss, 40, rank=1)[0] == set()


def test_complex_tables() -> None:
    start = table(np.complex64) * (1 + 2j)
    opt = optim.Adagrad(lr=0.1)

    def loss(tables: Any, index: Any) -> Any:
        return (rg.abs(tables[0][index]) ** 2).sum()

    whole = stepped(opt, loss, False, start)
    for got, expected in zip(stepped(opt, loss, True, start), whole, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def sizes_of(opt: Any, loss: Any, count: int, rank: int = 2) -> tuple[set[str], int]:
    """The operations of a step that make an array of the table's size, and how many there are."""
    x, state = [rg.tensor(table())], opt.init([rg.tensor(table())])

    def step(tables: Any, state: Any, index: Any) -> Any:
        return opt.update(tables, rg.grad(lambda t: loss(t, index))(tables), state)

    graph = rg.trace(step, x, state, rg.zeros(count, dtype=rg.int64))
    large = [n.op for n in graph.nodes if n.type.shape[:1] == (N,) and n.type.rank == rank]
    return set(large) - {"input", "alias", "constant"}, len(large)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_nothing_of_the_size_of_the_table_is_computed(name: str, loss: Any) -> None:
    assert sizes_of(OPTIMIZERS[name](), loss, 40)[0] == {"scatter_set"}


@pytest.mark.parametrize("name", DENSE)
def test_where_all_rows_move_the_gradient_is_whole(name: str) -> None:
    assert "scatter_add" in sizes_of(DENSE[name](), one_lookup, 40)[0]


def test_where_many_rows_are_looked_at_the_gradient_is_whole() -> None:
    assert "scatter_add" in sizes_of(optim.SGD(lr=0.1), one_lookup, N // 2)[0]


def test_derivatives_of_a_step() -> None:
    """Of what a loss is after a step, with respect to the table before it."""
    opt, index = optim.SGD(lr=0.1), rg.tensor([3, 7, 3])

    def after(x: Any) -> Any:
        new, _ = opt.update([x], rg.grad(lambda t: one_lookup(t, index))([x]), opt.init([x]))
        return (new[0] ** 2)[:10].sum()

    x, v = table(np.float64), np.random.default_rng(2).normal(size=(N, 3))
    slope = rg.jit(rg.grad(after))(x).numpy()
    change = (after(rg.asarray(x + 1e-6 * v)) - after(rg.asarray(x - 1e-6 * v))).item() / 2e-6
    np.testing.assert_allclose((slope * v).sum(), change, rtol=1e-7)
