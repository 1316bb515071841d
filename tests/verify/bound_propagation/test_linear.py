"""CROWN and alpha-CROWN: against a second implementation, exact ranges, and what programs give."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F
from retrograd.verify.bound_propagation import linear

METHODS = ("ibp", "crown", "alpha-crown")


@pytest.fixture(autouse=True)
def by_meaning(request):
    """Backward passes are run by their meaning, but in exhaustive tests: compiling takes longer."""
    if request.node.get_closest_marker("exhaustive"):
        yield
        return
    with rg.backend("reference"):
        yield


def rng(seed=0):
    return np.random.default_rng(seed)


def arrays(*sizes, seed=0, dtype=np.float32):
    r = rng(seed)
    return [
        ((r.normal(size=(a, b)) / np.sqrt(a)).astype(dtype), (r.normal(size=b) * 0.1).astype(dtype))
        for a, b in itertools.pairwise(sizes)
    ]


def mlp(layers, act):
    def f(x):
        for i, (w, b) in enumerate(layers):
            x = x @ w + b
            x = act(x) if i < len(layers) - 1 else x
        return x

    return f


def width(found):
    return np.asarray(found.upper) - np.asarray(found.lower)


def hold(f, box, found, n=40, seed=0):
    """Whether values at random points, corners, and points that ascend to both ends are inside."""
    r = rng(seed)
    low, high = box.lower, box.upper
    points = [r.uniform(low, high) for _ in range(n)]
    points += [np.where(r.integers(0, 2, low.shape) > 0, low, high) for _ in range(n)]
    points = [np.clip(p.astype(low.dtype), low, high) for p in points]
    y = np.stack([np.asarray(f(p)) for p in points]).astype(np.float64)
    assert (y >= found.lower).all()
    assert (y <= found.upper).all()
    return y


# -- a second implementation ----------------------------------------------------------------------


def crown_of_mlp(layers, lo, hi):
    """CROWN of a ReLU network as the paper writes it, with matrices."""
    weights = [(np.asarray(w, np.float64).T, np.asarray(b, np.float64)) for w, b in layers]
    known: list[tuple[np.ndarray, np.ndarray]] = []

    def concrete(k):
        ends = []
        for side in (1, -1):
            a, bias = side * np.eye(len(weights[k][1])), np.zeros(len(weights[k][1]))
            for i in range(k, -1, -1):
                w, b = weights[i]
                bias = bias + a @ b
                a = a @ w
                if i:
                    low, high = known[i - 1]
                    loose = (low < 0) & (high > 0)
                    up = np.where(loose, high / np.where(loose, high - low, 1), low >= 0)
                    down = np.where(loose, high > -low, low >= 0) * 1.0
                    plus, minus = np.maximum(a, 0), np.minimum(a, 0)
                    bias = bias + minus @ np.where(loose, -up * low, 0.0)
                    a = plus * down + minus * up
            ends.append(bias + np.maximum(a, 0) @ lo + np.minimum(a, 0) @ hi)
        return ends[0], -ends[1]

    for k in range(len(weights)):
        low, high = concrete(k)
        if k:  # intersected with intervals, as is done here
            p, q = np.maximum(known[-1][0], 0), np.maximum(known[-1][1], 0)
            w, b = weights[k]
            plus, minus = np.maximum(w, 0), np.minimum(w, 0)
            low = np.maximum(low, plus @ p + minus @ q + b)
            high = np.minimum(high, plus @ q + minus @ p + b)
        known.append((low, high))
    return known[-1]


@pytest.mark.parametrize("eps", [0.01, 0.1, 1.0])
def test_crown_is_that_of_the_paper(eps):
    layers = arrays(4, 12, 9, 3, dtype=np.float64)
    x = rng(1).normal(size=4)
    box = rg.verify.Box(x - eps, x + eps)
    found = rg.verify.bounds(mlp(layers, rg.relu), box, method="crown")
    low, high = crown_of_mlp(layers, box.lower, box.upper)
    assert found.lower == pytest.approx(low, rel=1e-9, abs=1e-9)
    assert found.upper == pytest.approx(high, rel=1e-9, abs=1e-9)


# -- beside exact ranges --------------------------------------------------------------------------


def exact_range(layers, lo, hi):
    """The range of a ReLU network with one hidden layer: a linear program for each pattern of
    active units that a point of the box has."""
    optimize = pytest.importorskip("scipy.optimize")
    (w, b), (v, c) = ((np.asarray(m, np.float64).T, np.asarray(k, np.float64)) for m, k in layers)
    ends = []
    for row, offset in zip(v, c, strict=True):
        least, most = np.inf, -np.inf
        for pattern in itertools.product((0.0, 1.0), repeat=len(b)):
            on = np.array(pattern)
            side = np.where(on > 0, -1.0, 1.0)
            cost, constant = (row * on) @ w, (row * on) @ b + offset
            for sign in (1, -1):
                result = optimize.linprog(
                    sign * cost, side[:, None] * w, -side * b, bounds=list(zip(lo, hi, strict=True))
                )
                if result.status == 0:
                    value = sign * result.fun + constant
                    least, most = min(least, value), max(most, value)
        ends.append((least, most))
    return np.array(ends).T


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_intervals_crown_alpha_crown_and_the_exact_range_are_nested(seed):
    layers = arrays(3, 6, 2, seed=seed, dtype=np.float64)
    x = rng(seed).normal(size=3)
    box = rg.verify.Box(x - 0.6, x + 0.6)
    ranges = [rg.verify.bounds(mlp(layers, rg.relu), box, method=m) for m in METHODS]
    low, high = exact_range(layers, box.lower, box.upper)
    for wide, narrow in itertools.pairwise(
        [*ranges, rg.verify.bounds.__globals__["Bounds"](low, high)]
    ):
        assert (wide.lower <= narrow.lower + 1e-9).all()
        assert (wide.upper >= narrow.upper - 1e-9).all()
    # Each step is worth something somewhere.
    assert width(ranges[1]).sum() < 0.98 * width(ranges[0]).sum()
    assert (width(ranges[2]) >= high - low - 1e-9).all()


@pytest.mark.slow
def test_a_linear_program_bounds_what_alpha_crown_can_reach():
    """Of one hidden layer alpha-CROWN is the dual of the triangle relaxation: with slopes that are
    optimal its bound is the value of that linear program."""
    optimize = pytest.importorskip("scipy.optimize")
    layers = arrays(3, 8, 1, seed=5, dtype=np.float64)
    (w, b), (v, c) = ((m.T, k) for m, k in layers)
    x = rng(5).normal(size=3)
    lo, hi = x - 0.5, x + 0.5
    z_low = np.maximum(w, 0) @ lo + np.minimum(w, 0) @ hi + b
    z_high = np.maximum(w, 0) @ hi + np.minimum(w, 0) @ lo + b
    n, k = w.shape[1], len(b)
    rows, ends = [], []
    limits = list(zip(lo, hi, strict=True)) + [(0, None)] * k
    for j in range(k):
        above, below = np.zeros(n + k), np.zeros(n + k)
        if z_low[j] >= 0 or z_high[j] <= 0:
            slope = float(z_low[j] >= 0)
            limits[n + j] = (None, None)
            above[:n], above[n + j] = -slope * w[j], 1.0
            rows += [above, -above]
            ends += [slope * b[j], -slope * b[j]]
            continue
        slope = z_high[j] / (z_high[j] - z_low[j])
        above[:n], above[n + j] = -slope * w[j], 1.0
        below[:n], below[n + j] = w[j], -1.0
        rows += [above, below]
        ends += [slope * (b[j] - z_low[j]), -b[j]]
    cost = np.concatenate([np.zeros(n), v[0]])
    best = optimize.linprog(cost, np.array(rows), np.array(ends), bounds=limits).fun + c[0]
    f = mlp(layers, rg.relu)
    found = rg.verify.bounds(f, rg.verify.Box(lo, hi), method="alpha-crown", iterations=60)
    first = rg.verify.bounds(f, rg.verify.Box(lo, hi), method="crown")
    assert found.lower[0] <= best + 1e-9
    assert found.lower[0] == pytest.approx(best, abs=0.02 * float(width(first)[0]))


# -- networks of every kind -----------------------------------------------------------------------


class Residual(rg.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = rg.nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = rg.nn.BatchNorm2d(channels)
        self.second = rg.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return rg.relu(x + self.second(rg.relu(self.norm(self.first(x)))))


class Attention(rg.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = (rg.nn.Linear(d, d) for _ in range(3))
        self.norm, self.out = rg.nn.LayerNorm(d), rg.nn.Linear(d, 2)

    def forward(self, x):
        scores = self.q(x) @ self.k(x).mT / self.q.weight.shape[0] ** 0.5
        return self.out(self.norm(x + rg.softmax(scores, -1) @ self.v(x))).sum(-2)


class Recurrent(rg.nn.Module):
    def __init__(self, kind, steps):
        super().__init__()
        self.cell, self.out = kind(2, 3, batch_first=True), rg.nn.Linear(3, 2)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1])


def network(name):
    """A network, the shape of its input, and the radius of the box."""
    rg.nn.init.manual_seed(0) if hasattr(rg.nn.init, "manual_seed") else None
    act = {"relu": rg.relu, "tanh": rg.tanh, "sigmoid": rg.sigmoid, "sin": rg.sin, "exp": rg.exp,
           "abs": rg.abs, "leaky_relu": F.leaky_relu, "gelu": F.gelu, "silu": F.silu, "elu": F.elu,
           "softplus": F.softplus, "square": lambda x: x * x,
           "clip": lambda x: rg.clip(x, -0.3, 0.5), "hardswish": F.hardswish, "mish": F.mish,
           "reciprocal": lambda x: 1 / (2 + x * x), "sqrt": lambda x: rg.sqrt(1 + rg.abs(x)),
           "log": lambda x: rg.log(1 + rg.exp(x)), "pow": lambda x: x**3,
           "maximum": lambda x: rg.maximum(x, x[..., ::-1])}  # fmt: skip
    if name in act:
        return mlp(arrays(4, 7, 6, 3), act[name]), (4,), 0.1
    wide, deep = mlp(arrays(4, 8, 3), rg.relu), mlp(arrays(4, 8, 8, 1), rg.relu)
    smooth = mlp(arrays(4, 8, 8, 1), rg.tanh)
    conv = rg.nn.Sequential(
        rg.nn.Conv2d(1, 2, 3, padding=1, stride=2), rg.nn.ReLU(), rg.nn.Conv2d(2, 2, 3, padding=1),
        rg.nn.ReLU(), rg.nn.MaxPool2d(2), rg.nn.Flatten(), rg.nn.Linear(8, 3),
    )  # fmt: skip
    residual = rg.nn.Sequential(
        Residual(2), rg.nn.AvgPool2d(2), rg.nn.Flatten(), rg.nn.Linear(8, 3)
    )
    return {
        "softmax": (lambda x: rg.softmax(wide(x), -1), (4,), 0.2),
        "log_softmax": (lambda x: rg.log_softmax(wide(x), -1), (4,), 0.2),
        "cross_entropy": (lambda x: F.cross_entropy(wide(x), np.array([1, 2])), (2, 4), 0.1),
        "gradient of relu": (rg.grad(lambda x: deep(x).sum()), (4,), 0.05),
        "gradient of tanh": (rg.grad(lambda x: smooth(x).sum()), (4,), 0.05),
        "conv": (conv, (2, 1, 8, 8), 0.05),
        "residual": (residual.eval(), (1, 2, 4, 4), 0.02),
        "attention": (Attention(3), (2, 3), 0.02),
        "lstm": (Recurrent(rg.nn.LSTM, 3), (1, 3, 2), 0.05),
        "gru": (Recurrent(rg.nn.GRU, 3), (1, 3, 2), 0.05),
        "sort": (lambda x: rg.sort(wide(x)) * 2.0, (4,), 0.1),
        "max pooling with padding": (
            lambda x: F.max_pool2d(x, 3, stride=2, padding=1) * 2.0, (1, 1, 5, 5), 0.5),
    }[name]  # fmt: skip


ACTS = ["relu", "tanh", "sigmoid", "sin", "exp", "abs", "leaky_relu", "gelu", "silu", "elu",
        "softplus", "square", "clip", "reciprocal", "sqrt", "log", "pow", "maximum", "hardswish",
        "mish"]  # fmt: skip
LARGER = ["softmax", "log_softmax", "cross_entropy", "gradient of relu", "gradient of tanh", "conv",
          "residual", "attention", "lstm", "gru", "sort", "max pooling with padding"]  # fmt: skip
BRIEF = ["relu", "softmax"]


def held(name, methods, n, **options):
    f, shape, eps = network(name)
    x = rng(3).normal(size=shape).astype(np.float32)
    box = rg.verify.ball(x, eps)
    found = [
        rg.verify.bounds(f, box, method=m, **(options if m == "alpha-crown" else {}))
        for m in methods
    ]
    for wide, narrow in itertools.pairwise(found):
        assert (wide.lower <= narrow.lower).all()
        assert (wide.upper >= narrow.upper).all()
    with rg.backend(
        "llvm" if n > 10 else "reference"
    ):  # in float32, where bounds that ignored rounding would be violated
        y = hold(rg.jit(f), box, found[-1], n)
    assert np.isfinite(found[-1].lower).all()
    return found, y


@pytest.mark.parametrize("name", BRIEF)
def test_bounds_of_networks_hold_and_are_nested(name):
    held(name, ("ibp", "crown"), 10)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ACTS, *LARGER])
def test_bounds_of_networks_of_every_kind_hold_and_are_nested(name):
    held(name, METHODS if name in ("relu", "silu", "conv") else METHODS[:2], 150, iterations=3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*ACTS, *LARGER])
def test_compiled_bounds_of_networks_of_every_kind_hold_and_are_nested(name):
    found, _ = held(name, METHODS, 2000)
    f, shape, eps = network(name)
    searched(f, shape, eps, found[-1])


def searched(f, shape, eps, found, steps=20):
    """Whether values are inside that a search by gradients finds, for both ends of each element."""
    x = rng(3).normal(size=shape).astype(np.float32)
    box = rg.verify.ball(x, eps)
    g, slopes = rg.jit(f), rg.jit(rg.jacrev(f))
    for end in range(np.asarray(g(x)).size):
        for side in (-1, 1):
            p = x
            for i in range(steps):
                slope = np.asarray(slopes(p)).reshape(-1, *shape)[end]
                p = p + side * eps * 0.5 * 0.8**i * np.sign(slope)
                p = np.clip(p.astype(np.float32), box.lower, box.upper)
                y = np.asarray(g(p), np.float64)
                assert (y >= found.lower).all()
                assert (y <= found.upper).all()


@pytest.mark.slow
def test_a_bound_that_is_too_tight_is_found():
    """The samples reach what is a part of the bounds, so that they would notice."""
    (_, found), y = held("relu", ("ibp", "crown"), 100)
    inside = (y.max(0) - y.min(0)) / width(found)
    assert inside.max() > 0.3


def test_rounding_of_float32_is_inside():
    """A sum of many terms of both signs: what float32 gives differs in the order of the sum."""
    r = rng(0)
    w = (r.normal(size=(4000, 2)) * 1e3).astype(np.float32)
    x = r.normal(size=4000).astype(np.float32)
    f = lambda x: rg.relu(x @ w + 1.0) * 1.0
    found = rg.verify.bounds(f, rg.verify.Box(x, x + np.float32(1e-6)), method="crown")
    assert (np.asarray(f(x), np.float64) >= found.lower).all()
    exact = np.maximum(x.astype(np.float64) @ w.astype(np.float64) + 1, 0)
    assert (exact >= found.lower).all()
    assert (exact <= found.upper).all()
    assert (width(found)[exact > 0] > 1e-3).all()  # about 1e5 * 4000 * 2**-23 at most


# -- samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["relu", pytest.param("softmax", marks=pytest.mark.slow)])
def test_samples_of_a_stack_are_bounded_as_each_alone(name):
    f, shape, eps = network(name)
    x = rng(4).normal(size=(5, *shape)).astype(np.float32)
    whole = rg.verify.bounds(f, rg.verify.ball(x, eps), method="crown")
    for i in range(5):
        one = rg.verify.bounds(f, rg.verify.ball(x[i], eps), method="crown")
        assert whole.lower[i] == pytest.approx(one.lower, rel=1e-6, abs=1e-7)
        assert whole.upper[i] == pytest.approx(one.upper, rel=1e-6, abs=1e-7)


def test_samples_that_are_mixed_are_one():
    w = rng(0).normal(size=(4, 4)).astype(np.float32)
    f = lambda x: rg.relu((x - x.mean(0)) @ w).sum(-1)
    box = rg.verify.ball(rng(1).normal(size=(3, 4)).astype(np.float32), 0.1)
    found = [rg.verify.bounds(f, box, method=m) for m in ("ibp", "crown")]
    assert (width(found[1]) <= width(found[0])).all()
    hold(f, box, found[1])


# -- balls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2, 3, np.inf])
def test_a_linear_function_of_a_ball_goes_by_the_dual_norm(norm):
    w, x = rng(0).normal(size=(6, 3)), rng(1).normal(size=6)
    found = rg.verify.bounds(lambda x: x @ w, rg.verify.ball(x, 0.3, norm=norm), method="crown")
    dual = {1: np.inf, 2: 2, 3: 1.5, np.inf: 1}[norm]
    reach = 0.3 * np.linalg.norm(w, dual, axis=0)
    assert found.lower == pytest.approx(x @ w - reach, rel=1e-7)
    assert found.upper == pytest.approx(x @ w + reach, rel=1e-7)


@pytest.mark.parametrize("norm", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_balls_of_a_network_hold(norm):
    f = mlp(arrays(5, 9, 8, 2), rg.relu)
    r = rng(2)
    x = r.normal(size=5).astype(np.float32)
    box = rg.verify.ball(x, 0.4, norm=norm)
    found = rg.verify.bounds(f, box, method="crown")
    cube = rg.verify.bounds(f, rg.verify.ball(x, 0.4), method="crown")
    assert (width(found) < width(cube)).all()
    d = r.normal(size=(500, 5))
    d = np.concatenate([d, np.eye(5), -np.eye(5)])
    d *= 0.4 / np.linalg.norm(d, norm, axis=1, keepdims=True)
    y = np.asarray(f((x + d).astype(np.float32)), np.float64)
    assert (y >= found.lower).all()
    assert (y <= found.upper).all()


# -- what is odd ----------------------------------------------------------------------------------


def test_infinite_and_empty_and_point_boxes():
    f = mlp(arrays(2, 4, 1), rg.relu)
    box = rg.verify.Box([-np.inf, 0.0], [1.0, 1.0])
    found = rg.verify.bounds(f, box, method="crown")
    wide = rg.verify.bounds(f, box)
    assert (found.lower >= wide.lower).all()
    assert not np.isnan(found.lower).any()
    point = rg.verify.bounds(f, rg.verify.Box([0.5, 0.5], [0.5, 0.5]), method="crown")
    assert float(width(point)[0]) < 1e-5
    none = rg.verify.bounds(f, rg.verify.Box(np.zeros((0, 2)), np.zeros((0, 2))), method="crown")
    assert none.lower.shape == (0, 1)


def test_integers_are_bounded_by_intervals():
    f = lambda n, x: rg.relu(x) * n.astype(rg.float32)
    n = rg.verify.Box(np.array([1, 2]), np.array([2, 3]))
    found = rg.verify.bounds(f, n, rg.verify.Box([-1.0, 1.0], [1.0, 2.0]), method="crown")
    assert found.upper == pytest.approx([2.0, 6.0], rel=1e-5)


def test_two_regions():
    f = lambda a, b: (a * b).sum()
    a, b = rg.verify.Box([0.0, 1.0], [1.0, 2.0]), rg.verify.Box([-1.0, 1.0], [1.0, 3.0])
    found = rg.verify.bounds(f, a, b, method="crown")
    assert found.lower == pytest.approx(0.0, abs=1e-5)
    assert found.upper == pytest.approx(7.0, rel=1e-5)


def test_a_function_of_one_variable_is_passed_at_once_whatever_is_inside():
    """hypot has no planes: where the walk ended there, what came from behind it was lost."""
    f = lambda x: rg.erf(rg.hypot(1 / (1 + x * x), 1 / (1 + x * x)))
    box = rg.verify.Box([-3.0, 0.5], [2.0, 30.0])
    found = rg.verify.bounds(f, box, method="crown")
    hold(f, box, found, 200)


@pytest.mark.slow
def test_softmax_inside_of_a_function_of_one_variable():
    f = lambda x: rg.softmax(x, -1) * rg.sigmoid(rg.softmax(x, -1))
    box = rg.verify.Box([-0.3, 0.5, 0.0], [0.2, 1.0, 0.1])
    found = rg.verify.bounds(f, box, method="crown")
    hold(f, box, found, 100)
    assert (width(found) <= width(rg.verify.bounds(f, box))).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gelu_is_within_the_error_that_bounds_take_it_for(dtype):
    """As the program writes it, gelu is exact to a few units: bounds go by the function."""
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.linspace(-12, 12, 20001), 10.0 ** np.linspace(-9, 3, 500)]).astype(dtype)
    with rg.backend("llvm"):
        y = np.asarray(rg.gelu(x), np.float64)
    wide = x.astype(np.float64)
    exact = wide * special.ndtr(wide)
    assert (
        np.abs(y - exact) <= 4 * np.finfo(dtype).eps * (np.minimum(np.abs(wide), 1) + np.abs(y))
    ).all()


def test_weights_that_are_given_share_one_program():
    """Of a module that is an argument, programs know the shapes alone."""
    model = rg.nn.Sequential(rg.nn.Linear(3, 6), rg.nn.ReLU(), rg.nn.Linear(6, 2))
    other = rg.nn.Sequential(rg.nn.Linear(3, 6), rg.nn.ReLU(), rg.nn.Linear(6, 2))
    box = rg.verify.ball(rng(0).normal(size=(2, 3)).astype(np.float32), 0.2)
    apply = lambda model, x: model(x)
    before = set(linear._NETWORKS)
    for m in (model, other):
        given = rg.verify.bounds(apply, m, box, method="crown")
        closed = rg.verify.bounds(m, box, method="crown")
        assert given.lower == pytest.approx(closed.lower, abs=1e-6)
        assert given.upper == pytest.approx(closed.upper, abs=1e-6)
    assert len(set(linear._NETWORKS) - before) == 3  # one of both, and one for each that is closed


@pytest.mark.slow
def test_threads_may_share_a_network():
    f = mlp(arrays(3, 6, 2), rg.relu)
    boxes = [rg.verify.ball(rng(i).normal(size=3).astype(np.float32), 0.2) for i in range(8)]
    alone = [rg.verify.bounds(f, box, method="crown") for box in boxes]

    def find(box):
        with rg.backend("reference"):
            return rg.verify.bounds(f, box, method="crown")

    with ThreadPoolExecutor(4) as pool:
        for a, b in zip(alone, pool.map(find, boxes), strict=True):
            assert a.lower.tolist() == b.lower.tolist()
            assert a.upper.tolist() == b.upper.tolist()


def test_options():
    f = mlp(arrays(2, 4, 1), rg.relu)
    box = rg.verify.Box([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(rg.RetrogradError, match="iterations"):
        rg.verify.bounds(f, box, method="alpha-crown", iterations=-1)
    none = rg.verify.bounds(f, box, method="alpha-crown", iterations=0)
    crown = rg.verify.bounds(f, box, method="crown")
    assert none.lower == pytest.approx(crown.lower)
