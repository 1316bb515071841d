"""Random programs: NumPy, both backends, jit, trace and every way to a gradient agree."""

import numpy as np
import pytest

import retrograd as rg
from tests.functions.programs import Program, random_program

SEEDS = range(24)


def close(got: object, expected: object, tolerance: float = 1e-9) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def every_argument(p: Program) -> tuple[int, ...]:
    return tuple(range(len(p.inputs)))


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sample(10)
def test_every_value_is_that_of_numpy(seed, backend):
    p = random_program(seed)
    with rg.backend(backend):
        got = p.values([rg.tensor(x) for x in p.inputs])
        for a, b in zip(got, p.values(p.inputs, tensors=False), strict=True):
            close(a, b)


@pytest.mark.parametrize("seed", range(40, 52))
@pytest.mark.sample(4)
def test_float32_programs_agree_on_all_backends(seed):
    p = random_program(seed, np.float32)
    results = []
    for name in rg.backends():
        with rg.backend(name):
            results.append([x.numpy() for x in p.values([rg.tensor(x) for x in p.inputs])])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            close(a, b, 1e-4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.sample(5)
def test_compiled_and_written_programs_are_the_same(seed):
    p = random_program(seed)
    expected = p.values(p.inputs, tensors=False)[-1]
    close(rg.jit(p)(*p.inputs), expected)
    graph = rg.trace(p, *p.inputs)
    again = rg.Graph.parse(str(graph))
    assert again == graph
    again.check()
    close(again(*p.inputs), expected)
    close(graph.optimize().compile("reference")(*p.inputs), expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.sample(4)
def test_every_way_to_a_gradient_agrees(seed):
    p = random_program(seed)
    n = every_argument(p)
    with rg.backend("reference"):
        expected = [g.numpy() for g in rg.grad(p.loss, n)(*p.inputs)]
    leaves = [rg.tensor(x, requires_grad=True) for x in p.inputs]
    loss = p.loss(*leaves)
    if loss.requires_grad:
        loss.backward()
    backward = [np.zeros_like(x.numpy()) if x.grad is None else x.grad for x in leaves]
    compiled = rg.jit(rg.grad(p.loss, n))(*p.inputs)
    graph = rg.Graph.parse(str(rg.trace(p.loss, *p.inputs).gradient()))(*p.inputs)
    graphs = graph if isinstance(graph, tuple) else (graph,)
    for a, b, c, g in zip(backward, compiled, graphs, expected, strict=True):
        close(a, g, 1e-8)
        close(b, g, 1e-8)
        close(c, g, 1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_are_those_of_finite_differences_and_of_forward_mode(seed):
    p = random_program(seed)
    rng = np.random.default_rng(seed)
    v = [np.asarray(rng.normal(size=x.shape)) for x in p.inputs]
    with rg.backend("reference"):
        gradients = rg.grad(p.loss, every_argument(p))(*p.inputs)
        slope = sum((g.numpy() * d).sum() for g, d in zip(gradients, v, strict=True))
        _, tangent = rg.jvp(p.loss, tuple(p.inputs), tuple(v))
        assert tangent.item() == pytest.approx(slope, rel=1e-8, abs=1e-8)
        h = 1e-6
        ends = [
            p.loss(*[rg.tensor(x + s * h * d) for x, d in zip(p.inputs, v, strict=True)]).item()
            for s in (1, -1)
        ]
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(slope, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_vmap_is_a_loop(seed):
    p = random_program(seed)
    stacks = [np.stack([x, x + 0.1, x * 0.5]) for x in p.inputs]
    samples = [[s[i] for s in stacks] for i in range(3)]
    with rg.backend("reference"):
        for f in (p, rg.grad(p.loss)):
            loop = np.stack([np.asarray(f(*[rg.tensor(x) for x in s])) for s in samples])
            close(rg.vmap(f)(*stacks), loop, 1e-7)
