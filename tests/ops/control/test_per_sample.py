"""Samples of which each has a number of steps of its own: side by side, or one after the other."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, Graph, TensorType, float32, float64, graphs_of, int64
from retrograd.ops.control import Cond, Scan, Sized
from retrograd.ops.control.body import run
from retrograd.ops.control.per_sample import alike, masked
from retrograd.ops.elementwise import cast, mul, sin
from retrograd.ops.identity import Alias, StopGradient, items
from retrograd.ops.leaf import Iota, constant, input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceMax, ReduceSum
from retrograd.ops.shape import expand, permute

COUNTS = {
    "alike": [3, 3, 2, 3],
    "one long": [0, 1, 9, 1],
    "none": [0, 0, 0, 0],
}


def repeated(x, k, c):
    """c * sin(x) + x / 10, k times over."""
    step = lambda s: (s[0] + 1, rg.sin(s[1]) * c + 0.1 * x)
    return rg.while_loop(lambda s: s[0] < k, step, (0 * k, x))[1].sum()


def loop_in_loop(x, k, c):
    step = lambda s: (s[0] + 1, rg.sin(x) * repeated(s[1], s[0], c))
    return rg.while_loop(lambda s: s[0] < k, step, (0 * k, x))[1].sum()


DERIVATIVES = {
    "gradient": rg.grad,
    "of what all share": lambda f: rg.grad(f, argnums=2),
    "hessian": rg.hessian,
    "third": lambda f: (
        lambda x, k, c: rg.grad(
            lambda x: rg.hvp(lambda x: f(x, k, c), x, rg.cos(x)).sum()
        )(x)
    ),
}  # fmt: skip


def data(counts):
    x = np.random.default_rng(0).normal(size=(4, 2))
    return x, np.array(COUNTS[counts]), np.float64(0.7)


def one_by_one(f, x, k, c):
    return np.stack(
        [f(rg.tensor(a), rg.tensor(n), rg.tensor(c)).numpy() for a, n in zip(x, k, strict=True)]
    )


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.sample(4)
def test_each_sample_has_the_derivative_of_its_own_steps(backend, name, counts):
    f = DERIVATIVES[name](repeated)
    x, k, c = data(counts)
    with rg.backend(backend):
        expected = one_by_one(f, x, k, c)
        found = rg.jit(rg.vmap(f, (0, 0, None)))(x, k, c).numpy()  # type: ignore[arg-type, var-annotated]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
        both = rg.vmap(rg.vmap(f, (0, 0, None)), (0, 0, None))  # type: ignore[arg-type, var-annotated]
        found = both(np.stack([x, x[::-1]]), np.stack([k, k[::-1]]), c).numpy()
        np.testing.assert_allclose(found[1], expected[::-1], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("counts", ["alike", "one long"])
@pytest.mark.sample(1)
@pytest.mark.slow
def test_derivatives_of_a_batch_of_derivatives(counts):
    x, k, c = data(counts)
    for f in (rg.grad(repeated), rg.grad(loop_in_loop)):
        total = lambda c, f=f: (rg.vmap(f, (0, 0, None))(x, k, c) ** 2).sum()
        each = lambda c, f=f: sum(
            (f(rg.tensor(a), rg.tensor(n), c) ** 2).sum() for a, n in zip(x, k, strict=True)
        )
        expected = rg.grad(each)(c).numpy()
        np.testing.assert_allclose(rg.grad(total)(c).numpy(), expected, rtol=1e-10)


def test_no_samples():
    found = rg.vmap(rg.grad(repeated), (0, 0, None))(np.zeros((0, 2)), np.zeros(0, int), 0.5)
    assert found.shape == (0, 2)


@pytest.mark.slow
def test_one_compilation_for_any_number_of_samples():
    one = rg.grad(lambda x, k: repeated(x, k, 0.7))
    f = rg.jit(rg.vmap(one), shapes={"x": "N 2", "k": "N"})
    for size in (1, 5, 9):
        x, k = np.random.default_rng(size).normal(size=(size, 2)), np.arange(size) + 3
        pairs = zip(x, k, strict=True)
        expected = [one(rg.tensor(a), rg.tensor(n)).numpy() for a, n in pairs]
        np.testing.assert_allclose(f(x, k).numpy(), expected, rtol=1e-10, atol=1e-13)
    assert f.cache_stats()["compilations"] == 1


def test_numbers_of_steps_decide_which():
    def chosen(counts, each):
        n = input_node(TensorType(int64, (len(counts),)))
        return bool(run(Graph([n], [alike(n, each)]), [np.array(counts)])[0])

    assert chosen([90, 100, 95], 1000)
    assert not chosen([1, 100, 1], 1000)
    assert chosen([20, 100, 20], 8)  # numbers gain more than arrays
    assert not chosen([20, 100, 20], 1000)
    assert not chosen([10**6] * 10, 1000)  # 10 GB
    assert chosen([10**6] * 10, 1)


def sized(f):
    """The graph of `f(scan, x)`, in which the scan has as many steps as `n` says."""
    x, n = input_node(TensorType(float64, ())), Dim("n")
    a, b = (input_node(TensorType(float64, ())) for _ in range(2))
    first = items(Scan(Graph([a], [sin(a), mul(a, a)]), 1, 0, n)(x))
    down = Graph([a, b], [mul(a, sin(b))])
    return Graph([x], [f(first, lambda stack: items(Scan(down, 1, 1, n, True)(x, stack))[0])])


def test_more_steps_than_count_change_nothing():
    body = sized(lambda first, back: back(first[1] * first[1]) + first[0])
    found = masked(body, "n")
    assert found is not None
    graph, kept = found
    assert kept == 8
    for count in (0, 1, 4):
        (expected,) = run(body.bind({"n": count}), [np.array(1.3)])
        for size in (count, count + 1, 20):
            (value,) = run(graph.bind({"n": size}), [np.array(count), np.array(1.3)])
            assert value == expected


def test_sums_of_records_and_of_their_products_are_of_the_steps_that_count():
    t = TensorType(float64, ())
    x, h = input_node(t), input_node(t)
    _, stack = items(Scan(Graph([h], [sin(h), mul(h, h)]), 1, 0, Dim("n"))(x))
    ends = [ReduceSum((0,))(stack), DotGeneral((0,), (0,))(stack, stack)]
    body = Graph([x], ends)
    found = masked(body, "n")
    assert found is not None
    for count in (0, 1, 4):
        expected = run(body.bind({"n": count}), [np.array(1.3)])
        for size in (count, count + 1, 9):
            values = run(found[0].bind({"n": size}), [np.array(count), np.array(1.3)])
            np.testing.assert_allclose(values, expected, rtol=1e-15)


ROWS = {
    "cast": lambda stack: cast(cast(stack, float32), float64),
    "permuted": lambda stack: permute(stack, (0, 2, 1)),
    "wider": lambda stack: expand(stack, (Dim("n"), 5, 2, 3), (1,)),
    "turned first": lambda stack: permute(stack, (1, 0, 2)),
    "the same": lambda stack: Alias()(stack),
    "stopped": lambda stack: StopGradient()(stack),
    "numbered": lambda stack: stack * Iota((Dim("n"), 2, 3), 0, float64)(),
}


@pytest.mark.parametrize("name", ROWS)
def test_records_of_arrays_step_by_step(name):
    """What keeps steps apart is done with records of any number of them; they take `2 3` numbers
    of 8 bytes each."""
    x, h = (input_node(TensorType(float64, (2, 3))) for _ in range(2))
    _, stack = items(Scan(Graph([h], [sin(h), mul(h, h)]), 1, 0, Dim("n"))(x))
    moved = ROWS[name](stack)
    axis = moved.shape.index(Dim("n"))
    body = Graph([x], [ReduceSum((axis,))(moved)])
    found = masked(body, "n")
    assert found is not None
    graph, kept = found
    assert kept == 48
    array = np.linspace(0.5, 1.5, 6).reshape(2, 3)
    for count in (0, 1, 4):
        (expected,) = run(body.bind({"n": count}), [array])
        for size in (count, 9):
            (value,) = run(graph.bind({"n": size}), [np.array(count), array])
            np.testing.assert_allclose(value, expected, rtol=1e-15)
    mixed = Graph([x], [ReduceMax((axis,))(moved)])
    assert masked(mixed, "n") is None


def weighted(x, k, w):
    """Weights in a loop of which each sample makes a number of steps of its own."""
    step = lambda s: (s[0] + 1, rg.tanh(w @ s[1] + x))
    return rg.while_loop(lambda s: s[0] < k, step, (0 * k, x))[1].sum()


@pytest.mark.parametrize("counts", COUNTS)
def test_gradients_of_weights_are_sums_over_the_steps_of_each_sample(counts):
    x, k, _ = data(counts)
    w = np.random.default_rng(1).normal(size=(2, 2))
    g = rg.grad(weighted, argnums=2)
    expected = one_by_one(g, x, k, w)
    found = rg.jit(rg.vmap(g, (0, 0, None)))(x, k, w).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.slow
def test_records_that_are_mixed_are_left_alone():
    assert masked(sized(lambda first, back: ReduceMax((0,))(first[1]) + first[0]), "n") is None
    assert masked(sized(lambda first, back: first[0]), "m") is not None
    f = lambda x, k: rg.while_loop(
        lambda s: s[0] < k, lambda s: (s[0] + 1, rg.sin(s[1]) * x), (0 * k, x), checkpoint=2
    )[1]
    x, k = np.array([0.5, 0.7, 0.9]), np.array([5, 5, 4])
    expected = [rg.grad(f)(rg.tensor(a), rg.tensor(n)).item() for a, n in zip(x, k, strict=True)]
    np.testing.assert_allclose(rg.vmap(rg.grad(f))(x, k).numpy(), expected, rtol=1e-12)


def test_batches_of_batches_run_one_of_the_two():
    """A choice between two ways of computing the same stays one; code grows with the depth only."""
    f = rg.grad(repeated)
    x, k, c = data("alike")
    for depth in range(1, 4):
        f = rg.vmap(f, (0, 0, None))
        shape = (1,) * (depth - 1)
        graph = rg.trace(f, x.reshape(*shape, 4, 2), k.reshape(*shape, 4), c)
        held = [op for op in all_ops(graph) if isinstance(op, Cond)]
        assert held
        assert all(op.either for op in held)
        assert sum(isinstance(op, Sized) for op in all_ops(graph)) <= depth + 1


def all_ops(graph):
    found = []
    for node in graph.body:
        found.append(node.prim)
        for inner in graphs_of(node.prim):
            found += all_ops(inner)
    return found


@pytest.mark.slow
def test_the_choice_is_text_like_any_other():
    x, k, c = data("alike")
    graph = rg.trace(rg.vmap(rg.grad(repeated), (0, 0, None)), x, k, c)
    again = rg.Graph.parse(str(graph))
    assert str(again) == str(graph)
    np.testing.assert_array_equal(again(x, k, c).numpy(), graph(x, k, c).numpy())


def test_the_choice_keeps_its_meaning_with_a_constant():
    y = input_node(TensorType(float64, (3,)))
    one = Graph([a := input_node(TensorType(float64, ()))], [a * constant(np.float64(2))])
    choice = Cond(one, one, True)
    flags = constant(np.array([True, False, True]))
    (found,) = choice.batch(3, [True, True], flags, y)
    (value,) = run(Graph([y], [found]), [np.arange(3.0)])
    np.testing.assert_array_equal(value, [0.0, 2.0, 4.0])
