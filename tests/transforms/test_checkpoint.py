"""checkpoint: the same values and derivatives, less memory, on every backend."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import substitute
from tests.smooth_graphs import smooth_arrays, smooth_graph

RNG = np.random.default_rng(0)
LAYERS = [RNG.normal(size=(4, 4)) / 2 for _ in range(6)]
X = RNG.normal(size=(5, 4))


@pytest.fixture(autouse=True)
def one_thread():
    """Every thread has memory of its own, so what is planned depends on their number."""
    with rg.num_threads(1):
        yield


def stack(ws, x):
    for w in ws:
        x = rg.gelu(x @ w)
    return x


def loss(ws, x, wrap: Any = lambda f: f):
    return (wrap(stack)(ws[:3], x) * 2 + wrap(lambda y: stack(ws[3:], y))(x)).sum() ** 2


POLICIES = {
    "nothing": rg.checkpoint,
    "contractions": rg.checkpoint(policy="contractions"),
    "budget": rg.checkpoint(policy=2000),
    "generous": rg.checkpoint(policy="1 MB"),
    "own": rg.checkpoint(policy=lambda node: node.shape == (5, 4) and node.op == "erfc"),
    "nested": lambda f: rg.checkpoint(rg.checkpoint(f)),
}


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.sample(4)
def test_gradients_are_those_without(policy, backend):
    wrapped = lambda ws, x: loss(ws, x, POLICIES[policy])
    with rg.backend(backend):
        value, slopes = rg.value_and_grad(loss)(LAYERS, X)
        for f in (rg.value_and_grad(wrapped), rg.jit(rg.value_and_grad(wrapped))):
            v, s = f(LAYERS, X)
            assert v.item() == pytest.approx(value.item(), rel=1e-13)
            for a, b in zip(s, slopes, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-11)


def test_every_transform_goes_through():
    f = lambda x: (rg.exp(rg.sin(x)) * x).sum()
    c = rg.checkpoint(f)
    x = X[0]
    np.testing.assert_allclose(rg.hessian(c)(x).numpy(), rg.hessian(f)(x).numpy(), rtol=1e-12)
    np.testing.assert_allclose(
        rg.jacfwd(rg.hessian(c))(x).numpy(), rg.jacfwd(rg.hessian(f))(x).numpy(), rtol=1e-12
    )
    np.testing.assert_allclose(
        rg.vmap(rg.grad(c))(X).numpy(), rg.vmap(rg.grad(f))(X).numpy(), rtol=1e-12
    )
    np.testing.assert_allclose(
        rg.grad(lambda x: rg.vmap(c)(x).sum())(X).numpy(),
        rg.grad(lambda x: rg.vmap(f)(x).sum())(X).numpy(),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        rg.grad(rg.checkpoint(lambda x: (rg.grad(c)(x) ** 2).sum()))(x).numpy(),
        rg.grad(lambda x: (rg.grad(f)(x) ** 2).sum())(x).numpy(),
        rtol=1e-12,
    )
    _, t = rg.jvp(c, (x,), (X[1],))
    assert t.item() == pytest.approx(rg.jvp(f, (x,), (X[1],))[1].item(), rel=1e-12)


def test_modules_backward_and_what_is_taken_from_around():
    model: Any = nn.Linear(4, 4)
    x = rg.tensor(X.astype(np.float32))
    scale: Any = rg.tensor(2.0, requires_grad=True)
    (rg.tanh(model(x)) * scale * rg.exp(scale)).sum().backward()
    expected = [model.weight.grad.numpy(), scale.grad.numpy()]
    model.weight.grad = scale.grad = None
    grown = rg.exp(scale)  # recorded before, and not computed yet
    rg.checkpoint(lambda x: rg.tanh(model(x)) * scale * grown)(x).sum().backward()
    np.testing.assert_allclose(model.weight.grad.numpy(), expected[0], rtol=1e-5)
    np.testing.assert_allclose(scale.grad.numpy(), expected[1], rtol=1e-5)


def test_integers_masks_and_random_numbers_inside():
    def f(x, g):
        keep = g.bernoulli(0.5, x.shape)
        y = rg.where(keep, x, 0.0)
        return (rg.take(rg.sort(y, axis=1), rg.argmax(y[0])[None], axis=1) * rg.sin(y)).sum()

    generator = lambda: rg.random.Generator(5)
    expected = rg.grad(f)(X, generator()).numpy()
    found = rg.grad(rg.checkpoint(f))(X, generator()).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_results_of_any_structure_pass_through():
    f = rg.checkpoint(lambda x, *, scale: {"y": x * scale, "same": x, "label": "text", "n": None})
    out = f(rg.ones(2), scale=3.0)
    assert out["y"].tolist() == [3, 3]
    assert out["same"].tolist() == [1, 1]
    assert (out["label"], out["n"]) == ("text", None)


def peak(f, *specs):
    return rg.trace(f, *specs).stats().compiled_bytes


@pytest.mark.parametrize("policy", ["everything", -3, True, 0, "64 MX"])
def test_policies_there_are_not(policy):
    with pytest.raises(rg.OptionError, match="policy is"):
        rg.checkpoint(lambda x: x, policy=policy)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.sample(2)
def test_random_functions_under_random_policies(seed):
    """Pieces may be cut anywhere, and anything may be kept."""
    with rg.backend("llvm" if seed < 3 else "reference"):
        check_random_function(seed)


def check_random_function(seed):
    rng = np.random.default_rng(seed)
    graph = smooth_graph(seed, 16)
    arrays = smooth_arrays(graph, seed)

    def f(*inputs):
        nodes = substitute(
            graph.outputs, {x: t.node for x, t in zip(graph.inputs, inputs, strict=True)}
        )
        return [Tensor(n, True) for n in nodes]

    def whole(wrap):
        def loss(*inputs):
            s, y = wrap(f)(*inputs)
            again, _ = wrap(f)(*[rg.sin(x) * s for x in inputs])
            return again * 0.1 + s + (rg.tanh(y) ** 2).sum()

        return loss

    def kept(node):
        return (len(node.op) + len(node.shape)) % 3 == 0

    wraps = [rg.checkpoint, rg.checkpoint(policy=kept), rg.checkpoint(policy="contractions")]
    wraps += [rg.checkpoint(policy=most) for most in (500, 1500, 3000, 10000)]
    wrap = wraps[rng.integers(len(wraps))]
    if rng.random() < 0.3:
        inner = wrap
        wrap = lambda f: rg.checkpoint(inner(f))  # type: ignore[operator]
    every = tuple(range(3))
    try:
        found = rg.value_and_grad(whole(wrap), every)(*arrays)
    except rg.OptionError:
        return  # too few bytes
    expected = rg.value_and_grad(whole(lambda f: f), every)(*arrays)
    pairs = zip(rg.tree.flatten(found)[0], rg.tree.flatten(expected)[0], strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-11)
    v = [rng.normal(size=a.shape) for a in arrays]
    two = [rg.hvp(whole(w), tuple(arrays), tuple(v)) for w in (wrap, lambda f: f)]
    for a, b in zip(*two, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-10)


ELEMENTWISE = {  # layers whose parameters are smaller than what they compute
    "scalars": ((), lambda x, a, b: rg.tanh(a * x + b)),
    "vectors": ((256,), lambda x, a, b: rg.tanh(a * x + b)),
    "norms": ((256,), lambda x, a, b: rg.tanh((x - x.mean(axis=-1, keepdims=True)) * a + b)),
}


def elementwise_loss(kind, group, wrap):
    """The loss of a stack of layers, `wrap` around groups of them."""
    layer = ELEMENTWISE[kind][1]

    def several(x, ps):
        for a, b in ps:
            x = layer(x, a, b)
        return x

    def f(ps, x):
        for i in range(0, len(ps), group):
            x = wrap(several)(x, ps[i : i + group])
        return x.sum()

    return f


@pytest.mark.parametrize("kind", ELEMENTWISE)
@pytest.mark.parametrize("depth", [16, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.sample(1)
def test_the_peak_of_elementwise_layers_falls(kind, depth):
    """Groups of sqrt(n) layers: what enters them, and the inside of one with its gradients."""
    shape, x = ELEMENTWISE[kind][0], rg.spec((256, 256))
    ps, unit, group = [(rg.spec(shape), rg.spec(shape))] * depth, 256 * 256 * 4, int(depth**0.5)
    plain = peak(rg.value_and_grad(elementwise_loss(kind, group, lambda f: f)), ps, x)
    cut = peak(rg.value_and_grad(elementwise_loss(kind, group, rg.checkpoint)), ps, x)
    assert plain > 1.9 * depth * unit
    assert cut < (3 * group + 4) * unit
    for most in (2 * group + 6, 3 * group + 4, depth + 6):
        wrap = rg.checkpoint(policy=most * unit)
        f = rg.value_and_grad(elementwise_loss(kind, depth, wrap))
        assert peak(f, ps, x) <= (most + 1) * unit  # the rest of the loss is around it


@pytest.mark.slow
@pytest.mark.parametrize("kind", ELEMENTWISE)
@pytest.mark.sample(1)
def test_the_bits_of_elementwise_layers(kind):
    shape = ELEMENTWISE[kind][0]
    ps = [tuple(RNG.normal(size=(2, *shape)).astype(np.float32)) for _ in range(6)]
    x = RNG.normal(size=(64, 256)).astype(np.float32)
    ways = {
        "plain": lambda f: f,
        "groups": rg.checkpoint,
        "nested": lambda f: rg.checkpoint(rg.checkpoint(f)),
        "budget": rg.checkpoint(policy=10 * x.nbytes),
    }
    expected = None
    for wrap in ways.values():
        f = rg.jit(rg.value_and_grad(elementwise_loss(kind, 2, wrap)))
        value, slopes = f(ps, x)
        found = [value.numpy().tobytes(), *[g.numpy().tobytes() for pair in slopes for g in pair]]
        assert found == (expected or found)
        expected = found


@pytest.mark.slow
def test_the_peak_of_elementwise_layers_under_transforms():
    def of(wrap):
        group = elementwise_loss("vectors", 4, wrap)
        named = rg.trace(rg.value_and_grad(group), PARAMETERS, rg.spec((rg.Dim("N"), 256)))
        batched = rg.trace(
            lambda ps, x: rg.vmap(rg.value_and_grad(group), (None, 0))(ps, x),
            PARAMETERS,
            rg.spec((8, 32, 256)),
        )
        return [named.stats({"N": 256}).compiled_bytes, batched.stats().compiled_bytes]

    plain, cut = of(lambda f: f), of(rg.checkpoint)
    for a, b in zip(plain, cut, strict=True):
        assert b * 2 < a


PARAMETERS = [(rg.spec((256,)), rg.spec((256,)))] * 16


@pytest.mark.slow
def test_no_plan_takes_more_than_one_node_by_node():
    """What is predicted from the graph bounds what the compiled program takes."""
    for kind in ELEMENTWISE:
        shape = ELEMENTWISE[kind][0]
        ps = [(rg.spec(shape), rg.spec(shape))] * 16
        f = rg.value_and_grad(elementwise_loss(kind, 4, rg.checkpoint))
        stats = rg.trace(f, ps, rg.spec((256, 256))).stats()
        assert stats.compiled_bytes is not None
        assert stats.compiled_bytes <= stats.peak_bytes
