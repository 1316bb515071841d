"""Lines below and above functions, on intervals of every kind, beside the functions themselves."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import TensorType, float64
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import input_node
from retrograd.ops.numerics import arithmetic as num
from retrograd.verify.bound_propagation import relaxation as rx
from retrograd.verify.bound_propagation.interval import Interval
from retrograd.verify.bound_propagation.propagation import interval_of
from retrograd.verify.bound_propagation.relaxation_rules import RELAXATIONS

INF = math.inf
UNARY = [
    "relu", "abs", "exp", "expm1", "exp2", "cosh", "softplus", "rsqrt", "sqrt", "log", "log2",
    "log10", "log1p", "tanh", "sigmoid", "erf", "erfc", "atan", "asinh", "sinh", "asin", "acos",
    "atanh", "sin", "cos", "sech2", "reciprocal", "floor", "ceil", "round", "trunc",
]  # fmt: skip
BRIEF = ["relu", "exp", "tanh", "sin", "log", "reciprocal", "atanh"]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in UNARY if name not in BRIEF]
DOMAINS = {
    "sqrt": (0, INF), "rsqrt": (0, INF), "log": (0, INF), "log2": (0, INF), "log10": (0, INF),
    "log1p": (-1, INF), "asin": (-1, 1), "acos": (-1, 1), "atanh": (-1, 1),
}  # fmt: skip


def intervals(low: float, high: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Around zero, far from it, tiny, huge, of one point, and with infinite ends."""
    rng = np.random.default_rng(seed)
    mid = np.concatenate(
        [rng.normal(size=60), rng.normal(size=60) * 30, rng.normal(size=30) * 1e6, np.zeros(30)]
    )
    wide = 10.0 ** rng.uniform(-12, 3, size=mid.size)
    wide[::11] = 0.0
    ends = [(mid - wide, mid + wide)]
    special = [
        (-INF, INF), (-INF, 1.0), (-1.0, INF), (0.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (-1e300, 1e300),
        (1e-300, 1e300), (5e-324, 1.0), (-3.0, 5e-324), (0.5, 0.5), (700.0, 720.0), (-1e-8, 1e-8),
        (0.0, 2 * math.pi), (-10.0, 10.0), (1.5, 1.6), (0.0, INF), (-INF, 0.0),
    ]  # fmt: skip
    ends.append((np.array([a for a, _ in special]), np.array([b for _, b in special])))
    lo, hi = (np.concatenate([e[i] for e in ends]) for i in range(2))
    lo, hi = np.clip(lo, low, high), np.clip(hi, low, high)
    return lo, np.maximum(lo, hi)


def inside(lo: np.ndarray, hi: np.ndarray, n: int = 120) -> np.ndarray:
    """Points of each interval, the ends and many near them included."""
    a, b = np.clip(lo, -1e305, 1e305), np.clip(hi, -1e305, 1e305)
    share = np.concatenate([np.linspace(0, 1, n), 10.0 ** np.linspace(-17, -1, 40)])
    share = np.concatenate([share, 1 - 10.0 ** np.linspace(-17, -1, 40)]).reshape(-1, 1)
    x = a * (1 - share) + b * share
    near = np.concatenate([np.linspace(-4, 4, 81), [-1.0, 0.0, 1.0]]).reshape(-1, 1)
    x = np.concatenate([x, near + 0 * a, np.array([lo, hi])])
    return np.clip(x, np.clip(lo, -1.7e308, INF), np.clip(hi, -INF, 1.7e308))


def exact(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(el.ELEMENTWISE[name].reference(x), np.float64)


def node_of(name: str, *shapes: tuple[int, ...], dtype=float64):
    xs = [input_node(TensorType(dtype, s)) for s in shapes]
    return el.ELEMENTWISE[name](*xs)


def slack(*values: np.ndarray) -> np.ndarray:
    """What the sample itself may be off by, in float64."""
    with np.errstate(all="ignore"):
        return 64 * 2.0**-52 * sum(np.abs(v) for v in values)


@pytest.mark.parametrize("name", [*BRIEF, *SLOW])
def test_lines_hold_on_intervals_of_every_kind(name):
    lo, hi = intervals(*DOMAINS.get(name, (-INF, INF)))
    node = node_of(name, lo.shape)
    y = interval_of(node, [Interval(lo, hi)])
    found = RELAXATIONS[name](node, [Interval(lo, hi)], y)
    x = inside(lo, hi)
    values = exact(name, x)
    with np.errstate(all="ignore"):
        for planes, side in ((found.lower, 1), (found.upper, -1)):
            for plane in planes:
                (slope,) = plane.slopes
                assert np.isfinite(slope).all()
                assert not np.isnan(plane.bias).any()
                line = np.where(slope == 0, plane.bias, slope * x + plane.bias)
                # The line itself is computed here with three roundings, the function with a few
                # units: without these every line holds.
                off = 4 * 2.0**-52 * (np.abs(slope * x) + np.abs(plane.bias))
                bad = side * (values - line) < -off - 8 * 2.0**-52 * np.abs(values)
                bad &= np.isfinite(values)
                assert not bad.any(), (name, lo[bad.any(0)], hi[bad.any(0)])


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "exp", "relu", "sin", "sinh", "log"])
def test_a_line_that_is_moved_past_the_function_is_found(name):
    """The test above fails where a bias is off by a thousandth of the function's range."""
    low, high = DOMAINS.get(name, (-INF, INF))
    lo, hi = np.clip(np.array([-1.0]), max(low, 0.1) if low == 0 else low, high), np.array([2.0])
    node = node_of(name, (1,))
    found = RELAXATIONS[name](node, [Interval(lo, hi)], interval_of(node, [Interval(lo, hi)]))
    x = inside(lo, hi)
    values = exact(name, x)
    plane = found.upper[0]
    moved = plane.slopes[0] * x + plane.bias - 0.002 * (values.max() - values.min())
    assert (moved < values).any()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "f", "df"), [
    ("tanh", np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    ("sigmoid", num.sigmoid, lambda x: num.sigmoid(x) * num.sigmoid(-x)),
    ("atan", np.arctan, lambda x: 1 / (1 + x * x)),
])  # fmt: skip
def test_the_tangent_of_an_s_goes_through_the_end(name, f, df):
    """The line above through the left end touches: it leaves nothing at two places. The point of
    tangency is the root that SciPy finds."""
    optimize = pytest.importorskip("scipy.optimize")
    lo, hi = -1.5, 9.0
    lines = rx.convex_concave(f, df, np.array([lo]), np.array([hi]))
    d = optimize.brentq(lambda t: f(t) - f(lo) - df(t) * (t - lo), 1e-6, hi)
    line = lines.upper[0]
    assert line.at(lo)[0] == pytest.approx(f(lo), abs=1e-9)
    assert line.slope[0] == pytest.approx(df(d), rel=1e-9)
    below = rx.convex_concave(f, df, np.array([-hi]), np.array([-lo])).lower[0]
    if name != "sigmoid":  # odd functions
        assert below.slope[0] == pytest.approx(df(d), rel=1e-9)
        assert below.bias[0] == pytest.approx(-line.bias[0], rel=1e-9)


