"""Proofs against exact minima (mixed-integer programs of SciPy), sampling, and their own limits."""

import numpy as np
import pytest

import retrograd as rg
from tests.verify.networks import minimum, mlp, run

verify = rg.verify
BOX = verify.Box(np.full(2, -1, np.float32), np.full(2, 1, np.float32))


def hat(x):
    """-relu(x0) - relu(x1) + relu(x0 + x1): between -1 and 0 in the box."""
    return rg.relu(x[0] + x[1]) - rg.relu(x[0]) - rg.relu(x[1])


@pytest.mark.slow
def test_proved_falsified_unknown():
    with rg.backend("reference"):
        assert verify.prove(hat, verify.Property(BOX, lambda y: y < 0.001)).proved
        found = verify.prove(hat, verify.Property(BOX, lambda y: y > -0.99))
        assert found.status == "falsified"
        assert found.output <= -0.99
        assert found.counterexample in BOX
        assert hat(rg.asarray(found.counterexample)).item() == found.output
        once = verify.Property(BOX, lambda y: y > -1.0001)
        assert verify.prove(hat, once, method="crown").status == "unknown"
        assert verify.prove(hat, once, method="crown").gap > 0.1
    with pytest.raises(rg.RetrogradError, match="truth value"):
        bool(found)
    with pytest.raises(rg.RetrogradError, match="falsified"):
        found.certificate  # noqa: B018


def test_a_property_that_holds_by_less_than_roundings_is_not_proved():
    """-1 is reached: `y >= -1` is true of real numbers, and of these floats; nothing proves it."""
    with rg.backend("reference"):
        tight = verify.Property(BOX, lambda y: y >= -1)
        assert verify.prove(hat, tight, timeout=0.3).status == "unknown"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("split", ["relu", "input"])
