"""Stages that compute at once give what they give one after the other, and its gradient."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.distributed import pipeline, stack_stages
from tests.distributed.machines import on_devices


def stage(layer, x):
    return rg.tanh(layer(x)) + x


def make(count):
    g = rg.random.Generator(1)
    layers = [rg.nn.Linear(3, 3, generator=g, dtype="float64") for _ in range(count)]
    x = rg.asarray(np.random.default_rng(0).standard_normal((6, 3)))
    return layers, x


@pytest.mark.parametrize(("count", "microbatches"), [(3, 2), (1, 3), (2, 6)])
def test_a_pipeline_is_its_stages_one_after_the_other(count, microbatches):
    layers, x = make(count)

    def plain(stacked, x):
        for i in range(count):
            x = stage(rg.tree.map(lambda p, i=i: p[i], stacked), x)
        return x

    with rg.backend("reference"):
        stacked = stack_stages(layers)
        a = pipeline(stage, stacked, x, microbatches)
        np.testing.assert_allclose(a.numpy(), plain(stacked, x).numpy(), rtol=1e-13)
        slopes = [
            rg.grad(lambda p, f=f: (f(p) ** 2).sum())(stacked)
            for f in (lambda p: pipeline(stage, p, x, microbatches), lambda p: plain(p, x))
        ]
        for p, q in zip(*[rg.tree.flatten(s)[0] for s in slopes], strict=True):
            np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-12, atol=1e-14)


def test_what_is_no_pipeline():
    layers, x = make(2)
    stacked = stack_stages(layers)
    with pytest.raises(rg.OptionError, match="batch of 6 cannot be divided into 4"):
        pipeline(stage, stacked, x, 4)
    with pytest.raises(rg.ShapeError, match="same first axis"):
        pipeline(stage, (rg.ones((2, 3)), rg.ones((3, 3))), x, 2)
    with pytest.raises(rg.ShapeError, match="has the type of its argument"):
        pipeline(lambda p, x: x[:, :2], stacked, x, 2)
    with pytest.raises(rg.OptionError, match="at least one stage"):
        stack_stages([])
    with pytest.raises(rg.ShapeError, match="same structure"):
        stack_stages([rg.nn.Linear(2, 2), rg.nn.Linear(2, 2, bias=False)])


@pytest.mark.slow
def test_stages_on_devices_of_their_own_hand_on_to_the_next():
    pytest.importorskip("jax")
    on_devices(
        4,
        """
import numpy as np, retrograd as rg
from retrograd import distributed as D
layers = [rg.nn.Linear(8, 8, generator=rg.random.Generator(i)) for i in range(4)]
x = np.random.default_rng(0).standard_normal((16, 8)).astype("float32")
stacked = D.stack_stages(layers)

def loss(p, x):
    return (D.pipeline(lambda l, x: rg.tanh(l(x)), p, x, 8) ** 2).sum()

def sequential(layers, x):
    for l in layers:
        x = rg.tanh(l(x))
    return (x ** 2).sum()

f = rg.jit(rg.value_and_grad(loss))
want, slopes = rg.value_and_grad(sequential)(layers, rg.asarray(x))
with rg.backend("xla"), rg.Mesh({"stage": 4}):
    p = D.shard(stacked, ("stage",))
    got, grads = f(p, x)
    assert abs(float(got) - float(want)) < 1e-5 * float(want)
    for i in range(4):
        np.testing.assert_allclose(grads.weight.numpy()[i], slopes[i].weight.numpy(), atol=1e-5)
    found = D.by_kind(D.cost(f, p, x))
    assert found["collective-permute"] > 0, found
""",
    )