def test_relu_has_the_triangle_of_the_paper():
    lines = rx.relu(np.array([-1.0, -2.0, 1.0, -3.0]), np.array([3.0, 1.0, 2.0, -1.0]))
    assert lines.upper[0].slope == pytest.approx([0.75, 1 / 3, 1.0, 0.0])
    assert lines.upper[0].bias == pytest.approx([0.75, 2 / 3, 0.0, 0.0])
    assert lines.lower[0].slope.tolist() == [1.0, 0.0, 1.0, 0.0]  # where the area is smaller
    assert lines.lower[1].slope.tolist() == [0.0, 1.0, 1.0, 0.0]


BINARY_ENDS = [(-1.0, 2.0), (0.0, 0.0), (-3.0, -1.0), (1e-9, 2e-9), (-1e5, 1e6), (0.5, 0.5)]


@pytest.mark.parametrize("name", ["mul", "zmul", "zzmul"])
def test_planes_of_products_hold(name):
    rng = np.random.default_rng(0)
    a = np.array([x for x in BINARY_ENDS for _ in BINARY_ENDS]).T
    b = np.array([y for _ in BINARY_ENDS for y in BINARY_ENDS]).T
    node = node_of(name, a[0].shape, b[0].shape)
    xs = [Interval(*a), Interval(*b)]
    found = RELAXATIONS[name](node, xs, interval_of(node, xs))
    share = [rng.integers(0, 2, (300, 1)), rng.uniform(size=(300, 1))]
    p = a[0] + (a[1] - a[0]) * np.concatenate([share[0], share[1]])
    q = b[0] + (b[1] - b[0]) * np.concatenate([rng.permutation(share[0]), share[1][::-1]])
    for planes, side in ((found.lower, 1), (found.upper, -1)):
        for plane in planes:
            line = plane.slopes[0] * p + plane.slopes[1] * q + plane.bias
            off = slack(plane.slopes[0] * p, plane.slopes[1] * q, plane.bias)
            assert (side * (p * q - line) >= -off).all()
    # Two of McCormick's planes meet the product at the corners that they are tangents at.
    corner = found.lower[1]
    at = corner.slopes[0] * a[0] + corner.slopes[1] * b[0] + corner.bias
    assert at == pytest.approx(a[0] * b[0], rel=1e-9, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, -1.0, -2.0, -0.5, 0.0])
