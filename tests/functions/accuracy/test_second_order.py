"""Second derivatives at exact zeros, ties and equal coordinates: every public function, by finite
differences of its gradient. Kinks, where there are none, are found by these and left out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from benchmarks.calls import Arrays, Call, calls, listed
from retrograd.nn import functional as F
from tests.functions.accuracy.curvature import VALUES, study

EXCEPTIONS = {
    **{
        f"rg.special.{f}": "no second derivatives in its parameters are offered: they are NaN"
        for f in ("hyp1f1", "hyp2f1")
    },
    "rg.nn.functional.gaussian_nll_loss": "variances below eps get the gradient of eps, on purpose",
    **{
        f"rg.unique_{what}": "the size of the result depends on values"
        for what in ("all", "counts", "inverse", "values")
    },
    **{
        f"rg.{f}": "the size of the result depends on values"
        for f in ("extract", "intersect1d", "masked_select", "roots", "setdiff1d", "setxor1d")
    },
    **{
        f"rg.{f}": "the size of the result depends on values"
        for f in ("trim_zeros", "union1d", "unique")
    },
}
# Kinks that differences along one coordinate each do not show: moving one of several equal elements
# leaves what is between the others. The gradient is that of one order of the elements.
SORTED = ("mode", "percentile", "quantile")
KINKS = {(f"rg.{f}", kind) for f in SORTED for kind in ("zeros", "equal")}
KINKS |= {(f"rg.{f}", "zeros") for f in ("nanpercentile", "nanquantile")}
# At these delta is as large as the error; poch jumps in m where a is -1, -2 ...
KINKS |= {("rg.special.huber", "zeros"), ("rg.special.poch", "zeros")}
NAMES = [n for n in listed() if not n.startswith("rg.random") and n not in EXCEPTIONS]


def variants(a: Arrays) -> dict[str, Call]:
    """Options of the functions with norms, kinks and ties, and what users write with them."""
    return _norms(a) | _powers(a) | _losses(a) | _others(a)


def _norms(a: Arrays) -> dict[str, Call]:
    x, y, z = a.x, a.y, a.z
    made: dict[str, Call] = {}
    for p in (1, 2, 3, 4, float("inf")):
        for v, what in ((x, "real"), (z, "complex")):
            if p == float("inf") and what == "complex":
                continue  # parts of magnitudes that tie
            made[f"vector_norm {p} {what}"] = partial(rg.vector_norm, v, axis=1, ord=p)
            made[f"vector_norm {p} {what}, all"] = partial(rg.vector_norm, v, ord=p)
        made[f"normalize {p}"] = partial(F.normalize, x, p)
        made[f"cdist {p}"] = partial(F.cdist, x, y, p)
        made[f"pdist {p}"] = partial(F.pdist, x, p)
        made[f"pairwise_distance {p}"] = partial(F.pairwise_distance, x, y, p, 0.0)
        made[f"triplet_margin_loss {p}"] = partial(
            F.triplet_margin_loss, x, y, 2 * x - y, p=p, eps=0.0, swap=True, margin=5.0
        )
    for order in ("fro", "nuc", 1, 2, -1, float("inf")):
        made[f"matrix_norm {order}"] = partial(rg.linalg.matrix_norm, a.m, ord=order)
        made[f"norm {order} along axes"] = partial(rg.linalg.norm, x, order, (1, 0))
    return made | {
        "matrix_norm complex": lambda: rg.linalg.matrix_norm(z),
        "norm**2": lambda: rg.vector_norm(x - y, axis=1, keepdims=True) ** 2,
        "norm**2 complex": lambda: rg.vector_norm(z, axis=0) ** 2,
        "norm**4": lambda: rg.vector_norm(x - y) ** 4,
        "squared distances": lambda: rg.exp(-(F.cdist(x, y) ** 2)),
        "squared distances within": lambda: rg.square(F.cdist(x, x)),
        "squared deviation": lambda: rg.std(x, axis=1, correction=1) ** 2,
    }


def _powers(a: Arrays) -> dict[str, Call]:
    x, y, z = a.x, a.y, a.z
    made: dict[str, Call] = {}
    for n in (0, 1, 2, 3, 4, 6):
        made[f"x**{n}"] = partial(pow, x, n)
        made[f"|x|**{n}"] = partial(lambda k: rg.abs(x) ** k, n)
        made[f"|z|**{n}"] = partial(lambda k: rg.abs(z) ** k, n)
        made[f"z**{n}"] = partial(pow, z, n)
        made[f"|x|**{n}, of an array"] = partial(
            lambda k: rg.abs(x) ** rg.full_like(x, float(k)), n
        )
    return made | {
        "square of abs": lambda: rg.square(rg.abs(x - y)),
        "|x| |x|": lambda: rg.abs(x) * rg.abs(x),
        "|z| |z|": lambda: rg.abs(z) * rg.abs(z),
        "(|x| |y|)**2": lambda: (rg.abs(x) * rg.abs(y)) ** 2,
        "(|x| / 2)**2": lambda: (rg.abs(x) / 2) ** 2,
        "||x||**2": lambda: rg.abs(rg.abs(x)) ** 2,
        "|x| x": lambda: rg.abs(x) * x,
        "(3 |x|) (-2 |x|)": lambda: (3 * rg.abs(x)) * (-2 * rg.abs(x)),
        "(|x| y) (|x| / 4)": lambda: (rg.abs(x) * y) * (rg.abs(x) / 4),
        "hypot": lambda: rg.hypot(x, y),
        "hypot**2": lambda: rg.hypot(x, y) ** 2,
        "cos |x|": lambda: rg.cos(rg.abs(x)),
        "cosh |x|": lambda: rg.cosh(rg.abs(x)),
        "of a region": lambda: rg.checkpoint(lambda v: rg.abs(v) ** 2)(x),
    }


def _losses(a: Arrays) -> dict[str, Call]:
    x, y, rows = a.x, a.y, a.rows[:2]
    made: dict[str, Call] = {}
    for reduction in ("mean", "none"):
        for d in (0.3, 1.0):
            made[f"huber {d} {reduction}"] = partial(F.huber_loss, x, y, reduction, d)
            made[f"smooth_l1 {d} {reduction}"] = partial(F.smooth_l1_loss, x, y, reduction, d)
    signs = rg.sign(rg.stop_gradient(y) - 0.3)
    return made | {
        "huber with weights": lambda: F.huber_loss(x, y, weight=y),
        "hinge squared": lambda: F.hinge_loss(x, signs, squared=True),
        "multi_margin 2": lambda: F.multi_margin_loss(x, rows, p=2),
        "poisson of a rate": lambda: F.poisson_nll_loss(x, y, log_input=False, full=True),
        "gaussian": lambda: F.gaussian_nll_loss(x, y, rg.square(y) + 1.0, full=True),
        "kl_div of logarithms": lambda: F.kl_div(x, y, log_target=True),
        "cross_entropy of shares": lambda: F.cross_entropy(x, y, label_smoothing=0.1),
        "cross_entropy with weights": lambda: F.cross_entropy(x, rows, weight=a.row),
        "bce with weights": lambda: F.binary_cross_entropy_with_logits(x, y, pos_weight=a.row),
        "cosine_embedding": lambda: F.cosine_embedding_loss(x, y, signs[:, 0], margin=-1.0),
        "triplet with a distance": lambda: F.triplet_margin_with_distance_loss(
            x,
            y,
            x + y,
            distance_function=lambda u, v: (rg.abs(u - v) ** 2).sum(axis=-1),
            margin=9.0,
        ),
    }


def _others(a: Arrays) -> dict[str, Call]:
    x, y, z, s = a.x, a.y, a.z, rg.special
    groups = rg.tensor([0, 0, 1, 1])
    return {
        "variance of complex": lambda: rg.var(z, axis=1),
        "std": lambda: rg.std(x, axis=1, correction=1),
        "prod": lambda: rg.prod(x),
        "prod along an axis": lambda: rg.prod(x, axis=1),
        "cumprod": lambda: rg.cumprod(x, axis=1),
        "cumprod of complex": lambda: rg.cumprod(z, axis=1),
        "segment_prod": lambda: rg.segment_prod(a.row, groups, 2),
        "segment_softmax": lambda: rg.segment_softmax(a.row, groups, 2),
        "lp_pool 3": lambda: F.lp_pool1d(rg.square(a.sequence) + 1, 3.0, 2),
        "elu": lambda: F.elu(x, 0.5),
        "celu": lambda: F.celu(x, 2.0),
        "softplus": lambda: F.softplus(x, 2.0, 3.0),
        "gelu by tanh": lambda: F.gelu(x, "tanh"),
        "relu**3": lambda: rg.relu(x) ** 3,
        "xlogy": lambda: s.xlogy(x, rg.square(y) + 0.5),
        "i0": lambda: s.i0(x),
        "i1": lambda: s.i1(x),
        "logaddexp of equals": lambda: rg.logaddexp(x, x),
        "logsumexp": lambda: rg.logsumexp(x, axis=1),
        "sorted squares": lambda: rg.square(rg.sort(x, axis=1)).sum(),
        "larger and smaller": lambda: rg.maximum(x, y) + rg.minimum(x, y),
        "batch_norm": lambda: F.batch_norm(a.image, None, None, training=True),
        "determinant of rank one": lambda: rg.linalg.det(rg.stack([a.row[:2], a.row[:2]])),
        "matrix_power": lambda: rg.linalg.matrix_power(x[:, :2], 3),
    }


VARIANTS = sorted(variants(Arrays(2)))


def check(table: Any, name: str, kind: str) -> None:
    found = study(table, name, kind)
    assert found is None or not found.wrong, "\n".join(found.wrong)


@pytest.mark.parametrize("name", [n for n in VARIANTS if not n.endswith(("all", "array", "none"))])
@pytest.mark.sample(10)
def test_zeros(name: str) -> None:
    with rg.backend("reference"):
        check(variants, name, "zeros")


def points(names: Iterable[str]) -> list[Any]:
    """Each name with each kind of points; where there is a kink the study is expected to fail."""
    return [
        pytest.param(
            name,
            kind,
            id=f"{name}-{kind}",
            marks=[pytest.mark.xfail(reason="a kink that the study takes for smooth", strict=True)]
            if (name, kind) in KINKS
            else [],
        )
        for name in names
        for kind in VALUES
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), points(VARIANTS))
def test_variants(name: str, kind: str) -> None:
    check(variants, name, kind)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), points(NAMES))
def test_every_public_function(name: str, kind: str) -> None:
    check(calls, name, kind)


def test_exceptions_are_functions() -> None:
    assert set(EXCEPTIONS) <= set(listed())


def test_a_wrong_second_derivative_is_noticed() -> None:
    """What squared a magnitude by a product that is none to the rules."""

    def wrong(a: Arrays) -> dict[str, Call]:
        return {"wrong": lambda: rg.abs(a.x) * rg.sqrt(rg.square(rg.abs(a.x)) + 1e-30)}

    found = study(wrong, "wrong", "zeros")
    assert found is not None
    assert found.wrong
    assert found.checked > 100


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize(
    ("at", "slopes", "hessian"),
    [
        ((0.0, 2.0), (-np.inf, 0), ((np.inf, -0.5), (-0.5, 0))),
        ((0.0, 0.0), (np.inf, 0), ((0, -np.inf), (-np.inf, 0))),
        ((2.0, 0.0), (np.inf, -np.inf), ((0.5, -np.inf), (-np.inf, np.inf))),
        ((1e-200, 1e200), (1 - 400 * np.log(10), 0), ((1e200, 0), (0, 0))),
    ],
)
def test_relative_entropy_at_zeros(backend: str, at: Any, slopes: Any, hessian: Any) -> None:
    """Infinite where the slope is, in both modes; and where the quotient leaves its range."""

    def f(v: Any) -> Any:
        return rg.special.rel_entr(v[0], v[1])

    with rg.backend(backend):
        x, g = np.array(at), rg.grad(f)
        close: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-190}
        np.testing.assert_allclose(g(x).numpy(), slopes, **close)
        np.testing.assert_allclose(rg.hessian(f)(x).numpy(), hessian, **close)
        back = [rg.grad(lambda v, i=i: g(v)[i])(x).numpy() for i in range(2)]
        np.testing.assert_allclose(back, hessian, **close)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    ("u", "v"), [((1, 2, 2), (3, 4)), ((3, 4), (1, 2, 2)), ((3, 4), (0, 1)), ((2,), (1, 2, 2))]
)
def test_spectral_norm_of_a_matrix_of_rank_one(u: Any, v: Any, dtype: str) -> None:
    """The other singular values are 0: their vectors have no part in the largest."""
    x, m, n = np.outer(u, v).astype(dtype), len(u), len(v)
    f = rg.grad(lambda t: rg.linalg.norm(x + t, 2))
    zero, t = np.zeros((m, n)), np.arange(1.0, 1 + m * n).reshape(m, n)
    p, q = (np.outer(w, w) / np.inner(w, w) for w in (u, v))
    expected = (t @ q + p @ t - 2 * p @ t @ q) / np.linalg.norm(x)
    forward = rg.jvp(f, (zero,), (t,))[1].numpy()
    back = rg.grad(lambda w: (f(w) * t).sum())(zero).numpy()
    for found in (forward, back):
        np.testing.assert_allclose(found, expected, atol=1e-13)


X = np.array([0.0, 2.0, 0.0])


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_hessian_of_a_norm_beside_zeros(backend: str) -> None:
    """`(I - x x^T / |x|^2) / |x|`, batched as well."""
    with rg.backend(backend):
        for norm in (rg.vector_norm, rg.linalg.norm):
            np.testing.assert_allclose(rg.hessian(norm)(X).numpy(), np.diag([0.5, 0, 0.5]))
            many = rg.vmap(rg.hessian(norm))(np.stack([X, 2 * X]))
            np.testing.assert_allclose(many[1].numpy(), np.diag([0.25, 0, 0.25]))


def test_where_there_is_no_second_derivative() -> None:
    """At the zero vector the gradient counts as 0, and so do its derivatives; the square of the
    norm is smooth."""
    zero = np.zeros(3)
    np.testing.assert_array_equal(rg.grad(rg.vector_norm)(zero).numpy(), zero)
    np.testing.assert_array_equal(rg.hessian(rg.vector_norm)(zero).numpy(), np.zeros((3, 3)))
    square = rg.hessian(lambda x: rg.vector_norm(x) ** 2)(zero)
    np.testing.assert_array_equal(square.numpy(), 2 * np.eye(3))
    for f in (F.elu, F.celu, F.selu):  # PyTorch's choice of the two
        assert rg.grad(rg.grad(f))(0.0).item() == 0


def test_a_magnitude_of_which_a_derivative_is_asked() -> None:
    """Is not passed by."""
    x = rg.tensor([0.0, 1.0, -2.0], requires_grad=True)
    y = rg.abs(x)
    np.testing.assert_array_equal(rg.grad(lambda v: (v**2).sum())(y).numpy(), [0, 2, 4])
    (y**2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 2, -4])
