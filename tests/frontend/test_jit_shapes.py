"""jit: sizes that are declared, and why something is compiled again."""

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_fifty_sizes_are_one_program(backend):
    def loss(w, x, y):
        return ((rg.tanh(x @ w).sum(axis=1) - y) ** 2).mean()

    step = rg.jit(rg.value_and_grad(loss), shapes={"x": "N 4", "y": "N"})
    plain = rg.value_and_grad(loss)
    w = np.random.default_rng(0).normal(size=(4, 3))
    with rg.backend(backend):
        for n in range(1, 51):
            x, y = np.random.default_rng(n).normal(size=(n, 4)), np.arange(float(n))
            value, slope = step(w, x, y)
            if n in (1, 7, 50):
                expected, gradient = plain(w, x, y)
                assert value.item() == pytest.approx(expected.item(), rel=1e-12)
                np.testing.assert_allclose(slope.numpy(), gradient.numpy(), rtol=1e-9)
    assert step.cache_stats()["compilations"] == 1


def test_products_and_equalities_of_sizes():
    f: Any = rg.jit(
        lambda b, k: b["image"].reshape(-1, 2).sum(0) * b["label"].mean() + k.sum(),
        shapes={"b": {"image": "N 2*M", "label": "N"}, "k": ("M",)},
    )
    for n, m in ((1, 1), (3, 2), (5, 4)):
        batch = {"image": np.ones((n, 2 * m)), "label": np.ones(n)}
        assert f(batch, np.ones(m)).tolist() == [n * m + m] * 2
    assert f.cache_stats()["compilations"] == 1
    with pytest.raises(rg.ShapeError, match=r"axis 1 of input \"b\['image'\]\".*2\*M = 4.*5 there"):
        f({"image": np.ones((3, 5)), "label": np.ones(3)}, np.ones(2))
    with pytest.raises(rg.ShapeError, match=r"label.*N = 3.*4 there"):
        f({"image": np.ones((3, 4)), "label": np.ones(4)}, np.ones(2))


def test_lists_and_specs():
    n = rg.Dim("N")
    f = rg.jit(
        lambda xs, y: xs[0].sum() + xs[1].sum() + y.sum(),
        shapes={"xs": [("N", 2), "N"], "y": rg.spec((n,), rg.float64)},
    )
    for k in (1, 4):
        assert f([np.ones((k, 2)), np.ones(k)], np.ones(k)).item() == 4 * k
    assert f.cache_stats()["compilations"] == 1
    with pytest.raises(rg.DTypeError, match="y is declared as f64"):
        f([np.ones((2, 2)), np.ones(2)], np.ones(2, np.float32))


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"x": "N*M 3"}, r"only within M\*N"),
        ({"x": "N+ 3"}, "no size"),
        ({"x": {"k": "N"}}, r"x\['k'\].*not there"),
        ({"x": "2 3"}, "axis 0 of x is declared to have the size 2, but has 4"),
    ],
)
def test_declarations_that_make_no_sense(shapes, words):
    with pytest.raises(rg.ShapeError, match=words):
        rg.jit(lambda x: x, shapes=shapes)(np.ones((4, 3)))


def test_why_something_is_compiled_again():
    f = rg.jit(lambda x, n, y: x.sum() * n + y, static_argnums=(1,))
    x = np.ones((3, 2))
    f(x, 2, 1.0)
    assert f.recompilations == ()
    f(np.ones((4, 2)), 2, 1.0)
    f(np.ones((4, 2)), 3, 1.0)
    f(x, 3, 1.0)  # the nearest is that with n = 2
    f(x.astype(np.float32), 3, 1.0)
    f(x, 3, np.ones(2))
    with rg.backend("reference"):
        f(x, 3, 1.0)
    assert f.cache_stats()["compilations"] == 7
    for text, words in zip(
        f.recompilations,
        [
            'x was f64[3, 2] and is f64[4, 2] (shapes={"x": "N 2"} would serve both)',
            "n was the value 2 and is the value 3 (a static value",
            "x was f64[4, 2] and is f64[3, 2]",
            "x was f64[3, 2] and is f32[3, 2]",
            "y was a Python float and is f64[2]",
            "the backend was llvm and is reference",
        ],
        strict=True,
    ):
        assert words in text
        assert "test_jit_shapes.py" in text


def test_it_warns_if_asked_to():
    f = rg.jit(lambda p: p["a"], explain=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f({"a": rg.ones(1)})
        f({"a": rg.ones(1)})
    with pytest.warns(rg.RecompilationWarning, match="another|structure"):
        f({"a": rg.ones(1), "b": 1.0})


def test_a_storm_of_compilations_is_warned_of_once():
    def norm(x, y):
        return (x * y).sum()

    f = rg.jit(norm)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, 9):
            f(np.ones((n, 2)), 1.0)
    with pytest.warns(rg.RecompilationWarning) as found:
        f(np.ones((9, 2)), 1.0)
    (warning,) = found
    text = str(warning.message)
    assert 'x was f64[8, 2] and is f64[9, 2] (shapes={"x": "N 2"} would serve both)' in text
    assert "number 9 of norm" in text
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(10, 30):
            f(np.ones((n, 2)), 1.0)
        g = rg.jit(norm, shapes={"x": "N 2"})
        for n in range(1, 30):
            g(np.ones((n, 2)), 1.0)
    assert g.cache_stats()["compilations"] == 1


def test_static_positions():
    f = rg.jit(lambda x, *rest: x * rest[0], static_argnums=[1])
    assert f(rg.ones(1), 3).tolist() == [3]
    assert f(rg.ones(1), 4).tolist() == [4]
    assert f.cache_stats()["compilations"] == 2
    with pytest.raises(TypeError, match="no positional parameter number 3"):
        rg.jit(lambda x: x, static_argnums=3)
    with pytest.raises(rg.DTypeError, match="static argument n"):
        rg.jit(lambda x, n: x, static_argnums=1)(1.0, np.ones(1))