def test_exact_minimum(seed, split):
    """A bound a little below the minimum is proved and certified, one a little above is refuted."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 6))
    f, layers = mlp([n, 6, 6, 3], seed)
    low, high = -random.random(n), random.random(n)
    box = verify.Box(low.astype(np.float32), high.astype(np.float32))
    cost = random.normal(size=3)
    least, x = minimum(layers, box.lower, box.upper, cost)
    assert (run(layers, x[None]) @ cost)[0] == pytest.approx(least, abs=1e-5)
    for margin in (0.1, 1e-3, 1e-4):
        below = verify.Property(box, lambda y, m=margin: (y * cost).sum() > least - m)
        found = verify.prove(f, below, split=split)
        assert found.proved
        found.certificate.check()
        points = box.lower + (box.upper - box.lower) * random.random((20_000, n))
        assert (run(layers, points) @ cost).min() > least - margin
        above = verify.Property(box, lambda y, m=margin: (y * cost).sum() > least + m)
        found = verify.prove(f, above, split=split, attack=False)
        assert found.status == "falsified"
        assert found.counterexample in box
        assert found.output @ cost <= least + margin


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(10))
def test_a_million_adversarial_points(seed):
    """No sample, random or from descent, violates what was proved."""
    f, layers = mlp([4, 12, 12, 3], seed)
    random = np.random.default_rng(seed)
    box = verify.Box(np.full(4, -1, np.float32), np.full(4, 1, np.float32))
    cost = random.normal(size=3)
    least, _ = minimum(layers, box.lower, box.upper, cost)
    prop = verify.Property(box, lambda y: (y * cost).sum() > least - 0.01)
    found = verify.prove(f, prop)
    assert found.proved
    found.certificate.check()
    points = random.random((1_000_000, 4)) * 2 - 1
    corners = np.round(points[:1000]).clip(-1, 1)
    for x in (points, corners, np.sign(points[:1000])):
        assert (run(layers, x) @ cost).min() > least - 0.01
    assert not verify.attack(f, prop, steps=200, restarts=256, seed=seed).found


@pytest.mark.slow
def test_the_methods_are_ever_tighter():
    f, layers = mlp([4, 10, 10, 2], 3)
    box = verify.Box(np.full(4, -0.4, np.float32), np.full(4, 0.4, np.float32))
    least, _ = minimum(layers, box.lower, box.upper, [1.0, 0.0])
    prop = verify.Property(box, lambda y: y[0] > least - 1e-3)
    gaps = [
        verify.prove(f, prop, method=method, attack=False).gap
        for method in ("crown", "alpha-crown", "beta-crown")
    ]
    assert gaps[0] > gaps[1] > gaps[2] == 0
    assert verify.prove(f, prop, method="ibp", attack=False).gap > gaps[1]


@pytest.mark.slow
def test_graphs_modules_and_several_inputs():
    with rg.backend("reference"):
        layer = rg.nn.Linear(2, 2)
        rg.nn.init.ones_(layer.weight)
        rg.nn.init.zeros_(layer.bias)
        prop = verify.Property(BOX, lambda y: (y < 2.001) & (y > -2.001))
        assert verify.prove(layer, prop).proved
        graph = rg.trace(layer, rg.spec((2,)))
        assert verify.prove(graph, prop).proved

        def two(a, b, w):
            return rg.relu(a) * w - b

        boxes = (BOX, verify.Box(np.zeros(2, np.float32), np.ones(2, np.float32)), 2.0)
        assert verify.prove(two, verify.Property(boxes, lambda y: (y >= -1.1) & (y < 2.1))).proved
        found = verify.prove(two, verify.Property(boxes, lambda y: y < 1.9))
        assert found.status == "falsified"
        a, b = found.counterexample
        assert two(rg.asarray(a), rg.asarray(b), 2.0).max().item() >= 1.9


@pytest.mark.slow
def test_balls():
    """In the 2-norm a + b grows by sqrt(2) eps, in the largest norm by 2 eps."""
    with rg.backend("reference"):

        def f(x):
            return rg.stack([x[0] + x[1], x[0] * 0])

        x = np.array([1.0, 1.0], np.float32)
        for norm, reach in ((2, 2**0.5), (np.inf, 2)):
            assert verify.prove(f, verify.robust(x, 0, 1.99 / reach, norm=norm)).proved
            found = verify.prove(f, verify.robust(x, 0, 2.01 / reach, norm=norm))
            assert found.status == "falsified"
            away = np.linalg.norm(found.counterexample.astype(float) - x, norm)
            assert away <= 2.01 / reach * (1 + (norm == np.inf) * 1e-6)


def test_float16_counts_its_roundings():
    """In float16 a sum near 2048 is off by a half at least."""
    with rg.backend("reference"):
        box = verify.Box(np.full(2, 1023, np.float16), np.full(2, 1024, np.float16))

        def f(x):
            return rg.relu(x[0] + x[1])

        assert not verify.prove(f, verify.Property(box, lambda y: y < 2048.1), timeout=0.2).proved
        assert verify.prove(f, verify.Property(box, lambda y: y < 2060)).proved
        big = verify.Box(np.full(2, 4e4, np.float16), np.full(2, 5e4, np.float16))
        with pytest.raises(rg.RetrogradError, match="overflow"):
            verify.prove(f, verify.Property(big, lambda y: y > 0), attack=False)


def test_bad_calls():
    prop = verify.Property(BOX, lambda y: y < 1)
    for change, match in (
        ({"method": "beta"}, "beta-crown"),
        ({"timeout": 0}, "timeout"),
        ({"steps": -1}, "steps"),
        ({"split": "both"}, "split"),
    ):
        with pytest.raises(rg.RetrogradError, match=match):
            verify.prove(hat, prop, **change)
    with pytest.raises(rg.RetrogradError, match="Property"):
        verify.prove(hat, lambda y: y > 0)
    with pytest.raises(rg.RetrogradError, match="function, a module or a graph"):
        verify.prove(3, prop)
    wide = verify.Box(np.full(2, -np.inf, np.float32), np.zeros(2, np.float32))
    with pytest.raises(rg.RetrogradError, match="infinite"):
        verify.prove(hat, verify.Property(wide, lambda y: y < 1))
    with pytest.raises(rg.RetrogradError, match="infinite or NaN"):
        verify.prove(lambda x: x * np.inf, prop, attack=False)


@pytest.mark.slow
def test_models_of_onnx(tmp_path):
    """A model that is written, read, and proved or refuted like the module it was."""
    pytest.importorskip("onnx")
    rg.manual_seed(0)
    model = rg.nn.Sequential(
        rg.nn.Conv2d(1, 2, 3, padding=1), rg.nn.ReLU(), rg.nn.Flatten(), rg.nn.Linear(32, 3)
    ).eval()
    path = tmp_path / "model.onnx"
    rg.trace(model, rg.spec((1, 1, 4, 4))).to_onnx(path)
    graph = rg.load_onnx(path)
    x = np.random.default_rng(0).random((1, 1, 4, 4)).astype(np.float32)
    label = int(model(rg.asarray(x)).argmax())
    for eps, status in ((0.001, "proved"), (0.9, "falsified")):
        prop = verify.robust(x, label, eps, clip=(0, 1))
        for f in (model, graph):
            found = verify.prove(f, prop, timeout=20)
            assert found.status == status
            if found.proved:
                found.certificate.check()
                assert found.certificate.json["network"]["inputs"] == 16
            else:
                assert found.output.argmax() != label
