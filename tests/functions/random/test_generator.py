"""Generators: reproducible to the bit, right distributions, right errors."""

import numpy as np
import pytest
from scipy import stats

import retrograd as rg


def draws(g):
    return [
        g.bits((3,)), g.uniform((4,)), g.uniform((2,), dtype="float64"), g.normal((5,)),
        g.normal((3,), dtype="float64"), g.randint(-5, 5, (4,)), g.bernoulli(0.3, (5,)),
        g.permutation(6), g.randint(0, 2**40, (2,)),
    ]  # fmt: skip


def test_every_backend_gives_the_same_bits():
    results = []
    for name in ("reference", "llvm"):
        with rg.backend(name):
            results.append([d.numpy().tobytes() for d in draws(rg.random.Generator(11))])
    assert results[0] == results[1]


def test_seeds_differ_and_streams_continue():
    with rg.backend("reference"):
        g = rg.random.Generator(1)
        first, second = g.bits((4,)).tolist(), g.bits((4,)).tolist()
        assert first != second
        assert rg.random.Generator(2).bits((4,)).tolist() != first
        state = g.state_dict()
        third = g.bits((4,)).tolist()
        other = rg.random.Generator(99)
        other.load_state_dict(state)
        assert other.bits((4,)).tolist() == third
        assert g.split().bits((4,)).tolist() != third


def test_known_values_do_not_change_between_releases():
    with rg.backend("reference"):
        assert rg.random.Generator(0).bits((2,)).tolist() == [1376317343, 717824993]


def test_distributions():
    with rg.backend("reference"):
        g = rg.random.Generator(3)
        assert stats.kstest(g.uniform((20000,), dtype="float64").numpy(), "uniform").pvalue > 1e-3
        assert stats.kstest(g.normal((20000,), dtype="float64").numpy(), "norm").pvalue > 1e-3
        counts = np.bincount(g.randint(0, 7, (70000,)).numpy(), minlength=7)
        assert stats.chisquare(counts).pvalue > 1e-3
        assert g.bernoulli(0.2, (50000,)).numpy().mean() == pytest.approx(0.2, abs=0.01)
        logits = rg.tensor([[0.0, np.log(3.0)]]).broadcast_to((40000, 2))
        assert g.categorical(logits).numpy().mean() == pytest.approx(0.75, abs=0.01)
        assert sorted(g.permutation(10).tolist()) == list(range(10))
        z = g.normal((10000,), mean=2.0, std=0.5).numpy()
        assert z.mean() == pytest.approx(2, abs=0.03)
        assert z.std() == pytest.approx(0.5, abs=0.03)


def test_categorical_draws_as_often_as_it_is_asked():
    with rg.backend("reference"):
        logits = np.log([[0.1, 0.7, 0.2], [0.5, 0.5, 1e-30]])
        drawn = rg.random.Generator(5).categorical(logits, shape=(20000, 2))
        assert drawn.shape == (20000, 2)
        for i, p in enumerate([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0]]):
            counts = np.bincount(drawn.numpy()[:, i], minlength=3)
            np.testing.assert_allclose(counts / 20000, p, atol=0.015)
        # What the logits written out so often would draw.
        wide = np.broadcast_to(logits, (20000, 2, 3))
        assert (drawn == rg.random.Generator(5).categorical(wide)).all()
        across = rg.random.Generator(5).categorical(logits.T, axis=0, shape=(20000, 2))
        assert (drawn == across).all()
        with pytest.raises(rg.ShapeError, match="broadcast"):
            rg.random.Generator(5).categorical(logits, shape=(20000, 3))


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (-5, 5, "int8"), (0, 2**32, "int64"), (0, 2**40, "int64"), (-(2**63), 2**63, "int64"),
        (0, 2**64, "uint64"), (2**63, 2**63 + 9, "uint64"), (0, 2**32 + 1, "uint64"),
    ],
)  # fmt: skip
def test_bounds_of_integers(low, high, dtype):
    """Drawn at once and on the reference backend; no number is lost on the way."""
    drawn = []
    for backend in ("llvm", "reference"):
        with rg.backend(backend):
            drawn.append(rg.random.Generator(3).randint(low, high, (40,), dtype=dtype).tolist())
    assert drawn[0] == drawn[1]
    assert all(low <= x < high for x in drawn[0])
    middle = (low + high) // 2
    assert any(x < middle for x in drawn[0])
    assert any(x >= middle for x in drawn[0])