def test_powers(exponent):
    whole = exponent == round(exponent)
    lo, hi = intervals(-50.0 if whole else 0.0, 50.0)
    if exponent < 0:
        lo, hi = np.abs(lo) + 0.01, np.abs(lo) + 0.01 + (hi - lo)
    node = node_of("pow", lo.shape, lo.shape)
    p = np.full(lo.shape, exponent)
    xs = [Interval(lo, hi), Interval(p, p)]
    found = RELAXATIONS["pow"](node, xs, interval_of(node, xs))
    x = inside(lo, hi)
    with np.errstate(all="ignore"):
        values = x**exponent
        for planes, side in ((found.lower, 1), (found.upper, -1)):
            for plane in planes:
                k, b = plane.slopes[0], plane.bias
                line = np.where(k == 0, b, k * x + b)
                assert (
                    side * (values - line) >= -slack(k * x, np.where(k == 0, 0, b), values)
                ).all()


def test_the_planes_of_select_hold_for_both():
    rng = np.random.default_rng(1)
    a, b = (np.sort(rng.normal(size=(2, 40)), axis=0) for _ in range(2))
    c = np.array([[0.0] * 20 + [1.0] * 10 + [0.0] * 10, [1.0] * 20 + [1.0] * 10 + [0.0] * 10])
    x = input_node(TensorType(float64, (40,)))
    node = el.select(el.gt(x, x), x, el.neg(x))
    xs = [Interval(*c), Interval(*a), Interval(*b)]
    found = RELAXATIONS["select"](
        node, xs, Interval(np.minimum(a[0], b[0]), np.maximum(a[1], b[1]))
    )
    p, q = (e[0] + (e[1] - e[0]) * rng.uniform(size=(200, 40)) for e in (a, b))
    for choice in (0, 1):
        values = np.where(np.clip(choice, c[0], c[1]) == 1, p, q)
        low, high = found.lower[0], found.upper[0]
        at = [k.slopes[0] * p + k.slopes[1] * q + k.bias for k in (low, high)]
        assert (at[0] <= values + 1e-12).all()
        assert (values <= at[1] + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e4])
def test_the_planes_of_logsumexp_and_of_maxima_hold(scale):
    from retrograd.ops.reduce import LogSumExp, ReduceMax

    rng = np.random.default_rng(2)
    ends = np.sort(rng.normal(size=(2, 7, 5)) * scale, axis=0)
    ends[1][:, 2] = ends[0][:, 2]
    x = input_node(TensorType(float64, (7, 5)))
    points = ends[0] + (ends[1] - ends[0]) * np.concatenate(
        [rng.uniform(size=(300, 7, 5)), rng.integers(0, 2, (300, 7, 5))]
    )
    for op, value in ((LogSumExp((1,)), rg.logsumexp), (ReduceMax((1,)), rg.max)):
        node = op(x)
        y = interval_of(node, [Interval(*ends)])
        found = RELAXATIONS[node.op](node, [Interval(*ends)], y)
        exact = np.asarray(value(rg.asarray(points), axis=-1))
        for planes, side in ((found.lower, 1), (found.upper, -1)):
            for plane in planes:
                line = (plane.slopes[0] * points).sum(-1) + plane.bias
                off = 1e-12 * scale + 1e-12
                assert (side * (exact - line) >= -off).all(), (node.op, side)


def test_clamp_is_bounded_by_its_kinks():
    lo, hi = intervals(-INF, INF)
    low, high = np.full(lo.shape, -0.5), np.full(lo.shape, 0.75)
    node = node_of("clamp", lo.shape, lo.shape, lo.shape)
    xs = [Interval(lo, hi), Interval(low, low), Interval(high, high)]
    found = RELAXATIONS["clamp"](node, xs, interval_of(node, xs))
    x = inside(lo, hi)
    values = np.clip(x, -0.5, 0.75)
    with np.errstate(all="ignore"):
        for planes, side in ((found.lower, 1), (found.upper, -1)):
            for plane in planes:
                k, b = plane.slopes[0], plane.bias
                line = np.where(k == 0, b, k * x + b)
                assert (side * (values - line) >= -slack(k * x, np.where(k == 0, 0, b))).all()
