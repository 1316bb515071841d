"""Reductions, contractions and convolutions."""

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("onnx", reason="ONNX is not installed (extra: onnx)")

from tests.onnx.evaluator import agrees, run

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)


def test_sums_of_small_integers_wrap_as_their_dtype_does():
    x = np.array([[100, 100, 3], [-128, -1, 5]], np.int8)
    found = run(
        rg.trace(lambda x: (rg.sum(x, 1, dtype="int8"), rg.max(x, 0)), rg.spec((2, 3), "int8")), [x]
    )
    assert [y.tolist() for y in found] == [[-53, -124], [100, 100, 5]]


def test_a_nan_is_the_extremum_and_the_first_one_its_place():
    x = np.array([[1, np.nan, 3, np.nan], [4, 2, 9, 2]], np.float32)
    for top, place in ((rg.max, rg.argmax), (rg.min, rg.argmin)):
        graph = rg.trace(lambda x, f=top, g=place: (f(x, 1), g(x, 1)), rg.spec((2, 4)))
        values, places = run(graph, [x])
        assert np.isnan(values[0])
        assert values[1] == getattr(np, top.__name__)(x[1])
        assert places.tolist() == [1, getattr(np, place.__name__)(x[1])]


def test_logarithms_of_sums_do_not_overflow():
    x = np.array([[1000, 1000], [-np.inf, -np.inf], [np.inf, 0]], np.float32)
    (found,) = run(rg.trace(lambda x: rg.logsumexp(x, 1), rg.spec((3, 2))), [x])
    np.testing.assert_allclose(found, [1000 + np.log(2), -np.inf, np.inf], rtol=1e-6)


def test_logic_over_no_axes_some_and_all():
    x = np.array([[True, False], [True, True]])
    agrees(lambda x: (rg.any(x, 0), rg.all(x, 1), rg.all(x), rg.any(x, ())), x)


@pytest.mark.parametrize(
    ("equation", "shapes", "kind"),
    [
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)], "MatMul"),
        ("jib,kjb->bik", [(4, 3, 2), (5, 4, 2)], "MatMul"),
        ("ijk,kj->i", [(2, 3, 4), (4, 3)], "Einsum"),
        ("i,j->ij", [(3,), (4,)], None),
    ],
)
def test_contractions(equation, shapes, kind):
    arrays = [RNG.normal(size=s).astype(np.float32) for s in shapes]
    graph = rg.trace(lambda a, b: rg.einsum(equation, a, b), *map(rg.spec, shapes))
    np.testing.assert_allclose(run(graph, arrays)[0], np.einsum(equation, *arrays), 1e-5, 1e-6)
    kinds = agrees(lambda a, b: rg.einsum(equation, a, b), *arrays)
    assert kind is None or kind in kinds


def test_convolutions_of_floats_are_one_operator_and_of_integers_windows():
    f = rg.nn.functional.conv1d
    x, w = RNG.normal(size=(2, 4, 9)).astype("f"), RNG.normal(size=(6, 2, 3)).astype("f")
    kinds = agrees(lambda x, w: f(x, w, None, 2, 1, 2, 2), x, w)
    assert kinds.count("Conv") == 1
    x, w = (10 * x).astype(np.int32), (10 * w).astype(np.int32)
    assert "Conv" not in agrees(lambda x, w: f(x, w, None, 2, 1, 2, 2), x, w)


def test_the_gradient_of_a_convolution_puts_zeros_between():
    f = rg.nn.functional.conv2d
    x, w = RNG.normal(size=(1, 2, 5, 5)).astype("f"), RNG.normal(size=(3, 2, 2, 2)).astype("f")
    agrees(lambda x, w: rg.grad(lambda x, w: (f(x, w, stride=2) ** 2).sum(), (0, 1))(x, w), x, w)


def test_padding_is_less_than_any_number_of_a_pool():
    x = -RNG.random((1, 1, 5)).astype("f") - 1
    (found,) = run(
        rg.trace(lambda x: rg.nn.functional.max_pool1d(x, 3, 2, 1), rg.spec((1, 1, 5))), [x]
    )
    v = x[0, 0]
    np.testing.assert_array_equal(found[0, 0], [max(v[:2]), max(v[1:4]), max(v[3:])])
