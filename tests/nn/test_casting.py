"""Models in half precision: dtypes, gradients, state that moves on."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.errors import DTypeError

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def model() -> nn.Sequential:
    rg.nn.init.seed(3)
    return nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2)
    )


def test_cast_is_a_copy_through_which_gradients_go() -> None:
    m = model()
    half = nn.cast(m, rg.bfloat16)
    assert {p.dtype for p in half.parameters()} == {rg.bfloat16}
    assert half[1].running_mean.dtype is rg.bfloat16
    assert half[1].num_batches_tracked.dtype is rg.int64
    assert {p.dtype for p in m.parameters()} == {rg.float32}
    half(nn.cast(X, rg.bfloat16)).sum().backward()
    assert all(p.grad is not None and p.grad.dtype is rg.float32 for p in m.parameters())
    frozen = nn.cast(nn.Linear(2, 2).requires_grad_(False), rg.float16)
    assert [p.trainable for p in frozen.parameters()] == [False, False]


def test_cast_of_trees() -> None:
    tree = {"x": rg.ones(2), "i": rg.tensor([1]), "n": 1.5, "none": None, "a": np.ones(2)}
    found = nn.cast(tree, rg.float16)
    assert (found["x"].dtype, found["i"].dtype) == (rg.float16, rg.int64)
    assert (found["n"], found["none"], found["a"].dtype) == (1.5, None, rg.float16)
    with pytest.raises(DTypeError, match="floating"):
        nn.cast(tree, rg.int32)


def test_what_is_shared_is_shared_in_the_copy() -> None:
    layer = nn.Linear(2, 2)
    half = nn.cast(nn.Sequential(layer, layer), rg.float16)
    assert half[0] is half[1]
    assert len(list(half.parameters())) == 2


@pytest.mark.parametrize("dtype", [rg.bfloat16, rg.float16])
def test_mixed_precision_is_near_the_module(dtype: Any) -> None:
    plain = model().eval()
    mixed = nn.MixedPrecision(copy.deepcopy(plain), dtype)
    y = mixed.eval()(X)
    assert y.dtype is rg.float32
    np.testing.assert_allclose(y.numpy(), plain(X).numpy(), atol=0.03)
    assert (y.numpy() != plain(X).numpy()).any()
    slopes = rg.grad(lambda m: (m(X) ** 2).sum())(mixed)
    expected = rg.grad(lambda m: (m(X) ** 2).sum())(plain)
    for p, q in zip(slopes.parameters(), expected.parameters(), strict=True):
        assert p.dtype is rg.float32
        np.testing.assert_allclose(p.numpy(), q.numpy(), atol=0.05 * np.abs(q.numpy()).max() + 1e-3)


def test_a_product_in_bfloat16_to_the_bit() -> None:
    """The same as to cast by hand."""
    layer = nn.Linear(4, 3, bias=False)
    x, w = rg.asarray(X).astype(rg.bfloat16), layer.weight.astype(rg.bfloat16)
    expected = (x @ w.mT).astype(rg.float32).numpy()
    np.testing.assert_array_equal(nn.MixedPrecision(layer)(X).numpy(), expected)


def test_state_moves_on_eagerly_and_under_jit() -> None:
    mixed = nn.MixedPrecision(model())
    inner: Any = mixed.module
    first, second = mixed(X).numpy(), mixed(X).numpy()
    assert (first != second).any()  # dropout draws anew
    assert inner[1].num_batches_tracked.item() == 2
    assert inner[1].running_mean.dtype is rg.float32
    plain = model()
    plain(X)
    plain(X)
    np.testing.assert_allclose(
        inner[1].running_mean.numpy(), plain[1].running_mean.numpy(), atol=0.01
    )
    _, after = rg.jit(lambda m, x: (m(x), m))(mixed, X)
    assert after.module[1].num_batches_tracked.item() == 3
    assert after.module[1].running_var.dtype is rg.float32


def test_small_steps_are_kept_by_the_float32_weights() -> None:
    """A thousand steps of 1e-5: bfloat16 alone would stay at 1."""
    layer = nn.Linear(1, 1, bias=False)
    layer.weight.replace(np.ones((1, 1), np.float32))
    mixed = nn.MixedPrecision(layer)
    opt = optim.SGD(mixed, lr=1e-5)
    for _ in range(100):
        opt.zero_grad()
        mixed(rg.ones((1, 1))).sum().backward()
        opt.step()
    assert layer.weight.item() == pytest.approx(1 - 1e-3, rel=1e-5)


def test_copies_and_names() -> None:
    mixed = nn.MixedPrecision(nn.Linear(2, 2))
    assert list(mixed.state_dict()) == ["module.weight", "module.bias"]
    for again in (copy.deepcopy(mixed), pickle.loads(pickle.dumps(mixed))):
        np.testing.assert_array_equal(again(X[:, :2]).numpy(), mixed(X[:, :2]).numpy())
    wrong: Any = rg.tanh
    with pytest.raises(TypeError, match="of a module"):
        nn.MixedPrecision(wrong)
    with pytest.raises(DTypeError, match="floating"):
        nn.MixedPrecision(nn.Linear(2, 2), rg.int8)


def test_scopes_are_those_of_the_module() -> None:
    mixed = nn.MixedPrecision(nn.Sequential(nn.Linear(4, 3)))
    graph = rg.trace(lambda m, x: m(x), mixed, rg.spec((2, 4)))
    assert "MixedPrecision.module[0]" in {n.scope for n in graph.nodes}
    rows = {row.name: row for row in nn.summary(mixed, (2, 4)).layers}
    assert 2 * 3 * 9 <= rows["module.0"].flops < 80  # and conversions
    with pytest.raises(rg.ShapeError) as error:
        mixed(X[:, :3])
    assert "in module MixedPrecision.module[0]" in error.value.__notes__
    mixed(X)  # what was set is as it was
    assert rg.trace(lambda x: x * 2, rg.spec(())).nodes[-1].scope == ""