def test_integers_are_recorded_once(monkeypatch):
    """An eager loop that draws integers finds its program again."""
    from retrograd.functions.random import generator

    made = []
    below = generator._below

    def counted(*args):
        made.append(args)
        return below(*args)

    monkeypatch.setattr(generator, "_below", counted)
    w, g = rg.tensor([2.0, 3.0], requires_grad=True), rg.random.Generator(0)
    with rg.backend("reference"):
        for i in range(40):
            if i == 30:
                made.clear()
            (w * g.randint(0, 4, (2,))).sum().backward()
            w.grad.tolist()
    assert made == []


def test_bad_arguments():
    with pytest.raises(rg.OptionError, match="seed"):
        rg.random.Generator(-1)
    g = rg.random.Generator(0)
    for p in (2, -0.1, float("nan")):
        with pytest.raises(rg.OptionError, match="a probability is from 0 to 1"):
            g.bernoulli(p)
    with pytest.raises(rg.ShapeError, match="range"):
        g.randint(5, 5)
    with pytest.raises(rg.DTypeError):
        g.normal((2,), dtype="int32")
    with pytest.raises(rg.ShapeError, match="negative"):
        g.normal((-1,))


def test_a_seed_that_is_traced_says_what_to_give_instead():
    draw = lambda seed: rg.random.Generator(seed).normal((2,))
    for call in (lambda: rg.vmap(draw)(rg.arange(3)), lambda: rg.jit(draw)(rg.tensor(3))):
        with pytest.raises(rg.TraceError, match=r"Generator\(0\)\.split\(n\)"):
            call()
    assert draw(rg.tensor(3)).tolist() == draw(3).tolist()


def test_a_generator_made_while_tracing_draws_what_its_seed_says():
    def f(x):
        g = rg.random.Generator(3)
        g.jump()
        own = g.split()
        return x + g.normal((3,)), own.uniform(), g.split(2)[1].normal()

    compiled = rg.jit(f)
    for _ in range(2):
        for a, b in zip(compiled(rg.zeros(3)), f(rg.zeros(3)), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_generator_from_around_a_loop_is_refused():
    def f(x):
        g = rg.random.Generator(3)
        return rg.scan(lambda c, t: (c, t + g.normal()), 0.0, x)[1]

    for call in (f, rg.jit(f)):
        with pytest.raises(rg.errors.TraceError, match=r"inside a loop.*carry it along"):
            call(rg.zeros(3))
    carried = rg.jit(
        lambda x: rg.scan(lambda g, t: (g, t + g.normal()), rg.random.Generator(3), x)[1]
    )
    g = rg.random.Generator(3)
    assert carried(rg.zeros(3)).tolist() == [g.normal().item() for _ in range(3)]


def test_orders_are_drawn_inside_transforms():
    x = np.arange(12.0).reshape(4, 3)

    def f(g, x):
        p = np.array([0.1, 0.2, 0.3, 0.4])
        return (
            g.permutation(x), g.permutation(6), g.shuffle(x, axis=1), g.choice(x, (5,)),
            g.choice(x, (2,), replace=False), g.choice(x, (2,), replace=False, p=p),
        )  # fmt: skip

    expected = f(rg.random.Generator(1), x)
    for a, b in zip(rg.jit(f)(rg.random.Generator(1), x), expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    stack = rg.random.Generator(0).split(3)
    orders = rg.vmap(lambda g: g.permutation(5))(stack)
    for i in range(3):
        np.testing.assert_array_equal(orders[i].numpy(), stack[i].permutation(5).numpy())


def test_draws_of_a_named_number():
    def f(x):
        g = rg.random.Generator(5)
        return (
            g.permutation(x.shape[0]),
            g.choice(x, (3,)),
            g.shuffle(x),
            g.randint(2, x.shape[0], 9),
        )

    named = rg.jit(f, shapes={"x": "N"})
    for n in (4, 7):
        x = np.arange(float(n))
        for a, b in zip(named(x), f(x), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert named.cache_stats()["compilations"] == 1


def test_uniform_takes_arrays_as_limits():
    low, high = np.array([0.0, 10.0]), np.array([1.0, 20.0])
    drawn = rg.random.Generator(0).uniform((500, 2), low, high).numpy()
    assert (drawn >= low).all()
    assert (drawn < high).all()
    assert drawn[:, 1].max() > 15
    for given in (low.tolist(), high.astype(np.int8).tolist()):
        assert rg.random.Generator(0).uniform((2,), given, 30.0).dtype == rg.float32


def test_bad_limits_means_and_deviations():
    g = rg.random.Generator(0)
    for draw in (g.uniform, g.normal):
        with pytest.raises(rg.ShapeError, match="do not broadcast"):
            draw((2,), np.zeros(2), np.ones(3))
        with pytest.raises(rg.DTypeError, match="real numbers"):
            draw((2,), 0.0, [1j, 2])
        with pytest.raises(rg.DTypeError, match="str"):
            draw((2,), "a")
