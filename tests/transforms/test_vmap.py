"""vmap: a loop over samples, whatever the function does, wherever the samples are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 3, 3)) + 3 * np.eye(3)
V = RNG.normal(size=(4, 3))
SIGNALS = RNG.normal(size=(4, 2, 1, 6))
INDEX = np.array([[0, 2], [1, 1], [2, 0], [0, 1]])

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "solve": (rg.linalg.solve, (A, V)),
    "inverse": (rg.linalg.inv, (A,)),
    "determinant": (rg.linalg.det, (A,)),
    "cholesky": (lambda a: rg.linalg.cholesky(a @ a.T), (A,)),
    "qr": (lambda a: rg.linalg.qr(a)[1] ** 2, (A,)),
    "eigenvalues": (lambda a: rg.linalg.eigvalsh(a + a.T), (A,)),
    "singular values": (rg.linalg.svdvals, (A,)),
    "gather": (lambda v, i: v[i], (V, INDEX)),
    "gather of rows": (lambda a, i: a[i], (A, INDEX)),
    "take": (lambda v, i: rg.take(v, i), (V, INDEX)),
    "scatter add": (lambda v, i: rg.zeros(3, dtype="float64").at[i].add(v[:2]), (V, INDEX)),
    "scatter set": (lambda v, i: v.at[i[0]].set(5.0), (V, INDEX)),
    "sort": (rg.sort, (V,)),
    "argsort": (rg.argsort, (V,)),
    "topk": (lambda v: rg.topk(v, 2)[0], (V,)),
    "median": (rg.median, (V,)),
    "cumsum": (lambda v: rg.cumsum(v, axis=0), (V,)),
    "convolution": (
        lambda x, w: rg.conv(x, w),
        (RNG.normal(size=(4, 2, 1, 6)), RNG.normal(size=(4, 3, 1, 2))),
    ),
    "pooling": (lambda x: rg.max_pool(x, 2), (SIGNALS,)),
    "softmax": (rg.softmax, (V,)),
    "contraction": (lambda a, v: rg.einsum("ij,j->i", a, v), (A, V)),
    "jacobian": (rg.jacrev(lambda v: rg.sin(v) * v.sum()), (V,)),
    "constant": (lambda v: rg.tensor([1.0, 2.0]), (V,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(5)
def test_it_is_a_loop(name):
    f, args = FUNCTIONS[name]
    expected = np.stack([f(*[rg.tensor(a[i]) for a in args]).numpy() for i in range(4)])
    np.testing.assert_allclose(rg.vmap(f)(*args).numpy(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(rg.jit(rg.vmap(f))(*args).numpy(), expected, rtol=1e-10, atol=1e-12)
    axis = [-1 if a.ndim > 1 else 0 for a in args]
    moved = [np.moveaxis(a, 0, k) for a, k in zip(args, axis, strict=True)]
    found = rg.vmap(f, in_axes=tuple(axis), out_axes=-1)(*moved)
    np.testing.assert_allclose(found.numpy(), np.moveaxis(expected, 0, -1), rtol=1e-10, atol=1e-12)


def test_nested_over_two_axes():
    f = lambda a, b: rg.exp(-((a - b) ** 2).sum())
    x, y = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 3))
    kernel = rg.vmap(rg.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(x, y)
    expected = np.exp(-((x[:, None] - y[None]) ** 2).sum(-1))
    np.testing.assert_allclose(kernel.numpy(), expected, rtol=1e-12)


def test_axes_are_trees_that_match_the_upper_part():
    params = {"w": [np.ones((2, 5)), np.arange(5.0)], "b": np.array(2.0), "none": None}

    def f(p, x):
        return {"sum": p["w"][0].sum() + p["w"][1] * p["b"], "x": x}

    axes = {"w": [1, 0], "b": None, "none": None}
    out = rg.vmap(f, in_axes=(axes, None), out_axes={"sum": 0, "x": None})(params, 7.0)
    assert out["sum"].tolist() == [2, 4, 6, 8, 10]
    assert out["x"].item() == 7
    out = rg.vmap(f, in_axes=({"w": -1, "b": None, "none": None}, None))(params, 7.0)
    assert out["x"].tolist() == [7] * 5


def test_every_sample_has_its_own_random_numbers():
    stack = rg.random.Generator(3).split(4)
    draw = lambda g, m: (g.normal((2,)) + m, g.uniform(), g)
    x, u, after = rg.vmap(draw, in_axes=(0, None))(stack, 1.0)
    assert len(np.unique(x.numpy())) == 8
    for i in range(4):
        one = rg.random.Generator(3).split(4)[i]
        assert (x[i] == one.normal((2,)) + 1.0).all()
        assert u[i] == one.uniform()
        assert (after[i].normal((3,)) == one.normal((3,))).all()
    jitted = rg.jit(rg.vmap(lambda g: g.normal((2,))))(rg.random.Generator(3).split(4))
    assert (jitted + 1.0 == x).all()


def test_a_generator_that_is_shared_gives_all_the_same():
    g = rg.random.Generator(0)
    x = rg.vmap(lambda a: a + g.normal())(np.zeros(3, np.float32))
    assert len(set(x.tolist())) == 1
    y = rg.vmap(lambda g, a: a + g.normal(), in_axes=(None, 0))(g, np.zeros(3, np.float32))
    assert len(set(y.tolist())) == 1


def test_stacks_of_generators_are_not_generators():
    g = rg.random.Generator(0)
    with pytest.raises(rg.ShapeError, match="own by vmap"):
        g.split(3).normal()
    with pytest.raises(rg.ShapeError, match="not a stack"):
        g[0]
    with pytest.raises(rg.ShapeError, match="1 or more"):
        g.split(0)
    with pytest.raises(rg.ShapeError, match=r"rng.split\(n\)"):
        rg.vmap(lambda g: g.normal())(g)


def test_gradients_through_samples_with_shared_parameters():
    w = rg.tensor([1.0, 2.0, 3.0], requires_grad=True, dtype="float64")
    rg.vmap(lambda v: (v * w).sum())(V).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), V.sum(0))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rg.vmap(lambda a, b: a["x"] + b)({"x": V}, V[:2]), r"b has 2.*a\['x'\] has 4"),
        (lambda: rg.vmap(lambda a: a, in_axes=(0, 0))(V), "2 entries for 1"),
        (lambda: rg.vmap(lambda a: a, in_axes=None)(V), "None throughout"),
        (lambda: rg.vmap(lambda a: a, in_axes=({"x": 0},))({"y": V}), "does not match"),
        (lambda: rg.vmap(lambda a: a, in_axes=("0",))(V), "int or None"),
        (lambda: rg.vmap(lambda a: a, in_axes=5)(V), "axis"),
        (lambda: rg.vmap(lambda a: a, out_axes=None)(V), "out_axes is None"),
        (lambda: rg.vmap(lambda a: {"x": a}, out_axes={"x": None})(V), r"\['x'\]"),
        (lambda: rg.vmap(lambda a, b: a)(V, 1.0), "b is a scalar"),
    ],
)
def test_what_cannot_be_mapped_is_named(call, words):
    with pytest.raises(rg.ShapeError, match=words):
        call()


def test_a_value_that_outlives_its_samples_says_so():
    kept: list[Any] = []
    rg.vmap(lambda a: kept.append(a * 2) or a)(V)  # type: ignore[func-returns-value]
    with pytest.raises(rg.TraceError, match="finished with"):
        (kept[0] + 1).numpy()
    with pytest.raises(rg.TraceError, match="finished with"):
        rg.jit(lambda x: x + kept[0])(1.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda v: rg.scan(lambda c, y: (c * y, c), v, rg.tensor([2.0, 3.0]))[0],
        lambda v: rg.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, v),
        lambda v: rg.cond(v > 1.5, lambda a: a * 2.0, lambda a: a * 3.0, v),
        rg.grad(lambda v: v**3),
        lambda v: rg.jvp(lambda u: u**3, (v,), (1.0,))[1],
        lambda v: rg.vmap(lambda u: rg.cumsum(rg.stack([u, v])).sum())(rg.stack([v, v])).sum(),
    ],
    ids=["scan", "while_loop", "cond", "grad", "jvp", "vmap"],
)
def test_backward_goes_through_loops_choices_and_transforms_of_samples(f):
    x = np.array([1.0, 2.0])
    w = rg.tensor(x, requires_grad=True)
    rg.vmap(f)(w).sum().backward()
    expected = [rg.grad(f)(rg.tensor(v)).item() for v in x]
    np.testing.assert_allclose(w.grad.numpy(), expected)
    with rg.no_grad():
        assert not rg.vmap(f)(w).requires_grad


def test_results_of_samples_without_gradients_require_none():
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    assert not rg.vmap(lambda v, u: u * 2.0)(w, rg.tensor([1.0, 2.0])).requires_grad
