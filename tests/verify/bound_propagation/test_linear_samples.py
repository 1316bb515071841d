"""The axis of samples: where one is said to be, no sample moves what is at another position."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.graph.graph import Graph, trace
from retrograd.ir import TensorType, float64
from retrograd.nn import functional as F
from retrograd.verify.bound_propagation.linear_samples import sample_axes

R = np.random.default_rng(0)
W, K = R.normal(size=(4, 5)), R.normal(size=(2, 1, 3))
APART = {
    "layers": lambda x: rg.relu(x @ W + 1.0) @ W.T,
    "from the right": lambda x: (W.T @ x.mT).mT,
    "reductions": lambda x: x.sum(-1) * rg.max(x, axis=1),
    "softmax": lambda x: rg.softmax(x, -1),
    "shapes": lambda x: rg.flip(x.reshape(3, 2, 2).transpose(1, 0, 2)[1:], axis=2)[0],
    "joined": lambda x: rg.concatenate([x, x[:, ::2]], axis=1),
    "padded": lambda x: rg.pad(x, ((0, 0), (1, 2))),
    "batches": lambda x: (x[:, None, :] @ x[:, :, None])[:, 0],
    "convolution": lambda x: F.max_pool1d(F.conv1d(x[:, None], K), 2),
    "columns": lambda x: rg.take(x, np.array([3, 0, 0]), axis=1),
}
MIXED = {
    "total": lambda x: x.sum(0),
    "mean": lambda x: x - x.mean(0),
    "reversed": lambda x: x[::-1] * 1.0,
    "shifted": lambda x: rg.concatenate([x[1:], x[:1]], axis=0),
    "all pairs": lambda x: x @ x.mT,
    "turned": lambda x: x.mT,
    "flat": lambda x: x.reshape(12),
    "rows": lambda x: x[np.array([1, 0, 2])],
}


def axes_of(f, shape=(3, 4)):
    graph = trace(f, TensorType(float64, shape))
    moving = set(graph.inputs)
    for node in graph.body:
        if any(x in moving for x in node.inputs):
            moving.add(node)
    return graph, moving, sample_axes(graph, graph.inputs, moving)


@pytest.mark.parametrize("name", APART)
def test_samples_that_are_apart_move_only_what_is_theirs(name):
    graph, moving, axes = axes_of(APART[name])
    nodes = [node for node in graph.nodes if node in moving]
    assert set(nodes) <= set(axes)
    x = R.normal(size=(3, 4))
    with rg.backend("reference"):
        run = Graph(graph.inputs, nodes)
        before = [np.asarray(y) for y in run(x)]
        x[1] += 1.0
        for node, a, b in zip(nodes, before, run(x), strict=True):
            changed = np.moveaxis(a != np.asarray(b), axes[node], 0)
            assert len(changed) == 3
            assert not changed[[0, 2]].any(), node.describe()


@pytest.mark.parametrize("name", MIXED)
def test_samples_that_meet_have_no_axis(name):
    assert axes_of(MIXED[name])[2] == {}


def test_a_single_sample_and_a_bias_of_its_own():
    assert axes_of(rg.exp, (1, 4))[2] == axes_of(rg.exp, ())[2] == {}
    graph, moving, axes = axes_of(lambda x: x + np.arange(12.0).reshape(3, 4))
    (bias,) = set(graph.nodes) - moving
    assert axes[bias] == 0


@pytest.mark.parametrize("name", ["pad", "spaced", "max_pool"])
def test_padded_samples_are_bounded_as_each_alone(name):
    f = {
        "pad": lambda x: rg.sin(rg.pad(x, ((0, 0), (1, 2)), constant_values=0.5)),
        "spaced": rg.grad(lambda x: rg.sin(x[:, ::2]).sum()),
        "max_pool": lambda x: F.max_pool1d(x[:, None], 2, stride=2, padding=1) * 2.0,
    }[name]
    x = R.normal(size=(3, 4))
    with rg.backend("reference"):
        whole, *alone = (
            rg.verify.bounds(f, rg.verify.ball(y, 0.3), method="crown")
            for y in (x, *(x[i : i + 1] for i in range(3)))
        )
    np.testing.assert_allclose(whole.lower, np.concatenate([b.lower for b in alone]), atol=1e-9)
    np.testing.assert_allclose(whole.upper, np.concatenate([b.upper for b in alone]), atol=1e-9)
