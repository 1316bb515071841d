"""Row-sparse gradients of tables, and the optimizers that take them."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.errors import IndexRangeError, ShapeError
from retrograd.functions.tensor.sparse_grad import EmbeddingLeaf, RowSparse

OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda m: optim.SGD(m, lr=0.1),
    "Adagrad": lambda m: optim.Adagrad(m, lr=0.1, lr_decay=0.01),
}


def tables(sparse: bool) -> nn.Embedding:
    made = nn.Embedding(50, 3, sparse=sparse)
    made.weight.replace(np.random.default_rng(1).standard_normal((50, 3)))
    return made


def batches() -> list[Any]:
    return [np.random.default_rng(s).integers(0, 50, (4, 2)) for s in range(5)]


def test_the_gradient_is_that_of_the_rows() -> None:
    a, b = tables(True), tables(False)
    index = np.array([[3, 7], [3, 0]])
    for table in (a, b):
        ((table(index) ** 3).sum() + table([7]).sum()).backward()
    g = a.weight.grad
    assert isinstance(g, RowSparse)
    assert sorted(g.rows.tolist()) == [0, 3, 3, 7, 7]
    assert g.coalesce().rows.tolist() == [0, 3, 7]
    np.testing.assert_allclose(g.numpy(), b.weight.grad.numpy(), 1e-14)
    (a.weight**2).sum().backward()  # and a dense one
    (b.weight**2).sum().backward()
    np.testing.assert_allclose(a.weight.grad.numpy(), b.weight.grad.numpy(), 1e-14)
    a.zero_grad()
    assert a.weight.grad is None


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_the_whole_table(name: str) -> None:
    """Where a row that is not looked at does not move."""
    found = []
    for sparse in (True, False):
        table = tables(sparse)
        opt = OPTIMIZERS[name](table)
        for index in batches():
            loss = (table(index) ** 2).sum()
            loss.backward()
            opt.step()
            opt.zero_grad()
        found.append((table.weight.numpy().copy(), loss.item()))
    np.testing.assert_allclose(found[0][0], found[1][0], 1e-13)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-13)


@pytest.mark.torch
def test_adam_moves_the_rows_that_were_looked_at() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    table = tables(True)
    theirs = torch.nn.Embedding(50, 3, sparse=True).double()
    with torch.no_grad():
        theirs.weight.copy_(torch.tensor(table.weight.numpy().copy()))
    a = optim.Adam(table, lr=0.1, eps=1e-16)
    b = torch.optim.SparseAdam(theirs.parameters(), lr=0.1, eps=1e-16)
    for index in batches():
        (table(index) ** 2).sum().backward()
        (theirs(torch.tensor(index)) ** 2).sum().backward()
        a.step()
        b.step()
        a.zero_grad()
        b.zero_grad()
        # PyTorch adds eps before it corrects v: the same where eps is nothing.
        want = theirs.weight.detach().numpy()
        np.testing.assert_allclose(table.weight.numpy(), want, rtol=1e-9, atol=1e-12)


def test_what_others_see_stays_as_it_is() -> None:
    """A step changes the table in place only where nobody looks at it."""
    table = tables(True)
    opt = optim.Adagrad(table, lr=0.1)

    def step() -> None:
        (table([1, 2]) ** 2).sum().backward()
        opt.step()
        opt.zero_grad()

    step()
    seen, saved, state = table.weight.numpy(), table.state_dict(), opt.state_dict()
    waiting, cut = table.weight * 2, table.weight.detach()
    kept = [seen.copy(), saved["weight"].numpy().copy(), state["state"][0]["sum"].numpy().copy()]
    step()
    assert (table.weight.numpy() != kept[0]).any()
    np.testing.assert_array_equal(seen, kept[0])
    np.testing.assert_array_equal(saved["weight"].numpy(), kept[1])
    np.testing.assert_array_equal(state["state"][0]["sum"].numpy(), kept[2])
    np.testing.assert_array_equal(waiting.numpy(), 2 * kept[0])
    np.testing.assert_array_equal(cut.numpy(), kept[0])


def test_the_table_stays_where_it_is() -> None:
    table = tables(True)
    opt = optim.SGD(table, lr=0.1)
    places = set()
    for index in batches():
        (table(index) ** 2).sum().backward()
        opt.step()
        opt.zero_grad()
        places.add(table.weight.numpy().ctypes.data)
    assert len(places) == 1


@pytest.mark.slow
def test_lookups_without_backward_are_forgotten() -> None:
    table = tables(True)
    for _ in range(300):
        table([1, 2]).sum().item()
    gc.collect()
    kept = [x for x in gc.get_objects() if type(x) is EmbeddingLeaf and x.table() is table.weight]
    assert len(kept) < 150  # what is recorded now may still be asked for


def test_transforms_and_padding() -> None:
    table = nn.Embedding(5, 2, padding_idx=1, sparse=True)
    assert rg.grad(lambda m: m([1, 2]).sum())(table).weight.tolist()[2] == [1, 1]
    assert rg.jit(rg.grad(lambda m: m([1, 2]).sum()))(table).weight.tolist()[2] == [1, 1]
    loss = rg.jit(lambda m: m([1, 2]).sum())(table)
    loss.backward()
    assert table.weight.grad.numpy()[2].tolist() == [1, 1]
    table.zero_grad()
    with rg.Tape():
        table([2]).sum().backward()
    assert table.weight.grad.numpy()[2].tolist() == [1, 1]
    table.zero_grad()
    table([1, 2]).sum().backward()
    assert table.weight.grad.numpy()[1].tolist() == [0, 0]
    with rg.no_grad():
        assert not table([3]).requires_grad


def test_bad_input() -> None:
    table = tables(True)
    for bad in (-1, 50):
        with pytest.raises(IndexRangeError, match=f"index {bad} .* 50 rows"):
            table([bad])
    with pytest.raises(ShapeError, match="do not fit"):
        RowSparse([1, 2], np.ones((3, 4)), (5, 4))
    with pytest.raises(ShapeError, match="within"):
        RowSparse([7], np.ones((1, 4)), (5, 4))
    with pytest.raises(ShapeError, match="cannot be"):
        table.weight.grad = RowSparse([1], np.ones((1, 4)), (5, 4))


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [rg.float32, rg.bfloat16])
def test_steps_have_the_bits_of_the_whole_table(name: str, dtype: Any) -> None:
    """Also where rows are looked at many times, and not at all."""
    found = []
    for sparse in (True, False):
        table = nn.Embedding(50, 3, sparse=sparse, dtype=dtype)
        table.weight.replace(np.random.default_rng(1).standard_normal((50, 3)).astype(dtype.dtype))
        opt = OPTIMIZERS[name](table)
        for s, size in enumerate((60, 0, 60, 3)):
            index = np.random.default_rng(s).integers(0, 5, size)
            opt.zero_grad()
            (table(index) ** 2).sum().backward()
            opt.step()
        found.append(table.weight.numpy().view(np.uint8).copy())
    rows, dense = found
    np.testing.assert_array_equal(rows, dense)


def test_places_of_equal_rows() -> None:
    g = RowSparse([4, 2, 4, 0, 2], np.ones((5, 1)), (6, 1))
    places = g.places()
    assert [g.rows[k] for k in places] == g.rows.tolist()
    assert len(set(places.tolist())) == 3
