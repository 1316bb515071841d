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
    f(np.ones((5, 2)), 2, 1.0)  # nothing new
    f(np.ones((4, 2)), 3, 1.0)
    f(x, 3, 1.0)  # the nearest is that with n = 2
    f(x.astype(np.float32), 3, 1.0)
    f(x, 3, np.ones(2))
    f(np.ones((1, 2), np.float32), 3, 1.0)
    with rg.backend("reference"):
        f(x, 3, 1.0)
    assert f.cache_stats()["compilations"] == 8
    for text, words in zip(  # type: ignore[var-annotated]
        f.recompilations,
        [
            "x was f64[3, 2] and is f64[4, 2] (N is axis 0 of x)",
            "n was the value 2 and is the value 3 (a static value",
            "x was f64[4, 2] and is f64[3, 2] (N is axis 0 of x)",
            "x was f64[3, 2] and is f32[3, 2]",
            "y was a Python float and is f64[2]",
            "x was f32[3, 2] and is f32[1, 2] (sizes of 0 and 1 are compiled by themselves)",
            "the backend was llvm and is reference",
        ],
        strict=True,
    ):
        assert words in text
        assert "test_recompile_log.py" in text


def test_what_is_compiled_for_each_size_says_why():
    f = rg.jit(lambda x: sum((row * k for k, row in enumerate(x)), rg.zeros(2)))
    for n in (3, 4):
        f(np.ones((n, 2), np.float32))
    (text,) = f.recompilations
    assert "axis 0 of x: compiled for each size, as the symbolic size N has no value" in text
    assert f.named_sizes == (text[text.index("axis 0 of x") : -1],)


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
        return (x * y).sum() * len(x)

    f = rg.jit(norm)
    with rg.backend("reference"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for n in range(2, 10):
                f(np.ones((n, 2)), 1.0)
        with pytest.warns(rg.RecompilationWarning) as found:
            f(np.ones((10, 2)), 1.0)
        (warning,) = found
        text = str(warning.message)
        assert "x was f64[9, 2] and is f64[10, 2] (axis 0 of x: compiled for each size" in text
        assert "number 9 of norm" in text
        assert "norm.named_sizes" in text
        assert warning.filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for n in range(11, 30):
                f(np.ones((n, 2)), 1.0)
    assert f.cache_stats()["compilations"] == 28


def test_static_positions():
    f = rg.jit(lambda x, *rest: x * rest[0], static_argnums=[1])
    assert f(rg.ones(1), 3).tolist() == [3]
    assert f(rg.ones(1), 4).tolist() == [4]
    assert f.cache_stats()["compilations"] == 2
    with pytest.raises(TypeError, match="no positional parameter number 3"):
        rg.jit(lambda x: x, static_argnums=3)
    with pytest.raises(rg.DTypeError, match="static argument n"):
        rg.jit(lambda x, n: x, static_argnums=1)(1.0, np.ones(1))


def test_sizes_are_read_off_sums_and_products():
    f = rg.jit(lambda x, y: x.reshape(-1, 2).sum(1) * y.sum(), shapes={"x": "2*N", "y": "N*M+1"})
    for n, m in ((1, 1), (3, 2), (2, 7)):
        x, y = np.arange(2.0 * n), np.ones(n * m + 1)
        np.testing.assert_allclose(f(x, y).numpy(), x.reshape(-1, 2).sum(1) * y.sum())
    assert f.cache_stats()["compilations"] == 1
    with pytest.raises(rg.ShapeError, match=r"input 'x'.*2\*N = 4 .*has 5 there"):
        f(np.ones(5), np.ones(3))
    with pytest.raises(rg.ShapeError, match=r"input 'y'.*M\*N \+ 1 = 3 .*has 4 there"):
        f(np.ones(4), np.ones(4))
    with pytest.raises(rg.ShapeError, match=r"value of M does not follow \(known: {'N': 0}\)"):
        f(np.ones(0), np.ones(1))
    g = rg.jit(lambda x: x, shapes={"x": "N+2"})
    with pytest.raises(rg.ShapeError, match=r"N \+ 2 = 2 .*has 1 there"):
        g(np.ones(1))


@pytest.mark.slow
def test_factors_of_matrices_of_any_two_sizes():
    la = rg.linalg

    def f(a):
        u, s, vh = la.svd(a, full_matrices=False)
        q, r = la.qr(a)
        p, lower, upper = la.lu(a)
        parts = (la.pinv(a), la.matrix_rank(a), la.diagonal(a, offset=1), la.lstsq(a, a[:, :1])[0])
        return u * s @ vh, q @ r, p @ lower @ upper, *parts, s

    def loss(a):
        return sum((y**3).sum() for y in (la.svdvals(a), la.qr(a)[1], la.pinv(a), la.lu(a)[2]))

    values, slope = (rg.jit(g, shapes={"a": "M N"}) for g in (f, lambda a: rg.grad(loss)(a)))
    for m, n in ((3, 5), (5, 3), (4, 4), (1, 3), (3, 1)):
        a = np.random.default_rng([m, n]).normal(size=(m, n))
        *same, inverse, rank, above, solved, s = (y.numpy() for y in values(a))
        for product in same:
            np.testing.assert_allclose(product, a, atol=1e-12)
        np.testing.assert_allclose(inverse, np.linalg.pinv(a), atol=1e-10)
        assert rank == min(m, n)
        np.testing.assert_array_equal(above, np.diagonal(a, 1))
        np.testing.assert_allclose(a @ solved, a @ np.linalg.lstsq(a, a[:, :1])[0], atol=1e-10)
        np.testing.assert_allclose(s, np.linalg.svd(a)[1])
        if (m, n) not in ((3, 5), (5, 3)):
            continue
        expected = rg.numerical_gradient(loss, a).numpy()
        np.testing.assert_allclose(slope(a).numpy(), expected, rtol=1e-5, atol=1e-6)
    assert values.cache_stats()["compilations"] == slope.cache_stats()["compilations"] == 1


@pytest.mark.slow
def test_transforms_of_an_axis_whose_size_has_a_name():
    fft = rg.fft
    forward = rg.jit(
        lambda x: (fft.fft(x, norm="ortho"), fft.rfft(x, n=6), fft.irfft(x), fft.fftshift(x)),
        shapes={"x": "N"},
    )
    hessian = rg.jit(
        lambda x: rg.hessian(lambda x: (abs(fft.fft(x)) ** 4).sum())(x), shapes={"x": "N"}
    )
    for n in (3, 6, 9, 2):
        x = np.random.default_rng(n).normal(size=n)
        expected = (
            np.fft.fft(x, norm="ortho"),
            np.fft.rfft(x, 6),
            np.fft.irfft(x),
            np.fft.fftshift(x),
        )
        for found, y in zip(forward(x), expected, strict=True):
            np.testing.assert_allclose(found.numpy(), y, atol=1e-12)
        plain = rg.hessian(lambda x: (abs(fft.fft(x)) ** 4).sum())(x)
        np.testing.assert_allclose(hessian(x).numpy(), plain.numpy(), rtol=1e-9, atol=1e-9)
    assert forward.cache_stats()["compilations"] == hessian.cache_stats()["compilations"] == 1


@pytest.mark.slow
def test_a_named_number_of_steps_with_checkpoints():
    def loss(x):
        return rg.scan(lambda c, t: (rg.tanh(c + t), c * t), x[0], x, checkpoint="log")[1].sum()

    f = rg.jit(lambda x: rg.grad(loss)(x), shapes={"x": "N"})
    for n in (1, 3, 64, 65, 200):
        x = np.random.default_rng(n).normal(size=n)
        np.testing.assert_allclose(f(x).numpy(), rg.grad(loss)(x).numpy(), rtol=1e-9)
    assert f.cache_stats()["compilations"] == 1
