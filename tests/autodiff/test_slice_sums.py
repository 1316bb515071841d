"""The cotangent of an array that is read by slices, against the plain sum, to the bit."""

import random

import numpy as np
import pytest

import retrograd as rg
from retrograd.autodiff.slice_sums import sum_of
from retrograd.graph.graph import Graph
from retrograd.ir import TensorType, complex64, evaluate, float16, float32, reachable
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import pad

VALUES = [0.0, -0.0, 1.0, -1.5, 3e38, -3e38, np.inf, -np.inf, np.nan, 1e-45]


def bits(x):
    """The bits of numbers; those of NaN are one, whose sign depends on the order of operands."""
    x = np.asarray(x)
    x = x.view(np.float32) if x.dtype.kind == "c" else x
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(np.uint8)


def contribution(draw, shape, kinds):
    """A node that is zero outside of a random box, or nowhere."""
    kind = draw.choice(kinds)
    low: list[int] = []
    high: list[int] = []
    gap: list[int] = []
    inner: list[int] = []
    for n in shape:
        a, b, step = 0, n, 1
        if kind == "row":
            a = draw.randrange(n) if not inner else 0
            b = a + 1 if not inner else n
        elif kind == "box":
            a = draw.randrange(n)
            b = draw.randint(a + 1, n)
        elif kind == "empty":
            b = a = draw.randrange(n + 1)
        elif kind == "strided":
            step = 2
            a = draw.randrange(n)
        count = (b - a + step - 1) // step
        low.append(a)
        high.append(n - a - (count - 1) * step - 1)
        gap.append(step - 1)
        inner.append(count)
    x = input_node(TensorType(float32, tuple(inner)))
    return x, pad(x, tuple(low), tuple(high), tuple(gap))


KINDS = [
    "row",
    "box",
    "strided",
    "row empty",
    "box empty whole",
    "row whole",
    "row box",
    "row box strided whole",
]


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", range(20))
def test_the_sum_is_the_plain_one_to_the_bit(kinds, seed):
    draw = random.Random(f"{kinds}{seed}")
    shape = draw.choice([(5,), (4, 3), (2, 5, 3)])
    pairs = [contribution(draw, shape, kinds.split()) for _ in range(draw.randint(1, 12))]
    inputs, parts = zip(*pairs, strict=True)
    plain = parts[0]
    for part in parts[1:]:
        plain = plain + part
    values = [
        np.array([draw.choice(VALUES) for _ in range(x.type.size)], np.float32).reshape(x.shape)
        for x in inputs
    ]
    graph = Graph(inputs, [sum_of(parts), plain])
    with np.errstate(all="ignore"):
        for run in (graph.compile("reference"), graph.compile()):
            got, expected = run(*values)
            np.testing.assert_array_equal(bits(got), bits(expected))


def assembled(boxes, n=12):
    """Whether contributions in boxes `(first, count, step)` are put side by side."""
    parts = [
        pad(
            input_node(TensorType(float32, (count,))),
            (first,),
            (n - first - (count - 1) * step - 1,),
            (step - 1,),
        )
        for first, count, step in boxes
    ]
    return "pad" not in {node.op for node in reachable([sum_of(parts)])}


def test_when_contributions_are_put_side_by_side():
    thirds = [(4 * t, 4, 1) for t in range(3)]
    assert assembled(thirds)
    assert assembled([(t, 4, 3) for t in range(3)])
    assert assembled([(0, 4, 3), (1, 4, 3), (5, 1, 1)])  # one place has any distance
    assert not assembled([(0, 4, 3), (1, 6, 2), (5, 1, 1)])
    assert not assembled([(0, 8, 1), (2, 8, 1), (4, 8, 1)])  # two thirds of all each
    assert assembled([(0, 6, 1), (0, 6, 1), (6, 6, 1)])


@pytest.mark.parametrize("dtype", [float16, complex64])
def test_other_dtypes(dtype):
    xs = [input_node(TensorType(dtype, (1, 3))) for _ in range(4)]
    parts = [pad(x, (t, 0), (3 - t, 0)) for t, x in enumerate(xs)]
    plain = parts[0] + parts[1] + parts[2] + parts[3]
    values = [np.array([[t, -0.0, np.inf]], dtype.dtype) for t in range(4)]
    got, expected = Graph(xs, [sum_of(parts), plain]).compile("reference")(*values)
    np.testing.assert_array_equal(bits(got), bits(expected))


def loop(x, steps):
    h = x[0] * 0
    for t in steps:
        h = rg.tanh(x[t] + 0.5 * h)
    return (h * h).sum()


SLICES = {
    "rows": lambda x: [x[t] for t in range(8)],
    "rows twice": lambda x: [x[t % 8] * t for t in range(16)],
    "backwards": lambda x: [x[-1 - t] for t in range(8)],
    "some rows": lambda x: [x[t] for t in (1, 4, 6)],
    "columns": lambda x: [x[:, t] for t in range(6)],
    "elements": lambda x: [x[s, t] for s in range(8) for t in range(6)],
    "blocks": lambda x: [x[2 * t : 2 * t + 2] for t in range(4)],
    "strided": lambda x: [x[:, t::3] for t in range(3)],
    "strided, of unequal length": lambda x: [x[t::3].sum(axis=0) for t in range(3)],
    "reversed": lambda x: [x[t::-1].sum(axis=0) for t in range(8)],
    "windows": lambda x: [x[t : t + 2] for t in range(7)],
    "rows, then columns": lambda x: [
        *[x[t].sum() for t in range(8)], *[x[:, t].sum() for t in range(6)],
    ],
    "rows and all": lambda x: [x[0].sum(), (x * x).sum(), *[x[t].sum() for t in range(8)]],
}  # fmt: skip


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.sample(4)
def test_derivatives(name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 6))

    def f(x):
        total = rg.asarray(0.0, dtype=rg.float64)
        for k, part in enumerate(SLICES[name](x)):
            total = total + (rg.sin(part * (k + 1))).sum() * part.sum()
        return total

    step, v = 1e-6, rng.normal(size=x.shape)
    slope = rg.grad(f)(x).numpy()
    for other in (rg.jit(rg.grad(f))(x), rg.vmap(rg.grad(f))(x[None])[0]):
        np.testing.assert_allclose(other, slope, rtol=1e-13, atol=1e-13)
    leaf = rg.tensor(x, requires_grad=True)
    f(leaf).backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), slope)
    change = (f(x + step * v) - f(x - step * v)).item() / (2 * step)
    np.testing.assert_allclose((slope * v).sum(), change, rtol=1e-6, atol=1e-6)
    hvp = rg.grad(lambda x: (rg.grad(f)(x) * v).sum())(x).numpy()
    change = (rg.grad(f)(x + step * v) - rg.grad(f)(x - step * v)).numpy() / (2 * step)
    np.testing.assert_allclose(hvp, change, rtol=1e-5, atol=1e-5)


def test_the_gradient_of_a_loop_is_linear_in_its_length():
    sizes = []
    for n in (32, 64):
        x = rg.zeros((n, 3))
        graph = rg.trace(rg.grad(lambda x, n=n: loop(x, range(n))), x)
        assert [node.op for node in graph.nodes].count("pad") == 0
        elements = sum(
            evaluate(node.type.size, {}) for node in graph.nodes if node.op != "constant"
        )
        sizes.append((len(graph.nodes), elements))
    (nodes, elements), (more, many) = sizes
    assert more <= 2 * nodes
    assert many <= 2.1 * elements


def test_steps_of_named_sizes():
    f = rg.jit(rg.grad(lambda x: loop(x, range(4))), shapes={"x": "4 n"})
    for n in (1, 3):
        x = np.random.default_rng(n).normal(size=(4, n)).astype(np.float32)
        np.testing.assert_allclose(f(x), rg.grad(lambda x: loop(x, range(4)))(x), rtol=1e-6)
    f = rg.jit(rg.grad(lambda x: loop(x, range(2))), shapes={"x": "t n"})
    x = np.random.default_rng(2).normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(f(x), rg.grad(lambda x: loop(x, range(2)))(x), rtol=1e-6)
